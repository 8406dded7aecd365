//! Symbolic links: an allow rule must match the name and the target, an ask or deny rule either.

use std::path::{Path, PathBuf};

use centurion_permissions::{Access, Call, Links, Mode, PathKind, Verdict, decide};

use crate::disk::resolve;
use crate::fixture::{self, PlainFiles, policy, read, shell, write};

use Verdict::{Allow, Ask, Deny};

/// Ada's links: a directory that leads out, one that leads to another inside, a file that leads to a
/// guarded one, and a directory that leads into the repository's own.
#[derive(Debug)]
struct AdasLinks;

const TARGETS: [(&str, &str); 5] = [
    ("/home/ada/project/out-link", "/srv/secrets"),
    ("/home/ada/project/in-link", "/home/ada/project/src"),
    ("/home/ada/project/deep-link", "/home/ada/project/src/deep"),
    ("/home/ada/project/alias", "/home/ada/project/.env"),
    ("/home/ada/project/hooks", "/home/ada/project/.git/hooks"),
];

impl Links for AdasLinks {
    fn resolve(&self, path: &Path) -> PathBuf {
        resolve(path, |path| {
            let target = TARGETS.iter().find(|(link, _)| path == Path::new(link));
            target.map(|(_, target)| target.into())
        })
    }

    fn kind(&self, path: &Path) -> PathKind {
        let is_link = TARGETS.iter().any(|(link, _)| path == Path::new(link));
        if is_link { PathKind::Link } else { PlainFiles.kind(path) }
    }

    fn tree(&self, directory: &Path, most: usize) -> Option<Vec<PathBuf>> {
        PlainFiles.tree(directory, most)
    }
}

fn verdict(mode: Mode, allow: &str, deny: &str, access: &Access, named: Option<&Path>) -> Verdict {
    let mut policy = policy(mode);
    policy.allow = fixture::rules(allow);
    policy.deny = fixture::rules(deny);
    let call = Call { named, links: &AdasLinks, ..fixture::call(access) };
    decide(&policy, &call).verdict
}

#[test]
fn a_link_does_not_carry_a_command_out_of_the_working_directories() {
    for (mode, command, expected) in [
        (Mode::Default, "cat src/a", Allow),
        (Mode::Default, "cat in-link/a", Allow),
        (Mode::Default, "cat out-link/a", Ask),
        (Mode::Default, "cat ./out-link/../a", Ask),
        (Mode::Default, "grep x out-link/a", Ask),
        (Mode::Default, "grep -fout-link/a x", Ask),
        (Mode::Default, "grep --file=out-link/a x", Ask),
        (Mode::Default, "cat < out-link/a", Ask),
        (Mode::Default, "cd out-link && ls", Ask),
        (Mode::Default, "cd out-link; cat a", Ask),
        (Mode::Default, "cd in-link && cat a", Allow),
        // From inside the link, the parent is the target's.
        (Mode::Default, "cd out-link && cat ../a", Ask),
        // The shell removes `..` from the text first, and a command before it may remove the link.
        (Mode::Default, "cat deep-link/../out-link/a", Ask),
        (Mode::Default, "cd deep-link/../out-link && pwd -P", Ask),
        (Mode::AcceptEdits, "touch deep-link/../out-link/a", Ask),
        (Mode::AcceptEdits, "rm deep-link/../out-link/a", Ask),
        (Mode::AcceptEdits, "rm in-link", Allow),
        (Mode::AcceptEdits, "rm in-link; mkdir in-link; touch in-link/a", Ask),
        (Mode::AcceptEdits, "rm -r a; mkdir a; touch a/b", Allow),
        (Mode::AcceptEdits, "rm in-link/a", Allow),
        (Mode::AcceptEdits, "rm out-link/a", Ask),
        (Mode::AcceptEdits, "cp a out-link", Ask),
        (Mode::AcceptEdits, "mv a out-link/b", Ask),
        (Mode::AcceptEdits, "touch out-link/a", Ask),
        (Mode::AcceptEdits, "mkdir -p out-link/a/b", Ask),
        (Mode::AcceptEdits, "sed -i s/a/b/ out-link/a", Ask),
        (Mode::AcceptEdits, "echo a > out-link/a", Ask),
        (Mode::AcceptEdits, "echo a > in-link/a", Allow),
        (Mode::AcceptEdits, "echo a > hooks/pre-commit", Ask),
        (Mode::AcceptEdits, "cp a hooks", Ask),
        // A copy of a file onto a link of its name follows the link.
        (Mode::AcceptEdits, "cp src/out-link .", Ask),
    ] {
        assert_eq!(verdict(mode, "", "", &shell(command), None), expected, "{mode}: {command}");
    }
}

