//! The words of a command that may be files that it writes, to find writes to protected paths.
//!
//! A program may write all of its arguments unless it is known to leave them alone.

use super::free_programs;
use super::git_runs;
use super::mentions::{possible_paths, reads_only};
use super::programs::{ProgramKind, base_name, family, is_shell, kind};
use super::script::Word;
use super::sed;
use super::shape::{Shape, Step};

/// Programs, besides the read-only ones, that write to no file which an operand names.
const LEAVING: [&str; 46] = [
    ".",
    "ansible",
    "apt",
    "apt-get",
    "bat",
    "brew",
    "bun",
    "bundle",
    "cargo",
    "cd",
    "code",
    "docker",
    "eslint",
    "flake8",
    "gh",
    "go",
    "helm",
    "jest",
    "kubectl",
    "less",
    "make",
    "man",
    "more",
    "mvn",
    "mypy",
    "npm",
    "npx",
    "open",
    "pip",
    "pip3",
    "pnpm",
    "podman",
    "popd",
    "pushd",
    "pytest",
    "ruff",
    "rustc",
    "shellcheck",
    "source",
    "strings",
    "systemctl",
    "terraform",
    "tsc",
    "uv",
    "xmllint",
    "yarn",
];

/// Options of any program whose values name excluded paths, or paths that are only read.
const EXCLUDING: [&str; 6] = ["--exclude", "--ignore", "--skip", "--glob", "--include", "--config"];

/// Parts of the names of options that name an output.
const OUTPUTS: [&str; 14] = [
    "cache", "dest", "dir", "dump", "export", "log", "out", "prefix", "profile", "report", "save",
    "trace", "write", "xml",
];

/// Words with which programs that usually leave their operands alone change them.
const CHANGING: [&str; 5] = ["--fix", "--write", "cp", "fmt", "format"];

/// Interpreters whose first operand is a script, which they read.
const LANGUAGES: [&str; 12] = [
    "Rscript", "lua", "luajit", "node", "nodejs", "perl", "php", "pypy", "python", "ruby",
    "ts-node", "tsx",
];

/// The last names of files that a command may make. The effect of a script on its arguments is not considered.
pub(super) fn made(words: &[Word]) -> Vec<Shape> {
    let Some((program, arguments)) = words.split_first() else { return Vec::new() };
    let name = program.value.as_deref().map(base_name).unwrap_or_default();
    let mut found: Vec<Shape> = if runs_script(name, arguments) {
        Vec::new()
    } else {
        written(words).iter().flat_map(last_names).collect()
    };
    match name {
        "gcc" | "g++" | "cc" | "c++" | "clang" | "clang++" | "as" | "ld" => {
            found.push(Shape::literal("a.out"));
        }
        "split" | "csplit" => found.extend(pieces(arguments)),
        "script" => found.push(Shape::literal("typescript")),
        // Without the suffix of the compression.
        "gunzip" | "gzip" | "bunzip2" | "bzip2" | "unxz" | "xz" | "unzstd" | "zstd" => {
            let names = arguments.iter().filter_map(|word| word.value.as_deref()).map(base_name);
            let plain = names.filter_map(|name| name.rsplit_once('.'));
            found.extend(plain.map(|(name, _)| Shape::literal(name)));
        }
        // An archive from the output of another command may contain any name.
        "tar" | "bsdtar" | "gtar" if takes_out(arguments) && !names_archive(arguments) => {
            found.push(Shape::any());
        }
        "cpio" | "pax" => found.push(Shape::any()),
        // They make files with the names of their operands.
        "cp" | "install" | "ln" | "mv" | "rsync" | "scp" | "tar" | "unzip" | "git" => {
            found.extend(shapes(arguments.iter()).iter().flat_map(last_names));
        }
        "sed" | "gsed" => found.extend(arguments.iter().flat_map(made_by_sed)),
        name if name.ends_with("awk") => found.extend(arguments.iter().flat_map(made_by_awk)),
        _ => {}
    }
    found
}

/// Names of the pieces of a file: `x`, or the given prefix, and a suffix.
fn pieces(arguments: &[Word]) -> Vec<Shape> {
    let mut starts = vec![Shape::literal("x")];
    starts.extend(shapes(arguments.iter()).iter().flat_map(last_names));
    for start in &mut starts {
        start.push(Step::Name);
    }
    starts
}

/// Names of files that a script of `sed` may write.
fn made_by_sed(word: &Word) -> Vec<Shape> {
    match word.value.as_deref() {
        Some(script) => {
            let files = sed::possible_files(script).map(Shape::literal);
            files.flat_map(|file| last_names(&file)).collect()
        }
        None => Vec::new(),
    }
}

