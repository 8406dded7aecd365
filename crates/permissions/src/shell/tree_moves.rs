//! Git commands that change a checkout, while others may work in the same tree.
//!
//! A command counts as changing unless it is known to leave the files and the branch of a checkout alone: git has
//! aliases, and runs every program on the machine that is named `git-NAME`.

use std::path::{Path, PathBuf};

use super::programs::base_name;
use super::script::{Command, Word};
use super::shape::Shape;
use super::wrappers::unwrapped;
use crate::links::PathKind;
use crate::scene::Scene;

/// Commands that leave the files and the branch of a checkout alone, with any options.
const LEAVES: &str = "add annotate archive blame bugreport bundle cat-file check-attr check-ignore check-mailmap \
    check-ref-format cherry column commit-graph commit-tree config count-objects describe diagnose diff diff-files \
    diff-index diff-tree fast-export fmt-merge-msg for-each-ref format-patch fsck gc get-tar-commit-id grep hash-object \
    help index-pack init interpret-trailers log ls-files ls-remote ls-tree maintenance merge-base merge-tree mktag mktree \
    multi-pack-index name-rev notes pack-objects pack-refs patch-id prune prune-packed push range-diff remote \
    repack request-pull rev-list rev-parse shortlog show show-branch show-index show-ref status stripspace tag \
    unpack-file unpack-objects update-index update-server-info var verify-commit verify-pack verify-tag version whatchanged \
    write-tree";

/// Commands that change them, except for some forms.
const CHANGES: [&str; 27] = [
    "am",
    "apply",
    "bisect",
    "branch",
    "checkout",
    "checkout-index",
    "cherry-pick",
    "clean",
    "commit",
    "fetch",
    "merge",
    "mv",
    "pull",
    "read-tree",
    "rebase",
    "reflog",
    "reset",
    "restore",
    "revert",
    "rm",
    "sparse-checkout",
    "stash",
    "submodule",
    "switch",
    "symbolic-ref",
    "update-ref",
    "worktree",
];

/// Forms that leave them alone: one of the first options must be present, and no other options than the first and the
/// second.
const FORMS: [(&str, &str, &str); 9] = [
    ("am", "--show-current-patch", ""),
    ("apply", "--cached --check --numstat --stat --summary", "-p -v -z -R -C --verbose --quiet"),
    ("clean", "-n --dry-run", "-d -x -X -f -q -e --force --quiet --exclude"),
    ("mv", "-n --dry-run", "-f -k -v --force --verbose"),
    ("pull", "--dry-run", "-q -v --quiet --verbose"),
    ("read-tree", "-n --dry-run", "-m -i -u -v -q --reset --quiet"),
    ("rebase", "--show-current-patch", ""),
    ("restore", "-S --staged", "-q -s -p --source --quiet --patch"),
    ("rm", "-n --cached --dry-run", "-r -f -q --force --quiet --ignore-unmatch"),
];

/// Commands whose next word tells their effect, with the words for which they leave files alone.
const VERBS: [(&str, &str); 5] = [
    ("bisect", "help log terms view visualize"),
    ("sparse-checkout", "check-rules list"),
    ("stash", "create list show store"),
    ("submodule", "status summary"),
    ("worktree", "add list lock prune unlock"),
];

/// Options before the subcommand with a value in the next word.
const VALUED: [&str; 8] = [
    "-C",
    "-c",
    "--attr-source",
    "--config-env",
    "--git-dir",
    "--namespace",
    "--super-prefix",
    "--work-tree",
];

/// The effect of a git command on a checkout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    Leaves,
    Changes,
    /// Git does not have the command, or its name is not known.
    Unknown,
}

/// A command that changes a checkout.
#[derive(Debug)]
pub(crate) struct TreeMove {
    pub(crate) command: String,
    /// The directories that it may be about; `None` if they are not known.
    places: Option<Vec<PathBuf>>,
}

