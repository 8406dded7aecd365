//! Paths that a script may touch: those that it names, those that its patterns match, and the possible results of its
//! expansions.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::characters::{is_metacharacter, words as split_words};
use super::git_runs;
use super::programs::{base_name, is_interpreter};
use super::script::{Command, Script, Word};
use super::shape::{Shape, Step};
use super::views::{Views, directories};
use super::wrappers::unwrapped;
use super::writes;
use crate::paths::join;
use crate::protected;

/// Programs that open no file that an argument names.
const SPEAKERS: [&str; 30] = [
    ":", "[", "[[", "break", "cd", "continue", "declare", "echo", "exit", "export", "expr",
    "false", "kill", "let", "local", "printf", "read", "readonly", "return", "seq", "set", "shift",
    "sleep", "test", "trap", "true", "type", "typeset", "unset", "wait",
];

/// Programs that write to no file that an argument names.
const READERS: [&str; 27] = [
    "awk",
    "base64",
    "cat",
    "cmp",
    "comm",
    "cut",
    "diff",
    "du",
    "egrep",
    "fgrep",
    "file",
    "grep",
    "head",
    "jq",
    "ls",
    "md5sum",
    "nl",
    "od",
    "readlink",
    "realpath",
    "rg",
    "sha256sum",
    "stat",
    "tail",
    "tr",
    "wc",
    "xxd",
];

/// Programs whose first words are subcommands: a word without a dot or a slash is seldom a path.
const COMMANDERS: [&str; 28] = [
    "apt",
    "apt-get",
    "brew",
    "bun",
    "bundle",
    "cargo",
    "cmake",
    "docker",
    "gh",
    "git",
    "go",
    "gradle",
    "kubectl",
    "make",
    "mvn",
    "npm",
    "npx",
    "pip",
    "pip3",
    "pnpm",
    "poetry",
    "pytest",
    "rake",
    "rustup",
    "systemctl",
    "terraform",
    "uv",
    "yarn",
];

/// The most values of a word that are distinguished.
const MOST_VALUES: usize = 32;

/// The most directories of a command that are distinguished.
const MOST_PLACES: usize = 32;

/// A path with unknown parts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ShapedPath {
    pub(crate) shape: Shape,
    /// Whether it may be written, not only read.
    pub(crate) may_be_written: bool,
}

/// The paths that a script may touch.
#[derive(Debug, Default)]
pub(crate) struct Mentions {
    /// Paths that it names, relative ones in every possible directory.
    paths: Vec<PathBuf>,
    /// Paths that its patterns match.
    patterns: Vec<ShapedPath>,
    /// Possible results of its expansions.
    unknown: Vec<ShapedPath>,
    /// Directories whose contents are read or changed.
    trees: Vec<Tree>,
    /// Paths that it may write, where their text or a pattern tells, each beginning at the root.
    writes: Vec<Shape>,
}

/// A directory that a command processes as a whole.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) path: PathBuf,
    pub(crate) used: TreeUse,
}

/// The use of a directory's contents by a command.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TreeUse {
    /// Whether it follows links.
    pub(crate) follows: bool,
    /// Whether it changes or removes the files that it finds.
    pub(crate) is_written: bool,
}

impl Mentions {
    /// Adds the paths that a command may touch without naming them: unknown values, trees, written files.
    fn add_command(&mut self, command: &Command, places: &[PathBuf], cwd: &Path) {
        let program = program(command);
        let speaks = program.as_deref().is_some_and(|program| SPEAKERS.contains(&program));
        let reads = program.as_deref().is_some_and(|program| READERS.contains(&program));
        for (index, word) in command.words.iter().enumerate() {
            if speaks || is_text(&command.words, index) {
                continue;
            }
            if let Some(word) = expanded(word, program.as_deref()) {
                self.add_shape(&word, !reads, places, cwd);
            }
            if word.value.is_none() {
                self.add_shape(word, !reads, places, cwd);
            }
        }
        if places.is_empty() {
            self.add_anywhere(command, program.as_deref());
        }
        for redirection in &command.redirections {
            if redirection.target.value.is_none() {
                self.add_shape(&redirection.target, redirection.writes, places, cwd);
            }
        }
        for (tree, used) in trees(command) {
            self.add_tree(&tree, used, places);
        }
        self.add_writes(command, places);
    }

