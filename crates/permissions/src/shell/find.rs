//! `find`: starting points and an expression of known tests.

/// Words without an argument.
const ALONE: &[&str] = &[
    "!",
    "(",
    ")",
    ",",
    "-P",
    "-a",
    "-and",
    "-d",
    "-daystart",
    "-depth",
    "-empty",
    "-executable",
    "-false",
    "-ignore_readdir_race",
    "-ls",
    "-mount",
    "-nogroup",
    "-noignore_readdir_race",
    "-noleaf",
    "-not",
    "-nouser",
    "-nowarn",
    "-o",
    "-or",
    "-print",
    "-print0",
    "-prune",
    "-quit",
    "-readable",
    "-true",
    "-warn",
    "-writable",
    "-xdev",
];

/// Words with an argument that names no file.
const WITH_TEXT: &[&str] = &[
    "-amin",
    "-atime",
    "-cmin",
    "-ctime",
    "-fstype",
    "-gid",
    "-group",
    "-ilname",
    "-iname",
    "-inum",
    "-ipath",
    "-iregex",
    "-iwholename",
    "-links",
    "-lname",
    "-maxdepth",
    "-mindepth",
    "-mmin",
    "-mtime",
    "-name",
    "-newerat",
    "-newerBt",
    "-newerct",
    "-newermt",
    "-path",
    "-perm",
    "-printf",
    "-regex",
    "-regextype",
    "-size",
    "-type",
    "-uid",
    "-used",
    "-user",
    "-wholename",
    "-xtype",
];

/// Words with a file as argument.
const WITH_PATH: &[&str] = &["-anewer", "-cnewer", "-newer", "-samefile"];

/// The paths that a `find` reads, if it only reads. It does not follow links below its starting points.
pub(super) fn reads<'a>(arguments: &[&'a str]) -> Option<Vec<&'a str>> {
    let mut paths = Vec::new();
    let mut begun = false;
    let mut has_start = false;
    let mut words = arguments.iter().copied();
    while let Some(word) = words.next() {
        if ALONE.contains(&word) {
            begun |= word != "-P";
        } else if WITH_TEXT.contains(&word) {
            begun = true;
            words.next()?;
        } else if WITH_PATH.contains(&word) {
            begun = true;
            paths.push(words.next()?);
        } else if word.starts_with('-') || begun {
            return None;
        } else {
            has_start = true;
            paths.push(word);
        }
    }
    if !has_start {
        paths.push(".");
    }
    Some(paths)
}

/// Whether this is a `find` that runs, deletes or writes.
pub(super) fn acts(words: &[&str]) -> bool {
    words
        .split_first()
        .is_some_and(|(program, arguments)| *program == "find" && arguments.iter().any(is_action))
}

fn is_action(word: &&str) -> bool {
    matches!(*word, "-exec" | "-execdir" | "-ok" | "-okdir" | "-delete" | "-fls")
        || word.starts_with("-fprint")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_of_known_tests_only_looks() {
        for (words, expected) in [
            (&["."][..], Some(&["."][..])),
            (&["-name", "x"], Some(&["."])),
            (
                &["a", "b", "(", "-type", "f", "-o", "!", "-newer", "c", ")", "-print"],
                Some(&["a", "b", "c"]),
            ),
            (&["-P", "a", "-printf", "%p %l"], Some(&["a"])),
            (&["a", "-delete"], None),
            (&["a", "-fprint", "b"], None),
            (&["a", "-name", "x", "b"], None),
            (&["-L", "a"], None),
            (&["-H", "a"], None),
            (&["-files0-from", "a"], None),
            (&["a", "-newerXY", "b"], None),
            (&["a", "-name"], None),
            (&["a", "-follow"], None),
            (&["-D", "exec", "a"], None),
        ] {
            assert_eq!(reads(words).as_deref(), expected, "{words:?}");
        }
    }
}
