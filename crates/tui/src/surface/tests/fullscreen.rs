//! The fullscreen surface against an emulator: the screen is the frame below what was printed, whatever happens in between.

use proptest::prelude::*;

use super::emulator::{Emulator, Kind};
use crate::frame::{Frame, Line, Place, Size, Style};
use crate::input::{Mouse, MouseEvent};
use crate::look::Look;
use crate::surface::row::Row;
use crate::surface::{Capabilities, FullscreenSurface, MouseEffect, Scroll, Surface as _};
use crate::text::wrapped;

struct Pair {
    emulator: Emulator,
    surface: FullscreenSurface,
    size: Size,
    /// All that was written.
    bytes: Vec<u8>,
}

impl Pair {
    fn new(kind: Kind, size: Size) -> Self {
        let can = Capabilities { synchronized: true, ..Capabilities::default() };
        let surface = FullscreenSurface::new(size, Look::default(), can, true);
        Self { emulator: Emulator::new(kind, size), surface, size, bytes: Vec::new() }
    }

    fn take(&mut self, out: &[u8]) {
        self.emulator.feed(out);
        self.bytes.extend_from_slice(out);
    }

    fn draw(&mut self, frame: &Frame) -> usize {
        let mut out = Vec::new();
        self.surface.draw(frame, self.size, &mut out);
        self.take(&out);
        out.len()
    }

    fn resize(&mut self, size: Size) {
        self.size = size;
        self.emulator.resize(size);
        let mut out = Vec::new();
        self.surface.resized(size, &mut out);
        self.take(&out);
    }

    fn leave(&mut self) {
        let mut out = Vec::new();
        self.surface.leave(&mut out);
        self.take(&out);
    }

    fn mouse(&mut self, event: MouseEvent, row: u16, column: u16) -> MouseEffect {
        let place = Place { row, column };
        self.surface.mouse(&Mouse { event, place, ctrl: false, alt: false, shift: false })
    }
}

fn line(text: &str) -> Line {
    Line::flush().with(text, Style::PLAIN)
}

fn prompt(print: Vec<Line>, live: &[&str]) -> Frame {
    Frame {
        print,
        live: live.iter().map(|text| line(text)).collect(),
        cursor: Some(Place { row: 0, column: 2 }),
        ..Frame::default()
    }
}

fn numbered(lines: std::ops::Range<usize>) -> Vec<Line> {
    lines.map(|number| line(&format!("line {number}"))).collect()
}

const SIZE: Size = Size { columns: 40, rows: 10 };

#[test]
fn the_prompt_keeps_its_place_and_lines_scroll_above_it() {
    let mut pair = Pair::new(Kind::Cuts, SIZE);
    pair.draw(&prompt(numbered(0..3), &["❯ draft", "status"]));
    let screen = pair.emulator.screen();
    assert_eq!(screen[..4], ["line 0", "line 1", "line 2", ""]);
    assert_eq!(screen[8..], ["❯ draft", "status"]);
    assert_eq!(pair.emulator.cursor(), Place { row: 8, column: 2 });
    pair.draw(&prompt(numbered(3..30), &["❯ draft", "status"]));
    assert_eq!(pair.emulator.screen()[0], "line 22");
    let bytes = pair.draw(&prompt(numbered(30..31), &["❯ draft", "status"]));
    assert_eq!(pair.emulator.screen()[7], "line 30");
    assert!(bytes < 60, "rows that only stand higher are not written again: {bytes} bytes");
}

#[test]
fn the_wheel_and_keys_move_through_what_was_printed_and_nothing_that_comes_moves_it() {
    let mut pair = Pair::new(Kind::Cuts, SIZE);
    let draw = |pair: &mut Pair, lines| pair.draw(&prompt(lines, &["❯ ", "status"]));
    draw(&mut pair, numbered(0..50));
    assert_eq!(pair.mouse(MouseEvent::WheelUp, 2, 2), MouseEffect::None);
    draw(&mut pair, Vec::new());
    let screen = pair.emulator.screen();
    assert_eq!((screen[0].as_str(), screen[6].as_str()), ("line 39", "line 45"));
    assert!(screen[7].starts_with("↓ 3 more rows"), "{screen:?}");
    draw(&mut pair, numbered(50..60));
    assert_eq!(pair.emulator.screen()[..7], screen[..7], "what comes does not move it");
    pair.surface.scroll(Scroll::Top);
    draw(&mut pair, Vec::new());
    assert_eq!(pair.emulator.screen()[0], "line 0");
    pair.surface.scroll(Scroll::Pages(1));
    draw(&mut pair, Vec::new());
    assert_eq!(pair.emulator.screen()[0], "line 6", "two rows are seen again");
    pair.surface.scroll(Scroll::Bottom);
    draw(&mut pair, Vec::new());
    assert_eq!(pair.emulator.screen()[7], "line 59");
}

#[test]
fn a_selection_is_shown_and_copied_and_the_live_region_is_told_of_its_own_rows() {
    let mut pair = Pair::new(Kind::Cuts, SIZE);
    let frame = prompt(numbered(0..8), &["❯ ", "status"]);
    pair.draw(&frame);
    assert_eq!(pair.mouse(MouseEvent::Pressed, 2, 0), MouseEffect::None);
    assert_eq!(pair.mouse(MouseEvent::Dragged, 3, 5), MouseEffect::None);
    let before = pair.bytes.len();
    pair.draw(&prompt(Vec::new(), &["❯ ", "status"]));
    let drawn = String::from_utf8(pair.bytes[before..].to_vec()).unwrap();
    assert!(drawn.contains("\x1b[7mline 2"), "{drawn:?}");
    let copied = pair.mouse(MouseEvent::Released, 3, 5);
    assert_eq!(copied, MouseEffect::Copied("line 2\nline 3".to_owned()));
    let MouseEffect::Live(mouse) = pair.mouse(MouseEvent::Pressed, 9, 4) else {
        panic!("not told")
    };
    assert_eq!(mouse.place, Place { row: 1, column: 4 });
    // A click copies nothing.
    pair.mouse(MouseEvent::Pressed, 2, 0);
    assert_eq!(pair.mouse(MouseEvent::Released, 2, 0), MouseEffect::None);
}

