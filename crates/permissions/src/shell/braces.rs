//! Brace expansion: `{a,b}c` becomes `ac bc`, before anything else is expanded.

use super::syntax::WordPart;

/// The most words that braces may expand to.
const MOST_WORDS: usize = 256;

/// A character outside quotes, or a part of a word that brace expansion treats as a unit.
#[derive(Clone, Copy, Debug)]
pub(super) enum Unit<'a> {
    Character(char),
    Part(&'a WordPart),
    /// A sequence of numbers or letters: `{1..9}`.
    Range,
}

/// A word as units.
pub(super) fn units(parts: &[WordPart]) -> Vec<Unit<'_>> {
    let mut units = Vec::new();
    for part in parts {
        match part {
            WordPart::Bare(text) => units.extend(text.chars().map(Unit::Character)),
            part => units.push(Unit::Part(part)),
        }
    }
    units
}

/// The words of a brace expansion, or `None` if there are too many or if a new expansion arises: in `{$,a}x` a dollar
/// sign meets a name.
pub(super) fn spread<'a>(units: &[Unit<'a>]) -> Option<Vec<Vec<Unit<'a>>>> {
    if !units.iter().any(|unit| is(unit, '{')) {
        return Some(vec![units.to_vec()]);
    }
    let mut made = Vec::new();
    spread_into(units, &[], true, &mut made)?;
    (!made.iter().any(|word| joins_dollar(word))).then_some(made)
}

/// Whether a dollar sign now stands before a text that it expands: it did not when the word was parsed.
fn joins_dollar(word: &[Unit<'_>]) -> bool {
    word.windows(2).any(|pair| match pair {
        [Unit::Character('$'), Unit::Character(next)] => {
            next.is_alphanumeric() || "_{([@*#?-$!".contains(*next)
        }
        [Unit::Character('$'), Unit::Part(_) | Unit::Range] => true,
        _ => false,
    })
}

/// `begins` tells whether the units are a whole text, and not the rest of one.
fn spread_into<'a>(
    units: &[Unit<'a>],
    before: &[Unit<'a>],
    begins: bool,
    made: &mut Vec<Vec<Unit<'a>>>,
) -> Option<()> {
    for (start, unit) in units.iter().enumerate() {
        if !is(unit, '{') {
            continue;
        }
        // `{}` at the start of a text is literal.
        let is_empty = units.get(start + 1).is_some_and(|unit| is(unit, '}'));
        if start == 0 && is_empty && begins {
            continue;
        }
        let Some((inner, after)) = matching(units.get(start + 1..)?) else { continue };
        let alternatives = alternatives(inner);
        let before = [before, units.get(..start)?].concat();
        if alternatives.len() > 1 {
            for alternative in alternatives {
                let mut inside = Vec::new();
                spread_into(alternative, &[], true, &mut inside)?;
                for middle in inside {
                    spread_into(after, &[before.as_slice(), &middle].concat(), true, made)?;
                }
            }
            return Some(());
        }
        if is_range(inner) {
            return spread_into(after, &[before.as_slice(), &[Unit::Range]].concat(), true, made);
        }
        // The brace is literal, and its content may have braces of its own.
        let before = [before.as_slice(), &[*unit]].concat();
        return spread_into(units.get(start + 1..)?, &before, false, made);
    }
    made.push([before, units].concat());
    (made.len() <= MOST_WORDS).then_some(())
}

fn is(unit: &Unit<'_>, wanted: char) -> bool {
    matches!(unit, Unit::Character(character) if *character == wanted)
}

/// The units up to the closing brace, and the rest. A closing brace without a comma or two dots before it is an
/// ordinary character.
fn matching<'u, 'a>(units: &'u [Unit<'a>]) -> Option<(&'u [Unit<'a>], &'u [Unit<'a>])> {
    let mut depth = 0_usize;
    let mut has_several = false;
    for (index, unit) in units.iter().enumerate() {
        let at = |offset: usize, wanted: char| {
            units.get(index + offset).is_some_and(|unit| is(unit, wanted))
        };
        let is_range = at(0, '.') && at(1, '.') && index + 2 < units.len() && !at(2, '}');
        has_several |= depth == 0 && (is(unit, ',') || is_range);
        if is(unit, '{') {
            depth += 1;
        } else if is(unit, '}') {
            match depth.checked_sub(1) {
                Some(less) => depth = less,
                None if !has_several => {}
                None => return Some((units.get(..index)?, units.get(index + 1..)?)),
            }
        }
    }
    None
}

