//! The files of the repository.

use std::fs;
use std::path::{Path, PathBuf};

/// A file and its text.
pub(crate) struct File {
    /// Relative to the root of the repository, with `/`.
    pub path: String,
    pub text: String,
}

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the root of the repository")
}

/// Every file with one of these extensions that people write.
pub(crate) fn files(extensions: &[&str]) -> Vec<File> {
    let mut paths = Vec::new();
    collect(root(), &mut paths);
    paths.retain(|path| {
        path.extension().is_some_and(|found| extensions.iter().any(|wanted| found == *wanted))
    });
    paths.sort();
    paths.iter().map(|path| read(path)).collect()
}

pub(crate) fn sources() -> Vec<File> {
    let sources = files(&["rs"]);
    assert!(sources.len() > 20, "the sources were not found below {}", root().display());
    sources
}

fn read(path: &Path) -> File {
    let relative = path.strip_prefix(root()).expect("below the root");
    let text = fs::read_to_string(path)
        .unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
    File { path: relative.to_string_lossy().replace('\\', "/"), text }
}

fn collect(directory: &Path, paths: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let below_fuzz = directory.ends_with("fuzz");
        let skipped = name == ".git"
            || name == "target"
            || (below_fuzz && matches!(name.as_str(), "corpus" | "artifacts" | "seeds"));
        if skipped || path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            collect(&path, paths);
        } else {
            paths.push(path);
        }
    }
}

/// Fails with every complaint at once.
#[track_caller]
pub(crate) fn assert_none(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}
