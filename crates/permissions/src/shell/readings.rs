//! A cache of analysed command lines: an agent repeats its commands, and a command that asks is judged several times.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use super::analysis::Analysis;
use super::characters::as_run;
use crate::policy::Policy;

/// The most lines in one generation.
const MOST_LINES: usize = 256;

/// The most bytes in one generation. The cache holds two generations.
const MOST_BYTES: usize = 512 * 1024;

/// Analysed command lines. Clones share the cache.
///
/// An analysis depends on the text, on the shell's directory and on the home directory, but on nothing else of a
/// policy: rules and modes may change while analyses stay valid.
#[derive(Clone, Default)]
pub struct Readings(Arc<Mutex<AnalysisCache>>);

/// Two generations: when the young one is full it becomes the old one, and the previous old one is dropped.
#[derive(Default)]
struct AnalysisCache {
    young: HashMap<String, Arc<Analysis>>,
    old: HashMap<String, Arc<Analysis>>,
    /// The size of the young generation.
    bytes: usize,
}

impl Readings {
    /// The analysis of a command line for a shell of this policy.
    pub(crate) fn analysis(&self, text: &str, policy: &Policy) -> Arc<Analysis> {
        let text = as_run(text);
        if let Some(known) = self.with(|held| held.find(text, policy)) {
            return known;
        }
        // Analysed without the lock: other callers need not wait for a long line.
        let read = Arc::new(Analysis::new(text, policy));
        self.with(|held| held.keep(&read));
        read
    }

    fn with<T>(&self, run: impl FnOnce(&mut AnalysisCache) -> T) -> T {
        run(&mut self.0.lock())
    }
}

impl AnalysisCache {
    fn find(&mut self, text: &str, policy: &Policy) -> Option<Arc<Analysis>> {
        if let Some(known) = self.young.get(text) {
            return known.is_of(policy).then(|| Arc::clone(known));
        }
        let known = self.old.remove(text).filter(|known| known.is_of(policy))?;
        self.keep(&known);
        Some(known)
    }

    fn keep(&mut self, read: &Arc<Analysis>) {
        let weight = read.weight();
        if weight > MOST_BYTES {
            return;
        }
        if self.young.len() >= MOST_LINES || self.bytes + weight > MOST_BYTES {
            std::mem::swap(&mut self.old, &mut self.young);
            self.young.clear();
            self.bytes = 0;
        }
        self.bytes += weight;
        if let Some(replaced) = self.young.insert(read.text().to_owned(), Arc::clone(read)) {
            self.bytes = self.bytes.saturating_sub(replaced.weight());
        }
    }
}

impl fmt::Debug for Readings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Readings").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(cwd: &str) -> Policy {
        Policy { cwd: cwd.into(), ..Policy::default() }
    }

    #[test]
    fn a_line_is_read_once_for_each_place() {
        let readings = Readings::default();
        let first = readings.analysis("cd a && ls", &policy("/p"));
        let again = readings.clone().analysis("cd a && ls\n", &policy("/p"));
        assert!(Arc::ptr_eq(&first, &again));
        let elsewhere = readings.analysis("cd a && ls", &policy("/q"));
        assert!(!Arc::ptr_eq(&first, &elsewhere));
        let at_home = Policy { home: Some("/home/ada".into()), ..policy("/q") };
        assert!(!Arc::ptr_eq(&elsewhere, &readings.analysis("cd a && ls", &at_home)));
    }

    #[test]
    fn lines_in_use_stay_and_others_go() {
        let readings = Readings::default();
        let policy = policy("/p");
        let used = readings.analysis("ls | wc", &policy);
        let unused = readings.analysis("ls | nl", &policy);
        for n in 0..10 * MOST_LINES {
            readings.analysis(&format!("ls {n}"), &policy);
            assert!(Arc::ptr_eq(&used, &readings.analysis("ls | wc", &policy)), "after {n} others");
        }
        assert!(!Arc::ptr_eq(&unused, &readings.analysis("ls | nl", &policy)));
    }

    #[test]
    fn neither_many_nor_heavy_lines_fill_the_memory() {
        let readings = Readings::default();
        let policy = policy("/p");
        for n in 0..600 {
            readings.analysis(&format!("ls {n}"), &policy);
            // Every suffix of such a line may be a command.
            readings.analysis(&format!("sudo {n} {}", "word ".repeat(20 + n % 400)), &policy);
        }
        let (lines, bytes, counted) = readings.with(|held| {
            let all = || held.young.values().chain(held.old.values());
            let young = held.young.values().map(|read| read.weight()).sum::<usize>();
            (all().count(), all().map(|read| read.weight()).sum::<usize>(), young == held.bytes)
        });
        assert!(lines > 2 && lines <= 2 * MOST_LINES, "{lines} lines");
        assert!(bytes <= 2 * MOST_BYTES, "{bytes} bytes");
        assert!(counted, "what the young generation holds is known");
    }
}
