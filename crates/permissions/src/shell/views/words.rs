//! The words of a command: options, their values, and their possible texts.

use super::super::characters::{has_blank, is_name, words as split_words};
use super::super::programs::{base_name, family};
use super::super::script::Word;
use super::super::shape::{Shape, Step};

/// The directories that options name for a command to work in, if there are such options; `None` in place of an unknown
/// one.
pub(in crate::shell) fn directories(words: &[Word]) -> Option<Vec<Option<&str>>> {
    const OPTIONS: [&str; 5] = ["--chdir", "--directory", "--cd", "--cwd", "--work-tree"];
    let mut found = Vec::new();
    for (index, word) in words.iter().enumerate().skip(1) {
        let Some(value) = word.value.as_deref() else { continue };
        let next = || words.get(index + 1).and_then(|word| word.value.as_deref());
        if value.starts_with("-execdir") || value.starts_with("-okdir") {
            found.push(None);
        } else if value == "-C" || OPTIONS.contains(&value) {
            found.push(next());
        } else if let Some((option, value)) = value.split_once('=')
            && OPTIONS.contains(&option)
        {
            found.push(Some(value));
        } else if let Some(value) = value.strip_prefix("-C") {
            found.push(Some(value));
        }
    }
    (!found.is_empty()).then_some(found)
}

/// Whether the word at this position is the value of a container option, which names a path, a variable or a user in
/// the container.
pub(super) fn is_value(words: &[Word], at: usize) -> bool {
    const OPTIONS: [&str; 16] = [
        "-e",
        "-l",
        "-p",
        "-u",
        "-v",
        "-w",
        "--env",
        "--env-file",
        "--label",
        "--mount",
        "--name",
        "--network",
        "--publish",
        "--user",
        "--volume",
        "--workdir",
    ];
    let value = |index: usize| words.get(index).and_then(|word| word.value.as_deref());
    matches!(value(0).map(base_name), Some("docker" | "nerdctl" | "podman"))
        && at.checked_sub(1).and_then(value).is_some_and(|option| OPTIONS.contains(&option))
}

pub(super) fn has_word(words: &[Word], wanted: &[&str]) -> bool {
    words.iter().any(|word| word.value.as_deref().is_some_and(|value| wanted.contains(&value)))
}

/// The texts of words; for an unknown one, its written form.
pub(in crate::shell) fn best_values(words: &[Word]) -> Vec<&str> {
    words.iter().map(|word| word.value.as_deref().unwrap_or(&word.written)).collect()
}

/// Whether a program reads the names of files from a file or from its input.
pub(super) fn reads_names(name: &str, arguments: &[Word], is_fed: bool) -> bool {
    // Their input may tell them to read other files.
    match family(name) {
        "as" | "groff" | "m4" | "nroff" | "soelim" | "troff" if is_fed => return true,
        "c++" | "cc" | "clang" | "clang++" | "cpp" | "g++" | "gcc" if is_fed => {
            return has_word(arguments, &["-", "/dev/stdin"]);
        }
        _ => {}
    }
    let options: &[&str] = match name {
        "bsdtar" | "gtar" | "tar" => {
            // The first word may be a bundle without a dash.
            let first = arguments.first().and_then(|word| word.value.as_deref());
            if first.is_some_and(|it| !it.contains(['.', '/']) && it.contains('T')) {
                return true;
            }
            &["-T", "--files-from"]
        }
        "cpio" | "pax" => return true,
        "du" | "sort" | "wc" => &["--files0-from"],
        "rsync" => &["--files-from"],
        "zip" => &["-@", "--names-stdin"],
        _ => return false,
    };
    arguments.iter().any(|word| is_option(word, options))
}

/// The words with every known text of each; `None` if there are too many combinations.
pub(in crate::shell) fn readings(words: &[Word]) -> Option<Vec<Vec<Word>>> {
    const MOST: usize = 32;
    let mut readings: Vec<Vec<Word>> = vec![Vec::new()];
    let mut is_new = false;
    for word in words {
        let shape = word.to_shape();
        let texts: Vec<String> = match shape.alternatives(MOST) {
            Some(shapes) if word.value.is_none() => shapes.iter().filter_map(Shape::text).collect(),
            None if shape.is_finite() => return None,
            _ => Vec::new(),
        };
        if texts.is_empty() {
            for reading in &mut readings {
                reading.push(word.clone());
            }
            continue;
        }
        is_new = true;
        if readings.len() * texts.len() > MOST {
            return None;
        }
        let with = |reading: &Vec<Word>, text: &String| {
            let known = |text: &str| Word::known(&word.written, text.to_owned());
            let mut reading = reading.clone();
            if word.splits {
                reading.extend(split_words(text).map(known));
            } else {
                reading.push(known(text));
            }
            reading
        };
        readings = readings
            .iter()
            .flat_map(|reading| texts.iter().map(move |text| with(reading, text)))
            .collect();
    }
    if !is_new {
        readings.clear();
    }
    Some(readings)
}

