//! Removals that ask a person in every mode: the root, a home, a working directory.

use std::path::{Path, PathBuf};

use crate::paths::normalize;
use crate::policy::Policy;

/// The words of an `rm` or `rmdir` in a command line, and its directory.
#[derive(Debug)]
pub(super) struct Removal {
    place: PathBuf,
    targets: Vec<String>,
}

impl Removal {
    /// The removal that a command makes in this directory, if it is one.
    pub(super) fn of(words: &[&str], place: &Path) -> Option<Self> {
        let (program, rest) = words.split_first()?;
        let targets = rest.iter().filter(|word| !word.starts_with('-'));
        matches!(*program, "rm" | "rmdir").then(|| Self {
            place: place.to_owned(),
            targets: targets.map(|&word| word.to_owned()).collect(),
        })
    }

    /// The critical directory that it might remove, as written.
    pub(super) fn critical(&self, policy: &Policy) -> Option<&str> {
        let critical = |target: &&String| removes_critical(target, &self.place, policy);
        self.targets.iter().find(critical).map(String::as_str)
    }

    pub(super) fn weight(&self) -> usize {
        let targets = self.targets.iter().map(|target| target.len() + size_of::<String>());
        self.place.as_os_str().len() + size_of::<Self>() + targets.sum::<usize>()
    }
}

fn removes_critical(word: &str, cwd: &Path, policy: &Policy) -> bool {
    // `~name` is a user's home.
    if word.starts_with('~') && !word.contains('/') {
        return true;
    }
    let start = word.rfind('/').map_or(0, |slash| slash + 1);
    let (place, last) = word.split_at(start);
    let takes_all = last.contains(['*', '?']) && last.chars().all(|c| matches!(c, '*' | '?' | '.'));
    let place = if takes_all { place } else { word };
    match resolve(place, cwd, policy) {
        Some(path) => is_critical(&path, policy),
        // An empty variable turns `$NAME/` and `$NAME/*` into the root.
        None => place.ends_with('/'),
    }
}

/// The path of a word, where its text tells. `None` for a variable.
fn resolve(word: &str, cwd: &Path, policy: &Policy) -> Option<PathBuf> {
    for (name, place) in
        [("~", policy.home.as_deref()), ("$HOME", policy.home.as_deref()), ("$PWD", Some(cwd))]
    {
        if let Some(rest) = word.strip_prefix(name)
            && (rest.is_empty() || rest.starts_with('/'))
        {
            return Some(normalize(&place?.join(rest.trim_start_matches('/'))));
        }
    }
    (!word.starts_with('$')).then(|| normalize(&cwd.join(word)))
}

/// Whether losing this path loses more than a part of the work: the root, a directory at the top, the home, a working
/// directory, or a directory that contains one of these.
pub(super) fn is_critical(path: &Path, policy: &Policy) -> bool {
    let depth = path.ancestors().count();
    let kept = [Some(&policy.cwd), Some(&policy.project_root), policy.home.as_ref()];
    depth <= 2
        || kept
            .into_iter()
            .flatten()
            .chain(&policy.directories)
            .any(|place| !place.as_os_str().is_empty() && normalize(place).starts_with(path))
}
