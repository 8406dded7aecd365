//! Commands of git that change what is checked out: others that work in the same tree lose the ground below.

/// Commands that move the branch, or change files that the command line does not all name.
const MOVES: [&str; 18] = [
    "am",
    "bisect",
    "checkout",
    "checkout-index",
    "cherry-pick",
    "clean",
    "filter-branch",
    "merge",
    "pull",
    "read-tree",
    "rebase",
    "reset",
    "restore",
    "revert",
    "sparse-checkout",
    "stash",
    "switch",
    "update-ref",
];

/// Forms of them that only look, or leave the files alone: with this as the next word, or with this option.
const LOOKS: [(&str, &[&str]); 7] = [
    ("bisect", &["log", "view", "visualize"]),
    ("clean", &["-n", "-nd", "-dn", "--dry-run"]),
    ("pull", &["--dry-run"]),
    ("rebase", &["--show-current-patch"]),
    ("restore", &["--staged", "-S"]),
    ("sparse-checkout", &["list"]),
    ("stash", &["create", "list", "show"]),
];

/// Options with which any of them says how it is used.
const HELP: [&str; 2] = ["--help", "-h"];

/// Options before the subcommand whose value is the next word.
const VALUED: [&str; 6] = ["-C", "-c", "--git-dir", "--namespace", "--super-prefix", "--work-tree"];

/// Whether the text of a command is git changing what is checked out.
pub(super) fn moves_tree(text: &str) -> bool {
    let mut words = text.split(' ').filter(|word| !word.is_empty());
    let is_git = |program: &str| program == "git" || program.ends_with("/git");
    if !words.next().is_some_and(is_git) {
        return false;
    }
    let command = loop {
        match words.next() {
            None => return false,
            Some(option) if VALUED.contains(&option) => {
                words.next();
            }
            Some(option) if option.starts_with('-') => {}
            Some(command) => break command,
        }
    };
    let rest: Vec<&str> = words.collect();
    let looks = LOOKS.iter().find(|(name, _)| *name == command).map_or(&[][..], |(_, forms)| forms);
    let is_look = |(at, word): (usize, &&str)| {
        HELP.contains(word) || (looks.contains(word) && (at == 0 || word.starts_with('-')))
    };
    let writes = rest.iter().any(|word| matches!(*word, "--worktree" | "-W" | "-f" | "--force"));
    MOVES.contains(&command) && (writes || !rest.iter().enumerate().any(is_look))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_the_tree_is_told_from_what_looks() {
        for text in [
            "git checkout main",
            "git -C sub switch -c x",
            "/usr/bin/git reset --hard",
            "git -c a=b stash",
            "git stash pop",
            "git --no-pager rebase main",
            "git restore --staged --worktree a",
            "git clean -fd",
            "git checkout list",
            "git stash push list",
        ] {
            assert!(moves_tree(text), "{text}");
        }
        for text in [
            "git status",
            "git stash list",
            "git clean -n",
            "git restore --staged a.txt",
            "git checkout --help",
            "git pull --dry-run origin",
            "git log checkout",
            "git commit -m checkout",
            "git -C reset status",
            "digit checkout",
            "git",
        ] {
            assert!(!moves_tree(text), "{text}");
        }
    }
}
