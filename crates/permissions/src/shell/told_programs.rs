//! Options that name another program for a program to run. An allow rule with a star does not approve them: its author
//! thought of the program, not of the one that it is told to run.

use super::git_runs;
use super::programs::family;
use super::script::Word;
use super::views::is_option;

/// Programs with the options that name another program.
const OPTIONS: [(&[&str], &[&str]); 15] = [
    (&["c++", "c89", "c99", "cc", "cpp", "g++", "gcc", "gfortran"], &["-wrapper"]),
    (&["cpio"], &["--rsh-command"]),
    (&["diff3", "sdiff"], &["--diff-program"]),
    (&["dmesg"], &["--pager"]),
    (&["install"], &["--strip-program"]),
    (&["gmake", "make"], &["-E", "--eval"]),
    (&["man"], &["-P", "--pager", "-H", "--html"]),
    (&["nc", "ncat", "netcat"], &["-e", "--exec", "--lua-exec", "--sh-exec"]),
    (&["npm", "pnpm", "yarn"], &["--script-shell"]),
    (&["rg"], &["--hostname-bin", "--pre"]),
    (&["sort"], &["--compress-program"]),
    (&["split"], &["--filter"]),
    (
        &["bsdtar", "gtar", "tar"],
        &[
            "-F",
            "--checkpoint-action",
            "--info-script",
            "--new-volume-script",
            "--rmt-command",
            "--rsh-command",
            "--to-command",
        ],
    ),
    (&["tcpdump"], &["-z"]),
    (&["zip"], &["-TT", "--unzip-command"]),
];

/// Whether options in the words name another program to run.
pub(super) fn are_told(program: &str, words: &[Word]) -> bool {
    let name = family(program);
    if name == "git" {
        return git_runs::is_told_program(words);
    }
    let arguments = words.get(1..).unwrap_or_default();
    let is_listed = |names: &[&str]| names.contains(&program) || names.contains(&name);
    let listed = OPTIONS.iter().find(|(names, _)| is_listed(names));
    let is_told = listed.is_some_and(|(_, options)| {
        arguments.iter().any(|word| {
            let known = known(word);
            // It tells how often, not what.
            !known.starts_with("--checkpoint=")
                && known != "--checkpoint"
                && is_option(&Word::known(&known, known.clone()), options)
        })
    });
    // The variable names the shell for the lines of a makefile.
    let sets_shell = |word: &Word| {
        let known = known(word);
        known.starts_with("SHELL") || known.starts_with(".SHELL")
    };
    is_told || matches!(name, "gmake" | "make") && arguments.iter().any(sets_shell)
}

/// The text of a word as far as it is known.
fn known(word: &Word) -> String {
    word.value.clone().unwrap_or_else(|| word.to_shape().start().collect())
}
