//! File commands that `acceptEdits` runs: they change files of the working directory, but no protected ones, whatever
//! links and trees a repository contains.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use centurion_permissions::Mode;

use crate::lines::{Random, effort, options};
use crate::scratch::{Scratch, State, is_allowed};

/// Names of the scratch tree, as operands of file commands.
const OPERANDS: [&str; 44] = [
    "a.txt",
    "a.txt",
    "b.txt",
    "dir",
    "dir/c.txt",
    "dir/sub",
    "dir2",
    "dir2/",
    "dir2/c.txt",
    "new",
    "new",
    "new/x",
    "new/git",
    "git",
    "out-file",
    "out-dir",
    "out-dir/",
    "out-new",
    "home-link",
    "home-link/.profile",
    "in-link",
    "in-dir",
    "in-dir/sub/up",
    "dir/out",
    "dir/a.txt",
    "dir/sub/plain",
    "dir2/b.txt",
    "fixtures",
    "fixtures/.",
    "fixtures/.git",
    "fixtures/.envrc",
    "fixtures/plain.txt",
    ".",
    "..",
    ".claude",
    ".claude/settings.json",
    ".git",
    ".git/../new",
    ".config",
    ".bash",
    "HEAD",
    "settings-link",
    "../outside/made",
    "../home/.bashrc",
];

/// Values and scripts that options and `sed` take.
const VALUES: [&str; 12] = [
    "rc",
    "-Src",
    "--suffix=rc",
    "-tdir2",
    "--target-directory=out-dir",
    "--backup",
    "s/a/b/",
    "s/a/b/w",
    "s/a/b/e",
    "1d",
    "--reference=out-file",
    "755",
];

const PROGRAMS: [&str; 7] = ["cp", "mv", "rm", "mkdir", "rmdir", "touch", "sed"];

/// The paths that must not change: everything outside, and the protected ones inside.
fn guarded(scratch: &Scratch) -> (BTreeMap<PathBuf, State>, BTreeMap<PathBuf, String>) {
    let state = scratch.state();
    let (inside, outside): (BTreeMap<_, _>, BTreeMap<_, _>) =
        state.into_iter().partition(|(path, _)| path.starts_with(&scratch.work));
    let outside =
        outside.into_iter().filter(|(path, _)| path != &scratch.root).collect::<BTreeMap<_, _>>();
    let protected = inside
        .into_keys()
        .filter(|path| is_protected(path))
        .map(|path| (path.clone(), fs::read_to_string(&path).unwrap_or_default()));
    (outside, protected.collect())
}

/// A second implementation, so that a mistake in the first shows.
fn is_protected(path: &Path) -> bool {
    let names: Vec<String> =
        path.iter().map(|name| name.to_string_lossy().to_lowercase()).collect();
    let is_directory = |name: &String| matches!(name.as_str(), ".git" | ".claude");
    let files = [".envrc", ".bashrc", ".profile", ".mcp.json", ".gitconfig", "head"];
    names.iter().any(is_directory)
        || names.windows(2).any(|pair| pair[0] == ".config" && pair[1] == "git")
        || names.last().is_some_and(|name| files.contains(&name.as_str()))
}

fn random_line(random: &mut Random, options: &BTreeMap<&str, Vec<String>>) -> String {
    let command = |random: &mut Random| {
        let program = random.pick(&PROGRAMS);
        let options = &options[program];
        let mut words = vec![program.to_owned()];
        for _ in 0..random.below(3) {
            words.push(match random.below(3) {
                0 => random.pick(&VALUES).to_owned(),
                _ => options[random.below(options.len())].clone(),
            });
        }
        if program == "sed" {
            words.push("-i".to_owned());
            words.push(random.pick(&VALUES).to_owned());
        }
        for _ in 0..=random.below(2) {
            words.push(random.pick(&OPERANDS).to_owned());
        }
        if random.below(8) == 0 {
            words = vec!["echo".to_owned(), "x".to_owned(), ">".to_owned()];
            words.push(random.pick(&OPERANDS).to_owned());
        }
        words.join(" ")
    };
    let commands: Vec<String> = (0..=random.below(3)).map(|_| command(random)).collect();
    commands.join(random.pick(&[" && ", "; "]))
}

#[test]
fn accepted_file_commands_change_nothing_that_is_protected_or_outside() {
    let options: BTreeMap<&str, Vec<String>> =
        PROGRAMS.iter().map(|program| (*program, options(program, &["--help"]))).collect();
    let mut random = Random::new(7);
    let mut scratch = Scratch::new();
    let mut policy = scratch.policy(Mode::AcceptEdits, false);
    let (mut ran, mut changed, mut wrong) = (0, 0, Vec::new());
    for _ in 0..12_000 * effort() {
        let line = random_line(&mut random, &options);
        if ran == 350 * effort() || !is_allowed(&policy, &line) {
            continue;
        }
        ran += 1;
        let (whole, before) = (scratch.state(), guarded(&scratch));
        scratch.run_line(&line);
        let is_changed = scratch.state() != whole;
        if guarded(&scratch) != before || scratch.started().is_some() {
            wrong.push(line);
        }
        if is_changed {
            changed += 1;
            scratch = Scratch::new();
            policy = scratch.policy(Mode::AcceptEdits, false);
        }
    }
    assert!(wrong.is_empty(), "{} of {ran} did harm:\n{}", wrong.len(), wrong.join("\n"));
    assert!(changed > 60, "only {changed} of {ran} lines changed anything");
}