impl TreeMove {
    /// The change of a checkout by a command, if it is a git command and makes one.
    pub(super) fn of(command: &Command) -> Option<Self> {
        let words = unwrapped(&command.words);
        let (program, arguments) = words.split_first()?;
        let is_git = match program.value.as_deref() {
            Some(program) if base_name(program) == "git" => true,
            None if may_be_git(program) => false,
            Some(_) | None => return None,
        };
        let line = Line::read(arguments.iter().map(|word| word.value.as_deref()))?;
        match line.effect() {
            Effect::Changes => {}
            Effect::Unknown if is_git => {}
            Effect::Leaves | Effect::Unknown => return None,
        }
        Some(Self { command: command.text(), places: line.places(command) })
    }

    /// The same for a text without separate words.
    pub(super) fn of_text(text: &str) -> Option<Self> {
        let mut words = text.split(' ').filter(|word| !word.is_empty());
        let is_git = words.next().is_some_and(|program| base_name(program) == "git");
        let line = is_git.then(|| Line::read(words.map(Some))).flatten()?;
        let moved = Self { command: text.to_owned(), places: None };
        (line.effect() == Effect::Changes).then_some(moved)
    }

    /// The same in any directory: the variables of the command line may lead git anywhere.
    pub(super) fn anywhere(self) -> Self {
        Self { places: None, ..self }
    }

    /// Whether it may be about a checkout.
    pub(crate) fn may_be_in(&self, checkout: &Path, scene: Scene<'_>) -> bool {
        let Some(places) = &self.places else { return true };
        let in_it = |place: &Path| {
            let mut way = place.ancestors().take_while(|above| *above != checkout);
            place.starts_with(checkout)
                && way.all(|above| {
                    let kind = scene.links.kind(&above.join(".git"));
                    matches!(kind, PathKind::Missing | PathKind::Unknown)
                })
        };
        places.iter().any(|place| scene.spots(place).any(|spot| in_it(&spot)))
    }
}

fn may_be_git(program: &Word) -> bool {
    let shape = program.to_shape();
    shape.intersects(&Shape::literal("git"))
        || shape.intersects(&Shape::any_then(&Shape::literal("/git")))
}

/// A git command line without the program; `None` for an unknown word.
struct Line<'a> {
    name: Option<&'a str>,
    rest: Vec<Option<&'a str>>,
    /// The directories to work in: the values of `-C`.
    directories: Vec<Option<&'a str>>,
    /// Whether it names a repository or a work tree.
    leads_elsewhere: bool,
}

impl<'a> Line<'a> {
    fn read(mut words: impl Iterator<Item = Option<&'a str>>) -> Option<Self> {
        let mut directories = Vec::new();
        let mut leads_elsewhere = false;
        let name = loop {
            let word = words.next()?;
            let Some(option) = word.filter(|word| word.starts_with('-')) else { break word };
            if matches!(option, "--help" | "--version" | "-h" | "-v") {
                return None;
            }
            let option_name = option.split_once('=').map_or(option, |(name, _)| name);
            leads_elsewhere |= matches!(option_name, "--git-dir" | "--work-tree" | "--bare");
            if VALUED.contains(&option) {
                let value = words.next()?;
                if option == "-C" {
                    directories.push(value);
                }
            }
        };
        Some(Self { name, rest: words.collect(), directories, leads_elsewhere })
    }

    fn effect(&self) -> Effect {
        let Some(name) = self.name else { return Effect::Unknown };
        let is_named = |list: &str| list.split_ascii_whitespace().any(|it| it == name);
        if is_named(LEAVES) {
            return Effect::Leaves;
        }
        if !CHANGES.contains(&name) {
            return Effect::Unknown;
        }
        let asks_for_help = matches!(self.rest.first(), Some(Some("-h" | "--help")));
        let leaves = asks_for_help || self.leaves(name);
        if leaves { Effect::Leaves } else { Effect::Changes }
    }

    /// Whether this form of a changing command leaves files alone.
    fn leaves(&self, name: &str) -> bool {
        match name {
            "commit" => !self.may_have("--amend", "--am"),
            "fetch" => !self.may_have("-u", "--upd"),
            "branch" => self.leaves_branch(),
            "reset" => self.leaves_by_reset(),
            // The others delete stashes, or have a branch be where it was.
            "reflog" => {
                !matches!(self.rest.first(), Some(None | Some("delete" | "drop" | "expire")))
            }
            // With one name, it prints the value.
            "symbolic-ref" => {
                self.has_only("-q --quiet --short --recurse --no-recurse")
                    && self.operands().count() == 1
            }
            _ => self.leaves_by_verb(name) || self.leaves_by_form(name),
        }
    }

