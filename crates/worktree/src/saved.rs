//! The refs under which what an agent made is kept in the repository.

use std::collections::BTreeSet;

use crate::git::{At, Git, GitError};
use crate::record::Record;

/// Longer names are not given: file systems would not take them.
const LONGEST: usize = 1_000;
const LONGEST_PART: usize = 200;

/// Names for commits, none of which is in the way of another: git can have `a` or `a/b`, not both.
#[derive(Debug)]
pub(crate) struct SavedNames {
    prefix: String,
    taken: BTreeSet<String>,
    wanted: BTreeSet<(String, String)>,
}

impl SavedNames {
    /// With those that there are already.
    pub(crate) async fn load(
        git: &Git,
        common: &std::path::Path,
        record: &Record,
    ) -> Result<Self, GitError> {
        let prefix = record.saved_refs();
        let args = ["for-each-ref", "--format=%(refname)", &prefix];
        let taken = git.run(At::git_dir(common), args).await?;
        let taken = taken.lines().map(str::to_owned).collect();
        Ok(Self { prefix, taken, wanted: BTreeSet::new() })
    }

    /// Keeps a commit under a name, or beside it where that cannot be.
    pub(crate) fn keep(&mut self, id: &str, name: &str) {
        let (prefix, short) = (&self.prefix, id.get(..12).unwrap_or(id));
        let places = [format!("{prefix}/{name}"), format!("{prefix}/beside/{short}/{name}")];
        let place = places.into_iter().find(|it| self.is_free(it));
        let place = place.unwrap_or_else(|| format!("{prefix}/commits/{id}"));
        self.taken.insert(place.clone());
        self.wanted.insert((id.to_owned(), place));
    }

    fn is_free(&self, name: &str) -> bool {
        let mut above = name.match_indices('/').filter_map(|(at, _)| name.get(..at));
        let below = format!("{name}/");
        name.len() <= LONGEST
            && name.split('/').all(|part| part.len() <= LONGEST_PART)
            && !above.any(|it| self.taken.contains(it))
            && !self.taken.range(below.clone()..).next().is_some_and(|it| it.starts_with(&below))
    }

    /// Commits with the refs that are to have them.
    pub(crate) fn wanted(&self) -> &BTreeSet<(String, String)> {
        &self.wanted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_is_in_the_way_of_another() {
        let taken = ["p/refs/heads/a".to_owned(), "p/refs/heads/b/c".to_owned()].into();
        let mut names = SavedNames { prefix: "p".to_owned(), taken, wanted: BTreeSet::new() };
        let id = "0123456789abcdef";
        let long = "x".repeat(300);
        for name in ["refs/heads/a", "refs/heads/a/b", "refs/heads/b", "refs/heads/ab", &long] {
            names.keep(id, name);
        }
        let given: Vec<&str> = names.wanted().iter().map(|(_, name)| name.as_str()).collect();
        let expected = [
            "p/beside/0123456789ab/refs/heads/a/b",
            "p/beside/0123456789ab/refs/heads/b",
            "p/commits/0123456789abcdef",
            "p/refs/heads/a",
            "p/refs/heads/ab",
        ];
        assert_eq!(given, expected);
    }
}
