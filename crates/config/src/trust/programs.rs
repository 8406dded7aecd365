//! The files of a folder that a command names: what they say decides what runs, too.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use globset::Glob;

use super::commands::{Role, UNKNOWN, mentions};

/// A larger file is told apart by its size, its time and its place on the disk.
const LARGEST_HASHED: u64 = 16 * 1024 * 1024;

/// The largest text that is kept to be compared with a later one.
const LARGEST_SHOWN: usize = 64 * 1024;

/// The most words of the commands of one item that are looked at.
const MOST_WORDS: usize = 2000;

/// The most files of a directory that a pattern is taken to mean.
const MOST_MATCHES: usize = 1000;

/// From how many directories words are looked up.
const MOST_PLACES: usize = 200;

/// The most directories below one that are looked into.
const MOST_DIRECTORIES: usize = 2000;

/// The places in which the words of a command are looked up.
#[derive(Clone, Copy, Debug)]
pub struct Lookup<'a> {
    /// The directories in which it may be run.
    pub places: &'a [&'a Path],
    /// Only files below this count.
    pub root: &'a Path,
    pub home: Option<&'a Path>,
}

/// The files that commands name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedFiles {
    pub present: Vec<PathBuf>,
    /// Files that would run if they were there. A directory that a command would change to ends with a slash.
    pub missing: Vec<PathBuf>,
    /// Directories in which a pattern looks for what runs: a new file there would run as well.
    pub searched: Vec<PathBuf>,
    /// Whether there may be more: the commands name more than is looked at.
    pub is_cut: bool,
}

/// The files that words of these commands lead to, from one of the places or from a directory that the commands name
/// as well: they may go there first. A link counts as the file in its place: whatever it leads to is the content.
/// Where a program or a script stands, a pattern means every file that it matches.
pub fn named_files(commands: &[String], lookup: &Lookup<'_>) -> NamedFiles {
    let Ok(root) = lookup.root.canonicalize() else { return NamedFiles::default() };
    let mut is_cut = false;
    let (words, directories) = named_words(commands, lookup, &mut is_cut);
    is_cut |= words.len() > MOST_WORDS;
    let words: Vec<(&String, Role)> =
        words.iter().map(|(word, role)| (word, *role)).take(MOST_WORDS).collect();
    let within = |place: &Path, word: &str| {
        Some(without_dots(&place.join(word))).filter(|path| path.starts_with(&root))
    };
    let mut places: BTreeSet<PathBuf> =
        lookup.places.iter().map(|place| (*place).to_owned()).collect();
    // `cd tools && cd sub && ./check.sh`
    loop {
        let mut named = |place: &PathBuf| {
            let paths = words.iter().filter_map(|(word, _)| within(place, word));
            let patterns = directories.iter().filter_map(|word| within(place, word));
            let matching = patterns.flat_map(|path| {
                let pattern = path.strip_prefix(&root).unwrap_or(&path);
                matches(&root, pattern, &mut is_cut)
            });
            paths.chain(matching).filter(|path| path.is_dir()).collect::<Vec<_>>()
        };
        let mut below: BTreeSet<PathBuf> = places.iter().flat_map(&mut named).collect();
        below.retain(|path| !places.contains(path));
        let left = MOST_PLACES.saturating_sub(places.len());
        is_cut |= below.len() > left;
        if below.is_empty() || left == 0 {
            break;
        }
        places.extend(below.into_iter().take(left));
    }
    let (mut present, mut missing) = (BTreeSet::new(), BTreeSet::new());
    let mut searched = BTreeSet::new();
    for place in lookup.places {
        let named = directories.iter().filter_map(|word| within(place, word));
        let absent = named.filter(|path| path.symlink_metadata().is_err() && path != &root);
        missing.extend(absent.filter(|it| !has_wild(it.as_os_str())).map(|path| path.join("")));
    }
    for place in &places {
        for (word, role) in &words {
            let Some(path) = within(place, word) else { continue };
            if path.symlink_metadata().is_ok() {
                if !path.is_dir() {
                    present.insert(path);
                }
            } else if let Ok(pattern) = path.strip_prefix(&root)
                && has_wild(pattern.as_os_str())
            {
                let found = matches(&root, pattern, &mut is_cut);
                present.extend(found.into_iter().filter(|path| !path.is_dir()));
                let directory = path.parent().filter(|it| !has_wild(it.as_os_str()));
                searched
                    .extend(directory.filter(|it| *it != root && it.is_dir()).map(Path::to_owned));
            } else if lookup.places.contains(&place.as_path()) && may_come(word, *role) {
                missing.insert(path);
            }
        }
    }
    let [present, missing, searched] =
        [present, missing, searched].map(|paths| paths.into_iter().collect());
    NamedFiles { present, missing, searched, is_cut }
}