#[test]
fn copies_and_moves_whose_targets_no_word_names_are_asked_about() {
    let scratch = Scratch::new();
    let policy = scratch.policy(Mode::AcceptEdits, false);
    for line in [
        // Through links that the repository brings.
        "cp -r dir2/. dir",
        "cp a.txt dir",
        "cp b.txt dir2",
        "cp a.txt out-dir",
        "cp a.txt out-new",
        "touch out-new",
        "echo x > out-new",
        "mkdir -p out-dir/made",
        "sed -i s/a/b/ settings-link",
        // Trees that hold protected names.
        "cp -r fixtures/. .",
        "cp -a fixtures .",
        "cp -R fixtures new",
        "cp --recursive fixtures new",
        "mv fixtures new",
        "mv fixtures/.git .",
        "mv fixtures/.envrc .",
        "rm -r fixtures",
        "rm -rf .claude",
        // Backups make other names.
        "cp -b -S rc b.txt .bash",
        "cp -bSrc b.txt .bash",
        "cp --backup --suffix=rc b.txt .bash",
        "cp --backu --suff=rc b.txt .bash",
        "mv -b -S rc b.txt .bash",
        "mv --suffix=rc --backup=simple b.txt .bash",
        "sed -irc s/a/b/ .bash",
        "sed --in-place=rc s/a/b/ .bash",
        // Links, parents and places in options.
        "cp -s a.txt new",
        "cp -l a.txt new",
        "cp -P out-file new",
        "cp -d out-file new",
        "cp --parents dir/c.txt new",
        "cp -t dir2 a.txt",
        "cp --target-directory=dir2 a.txt",
        "mv -t dir2 a.txt",
        "mv --exchange a.txt b.txt",
        "ln a.txt new",
        "ln -s a.txt new",
        // A moved link leads elsewhere, and so may a link in a moved directory.
        "mv dir/sub/plain new",
        "mv dir/sub/plain new && touch new/x",
        "mv in-link new",
        "mv dir/sub new",
        "mv dir dir3",
        "mv dir/. dir3",
        // A path that is a directory by the time it is moved.
        "rm a.txt && mkdir -p a.txt/git && mv a.txt .config",
        "rm a.txt; mkdir a.txt; mkdir a.txt/git; mv ./a.txt .config",
        "mv a.txt new; mkdir -p a.txt/git; mv a.txt .config",
        "rm -r dir2; mkdir -p dir2/c.txt/git; mv dir2/c.txt .config",
        "rm -r dir2; mkdir -p dir2/c.txt/git; cd dir2; mv c.txt ../.config",
        "for i in 1 2; do mv a.txt .config; mkdir -p a.txt/git; rm -f .config; done",
        // Made on the way.
        "mkdir -p .git/../new",
        "mkdir -p new/../.git",
        "mkdir new/../../outside/made",
        "rmdir -p dir/sub",
        "sed -i -f script.sed a.txt",
        "sed -i 's/a/b/w ../outside/made' a.txt",
        "sed -i '1e touch made' a.txt",
        "touch -r out-file new",
        "touch a.txt -r out-file",
        "rm a.txt -r",
    ] {
        assert!(!is_allowed(&policy, line), "{line}");
    }
    for line in [
        "cp a.txt new",
        "cp -p a.txt b.txt",
        "mv a.txt new",
        "mkdir -p new && mv a.txt new && mv b.txt new",
        "rm -rf dir2",
        "rm in-link",
        "touch new && sed -i s/a/b/ b.txt",
        "echo x > new && cp new b.txt",
    ] {
        assert!(is_allowed(&policy, line), "{line}");
    }
}

#[test]
fn rules_about_files_hold_where_a_copy_or_a_removal_lands() {
    use centurion_permissions::{Rule, RuleOrigin};
    let scratch = Scratch::new();
    let mut policy = scratch.policy(Mode::AcceptEdits, false);
    policy.deny = Rule::parse_list("Edit(dir2/a.txt)", &RuleOrigin::Flag).unwrap().into();
    for line in ["cp a.txt dir2", "mv a.txt dir2", "rm -r dir2", "cp a.txt dir2/a.txt"] {
        assert!(!is_allowed(&policy, line), "{line}");
    }
    assert!(is_allowed(&policy, "cp b.txt new"));
}
