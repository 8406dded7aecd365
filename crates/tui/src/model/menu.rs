//! The menu below the prompt: commands, files and agents that fit what is being typed.

use super::Model;
use crate::draft::{Completion, Draft};

/// The most entries of a menu.
pub(crate) const MOST_ENTRIES: usize = 50;

#[derive(Clone, Debug, Default)]
pub(crate) struct Menu {
    pub(crate) kind: MenuKind,
    pub(crate) entries: Vec<MenuEntry>,
    pub(crate) selected: usize,
    /// The subject of the menu: the word behind `/` or `@`.
    pub(crate) word: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum MenuKind {
    #[default]
    Commands,
    Mentions,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MenuEntry {
    /// The word that it writes.
    pub(crate) word: String,
    pub(crate) hint: String,
}

impl Model {
    /// Opens, changes or closes the menu for what the draft says now. Returns the word that files are wanted for.
    pub(crate) fn update_menu(&mut self) -> Option<String> {
        let selected = self.menu.take().map(|menu| (menu.word, menu.selected));
        let kept =
            |word: &str| selected.as_ref().filter(|(old, _)| old == word).map_or(0, |(_, at)| *at);
        let word = match self.draft()?.completion()?.0 {
            Completion::Command(word) => {
                let entries = self.commands_like(&word);
                if !entries.is_empty() {
                    let selected = kept(&word);
                    self.menu = Some(Menu { kind: MenuKind::Commands, entries, selected, word });
                }
                return None;
            }
            Completion::Mention(word) => word,
        };
        let lower = word.to_lowercase();
        let agents = self.agents.iter().filter(|(_, row)| !row.is_shell);
        let agents = agents.filter(|(_, row)| row.name.to_lowercase().contains(&lower));
        let mut entries: Vec<MenuEntry> = agents
            .map(|(_, row)| MenuEntry {
                word: format!("@{}", row.name),
                hint: format!("agent · {}", row.task),
            })
            .collect();
        entries.truncate(MOST_ENTRIES);
        let selected = kept(&word);
        self.menu = Some(Menu { kind: MenuKind::Mentions, entries, selected, word: word.clone() });
        Some(word)
    }

    fn commands_like(&self, word: &str) -> Vec<MenuEntry> {
        let lower = word.to_lowercase();
        let rank = |name: &str| match () {
            () if name.starts_with(&lower) => Some(0),
            () if name.contains(&lower) => Some(1),
            () => None,
        };
        let fitting = self
            .commands
            .iter()
            .filter_map(|command| Some((rank(&command.name.to_lowercase())?, command)));
        let mut fitting: Vec<_> = fitting.collect();
        fitting.sort_by(|(one, a), (other, b)| (one, &a.name).cmp(&(other, &b.name)));
        let entry = |(_, command): (i32, &super::CommandHint)| MenuEntry {
            word: format!("/{}", command.name),
            hint: format!(
                "{} {}",
                command.arguments,
                command.about.lines().next().unwrap_or_default()
            )
            .trim()
            .to_owned(),
        };
        fitting.into_iter().take(MOST_ENTRIES).map(entry).collect()
    }

    /// Takes the files that were found for a word, if it is still the word.
    pub(crate) fn add_files(&mut self, word: &str, files: Vec<String>) {
        if let Some(menu) =
            self.menu.as_mut().filter(|it| it.kind == MenuKind::Mentions && it.word == word)
        {
            let room = MOST_ENTRIES.saturating_sub(menu.entries.len());
            let entry = |file: String| MenuEntry { word: format!("@{file}"), hint: String::new() };
            menu.entries.extend(files.into_iter().take(room).map(entry));
        }
    }

    /// Writes the selected entry into the draft; whether there was one.
    pub(crate) fn complete(&mut self) -> bool {
        let Some(menu) = self.menu.take() else { return false };
        let Some(entry) = menu.entries.get(menu.selected) else { return false };
        let Some((_, graphemes)) = self.draft().and_then(Draft::completion) else { return false };
        // A directory continues: what is in it comes next.
        let end = if entry.word.ends_with('/') { "" } else { " " };
        let word = format!("{}{end}", entry.word);
        self.draft_mut().complete(graphemes, &word);
        true
    }
}
