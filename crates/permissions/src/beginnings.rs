//! An index of rules about commands, by the literal prefix of their patterns.

use std::collections::BTreeMap;

use crate::shell::{CommandPattern, Shape};

/// Positions of rules by the literal prefixes of their patterns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Beginnings {
    /// Sorted.
    entries: Vec<Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    beginning: String,
    positions: Vec<usize>,
    /// The entry with the longest other prefix of this prefix.
    parent: Option<usize>,
}

impl Beginnings {
    pub(crate) fn new<'a>(patterns: impl Iterator<Item = (&'a CommandPattern, usize)>) -> Self {
        let mut positions: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (pattern, position) in patterns {
            positions.entry(pattern.beginning()).or_default().push(position);
        }
        let mut entries: Vec<Entry> = Vec::with_capacity(positions.len());
        for (beginning, positions) in positions {
            // All its prefixes stand before it, the last one among those of its predecessor.
            let mut parent = entries.len().checked_sub(1);
            while let Some(entry) = parent.and_then(|at| entries.get(at)) {
                if beginning.starts_with(&entry.beginning) {
                    break;
                }
                parent = entry.parent;
            }
            entries.push(Entry { beginning: beginning.to_owned(), positions, parent });
        }
        Self { entries }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The rules that may match this text.
    pub(crate) fn of_text(&self, text: &str) -> impl Iterator<Item = usize> {
        let after = self.entries.partition_point(|entry| entry.beginning.as_str() <= text);
        let entry = |at: usize| self.entries.get(at);
        // Every entry between a prefix of the text and the text has that prefix as well.
        let last = after.checked_sub(1).and_then(entry);
        std::iter::successors(last, move |last| last.parent.and_then(entry))
            .skip_while(|entry| !text.starts_with(&entry.beginning))
            .flat_map(|entry| entry.positions.iter().copied())
    }

    /// The rules that may match a text of this shape: a rule's prefix is a prefix of the known start, or the known
    /// start is a prefix of it.
    pub(crate) fn of_shape(&self, shape: &Shape) -> Vec<usize> {
        let known: String = shape.start().collect();
        let after = self.entries.partition_point(|entry| entry.beginning <= known);
        let longer = self.entries.get(after..).unwrap_or_default().iter();
        let longer = longer
            .take_while(|entry| entry.beginning.starts_with(&known))
            .flat_map(|entry| entry.positions.iter().copied());
        self.of_text(&known).chain(longer).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_rule_means_is_found() {
        let patterns =
            ["ls", "ls *", "ls*", "git push *", "git * main", "*", "* --version", "npm run t:*"];
        let patterns = patterns.map(CommandPattern::parse);
        let beginnings = Beginnings::new(patterns.iter().zip(0..));
        for text in
            ["ls", "lsof", "ls -l", "git", "git push", "git push x", "npm run t", "é --version", ""]
        {
            let found: Vec<usize> = beginnings.of_text(text).collect();
            for (position, pattern) in patterns.iter().enumerate() {
                assert!(!pattern.fits(text) || found.contains(&position), "{text}: {pattern:?}");
            }
            for end in (0..=text.len()).filter(|end| text.is_char_boundary(*end)) {
                let mut shape = Shape::literal(&text[..end]);
                shape.append(&Shape::any());
                let found = beginnings.of_shape(&shape);
                for (position, pattern) in patterns.iter().enumerate() {
                    let is_found = found.contains(&position);
                    assert!(!pattern.may_fit(&shape) || is_found, "{shape:?}: {pattern:?}");
                }
            }
        }
        assert_eq!(beginnings.of_text("cargo build").count(), 2);
    }
}