/// Names of files that a program of `awk` may write: `print > "name"`.
fn made_by_awk(word: &Word) -> Vec<Shape> {
    let Some(program) = word.value.as_deref() else { return Vec::new() };
    let targets = program.split('>').skip(1).map(str::trim_start);
    targets
        .filter(|target| {
            !target.is_empty() && !target.starts_with(|c: char| "=0123456789".contains(c))
        })
        .flat_map(|target| match target.strip_prefix('"').and_then(|text| text.split_once('"')) {
            // Text after a string is joined to it.
            Some((name, rest))
                if rest.trim_start().is_empty()
                    || rest.trim_start().starts_with([';', '}', ')', '\n']) =>
            {
                last_names(&Shape::literal(name))
            }
            _ => vec![Shape::any()],
        })
        .collect()
}

/// The last names of the paths that a text may be.
pub(super) fn last_names(shape: &Shape) -> Vec<Shape> {
    const MOST: usize = 32;
    let Some(alternatives) = shape.alternatives(MOST) else { return vec![Shape::any()] };
    alternatives
        .iter()
        .filter(|shape| !shape.steps().is_empty())
        .map(|shape| {
            let steps = shape.steps();
            let end = steps.len() - usize::from(steps.last() == Some(&Step::Literal('/')));
            let steps = steps.get(..end).unwrap_or_default();
            let slash = steps.iter().rposition(|step| *step == Step::Literal('/'));
            Shape::from_steps(steps.get(slash.map_or(0, |slash| slash + 1)..).unwrap_or_default())
        })
        .collect()
}

/// The possible texts of words that a command writes to: all words, unless the program is known to leave some alone.
pub(super) fn written(words: &[Word]) -> Vec<Shape> {
    let Some((program, arguments)) = words.split_first() else { return Vec::new() };
    let Some(name) = program.value.as_deref().map(base_name) else { return all(arguments) };
    match name {
        "cp" | "ln" | "install" | "rsync" | "scp" => copied(name, arguments),
        "sed" | "gsed" => {
            let is_in_place =
                |word: &Word| has_flag(word, 'i') || has_long(word, "--in-place", "--i");
            if arguments.iter().any(is_in_place) { all(arguments) } else { Vec::new() }
        }
        "dd" => shapes(arguments.iter().filter(|word| !text(word).starts_with("if="))),
        "sort" | "tree" => options(arguments, "oT", &["--output", "--temporary-directory"]),
        "uniq" | "xxd" => later_operands(arguments),
        "tar" | "bsdtar" | "gtar" if takes_out(arguments) => all(arguments),
        "tar" | "bsdtar" | "gtar" => archived(arguments),
        "zip" | "unzip" => shapes(packed(arguments).into_iter()),
        "curl" | "wget" => fetched(arguments),
        "script" => all(arguments),
        "find" | "fd" | "fdfind" => found(arguments),
        "git" => git(words),
        name if name.ends_with("awk") => shapes(arguments.iter().filter(|word| is_option(word))),
        "pip" | "pip3" => {
            let mut found = left(arguments);
            found.extend(options(
                arguments,
                "dtw",
                &["--target", "--wheel-dir", "--root", "--src"],
            ));
            found
        }
        name if LEAVING.contains(&name) => left(arguments),
        name if reads_only(name) => Vec::new(),
        name if free_programs::PROGRAMS.iter().any(|program| program.name == name) => Vec::new(),
        // Their inner command is examined by itself.
        "xargs" => Vec::new(),
        name => match kind(name) {
            Some(ProgramKind::Wrapper { valued, .. }) => {
                shapes(own_options(arguments, valued).into_iter())
            }
            Some(ProgramKind::Runner | ProgramKind::Launcher) => run_with(name, arguments),
            Some(ProgramKind::Shell | ProgramKind::Interpreter(_)) => interpreted(name, arguments),
            Some(ProgramKind::Options(_) | ProgramKind::Opaque | ProgramKind::Plain) | None => {
                all(arguments)
            }
        },
    }
}

/// The known text of a word.
fn text(word: &Word) -> &str {
    word.value.as_deref().unwrap_or(&word.written)
}

fn is_option(word: &Word) -> bool {
    text(word).starts_with('-') && text(word) != "-"
}

/// All operands but the first one, which is read.
fn later_operands(arguments: &[Word]) -> Vec<Shape> {
    if arguments.iter().any(|word| word.splits) {
        return all(arguments);
    }
    operands(arguments).skip(1).map(Word::to_shape).collect()
}