/// The words of the commands that may be files, each with its role, and those that are directories.
fn named_words(
    commands: &[String],
    lookup: &Lookup<'_>,
    is_cut: &mut bool,
) -> (BTreeMap<String, Role>, BTreeSet<String>) {
    let mut words: BTreeMap<String, Role> = BTreeMap::new();
    let mut directories: BTreeSet<String> = BTreeSet::new();
    for mention in commands.iter().flat_map(|it| mentions(it, lookup.home, is_cut)) {
        // An unknown text may be anything.
        if mention.text.chars().all(|letter| letter == UNKNOWN) {
            continue;
        }
        let text = mention.text.replace(UNKNOWN, "*");
        if mention.role == Role::Directory {
            directories.insert(text);
            continue;
        }
        if mention.role == Role::Named && has_wild(OsStr::new(&text)) && !is_literal(&text, lookup)
        {
            continue;
        }
        let role = words.entry(text).or_insert(mention.role);
        *role = (*role).max(mention.role);
    }
    (words, directories)
}

/// Whether a word with signs of a pattern is the name of a file all the same.
fn is_literal(word: &str, lookup: &Lookup<'_>) -> bool {
    lookup.places.iter().any(|place| place.join(word).symlink_metadata().is_ok())
}

/// Whether a file of this name would run as soon as it is there. A program without a slash is looked for elsewhere.
fn may_come(word: &str, role: Role) -> bool {
    let is_option = word.starts_with('-');
    match role {
        Role::Directory | Role::Named => false,
        Role::Command => word.contains('/') && !is_option,
        Role::Script => !is_option && !word.contains(char::is_whitespace),
    }
}

/// The files below a directory that match a pattern, name by name.
fn matches(root: &Path, pattern: &Path, is_cut: &mut bool) -> Vec<PathBuf> {
    let mut found = vec![root.to_owned()];
    for name in pattern.components().map(Component::as_os_str) {
        if name == "**" {
            found = found.iter().flat_map(|path| with_directories(path, is_cut)).collect();
            continue;
        }
        let glob = name.to_str().filter(|_| has_wild(name)).and_then(|name| Glob::new(name).ok());
        let Some(glob) = glob.map(|glob| glob.compile_matcher()) else {
            for path in &mut found {
                path.push(name);
            }
            continue;
        };
        let entries = found.iter().filter_map(|path| fs::read_dir(path).ok()).flatten().flatten();
        let entries = entries.filter(|entry| glob.is_match(entry.file_name()));
        let mut matching: Vec<PathBuf> =
            entries.take(MOST_MATCHES + 1).map(|entry| entry.path()).collect();
        *is_cut |= matching.len() > MOST_MATCHES;
        matching.truncate(MOST_MATCHES);
        found = matching;
    }
    found.retain(|path| path.symlink_metadata().is_ok());
    found
}

/// A directory with all those below it, the nearest first.
fn with_directories(top: &Path, is_cut: &mut bool) -> Vec<PathBuf> {
    let mut directories = vec![top.to_owned()];
    let mut at = 0;
    while let Some(directory) = directories.get(at) {
        if directories.len() >= MOST_DIRECTORIES {
            *is_cut = true;
            break;
        }
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let below = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let below: Vec<PathBuf> = below.map(|entry| entry.path()).collect();
        directories.extend(below);
        at += 1;
    }
    directories
}

