//! Paths that a plugin or a marketplace names: always below its own directory, whatever was written and
//! whatever link lies there.

use std::path::{Component, Path, PathBuf};

use thiserror::Error;

use crate::settings::printable;

/// The reason why a path cannot be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PartPathError {
    #[error(
        "the path `{0}` is absolute: write it from the plugin's own directory, beginning with `./`"
    )]
    Absolute(String),
    #[error("the path `{0}` leads out of the plugin's directory")]
    Traversal(String),
    #[error("there is nothing at `{0}`")]
    Missing(String),
    #[error("`{0}` is a link that leads out of the plugin's directory, and is not followed")]
    Link(String),
}

/// The path below a directory that is known by its real path.
pub fn part(root: &Path, written: &str) -> Result<PathBuf, PartPathError> {
    let shown = || printable(written);
    let mut path = root.to_owned();
    for component in Path::new(written).components() {
        match component {
            Component::CurDir => {}
            Component::Normal(name) => path.push(name),
            Component::ParentDir => return Err(PartPathError::Traversal(shown())),
            Component::RootDir | Component::Prefix(_) => {
                return Err(PartPathError::Absolute(shown()));
            }
        }
    }
    let real = path.canonicalize().map_err(|_| PartPathError::Missing(shown()))?;
    if !real.starts_with(root) {
        return Err(PartPathError::Link(shown()));
    }
    Ok(path)
}

/// Whether a path is written the way that all programs understand.
pub(super) fn is_plain(written: &str) -> bool {
    written == "." || written.starts_with("./")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn no_path_leads_out() {
        let scratch = tempfile::tempdir().unwrap();
        let top = scratch.path().canonicalize().unwrap();
        let root = top.join("plugin");
        fs::create_dir_all(root.join("agents/deep")).unwrap();
        fs::write(top.join("secret.md"), "x").unwrap();
        symlink(top.join("secret.md"), root.join("agents/link.md")).unwrap();
        symlink(&top, root.join("up")).unwrap();
        symlink(root.join("agents"), root.join("inside")).unwrap();
        for (written, expected) in [
            ("./agents", "agents"),
            (".", ""),
            ("agents//deep/.", "agents/deep"),
            ("./inside/deep", "inside/deep"),
        ] {
            assert_eq!(part(&root, written), Ok(root.join(expected)), "{written}");
        }
        let text = |text: &str| text.to_owned();
        for (written, error) in [
            ("../secret.md", PartPathError::Traversal(text("../secret.md"))),
            (
                "./agents/../../secret.md",
                PartPathError::Traversal(text("./agents/../../secret.md")),
            ),
            ("/etc/passwd", PartPathError::Absolute(text("/etc/passwd"))),
            ("./agents/link.md", PartPathError::Link(text("./agents/link.md"))),
            ("./up/secret.md", PartPathError::Link(text("./up/secret.md"))),
            ("./none", PartPathError::Missing(text("./none"))),
        ] {
            assert_eq!(part(&root, written), Err(error), "{written}");
        }
        assert!(is_plain("./x") && is_plain(".") && !is_plain("x"));
    }
}
