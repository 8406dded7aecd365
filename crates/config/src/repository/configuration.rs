//! The configuration of a repository as git reads it: its own files, the user's, and what both include.
//!
//! The keys that lead git to run something change with every version of git: a key counts unless it is known to name
//! no program.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use centurion_files::open_followed;
use centurion_protocol::bounded;

use super::LARGEST_GIT_FILE;

/// The largest file of configuration that is looked at.
const LARGEST: u64 = 1024 * 1024;

/// The deepest nesting of included files, as in git itself.
const DEEPEST: usize = 10;

/// Sections whose keys name no program that git runs.
const PLAIN_SECTIONS: [&str; 30] = [
    "advice",
    "author",
    "blame",
    "branch",
    "color",
    "column",
    "commit",
    "committer",
    "feature",
    "fetch",
    "gc",
    "gui",
    "help",
    "http",
    "i18n",
    "include",
    "includeif",
    "index",
    "init",
    "log",
    "maintenance",
    "notes",
    "pack",
    "pull",
    "push",
    "rebase",
    "rerere",
    "stash",
    "status",
    "user",
];

/// Keys of other sections that name no program, without the name between section and key.
const PLAIN_KEYS: [&str; 77] = [
    "core.abbrev",
    "core.attributesfile",
    "core.autocrlf",
    "core.bare",
    "core.checkstat",
    "core.commentchar",
    "core.compression",
    "core.eol",
    "core.excludesfile",
    "core.filemode",
    "core.fscache",
    "core.hidedotfiles",
    "core.ignorecase",
    "core.ignorestat",
    "core.logallrefupdates",
    "core.longpaths",
    "core.multipackindex",
    "core.precomposeunicode",
    "core.preloadindex",
    "core.protecthfs",
    "core.protectntfs",
    "core.quotepath",
    "core.repositoryformatversion",
    "core.safecrlf",
    "core.sharedrepository",
    "core.sparsecheckout",
    "core.sparsecheckoutcone",
    "core.splitindex",
    "core.symlinks",
    "core.trustctime",
    "core.untrackedcache",
    "core.whitespace",
    "credential.username",
    "diff.algorithm",
    "diff.binary",
    "diff.colormoved",
    "diff.context",
    "diff.funcname",
    "diff.guitool",
    "diff.ignoresubmodules",
    "diff.indentheuristic",
    "diff.mnemonicprefix",
    "diff.noprefix",
    "diff.renames",
    "diff.submodule",
    "diff.tool",
    "diff.wordregex",
    "diff.xfuncname",
    "extensions.objectformat",
    "extensions.refstorage",
    "extensions.relativeworktrees",
    "extensions.worktreeconfig",
    "gpg.format",
    "lfs.repositoryformatversion",
    "lfs.url",
    "merge.conflictstyle",
    "merge.ff",
    "merge.guitool",
    "merge.log",
    "merge.name",
    "merge.renames",
    "merge.tool",
    "remote.fetch",
    "remote.followremotehead",
    "remote.gh-resolved",
    "remote.mirror",
    "remote.partialclonefilter",
    "remote.prune",
    "remote.push",
    "remote.pushdefault",
    "remote.tagopt",
    "submodule.active",
    "submodule.branch",
    "submodule.ignore",
    "submodule.path",
    "tag.gpgsign",
    "tag.sort",
];

/// Keys that name addresses.
const ADDRESSES: [&str; 6] = [
    "remote.url",
    "remote.pushurl",
    "submodule.url",
    "url.insteadof",
    "url.pushinsteadof",
    "lfs.url",
];

/// A key with its value, and the file that says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) file: PathBuf,
    /// In small letters but for the name between section and key.
    pub(crate) key: String,
    pub(crate) value: String,
}

