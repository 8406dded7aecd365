//! Rules about paths hold for every way to name one: no text of `tests/leaks.txt` is allowed. Each runs in the real
//! shell, among real files, to show that it would read or write the guarded file.

#![expect(clippy::unwrap_used, reason = "files that cannot be made show nothing")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use centurion_permissions::{Call, Mode, Policy, Verdict, decide};

use crate::disk::{Disk, collect};
use crate::fixture::{self, policy, shell};
use crate::isolated::isolated_command;

const TABLE: &str = include_str!("../leaks.txt");

/// The content of the guarded file.
const SECRET: &str = "TOPSECRET";

/// One text, under the rules above it.
struct Row {
    allow: &'static str,
    deny: &'static str,
    shows: &'static str,
    text: String,
    is_portable: bool,
}

fn rows() -> Vec<Row> {
    let (mut allow, mut deny, mut shows) = ("", "", "");
    let mut rows = Vec::new();
    for line in TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with("# ")) {
        if let Some(rules) = line.strip_prefix("allow: ") {
            allow = rules;
        } else if let Some(rules) = line.strip_prefix("deny:") {
            deny = rules.trim_start();
        } else if let Some(what) = line.strip_prefix("shows: ") {
            shows = what;
        } else {
            let text = line.strip_prefix("? ").unwrap_or(line);
            let text = text.replace('␤', "\n").replace('␉', "\t");
            let is_portable = !line.starts_with("? ");
            rows.push(Row { allow, deny, shows, text, is_portable });
        }
    }
    rows
}

/// Makes the files of a project.
fn furnish(project: &Path) {
    for directory in ["sub/deep", "secrets", "locked", ".git/hooks", ".git/objects", ".git/refs"] {
        fs::create_dir_all(project.join(directory)).unwrap();
    }
    for (name, content) in [
        (".env", "TOPSECRET\n"),
        ("secrets/k", "TOPSECRET\n"),
        ("locked/f", "LOCKED\n"),
        ("a", "aaa\n"),
        ("b", "bbb\n"),
        ("sub/c", "ccc\n"),
        (".git/HEAD", "ref: refs/heads/main\n"),
        (".git/config", "[core]\n\tbare = false\n[user]\n\tname = a\n\temail = a@b\n"),
        ("p.diff", "--- a/locked/f\n+++ b/locked/f\n@@ -1 +1 @@\n-LOCKED\n+x\n"),
    ] {
        fs::write(project.join(name), content).unwrap();
    }
    for (name, target) in
        [("lnk", ".env"), ("lf", "locked/f"), ("sub/up", ".."), ("up1", "."), ("gitlink", ".git")]
    {
        std::os::unix::fs::symlink(target, project.join(name)).unwrap();
    }
}

/// The output of bash for the text, and the changed paths.
fn run(text: &str, project: &Path) -> (String, Vec<String>) {
    let mut before = BTreeMap::new();
    collect(project, &mut before);
    let home = project.parent().unwrap();
    fs::write(home.join("script"), text).unwrap();
    let output = isolated_command("timeout", home, project)
        .args(["10", "bash", "--norc", "--noprofile", "-c", "eval \"$(<\"$0\")\""])
        .arg(home.join("script"))
        .output()
        .unwrap();
    let mut after = BTreeMap::new();
    collect(project, &mut after);
    let names: Vec<PathBuf> = before.keys().chain(after.keys()).cloned().collect();
    let changed = names.into_iter().filter(|name| before.get(name) != after.get(name));
    let relative = |path: PathBuf| path.strip_prefix(project).unwrap().display().to_string();
    (String::from_utf8_lossy(&output.stdout).into_owned(), changed.map(relative).collect())
}

fn place() -> (tempfile::TempDir, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let project = place.path().canonicalize().unwrap().join("project");
    fs::create_dir(&project).unwrap();
    furnish(&project);
    (place, project)
}

fn policy_at(project: &Path, allow: &str, deny: &str) -> Policy {
    Policy {
        allow: fixture::rules(allow),
        deny: fixture::rules(deny),
        cwd: project.to_owned(),
        project_root: project.to_owned(),
        home: project.parent().map(Path::to_owned),
        directories: vec![project.to_owned()],
        trusted_repository: Some(project.to_owned()),
        ..policy(Mode::Default)
    }
}

fn verdict(project: &Path, allow: &str, deny: &str, text: &str) -> Verdict {
    let access = shell(text);
    let policy = policy_at(project, allow, deny);
    decide(&policy, &Call { links: &Disk, ..fixture::call(&access) }).verdict
}

#[test]
fn no_way_to_a_file_that_is_kept_is_allowed() {
    let (_place, project) = place();
    let missed: Vec<String> = rows()
        .iter()
        .filter(|row| verdict(&project, row.allow, row.deny, &row.text) == Verdict::Allow)
        .map(|row| format!("deny {}, shows {}: {:?}", row.deny, row.shows, row.text))
        .collect();
    assert!(rows().len() >= 150, "only {} ways", rows().len());
    assert!(missed.is_empty(), "{} are allowed:\n{}", missed.len(), missed.join("\n"));
}

#[test]
fn every_way_to_a_file_leads_there_in_bash() {
    let mut wrong = Vec::new();
    for row in rows().iter().filter(|row| row.is_portable) {
        let (_place, project) = place();
        let (printed, changed) = run(&row.text, &project);
        let is_shown = if row.shows == "secret" {
            printed.contains(SECRET)
        } else {
            let kept: Vec<&str> = row.shows.split(' ').collect();
            changed.iter().any(|path| kept.iter().any(|kept| path.starts_with(kept)))
        };
        if !is_shown {
            wrong.push(format!("{:?}", row.text));
        }
    }
    assert!(wrong.is_empty(), "{} do not:\n{}", wrong.len(), wrong.join("\n"));
}

/// A command that only reads, excludes or runs a protected path does not ask.
#[test]
fn commands_that_only_name_a_protected_path_run() {
    let (_place, project) = place();
    for text in [
        "cat .git/config",
        "cat .mcp.json | jq .",
        "jq . .vscode/settings.json",
        "git status",
        "git add .vscode/settings.json .gitmodules",
        "git diff .gitmodules",
        "git commit -m 'Change .mcp.json'",
        "git config --file .gitmodules --get-regexp path",
        "git clone https://example.com/x.git",
        "git --git-dir=.git log",
        "ls -la .git",
        "du -sh .git",
        "tree -I .git",
        "tar --exclude=.git -czf x.tgz .",
        "tar czf x.tgz .git",
        "rsync -a --exclude .git a/ b/",
        "find . -path ./.git -prune -o -name x -print",
        "find . -not -path './.git/*' -name '*.rs'",
        "zip -r x.zip . -x '.git/*'",
        "grep -r --exclude-dir=.git x sub",
        "bash .husky/pre-commit",
        "source ~/.bashrc",
        "python3 -m json.tool .mcp.json",
        "curl -s https://example.com/a/.git/config",
        "rm *.json",
        "rm -f sub/*",
        "sed -i s/a/b/ *.toml",
        "chmod +x s*",
        "mv a* sub/",
        "cp a \"$DEST\"",
        "echo x > \"$OUT\"",
        "echo .git >> .gitignore",
        "test -d .git && echo repository",
        "[ -f .envrc ] && cat .envrc",
        "for f in *.txt; do cp \"$f\" \"sub/$f\"; done",
    ] {
        assert_eq!(verdict(&project, "Bash", "", text), Verdict::Allow, "{text}");
    }
}