    pub(crate) fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    pub(crate) fn patterns(&self) -> &[ShapedPath] {
        &self.patterns
    }

    pub(crate) fn unknown(&self) -> &[ShapedPath] {
        &self.unknown
    }

    pub(crate) fn trees(&self) -> &[Tree] {
        &self.trees
    }

    pub(crate) fn writes(&self) -> &[Shape] {
        &self.writes
    }

    /// An estimate of their size in bytes.
    pub(super) fn weight(&self) -> usize {
        let paths = self.paths.iter().chain(self.trees.iter().map(|tree| &tree.path));
        let paths = paths.map(|path| path.as_os_str().len() + size_of::<PathBuf>());
        let known = self.patterns.iter().chain(&self.unknown).map(|path| &path.shape);
        let shapes = known.chain(&self.writes).map(Shape::weight);
        paths.chain(shapes).sum()
    }
}

/// Every path that a script may touch, in a shell at `cwd`.
pub(super) fn mentions(
    text: &str,
    script: &Script,
    views: &Views,
    cwd: &Path,
    home: Option<&Path>,
) -> Mentions {
    let mut found: Vec<(&str, &OsStr)> = Vec::with_capacity(32);
    let mut elsewhere: Vec<PathBuf> = Vec::new();
    let mut mentions = Mentions::default();
    for word in &views.code_words {
        found.extend(possible_paths(word).map(|path| (path, cwd.as_os_str())));
    }
    if script.unclear.is_some_and(super::Unclear::is_unreadable) {
        let cut = |byte: char| {
            byte.is_ascii() && (is_metacharacter(byte as u8) || "'\"`$={}".contains(byte))
        };
        for word in split_words(text).flat_map(|word| word.split(cut)) {
            found.extend(possible_paths(word).map(|path| (path, cwd.as_os_str())));
        }
    }
    let nested = views.nested.iter().flat_map(|script| &script.commands);
    for command in script.commands.iter().chain(nested).chain(&views.wrapped) {
        let targets = command.redirections.iter().map(|redirection| &redirection.target);
        let places = &places_of(command);
        for word in command.words.iter().chain(targets) {
            let Some(value) = word.value.as_deref() else { continue };
            found.extend(possible_paths(value).map(|path| (path, cwd.as_os_str())));
            if ["/proc/", "/dev/fd/", "/dev/std"].iter().any(|top| value.starts_with(top)) {
                mentions.add_shape(word, true, &[], cwd);
            }
        }
        for place in places.iter().filter(|place| *place != cwd) {
            for word in &command.words {
                let Some(value) = word.value.as_deref() else { continue };
                elsewhere.extend(possible_paths(value).map(|path| join(place, path)));
            }
            for redirection in &command.redirections {
                let target = redirection.target.value.as_deref();
                elsewhere.extend(target.map(|path| join(place, path)));
            }
        }
        mentions.add_command(command, places, cwd);
        if !command.words.is_empty() {
            for assignment in &command.assignments {
                found.extend(assignment.value.as_deref().map(|path| (path, cwd.as_os_str())));
            }
        }
    }
    for word in &views.code_words {
        let paths = possible_paths(word).filter(|path| path.len() < 1_000);
        mentions.writes.extend(paths.map(|path| absolute_shape(&Shape::literal(path), cwd)));
    }
    found.sort_unstable();
    found.dedup();
    let absolute = |(word, place): (&str, &OsStr)| match (word.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => join(Path::new(place), word),
    };
    mentions.paths = found.into_iter().map(absolute).collect();
    elsewhere.sort_unstable();
    elsewhere.dedup();
    mentions.paths.append(&mut elsewhere);
    mentions
}