impl Setting {
    /// Whether it cannot make git run something.
    pub(crate) fn is_plain(&self) -> bool {
        let (section, key) = self.section_and_key();
        let key = format!("{section}.{key}");
        let is_word =
            |words: &[&str]| words.iter().any(|word| self.value.eq_ignore_ascii_case(word));
        let is_switch = is_word(&["", "true", "false", "yes", "no", "on", "off"]);
        is_switch && !self.fetches()
            || self.value.bytes().all(|it| it.is_ascii_digit())
            || PLAIN_SECTIONS.contains(&section)
            || PLAIN_KEYS.contains(&key.as_str())
            // `ext::` and its like are programs.
            || (ADDRESSES.contains(&key.as_str()) && !self.value.contains("::"))
            || (section == "alias" && !self.value.starts_with('!'))
    }

    /// Whether it names an address.
    pub(crate) fn is_address(&self) -> bool {
        ADDRESSES.iter().any(|it| it.split_once('.') == Some(self.section_and_key()))
    }

    /// Whether it lets git fetch what is missing without being told to, by whatever command needs it.
    pub(crate) fn fetches(&self) -> bool {
        matches!(self.section_and_key(), ("remote", "promisor") | ("extensions", "partialclone"))
    }

    /// Without the name between them.
    fn section_and_key(&self) -> (&str, &str) {
        let (section, rest) = self.key.split_once('.').unwrap_or((&self.key, ""));
        (section, rest.rsplit('.').next().unwrap_or_default())
    }

    /// The file that it includes.
    pub(crate) fn included(&self, home: Option<&Path>) -> Option<PathBuf> {
        let is_include = self.key == "include.path"
            || (self.key.starts_with("includeif.") && self.key.rsplit('.').next() == Some("path"));
        if !is_include {
            return None;
        }
        let included = in_home(&self.value, home).unwrap_or_else(|| PathBuf::from(&self.value));
        let file = self.file.canonicalize().unwrap_or_else(|_| self.file.clone());
        Some(file.parent().unwrap_or(Path::new("/")).join(included))
    }

    /// Whether it names the directory of hooks.
    pub(crate) fn is_hooks_path(&self) -> bool {
        self.key == "core.hookspath"
    }
}

/// The directories of a work tree's repository: its own, and the one that worktrees share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Directories {
    /// The first is its own.
    pub(crate) paths: Vec<PathBuf>,
    /// Whether git finds no others: false where a file that says so cannot be read.
    pub(crate) is_whole: bool,
}

/// The directories of a repository, taken at its word, byte for byte as git reads it.
pub(crate) fn directories(root: &Path) -> Directories {
    let git = root.join(".git");
    let own = if git.is_dir() {
        git
    } else {
        let text = read(&git, LARGEST_GIT_FILE);
        let Some(path) = text.as_deref().and_then(|text| text.strip_prefix(b"gitdir: ")) else {
            return Directories::default();
        };
        root.join(as_path(path))
    };
    let common = own.join("commondir");
    if common.symlink_metadata().is_err() {
        return Directories { paths: vec![own], is_whole: true };
    }
    match read(&common, LARGEST_GIT_FILE) {
        Some(text) => {
            let common = own.join(as_path(&text));
            Directories { paths: vec![own, common], is_whole: true }
        }
        None => Directories { paths: vec![own], is_whole: false },
    }
}

/// A path in a file of git, which ends with the line.
fn as_path(bytes: &[u8]) -> &Path {
    let end = bytes.iter().rposition(|byte| !b"\r\n".contains(byte)).map_or(0, |last| last + 1);
    Path::new(OsStr::from_bytes(bytes.get(..end).unwrap_or_default()))
}

/// The settings of files of configuration.
#[derive(Clone, Debug, Default)]
pub(crate) struct Configuration {
    pub(crate) settings: Vec<Setting>,
    /// Something in it could not be read as git may read it.
    pub(crate) is_cut: bool,
}

/// The settings of a repository's files, and of all that they include.
pub(crate) fn of_repository(root: &Path, home: Option<&Path>) -> Configuration {
    let directories = directories(root);
    let mut all = Configuration { is_cut: !directories.is_whole, ..Configuration::default() };
    for directory in directories.paths {
        for name in ["config", "config.worktree"] {
            all.add(&directory.join(name), home, 0);
        }
    }
    all
}

