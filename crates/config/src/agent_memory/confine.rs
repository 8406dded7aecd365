//! Real paths: no link in a directory may lead out of it.

use std::path::{Component, Path, PathBuf};

use crate::files::is_absence;

/// The path without links, of something that may not exist yet; `None` where that cannot be told.
pub(super) fn real_path(path: &Path) -> Option<PathBuf> {
    if !path.is_absolute() {
        return None;
    }
    for existing in path.ancestors() {
        match existing.symlink_metadata() {
            Err(error) if is_absence(&error) => {}
            Err(_) => return None,
            Ok(_) => {
                let rest = path.strip_prefix(existing).ok()?;
                // A path that does not exist has no parent to go back to.
                let is_plain = rest.components().all(|it| matches!(it, Component::Normal(_)));
                let real = existing.canonicalize().ok().filter(|_| is_plain)?;
                return Some(real.components().chain(rest.components()).collect());
            }
        }
    }
    None
}

/// Whether a path leads to a place in a directory, or to the directory itself.
pub(super) fn is_inside(path: &Path, directory: &Path) -> bool {
    match (real_path(path), real_path(directory)) {
        (Some(path), Some(directory)) => path.starts_with(directory),
        _ => false,
    }
}

/// The path without links of something below a directory, if it leads exactly there: no link stands between them.
pub(super) fn straight(path: &Path, directory: &Path) -> Option<PathBuf> {
    let (real, base) = (real_path(path)?, real_path(directory)?);
    let rest = path.strip_prefix(directory).ok()?;
    (real == base.join(rest) && real != base).then_some(real)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_and_parents_are_followed_and_what_does_not_exist_is_taken_literally() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        let path = |relative: &str| root.join(relative);
        fs::create_dir_all(path("in/deep")).unwrap();
        fs::create_dir_all(path("out")).unwrap();
        symlink(path("out"), path("in/away")).unwrap();
        symlink(path("nowhere"), path("in/dangling")).unwrap();
        symlink(path("in/deep"), path("out/back")).unwrap();
        let inside = |relative: &str| is_inside(&path(relative), &path("in"));
        for good in ["in", "in/new.md", "in/new/er.md", "in/deep/../x", "out/back/x", "in/./x"] {
            assert!(inside(good), "{good}");
        }
        let bad = [
            "in/away",
            "in/away/x",
            "in/dangling",
            "in/dangling/x",
            "in/../out/x",
            "in/new/../../out",
            "in/new/../x",
            "in/away/../in/x/../y",
            "inner",
            "out",
            "",
        ];
        for bad in bad {
            assert!(!inside(bad), "{bad}");
        }
        assert!(!is_inside(Path::new("in/x"), &path("in")));
        assert!(!is_inside(&path("x"), Path::new("")));
        // A directory that does not exist yet has an inside, too.
        assert!(is_inside(&path("later/x"), &path("later")));
    }

    #[test]
    fn a_straight_path_has_no_link_below_its_directory() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        let path = |relative: &str| root.join(relative);
        fs::create_dir_all(path("real/in/.git")).unwrap();
        symlink(path("real"), path("base")).unwrap();
        symlink(path("real/in"), path("real/link")).unwrap();
        // How the directory itself is reached is not the question.
        let straight = |relative: &str| straight(&path(relative), &path("base")).is_some();
        for good in ["base/in", "base/in/.git", "base/new/er"] {
            assert!(straight(good), "{good}");
        }
        for bad in
            ["base", "base/link", "base/link/.git", "base/link/new", "base/in/../in", "real/in"]
        {
            assert!(!straight(bad), "{bad}");
        }
    }
}