/// The parts between the commas outside inner braces.
fn alternatives<'u, 'a>(units: &'u [Unit<'a>]) -> Vec<&'u [Unit<'a>]> {
    let mut found = Vec::new();
    let (mut depth, mut start) = (0_usize, 0);
    for (index, unit) in units.iter().enumerate() {
        match unit {
            Unit::Character('{') => depth += 1,
            Unit::Character('}') => depth = depth.saturating_sub(1),
            Unit::Character(',') if depth == 0 => {
                found.extend(units.get(start..index));
                start = index + 1;
            }
            _ => {}
        }
    }
    found.extend(units.get(start..));
    found
}

/// Whether this is `1..9`, `a..z`, or either with a third number.
fn is_range(units: &[Unit<'_>]) -> bool {
    let text: Option<String> = units
        .iter()
        .map(|unit| match unit {
            Unit::Character(character) => Some(*character),
            Unit::Part(_) | Unit::Range => None,
        })
        .collect();
    let Some(text) = text else { return false };
    let ends: Vec<&str> = text.split("..").collect();
    let is_number = |text: &str| text.parse::<i64>().is_ok();
    let is_letter = |text: &str| matches!(text.as_bytes(), [byte] if byte.is_ascii_alphabetic());
    match ends.as_slice() {
        [first, last] | [first, last, _] => {
            let steps = ends.get(2).is_none_or(|step| is_number(step));
            steps
                && ((is_number(first) && is_number(last)) || (is_letter(first) && is_letter(last)))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_make_the_words_that_bash_makes() {
        for (text, expected) in [
            ("a", &["a"][..]),
            ("{a,b}", &["a", "b"]),
            ("x{a,b}y", &["xay", "xby"]),
            ("{a,b}{c,d}", &["ac", "ad", "bc", "bd"]),
            ("{a,{b,c}}", &["a", "b", "c"]),
            ("{{a,b}}", &["{a}", "{b}"]),
            ("{a}", &["{a}"]),
            ("{a},b}", &["a}", "b"]),
            ("x{a}b,c}", &["xa}b", "xc"]),
            ("{}", &["{}"]),
            ("{a,b", &["{a,b"]),
            ("a,b}", &["a,b}"]),
            ("{a,}", &["a", ""]),
            ("{a,b}{", &["a{", "b{"]),
            ("{1..3}", &["…"]),
            ("}{a,b}", &["}a", "}b"]),
        ] {
            let parts = [WordPart::Bare(text.to_owned())];
            let made = spread(&units(&parts)).unwrap();
            let texts: Vec<String> = made
                .iter()
                .map(|units| {
                    let characters = units.iter().map(|unit| match unit {
                        Unit::Character(character) => *character,
                        Unit::Part(_) | Unit::Range => '…',
                    });
                    characters.collect()
                })
                .collect();
            assert_eq!(texts, expected, "{text}");
        }
    }

    /// Every text of a few special characters and letters, compared with bash.
    #[test]
    fn all_short_texts_are_spread_as_bash_spreads_them() {
        let mut texts = vec![String::new()];
        for length in 1..=6 {
            let longer = texts.iter().filter(|text| text.len() == length - 1);
            let longer: Vec<String> = longer
                .flat_map(|text| ["{", "}", ",", "a", "."].map(|mark| format!("{text}{mark}")))
                .collect();
            texts.extend(longer);
        }
        // A lone brace at the start would be a command of its own, but only in the first word.
        let lines: Vec<String> =
            texts.iter().skip(1).map(|text| format!("printf '<%s>' {text}; echo\n")).collect();
        let place = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(place.path(), lines.concat()).unwrap();
        let output = std::process::Command::new("bash").arg(place.path()).output().unwrap();
        let output = String::from_utf8(output.stdout).unwrap();
        let wrong: Vec<String> = texts
            .iter()
            .skip(1)
            .zip(output.lines())
            .filter_map(|(text, expected)| {
                let parts = [WordPart::Bare(text.clone())];
                let made = spread(&units(&parts))?;
                let is_one = made.len() == 1;
                let words = made.iter().filter(|units| is_one || !units.is_empty());
                let words: Vec<String> = words
                    .map(|units| {
                        let characters = units.iter().map(|unit| match unit {
                            Unit::Character(character) => *character,
                            Unit::Part(_) | Unit::Range => '…',
                        });
                        format!("<{}>", characters.collect::<String>())
                    })
                    .collect();
                let words = if words.is_empty() { "<>".to_owned() } else { words.concat() };
                // A range is not expanded.
                (words != expected && !words.contains('…'))
                    .then(|| format!("{text}: {words}, bash {expected}"))
            })
            .collect();
        let some: Vec<&str> = wrong.iter().map(String::as_str).take(30).collect();
        assert!(wrong.is_empty(), "{} of {}: {}", wrong.len(), texts.len(), some.join("\n"));
    }
}
