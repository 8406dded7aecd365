//! The bytes of what happens most (design §1).

use super::emulator::{Kind, Pair};
use crate::frame::{Frame, Line, Place, Size, Style};
use crate::input::TerminalReply;
use crate::look::Look;
use crate::surface::{Capabilities, InlineSurface, Surface as _};

const SIZE: Size = Size { columns: 120, rows: 40 };

fn frame(typed: &str, spinner: &str, seconds: u32) -> Frame {
    let dim = Style::DIM;
    Frame {
        live: vec![
            Line::flush().with("─ 2 agents · 0 asks · 18.4k · $0.07 ─", dim),
            Line::flush().with("▸ writer Document sum.sh ● Bash ./test.sh 2 3.9k", Style::PLAIN),
            Line::flush()
                .with(spinner, Style::PLAIN)
                .with(format!(" Edit sum.sh · {seconds} s · ↓ 1.2k"), Style::PLAIN),
            Line::flush().with("❯ ", Style::BOLD).with(typed, Style::PLAIN),
            Line::flush().with(" manual · opus · 23 % of 200k · $0.11 · ? keys", dim),
        ],
        cursor: Some(Place { row: 3, column: 2 + u16::try_from(typed.len()).unwrap() }),
        ..Frame::default()
    }
}

fn pair() -> Pair {
    let mut pair = Pair::new(Kind::Cuts, true, SIZE);
    pair.draw(&frame("fix the", "⠧", 13));
    pair.answer();
    pair
}

#[test]
fn a_key_is_one_byte() {
    let mut pair = pair();
    assert_eq!(pair.draw(&frame("fix the ", "⠧", 13)), b"\x1b[C");
    assert_eq!(pair.draw(&frame("fix the b", "⠧", 13)), b"b");
    assert_eq!(pair.draw(&frame("fix the ", "⠧", 13)), b"\x08\x1b[K");
}

#[test]
fn a_tick_is_24_bytes_at_most() {
    let mut pair = pair();
    for (spinner, seconds) in [("⠇", 13), ("⠏", 14), ("⠋", 14), ("⠙", 15)] {
        let bytes = pair.draw(&frame("fix the", spinner, seconds));
        assert!(bytes.len() <= 24, "{} bytes: {:?}", bytes.len(), String::from_utf8_lossy(&bytes));
        assert!(!bytes.is_empty());
    }
}

#[test]
fn a_frame_that_is_there_already_is_no_byte() {
    let mut pair = pair();
    assert_eq!(pair.draw(&frame("fix the", "⠧", 13)), b"");
}

/// Failure 1: the screen flickers. A large frame is shown at once, and rows that are right are not written.
#[test]
fn nothing_flickers() {
    let mut pair = pair();
    let mut next = frame("fix the", "⠧", 13);
    next.print = (0..20).map(|line| Line::from(format!("line {line}").as_str())).collect();
    let bytes = pair.draw(&next);
    assert!(bytes.starts_with(b"\x1b[?2026h") && bytes.ends_with(b"\x1b[?2026l"));
    let text = String::from_utf8(bytes).unwrap();
    assert!(!text.contains("manual") && !text.contains("\x1b[J"), "{text:?}");
}

#[test]
fn four_kilobytes_of_answer_are_twelve_at_most() {
    let mut pair = pair();
    let words = "The loop begins with the second argument, and so the first one is never added. ";
    let answer: String = words.repeat(4096 / words.len() + 1).chars().take(4096).collect();
    let (mut sent, mut block, mut bytes) = (0, String::new(), 0);
    // Pieces of 20 bytes, sixty a second, in paragraphs of half a kilobyte.
    while sent < answer.len() {
        let end = (sent + 20).min(answer.len());
        block.push_str(&answer[sent..end]);
        sent = end;
        let mut next = frame("", "⠧", 13);
        if block.len() > 500 || sent == answer.len() {
            next.print = vec![Line::from(block.as_str())];
            block.clear();
        }
        let open = crate::text::wrapped(&Line::from(block.as_str()), SIZE.columns);
        next.cursor = Some(Place { row: 3 + u16::try_from(open.len()).unwrap(), column: 2 });
        next.live.splice(0..0, open);
        bytes += pair.draw(&next).len();
    }
    assert!(bytes <= 12 * 1024, "{bytes} bytes");
}

/// A terminal that says that it can show a frame at once gets its frames in this way from then on.
#[test]
fn a_reply_of_the_terminal_changes_the_bytes() {
    let large =
        Frame { live: vec![Line::flush().with("x".repeat(110), Style::PLAIN)], ..Frame::default() };
    let mut out = Vec::new();
    let mut surface = InlineSurface::new(SIZE, Look::default(), Capabilities::default());
    surface.draw(&large, SIZE, &mut out);
    assert!(!out.windows(5).any(|it| it == b"?2026"), "{out:?}");
    surface.reply(Some(&TerminalReply::Mode { mode: 2026, known: true }), &mut out);
    out.clear();
    surface.forget();
    surface.draw(&large, SIZE, &mut out);
    assert!(out.starts_with(b"\x1b[?2026h"), "{out:?}");
}