/// The directories that relative paths of a command may belong to; empty if they are not known.
fn places_of(command: &Command) -> Vec<PathBuf> {
    let mut places = command.places.known().to_vec();
    for directory in directories(&command.words).into_iter().flatten() {
        let Some(directory) = directory else { return Vec::new() };
        if places.len() > MOST_PLACES {
            return Vec::new();
        }
        let below: Vec<PathBuf> = places.iter().map(|place| join(place, directory)).collect();
        places.extend(below);
    }
    places
}

impl Mentions {
    fn add_unknown(&mut self, shape: Shape, may_be_written: bool) {
        let path = ShapedPath { shape, may_be_written };
        if !self.unknown.contains(&path) {
            self.unknown.push(path);
        }
    }

    /// Adds the paths of a command that may run in any directory.
    fn add_anywhere(&mut self, command: &Command, program: Option<&str>) {
        let is = |list: &[&str]| program.is_some_and(|program| list.contains(&base_name(program)));
        let (speaks, reads, talks) = (is(&SPEAKERS), is(&READERS), is(&COMMANDERS));
        for word in command.words.iter().skip(1).filter(|_| !speaks) {
            for path in word.value.as_deref().into_iter().flat_map(possible_paths) {
                let is_path = !path.starts_with('-') && (!talks || path.contains(['/', '.']));
                self.add_unknown_below(if is_path { path } else { "" }, !reads);
            }
        }
        for redirection in &command.redirections {
            let target = redirection.target.value.as_deref().unwrap_or_default();
            self.add_unknown_below(target, redirection.writes);
        }
    }

    /// Adds a relative path in an unknown directory. The directory itself is not meant.
    fn add_unknown_below(&mut self, path: &str, may_be_written: bool) {
        let mut names: Vec<&str> = Vec::new();
        for name in path.split('/') {
            match name {
                "" | "." => {}
                ".." => {
                    names.pop();
                }
                name => names.push(name),
            }
        }
        if !path.starts_with('/') && !names.is_empty() {
            let mut shape = Shape::any_after('/');
            shape.push_text("/");
            shape.push_text(&names.join("/"));
            self.add_unknown(shape, may_be_written);
        }
    }

    /// Adds the paths that a command may write.
    fn add_writes(&mut self, command: &Command, places: &[PathBuf]) {
        let root = [PathBuf::from("/")];
        let places = if places.is_empty() { &root[..] } else { places };
        let mut written = writes::written(&command.words);
        let targets = command.redirections.iter().filter(|redirection| redirection.writes);
        written.extend(targets.map(|redirection| redirection.target.to_shape()));
        for shape in written {
            for alternative in shape.alternatives(MOST_VALUES).unwrap_or_default() {
                if alternative.steps().is_empty() {
                    continue;
                }
                let known = if alternative.has_any() {
                    around_unknown(&alternative)
                } else {
                    places.iter().map(|place| absolute_shape(&alternative, place)).collect()
                };
                for path in known {
                    if !self.writes.contains(&path) {
                        self.writes.push(path);
                    }
                }
            }
        }
    }

    fn add_tree(&mut self, tree: &str, used: TreeUse, places: &[PathBuf]) {
        if places.is_empty() && !tree.starts_with('/') {
            return self.add_unknown(Shape::any_after('/'), used.is_written);
        }
        let root = [PathBuf::from("/")];
        let places = if places.is_empty() { &root[..] } else { places };
        self.trees.extend(places.iter().map(|place| Tree { path: join(place, tree), used }));
    }

