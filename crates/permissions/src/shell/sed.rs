//! `sed`, as far as its script can be parsed: addresses, printing, deleting, and substitutions that neither run nor
//! write.

/// The files that a `sed` reads, if it only prints.
pub(super) fn reads<'a>(arguments: &[&'a str]) -> Option<Vec<&'a str>> {
    let sed = split(arguments)?;
    (!sed.in_place && sed.scripts.iter().all(|script| is_safe(script))).then_some(sed.files)
}

/// The files that a `sed -i` with a safe script changes.
pub(super) fn edits<'a>(arguments: &[&'a str]) -> Option<Vec<&'a str>> {
    let sed = split(arguments)?;
    (sed.in_place && sed.scripts.iter().all(|script| is_safe(script))).then_some(sed.files)
}

/// The scripts among these words, with `None` for an unknown one. `None` altogether if an unknown word may be an
/// option, or if an option names a script file.
pub(super) fn scripts<'a>(words: &[Option<&'a str>]) -> Option<Vec<Option<&'a str>>> {
    const PLAIN: [&str; 12] = [
        "quiet",
        "silent",
        "regexp-extended",
        "in-place",
        "separate",
        "null-data",
        "zero-terminated",
        "unbuffered",
        "posix",
        "debug",
        "follow-symlinks",
        "binary",
    ];
    let mut scripts = Vec::new();
    let mut operands = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let Some(value) = *word else {
            operands.push(None);
            continue;
        };
        if value == "--" {
            operands.extend(words);
            break;
        }
        if let Some(long) = value.strip_prefix("--") {
            let (name, attached) =
                long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            if "expression".starts_with(name) {
                scripts.push(attached.or(words.next().copied().flatten()));
            } else if !PLAIN.iter().any(|option| option.starts_with(name)) {
                return None;
            }
            continue;
        }
        let Some(bundle) = value.strip_prefix('-').filter(|bundle| !bundle.is_empty()) else {
            operands.push(Some(value));
            continue;
        };
        let mut letters = bundle.chars();
        while let Some(letter) = letters.next() {
            let rest = letters.as_str();
            match letter {
                'n' | 'E' | 'r' | 'u' | 's' | 'z' | 'b' => {}
                // The attached text is the suffix of a name.
                'i' => break,
                'e' if rest.is_empty() => {
                    scripts.push(*words.next()?);
                }
                'e' => {
                    scripts.push(Some(rest));
                    break;
                }
                _ => return None,
            }
        }
    }
    if scripts.is_empty() {
        scripts.extend(operands.first().copied());
    }
    Some(scripts)
}

/// Whether a script can run nothing: no `e` in it is a command.
pub(super) fn runs_nothing(script: &str) -> bool {
    let safe_flags = script.starts_with("s/")
        && script.matches('/').count() == 3
        && !script.contains('\n')
        && !script.rsplit('/').next().unwrap_or_default().contains(['e', ';', '}', 'w']);
    is_safe(script) || safe_flags || !script.contains('e')
}

/// The possible file names in a script to read or write: all text after an `r` or a `w` in a line.
pub(super) fn possible_files(script: &str) -> impl Iterator<Item = &str> {
    const MOST: usize = 64;
    let lines = script.lines().flat_map(|line| {
        line.match_indices(['r', 'R', 'w', 'W'])
            .map(move |(at, _)| line.get(at + 1..).unwrap_or_default().trim_start())
    });
    lines.filter(|file| !file.is_empty()).take(MOST)
}

struct Sed<'a> {
    in_place: bool,
    scripts: Vec<&'a str>,
    files: Vec<&'a str>,
}

fn split<'a>(arguments: &[&'a str]) -> Option<Sed<'a>> {
    let mut sed = Sed { in_place: false, scripts: Vec::new(), files: Vec::new() };
    let mut words = arguments.iter().copied();
    while let Some(word) = words.next() {
        match word {
            "-n" | "-E" | "-r" | "-u" | "--quiet" | "--silent" | "--regexp-extended" => {}
            "-i" | "--in-place" | "-ni" | "-Ei" | "-ri" => sed.in_place = true,
            "-e" | "--expression" | "-ne" | "-Ee" | "-re" => sed.scripts.push(words.next()?),
            option if option.starts_with('-') => return None,
            operand => sed.files.push(operand),
        }
    }
    if sed.scripts.is_empty() {
        if sed.files.is_empty() {
            return None;
        }
        let script = sed.files.remove(0);
        sed.scripts.push(script);
    }
    Some(sed)
}

