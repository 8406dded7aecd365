//! Parses arguments as option parsers do: `-abc`, `-n5`, `-n 5`, `--name=value`, `--name value`, `--`.
//!
//! The tables list the known options. A command with any other word that begins with a dash asks. That includes
//! shortened names: the meaning of `--outp` depends on options that no table here lists.

/// The known options of a program. Each field is a list of words in one text: first the letters of short options, then
/// long names without their dashes. A text that begins with a space has no letters.
#[derive(Clone, Copy)]
pub(super) struct Options {
    /// Options without a value.
    pub(super) plain: &'static str,
    /// Options with a value that names no file.
    pub(super) text: &'static str,
    /// Options with an optional value in the same word.
    pub(super) optional: &'static str,
    /// Options with a value that names a file to read.
    pub(super) path: &'static str,
}

impl Options {
    pub(super) const NONE: Self = Self { plain: "", text: "", optional: "", path: "" };

    fn takes(&self, name: &str) -> Option<OptionValue> {
        let kinds = [
            (self.plain, OptionValue::Nothing),
            (self.text, OptionValue::Text),
            (self.optional, OptionValue::Optional),
            (self.path, OptionValue::Path),
        ];
        let lists = |list: &str| {
            let (letters, names) = list.split_once(' ').unwrap_or((list, ""));
            if name.chars().count() == 1 {
                letters.contains(name)
            } else {
                names.split(' ').any(|known| known == name)
            }
        };
        kinds.into_iter().find(|(list, _)| lists(list)).map(|(_, takes)| takes)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum OptionValue {
    Nothing,
    Text,
    Optional,
    Path,
}

/// An option of a command line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct GivenOption<'a> {
    /// The letter or the long name.
    pub(super) name: &'a str,
    pub(super) value: Option<&'a str>,
}

/// The words of a program, separated by their roles.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Arguments<'a> {
    pub(super) given: Vec<GivenOption<'a>>,
    pub(super) operands: Vec<&'a str>,
    /// Files that options name.
    pub(super) paths: Vec<&'a str>,
    /// Every word after the first operand. Most parsers find options among them, some treat all of them as operands.
    pub(super) late: Vec<&'a str>,
}

impl<'a> Arguments<'a> {
    /// Parses the words. `None` if an option is unknown or lacks its value.
    pub(super) fn read(words: &[&'a str], options: &Options) -> Option<Self> {
        let mut arguments = Self::default();
        let mut index = 0;
        while let Some(&word) = words.get(index) {
            index += 1;
            if word == "--" {
                arguments.operands.extend(words.get(index..).unwrap_or_default());
                break;
            }
            let following = words.get(index).copied();
            let took_next = if let Some(long) = word.strip_prefix("--") {
                arguments.long(long, following, options)?
            } else if word.len() > 1 && word.starts_with('-') {
                arguments.bundle(word.get(1..)?, following, options)?
            } else {
                arguments.operands.push(word);
                if arguments.late.is_empty() {
                    arguments.late = words.get(index..).unwrap_or_default().to_vec();
                }
                false
            };
            index += usize::from(took_next);
        }
        Some(arguments)
    }

    /// Whether one of these options was given, by letter or long name.
    pub(super) fn has(&self, names: &[&str]) -> bool {
        self.given.iter().any(|given| names.contains(&given.name))
    }

    /// Whether an option follows an operand.
    pub(super) fn has_late_options(&self) -> bool {
        self.late.iter().any(|word| word.len() > 1 && word.starts_with('-'))
    }

    /// Parses a long option; returns whether the next word was its value.
    fn long(
        &mut self,
        word: &'a str,
        following: Option<&'a str>,
        options: &Options,
    ) -> Option<bool> {
        let (name, attached) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word, None),
        };
        // A long option of one letter would be looked up as a short one.
        let takes = (name.len() > 1).then(|| options.takes(name))??;
        match takes {
            OptionValue::Nothing if attached.is_some() => None,
            OptionValue::Nothing | OptionValue::Optional => {
                self.give(name, attached, takes);
                Some(false)
            }
            OptionValue::Text | OptionValue::Path => {
                let value = attached.or_else(|| separate(following))?;
                self.give(name, Some(value), takes);
                Some(attached.is_none())
            }
        }
    }

    fn bundle(
        &mut self,
        word: &'a str,
        following: Option<&'a str>,
        options: &Options,
    ) -> Option<bool> {
        let mut rest = word;
        while let Some(letter) = rest.chars().next() {
            let (name, after) = rest.split_at(letter.len_utf8());
            let takes = options.takes(name)?;
            let attached = Some(after).filter(|after| !after.is_empty());
            match takes {
                OptionValue::Nothing => {
                    self.give(name, None, takes);
                    rest = after;
                }
                OptionValue::Optional => {
                    self.give(name, attached, takes);
                    return Some(false);
                }
                OptionValue::Text | OptionValue::Path => {
                    let value = attached.or_else(|| separate(following))?;
                    self.give(name, Some(value), takes);
                    return Some(attached.is_none());
                }
            }
        }
        Some(false)
    }

    fn give(&mut self, name: &'a str, value: Option<&'a str>, takes: OptionValue) {
        if takes == OptionValue::Path {
            self.paths.extend(value);
        }
        self.given.push(GivenOption { name, value });
    }
}

/// A value in a word of its own. A value that looks like an option is refused, unless it is a negative number: another
/// parser could read it as that option.
fn separate(following: Option<&str>) -> Option<&str> {
    following.filter(|word| match word.strip_prefix('-') {
        None | Some("") => true,
        Some(rest) => rest.bytes().all(|byte| byte.is_ascii_digit()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: Options =
        Options { plain: "abv all brief", text: "n lines", optional: "I color", path: "f file" };

    #[test]
    fn words_are_told_apart_as_option_parsers_do() {
        let words = ["-abn5", "x", "--lines", "7", "-f", "y", "--color", "-Iz", "--", "-v"];
        let read = Arguments::read(&words, &OPTIONS).unwrap();
        assert_eq!(read.operands, ["x", "-v"]);
        assert_eq!(read.paths, ["y"]);
        assert_eq!(read.late, words.get(2..).unwrap());
        let values: Vec<_> = read.given.iter().map(|given| (given.name, given.value)).collect();
        let expected = [
            ("a", None),
            ("b", None),
            ("n", Some("5")),
            ("lines", Some("7")),
            ("f", Some("y")),
            ("color", None),
            ("I", Some("z")),
        ];
        assert_eq!(values, expected);
        assert!(read.has_late_options());
    }

    #[test]
    fn what_no_table_lists_is_not_understood() {
        for words in [
            &["-x"][..],
            &["-ax"],
            &["--al"],
            &["--all=yes"],
            &["--a"],
            &["--lines"],
            &["-n"],
            &["-n", "-a"],
            &["-n", "--all"],
            &["--"; 0],
            &["-é"],
            &["--file", "-f"],
        ] {
            let read = Arguments::read(words, &OPTIONS);
            assert_eq!(read.is_none(), !words.is_empty(), "{words:?}");
        }
        for words in [&["-n", "-5"][..], &["-n", "-"], &["-"], &["--lines=-a"]] {
            assert!(Arguments::read(words, &OPTIONS).is_some(), "{words:?}");
        }
    }
}
