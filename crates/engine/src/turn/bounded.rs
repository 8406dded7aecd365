//! Text of results that is too long for a conversation: its beginning and its end, with the whole of it in a file.

use std::path::Path;

use centurion_protocol::ToolResultContent;
use centurion_redact::keep_over;

/// The parts of a result. Where their texts together are too long, they become one: however many parts there are, one
/// file holds all of them, and one note names it.
pub(crate) fn bounded_parts(
    parts: Vec<ToolResultContent>,
    most: usize,
    output_dir: &Path,
    name: &str,
) -> Vec<ToolResultContent> {
    if parts.iter().map(ToolResultContent::text_length).sum::<usize>() <= most {
        return parts;
    }
    let (mut texts, mut others) = (Vec::new(), Vec::new());
    for part in parts {
        match part {
            ToolResultContent::Text(text) => texts.push(text),
            other => others.push(other),
        }
    }
    let text = bounded(texts.join("\n"), most, output_dir, name);
    others.insert(0, ToolResultContent::Text(text));
    others
}

/// The text, or what of it fits into so many bytes.
fn bounded(text: String, most: usize, output_dir: &Path, name: &str) -> String {
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
    fn many_small_parts_are_bounded_together() {
        let scratch = tempfile::tempdir().unwrap();
        let image = ToolResultContent::Image { media_type: "image/png".into(), data: "AA".into() };
        let small = || ToolResultContent::Text("0123456789".to_owned());
        let mut parts: Vec<_> = std::iter::repeat_with(small).take(10_000).collect();
        parts.push(image);
        let kept = bounded_parts(parts.clone(), 200_000, scratch.path(), "a");
        assert_eq!(kept.len(), 10_001, "what fits stays as it is");
        let short = bounded_parts(parts, 5_000, scratch.path(), "a");
        let size: usize = short.iter().map(ToolResultContent::text_length).sum();
        assert!(short.len() == 2 && size < 5_200, "{} parts of {size} bytes", short.len());
        let files = std::fs::read_dir(scratch.path()).unwrap().count();
        let whole = std::fs::read_to_string(scratch.path().join("a.txt")).unwrap();
        assert_eq!((files, whole.matches("0123456789").count()), (1, 10_000));
    }

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
