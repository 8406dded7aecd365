//! Names of files for `@`: those that fit a word best, without those that git ignores. The next search cancels one that
//! still runs.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ignore::WalkBuilder;

/// The most files and directories that a search looks at.
const MOST_LOOKED_AT: usize = 200_000;
/// The most names that a search gives.
const MOST_FOUND: usize = 30;

/// The searches of one front, of which the last one counts.
#[derive(Clone, Default)]
pub struct NameSearch(Arc<AtomicU64>);

impl NameSearch {
    /// Begins a search: those before it end.
    pub fn begin(&self) -> Search {
        let number = self.0.fetch_add(1, Ordering::Relaxed) + 1;
        Search { newest: Arc::clone(&self.0), number }
    }
}

/// One search.
pub struct Search {
    newest: Arc<AtomicU64>,
    number: u64,
}

impl Search {
    /// Whether another one has begun.
    pub fn is_over(&self) -> bool {
        self.newest.load(Ordering::Relaxed) != self.number
    }

    /// The names below a directory that fit a word, the best first; `None` if another search has begun. Directories end
    /// with `/`. What may not be seen is not found, and no directory that may not be seen is entered.
    pub fn files_like(
        &self,
        root: &Path,
        word: &str,
        may_see: &(dyn Fn(&Path) -> bool + Send + Sync),
    ) -> Option<Vec<String>> {
        let walk = WalkBuilder::new(root)
            .hidden(false)
            .require_git(false)
            .filter_entry(|entry| entry.file_name() != ".git")
            .build();
        let mut found: Vec<(i64, String)> = Vec::new();
        for entry in walk.take(MOST_LOOKED_AT) {
            if self.is_over() {
                return None;
            }
            let Ok(entry) = entry else { continue };
            let Ok(path) = entry.path().strip_prefix(root) else { continue };
            if !entry.path().ancestors().take(path.components().count()).all(may_see) {
                continue;
            }
            let mut name = path.to_string_lossy().into_owned();
            if entry.file_type().is_some_and(|kind| kind.is_dir()) {
                name.push('/');
            }
            if let Some(score) = score(word, &name).filter(|_| !path.as_os_str().is_empty()) {
                found.push((score, name));
            }
            if found.len() > 20 * MOST_FOUND {
                keep_best(&mut found);
            }
        }
        keep_best(&mut found);
        Some(found.into_iter().map(|(_, name)| name).collect())
    }
}

fn keep_best(found: &mut Vec<(i64, String)>) {
    found.sort_by(|(one, a), (other, b)| other.cmp(one).then_with(|| a.cmp(b)));
    found.truncate(MOST_FOUND);
}

/// The worth of a name for a word whose letters stand in it in their order; `None` if they do not. Letters side by side,
/// at the beginning of words and in the last part of the path are worth more, and short paths more than long ones.
fn score(word: &str, name: &str) -> Option<i64> {
    let base = name.trim_end_matches('/').rfind('/').map_or(0, |at| at + 1);
    // The last part first: a word that stands in it is meant.
    let in_base = walk(word, name, base);
    let score = in_base.map(|score| score + 40).or_else(|| walk(word, name, 0))?;
    let length = i64::try_from(name.len()).unwrap_or(i64::MAX);
    let depth = i64::try_from(name.matches('/').count()).unwrap_or(i64::MAX);
    Some(score - length / 4 - depth * 2)
}

fn walk(word: &str, name: &str, from: usize) -> Option<i64> {
    // Capitals count where a person writes one.
    let is_exact = word.chars().any(char::is_uppercase);
    let is_same = |a: char, b: char| a == b || (!is_exact && a.to_lowercase().eq(b.to_lowercase()));
    let mut wanted = word.chars().peekable();
    let (mut score, mut before, mut run) = (0, '/', 0);
    for char in name[from..].chars() {
        let Some(next) = wanted.peek() else { break };
        if is_same(*next, char) {
            wanted.next();
            run += 1;
            let is_start =
                !before.is_alphanumeric() || (before.is_lowercase() && char.is_uppercase());
            score += 4 + if is_start { 10 } else { 0 } + 6 * (run - 1);
        } else {
            run = 0;
        }
        before = char;
    }
    wanted.peek().is_none().then_some(score)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for file in files {
            let path = root.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        root
    }

    #[test]
    fn letters_in_their_order_find_a_file_and_the_best_comes_first() {
        let files =
            ["src/main.rs", "src/model/agents.rs", "docs/manual.md", "a/main_menu.rs", ".env"];
        let root = tree(&files);
        let found = |word: &str| {
            NameSearch::default().begin().files_like(root.path(), word, &|_| true).unwrap()
        };
        assert_eq!(found("main")[0], "src/main.rs");
        assert_eq!(found("mag")[0], "src/model/agents.rs");
        assert_eq!(found("src/ag")[0], "src/model/agents.rs");
        assert_eq!(found(".en"), [".env"], "files with a dot are files");
        assert!(found("Main").is_empty(), "a capital means a capital");
        assert!(found("src").contains(&"src/".to_owned()), "directories are found, too");
        assert!(found("").len() > 5, "without a word, whatever is there");
    }

    #[test]
    fn what_git_ignores_is_not_offered() {
        let root = tree(&["kept.rs", "out/kept.o", "sub/kept.log", ".git/kept"]);
        std::fs::write(root.path().join(".gitignore"), "out/\n*.log\n").unwrap();
        let found = NameSearch::default().begin().files_like(root.path(), "kept", &|_| true);
        assert_eq!(found.unwrap(), ["kept.rs"]);
    }

    #[test]
    fn what_may_not_be_seen_is_not_offered() {
        let root = tree(&["keys/name", "names/a", "name"]);
        let keys = root.path().join("keys");
        let search = NameSearch::default().begin();
        let found = search.files_like(root.path(), "name", &|path| path != keys);
        assert_eq!(found.unwrap(), ["name", "names/", "names/a"]);
    }

    #[test]
    fn the_next_search_cancels_the_one_before() {
        let root = tree(&["a"]);
        let searches = NameSearch::default();
        let first = searches.begin();
        let second = searches.begin();
        assert_eq!(first.files_like(root.path(), "a", &|_| true), None);
        assert_eq!(second.files_like(root.path(), "a", &|_| true).unwrap(), ["a"]);
    }
}
