//! The progress of a directory's name in the patterns of deny rules.
//!
//! A directory behind links has many names, and with a link to a directory above it infinitely many. Below two names of
//! one directory the same paths are denied if both have the same progress in the patterns: then the search skips one of
//! them.

use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};

/// The patterns, each as a list of names, one below the other.
#[derive(Debug, Default)]
pub(super) struct Patterns(Vec<Pattern>);

#[derive(Debug)]
struct Pattern {
    base: PathBuf,
    /// `None` if it cannot be divided into names.
    names: Option<Vec<Name>>,
}

#[derive(Debug)]
enum Name {
    /// `**`: any number of names.
    Any,
    Like(GlobMatcher),
}

/// The progress in one pattern.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Progress {
    /// Its base is elsewhere.
    Elsewhere,
    /// Its base is this many directories below.
    Above(usize),
    /// The next name may match one of these, a bit for each name of the pattern.
    Next(u64),
    /// Unknown: it depends on all names of the directory.
    Name(PathBuf),
}

impl Patterns {
    pub(super) fn new(patterns: Vec<(PathBuf, String)>) -> Self {
        let divide = |(base, glob): (PathBuf, String)| Pattern { base, names: names(&glob) };
        Self(patterns.into_iter().map(divide).collect())
    }

    /// Whether a directory lies too deep below a pattern that cannot be divided: its names may continue without end.
    pub(super) fn is_lost(&self, directory: &Path) -> bool {
        const DEEPEST: usize = 8;
        let undivided = self.0.iter().filter(|pattern| pattern.names.is_none());
        let mut below = undivided.filter_map(|pattern| directory.strip_prefix(&pattern.base).ok());
        below.any(|relative| relative.components().count() > DEEPEST)
    }

    /// The progress of a directory's name in each pattern.
    pub(super) fn progress(&self, directory: &Path) -> Vec<Progress> {
        self.0.iter().map(|pattern| pattern.progress(directory)).collect()
    }
}

impl Pattern {
    fn progress(&self, directory: &Path) -> Progress {
        let Ok(relative) = directory.strip_prefix(&self.base) else {
            return match self.base.strip_prefix(directory) {
                Ok(rest) => Progress::Above(rest.components().count()),
                Err(_) => Progress::Elsewhere,
            };
        };
        let Some(names) = &self.names else { return Progress::Name(relative.to_owned()) };
        let mut next = pass_any(names, 1);
        for part in relative.components() {
            let part = Path::new(part.as_os_str());
            let mut after = 0;
            for (index, name) in
                names.iter().enumerate().filter(|(index, _)| next >> index & 1 == 1)
            {
                after |= match name {
                    Name::Any => 1 << index,
                    Name::Like(glob) if glob.is_match(part) => 1 << (index + 1),
                    Name::Like(_) => 0,
                };
            }
            next = pass_any(names, after);
        }
        Progress::Next(next)
    }
}

/// Adds the names after `**`, which may also match no name at all.
fn pass_any(names: &[Name], mut next: u64) -> u64 {
    for (index, name) in names.iter().enumerate() {
        if matches!(name, Name::Any) && next >> index & 1 == 1 {
            next |= 1 << (index + 1);
        }
    }
    next
}

fn names(glob: &str) -> Option<Vec<Name>> {
    /// The most names of a pattern. One bit is left for a pattern that is fulfilled.
    const MOST: usize = 63;
    let mut names = Vec::new();
    for name in glob.split('/') {
        let is_whole = |open, close| name.matches(open).count() == name.matches(close).count();
        // A group of alternatives, or a set of characters, continues behind the separator.
        if !is_whole('{', '}') || !is_whole('[', ']') || name.contains('\\') || names.len() == MOST
        {
            return None;
        }
        names.push(match name {
            "**" => Name::Any,
            name => {
                let glob = GlobBuilder::new(name).literal_separator(true).build().ok()?;
                Name::Like(glob.compile_matcher())
            }
        });
    }
    Some(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_one_directory_differ_where_a_pattern_tells_them_apart() {
        let of = |globs: &[&str], directory: &str| {
            let hung = globs.iter().map(|glob| (PathBuf::from("/p"), (*glob).to_owned()));
            Patterns::new(hung.collect()).progress(Path::new(directory))
        };
        let same = |globs: &[&str], one: &str, other: &str| of(globs, one) == of(globs, other);
        assert!(same(&["**/*.pem"], "/p/a", "/p/b/c/d"));
        assert!(same(&["**/keys/*.pem"], "/p/a/keys", "/p/keys"));
        assert!(!same(&["**/keys/*.pem"], "/p/a/keys", "/p/a"));
        assert!(!same(&["*/x.pem"], "/p/a", "/p/a/b"));
        assert!(same(&["a/*/x.pem"], "/p/a/b", "/p/a/c"));
        assert!(!same(&["{a/b,c}/x"], "/p/a", "/p/c"));
        assert!(!same(&["**/x"], "/p", "/q"));
        assert!(!same(&["**/x"], "/", "/q"));
        assert!(same(&["*.{pem,key}"], "/p/a", "/p/b/c"));
    }
}
