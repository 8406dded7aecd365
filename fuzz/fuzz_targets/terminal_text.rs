//! Text of models, tools and repositories: whatever it is, no character of it drives the terminal, no row is wider than the
//! window, and no word is lost.

#![no_main]

use centurion_fuzz::frame::{Frame, Line, Place, Size, Style};
use centurion_fuzz::look::Look;
use centurion_fuzz::surface::{Capabilities, InlineSurface, Surface};
use centurion_fuzz::text::{MarkdownStream, diff, foreign, foreign_text, wrapped};
use centurion_fuzz::{coloured, diff_beginning};
use libfuzzer_sys::fuzz_target;

// The first byte is the width of the window, the second one how the text is cut.
fuzz_target!(|data: &[u8]| {
    let [columns, size, body @ ..] = data else { return };
    let (columns, size) = (u16::from(*columns).max(2), usize::from(*size).max(1));
    let text = String::from_utf8_lossy(body);
    let mut stream = MarkdownStream::new();
    let mut lines: Vec<Line> = Vec::new();
    let chars: Vec<char> = text.chars().collect();
    for piece in chars.chunks(size) {
        stream.feed(&piece.iter().collect::<String>());
        check(&stream.open_block(), columns);
        lines.extend(stream.finished_blocks());
    }
    lines.extend(stream.finish());
    lines.extend(text.lines().map(|line| Line::from(foreign(line, Style::PLAIN))));
    let (old, new) = text.split_at(text.floor_char_boundary(text.len() / 2));
    lines.extend(diff(old, new));
    lines.extend(diff_beginning(old, new, size));
    lines.extend(text.lines().map(coloured));
    check(&lines, columns);
    let window = Size { columns, rows: 24 };
    let mut surface = InlineSurface::new(window, Look::default(), Capabilities::default());
    let live = lines.iter().take(20).cloned().collect();
    let cursor = Some(Place { row: 3, column: 2 });
    let title = Some(text.to_string());
    let frame = Frame { print: lines, live, cursor, title, is_whole: false };
    let mut bytes = Vec::new();
    surface.draw(&frame, window, &mut bytes);
    only_ours(&bytes);
    assert_safe(&foreign_text(&text));
});

fn check(lines: &[Line], columns: u16) {
    for line in lines {
        assert_safe(&line.text());
        for row in wrapped(line, columns) {
            let is_flush = row.wrap == line.wrap && row.text() == line.text();
            assert!(
                is_flush || row.width() <= usize::from(columns),
                "{row:?} in {columns} columns"
            );
        }
    }
}

fn assert_safe(text: &str) {
    let turns = |it: char| matches!(it, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    assert!(!text.contains(|it: char| it.is_control() || turns(it)), "{text:?}");
}

/// Every sequence that was written is one that the surface writes.
fn only_ours(bytes: &[u8]) {
    let text = std::str::from_utf8(bytes).expect("text");
    let mut rest = text;
    while let Some(at) = rest.find('\x1b') {
        rest = &rest[at + 1..];
        if let Some(title) = rest.strip_prefix("]2;") {
            let end = title.find('\x07').expect("the end of a title");
            assert_safe(&title[..end]);
            rest = &title[end + 1..];
            continue;
        }
        let sequence = rest.strip_prefix('[').expect("a control sequence");
        let end = sequence.find(|it: char| !"0123456789;?".contains(it)).expect("its end");
        assert!("ABCGHJKLMmhlrn".contains(&sequence[end..=end]), "{:?}", &sequence[..=end]);
        rest = &sequence[end + 1..];
    }
    assert!(!text.replace(['\x1b', '\r', '\n', '\x07', '\x08'], "").contains(char::is_control));
}