/// These options with their values, and every word that may be the value of one.
fn option_values(arguments: &[Word], is_meant: impl Fn(&Word) -> bool) -> Vec<&Word> {
    let mut found = Vec::new();
    let mut follows = false;
    for word in meant(arguments) {
        let is_option = is_meant(word);
        if follows || is_option {
            found.push(word);
        }
        follows = is_option && !text(word).contains('=');
    }
    found
}

/// The archive of a `tar`, and the other files that its options name.
fn archived(arguments: &[Word]) -> Vec<Shape> {
    // `cf file`, without a dash: the values follow in their order.
    const VALUED: &str = "bfgCFHIKLNTVX";
    let bundle = arguments.first().filter(|word| !is_option(word)).map_or("", text);
    let values = bundle.matches(|letter| VALUED.contains(letter)).count();
    let mut found: Vec<Shape> = arguments.iter().skip(1).take(values).map(Word::to_shape).collect();
    let is_long = |word: &Word| text(word).starts_with("--");
    found.extend(shapes(option_values(arguments, is_long).into_iter()));
    found.extend(options(arguments, "fgC", &[]));
    found
}

/// Whether `tar` has an option that names the archive.
fn names_archive(arguments: &[Word]) -> bool {
    let is_told = |(index, word): (usize, &Word)| {
        let is_bundle = index == 0 && !is_option(word);
        is_bundle && text(word).contains('f')
            || has_flag(word, 'f')
            || has_long(word, "--file", "--fil")
    };
    let is_input = |word: &Word| matches!(text(word), "-" | "-f-" | "--file=-");
    arguments.iter().enumerate().any(is_told) && !arguments.iter().any(is_input)
}

/// Whether `tar` extracts files from an archive.
fn takes_out(arguments: &[Word]) -> bool {
    let has_bundle = arguments.first().is_some_and(|word| {
        !is_option(word) && text(word).contains('x') && !text(word).contains(['.', '/'])
    });
    let is_told = |word: &Word| {
        has_flag(word, 'x')
            || has_long(word, "--extract", "--ext")
            || has_long(word, "--get", "--ge")
            || word.value.is_none() && word.splits
    };
    has_bundle || arguments.iter().any(is_told)
}

/// The words of `zip` and `unzip` without lists of excluded or included files.
fn packed(arguments: &[Word]) -> Vec<&Word> {
    let mut found = Vec::new();
    let mut is_listed = false;
    for word in arguments {
        if is_option(word) {
            is_listed = matches!(text(word), "-x" | "-i" | "--exclude" | "--include");
        }
        if !is_listed {
            found.push(word);
        }
    }
    found
}

/// The files that `curl` and `wget` write: the values of options, and the last names of addresses.
fn fetched(arguments: &[Word]) -> Vec<Shape> {
    let is_address = |word: &&Word| text(word).contains("://") && !is_option(word);
    let mut found =
        shapes(option_values(arguments, is_option).into_iter().filter(|word| !is_address(word)));
    let names = operands(arguments).filter_map(|word| word.value.as_deref()).map(base_name);
    found.extend(names.map(Shape::literal));
    found
}

/// The files that a program writes which leaves its operands alone: the values of output options.
fn left(arguments: &[Word]) -> Vec<Shape> {
    if arguments.iter().any(|word| CHANGING.contains(&text(word))) {
        return all(arguments);
    }
    let says_where = |word: &Word| {
        let value = word.value.as_deref().unwrap_or_default();
        let name = value.split('=').next().unwrap_or_default().to_lowercase();
        let is_short = name.starts_with('-') && !name.starts_with("--");
        OUTPUTS.iter().any(|part| is_option(word) && name.contains(part))
            || is_short && name.contains('o')
    };
    shapes(option_values(arguments, says_where).into_iter())
}

/// The options of a program before its inner command, with their values.
fn own_options<'w>(arguments: &'w [Word], valued: &str) -> Vec<&'w Word> {
    let mut found = Vec::new();
    let mut words = arguments.iter();
    while let Some(word) = words.next().filter(|word| is_option(word)) {
        found.push(word);
        let takes_next = match text(word).strip_prefix("--") {
            Some("") => break,
            Some(long) => !long.contains('='),
            None => {
                let taker = text(word).find(|letter| valued.contains(letter));
                taker.is_some_and(|at| at + 1 == text(word).len())
            }
        };
        found.extend(words.next().filter(|_| takes_next));
    }
    found
}