/// The shape of a command with unknown words.
pub(super) fn shape_of(words: &[Word]) -> Shape {
    let mut shape = Shape::default();
    for (index, word) in words.iter().enumerate() {
        let mut text = Shape::default();
        if index > 0 {
            text.push(Step::Literal(' '));
        }
        match (word.value.as_deref(), index) {
            (Some(value), 0) => text.push_text(base_name(value)),
            (Some(value), _) => text.push_text(value),
            // Only a known program is examined.
            (None, 0) => text.push(Step::Any),
            (None, _) if word.splits => text.push(Step::Any),
            (None, _) => text.append(&word.to_shape()),
        }
        if word.splits && index > 0 {
            shape.append_optional(&text);
        } else {
            shape.append(&text);
        }
    }
    shape
}

/// The name of a program in an unknown directory.
pub(super) fn last_name(word: &Word) -> Option<String> {
    let shape = word.to_shape();
    let steps = shape.steps();
    // With a choice in it, steps contain distances.
    let has_choice = steps.iter().any(|step| matches!(step, Step::Split(_) | Step::Jump(_)));
    if word.splits || has_choice {
        return None;
    }
    let slash = steps.iter().rposition(|step| *step == Step::Literal('/'))?;
    Shape::from_steps(steps.get(slash + 1..)?).text().filter(|name| !name.is_empty())
}

/// The start of the command behind options and operands, if the options can be recognized.
pub(super) fn peel(
    arguments: &[Word],
    valued: &str,
    operands: usize,
    takes_variables: bool,
) -> Option<usize> {
    let mut index = 0;
    while let Some(word) = arguments.get(index) {
        let value = word.value.as_deref()?;
        if value == "--" {
            index += 1;
            break;
        }
        let Some(flags) = value.strip_prefix('-').filter(|flags| !flags.is_empty()) else {
            // Variables that a command gets.
            if takes_variables && value.split_once('=').is_some_and(|(name, _)| is_name(name)) {
                index += 1;
                continue;
            }
            break;
        };
        if flags.starts_with('-') {
            // Whether a long option takes the next word is not known here, and a text may be a script.
            (value.contains('=') && !has_blank(value)).then_some(())?;
            index += 1;
            continue;
        }
        if flags.contains('S') && valued.contains('S') {
            return None;
        }
        let taker = flags.find(|flag| valued.contains(flag));
        index += if taker.is_some_and(|at| at + 1 == flags.len()) { 2 } else { 1 };
    }
    for operand in 0..operands {
        arguments.get(index + operand)?.value.as_ref()?;
    }
    Some((index + operands).min(arguments.len()))
}

/// Whether a word may be one of these options: whole, shortened, bundled or with an attached value.
pub(in crate::shell) fn is_option(word: &Word, options: &[&str]) -> bool {
    let Some(value) = word.value.as_deref() else {
        // Its known start may be an option already.
        let start: String = word.to_shape().start().collect();
        let is_told =
            start.starts_with('-') && is_option(&Word::known(&start, start.clone()), options);
        return is_told || word.splits && word.to_shape().has_any();
    };
    options.iter().any(|option| {
        if *option == "-" {
            return value == "-";
        }
        if let Some(long) = option.strip_prefix("--") {
            let given = value.split('=').next().unwrap_or(value);
            return given
                .strip_prefix("--")
                .is_some_and(|given| !given.is_empty() && long.starts_with(given));
        }
        if option.len() == 2 && option.starts_with('-') {
            let flag = option.get(1..).unwrap_or_default();
            let bundle = value.strip_prefix('-').filter(|bundle| !bundle.starts_with('-'));
            return bundle.is_some_and(|bundle| bundle.contains(flag));
        }
        value.starts_with(option)
    })
}

/// The value of a short option that is written without a space: `-fvalue`.
pub(super) fn attached(word: &str) -> Option<&str> {
    let rest = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'))?;
    let mut characters = rest.chars();
    characters.next()?;
    Some(characters.as_str())
}