    fn add_shape(&mut self, word: &Word, may_be_written: bool, places: &[PathBuf], cwd: &Path) {
        let elsewhere = [cwd.to_owned()];
        let is_lost = places.is_empty();
        let alternatives = word.to_shape().alternatives(MOST_VALUES);
        let alternatives = alternatives.unwrap_or_else(|| vec![Shape::any()]);
        for variant in alternatives.iter().flat_map(variants) {
            for place in if is_lost { &elsewhere[..] } else { places } {
                let shape = if let Some(shape) = of_process(&variant) {
                    shape
                } else if is_lost && !starts_with_slash(&variant) {
                    Shape::any_then(&variant)
                } else {
                    rooted(&variant, place)
                };
                let list = if shape.has_any() { &mut self.unknown } else { &mut self.patterns };
                let path = ShapedPath { shape, may_be_written };
                if !list.contains(&path) {
                    list.push(path);
                }
            }
        }
    }
}

/// The expansion of a word by the program itself: a git pattern, or a file address with escaped characters.
fn expanded(word: &Word, program: Option<&str>) -> Option<Word> {
    let known: String = word.to_shape().start().collect();
    let is_address = known.get(..5).is_some_and(|it| it.eq_ignore_ascii_case("file:"));
    let start = if is_address && word.to_shape().may_have(|c| matches!(c, '%' | '[' | '{')) {
        0
    } else if word.value.is_none() || program.map(base_name) != Some("git") {
        return None;
    } else if known.starts_with(':') {
        0
    } else {
        known.find(['*', '?', '[', '\\'])?
    };
    let mut shape = Shape::literal(known.get(..start)?);
    shape.push(Step::Any);
    Some(Word::shaped(&word.written, shape, false))
}

/// Options of programs whose values are text and name no file. For `curl`, a value that begins with `@` names one.
const TEXTS: [(&str, &str, &[&str]); 3] = [
    ("git", "m", &["--author", "--date", "--format", "--grep", "--message", "--pretty"]),
    ("gh", "bt", &["--body", "--label", "--search", "--title"]),
    ("curl", "AHXde", &["--data", "--header", "--referer", "--request", "--user-agent"]),
];

/// Whether an unknown word is the value of an option that takes text.
fn is_text(words: &[Word], at: usize) -> bool {
    let value = |index: usize| words.get(index).and_then(|word| word.value.as_deref());
    let program = value(0).map(base_name);
    let Some((program, letters, names)) = TEXTS.iter().find(|(name, ..)| program == Some(*name))
    else {
        return false;
    };
    let Some(word) = words.get(at).filter(|word| !word.splits) else { return false };
    let shape = word.to_shape();
    let start: String = shape
        .steps()
        .iter()
        .map_while(|step| match step {
            Step::Literal(character) => Some(*character),
            _ => None,
        })
        .collect();
    let is_named = *program != "curl" || !(start.is_empty() || start.starts_with('@'));
    let follows = at.checked_sub(1).and_then(value).is_some_and(|option| {
        names.contains(&option)
            || option.strip_prefix('-').is_some_and(|bundle| {
                !bundle.starts_with('-')
                    && bundle.ends_with(|letter: char| letters.contains(letter))
            })
    });
    let holds = start.split_once('=').is_some_and(|(option, text)| {
        names.contains(&option)
            && (*program != "curl" || !(text.is_empty() || text.starts_with('@')))
    });
    (follows && is_named) || holds
}

/// The known parts of a partly unknown path: the names behind the unknown text, the directories before it, and the
/// possible names that begin before it. An unknown text alone may be anything, or no path at all.
fn around_unknown(shape: &Shape) -> Vec<Shape> {
    let steps = shape.steps();
    let is_any = |step: &Step| *step == Step::Any;
    let is_slash = |step: &Step| *step == Step::Literal('/');
    let mut known = Vec::new();
    let tail =
        steps.iter().rposition(is_any).and_then(|at| steps.get(at + 1..)).unwrap_or_default();
    if let Some(slash) = tail.iter().position(is_slash) {
        known.extend(tail.get(slash..).map(Shape::from_steps));
    }
    let head = steps.split(is_any).next().map(Shape::from_steps).and_then(|head| head.text());
    if let Some(head) = head {
        let (above, start) = head.rsplit_once('/').unwrap_or(("", &head));
        let named =
            protected::names_from(start).map(|name| Shape::literal(&format!("/{above}/{name}")));
        known.extend(named);
        known.push(Shape::literal(&format!("/{above}/_")));
    }
    known
}

