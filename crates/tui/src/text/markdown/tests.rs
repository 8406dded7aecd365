//! Markdown in pieces gives the lines of the whole.

use proptest::prelude::*;

use super::*;
use crate::frame::Wrap;

const SAMPLE: &str = "# Title\n\nSome *soft* and **strong** words\nwith `code` and [a link](http://x.y).\n\n\
    - one\n- two\n  1. deep\n  2. deeper\n\n- loose\n\n```rust\nfn main() {\n\n    // hi\n}\n```\n\
    > quoted\n> text\n\n| a | bc |\n|---|---|\n| 1 | 2 |\n\nEnd.\n";

fn texts(lines: &[Line]) -> Vec<String> {
    lines.iter().map(|line| line.text().trim_end().to_owned()).collect()
}

#[test]
fn markdown_is_shown_as_lines() {
    let mut stream = MarkdownStream::new();
    stream.feed(SAMPLE);
    assert_eq!(
        texts(&stream.finish()),
        [
            "Title",
            "",
            "Some soft and strong words with code and a link (http://x.y).",
            "",
            "- one",
            "- two",
            "  1. deep",
            "  2. deeper",
            "- loose",
            "",
            "fn main() {",
            "",
            "    // hi",
            "}",
            "",
            "│ quoted text",
            "",
            "a │ bc",
            "──┼───",
            "1 │ 2",
            "",
            "End.",
        ]
    );
}

#[test]
fn code_is_flush_so_that_it_is_copied_as_it_is() {
    let mut stream = MarkdownStream::new();
    stream.feed("```\n    a very long line\n```\n");
    let lines = stream.finished_blocks();
    assert_eq!((lines[0].wrap, lines[0].text()), (Wrap::Flush, "    a very long line".to_owned()));
}

/// Failure 7: typing lags. A frame makes no more of a long block than a window shows.
#[test]
fn of_a_long_block_the_end_is_shown_as_it_will_be_printed() {
    let lines = |line: &dyn Fn(usize) -> String| (0..2_000).map(line).collect::<Vec<_>>().concat();
    let code = lines(&|at| format!("let value_{at} = compute({at});\n"));
    let list = lines(&|at| format!("- item {at} of many\n"));
    let words = "word ".repeat(10_000);
    for text in [format!("```rust\n{code}"), list, words] {
        let mut stream = MarkdownStream::new();
        stream.feed(&text);
        let shown = stream.open_block();
        let all = render::lines(&text);
        let count: usize = shown.iter().map(|line| line.text().len()).sum();
        assert!(count <= MOST_SHOWN + 100, "{count} bytes");
        let rows = shown.len().min(60).saturating_sub(1);
        assert_eq!(shown[shown.len() - rows..], all[all.len() - rows..]);
    }
}

#[test]
fn a_block_is_finished_when_nothing_can_change_it() {
    for (text, finished) in [
        ("one", ""),
        ("one\n\n", ""),
        ("one\n\ntwo", "one\n\n"),
        ("# head\n", "# head\n"),
        ("```\na\n\nb\n", ""),
        ("```\na\n\nb\n```\n", "```\na\n\nb\n```\n"),
        ("- a\n\n- b\n\n", ""),
        ("- a\n\n  more\n\nparagraph", "- a\n\n  more\n\n"),
    ] {
        assert_eq!(&text[..super::finished(text)], finished, "{text:?}");
    }
}

/// Failure 25: foreign text drives the terminal.
#[test]
fn an_answer_cannot_drive_the_terminal() {
    let mut stream = MarkdownStream::new();
    stream.feed("a\u{1b}]0;x\u{7} `\u{9b}2J`\n\n```\n\u{1b}[2J\n```\n<b>\u{1b}c</b>\n");
    let text: String = stream.finish().iter().map(Line::text).collect();
    assert!(!text.contains(|char: char| char.is_control()), "{text:?}");
    assert!(text.contains("␛[2J"));
}

proptest! {
    #[test]
    fn pieces_of_any_size_give_the_lines_of_the_whole(
        cuts in prop::collection::vec(0_usize..SAMPLE.len(), 0..12)
    ) {
        let mut places: Vec<usize> =
            cuts.into_iter().filter(|at| SAMPLE.is_char_boundary(*at)).collect();
        places.extend([0, SAMPLE.len()]);
        places.sort_unstable();
        let (mut stream, mut lines) = (MarkdownStream::new(), Vec::new());
        for pair in places.windows(2) {
            stream.feed(&SAMPLE[pair[0]..pair[1]]);
            lines.extend(stream.finished_blocks());
            let _ = stream.open_block();
        }
        lines.extend(stream.finish());
        let mut whole = MarkdownStream::new();
        whole.feed(SAMPLE);
        prop_assert_eq!(texts(&lines), texts(&whole.finish()));
    }

    #[test]
    fn any_text_becomes_safe_lines(text in "[\\PC\n#*`|>\\-\u{1b}]{0,200}") {
        let mut stream = MarkdownStream::new();
        stream.feed(&text);
        let mut lines = stream.finished_blocks();
        lines.extend(stream.finish());
        let is_safe = |line: &Line| !line.text().contains(char::is_control);
        prop_assert!(lines.iter().all(is_safe));
    }
}