    fn leaves_by_verb(&self, name: &str) -> bool {
        let Some((_, verbs)) = VERBS.iter().find(|(command, _)| *command == name) else {
            return false;
        };
        let is_verb = |word: &str| verbs.split(' ').any(|verb| verb == word);
        match self.rest.first() {
            Some(Some(word)) => is_verb(word),
            Some(None) => false,
            // Alone, it stashes; the others print their usage, or a list.
            None => name != "stash",
        }
    }

    fn leaves_by_form(&self, name: &str) -> bool {
        let form = FORMS.iter().find(|(command, ..)| *command == name);
        form.is_some_and(|(_, needed, others)| {
            let needs = |option: &String| needed.split(' ').any(|it| it == option);
            self.options().any(|option| needs(&option))
                && self.has_only(&format!("{needed} {others}"))
        })
    }

    /// Branches are made, deleted and listed without a change here, but the current one may be renamed.
    fn leaves_branch(&self) -> bool {
        self.has_only(
            "-a -r -v -l -d -D -f -i -q -t -u --all --remotes --verbose --list --delete --force --quiet --track \
             --no-track --set-upstream-to --unset-upstream --show-current --contains --no-contains --merged --no-merged \
             --points-at --sort --format --color --no-color --column --no-column --abbrev --no-abbrev --ignore-case \
             --edit-description --create-reflog --omit-empty",
        )
    }

    /// Without a commit as the branch's new target, only the index is changed.
    fn leaves_by_reset(&self) -> bool {
        let before = self.rest.iter().take_while(|word| **word != Some("--"));
        let mut operands = before.filter(|word| !word.is_some_and(|it| it.starts_with('-')));
        let stays = match operands.next() {
            None => true,
            Some(first) => matches!(first, Some("HEAD" | "@")),
        };
        stays
            && self
                .has_only("-q -N -p --quiet --mixed --intent-to-add --patch --refresh --no-refresh")
    }

    /// The options, one by one and without values.
    fn options(&self) -> impl Iterator<Item = String> {
        let words = self.rest.iter().take_while(|word| **word != Some("--"));
        let options =
            words.filter_map(|word| word.filter(|it| it.len() > 1 && it.starts_with('-')));
        options.flat_map(|option| {
            let name = option.split_once('=').map_or(option, |(name, _)| name);
            if name.starts_with("--") {
                return vec![name.to_owned()];
            }
            // A number belongs to the letter before it.
            let letters = name.chars().skip(1).filter(|c| !c.is_ascii_digit());
            letters.map(|letter| format!("-{letter}")).collect()
        })
    }

    fn operands(&self) -> impl Iterator<Item = Option<&'a str>> {
        self.rest.iter().copied().filter(|word| !word.is_some_and(|it| it.starts_with('-')))
    }

    /// Whether all options are among these, and no word is unknown.
    fn has_only(&self, options: &str) -> bool {
        let is_known = |option: String| options.split_ascii_whitespace().any(|it| it == option);
        let mut before = self.rest.iter().take_while(|word| **word != Some("--"));
        before.all(Option::is_some) && self.options().all(is_known)
    }

    /// Whether an option may be present, by its letter or by the prefix of its name.
    fn may_have(&self, option: &str, beginning: &str) -> bool {
        let mut before = self.rest.iter().take_while(|word| **word != Some("--"));
        self.options().any(|it| it == option || it.starts_with(beginning))
            // The messages of commits are often computed.
            || self.name != Some("commit") && before.any(Option::is_none)
    }

    /// The directories that the command may be about.
    fn places(&self, command: &Command) -> Option<Vec<PathBuf>> {
        let is_of_all = self.name == Some("worktree") || self.leads_elsewhere;
        if is_of_all || command.places.known().is_empty() {
            return None;
        }
        let mut places = command.places.known().to_vec();
        for directory in &self.directories {
            let directory = Path::new((*directory)?);
            places = places.iter().map(|place| place.join(directory)).collect();
        }
        Some(places)
    }
}

#[cfg(test)]
mod tests;
