//! Files byte for byte: git changes line ends and encodings where attributes or the configuration say so, on the way in and
//! on the way out. What is saved to be brought back is kept as it was; filters, such as Git LFS, still run.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::files::remove_if_there;
use crate::git::{At, Git, GitError};
use crate::names::{self, shown};

/// Puts files into an index, which is the one of `at`, as they are on disk.
pub(crate) async fn add(
    git: &Git,
    at: &At<'_>,
    top: &Path,
    (before, after): (&str, &str),
) -> Result<(), GitError> {
    let mut files = Vec::new();
    for path in differing(git, at, (before, after)).await? {
        let on_disk = top.join(&path);
        if let Ok((file, _)) = centurion_files::open_regular(&on_disk) {
            let is_executable = file.metadata()?.permissions().mode() & 0o100 != 0;
            files.push((path, if is_executable { "100755" } else { "100644" }));
        }
    }
    if files.is_empty() {
        return Ok(());
    }
    let input: String = files.iter().flat_map(|(path, _)| [shown(path), "\n".to_owned()]).collect();
    let args = ["hash-object", "-w", "--no-filters", "--stdin-paths"];
    let ids = git.run(at.clone().input(input.as_bytes()), args).await?;
    let mut entries = Vec::new();
    for ((path, mode), id) in files.iter().zip(ids.lines()) {
        entries.extend(format!("{mode} {id}\t").into_bytes());
        entries.extend(names::joined([path]));
    }
    git.run(at.clone().input(&entries), ["update-index", "-z", "--index-info"]).await?;
    Ok(())
}

/// Writes the files of a commit that differ from another one, as the commit has them.
pub(crate) async fn check_out(
    git: &Git,
    at: &At<'_>,
    (before, after): (&str, &str),
) -> Result<(), GitError> {
    let paths = differing(git, at, (before, after)).await?;
    if paths.is_empty() {
        return Ok(());
    }
    // Git changes nothing where no file says anything about attributes.
    let empty = git.run(at.clone(), ["hash-object", "-t", "tree", "/dev/null"]).await?;
    let input = names::joined(&paths);
    let plain = at.clone().input(&input).variable("GIT_ATTR_SOURCE", empty.trim());
    let plain = plain.variable("GIT_LITERAL_PATHSPECS", "1");
    for path in &paths {
        // Git leaves a file alone that it takes for unchanged.
        remove_if_there(&at.directory.join(path))?;
    }
    let args = [
        "-c",
        "core.autocrlf=false",
        "restore",
        "--source",
        after,
        "--worktree",
        "--pathspec-from-file=-",
        "--pathspec-file-nul",
    ];
    git.run(plain, args).await.map(|_| ())
}

/// The files that two commits or trees have differently, without those that the second lacks or that a filter is for.
async fn differing(
    git: &Git,
    at: &At<'_>,
    (before, after): (&str, &str),
) -> Result<Vec<PathBuf>, GitError> {
    let args = ["diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", before, after];
    let said = git.run_raw(at.clone(), args).await?;
    let mut parts = names::parts(&said);
    let mut paths = Vec::new();
    while let (Some(head), Some(path)) = (parts.next(), parts.next()) {
        if head.split(|byte| *byte == b' ').nth(1).is_some_and(|mode| mode.starts_with(b"100")) {
            paths.push(names::path(path));
        }
    }
    if paths.is_empty() {
        return Ok(paths);
    }
    let input = names::joined(&paths);
    let args = ["check-attr", "-z", "--stdin", "filter"];
    let said = git.run_raw(at.clone().input(&input), args).await?;
    // Each is a path, the name of the attribute and its value.
    let fields: Vec<&[u8]> = said.split(|byte| *byte == 0).collect();
    let has_filter = |fields: &[&[u8]]| {
        fields.get(2).is_some_and(|value| !matches!(*value, b"unspecified" | b"unset"))
    };
    let filtered: Vec<PathBuf> = fields
        .chunks_exact(3)
        .filter(|fields| has_filter(fields))
        .filter_map(|fields| fields.first().map(|path| names::path(path)))
        .collect();
    paths.retain(|path| !filtered.contains(path) && !is_in_a_link(at.directory, path));
    Ok(paths)
}

/// Checks that a link is on the way to a file.
fn is_in_a_link(top: &Path, path: &Path) -> bool {
    let above = path.ancestors().skip(1).filter(|it| !it.as_os_str().is_empty());
    above.map(|it| top.join(it)).any(|it| fs::symlink_metadata(it).is_ok_and(|it| it.is_symlink()))
}
