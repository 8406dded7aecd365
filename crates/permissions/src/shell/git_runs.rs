//! Programs that `git` runs because of its arguments.

use super::script::Word;
use super::shape::Shape;

/// Files in a repository that decide which programs git runs in it: its configuration and its hooks.
pub(super) const OBEYED_FILES: [&str; 23] = [
    "applypatch-msg",
    "commit-msg",
    "config",
    "fsmonitor-watchman",
    "post-applypatch",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "post-receive",
    "post-rewrite",
    "post-update",
    "pre-applypatch",
    "pre-auto-gc",
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "pre-rebase",
    "pre-receive",
    "prepare-commit-msg",
    "proc-receive",
    "reference-transaction",
    "update",
];

/// Drops the options before the subcommand: `git -C there -c name=value push` is `git push`.
pub(super) fn without_global_options(words: &[Word]) -> Option<Vec<Word>> {
    let (program, mut rest) = words.split_first()?;
    let is_option = |word: &Word| word.value.as_deref().is_some_and(|value| value.starts_with('-'));
    while let Some((option, after)) = rest.split_first().filter(|(word, _)| is_option(word)) {
        let is_valued = option.value.as_deref().is_some_and(|option| {
            VALUED.contains(&option) || matches!(option, "-c" | "--config-env" | "--exec-path")
        });
        rest = if is_valued { after.get(1..)? } else { after };
    }
    let plain = [std::slice::from_ref(program), rest].concat();
    (plain.len() < words.len()).then_some(plain)
}

/// Options before the subcommand with a value in the next word, if it is not attached. Options that may name a program
/// are not here.
const VALUED: [&str; 7] = [
    "-C",
    "--attr-source",
    "--git-dir",
    "--namespace",
    "--shallow-file",
    "--super-prefix",
    "--work-tree",
];

/// Prefixes of options before the subcommand that may name a program.
const LOADING: [&str; 3] = ["-c", "--config", "--exec-path"];

/// Whether the words before the subcommand may name programs to run: by an option, or by a word that may be one.
pub(super) fn may_load(words: &[Word]) -> bool {
    let mut arguments = words.iter().skip(1);
    while let Some(word) = arguments.next() {
        let Some(value) = word.value.as_deref() else {
            return word.splits || word.to_shape().intersects(&Shape::any_after('-'));
        };
        if LOADING.iter().any(|option| value.starts_with(option)) {
            return true;
        }
        if VALUED.contains(&value) {
            if arguments.next().is_some_and(may_be_several) {
                return true;
            }
        } else if !value.starts_with('-') {
            return false;
        }
    }
    false
}

/// Whether the shell may make several words of this one.
fn may_be_several(word: &Word) -> bool {
    word.value.is_none() && word.splits && word.to_shape().may_have(char::is_whitespace)
}

/// Keys of the configuration that name no program.
const PLAIN_KEYS: [&str; 19] = [
    "advice.",
    "author.",
    "branch.",
    "color.",
    "commit.gpgsign=false",
    "committer.",
    "core.abbrev",
    "core.autocrlf",
    "core.filemode",
    "core.pager=cat",
    "core.quotepath",
    "diff.renames",
    "http.",
    "init.defaultbranch",
    "tag.gpgsign=false",
    "user.email",
    "user.name",
    "user.signingkey",
    "user.useconfigonly",
];

/// Whether a setting, `name` or `name=value` in lower case, names no program.
fn is_plain_setting(setting: &str) -> bool {
    let name = setting.split('=').next().unwrap_or(setting);
    PLAIN_KEYS.iter().any(|plain| match plain {
        section if section.ends_with('.') => name.starts_with(section),
        whole if whole.contains('=') => setting == *whole,
        plain => name == *plain,
    })
}

/// Options of a command that make git run a program, and the letters that take a value: the text after one of these
/// letters in a bundle is no option.
struct Running {
    letters: &'static str,
    names: &'static [&'static str],
    valued: &'static str,
}

impl Running {
    fn is_in(&self, words: &[&Word]) -> bool {
        words.iter().any(|word| {
            // It may be an option.
            let start: String;
            let value = match word.value.as_deref() {
                Some(value) => value,
                None if word.splits && word.to_shape().has_any() => return true,
                None => {
                    start = word.to_shape().start().collect();
                    start.as_str()
                }
            };
            if let Some(long) = value.strip_prefix("--") {
                let name = long.split('=').next().unwrap_or(long);
                return !name.is_empty()
                    && self.names.iter().any(|option| option.starts_with(name));
            }
            let Some(bundle) = value.strip_prefix('-') else { return false };
            let mut letters = bundle.chars();
            letters
                .find(|letter| self.letters.contains(*letter) || self.valued.contains(*letter))
                .is_some_and(|letter| self.letters.contains(letter))
        })
    }
}