fn has_wild(name: &OsStr) -> bool {
    name.as_encoded_bytes().iter().any(|byte| b"*?[".contains(byte))
}

fn without_dots(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut clean, component| {
        match component {
            Component::ParentDir => _ = clean.pop(),
            Component::CurDir => {}
            other => clean.push(other),
        }
        clean
    })
}

/// A text as far as it is kept: of a long one the beginning and the end, and how much is between them.
pub(super) fn shortened(text: &str) -> Cow<'_, str> {
    if text.len() <= LARGEST_SHOWN {
        return Cow::Borrowed(text);
    }
    let (head, tail) = (LARGEST_SHOWN / 4 * 3, LARGEST_SHOWN / 4);
    let (head, tail) = (text.floor_char_boundary(head), text.ceil_char_boundary(text.len() - tail));
    let digest = blake3::hash(&text.as_bytes()[head..tail]).to_hex();
    Cow::Owned(format!(
        "{}\n(cut: {} more bytes are not shown, with the digest {digest})\n{}",
        &text[..head],
        tail - head,
        &text[tail..]
    ))
}

/// The digest of a file's content and the content itself, where it can be shown.
pub(super) fn content(path: &Path) -> std::io::Result<(String, String)> {
    let metadata = fs::metadata(path)?;
    if !metadata.is_file() {
        return Err(std::io::ErrorKind::InvalidInput.into());
    }
    if metadata.len() > LARGEST_HASHED {
        let (size, time, inode) = (metadata.len(), metadata.mtime(), metadata.ino());
        let stamp = format!("{size} {time}.{} {} {inode}", metadata.mtime_nsec(), metadata.ctime());
        let digest = blake3::hash(stamp.as_bytes()).to_hex().to_string();
        return Ok((digest, format!("(a file of {size} bytes)")));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(LARGEST_HASHED + 1).read_to_end(&mut bytes)?;
    let digest = blake3::hash(&bytes).to_hex().to_string();
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => format!("(a binary file of {} bytes)", error.as_bytes().len()),
    };
    Ok((digest, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_text_both_ends_are_shown_and_the_rest_is_counted() {
        assert_eq!(shortened("short"), "short");
        let long = format!("true #{}\n touch evil", "é".repeat(70_000));
        let shown = shortened(&long);
        assert!(shown.starts_with("true #é") && shown.ends_with("é\n touch evil"));
        assert!(shown.contains("more bytes are not shown"));
        assert!(shown.len() < LARGEST_SHOWN + 200);
    }

    #[test]
    fn what_would_run_if_it_were_there_is_told() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        let missing = |command: &str| {
            let lookup = Lookup { places: &[&root], root: &root, home: None };
            let files = named_files(&[command.to_owned()], &lookup).missing;
            let name = |it: &PathBuf| it.strip_prefix(&root).unwrap().display().to_string();
            files.iter().map(name).collect::<Vec<_>>()
        };
        assert_eq!(missing("test -f ./local.sh && sh ./local.sh"), ["local.sh"]);
        assert_eq!(missing("[ -x hooks/x ] && hooks/x"), ["hooks/x"]);
        assert_eq!(missing("python3 check.py src"), ["check.py"]);
        assert_eq!(missing("f=local.sh; [ -x ./$f ] && ./$f"), ["local.sh"]);
        assert_eq!(missing("cd opt 2>/dev/null && npm test"), ["opt"]);
        for command in ["npm test", "sed s/a/b/ c", "sh -c true", "exec npm start", "bun run dev"] {
            assert!(missing(command).is_empty(), "{command}: {:?}", missing(command));
        }
    }

    #[test]
    fn directories_in_which_a_pattern_looks_for_scripts_are_told() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("a.d/deep")).unwrap();
        let searched = |command: &str| {
            let lookup = Lookup { places: &[&root], root: &root, home: None };
            let found = named_files(&[command.to_owned()], &lookup).searched;
            found.iter().map(|it| it.strip_prefix(&root).unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(searched("for f in a.d/*.sh; do . \"$f\"; done"), [Path::new("a.d")]);
        assert_eq!(searched("bash a.d/deep/*.sh"), [Path::new("a.d/deep")]);
        // The whole project is not held.
        for command in ["bash *.sh", "for f in *; do sh $f; done", "sh $T.sh", "ruff a.d/*.py"] {
            assert!(searched(command).is_empty(), "{command}: {:?}", searched(command));
        }
    }

    #[test]
    fn what_is_too_much_to_look_at_is_said_to_be() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        for number in 0..=MOST_MATCHES {
            fs::create_dir_all(root.join(format!("many/{number}"))).unwrap();
        }
        let is_cut = |command: &str| {
            let lookup = Lookup { places: &[&root], root: &root, home: None };
            named_files(&[command.to_owned()], &lookup).is_cut
        };
        let repeat = |count: usize, make: fn(usize) -> String| {
            (0..count).map(make).collect::<Vec<_>>().concat()
        };
        let words = |count: usize| repeat(count, |n| format!(" ./w{n}"));
        let defaults = |count: usize| "${x:-a}".repeat(count);
        let places = |count: usize| repeat(count, |n| format!("cd many/{n};"));
        for (command, expected) in [
            ("./check.sh".to_owned(), false),
            (format!("sh{}", words(MOST_WORDS / 20)), false),
            (format!("sh{}", words(MOST_WORDS + 1)), true),
            (format!("sh {}/x", defaults(8)), false),
            (format!("sh {}/x", defaults(9)), true),
            (format!("{} sh x", places(MOST_PLACES / 2)), false),
            (format!("{} sh x", places(MOST_PLACES + 1)), true),
            ("sh many/1*/x".to_owned(), false),
            ("sh many/*/x".to_owned(), true),
            ("sh **/x".to_owned(), false),
        ] {
            assert_eq!(is_cut(&command), expected, "{command:.60}");
        }
        for number in 0..MOST_DIRECTORIES - MOST_MATCHES {
            fs::create_dir_all(root.join(format!("more/{number}"))).unwrap();
        }
        assert!(is_cut("sh **/x"));
    }

    #[test]
    fn files_of_the_folder_are_found_in_commands_and_others_are_not() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap().join("p");
        for file in ["check.sh", "tools/a b.py", "sub/x.sh", "../outside.sh"] {
            fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            fs::write(root.join(file), "x").unwrap();
        }
        let found = |command: &str| {
            let places = [root.as_path(), &root.join("sub")];
            let lookup = Lookup { places: &places, root: &root, home: Some(&root) };
            let files = named_files(&[command.to_owned()], &lookup).present;
            let name = |it: &PathBuf| it.strip_prefix(&root).unwrap().display().to_string();
            files.iter().map(name).collect::<Vec<_>>()
        };
        assert_eq!(found("./check.sh --fast"), ["check.sh"]);
        assert_eq!(found("FOO=1 bash -c 'x; ./check.sh' && sh x.sh"), ["check.sh", "sub/x.sh"]);
        assert_eq!(found("python3 \"$CLAUDE_PROJECT_DIR\"/tools/'a b.py'"), ["tools/a b.py"]);
        assert_eq!(found("\"${CLAUDE_PROJECT_DIR}/check.sh\""), ["check.sh"]);
        assert_eq!(found(&format!("{}/check.sh", root.display())), ["check.sh"]);
        assert!(found("../outside.sh; /bin/sh; none").is_empty());
        assert_eq!(found("cd tools && python3 'a b.py'"), ["tools/a b.py"]);
        assert_eq!(found("cd sub; bash ./x.sh"), ["sub/x.sh"]);
        assert_eq!(found("PATH=sub:$PATH x.sh"), ["sub/x.sh"]);
        assert_eq!(found("env -C sub ./x.sh"), ["sub/x.sh"]);
        assert_eq!(found("bash $PWD/sub/x.sh"), ["sub/x.sh"]);
        assert_eq!(found("bash sub/[x].sh"), ["sub/x.sh"]);
        assert_eq!(found("bash s?b/*.sh"), ["sub/x.sh"]);
        assert_eq!(found("bash sub/{x,y}.sh"), ["sub/x.sh"]);
        assert_eq!(found("$(git rev-parse --show-toplevel)/sub/x.sh"), ["sub/x.sh"]);
        assert_eq!(found("d=sub; \"$d\"/x.sh"), ["sub/x.sh"]);
        assert_eq!(found("bash ${d}/x.sh"), ["sub/x.sh"]);
        assert_eq!(found("cd sub && cd .. && cd sub && sh x.sh"), ["sub/x.sh"]);
        assert_eq!(found("sh tools/a\\ b.py"), ["tools/a b.py"]);
        assert_eq!(found("sh ~/sub/x.sh"), ["sub/x.sh"]);
        assert_eq!(found("sh $HOME/sub/x.sh"), ["sub/x.sh"]);
        assert_eq!(found("run-parts sub"), ["sub/x.sh"]);
        assert_eq!(found("for f in sub/*.sh; do sh $f; done"), ["sub/x.sh"]);
        // From wherever the command may be.
        fs::create_dir_all(root.join("a/b/c/d/e")).unwrap();
        fs::write(root.join("a/b/c/d/e/c.sh"), "x").unwrap();
        assert_eq!(found("cd a; cd b; cd c; cd d; cd e; ./c.sh"), ["a/b/c/d/e/c.sh"]);
        let all = found("cd tools && for f in *; do sh \"$f\"; done");
        assert_eq!(all, ["check.sh", "sub/x.sh", "tools/a b.py"]);
        assert_eq!(found("bash -o errexit sub/x*.sh"), ["sub/x.sh"]);
        assert_eq!(found("cd a/*/c/d && cd e* && ./c.sh"), ["a/b/c/d/e/c.sh"]);
        assert_eq!(found("find a -name '*.sh' -exec sh {} \\;"), ["a/b/c/d/e/c.sh"]);
        assert_eq!(found("find a -type f | xargs -n1 sh"), ["a/b/c/d/e/c.sh"]);
        assert_eq!(found("ls sub/*.sh | xargs -n1 sh"), ["sub/x.sh"]);
        assert_eq!(found("s=sub/x*; sh $s"), ["sub/x.sh"]);
        // Names that are put together.
        for command in [
            "T=sub/x; sh $T.sh",
            "D=sub N=x; sh $D/$N.sh",
            "export T=sub; T=$T/x; sh ${T}.sh",
            "sh $(echo sub/x).sh",
            "f=x; ./sub/$f.sh",
            "bash -c 'T=sub/x; sh $T.sh'",
        ] {
            assert!(found(command).contains(&"sub/x.sh".to_owned()), "{command}");
        }
        // Files that are only looked at.
        for command in [
            "prettier --write \"$FILE\"",
            "jq -r .x | xargs prettier --write sub/*.sh",
            "find a -name '*.sh' -exec prettier --write {} +",
            "find a -name '*.sh' | xargs prettier",
            "python3 -m pytest sub/*.sh",
            "cat check.sh",
        ] {
            assert!(found(command).is_empty(), "{command}: {:?}", found(command));
        }
        for command in ["ruff check sub/*", "[[ $f == *.sh ]] && true", "[ -f check.sh ] && true"] {
            assert!(found(command).is_empty(), "{command}");
        }
        // A text with signs of patterns in it does not mean every file.
        for command in ["[ -f none ] && jq '.[0]'", "Is that all right?", "case $x in *) : ;; esac"]
        {
            assert!(found(command).is_empty(), "{command}");
        }
        // What takes the place of a file is a file in its place.
        fs::remove_file(root.join("check.sh")).unwrap();
        std::os::unix::fs::symlink("../outside.sh", root.join("check.sh")).unwrap();
        assert_eq!(found("./check.sh"), ["check.sh"]);
        fs::remove_file(root.join("../outside.sh")).unwrap();
        assert_eq!(found("./check.sh"), ["check.sh"]);
        assert!(content(&root.join("check.sh")).is_err() && content(&root).is_err());
    }
}
