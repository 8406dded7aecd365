//! Guarded paths: a pattern or an expansion that could name one counts as naming it.

use std::path::{Path, PathBuf};

use centurion_permissions::{Call, Links, Mode, PathKind, Policy, Verdict, decide};

use crate::fixture::{self, PlainFiles, call, policy, shell};

fn verdict(allow: &str, deny: &str, command: &str) -> Verdict {
    let policy = Policy {
        allow: fixture::rules(allow),
        deny: fixture::rules(deny),
        ..policy(Mode::Default)
    };
    decide(&policy, &call(&shell(command))).verdict
}

#[test]
fn what_could_name_a_denied_file_names_it() {
    for command in [
        "cat .env",
        "cat .en*",
        "cat .e*",
        "cat .*",
        "cat .e?v",
        "cat .[e]nv",
        "cat .[a-z]nv",
        "cat .[!x]nv",
        "cat .e{n,}v",
        "cat {.env,x}",
        "cat .{env,x}",
        "cat ./.en*",
        "cat src/../.en*",
        "cat $PWD/.env",
        "cat \"$PWD\"/.en*",
        "cat ~/project/.en*",
        "cat ~+/.env",
        "cat ~-/.env",
        "cat $HOME/project/.env",
        "cat ${x:-.env}",
        "cat ${x-.env}",
        "cat ${x:=.env}",
        "cat ${x:+.env}",
        "cat $x",
        "cat \"$x\"",
        "cat \"$1\"",
        "cat \"${!x}\"",
        "cat \"$(echo .env)\"",
        "cat `echo .env`",
        "cat $(ls -a)",
        "x=.env; cat $x",
        "x=.env; cat \"$x\"",
        "x=.e; cat ${x}nv",
        "x=.e; y=nv; cat \"$x$y\"",
        "for f in .e*; do cat \"$f\"; done",
        "for f in .env; do cat $f; done",
        "for f in $(ls -a); do cat $f; done",
        "while read f; do cat $f; done <<< .env",
        "read f <<< .env; cat $f",
        "x=(.env); cat \"${x[@]}\"",
        "set -- .env; cat \"$1\"",
        "cat < .env",
        "cat < .en*",
        "cat < $x",
        "echo $(<.env)",
        "echo $(<.en*)",
        "cat $'.\\x65nv'",
        "cat '.e'nv",
        "shopt -s dotglob; cat *",
        "shopt -s dotglob␤cat *",
        "cat */../.en*",
        "cat .//.en*",
        "cd src; cat ../.en*",
        "cd src && cat ../.e*",
        "cat --file=.en*",
        "cat -f.en*",
        "grep x .en*",
        "cat a .en* b",
        "true && cat .en*",
        "cat \"$DIR/.env\"",
        "cat $DIR/.e*",
        "cat /home/ada/project/.e*",
        "cat /home/*/project/.env",
        "cat /home/ada/*/.env",
        "cat ../*/.env",
        "cat a/*/.env",
        "grep -r x .",
        "grep -rn x",
        "grep --recursive x .",
        "grep -R x ./",
        "cp -r . /tmp/x",
        "cp -a . /tmp/x",
        "tar cf /tmp/x .",
        "rsync -a . /tmp/x",
        "zip -r x .",
        "rg x",
    ] {
        let command = command.replace('␤', "\n");
        assert_ne!(verdict("Bash", "Read(.env)", &command), Verdict::Allow, "{command}");
        let some =
            "Bash(cat *) Bash(grep *) Bash(cp *) Bash(tar *) Bash(rsync *) Bash(zip *) Bash(rg *)";
        assert_ne!(
            verdict(some, "Read(.env)", &command),
            Verdict::Allow,
            "{command} with some rules"
        );
    }
}

/// A project in which a guarded file lies deep down.
#[derive(Debug)]
struct Deep {
    is_too_large: bool,
}

impl Links for Deep {
    fn resolve(&self, path: &Path) -> PathBuf {
        PlainFiles.resolve(path)
    }

    fn kind(&self, path: &Path) -> PathKind {
        let directories = ["/home/ada/project", "/home/ada/project/a", "/home/ada/project/src"];
        let is_directory = directories.iter().any(|directory| path == Path::new(directory));
        if is_directory { PathKind::Directory } else { PathKind::File }
    }