/// The files that a program which runs its words may write itself: the words before a known program.
fn run_with(name: &str, arguments: &[Word]) -> Vec<Shape> {
    let is_program = |pair: &[Word]| match pair {
        [before, word] => !is_option(before) && kind(base_name(text(word))).is_some(),
        _ => false,
    };
    let own = arguments.windows(2).position(is_program).map_or(arguments.len(), |at| at + 1);
    let own = arguments.get(..own).unwrap_or_default();
    let mut found = shapes(option_values(own, is_option).into_iter());
    // It makes the file that it locks.
    if name == "flock" {
        found.extend(operands(own).take(1).map(Word::to_shape));
    }
    found
}

/// Whether the program runs a script, and does not itself change the files in its arguments.
fn runs_script(name: &str, arguments: &[Word]) -> bool {
    let edits = || arguments.iter().any(|word| has_flag(word, 'i'));
    is_shell(name) || LANGUAGES.contains(&family(name)) && !edits()
}

/// The files of an interpreter: a script, which it reads, and files that the script may write.
fn interpreted(name: &str, arguments: &[Word]) -> Vec<Shape> {
    if !runs_script(name, arguments) {
        return all(arguments);
    }
    let values: Vec<&str> = arguments.iter().map(text).collect();
    if let ["-m", "json.tool", file] = values.as_slice()
        && !file.starts_with('-')
    {
        return Vec::new();
    }
    let script = arguments.iter().position(|word| !is_option(word));
    let is_script = |index: usize| script == Some(index);
    let others = arguments.iter().enumerate().filter(|(index, _)| !is_script(*index));
    shapes(others.map(|(_, word)| word))
}

fn operands(arguments: &[Word]) -> impl Iterator<Item = &Word> {
    arguments.iter().filter(|word| !is_option(word))
}

fn shapes<'w>(words: impl Iterator<Item = &'w Word>) -> Vec<Shape> {
    let mut found = Vec::new();
    for word in words {
        if let Some(value) = word.value.as_deref() {
            found.extend(possible_paths(value).map(Shape::literal));
            // `-Wp,-MD,file`, `--option=name:file`.
            let pieces = value.split([',', '=', ':']).filter(|piece| piece.len() < value.len());
            found.extend(pieces.filter(|piece| !piece.is_empty()).map(Shape::literal));
            continue;
        }
        let shape = word.to_shape();
        let steps = shape.steps();
        let equals = steps.iter().position(|step| *step == Step::Literal('='));
        found.extend(equals.and_then(|at| steps.get(at + 1..)).map(Shape::from_steps));
        found.push(shape);
    }
    found
}

fn all(arguments: &[Word]) -> Vec<Shape> {
    shapes(meant(arguments).into_iter())
}

/// The arguments without those that name exclusions.
fn meant(arguments: &[Word]) -> Vec<&Word> {
    let mut found = Vec::new();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let value = text(word);
        if EXCLUDING.iter().any(|option| value.starts_with(option)) {
            if !value.contains('=') {
                words.next();
            }
            continue;
        }
        found.push(word);
    }
    found
}

/// Whether a bundle of short options has this letter.
fn has_flag(word: &Word, flag: char) -> bool {
    text(word)
        .strip_prefix('-')
        .is_some_and(|bundle| !bundle.starts_with('-') && bundle.contains(flag))
}

/// Whether a word is this long option, perhaps shortened, but not below the shortest form.
fn has_long(word: &Word, option: &str, shortest: &str) -> bool {
    let name = text(word).split('=').next().unwrap_or_default();
    name.len() >= shortest.len() && option.starts_with(name)
}

/// The values of these options.
fn options(arguments: &[Word], short: &str, long: &[&str]) -> Vec<Shape> {
    let mut found = Vec::new();
    for (index, word) in arguments.iter().enumerate() {
        let next = arguments.get(index + 1).map(Word::to_shape);
        let Some(value) = word.value.as_deref() else {
            found.extend(shapes(std::iter::once(word)));
            continue;
        };
        if long.iter().any(|option| has_long(word, option, "--x")) {
            match value.split_once('=') {
                Some((_, value)) => found.push(Shape::literal(value)),
                None => found.extend(next),
            }
        } else if let Some(bundle) =
            value.strip_prefix('-').filter(|bundle| !bundle.starts_with('-'))
            && let Some(at) = bundle.find(|flag| short.contains(flag))
        {
            let rest = bundle.get(at + 1..).unwrap_or_default();
            found.push(Shape::literal(rest));
            found.extend(next.filter(|_| rest.is_empty()));
        }
    }
    found
}

/// Options of `rsync` that name files or directories which it writes.
const RSYNC_OUTPUTS: [&str; 6] = [
    "--backup-dir",
    "--log-file",
    "--only-write-batch",
    "--partial-dir",
    "--temp-dir",
    "--write-batch",
];