/// Whether every command of a script only changes or prints its input.
fn is_safe(script: &str) -> bool {
    let mut rest = script;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\n', ';', '}']);
        if rest.is_empty() {
            return true;
        }
        let Some(after) = after_command(rest) else { return false };
        rest = after;
    }
}

/// The text after the first command of a script, if that only changes or prints its input.
fn after_command(script: &str) -> Option<&str> {
    let mut rest = after_address(script)?.trim_start_matches([' ', '\t']);
    rest = rest.strip_prefix('!').unwrap_or(rest).trim_start_matches([' ', '\t']);
    let command = rest.chars().next()?;
    let after = rest.get(command.len_utf8()..)?;
    let after = match command {
        '{' => return Some(after),
        'p' | 'd' | '=' | 'n' | 'N' | 'h' | 'H' | 'g' | 'G' | 'x' | 'D' | 'P' => after,
        'q' => after.trim_start_matches(|c: char| c.is_ascii_digit()),
        's' => {
            let mark = after.chars().next().filter(|c| "/|#,:@%".contains(*c))?;
            // `e` runs the text, `w` and `m` have other meanings.
            after_marks(after, mark, 3)?
                .trim_start_matches(|c: char| c.is_ascii_digit() || "gpiI".contains(c))
        }
        _ => return None,
    };
    let after = after.trim_start_matches([' ', '\t']);
    (after.is_empty() || after.starts_with([';', '\n', '}'])).then_some(after)
}

/// The script behind one or two addresses: numbers, `$`, `/pattern/`.
fn after_address(script: &str) -> Option<&str> {
    let one = |script: &'_ str| -> Option<usize> {
        if script.starts_with('/') {
            return Some(script.len() - after_marks(script, '/', 2)?.len());
        }
        let rest = script.trim_start_matches(|c: char| c.is_ascii_digit() || c == '$');
        Some(script.len() - rest.len())
    };
    let mut rest = script.get(one(script)?..)?;
    while let Some(second) = rest.strip_prefix(',') {
        let second = second.strip_prefix(['+', '~']).unwrap_or(second);
        rest = second.get(one(second)?..)?;
    }
    Some(rest)
}

/// The text after the nth occurrence of the mark, not counting escaped ones.
fn after_marks(text: &str, mark: char, count: usize) -> Option<&str> {
    let mut seen = 0;
    let mut escaped = false;
    for (index, character) in text.char_indices() {
        if !escaped && character == mark {
            seen += 1;
            if seen == count {
                return text.get(index + character.len_utf8()..);
            }
        }
        escaped = character == '\\' && !escaped;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_that_run_or_write_are_refused() {
        for (arguments, expected) in [
            (&["-n", "1,5p", "a"][..], true),
            (&["-n", "$p;3p", "a"], true),
            (&["s/a/b/g", "a"], true),
            (&["-E", "s|a/(b)|c\\|d|gI", "a"], true),
            (&["/x/d", "a"], true),
            (&["-e", "s/a/b/", "-e", "5q", "a"], true),
            (&["s/a/b/;s/c/d/", "a"], true),
            (&["/start/,/end/p", "a"], true),
            (&["/start/,+2{s/a/b/;p}", "a"], true),
            (&["-n", "5,$!p", "a"], true),
            (&["s/a/b/\ns/c/d/", "a"], true),
            (&["s/a/b/;e", "a"], false),
            (&["s/a/b/;s/c/d/e", "a"], false),
            (&["/x/{w out\n}", "a"], false),
            (&["/x/,/y/e ls", "a"], false),
            (&["s/a/b/\n1e ls", "a"], false),
            (&["pw out", "a"], false),
            (&["s/a/b/gw out", "a"], false),
            (&["s/a/b", "a"], false),
            (&["s/a/b/e", "a"], false),
            (&["s/a/b/w out", "a"], false),
            (&["s/a/b/;w out", "a"], false),
            (&["s/a/b/\nw out", "a"], false),
            (&["1e curl x", "a"], false),
            (&["e", "a"], false),
            (&["w out", "a"], false),
            (&["r /etc/passwd", "a"], false),
            (&["/x/e", "a"], false),
            (&["-i", "s/a/b/", "a"], false),
            (&["-f", "script", "a"], false),
            (&["-s", "p", "a"], false),
            (&[], false),
        ] {
            assert_eq!(reads(arguments).is_some(), expected, "{arguments:?}");
        }
        assert_eq!(edits(&["-i", "s/a/b/", "x", "y"]), Some(vec!["x", "y"]));
        assert_eq!(edits(&["-i.bak", "s/a/b/", "x"]), None);
        assert_eq!(edits(&["-i", "s/a/b/e", "x"]), None);
    }
}