#[test]
fn commands_that_follow_links_on_their_way_are_not_free() {
    for (command, expected) in [
        ("grep -rn x .", Allow),
        ("grep -Rn x .", Ask),
        ("grep --dereference-recursive x .", Ask),
        ("rg x", Allow),
        ("rg -L x", Ask),
        ("rg --follow x", Ask),
        ("find . -name x", Allow),
        ("find -L . -name x", Ask),
        ("find . -follow", Ask),
        ("tree", Allow),
        ("tree -l", Ask),
        ("du -sh .", Allow),
        ("du -L .", Ask),
        ("diff -r a b", Ask),
        ("ls -LR", Ask),
        ("cp -L a b", Ask),
        ("rsync -a a b", Ask),
        ("tar -cf a.tar b", Ask),
    ] {
        assert_eq!(
            verdict(Mode::AcceptEdits, "", "", &shell(command), None),
            expected,
            "{command}"
        );
    }
}

#[test]
fn a_rule_about_a_file_holds_for_its_aliases() {
    for command in
        ["cat alias", "wc -l < alias", "cp alias b", "cd src && cat ../alias", "tool --in=alias"]
    {
        assert_eq!(
            verdict(Mode::Default, "Bash", "Read(./.env)", &shell(command), None),
            Deny,
            "{command}"
        );
    }
    assert_eq!(verdict(Mode::Default, "Bash", "Edit(.env)", &shell("echo a > alias"), None), Deny);
    assert_eq!(verdict(Mode::Default, "Bash", "Read(alias)", &shell("cat alias"), None), Deny);
}

#[test]
fn file_tools_are_judged_by_name_and_target() {
    let named = Path::new("/home/ada/project/out-link/a");
    let target = write("/srv/secrets/a");
    for (allow, deny, expected) in [
        ("Edit(/out-link/**)", "", Ask),
        ("Edit(//srv/**)", "", Ask),
        ("Edit(/out-link/**) Edit(//srv/**)", "", Allow),
        ("Edit", "Edit(/out-link/**)", Deny),
        ("Edit", "Edit(//srv/**)", Deny),
        ("Edit", "Read(//srv/**)", Deny),
    ] {
        let found = verdict(Mode::Default, allow, deny, &target, Some(named));
        assert_eq!(found, expected, "allow {allow:?} deny {deny:?}");
    }
    // Protected by its name or by its target.
    let hook = Path::new("/home/ada/project/hooks/x");
    let target = write("/home/ada/project/.git/hooks/x");
    assert_eq!(verdict(Mode::AcceptEdits, "", "", &target, Some(hook)), Ask);
    // A read path is judged by its target.
    assert_eq!(verdict(Mode::Default, "", "", &read("/srv/secrets/a"), Some(named)), Ask);
}

#[test]
fn git_is_free_only_in_the_repository_that_was_there() {
    let run = |repository: Option<&str>, cwd: &str, command: &str| {
        let mut policy = policy(Mode::Default);
        policy.trusted_repository = repository.map(PathBuf::from);
        policy.cwd = cwd.into();
        let access = shell(command);
        decide(&policy, &Call { links: &AdasLinks, ..fixture::call(&access) }).verdict
    };
    let home = "/home/ada/project";
    for (repository, cwd, command, expected) in [
        (Some(home), home, "git status", Allow),
        // The folder is not trusted.
        (None, home, "git log --oneline", Ask),
        (Some(home), "/home/ada/project/src", "git status", Allow),
        (Some(home), home, "cd src && git log", Allow),
        (None, home, "git status", Ask),
        (Some(home), "/added", "git status", Ask),
        (Some(home), home, "cd /added && git status", Ask),
        (Some(home), home, "cd out-link && git status", Ask),
        (Some("/home/ada/project/src"), home, "git status", Ask),
        (Some("/home/ada/project/src"), home, "cd src; git status", Ask),
    ] {
        assert_eq!(run(repository, cwd, command), expected, "{command} in {cwd}");
    }
    // Nor can a repository be made on the way.
    for command in [
        "mkdir .git",
        "mkdir -p a/b/.git",
        "cp -r evil a/.git",
        "mv evil .git",
        "mv evil/.git .",
        "touch sub/HEAD",
        "cp evil/HEAD sub",
        "echo a > sub/HEAD",
        "sed -i s/a/b/ .git/config",
    ] {
        let found = verdict(Mode::AcceptEdits, "", "", &shell(command), None);
        assert_eq!(found, Ask, "{command}");
        let found = verdict(Mode::AcceptEdits, "Bash", "", &shell(command), None);
        assert_eq!(found, Ask, "{command} with a rule for all commands");
    }
}
