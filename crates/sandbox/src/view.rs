//! The file system as a command sees it: the paths that differ from the machine's, and their modes.
//!
//! By default everything can be read and nothing written. Deeper paths win.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Bound;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use rustix::io::Errno;

use crate::apply::CommandPlace;
use crate::resolve::{Resolved, resolve};
use crate::{ApplyError, Sandbox};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// May be changed.
    Writable,
    /// Not writable, within a writable path.
    ReadOnly,
    /// Cannot be read.
    Hidden,
    /// Readable, within a hidden path.
    Shown,
    /// A directory or link on the way to a kept path, within a writable path: it keeps its name and place, or a command
    /// could put another there with the same name.
    Anchored,
}

/// The differing paths, parents before children.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct View(BTreeMap<PathBuf, Mode>);

impl View {
    /// The view of a sandbox, as far as its paths exist. All paths of the view are free of links, except anchored
    /// links.
    pub(crate) fn of(sandbox: &Sandbox, place: &CommandPlace) -> Result<Self, ApplyError> {
        let mut deny_write = guarded(&sandbox.deny_write)?;
        deny_write.extend(closed(&sandbox.deny_write));
        let write = existing(&sandbox.write)?;
        let mut wanted = writable(&write, &deny_write, &existing(&sandbox.write_within)?);
        wanted.extend(deny_write.iter().map(|denied| (denied.path.clone(), Mode::ReadOnly)));
        let deny_read = guarded(&sandbox.deny_read)?;
        wanted.extend(deny_read.iter().map(|denied| (denied.path.clone(), Mode::Hidden)));
        let allow_read = existing(&sandbox.allow_read)?;
        for Resolved { path, .. } in &allow_read {
            wanted.entry(path.clone()).or_insert(Mode::Shown);
        }
        let readable: BTreeSet<PathBuf> =
            write.into_iter().chain(allow_read).map(|readable| readable.path).collect();
        let forbidden = guarded(&sandbox.forbidden)?;
        for Resolved { path, .. } in &forbidden {
            let within: Vec<PathBuf> = below(&wanted, path).map(|(path, _)| path.clone()).collect();
            for path in within {
                wanted.remove(&path);
            }
            wanted.insert(path.clone(), Mode::Hidden);
        }
        for read in existing(&place.read)? {
            wanted.entry(read.path).or_insert(Mode::Shown);
        }
        let own = existing(&place.write)?;
        wanted.extend(own.into_iter().map(|own| (own.path, Mode::Writable)));

        let mut view = Self::default();
        for (path, mode) in wanted {
            let around = view.mode_of(&path);
            let mode = match (mode, around) {
                // A path that is named as writable or readable is not hidden because it must not change.
                (Mode::ReadOnly, Some(Mode::Hidden)) if readable.contains(&path) => Mode::Shown,
                (mode, _) => mode,
            };
            if is_needed(mode, around) {
                view.0.insert(path, mode);
            }
        }
        let denied = deny_write.into_iter().chain(deny_read).chain(forbidden);
        view.anchor(denied.flat_map(|denied| denied.links));
        if view.0.get(Path::new("/")) == Some(&Mode::Hidden) {
            return Err(ApplyError::NothingLeft);
        }
        Ok(view)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Path, Mode)> {
        self.0.iter().map(|(path, mode)| (path.as_path(), *mode))
    }

    /// Whether everything without another mode may be changed.
    pub(crate) fn is_open(&self) -> bool {
        self.mode_of(Path::new("/")) == Some(Mode::Writable)
    }

    /// Whether anything within `path` differs from it.
    pub(crate) fn has_within(&self, path: &Path) -> bool {
        below(&self.0, path).nth(1).is_some()
    }

    /// The mode of a path: its own, or that of the nearest path above it.
    fn mode_of(&self, path: &Path) -> Option<Mode> {
        path.ancestors().find_map(|place| self.0.get(place)).copied()
    }