/// A shape in a directory, as a path that begins at the root.
pub(super) fn absolute_shape(shape: &Shape, place: &Path) -> Shape {
    if starts_with_slash(shape) {
        return shape.clone();
    }
    let mut whole = Shape::literal(&format!("{}/", place.display()));
    whole.append(shape);
    whole
}

/// The paths behind the directories and the files that a process holds: `/proc/self/cwd/x` and `/dev/fd/3/x` are any
/// `x`.
fn of_process(shape: &Shape) -> Option<Shape> {
    const DIRECTORIES: [&str; 5] = ["cwd", "fd", "map_files", "root", "task"];
    const STREAMS: [&str; 3] = ["stderr", "stdin", "stdout"];
    let steps = shape.steps();
    let names: Vec<&[Step]> =
        steps.split(|step| *step == Step::Literal('/')).filter(|name| !name.is_empty()).collect();
    let may_be = |at: usize, texts: &[&str]| {
        names.get(at).is_some_and(|name| {
            let name = Shape::from_steps(name);
            texts.iter().any(|text| name.intersects(&Shape::literal(text)))
        })
    };
    let of_device =
        (names.len() > 2 && may_be(1, &STREAMS)) || (names.len() > 3 && may_be(1, &["fd"]));
    let leads = (may_be(0, &["proc"]) && (2..names.len()).any(|at| may_be(at, &DIRECTORIES)))
        || (may_be(0, &["dev"]) && of_device);
    if !starts_with_slash(shape) || !leads {
        return None;
    }
    let slash = steps.iter().rposition(|step| *step == Step::Literal('/'))?;
    let rest = Shape::from_steps(steps.get(slash..)?);
    Some(if rest.steps().len() > 1 { Shape::any_then(&rest) } else { Shape::any() })
}

fn starts_with_slash(shape: &Shape) -> bool {
    matches!(shape.steps().first(), Some(Step::Literal('/')))
}

/// A word as a path, and the value of `--option=value` or `-ovalue`.
fn variants(shape: &Shape) -> Vec<Shape> {
    let steps = shape.steps();
    let has_choice = steps.iter().any(|step| matches!(step, Step::Split(_) | Step::Jump(_)));
    let from = |start: usize| Shape::from_steps(steps.get(start..).unwrap_or_default());
    let mut found = vec![shape.clone()];
    if has_choice {
        return found;
    }
    let equals = steps.iter().position(|step| *step == Step::Literal('='));
    found.extend(equals.map(|at| from(at + 1)));
    if matches!(steps, [Step::Literal('-'), Step::Literal(flag), ..] if *flag != '-') {
        let is_flag = |step: &&Step| matches!(step, Step::Literal(c) if c.is_ascii_alphanumeric());
        let flags = steps.iter().skip(1).take_while(is_flag).count().min(LONGEST_BUNDLE);
        found.extend((2..=flags + 1).map(from));
    }
    let named = found.iter().filter(|shape| shape.steps().first() == Some(&Step::Literal('@')));
    let named: Vec<Shape> =
        named.filter_map(|it| it.steps().get(1..)).map(Shape::from_steps).collect();
    found.extend(named);
    found
}