/// The settings of the user's own files, and of all that they include.
pub(crate) fn of_user(home: &Path) -> Configuration {
    let mut all = Configuration::default();
    for name in USERS {
        all.add(&home.join(name), Some(home), 0);
    }
    all
}

/// The files of the user's own configuration, below the home directory.
pub const USERS: [&str; 2] = [".gitconfig", ".config/git/config"];

impl Configuration {
    fn add(&mut self, file: &Path, home: Option<&Path>, depth: usize) {
        // Git waits for a pipe, and reads a device without end: it gets nowhere.
        if !file.is_file() {
            return;
        }
        let Some(text) = read(file, LARGEST).and_then(|bytes| String::from_utf8(bytes).ok()) else {
            self.is_cut = true;
            return;
        };
        for (key, value) in entries(&text) {
            let setting = Setting { file: file.to_owned(), key, value };
            // A file is included whatever its condition: that may hold at the next start.
            if let Some(included) = setting.included(home).filter(|_| depth < DEEPEST) {
                // The home of another user, or where git is installed.
                let is_elsewhere = setting.value.starts_with('~')
                    && in_home(&setting.value, home).is_none()
                    || setting.value.starts_with("%(");
                self.is_cut |= is_elsewhere;
                self.add(&included, home, depth + 1);
            }
            self.settings.push(setting);
        }
    }
}

/// A path that begins at home.
pub(crate) fn in_home(value: &str, home: Option<&Path>) -> Option<PathBuf> {
    Some(home?.join(value.strip_prefix("~/")?))
}

/// The contents of a regular file, unless git reads only a part of it: a zero ends its texts. Never waits.
fn read(path: &Path, most: u64) -> Option<Vec<u8>> {
    let (file, _) = open_followed(path).ok()?;
    bounded::read_all(file, most).ok().filter(|bytes| !bytes.contains(&0))
}

/// The keys and values of a file of git's configuration, up to the first mistake: git reads no further, either. A key
/// without a value is left out.
fn entries(text: &str) -> Vec<(String, String)> {
    let mut reader = GitConfigReader { rest: text.strip_prefix('\u{feff}').unwrap_or(text) };
    let mut entries = Vec::new();
    let mut section = String::new();
    loop {
        match reader.next() {
            Some('\n' | ' ' | '\t' | '\r') => {}
            Some('#' | ';') => reader.skip_line(),
            Some('[') => match reader.section() {
                Some(name) => section = name + ".",
                None => return entries,
            },
            Some(first) if first.is_ascii_alphabetic() => match reader.entry(first) {
                Some((key, Some(value))) => entries.push((format!("{section}{key}"), value)),
                Some((_, None)) => {}
                None => return entries,
            },
            None | Some(_) => return entries,
        }
    }
}

struct GitConfigReader<'a> {
    rest: &'a str,
}

