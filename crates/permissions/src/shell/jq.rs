//! `jq`: a filter, and the files that it reads.

const LETTERS: &str = "acCejMnrRsS";

const NAMES: &[&str] = &[
    "--args",
    "--ascii-output",
    "--color-output",
    "--compact-output",
    "--exit-status",
    "--join-output",
    "--jsonargs",
    "--monochrome-output",
    "--null-input",
    "--raw-input",
    "--raw-output",
    "--seq",
    "--slurp",
    "--sort-keys",
    "--stream",
    "--tab",
    "--unbuffered",
];

/// Words of a filter that read more than its input: the environment, and modules.
const REACHING: &[&str] = &["env", "ENV", "import", "include", "modulemeta", "get_search_list"];

/// The files that a `jq` reads, if its filter reads nothing else.
pub(super) fn reads<'a>(arguments: &[&'a str]) -> Option<Vec<&'a str>> {
    let mut paths = Vec::new();
    let mut filter = None;
    let mut words = arguments.iter().copied();
    while let Some(word) = words.next() {
        match word {
            "--indent" => {
                words.next()?;
            }
            "--arg" | "--argjson" => {
                words.next()?;
                words.next()?;
            }
            "--slurpfile" | "--rawfile" => {
                words.next()?;
                paths.push(words.next()?);
            }
            "--" => {
                for operand in words.by_ref() {
                    if filter.is_none() {
                        filter = Some(operand);
                    } else {
                        paths.push(operand);
                    }
                }
            }
            long if long.starts_with("--") => {
                if !NAMES.contains(&long) {
                    return None;
                }
            }
            bundle if bundle.len() > 1 && bundle.starts_with('-') => {
                if !bundle.chars().skip(1).all(|letter| LETTERS.contains(letter)) {
                    return None;
                }
            }
            operand if filter.is_none() => filter = Some(operand),
            operand => paths.push(operand),
        }
    }
    let reaches = |filter: &str| REACHING.iter().any(|word| filter.contains(word));
    (!reaches(filter?)).then_some(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_that_reaches_past_its_input_is_not_free() {
        for (words, expected) in [
            (&[".a", "x", "y"][..], Some(&["x", "y"][..])),
            (&["-rc", ".a", "x", "-S"], Some(&["x"])),
            (&["--arg", "a", "-f", ".b", "x"], Some(&["x"])),
            (&["--slurpfile", "a", "y", ".b", "x"], Some(&["y", "x"])),
            (&["-n", "env"], None),
            (&["-n", "$ENV.HOME"], None),
            (&["-n", "import \"a\" as a; a"], None),
            (&["-f", "x"], None),
            (&["-L", "x", "."], None),
            (&["--from-file", "x"], None),
            (&["--argfile", "a", "x", "."], None),
            (&["--run-tests"], None),
            (&["x", "--rawfile", "a"], None),
            (&[], None),
        ] {
            assert_eq!(reads(words).as_deref(), expected, "{words:?}");
        }
    }
}
