//! The changes in the checkout since its last commit, by the agents that made them in this session.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use centurion_config::paths::repo_root;
use centurion_config::repository::GitDirs;
use centurion_journal::MOST_TRANSCRIPT;
use centurion_protocol::{Env, bounded};
use centurion_tools::{FileHistory, GitPlaces, InstalledGit};

/// The title of changes that no tool of an agent has made: a person, another program, or a command did.
const OTHERS: &str = "by commands or others";

/// The change of a checkout since a commit, as git itself sees it.
const CHANGE: [&str; 5] =
    ["diff", "--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty"];
/// The files that git does not know, and is not told to ignore.
const NEW: [&str; 4] = ["ls-files", "--others", "--exclude-standard", "-z"];
/// The empty tree, by the kind of names that a repository has.
const EMPTY_SHA1: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
const EMPTY_SHA256: &str = "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321";

/// The changes as text: of each group of agents, then of others. Without any agents it is what git says. The repository may be
/// a stranger's: git starts no program that its configuration names.
pub(super) async fn by_agent(cwd: &Path, env: &Env, transcript: Option<PathBuf>) -> String {
    let Some(git) = Repository::around(cwd, env) else {
        return "this is not a git repository, or there is no git".to_owned();
    };
    let base = git.base().await;
    let change: Vec<&str> = CHANGE.into_iter().chain([base]).collect();
    let Some(diff) = git.say(&change).await else {
        return "git cannot tell what has changed without starting a program that this repository names".to_owned();
    };
    let new = git.say(&NEW).await.unwrap_or_default();
    let root = git.places.work_tree;
    let work = move || {
        let text = transcript.and_then(|path| bounded::read_file(&path, MOST_TRANSCRIPT).ok());
        let history = FileHistory::read(&text.unwrap_or_default());
        grouped(&diff, &new, &root, &history.authors())
    };
    tokio::task::spawn_blocking(work).await.unwrap_or_default()
}

/// The repository around a directory, and the git that reads it.
struct Repository {
    git: InstalledGit,
    places: GitPlaces,
}

impl Repository {
    fn around(cwd: &Path, env: &Env) -> Option<Self> {
        let root = repo_root(cwd)?;
        let dirs = GitDirs::of(&root)?;
        let git = InstalledGit::find(env, &root)?;
        Some(Self {
            git,
            places: GitPlaces { work_tree: root, directories: vec![dirs.own, dirs.common] },
        })
    }

    /// The output of git; `None` where it fails.
    async fn say(&self, arguments: &[&str]) -> Option<String> {
        let said = self.git.read(&self.places, arguments).await?;
        let more = if said.is_cut { "\n(there is more)\n" } else { "" };
        Some(said.text + more)
    }

    /// The tree to compare with: before the first commit everything that git knows is new.
    async fn base(&self) -> &'static str {
        if self.say(&["rev-parse", "--verify", "--quiet", "HEAD"]).await.is_some() {
            return "HEAD";
        }
        let format = self.say(&["rev-parse", "--show-object-format"]).await;
        if format.is_some_and(|it| it.trim() == "sha256") { EMPTY_SHA256 } else { EMPTY_SHA1 }
    }
}

/// The changes of files in the groups of agents that made them.
fn grouped(
    diff: &str,
    new: &str,
    root: &Path,
    authors: &BTreeMap<&Path, BTreeSet<&str>>,
) -> String {
    let who = |name: &str| {
        let found = authors.get(root.join(name).as_path());
        found.map(|agents| agents.iter().copied().collect::<Vec<_>>().join(", "))
    };
    let mut groups: BTreeMap<Option<String>, Vec<String>> = BTreeMap::new();
    for part in files_of(diff) {
        let agents = name_of(part).and_then(|name| who(&name));
        groups.entry(agents).or_default().push(part.trim_end().to_owned());
    }
    for name in new.split('\0').filter(|name| !name.is_empty()) {
        // A file that no agent made and git does not know has not changed.
        if let Some(agents) = who(name) {
            groups
                .entry(Some(agents))
                .or_default()
                .push(format!("new, and not known to git: {name}"));
        }
    }
    if groups.is_empty() {
        return "nothing has changed".to_owned();
    }
    let has_agents = groups.keys().any(Option::is_some);
    let others = groups.remove(&None);
    let titled = groups.into_iter().map(|(agents, parts)| (agents.unwrap_or_default(), parts));
    let all = titled.chain(others.map(|parts| (OTHERS.to_owned(), parts)));
    let text = |(title, parts): (String, Vec<String>)| {
        let files =
            if parts.len() == 1 { "1 file".to_owned() } else { format!("{} files", parts.len()) };
        let title = if has_agents { format!("@ {title} · {files}\n\n") } else { String::new() };
        format!("{title}{}", parts.join("\n"))
    };
    all.map(text).collect::<Vec<_>>().join("\n\n")
}

/// The parts of a diff, one for each file.
fn files_of(diff: &str) -> Vec<&str> {
    const BEGINS: &str = "diff --git ";
    let mut starts: Vec<usize> = diff.match_indices(BEGINS).map(|(at, _)| at).collect();
    starts.retain(|at| *at == 0 || diff[..*at].ends_with('\n'));
    let ends = starts.iter().skip(1).copied().chain([diff.len()]);
    starts.iter().zip(ends).map(|(start, end)| &diff[*start..end]).collect()
}

