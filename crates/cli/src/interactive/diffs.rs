//! The changes in the checkout since its last commit, by the agents that made them in this session.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use centurion_journal::MOST_TRANSCRIPT;
use centurion_protocol::bounded;
use centurion_tools::FileHistory;

use super::desk::output_of;

/// The title of changes that no tool of an agent has made: a person, another program, or a command did.
const OTHERS: &str = "by commands or others";

/// The changes as text: of each group of agents, then of others. Without any agents it is what git says.
pub(super) async fn by_agent(cwd: PathBuf, transcript: Option<PathBuf>) -> String {
    let diff = git(&cwd, &["diff", "--no-color", "--no-ext-diff", "HEAD"]).await;
    let new = git(&cwd, &["ls-files", "--others", "--exclude-standard", "-z", "--full-name"]).await;
    let root = git(&cwd, &["rev-parse", "--show-toplevel"]).await;
    let work = move || {
        let text = transcript.and_then(|path| bounded::read_file(&path, MOST_TRANSCRIPT).ok());
        let history = FileHistory::read(&text.unwrap_or_default());
        let root = root.map_or(cwd, PathBuf::from);
        grouped(&diff, &new.unwrap_or_default(), &root, &history.authors())
    };
    tokio::task::spawn_blocking(work).await.unwrap_or_default()
}

/// The output of git, or the reason that it gives instead.
async fn git(cwd: &Path, arguments: &[&str]) -> Result<String, String> {
    let mut git = tokio::process::Command::new("git");
    git.args(arguments).current_dir(cwd);
    match output_of(git).await {
        (text, true) => Ok(text),
        (text, false) => Err(text),
    }
}

/// The changes of files in the groups of agents that made them.
fn grouped(
    diff: &Result<String, String>,
    new: &str,
    root: &Path,
    authors: &BTreeMap<&Path, BTreeSet<&str>>,
) -> String {
    let diff = match diff {
        Ok(diff) => diff,
        Err(said) => return said.clone(),
    };
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
        let text = grouped(&Ok(DIFF.to_owned()), "new.txt\0mine.txt\0", root, &authors);
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
        let plain = grouped(&Ok(DIFF.to_owned()), "", root, &BTreeMap::new());
        assert_eq!(plain.trim_end(), DIFF.trim_end(), "without agents it is what git says");
        assert_eq!(grouped(&Ok(String::new()), "", root, &authors), "nothing has changed");
        assert_eq!(grouped(&Err("no repository".to_owned()), "", root, &authors), "no repository");
    }
}
