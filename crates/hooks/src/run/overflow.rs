//! Texts of hooks that are too long for a conversation: the whole goes to a file, the beginning stays.

use std::path::Path;

use centurion_redact::keep;

use crate::reply::Reply;

/// The characters of a text that enter a conversation.
const LONGEST: usize = 10_000;

/// The characters that stay of a longer one.
const PREVIEW: usize = 2_000;

/// Shortens all texts of a reply that are too long.
pub(super) fn shorten(reply: &mut Reply, directory: &Path, hook_id: &str) {
    for (number, text) in reply.texts_mut().enumerate() {
        let Some((cut, _)) = text.char_indices().nth(LONGEST).and(text.char_indices().nth(PREVIEW))
        else {
            continue;
        };
        let path = directory.join(format!("hook-{hook_id}-{number}.txt"));
        let place = match keep(&path, text) {
            Ok(()) => format!("the whole text is in {}", path.display()),
            Err(error) => format!("the rest could not be kept: {error}"),
        };
        let left_out = text.chars().count() - PREVIEW;
        text.truncate(cut);
        text.extend(["\n[", &left_out.to_string(), " more characters; ", &place, "]"]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: String, directory: &Path) -> String {
        let mut reply = Reply { plain: Some(text), ..Reply::default() };
        shorten(&mut reply, directory, "id");
        reply.plain.unwrap()
    }

    #[test]
    fn a_long_text_is_kept_whole_in_a_file() {
        let scratch = tempfile::tempdir().unwrap();
        let directory = scratch.path().join("new");
        let fits = "ä".repeat(LONGEST);
        assert_eq!(told(fits.clone(), &directory), fits);
        let long = "ä".repeat(LONGEST + 1);
        let shown = told(long.clone(), &directory);
        let (preview, note) = shown.split_once('\n').unwrap();
        assert_eq!(preview, "ä".repeat(PREVIEW));
        assert!(note.starts_with("[8001 more characters; the whole text is in "), "{note}");
        let file = std::fs::read_dir(&directory).unwrap().next().unwrap().unwrap().path();
        assert!(note.contains(&*file.to_string_lossy()));
        assert_eq!(std::fs::read_to_string(file).unwrap(), long);
    }

    #[test]
    fn what_cannot_be_kept_is_said() {
        let shown = told("a".repeat(LONGEST + 1), Path::new("/dev/null/x"));
        assert!(shown.contains("could not be kept"), "{shown}");
    }
}
