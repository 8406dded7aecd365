//! The word before the cursor that can be completed.

use super::Draft;
use crate::text::graphemes;

/// A word that a menu completes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Completion {
    /// `/` at the beginning of the draft: a command.
    Command(String),
    /// `@` at the beginning of a word: a file or an agent.
    Mention(String),
}

impl Draft {
    /// The word that can be completed, with the graphemes that [`complete`](Draft::complete) replaces.
    pub fn completion(&self) -> Option<(Completion, usize)> {
        let before = self.before_cursor();
        let count = |text: &str| graphemes(text).count();
        if let Some(name) = before.strip_prefix('/')
            && !name.contains(char::is_whitespace)
        {
            return Some((Completion::Command(name.to_owned()), count(&before)));
        }
        let word = before.rsplit(char::is_whitespace).next().unwrap_or_default();
        let name = word.strip_prefix('@')?;
        Some((Completion::Mention(name.to_owned()), count(word)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_begin_the_draft_and_mentions_a_word() {
        let found = |text: &str| Draft::of(text).completion();
        assert_eq!(found("/re"), Some((Completion::Command("re".to_owned()), 3)));
        assert_eq!(found("see @src/ma"), Some((Completion::Mention("src/ma".to_owned()), 7)));
        for text in ["/review now", "a/b", "mail@host", "@a b", ""] {
            assert_eq!(found(text), None, "{text}");
        }
        let mut draft = Draft::of("see @ma");
        let (_, graphemes) = draft.completion().unwrap();
        draft.complete(graphemes, "@src/main.rs ");
        assert_eq!(draft.text(), "see @src/main.rs ");
    }
}