/// Whether the words may make git run a program that they name, or that a configuration in them names.
pub(super) fn may_run_others(words: &[Word]) -> bool {
    let mut arguments = words.iter().skip(1);
    let subcommand = loop {
        let Some(word) = arguments.next() else { return false };
        let Some(value) = word.value.as_deref() else { return true };
        match value {
            "-c" => {
                let key = arguments.next().and_then(|word| word.value.as_deref());
                let key = key.map(str::to_lowercase).unwrap_or_default();
                if !is_plain_setting(&key) {
                    return true;
                }
            }
            option if VALUED.contains(&option) => {
                if arguments.next().is_some_and(may_be_several) {
                    return true;
                }
            }
            "--no-pager"
            | "--no-replace-objects"
            | "--bare"
            | "--no-optional-locks"
            | "--literal-pathspecs"
            | "--icase-pathspecs"
            | "--version"
            | "--help"
            | "-P" => {}
            option if option.starts_with("--git-dir=") || option.starts_with("--work-tree=") => {}
            option if option.starts_with('-') => return true,
            name => break name,
        }
    };
    let rest: Vec<&Word> = arguments.collect();
    let has = |starts: &[&str]| {
        rest.iter().any(|word| match word.value.as_deref() {
            Some(value) => starts.iter().any(|start| value.starts_with(start)),
            // It may be an option.
            None => word.splits && word.to_shape().has_any(),
        })
    };
    match subcommand {
        "add" | "am" | "apply" | "blame" | "branch" | "checkout" | "cherry-pick" | "clean"
        | "commit" | "describe" | "diff" | "log" | "ls-files" | "ls-tree" | "merge"
        | "merge-base" | "mv" | "notes" | "reflog" | "reset" | "restore" | "rev-list"
        | "rev-parse" | "revert" | "rm" | "shortlog" | "show" | "stash" | "status" | "switch"
        | "tag" | "worktree" | "cat-file" | "name-rev" | "show-ref" | "for-each-ref" | "gc"
        | "fsck" | "prune" | "whatchanged" | "show-branch" | "count-objects" | "version"
        | "update-index" | "hash-object" | "write-tree" | "commit-tree" | "update-ref"
        | "symbolic-ref" | "check-ignore" | "check-attr" | "var" | "range-diff" | "cherry"
        | "format-patch" | "sparse-checkout" => false,
        "grep" => {
            Running { letters: "O", names: &["open-files-in-pager"], valued: "efABCm" }.is_in(&rest)
        }
        "rebase" => {
            Running { letters: "xi", names: &["exec", "interactive"], valued: "sXC" }.is_in(&rest)
        }
        "init" => Running { letters: "", names: &["template"], valued: "b" }.is_in(&rest),
        "clone" => {
            let names = &["upload-pack", "config", "template", "bundle-uri"];
            has(&["ext::", "fd::"]) || Running { letters: "uc", names, valued: "boj" }.is_in(&rest)
        }
        "fetch" | "pull" | "push" | "ls-remote" | "remote" | "archive" | "submodule" => {
            let names = &["upload-pack", "receive-pack", "exec"];
            has(&["ext::", "fd::", "foreach"])
                || Running { letters: "", names, valued: "" }.is_in(&rest)
        }
        "bisect" => has(&["run"]),
        "config" => may_set_program(&rest),
        _ => true,
    }
}

/// Whether options of a command name a program for git to run.
pub(super) fn is_told_program(words: &[Word]) -> bool {
    let plain = without_global_options(words);
    let words = plain.as_deref().unwrap_or(words);
    let rest: Vec<&Word> = words
        .iter()
        .skip(2)
        .filter(|word| word.value.is_some() || word.to_shape().start().next() == Some('-'))
        .collect();
    let says =
        |wanted: &str| rest.first().is_some_and(|word| word.value.as_deref() == Some(wanted));
    let has = |letters, names, valued| Running { letters, names, valued }.is_in(&rest);
    match words.get(1).and_then(|word| word.value.as_deref()) {
        Some("grep") => has("O", &["open-files-in-pager"], "efABCm"),
        Some("rebase") => has("x", &["exec"], "sXC"),
        Some("difftool") => has("x", &["extcmd"], "t"),
        Some("clone") => has("uc", &["upload-pack", "config"], "boj"),
        Some("archive" | "fetch" | "ls-remote" | "pull" | "push") => {
            has("", &["upload-pack", "receive-pack", "exec"], "")
        }
        Some("bisect") => says("run"),
        Some("submodule") => says("foreach"),
        _ => false,
    }
}

/// Whether `git config` may set a key that names a program: by a key that is not known to be harmless, by another name
/// for a section, or in an editor.
fn may_set_program(rest: &[&Word]) -> bool {
    let values: Vec<&str> =
        rest.iter().map(|word| word.value.as_deref().unwrap_or(&word.written)).collect();
    let names = &["rename-section", "edit"];
    let is_told = Running { letters: "e", names, valued: "f" }.is_in(rest)
        || matches!(values.first(), Some(&("edit" | "rename-section")));
    let is_odd = |word: &&Word| {
        let key = word.value.as_deref().map(str::to_lowercase).unwrap_or_default();
        let is_key = key.contains('.') && !key.starts_with('-');
        word.value.is_none() || (is_key && !is_plain_setting(&key))
    };
    let sets = values.iter().filter(|value| !value.starts_with('-')).count() > 1;
    is_told || sets && rest.iter().any(is_odd)
}
