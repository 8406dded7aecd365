//! The part of a long page that an answer holds.

use std::collections::{HashMap, HashSet};

use thiserror::Error;

/// The characters of a page in an answer.
const ANSWER: usize = 40_000;
/// The characters of them for the passages nearest to the prompt.
const PASSAGES: usize = 12_000;
/// The characters by which a cut may move to fall between lines.
const LINE: usize = 1_000;

/// An offset beyond the end of the page.
#[derive(Debug, Error)]
#[error("the page has {total} characters: offset {offset} is beyond its end")]
pub(super) struct BeyondEnd {
    total: usize,
    offset: usize,
}

/// The part from `offset` on, and the offset of the next part. At the start of a long page the passages that share most
/// with the prompt come first.
pub(super) fn window(text: &str, offset: usize, prompt: Option<&str>) -> Result<String, BeyondEnd> {
    let total = text.chars().count();
    if total == 0 {
        return Ok("(the page holds no text)".to_owned());
    }
    if offset >= total {
        return Err(BeyondEnd { total, offset });
    }
    let long = total > ANSWER && offset == 0;
    let passages = prompt.filter(|_| long).map(|prompt| nearest(text, prompt)).unwrap_or_default();
    let room = ANSWER - passages.iter().map(|passage| length(passage)).sum::<usize>();

    let start = byte_of(text, offset);
    let (_, rest) = text.split_at(start);
    let (part, more) = rest.split_at(cut(rest, room));
    let mut answer = String::new();
    if !passages.is_empty() {
        answer.push_str("Passages nearest to the prompt, best first:\n\n");
        answer.push_str(&passages.join("\n\n"));
        answer.push_str("\n\n---\nThe page from its start:\n\n");
    }
    answer.push_str(part.trim_end());
    if !more.is_empty() {
        let next = offset + part.chars().count();
        let note =
            format!("[Characters {offset} to {next} of {total}. Continue with offset {next}.]");
        answer.push_str("\n\n");
        answer.push_str(&note);
    }
    Ok(answer)
}

fn byte_of(text: &str, character: usize) -> usize {
    text.char_indices().nth(character).map_or(text.len(), |(place, _)| place)
}

/// The offset of a cut that leaves at most `count` characters: between lines, if a line end is near.
fn cut(text: &str, count: usize) -> usize {
    let end = byte_of(text, count);
    let (head, tail) = text.split_at(end);
    match head.rfind('\n') {
        Some(newline) if !tail.is_empty() && end - newline < LINE.min(count) => newline + 1,
        _ => end,
    }
}

/// The paragraphs that share most words with the prompt, best first. A word counts for more the fewer paragraphs have
/// it.
fn nearest<'a>(text: &'a str, prompt: &str) -> Vec<&'a str> {
    let wanted: HashSet<String> = words(prompt).collect();
    let paragraphs: Vec<(&str, HashSet<String>)> = text
        .split("\n\n")
        .map(str::trim)
        .filter(|paragraph| !paragraph.is_empty())
        .map(|paragraph| (paragraph, words(paragraph).filter(|w| wanted.contains(w)).collect()))
        .collect();
    let mut spread: HashMap<&str, usize> = HashMap::new();
    for word in paragraphs.iter().flat_map(|(_, words)| words) {
        *spread.entry(word).or_default() += 1;
    }
    let weight = |word: &String| {
        let having = spread.get(word.as_str()).copied().unwrap_or(1);
        (1.0 + paragraphs.len() as f64 / having as f64).ln()
    };
    let mut scored: Vec<(f64, &str)> = paragraphs
        .iter()
        .map(|(paragraph, words)| (words.iter().map(weight).sum(), *paragraph))
        .filter(|(score, _)| *score > 0.0)
        .collect();
    // Stable: of equals, the one that comes first in the page stays first.
    scored.sort_by(|(one, _), (two, _)| two.total_cmp(one));
    // A paragraph that shares only common words with the prompt is not near to it.
    let enough = scored.first().map_or(0.0, |(best, _)| best / 2.0);
    let mut room = PASSAGES;
    let fitting = scored.into_iter().filter(|(score, _)| *score >= enough);
    let fitting = fitting.filter_map(|(_, paragraph)| {
        room = room.checked_sub(length(paragraph))?;
        Some(paragraph)
    });
    fitting.collect()
}

/// The characters of a paragraph, with the separator to the next.
fn length(paragraph: &str) -> usize {
    paragraph.chars().count() + 2
}

/// The words of a text that are long enough to mean something.
fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|character: char| !character.is_alphanumeric())
        .filter(|word| word.chars().count() > 2)
        .map(str::to_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn long_page() -> String {
        let paragraph = |number| format!("Paragraph {number} talks about the weather of the day.");
        let mut paragraphs: Vec<_> = (0..2_000).map(paragraph).collect();
        paragraphs[1_900] = "The Retry-After header delays the weather.".to_owned();
        paragraphs[1_950] = "Nothing but headers here.".to_owned();
        paragraphs.join("\n\n")
    }

    #[test]
    fn a_short_page_is_whole() {
        assert_eq!(window("short", 0, Some("anything")).unwrap(), "short");
        assert_eq!(window("", 0, None).unwrap(), "(the page holds no text)");
        assert!(window("short", 5, None).unwrap_err().to_string().contains("5 characters"));
    }

    #[test]
    fn a_long_page_can_be_read_to_its_end() {
        let page = long_page();
        let (mut offset, mut read) = (0, String::new());
        loop {
            let answer = window(&page, offset, None).unwrap();
            assert!(answer.chars().count() <= ANSWER + 100);
            let Some((part, note)) = answer.rsplit_once("\n\n[Characters") else {
                read.push_str(&answer);
                break;
            };
            let next = note.rsplit_once("offset ").unwrap().1.trim_end_matches(".]");
            offset = next.parse().unwrap();
            // The line ends at the cut are not shown.
            read.push_str(part);
            while read.chars().count() < offset {
                read.push('\n');
            }
        }
        assert_eq!(read, page);
    }

    #[test]
    fn what_the_prompt_asks_for_comes_first() {
        let answer = window(&long_page(), 0, Some("What does the Retry-After header do?")).unwrap();
        let first = answer.split("\n\n").nth(1).unwrap();
        assert_eq!(first, "The Retry-After header delays the weather.");
        assert!(answer.contains("weather.\n\n---\nThe page from its start:\n\nParagraph 0 "));
        assert!(answer.chars().count() <= ANSWER + 250);
        // Words that the page does not have change nothing.
        let answer = window(&long_page(), 0, Some("zzz qqq")).unwrap();
        assert!(answer.starts_with("Paragraph 0 "));
    }

    #[test]
    fn one_endless_line_is_cut_between_characters() {
        let page = "€".repeat(ANSWER + 10);
        let answer = window(&page, 0, None).unwrap();
        assert!(answer.ends_with("[Characters 0 to 40000 of 40010. Continue with offset 40000.]"));
        assert_eq!(window(&page, 40_000, None).unwrap(), "€".repeat(10));
    }
}