#[test]
fn leaving_prints_the_last_lines_on_the_first_screen_and_undoes_every_mode() {
    let mut pair = Pair::new(Kind::Cuts, SIZE);
    pair.emulator.feed(b"$ centurion\r\n");
    pair.draw(&prompt(numbered(0..500), &["❯ ", "status"]));
    pair.leave();
    let everything = pair.emulator.everything();
    let rows: Vec<&str> =
        everything.iter().map(|row| row.trim_end()).filter(|it| !it.is_empty()).collect();
    assert_eq!(rows[..2], ["$ centurion", "line 300"]);
    assert_eq!((rows.len(), rows[rows.len() - 1]), (201, "line 499"));
    let Emulator::Cuts(parser) = &pair.emulator else { panic!("another emulator") };
    let screen = parser.screen();
    assert!(!screen.alternate_screen() && !screen.hide_cursor());
    assert_eq!(screen.mouse_protocol_mode(), vt100::MouseProtocolMode::None);
}

#[test]
fn an_editor_gets_the_first_screen_and_everything_is_there_again_behind_it() {
    let mut pair = Pair::new(Kind::Cuts, SIZE);
    let frame = prompt(numbered(0..3), &["❯ draft", "status"]);
    pair.draw(&frame);
    let before = pair.emulator.screen();
    let mut out = Vec::new();
    pair.surface.lend(&mut out);
    pair.take(&out);
    assert!(!pair.emulator.screen().iter().any(|row| row.contains("line")));
    pair.surface.forget();
    pair.draw(&prompt(Vec::new(), &["❯ draft", "status"]));
    assert_eq!(pair.emulator.screen(), before);
}

#[derive(Clone, Debug)]
enum Step {
    Print(Vec<usize>),
    Live(Vec<usize>),
    Scroll(isize),
    Resize(u16, u16),
    Press(u16, u16),
    Drag(u16, u16),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => prop::collection::vec(0_usize..150, 1..8).prop_map(Step::Print),
        3 => prop::collection::vec(0_usize..130, 1..12).prop_map(Step::Live),
        2 => (-30_isize..30).prop_map(Step::Scroll),
        1 => (20_u16..100, 5_u16..30).prop_map(|(columns, rows)| Step::Resize(columns, rows)),
        1 => (0_u16..30, 0_u16..100).prop_map(|(row, column)| Step::Press(row, column)),
        1 => (0_u16..30, 0_u16..100).prop_map(|(row, column)| Step::Drag(row, column)),
    ]
}

fn text(seed: usize, length: usize) -> String {
    "wörd 日本 ".chars().cycle().skip(seed % 7).take(length).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Failures 1 and 4: whatever moves, the screen is what a terminal shows that begins anew.
    #[test]
    fn the_screen_is_the_same_as_one_that_is_drawn_anew(
        breaks: bool, steps in prop::collection::vec(step(), 1..30)
    ) {
        let kind = if breaks { Kind::Breaks } else { Kind::Cuts };
        let mut pair = Pair::new(kind, Size { columns: 60, rows: 16 });
        let mut frame = prompt(Vec::new(), &["❯ "]);
        let mut printed: Vec<Line> = Vec::new();
        let mut is_scrolled = false;
        for step in steps {
            match step {
                Step::Print(lengths) => {
                    let lines: Vec<Line> = lengths.iter().map(|length| {
                        let wrap = Line::from(text(printed.len(), *length).as_str());
                        if length % 2 == 0 { wrap } else { line(&text(3, *length)) }
                    }).collect();
                    printed.extend(lines.iter().cloned());
                    frame.print = lines;
                }
                Step::Live(widths) => {
                    frame.live = widths.iter().enumerate().map(|(seed, width)| line(&text(seed, *width))).collect();
                }
                Step::Scroll(rows) => {
                    pair.surface.scroll(Scroll::Rows(rows));
                    is_scrolled = true;
                }
                Step::Resize(columns, rows) => pair.resize(Size { columns, rows }),
                Step::Press(row, column) => drop(pair.mouse(MouseEvent::Pressed, row, column)),
                Step::Drag(row, column) => {
                    is_scrolled = true;
                    drop(pair.mouse(MouseEvent::Dragged, row, column));
                }
            }
            pair.draw(&frame);
            frame.print.clear();
            let shown = pair.emulator.screen();
            pair.surface.forget();
            pair.draw(&frame);
            prop_assert_eq!(&shown, &pair.emulator.screen());
        }
        // The frame is shown below, and above it the end of what was printed.
        pair.surface.scroll(Scroll::Bottom);
        pair.draw(&frame);
        let rows = usize::from(pair.size.rows);
        let live = frame.live.len().min(rows);
        let above: Vec<Line> = printed.iter().flat_map(|line| wrapped(line, pair.size.columns)).collect();
        let room = rows - live;
        let above = &above[above.len().saturating_sub(room)..];
        for (index, line) in above.iter().enumerate() {
            let row = Row::new(line, pair.size.columns, Look::default());
            let expected: String = (0..row.len()).map(|it| row.seen(it).text).collect();
            let screen = pair.emulator.screen();
            prop_assert_eq!(screen[index].trim_end(), expected.trim_end(), "scrolled {}", is_scrolled);
        }
    }
}
