//! Read-only forms of `git`.
//!
//! A repository's configuration names programs that even `git status` runs: fsmonitor, hooks, filters, textconv,
//! signature checks, transports. It can also move the work tree or the objects to another directory. Reading is
//! therefore free only in a repository that the user trusts.

use std::path::{Path, PathBuf};

use super::options::{Arguments, Options};
use super::read_only::ReadFiles;
use crate::links::PathKind;
use crate::paths::{below, normal};
use crate::policy::GitCheck;
use crate::scene::Scene;

/// Whether git uses the trusted repository in all these directories, and no other one on the way there.
pub(super) fn is_ours(places: &[PathBuf], scene: Scene<'_>) -> bool {
    let Some(repository) = &scene.policy.trusted_repository else { return false };
    let repository = normal(repository);
    let uses_it = |place: &PathBuf| {
        let is_inside = scene.spots(place).all(|spot| below(&spot, &repository).is_some());
        let place = scene.links.resolve(place);
        let mut way = place.ancestors().take_while(|directory| *directory != repository);
        is_inside && !way.any(|directory| may_be_repository(directory, scene))
    };
    let is_accepted = || scene.policy.git_check.as_ref().is_none_or(GitCheck::passes);
    !places.is_empty() && places.iter().all(uses_it) && is_accepted()
}

/// Whether git may use this directory as a repository or a work tree: a submodule, a clone, or files that only look
/// like a bare repository.
fn may_be_repository(directory: &Path, scene: Scene<'_>) -> bool {
    [".git", "HEAD"].iter().any(|name| scene.links.kind(&directory.join(name)) != PathKind::Missing)
}

/// Options for the display of commits and differences. Not here: options that write (`--output`), read other files
/// (`-O`, `--no-index`, `--stdin`) or start programs (`--ext-diff`, `--textconv`, `--show-signature`).
const SHOW: Options = Options {
    plain: "pusabwzRWiEFPgcmtr0123456789 patch no-patch raw numstat shortstat summary name-only \
            name-status patch-with-stat patch-with-raw cached staged merge-base minimal patience \
            histogram exit-code quiet no-color no-renames full-index binary text \
            ignore-space-at-eol ignore-space-change ignore-all-space ignore-blank-lines \
            function-context no-ext-diff no-textconv no-prefix check pickaxe-all pickaxe-regex \
            find-copies-harder oneline all graph reverse merges no-merges first-parent follow \
            full-history topo-order date-order author-date-order left-right left-only right-only \
            cherry-pick cherry-mark cherry walk-reflogs boundary simplify-merges \
            simplify-by-decoration no-decorate abbrev-commit no-abbrev-commit relative-date parents \
            children regexp-ignore-case extended-regexp fixed-strings perl-regexp all-match \
            invert-grep no-notes no-mailmap no-color-moved no-expand-tabs no-abbrev",
    text: "USGnL unified inter-hunk-context diff-algorithm diff-filter word-diff-regex src-prefix \
           dst-prefix skip-to rotate-to max-count skip since after until before author committer \
           grep date format decorate-refs decorate-refs-exclude min-parents max-parents",
    optional: "MCB stat dirstat color color-words color-moved word-diff relative find-renames \
               find-copies break-rewrites abbrev ignore-submodules pretty decorate branches tags \
               remotes no-walk",
    path: "",
};

const STATUS: Options = Options {
    plain: "sbzv short branch show-stash long verbose ahead-behind no-ahead-behind renames no-renames \
            no-column null",
    text: "",
    optional: "u porcelain untracked-files ignored column find-renames ignore-submodules",
    path: "",
};

const REV_PARSE: Options = Options {
    plain: "q show-toplevel git-dir absolute-git-dir git-common-dir is-inside-work-tree \
            is-inside-git-dir is-bare-repository is-shallow-repository show-prefix show-cdup verify \
            quiet symbolic symbolic-full-name all branches tags remotes",
    text: "",
    optional: " abbrev-ref short",
    path: "",
};

const LS_FILES: Options = Options {
    plain: "cdmokstuvfzi cached deleted modified others ignored stage unmerged killed directory \
            no-empty-directory full-name exclude-standard error-unmatch deduplicate eol",
    text: "x exclude",
    optional: " abbrev",
    path: "",
};

const BLAME: Options = Options {
    plain: "cbltsefnpw root show-stats incremental porcelain line-porcelain show-name show-number \
            show-email minimal first-parent",
    text: "L abbrev date ignore-rev",
    optional: "MC",
    path: "",
};

const DESCRIBE: Options = Options {
    plain: " all tags long always contains exact-match first-parent",
    text: " candidates match exclude",
    optional: " abbrev dirty broken",
    path: "",
};

/// Lists of branches. Without one of [`FILTERS`], git would create the operand.
const BRANCH: Options = Options {
    plain: "arvi all remotes verbose list show-current ignore-case no-color no-column no-abbrev \
            omit-empty",
    text: " sort format points-at",
    optional: " contains no-contains merged no-merged color column abbrev",
    path: "",
};

/// Lists of tags. `-v` is not here: it checks signatures.
const TAG: Options = Options {
    plain: "li list ignore-case no-color no-column omit-empty",
    text: " sort format points-at",
    optional: "n contains no-contains merged no-merged color column",
    path: "",
};

/// Options that make an operand of `git branch` and `git tag` a pattern or a commit.
const FILTERS: [&str; 7] =
    ["l", "list", "contains", "no-contains", "merged", "no-merged", "points-at"];

/// The paths that the command reads, if it only reads. Options before the subcommand may load another configuration.
pub(super) fn reads<'a>(words: &[&'a str]) -> Option<ReadFiles<'a>> {
    let words = match words.split_first() {
        Some((&"--no-pager", rest)) => rest,
        _ => words,
    };
    let (subcommand, words) = words.split_first()?;
    let options = match *subcommand {
        "diff" | "log" | "show" => &SHOW,
        "status" => &STATUS,
        "rev-parse" => &REV_PARSE,
        "ls-files" => &LS_FILES,
        "blame" => &BLAME,
        "describe" => &DESCRIBE,
        "branch" => &BRANCH,
        "tag" => &TAG,
        "remote" => &Options { plain: "v verbose", ..Options::NONE },
        "stash" if *words == ["list"] => return Some(here(true)),
        _ => return None,
    };
    let arguments = Arguments::read(words, options)?;
    if arguments.given.iter().any(|given| given.value.is_some_and(starts_program)) {
        return None;
    }
    let lists = matches!(*subcommand, "branch" | "tag" | "remote");
    if lists && !arguments.operands.is_empty() && !arguments.has(&FILTERS) {
        return None;
    }
    let searches = match *subcommand {
        "diff" | "log" | "show" => true,
        "status" => arguments.has(&["v", "verbose"]),
        _ => false,
    };
    let mut reads = here(searches);
    reads.paths.extend(&arguments.operands);
    Some(reads)
}

fn here<'a>(searches: bool) -> ReadFiles<'a> {
    ReadFiles { paths: vec!["."], searches, ..ReadFiles::default() }
}

/// Whether a format makes git check signatures or describe commits, for which it starts programs. A sign or a space may
/// stand between the percent sign and its letter.
fn starts_program(value: &str) -> bool {
    let checks =
        |placeholder: &str| placeholder.trim_start_matches(['+', '-', ' ']).starts_with('G');
    value.split('%').skip(1).any(checks)
        || value.contains("signature")
        || value.contains("(describe")
}