    /// Anchors the directories and these links that lead to kept paths.
    fn anchor(&mut self, links: impl Iterator<Item = PathBuf>) {
        let kept = self.iter().filter(|(_, mode)| matches!(mode, Mode::ReadOnly | Mode::Hidden));
        let kept: Vec<PathBuf> = kept.map(|(path, _)| path.to_owned()).collect();
        let links: Vec<PathBuf> = links.collect();
        let ways = kept.iter().flat_map(|path| path.ancestors().skip(1));
        let ways = ways.chain(links.iter().flat_map(|link| link.ancestors()));
        let movable: Vec<PathBuf> = ways
            .filter(|place| !self.0.contains_key(*place))
            .filter(|place| self.mode_of(place) == Some(Mode::Writable))
            .map(Path::to_owned)
            .collect();
        self.0.extend(movable.into_iter().map(|place| (place, Mode::Anchored)));
    }
}

/// The writable paths of `write`, and those within the denied ones.
fn writable(
    write: &[Resolved],
    deny_write: &[Resolved],
    write_within: &[Resolved],
) -> BTreeMap<PathBuf, Mode> {
    let is_below =
        |path: &Path, places: &[Resolved]| places.iter().any(|place| path.starts_with(&place.path));
    // A denied directory is denied with everything below it.
    let free = write.iter().filter(|place| !is_below(&place.path, deny_write));
    // A command may have replaced a path that it may change by a link: the link would lead to any denied path.
    let within = write_within.iter().filter(|place| place.links.is_empty());
    let within = within.filter(|place| is_below(&place.path, write));
    free.chain(within).map(|place| (place.path.clone(), Mode::Writable)).collect()
}

/// The paths at and below a path: they are adjacent.
fn below<'a>(
    places: &'a BTreeMap<PathBuf, Mode>,
    path: &'a Path,
) -> impl Iterator<Item = (&'a PathBuf, &'a Mode)> {
    let from = (Bound::Included(path), Bound::Unbounded);
    places.range::<Path, _>(from).take_while(move |(place, _)| place.starts_with(path))
}

/// Whether the mode of a path differs from the mode around it.
fn is_needed(mode: Mode, around: Option<Mode>) -> bool {
    match (mode, around) {
        (Mode::Writable, Some(Mode::Writable)) | (Mode::Hidden, Some(Mode::Hidden)) => false,
        (Mode::Writable | Mode::Hidden | Mode::Anchored, _) => true,
        (Mode::ReadOnly, around) => around == Some(Mode::Writable),
        (Mode::Shown, around) => around == Some(Mode::Hidden),
    }
}

/// The paths that exist.
fn existing<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Result<Vec<Resolved>, ApplyError> {
    let mut found = Vec::new();
    for path in paths {
        match resolve(path) {
            Ok(resolved) if resolved.exists() => found.push(resolved),
            Ok(_) => {}
            // A path that this user cannot reach needs no permission.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            Err(source) => return Err(ApplyError::Path { path: path.clone(), source }),
        }
    }
    Ok(found)
}

/// The paths that exist, and the closed directories on the way to others. The owner of a directory can open it again: a
/// kept path behind it is kept with the directory.
fn guarded<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Result<Vec<Resolved>, ApplyError> {
    let mut found = Vec::new();
    for path in paths {
        match resolve(path) {
            Ok(resolved) if resolved.exists() => found.push(resolved),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                let reached = path.ancestors().skip(1).find_map(|above| resolve(above).ok());
                found.extend(reached.filter(Resolved::exists));
            }
            Err(source) => return Err(ApplyError::Path { path: path.clone(), source }),
        }
    }
    Ok(found)
}

/// The directories in which one of the paths is missing and cannot be made until a mode is changed.
fn closed<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> impl Iterator<Item = Resolved> {
    let resolved = paths.into_iter().filter_map(|path| resolve(path).ok());
    resolved.filter(|resolved| !resolved.exists() && is_closed(&resolved.path))
}