/// The name of the file that a part of a diff is about, from the root of the checkout; `None` if git writes it in a way of its
/// own.
fn name_of(part: &str) -> Option<String> {
    let header = part.split("\n@@").next().unwrap_or_default();
    let named = |mark: &str| header.lines().find_map(|line| line.strip_prefix(mark));
    let name = named("+++ b/").or_else(|| named("--- a/")).or_else(|| named("rename to "));
    // A file without lines: both names are the same.
    let binary = || {
        let both = header.lines().next()?.strip_prefix("diff --git a/")?;
        let (one, other) = both.split_once(" b/")?;
        (one == other).then_some(one)
    };
    name.or_else(binary).map(|name| name.trim_end_matches('\t').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIFF: &str = "\
diff --git a/a.txt b/a.txt
index 1..2 100644
--- a/a.txt
+++ b/a.txt
@@ -1 +1 @@
-one
+diff --git a/x b/x
diff --git a/deep/b c.txt b/deep/b c.txt
index 1..2 100644
--- a/deep/b c.txt\t
+++ b/deep/b c.txt\t
@@ -1 +1 @@
-one
+two
diff --git a/gone.txt b/gone.txt
deleted file mode 100644
--- a/gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-one
diff --git a/pic.png b/pic.png
index 1..2 100644
Binary files a/pic.png and b/pic.png differ
";

    /// What is shown of a new repository with one file, after these steps of git.
    async fn after(steps: &[&[&str]]) -> (tempfile::TempDir, String) {
        let scratch = tempfile::tempdir().unwrap();
        let env = Env::from([("PATH", "/usr/local/bin:/usr/bin:/bin")]);
        std::fs::write(scratch.path().join("a.txt"), "one\n").unwrap();
        std::fs::write(scratch.path().join(".gitattributes"), "a.txt filter=x diff=x\n").unwrap();
        for step in steps {
            let mut git = std::process::Command::new("git");
            git.args(["-c", "user.name=Ada", "-c", "user.email=ada@example.com"]);
            let done = git.args(*step).current_dir(scratch.path()).output().unwrap();
            assert!(done.status.success(), "{step:?}: {}", String::from_utf8_lossy(&done.stderr));
        }
        std::fs::write(scratch.path().join("a.txt"), "two\n").unwrap();
        let text = by_agent(scratch.path(), &env, None).await;
        (scratch, text)
    }

    #[tokio::test]
    async fn before_the_first_commit_everything_that_git_knows_is_new() {
        for format in ["sha1", "sha256"] {
            let init = format!("--object-format={format}");
            let (_scratch, text) = after(&[&["init", "-q", &init], &["add", "a.txt"]]).await;
            assert!(text.contains("new file mode") && text.contains("+two"), "{text}");
            let (_scratch, text) = after(&[&["init", "-q", &init]]).await;
            assert_eq!(text, "nothing has changed");
        }
        let (_scratch, text) = after(&[]).await;
        assert!(text.contains("not a git repository"), "{text}");
    }

    /// Each of these ran when the user looked at a change in a folder that was not trusted.
    #[tokio::test]
    async fn programs_that_a_repository_names_do_not_run_for_a_look_at_its_changes() {
        for key in [
            "core.fsmonitor",
            "filter.x.clean",
            "filter.x.smudge",
            "filter.x.process",
            "diff.external",
            "diff.x.command",
            "diff.x.textconv",
            "core.pager",
            "core.hooksPath",
        ] {
            let (scratch, text) = after(&[
                &["init", "-q"],
                &["add", "a.txt"],
                &["commit", "-q", "-m", "first"],
                &["config", key, "touch marker; cat"],
            ])
            .await;
            assert!(!scratch.path().join("marker").exists(), "{key} ran");
            assert!(text.contains("+two"), "{key}: {text}");
        }
    }

    #[test]
    fn changes_stand_below_the_agents_that_made_them() {
        let names: Vec<Option<String>> = files_of(DIFF).into_iter().map(name_of).collect();
        let expected = ["a.txt", "deep/b c.txt", "gone.txt", "pic.png"];
        assert_eq!(names, expected.map(|name| Some(name.to_owned())));
        let root = Path::new("/work");
        let paths = ["/work/a.txt", "/work/deep/b c.txt", "/work/new.txt"].map(Path::new);
        let authors = BTreeMap::from([
            (paths[0], BTreeSet::from(["main", "writer ▸ prover"])),
            (paths[1], BTreeSet::from(["writer"])),
            (paths[2], BTreeSet::from(["writer"])),
        ]);
        let text = grouped(DIFF, "new.txt\0mine.txt\0", root, &authors);
        let titles: Vec<&str> = text.lines().filter(|line| line.starts_with("@ ")).collect();
        assert_eq!(
            titles,
            [
                "@ main, writer ▸ prover · 1 file",
                "@ writer · 2 files",
                "@ by commands or others · 2 files"
            ]
        );
        assert!(text.contains("new, and not known to git: new.txt") && !text.contains("mine.txt"));
        let plain = grouped(DIFF, "", root, &BTreeMap::new());
        assert_eq!(plain.trim_end(), DIFF.trim_end(), "without agents it is what git says");
        assert_eq!(grouped("", "", root, &authors), "nothing has changed");
    }
}