impl GitConfigReader<'_> {
    fn next(&mut self) -> Option<char> {
        let mut characters = self.rest.chars();
        let first = characters.next()?;
        self.rest = characters.as_str();
        // Git takes the two as one.
        if first == '\r' && self.rest.starts_with('\n') {
            return self.next();
        }
        Some(first)
    }

    fn skip_line(&mut self) {
        while !matches!(self.next(), None | Some('\n')) {}
    }

    /// The name in a header, behind its bracket.
    fn section(&mut self) -> Option<String> {
        let mut name = String::new();
        loop {
            match self.next()? {
                ']' => return Some(name),
                ' ' | '\t' | '\r' => return self.subsection(name),
                letter if letter.is_ascii_alphanumeric() || matches!(letter, '-' | '.') => {
                    name.push(letter.to_ascii_lowercase());
                }
                _ => return None,
            }
        }
    }

    fn subsection(&mut self, mut name: String) -> Option<String> {
        loop {
            match self.next()? {
                '"' => break,
                ' ' | '\t' | '\r' => {}
                _ => return None,
            }
        }
        name.push('.');
        loop {
            match self.next()? {
                '"' => break,
                '\n' => return None,
                '\\' => name.push(self.next().filter(|next| *next != '\n')?),
                letter => name.push(letter),
            }
        }
        (self.next()? == ']').then_some(name)
    }

    /// A key and its value, if it has one.
    fn entry(&mut self, first: char) -> Option<(String, Option<String>)> {
        let mut key = String::from(first.to_ascii_lowercase());
        let mut next = self.next();
        while let Some(letter) = next.filter(|it| it.is_ascii_alphanumeric() || *it == '-') {
            key.push(letter.to_ascii_lowercase());
            next = self.next();
        }
        while matches!(next, Some(' ' | '\t')) {
            next = self.next();
        }
        match next {
            None | Some('\n') => Some((key, None)),
            Some('=') => Some((key, Some(self.value()?))),
            Some(_) => None,
        }
    }

    fn value(&mut self) -> Option<String> {
        let mut value = String::new();
        // The length without the blanks behind it.
        let mut length = 0;
        let (mut is_quoted, mut is_comment) = (false, false);
        loop {
            let Some(letter) = self.next().filter(|letter| *letter != '\n') else {
                value.truncate(length);
                return (!is_quoted).then_some(value);
            };
            match letter {
                _ if is_comment => continue,
                ' ' | '\t' | '\r' if !is_quoted => {
                    if !value.is_empty() {
                        value.push(letter);
                    }
                    continue;
                }
                '#' | ';' if !is_quoted => {
                    is_comment = true;
                    continue;
                }
                '\\' => match self.next()? {
                    '\n' => continue,
                    't' => value.push('\t'),
                    'b' => value.push('\u{8}'),
                    'n' => value.push('\n'),
                    same @ ('\\' | '"') => value.push(same),
                    _ => return None,
                },
                '"' => is_quoted = !is_quoted,
                letter => value.push(letter),
            }
            length = value.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    /// What git itself reads: entries before a mistake, as it prints them.
    fn by_git(text: &str) -> Option<Vec<(String, String)>> {
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("config");
        fs::write(&file, text).unwrap();
        let output = Command::new("git")
            .args(["config", "--null", "--list", "--file"])
            .arg(&file)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .current_dir(scratch.path())
            .output()
            .unwrap();
        let listed = String::from_utf8(output.stdout).unwrap();
        let entries = listed.split_terminator('\0').filter_map(|entry| entry.split_once('\n'));
        let entries = entries.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        output.status.success().then_some(entries)
    }

    /// Pieces that mean something in such a file.
    fn texts() -> impl Strategy<Value = String> {
        let pieces = [
            "[core]",
            "[",
            "]",
            "[filter \"a b\"]",
            "[x \"\\\"]\"]",
            "[x.y]",
            "\n",
            "\n",
            "\r\n",
            " ",
            "\t",
            "path",
            "hooksPath",
            "=",
            "=",
            " = ",
            "./run",
            "a b",
            "\"",
            "\\\n",
            "\\\"",
            "\\\\",
            "\\t",
            "#",
            ";",
            "x-y",
            "é",
            "\u{b}",
            "\r",
            "\n\tclean = ./run\n",
            "\u{feff}",
            "1",
        ];
        prop::collection::vec(prop::sample::select(pieces.to_vec()), 0..14)
            .prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn a_configuration_says_what_git_reads_in_it(text in texts(), begins in any::<bool>()) {
            let text = if begins { format!("[core]\n{text}") } else { text };
            if let Some(expected) = by_git(&text) {
                prop_assert_eq!(entries(&text), expected, "{:?}", text);
            }
        }
    }

    #[test]
    fn what_is_no_file_is_not_waited_for() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        fs::create_dir(root.join(".git")).unwrap();
        let pipe = |name: &str| {
            let made = Command::new("mkfifo").arg(root.join(name)).status().unwrap();
            assert!(made.success());
        };
        pipe(".git/config");
        pipe("included");
        fs::write(root.join(".git/config.worktree"), "[include]\npath = ../included\n").unwrap();
        let found: Vec<String> =
            of_repository(&root, None).settings.into_iter().map(|it| it.value).collect();
        assert_eq!(found, ["../included"]);
    }
}
