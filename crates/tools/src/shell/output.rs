//! The part of a command's output in an answer: its head, its tail, and the path of the rest.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use super::plain::plain;
use crate::disk;

/// Text for an answer.
pub(super) struct BoundedText {
    pub(super) text: String,
    /// Whether nothing was left out.
    pub(super) whole: bool,
}

/// The end of an output, as it is at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputTail {
    pub text: String,
    /// The bytes of the whole output.
    pub size: u64,
    /// Whether there is more before the text.
    pub is_cut: bool,
}

impl OutputTail {
    /// The most bytes of an end.
    const MOST: u64 = 8 * 1024;

    /// Reads the end of a file; of one that is gone it is empty.
    pub(super) fn read(path: &Path) -> io::Result<Self> {
        let mut file = match disk::open_own(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self { text: String::new(), size: 0, is_cut: false });
            }
            file => file?,
        };
        let size = file.metadata()?.len();
        file.seek(SeekFrom::Start(size.saturating_sub(Self::MOST)))?;
        let bytes = read_part(&mut file, Self::MOST)?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Ok(Self { text, size, is_cut: size > Self::MOST })
    }
}

/// Reads a command's output, at most `limit` characters of it.
pub(super) async fn read(path: &Path, limit: usize) -> BoundedText {
    let path = PathBuf::from(path);
    let reading = tokio::task::spawn_blocking(move || {
        read_now(&path, limit).unwrap_or_else(|error| BoundedText {
            text: format!("(the output in {} cannot be read: {error})", path.display()),
            whole: false,
        })
    });
    reading.await.unwrap_or_else(|error| BoundedText {
        text: format!("(the output cannot be read: {error})"),
        whole: false,
    })
}

fn read_now(path: &Path, limit: usize) -> io::Result<BoundedText> {
    let mut file = disk::open_own(path)?;
    let size = file.metadata()?.len();
    // Escape sequences and progress bars shrink: read a good deal more than the limit.
    let part = u64::try_from(limit).unwrap_or(u64::MAX).saturating_mul(4).max(512 * 1024);
    let place = Some(path);
    if size <= part * 2 {
        return Ok(bound(&plain(&read_part(&mut file, part * 2)?), limit, place));
    }
    let head = plain(&read_part(&mut file, part)?);
    file.seek(SeekFrom::Start(size - part))?;
    // The tail starts anywhere; its first line is whole only by chance.
    let tail = plain(&read_part(&mut file, part)?);
    let half = limit / 2;
    let (head, tail) = (first(&head, half), last(&tail, half));
    let left_out = size.saturating_sub((head.len() + tail.len()) as u64);
    Ok(BoundedText { text: join(head, tail, left_out, place), whole: false })
}

fn read_part(file: &mut File, size: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(size).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Bounds a text to about `limit` characters. `place` is the path of the whole text.
fn bound(text: &str, limit: usize, place: Option<&Path>) -> BoundedText {
    // Bytes are never fewer than characters, and cheaper to count.
    if text.len() <= limit || text.chars().count() <= limit {
        return BoundedText { text: text.to_owned(), whole: true };
    }
    let half = limit / 2;
    let (head, tail) = (first(text, half), last(text, half));
    let left_out = (text.len() - head.len() - tail.len()) as u64;
    BoundedText { text: join(head, tail, left_out, place), whole: false }
}

fn join(head: &str, tail: &str, left_out: u64, place: Option<&Path>) -> String {
    let place = place.map(|path| format!("; all of it is in {}", path.display()));
    let place = place.unwrap_or_default();
    format!("{}\n[… {left_out} bytes left out{place} …]\n{tail}", head.trim_end_matches('\n'))
}

/// The characters by which a cut may move to fall between lines.
const LINE: usize = 1_000;

/// The first `count` characters, or a little fewer to end with a whole line.
fn first(text: &str, count: usize) -> &str {
    let end = text.char_indices().nth(count).map_or(text.len(), |(index, _)| index);
    let (head, _) = text.split_at(end);
    match head.rfind('\n') {
        Some(newline) if end - newline < LINE.min(count) => head.split_at(newline + 1).0,
        _ => head,
    }
}

/// The last `count` characters, or a little fewer to begin with a whole line.
fn last(text: &str, count: usize) -> &str {
    let start = match count.checked_sub(1) {
        Some(before) => text.char_indices().nth_back(before).map_or(0, |(index, _)| index),
        None => text.len(),
    };
    let (_, tail) = text.split_at(start);
    match tail.find('\n') {
        Some(newline) if start > 0 && newline < LINE.min(count) => tail.split_at(newline + 1).1,
        _ => tail,
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::fs;

    use super::*;

    #[test]
    fn a_text_within_the_limit_is_whole() {
        let bounded = bound("äöü", 3, None);
        assert!(bounded.whole && bounded.text == "äöü");
        let bounded = bound("", 0, None);
        assert!(bounded.whole && bounded.text.is_empty());
    }

    #[test]
    fn a_long_text_keeps_whole_lines_of_both_ends() {
        let text = (0..1_000).fold(String::new(), |mut text, number| {
            writeln!(text, "line {number}").unwrap();
            text
        });
        let bounded = bound(&text, 100, Some(Path::new("/there")));
        assert!(!bounded.whole);
        assert!(bounded.text.starts_with("line 0\nline 1\n"), "{}", bounded.text);
        assert!(bounded.text.ends_with("line 998\nline 999\n"), "{}", bounded.text);
        let middle = bounded.text.lines().find(|line| line.starts_with('[')).unwrap();
        assert!(middle.ends_with("bytes left out; all of it is in /there …]"), "{middle}");
        let kept: usize =
            bounded.text.lines().filter(|l| !l.starts_with('[')).map(|l| l.len() + 1).sum();
        let said: usize = middle.split(' ').nth(1).unwrap().parse().unwrap();
        assert_eq!(kept + said, text.len());
    }

    #[test]
    fn one_huge_line_is_cut_between_characters() {
        let bounded = bound(&"€".repeat(5_000), 100, None);
        assert_eq!(bounded.text.matches('€').count(), 100);
        assert!(bounded.text.contains("14700 bytes left out"), "{}", bounded.text);
    }

    #[test]
    fn a_huge_file_is_not_read_whole() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("output");
        let file = File::create(&path).unwrap();
        fs::write(&path, "head\n").unwrap();
        // Sparse: reading all of it would take far longer than a test should.
        file.set_len(1 << 40).unwrap();
        let bounded = read_now(&path, 1_000).unwrap();
        assert!(!bounded.whole);
        assert!(bounded.text.starts_with("head\n"), "{}", bounded.text);
        assert!(bounded.text.contains("all of it is in"), "{}", bounded.text);
    }

    proptest::proptest! {
        #[test]
        fn no_text_grows_beyond_its_limit(text in "(.|\n){0,300}", limit in 0_usize..200) {
            let bounded = bound(&text, limit, None);
            let note = 60;
            proptest::prop_assert!(bounded.text.chars().count() <= limit + note);
            proptest::prop_assert_eq!(bounded.whole, text.chars().count() <= limit);
        }
    }
}
