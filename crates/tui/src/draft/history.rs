//! The texts that were sent before, newest last.

use std::collections::HashSet;

/// The most texts that are kept.
const MOST: usize = 1000;

/// A walk through what was sent. The draft that the walk began with is its newest text.
#[derive(Clone, Debug, Default)]
pub struct History {
    sent: Vec<String>,
    /// The place of the walk, and the text that it began with.
    walk: Option<(usize, String)>,
}

impl History {
    pub fn new(sent: Vec<String>) -> Self {
        Self { sent, walk: None }
    }

    /// Adds a text, unless it is the newest already, and ends the walk.
    pub fn add(&mut self, text: &str) {
        self.walk = None;
        if !text.trim().is_empty() && self.sent.last().is_none_or(|last| last != text) {
            self.sent.push(text.to_owned());
        }
        if self.sent.len() > MOST {
            self.sent.remove(0);
        }
    }

    /// The text before; `present` is what the draft says now.
    pub fn older(&mut self, present: &str) -> Option<&str> {
        let (at, began) = match self.walk.take() {
            Some(walk) => walk,
            None => (self.sent.len(), present.to_owned()),
        };
        let next = at.checked_sub(1);
        self.walk = Some((next.unwrap_or(at), began));
        self.sent.get(next?).map(String::as_str)
    }

    /// The text after, at last the draft with which the walk began.
    pub fn newer(&mut self) -> Option<String> {
        let (at, began) = self.walk.take()?;
        let next = at + 1;
        match self.sent.get(next) {
            Some(text) => {
                let text = text.clone();
                self.walk = Some((next, began));
                Some(text)
            }
            None => Some(began),
        }
    }

    /// The texts that contain all words, newest first, each once.
    pub fn search<'a>(&'a self, words: &str) -> impl Iterator<Item = &'a str> {
        let words: Vec<String> = words.split_whitespace().map(str::to_lowercase).collect();
        let mut seen = HashSet::new();
        self.sent.iter().rev().map(String::as_str).filter(move |text| {
            let lower = text.to_lowercase();
            words.iter().all(|word| lower.contains(word)) && seen.insert(*text)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_comes_back_to_the_draft_with_which_it_began() {
        let mut history = History::new(vec!["one".to_owned()]);
        history.add("two");
        history.add("two");
        assert_eq!(history.older("draft"), Some("two"));
        assert_eq!(history.older("two"), Some("one"));
        assert_eq!(history.older("one"), None);
        assert_eq!(history.newer().as_deref(), Some("two"));
        assert_eq!(history.newer().as_deref(), Some("draft"));
        assert_eq!(history.newer(), None);
        assert_eq!(history.search("W").collect::<Vec<_>>(), ["two"]);
        history.add("one");
        assert_eq!(history.search("").collect::<Vec<_>>(), ["one", "two"], "each once");
    }
}