/// A shape as an absolute path without `.` and `..`, in a directory.
fn rooted(shape: &Shape, place: &Path) -> Shape {
    let steps = shape.steps();
    if matches!(steps.first(), Some(Step::Any)) {
        return shape.clone();
    }
    // With a choice in it, steps contain distances: the names cannot be separated.
    if steps.iter().any(|step| matches!(step, Step::Split(_) | Step::Jump(_))) {
        let mut whole = Shape::literal(&format!("{}/", place.display()));
        whole.append(shape);
        let mut above = Shape::any();
        above.append(shape);
        return Shape::one_of(&[
            whole,
            shape.clone(),
            if may_climb(steps) { above } else { shape.clone() },
        ]);
    }
    let mut names: Vec<Vec<Step>> = Vec::new();
    if !starts_with_slash(shape) {
        let place = place.display().to_string();
        names.extend(
            place
                .split('/')
                .filter(|name| !name.is_empty())
                .map(|name| name.chars().map(Step::Literal).collect()),
        );
    }
    for name in steps.split(|step| *step == Step::Literal('/')) {
        match name {
            [] | [Step::Literal('.')] => {}
            [Step::Literal('.'), Step::Literal('.')] => {
                // The directory that `..` leaves is not known if it contained any text.
                if names.last().is_some_and(|name| name.contains(&Step::Any)) {
                    continue;
                }
                names.pop();
            }
            // A pattern that begins with a dot may match `.` or `..`.
            [Step::Literal('.'), rest @ ..]
                if rest.iter().all(|step| !matches!(step, Step::Literal(c) if *c != '.')) =>
            {
                names.push(vec![Step::Any]);
                names.push(name.to_vec());
            }
            name => names.push(name.to_vec()),
        }
    }
    let mut whole = Shape::default();
    for name in names {
        whole.push(Step::Literal('/'));
        for step in name {
            whole.push(step);
        }
    }
    whole
}

fn may_climb(steps: &[Step]) -> bool {
    steps.windows(2).any(|pair| pair == [Step::Literal('.'), Step::Literal('.')])
}

/// The most letters of options that are examined in one word.
const LONGEST_BUNDLE: usize = 24;

/// The paths that a word may name: itself, the value of `--option=value`, that of `-ovalue` behind any number of
/// letters, and the texts between characters that separate paths from other text: `x=@path;type=text`.
pub(crate) fn possible_paths(word: &str) -> impl Iterator<Item = &str> {
    const MARKS: [char; 6] = ['@', '<', '=', ',', ';', ':'];
    let value = word.split_once('=').map(|(_, value)| value);
    // `revision:path` of git, `host:path` of others.
    let behind = word.rsplit_once(':').map(|(_, path)| path);
    let before = word.split_once(':').map(|(path, _)| path);
    let pieces = word.contains(MARKS).then(|| word.split(MARKS)).into_iter().flatten();
    let all = [Some(word), value, behind, before].into_iter().flatten();
    let all = all.chain(bundled(word)).chain(pieces);
    all.flat_map(|path| [Some(path), path.strip_prefix('@')])
        .flatten()
        .filter(|path| !path.is_empty())
}

/// The possible values in a word of short options: `-abvalue`, where any of the letters may take it.
fn bundled(word: &str) -> impl Iterator<Item = &str> {
    let rest = word.strip_prefix('-').filter(|rest| !rest.starts_with('-')).unwrap_or_default();
    let is_flag = |c: char| c.is_ascii_alphanumeric();
    let flags = rest.chars().take_while(|c| is_flag(*c)).count().min(LONGEST_BUNDLE);
    (1..=flags).filter_map(move |from| rest.get(from..))
}

/// Whether a program writes to no file that an argument names.
pub(super) fn reads_only(program: &str) -> bool {
    SPEAKERS.contains(&program) || READERS.contains(&program)
}

/// The program of a command, inside its wrappers.
fn program(command: &Command) -> Option<String> {
    unwrapped(&command.words).first().and_then(|word| word.value.clone())
}

