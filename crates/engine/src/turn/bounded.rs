//! Text of results that is too long for a conversation: its beginning and its end, with the whole of it in a file.

use std::path::Path;

use centurion_redact::keep_over;

/// The text, or what of it fits into so many bytes.
pub(crate) fn bounded(text: String, most: usize, output_dir: &Path, name: &str) -> String {
    if text.len() <= most {
        return text;
    }
    let safe_name: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).take(80).collect();
    let path = output_dir.join(format!("{safe_name}.txt"));
    let place = match keep_over(&path, &text) {
        Ok(()) => format!("the whole text is in {}", path.display()),
        Err(error) => format!("the rest could not be kept: {error}"),
    };
    let head = text.floor_char_boundary(most - most / 4);
    let tail = text.ceil_char_boundary(text.len() - most / 4);
    let left_out = tail - head;
    format!("{}\n[{left_out} bytes are left out here; {place}]\n{}", &text[..head], &text[tail..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_and_the_end_are_shown_and_the_whole_is_kept() {
        let scratch = tempfile::tempdir().unwrap();
        let text = format!("begin{}é{}end", "x".repeat(5_000), "y".repeat(5_000));
        assert_eq!(bounded(text.clone(), 20_000, scratch.path(), "a"), text);
        for most in [100, 101, 4_003, 7_000] {
            let short = bounded(text.clone(), most, scratch.path(), "toolu/../1");
            assert!(short.starts_with("begin") && short.ends_with("end"), "{short}");
            assert!(short.len() < most + 200, "{}", short.len());
            let path = scratch.path().join("toolu____1.txt");
            assert!(short.contains(&format!("the whole text is in {}", path.display())), "{short}");
            assert_eq!(std::fs::read_to_string(path).unwrap(), text);
        }
    }
}