fn is_closed(directory: &Path) -> bool {
    access(directory, Access::WRITE_OK | Access::EXEC_OK) == Err(Errno::ACCESS)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    struct Scratch {
        root: PathBuf,
        _held: tempfile::TempDir,
    }

    impl Scratch {
        fn new(directories: &[&str]) -> Self {
            let held = tempfile::tempdir().unwrap();
            let root = held.path().canonicalize().unwrap();
            for directory in directories {
                fs::create_dir_all(root.join(directory)).unwrap();
            }
            Self { root, _held: held }
        }

        fn paths(&self, names: &[&str]) -> Vec<PathBuf> {
            names.iter().map(|name| self.root.join(name)).collect()
        }

        fn view(&self, sandbox: &Sandbox) -> Vec<(String, Mode)> {
            let view = View::of(sandbox, &CommandPlace::default()).unwrap();
            let name = |path: &Path| path.strip_prefix(&self.root).unwrap().display().to_string();
            view.iter().map(|(path, mode)| (name(path), mode)).collect()
        }
    }

    #[test]
    fn what_leads_to_a_kept_file_keeps_its_place() {
        let scratch = Scratch::new(&["p/a/b/kept", "p/elsewhere"]);
        symlink("../elsewhere", scratch.root.join("p/a/link")).unwrap();
        let sandbox = Sandbox {
            write: scratch.paths(&["p", "p/elsewhere", "not/there"]),
            deny_write: scratch.paths(&["p/a/b/kept", "p/a/link", "p/new"]),
            ..Sandbox::default()
        };
        let expected = [
            ("p", Mode::Writable),
            ("p/a", Mode::Anchored),
            ("p/a/b", Mode::Anchored),
            ("p/a/b/kept", Mode::ReadOnly),
            ("p/a/link", Mode::Anchored),
            ("p/elsewhere", Mode::ReadOnly),
        ];
        assert_eq!(scratch.view(&sandbox), expected.map(|(path, mode)| (path.to_owned(), mode)));
    }

    #[test]
    fn what_leads_to_a_hidden_file_keeps_its_place() {
        let scratch = Scratch::new(&["p/real"]);
        fs::write(scratch.root.join("p/real/secret"), "").unwrap();
        symlink("real", scratch.root.join("p/link")).unwrap();
        let sandbox = Sandbox {
            write: scratch.paths(&["p"]),
            forbidden: scratch.paths(&["p/link/secret"]),
            ..Sandbox::default()
        };
        let expected = [
            ("p", Mode::Writable),
            ("p/link", Mode::Anchored),
            ("p/real", Mode::Anchored),
            ("p/real/secret", Mode::Hidden),
        ];
        assert_eq!(scratch.view(&sandbox), expected.map(|(path, mode)| (path.to_owned(), mode)));
    }

    #[test]
    fn the_deeper_place_wins_but_for_what_must_not_be_written() {
        let scratch = Scratch::new(&["home/project/secret", "home/docs", "home/kept/inside"]);
        let sandbox = Sandbox {
            write: scratch.paths(&["home/project", "home/kept/inside"]),
            deny_write: scratch.paths(&["home/kept"]),
            deny_read: scratch.paths(&["home", "home/project/secret"]),
            allow_read: scratch.paths(&["home/docs", "home/project"]),
            ..Sandbox::default()
        };
        let expected = [
            ("home", Mode::Hidden),
            ("home/docs", Mode::Shown),
            ("home/project", Mode::Writable),
            ("home/project/secret", Mode::Hidden),
        ];
        assert_eq!(scratch.view(&sandbox), expected.map(|(path, mode)| (path.to_owned(), mode)));
    }

    #[test]
    fn a_place_within_what_is_kept_can_be_changed_but_for_what_is_kept_in_it() {
        let scratch = Scratch::new(&["p/top/.w/one/kept", "p/top/.w/two", "p/top/.git/own/deep"]);
        let sandbox = Sandbox {
            write: scratch.paths(&["p"]),
            deny_write: scratch.paths(&[
                "p/top",
                "p/top/.git",
                "p/top/.git/own",
                "p/top/.w/one/kept",
                "p/top/.w/one/new",
            ]),
            write_within: scratch.paths(&[
                "p/top/.w/one",
                "p/top/.git/own",
                "p/top/.git/own/deep",
                "p/top/.w/missing",
            ]),
            ..Sandbox::default()
        };
        let expected = [
            ("p", Mode::Writable),
            ("p/top", Mode::ReadOnly),
            ("p/top/.git/own/deep", Mode::Writable),
            ("p/top/.w/one", Mode::Writable),
            ("p/top/.w/one/kept", Mode::ReadOnly),
        ];
        assert_eq!(scratch.view(&sandbox), expected.map(|(path, mode)| (path.to_owned(), mode)));
    }

    #[test]
    fn a_place_within_what_is_kept_opens_nothing_that_was_not_open() {
        let scratch = Scratch::new(&["p/top/src", "p/top/w", "outside"]);
        // A former directory of its own has become a link into a kept path.
        symlink("../top/src", scratch.root.join("p/top/link")).unwrap();
        let sandbox = Sandbox {
            write: scratch.paths(&["p"]),
            deny_write: scratch.paths(&["p/top"]),
            write_within: scratch.paths(&["p/top/link", "outside"]),
            ..Sandbox::default()
        };
        let expected = [("p", Mode::Writable), ("p/top", Mode::ReadOnly)];
        assert_eq!(scratch.view(&sandbox), expected.map(|(path, mode)| (path.to_owned(), mode)));
        let forbidden = Sandbox {
            write_within: scratch.paths(&["p/top/w"]),
            forbidden: scratch.paths(&["p/top"]),
            ..sandbox
        };
        let expected = [("p", Mode::Writable), ("p/top", Mode::Hidden)];
        assert_eq!(scratch.view(&forbidden), expected.map(|(path, mode)| (path.to_owned(), mode)));
    }

    #[test]
    fn what_may_be_written_can_be_read_where_it_must_not_be_written_after_all() {
        let scratch = Scratch::new(&["home/top/w", "home/other"]);
        let sandbox = Sandbox {
            write: scratch.paths(&["home/top"]),
            deny_write: scratch.paths(&["home/top", "home/other"]),
            write_within: scratch.paths(&["home/top/w"]),
            deny_read: scratch.paths(&["home"]),
            ..Sandbox::default()
        };
        let expected =
            [("home", Mode::Hidden), ("home/top", Mode::Shown), ("home/top/w", Mode::Writable)];
        assert_eq!(scratch.view(&sandbox), expected.map(|(path, mode)| (path.to_owned(), mode)));
    }

    #[test]
    fn what_is_forbidden_stays_hidden_whatever_is_allowed_within() {
        let scratch = Scratch::new(&["home/project/secret/shown", "home/other"]);
        let sandbox = Sandbox {
            write: scratch.paths(&["home/project", "home/project/secret/shown"]),
            allow_read: scratch.paths(&["home/project/secret/shown", "home/other"]),
            forbidden: scratch.paths(&["home/project/secret", "home/missing"]),
            ..Sandbox::default()
        };
        let expected = [("home/project", Mode::Writable), ("home/project/secret", Mode::Hidden)];
        assert_eq!(scratch.view(&sandbox), expected.map(|(path, mode)| (path.to_owned(), mode)));
    }

    #[test]
    fn hiding_everything_is_refused() {
        let sandbox = Sandbox { deny_read: vec!["/".into()], ..Sandbox::default() };
        assert!(matches!(
            View::of(&sandbox, &CommandPlace::default()),
            Err(ApplyError::NothingLeft)
        ));
        let open = Sandbox { write: vec!["/".into()], ..Sandbox::default() };
        assert!(View::of(&open, &CommandPlace::default()).unwrap().is_open());
    }
}