    fn tree(&self, directory: &Path, _most: usize) -> Option<Vec<PathBuf>> {
        let files = ["/home/ada/project/a/b/.env", "/home/ada/project/src/main.rs"];
        let below = files.iter().map(PathBuf::from).filter(|file| file.starts_with(directory));
        (!self.is_too_large).then(|| below.collect())
    }
}

#[test]
fn a_search_through_a_tree_finds_what_is_denied_deep_in_it() {
    let verdict = |deny: &str, command: &str, is_too_large| {
        let policy = Policy {
            allow: fixture::rules("Bash"),
            deny: fixture::rules(deny),
            ..policy(Mode::Default)
        };
        let (access, links) = (shell(command), Deep { is_too_large });
        decide(&policy, &Call { links: &links, ..call(&access) }).verdict
    };
    for command in
        ["grep -r KEY a", "grep -r KEY .", "cp -r a /tmp/x", "tar cf /tmp/x a", "rg KEY a"]
    {
        assert_ne!(verdict("Read(.env)", command, false), Verdict::Allow, "{command}");
        assert_ne!(verdict("Read(**/.env)", command, false), Verdict::Allow, "{command}");
    }
    assert_eq!(verdict("Read(.env)", "grep -r KEY src", false), Verdict::Allow);
    assert_ne!(verdict("Read(.env)", "grep -r KEY src", true), Verdict::Allow, "too much to see");
    assert_eq!(verdict("Read(/secrets/**)", "grep -r KEY src", true), Verdict::Allow);
}

/// A pattern counts as the name: it is denied, and does not ask.
#[test]
fn a_pattern_that_matches_a_denied_file_is_denied() {
    for command in ["cat .en*", "cat .e?v", "cat .[e]nv", "cat .e{n,}v", "cat < .en*", "cat ./.en*"]
    {
        assert_eq!(verdict("Bash", "Read(.env)", command), Verdict::Deny, "{command}");
    }
    for command in ["cat secret*", "cat *", "cat ./*", "cat s*/*", "cat secrets/k?y"] {
        assert_eq!(verdict("Bash", "Read(secrets/**)", command), Verdict::Deny, "{command}");
    }
}

#[test]
fn what_cannot_name_a_denied_file_stays_allowed() {
    for (deny, command) in [
        ("Read(.env)", "cat src/*.rs"),
        ("Read(.env)", "cat *.md"),
        ("Read(.env)", "cat *"),
        ("Read(.env)", "ls *"),
        ("Read(.env)", "ls src/*"),
        ("Read(.env)", "cat src/*/mod.rs"),
        ("Read(./.env)", "grep -r foo src"),
        ("Read(./.env)", "grep -rn foo src tests"),
        ("Read(secrets/**)", "grep -r foo src"),
        ("Read(.env)", "for f in src/*.rs; do cat \"$f\"; done"),
        ("Read(.env)", "for f in a.txt b.txt; do cat $f; done"),
        ("Read(.env)", "f=src/main.rs; cat \"$f\""),
        ("Read(.env)", "cat \"$DIR/src/main.rs\""),
        ("Read(.env)", "cat \"${DIR}\"/README.md"),
        ("Read(.env)", "echo \"$x\" $HOME ${y:-z}"),
        ("Read(.env)", "cp -r src /tmp/x"),
        ("Read(.env)", "tar cf /tmp/x src"),
        ("Read(.env)", "cat .gitignore .github/*.yml"),
        ("Read(.env)", "i=1; head -n $((i + 1)) README.md"),
        ("Read(//etc/shadow)", "cat /etc/host*"),
        ("Read(~/.ssh/**)", "cat ~/project/*.md"),
        ("Edit(locked/**)", "cat \"$x\""),
        ("Edit(locked/**)", "cp a.txt b.txt"),
    ] {
        assert_eq!(verdict("Bash", deny, command), Verdict::Allow, "{command} with {deny}");
    }
}

#[test]
fn what_could_write_a_denied_file_writes_it() {
    for command in [
        "echo a > locked/x",
        "echo a > lock*/x",
        "echo a > $x",
        "echo a > \"$DIR/locked/x\"",
        "cp a locke?/x",
        "cp a \"$x\"",
        "mv a l*d/b",
        "tee loc{ked,}/x < a",
        "x=locked; echo a > $x/y",
    ] {
        assert_ne!(verdict("Bash", "Edit(locked/**)", command), Verdict::Allow, "{command}");
    }
}