/// The destinations of copies: the last operand, or the directory that an option names, and the names in it.
fn copied(program: &str, arguments: &[Word]) -> Vec<Shape> {
    if arguments.iter().any(|word| has_long(word, "--remove-source-files", "--rem")) {
        return all(arguments);
    }
    let (short, long) = match program {
        "rsync" => ("T", &RSYNC_OUTPUTS[..]),
        _ => ("t", &["--target-directory"][..]),
    };
    let into = options(arguments, short, long);
    let is_operand = |word: &&Word| !is_option(word);
    let operands: Vec<&Word> = meant(arguments).into_iter().filter(is_operand).collect();
    let last = operands.last().map(|word| word.to_shape());
    let mut found = Vec::new();
    for directory in into.into_iter().chain(last) {
        for word in &operands {
            let name = word.value.as_deref().map(|value| base_name(value.trim_end_matches('/')));
            if let Some(name) = name {
                let mut landing = directory.clone();
                landing.push_text("/");
                landing.push_text(name);
                found.push(landing);
            }
        }
        found.push(directory);
    }
    // A link without a name of its own gets that of its target.
    if let ("ln", [only]) = (program, operands.as_slice()) {
        found.extend(only.value.as_deref().map(|value| Shape::literal(base_name(value))));
    }
    found
}

/// The files that `find` writes or removes.
fn found(arguments: &[Word]) -> Vec<Shape> {
    let values: Vec<&str> = arguments.iter().map(text).collect();
    let is_output = |option: &Word| {
        option.value.as_deref().is_none_or(|value| value.starts_with("-fprint") || value == "-fls")
    };
    let outputs = arguments.iter().zip(arguments.iter().skip(1));
    let mut found: Vec<Shape> =
        outputs.filter(|(option, _)| is_output(option)).map(|(_, file)| file.to_shape()).collect();
    if values.contains(&"-delete") {
        let roots = arguments.iter().zip(&values).take_while(|(_, value)| !value.starts_with('-'));
        found.extend(roots.map(|(word, _)| word.to_shape()));
    }
    found
}

/// Git commands that write only commits and other git data, whatever their operands name.
const GIT_LEAVING: [&str; 52] = [
    "add",
    "am",
    "annotate",
    "apply",
    "bisect",
    "blame",
    "branch",
    "cat-file",
    "check-attr",
    "check-ignore",
    "checkout",
    "cherry",
    "cherry-pick",
    "clean",
    "commit",
    "count-objects",
    "describe",
    "diff",
    "diff-files",
    "diff-index",
    "diff-tree",
    "fetch",
    "for-each-ref",
    "fsck",
    "gc",
    "grep",
    "hash-object",
    "log",
    "ls-files",
    "ls-remote",
    "ls-tree",
    "merge",
    "merge-base",
    "name-rev",
    "notes",
    "pull",
    "push",
    "range-diff",
    "rebase",
    "reflog",
    "remote",
    "reset",
    "restore",
    "rev-list",
    "rev-parse",
    "revert",
    "shortlog",
    "show",
    "stash",
    "status",
    "switch",
    "tag",
];

fn git(words: &[Word]) -> Vec<Shape> {
    let plain = git_runs::without_global_options(words);
    let before = words.len() - plain.as_ref().map_or(words.len(), Vec::len);
    let globals = words.get(1..=before).unwrap_or_default();
    let words = plain.as_deref().unwrap_or(words);
    let arguments = words.get(2..).unwrap_or_default();
    // Checked-out files go there.
    let mut found = options(globals, "", &["--work-tree"]);
    found.extend(match words.get(1).and_then(|word| word.value.as_deref()) {
        Some("config") => git_config(arguments),
        Some("clone") => operands(arguments)
            .filter(|word| !word.written.contains(':'))
            .map(Word::to_shape)
            .collect(),
        Some(name) if GIT_LEAVING.contains(&name) => {
            options(arguments, "", &["--output", "--output-directory"])
        }
        _ => all(arguments),
    });
    found
}

/// The file that `git config` writes, if an option names it.
fn git_config(arguments: &[Word]) -> Vec<Shape> {
    let options_only = arguments.iter().take_while(|word| text(word) != "--");
    let reads = |word: &Word| {
        let value = word.value.as_deref().unwrap_or_default();
        value.starts_with("--get") || matches!(value, "--list" | "-l")
    };
    let lists = arguments.first().is_some_and(|word| matches!(text(word), "get" | "list"));
    if lists || options_only.clone().any(reads) {
        return Vec::new();
    }
    options(arguments, "f", &["--file"])
}
