//! The person's `keybindings.json`: read at the start, and again when a file has changed.

use std::path::PathBuf;
use std::time::SystemTime;

use centurion_config::paths::Dirs;
use centurion_protocol::bounded;
use centurion_tui::{Bindings, Fact};
use parking_lot::Mutex;

/// The largest file of keys.
const MOST_KEYS: u64 = 1024 * 1024;

/// The state of a file when it was read last.
type Stamp = Option<(SystemTime, u64)>;

/// The files, those that go before others last.
pub(super) struct KeyFiles {
    files: Vec<PathBuf>,
    read: Mutex<Vec<Stamp>>,
}

impl KeyFiles {
    pub(super) fn new(dirs: &Dirs) -> Self {
        let files = dirs.config_dirs().iter().map(|dir| dir.join("keybindings.json")).collect();
        Self { files, read: Mutex::new(Vec::new()) }
    }

    /// The file that goes before all others.
    pub(super) fn own(&self) -> Option<PathBuf> {
        self.files.last().cloned()
    }

    /// The keys and what is wrong with the files, if one of them has changed since the last look.
    pub(super) fn changed(&self) -> Vec<Fact> {
        let stamp = |path: &PathBuf| {
            let file = path.metadata().ok()?;
            Some((file.modified().ok()?, file.len()))
        };
        let now: Vec<Stamp> = self.files.iter().map(stamp).collect();
        let mut read = self.read.lock();
        let is_first = read.is_empty();
        let is_known = if is_first { now.iter().all(Option::is_none) } else { *read == now };
        *read = now;
        if is_known {
            return Vec::new();
        }
        let mut bindings = Bindings::defaults();
        let mut facts = Vec::new();
        for file in self.files.iter().filter(|file| file.exists()) {
            let told = |line: usize, message: &str| {
                Fact::Said(format!("{}:{line}: {message}", file.display()))
            };
            match bounded::read_text_file(file, MOST_KEYS) {
                Ok(text) => {
                    let mistakes = bindings.add(&text, file);
                    facts.extend(mistakes.iter().map(|it| told(it.line, &it.message)));
                }
                Err(error) => facts.push(told(1, &error.to_string())),
            }
        }
        if !is_first {
            facts.push(Fact::Notice("the keys were read again".to_owned()));
        }
        facts.push(Fact::Keys(bindings));
        facts
    }
}

#[cfg(test)]
mod tests {
    use centurion_protocol::Env;

    use super::*;

    #[test]
    fn keys_of_both_places_count_are_read_again_and_mistakes_name_file_and_line() {
        let home = tempfile::tempdir().unwrap();
        let dirs = Dirs::new(&Env::default(), Some(home.path())).unwrap();
        let files = KeyFiles::new(&dirs);
        assert!(files.changed().is_empty(), "without files there is nothing to say");
        let place = home.path().join(".claude");
        std::fs::create_dir(&place).unwrap();
        let text = "{\"bindings\": [{\"context\": \"Chat\", \"bindings\": {\n\"alt+m\": \"chat:dance\"}}]}";
        std::fs::write(place.join("keybindings.json"), text).unwrap();
        let facts = files.changed();
        let said = facts.iter().find_map(|fact| match fact {
            Fact::Said(text) => Some(text.clone()),
            _ => None,
        });
        assert!(
            said.unwrap().ends_with("keybindings.json:2: action `chat:dance` is not known here")
        );
        assert!(matches!(facts.last(), Some(Fact::Keys(_))));
        assert!(files.changed().is_empty(), "nothing has changed since");
        std::fs::remove_file(place.join("keybindings.json")).unwrap();
        assert!(matches!(files.changed().last(), Some(Fact::Keys(_))), "the defaults are back");
    }
}