/// The directories that the command processes with everything below.
fn trees(command: &Command) -> Vec<(String, TreeUse)> {
    let words = unwrapped(&command.words);
    let plain = match words.first().and_then(|word| word.value.as_deref()).map(base_name) {
        Some("git") => git_runs::without_global_options(&words),
        _ => None,
    };
    let words = plain.as_deref().unwrap_or(&words);
    let values: Vec<&str> = words.iter().map(|word| word.value.as_deref().unwrap_or("")).collect();
    let Some((program, arguments)) = values.split_first() else { return Vec::new() };
    let short = |flags: &[char]| {
        arguments.iter().any(|word| {
            word.strip_prefix('-')
                .is_some_and(|bundle| !bundle.starts_with('-') && bundle.contains(flags))
        })
    };
    let long = |option: &str| {
        arguments.iter().any(|word| {
            word.len() > 2 && option.starts_with(word.split('=').next().unwrap_or(word))
        })
    };
    let program = base_name(program);
    let has = |wanted: &str| arguments.contains(&wanted);
    let packs = |pair: &[&str]| matches!(pair, [_, "tarfile" | "zipfile" | "zipapp" | "shutil"]);
    let old_style = arguments.first().is_some_and(|word| word.contains('h'));
    let (is_meant, follows, is_written) = match program {
        "rgrep" => (true, short(&['R']), false),
        "grep" | "egrep" | "fgrep" => {
            // `-d recurse`, `-drecurse`, `--directories=recurse`, each possibly shortened.
            let is_way = |word: &&str| possible_paths(word).any(is_recurse);
            let recurses = arguments.iter().any(is_way);
            let follows = short(&['R']) || long("--dereference-recursive");
            (follows || recurses || short(&['r']) || long("--recursive"), follows, false)
        }
        "cp" => (
            short(&['r', 'R', 'a']) || long("--recursive") || long("--archive"),
            short(&['L']),
            false,
        ),
        "tar" | "bsdtar" | "gtar" => (true, old_style || short(&['h', 'L']), false),
        "rg" | "ag" | "ack" | "rsync" | "7z" | "scp" => (true, short(&['L', 'f']), false),
        "zip" => (short(&['r', 'R']), true, false),
        // For two directories it shows the files in them.
        "diff" => (true, true, false),
        "git" => {
            let reads = matches!(arguments.first(), Some(&("grep" | "archive" | "bundle")));
            (reads || has("--no-index"), has("--no-index"), false)
        }
        "rm" | "chmod" | "chown" | "chgrp" => {
            (short(&['r', 'R']) || long("--recursive"), false, true)
        }
        "find" => (has("-delete"), false, true),
        // They pack whole directories.
        name if is_interpreter(name) && arguments.windows(2).any(packs) => (true, false, false),
        _ => (false, false, false),
    };
    if !is_meant {
        return Vec::new();
    }
    let mut operands: Vec<&str> = arguments
        .iter()
        .copied()
        .filter(|word| !word.starts_with('-') && !word.is_empty())
        .collect();
    // A search without a path begins in the shell's directory: the first operand is the pattern.
    let searches =
        matches!(program, "rg" | "ag" | "ack" | "grep" | "rgrep" | "egrep" | "fgrep" | "git");
    let starts_here =
        program == "find" && arguments.first().is_none_or(|word| word.starts_with('-'));
    if searches && operands.len() <= 1 + usize::from(program == "git") || starts_here {
        operands.push(".");
    }
    // `-d recurse` is no path.
    if searches && operands.iter().copied().any(is_recurse) && operands.len() <= 2 {
        operands.push(".");
    }
    let used = TreeUse { follows, is_written };
    operands.into_iter().map(|word| (word.to_owned(), used)).collect()
}

/// Whether a word is `grep`'s method for directories that descends; it may be shortened.
fn is_recurse(word: &str) -> bool {
    word.len() > 2 && "recurse".starts_with(word)
}
