//! The inline surface: the screen is the frame, and the scrollback has what was printed.

use proptest::prelude::*;

use super::emulator::{Emulator, Kind, Pair};
use crate::frame::{Colour, Frame, Line, Place, Size, Style};
use crate::look::Look;
use crate::surface::InlineSurface;
use crate::text::wrapped;

#[derive(Clone, Debug)]
enum Step {
    /// Lines to print, by the length of what follows their names; odd ones are flush.
    Print(Vec<usize>),
    /// Rows of the live region by their widths, and the row of the cursor.
    Live(Vec<usize>, usize),
    Resize(u16, u16),
    Answer,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => prop::collection::vec(0_usize..150, 1..6).prop_map(Step::Print),
        4 => (prop::collection::vec(0_usize..130, 1..14), 0_usize..14)
            .prop_map(|(rows, cursor)| Step::Live(rows, cursor)),
        2 => (20_u16..121, 5_u16..41).prop_map(|(columns, rows)| Step::Resize(columns, rows)),
        2 => Just(Step::Answer),
    ]
}

/// A line that begins with its name, which no other line has.
fn printed(number: usize, length: usize) -> Line {
    let style = if length.is_multiple_of(3) { Style::of(Colour::Green) } else { Style::PLAIN };
    let text = "wörd 日本 ".chars().cycle().take(length).collect::<String>();
    let line = if length.is_multiple_of(2) { Line::default() } else { Line::flush() };
    line.with(format!("<{number}>"), Style::BOLD).with(text.trim_end(), style)
}

fn live(widths: &[usize], cursor: usize, size: Size) -> (Vec<Line>, Option<Place>) {
    let most = usize::from(InlineSurface::live_rows(size));
    let rows: Vec<Line> = widths
        .iter()
        .take(most)
        .enumerate()
        .map(|(index, width)| {
            let text: String = "live·日本".chars().cycle().skip(index).take(*width).collect();
            let style = if width % 2 == 0 { Style::DIM } else { Style::PLAIN };
            Line::flush().with(text, style)
        })
        .collect();
    let row = u16::try_from(cursor.min(rows.len() - 1)).unwrap();
    let cursor = (cursor % 5 != 4).then_some(Place { row, column: 2 });
    (rows, cursor)
}

/// Draws once more with all answers there, and compares screen and scrollback with what they must be.
fn check(pair: &mut Pair, frame: &mut Frame, lines: &[Line], has_resized: bool) {
    // Answers bring a draw, which may bring a question.
    for _ in 0..3 {
        pair.answer();
        pair.draw(frame);
        frame.print.clear();
    }
    let screen = pair.emulator.screen();
    let row = frame.cursor.map_or(frame.live.len() - 1, |place| usize::from(place.row));
    let at = usize::from(pair.emulator.cursor().row);
    assert!(at >= row, "the cursor is above the live region: {screen:#?}");
    let top = at - row;
    for (index, line) in frame.live.iter().enumerate() {
        let expected = super::super::row::Row::new(line, pair.size.columns, Look::default());
        let expected: String = (0..expected.len()).map(|it| expected.seen(it).text).collect();
        assert_eq!(screen[top + index], expected.trim_end(), "row {index} of {screen:#?}");
    }
    let below = &screen[top + frame.live.len()..];
    assert!(below.iter().all(String::is_empty), "something is left below: {screen:#?}");
    let everything = pair.emulator.everything();
    let all: Vec<usize> = names(&everything.join("\n"));
    assert_eq!(all, (0..lines.len()).collect::<Vec<_>>(), "{everything:#?}");
    if !has_resized {
        let count = everything.len() - screen.len() + top;
        let above: String = everything[..count].iter().map(|row| row.trim_end()).collect();
        let expected: Vec<Line> =
            lines.iter().flat_map(|line| wrapped(line, pair.size.columns)).collect();
        let expected: String =
            expected.iter().map(|row| row.text().trim_end().to_owned()).collect();
        // A terminal that breaks a line may leave a cell before a wide character.
        assert_eq!(above.replace(' ', ""), expected.replace(' ', ""));
    }
}

/// The names of printed lines in a text, in order.
fn names(text: &str) -> Vec<usize> {
    let parts = text.split('<').skip(1).filter_map(|part| part.split_once('>'));
    parts.filter_map(|(name, _)| name.parse().ok()).collect()
}

fn run(kind: Kind, region: bool, size: Size, steps: &[Step]) {
    let mut pair = Pair::new(kind, region, size);
    let mut lines: Vec<Line> = Vec::new();
    let mut frame = Frame { live: vec![Line::from("❯ ")], ..Frame::default() };
    let mut shown = (vec![2], 0);
    let mut has_resized = false;
    for step in steps {
        match step {
            Step::Print(lengths) => {
                for length in lengths {
                    lines.push(printed(lines.len(), *length));
                    frame.print.push(lines[lines.len() - 1].clone());
                }
            }
            Step::Live(widths, cursor) => shown = (widths.clone(), *cursor),
            Step::Resize(columns, rows) => {
                // The live region fits before the window changes: draw what is there.
                check(&mut pair, &mut frame, &lines, has_resized);
                pair.resize(Size { columns: *columns, rows: *rows });
                has_resized = true;
            }
            Step::Answer => pair.answer(),
        }
        (frame.live, frame.cursor) = live(&shown.0, shown.1, pair.size);
        pair.draw(&frame);
        frame.print.clear();
    }
    check(&mut pair, &mut frame, &lines, has_resized);
}

fn sizes() -> impl Strategy<Value = (u16, u16)> {
    (prop_oneof![Just(40_u16), Just(80), Just(120)], 6_u16..40)
}

/// Failure 4: a resize doubles text. Rows of the live region that a smaller window pushes into the scrollback are erased
/// when a larger one brings them back.
#[test]
fn a_window_that_shrinks_and_grows_leaves_no_row_of_the_live_region_behind() {
    let full = Size { columns: 80, rows: 24 };
    // The top of the smaller window falls into a broken row in some sizes, and between two rows in others.
    // Of a terminal that cuts it is not known what becomes of rows for which the window has no room: none is taken for ours.
    let sizes = |least| (least..=20).flat_map(|rows| [20, 27, 40, 79].map(|it| (it, rows)));
    for kind in [Kind::Breaks, Kind::Cuts] {
        for region in [false, true] {
            for small in sizes(if kind == Kind::Breaks { 5 } else { 7 }) {
                let mut pair = Pair::new(kind, region, full);
                let print = (0..30).map(|number| printed(number, 20)).collect();
                let mut frame = Frame { print, ..Frame::default() };
                let rule = Line::flush().with("─ rule ".to_owned() + &"─".repeat(73), Style::DIM);
                let row =
                    Line::flush().with("agent".to_owned() + &" ".repeat(70) + "time", Style::PLAIN);
                let mut live = vec![rule; 1];
                live.extend(vec![row; 4]);
                live.push(Line::from("❯ "));
                frame.live = live;
                frame.cursor = Some(Place { row: 5, column: 2 });
                pair.draw(&frame);
                frame.print.clear();
                for _ in 0..3 {
                    for size in [Size { columns: small.0, rows: small.1 }, full] {
                        pair.resize(size);
                        for _ in 0..3 {
                            pair.answer();
                            pair.draw(&frame);
                        }
                    }
                }
                let everything = pair.emulator.everything().join("\n");
                assert_eq!(
                    everything.matches("rule").count(),
                    1,
                    "{small:?} {region}\n{everything}"
                );
                assert_eq!(everything.matches("agent").count(), 4, "{small:?}\n{everything}");
                assert_eq!(names(&everything), (0..30).collect::<Vec<_>>(), "{everything}");
            }
        }
    }
}

/// Failure 4 and 3: a window that changes twice before the program hears of it. The answer of the terminal is for its present
/// size, and no printed line is taken for one of the live region.
#[test]
fn a_size_that_is_heard_late_erases_no_printed_line() {
    let (full, small) = (Size { columns: 80, rows: 24 }, Size { columns: 30, rows: 12 });
    for region in [false, true] {
        let mut pair = Pair::new(Kind::Breaks, region, full);
        let rule = Line::flush().with("─".repeat(80), Style::DIM);
        let mut frame = Frame {
            print: (0..30).map(|number| printed(number, 20)).collect(),
            live: [vec![rule; 5], vec![Line::from("❯ ")]].concat(),
            cursor: Some(Place { row: 5, column: 2 }),
            ..Frame::default()
        };
        pair.draw(&frame);
        frame.print.clear();
        for _ in 0..3 {
            pair.answer();
            pair.draw(&frame);
        }
        pair.resize_unheard(small);
        pair.resize_unheard(full);
        for size in [small, full] {
            pair.hear(size);
            pair.answer();
            pair.draw(&frame);
        }
        for _ in 0..3 {
            pair.answer();
            pair.draw(&frame);
        }
        let everything = pair.emulator.everything().join("\n");
        assert_eq!(names(&everything), (0..30).collect::<Vec<_>>(), "{everything}");
        assert_eq!(everything.matches("────").count(), 5 * 20, "{everything}");
    }
}

/// Failure 13: copies have false breaks. A command or a line of code that is longer than the window is one line to the
/// terminal, whose selection copies it as it is.
#[test]
fn a_line_of_code_is_one_line_to_the_terminal_whatever_the_window() {
    for region in [false, true] {
        for columns in [20, 40, 80, 200] {
            let size = Size { columns, rows: 24 };
            let mut pair = Pair::new(Kind::Breaks, region, size);
            let code = format!("cargo test {} -- --exact", "--package some-crate ".repeat(15));
            let code = code.trim_end();
            let frame = Frame {
                print: vec![Line::from("Run this:"), Line::flush().with(code, Style::PLAIN)],
                live: vec![Line::from("❯ ")],
                cursor: Some(Place { row: 0, column: 2 }),
                ..Frame::default()
            };
            for _ in 0..3 {
                pair.draw(&Frame { print: Vec::new(), ..frame.clone() });
                pair.answer();
            }
            pair.draw(&frame);
            let Emulator::Breaks(terminal) = &pair.emulator else { panic!("another emulator") };
            let logical = terminal.primary_screen().text();
            assert!(logical.iter().any(|line| line.trim_end() == code), "{columns}: {logical:#?}");
        }
    }
}

/// A size of the window in a storm of them, and how far the program gets before the next one comes.
#[derive(Clone, Copy, Debug)]
enum Gust {
    /// It never hears of this one.
    Unheard(u16, u16),
    /// It hears of it, and has no answer when the next one comes.
    Unanswered(u16, u16),
    /// It has drawn for it.
    Drawn(u16, u16),
}

fn gust() -> impl Strategy<Value = Gust> {
    let size = || (20_u16..121, 8_u16..41);
    prop_oneof![
        size().prop_map(|(columns, rows)| Gust::Unheard(columns, rows)),
        size().prop_map(|(columns, rows)| Gust::Unanswered(columns, rows)),
        size().prop_map(|(columns, rows)| Gust::Drawn(columns, rows)),
    ]
}

/// The rows of 30 printed lines and a live region after a storm of sizes.
fn after_storm(region: bool, gusts: &[Gust]) -> String {
    let full = Size { columns: 80, rows: 24 };
    let mut pair = Pair::new(Kind::Breaks, region, full);
    let row = |words: &str, fill: &str| words.to_owned() + &fill.repeat(110);
    let flush = |text: String| Line::flush().with(text, Style::PLAIN);
    let mut live = vec![flush(row("rule", "─"))];
    live.extend((0..3).map(|_| flush(row("agent", "."))));
    live.push(Line::from("❯ "));
    let print = (0..30).map(|number| printed(number, 12)).collect();
    let cursor = Some(Place { row: 4, column: 2 });
    let mut frame = Frame { print, live, cursor, ..Frame::default() };
    let settle = |pair: &mut Pair, frame: &mut Frame| {
        for _ in 0..3 {
            pair.answer();
            pair.draw(frame);
            frame.print.clear();
        }
    };
    pair.draw(&frame);
    frame.print.clear();
    settle(&mut pair, &mut frame);
    for gust in gusts {
        match *gust {
            Gust::Unheard(columns, rows) => pair.resize_unheard(Size { columns, rows }),
            Gust::Unanswered(columns, rows) => pair.resize(Size { columns, rows }),
            Gust::Drawn(columns, rows) => {
                pair.resize(Size { columns, rows });
                settle(&mut pair, &mut frame);
            }
        }
    }
    pair.resize(full);
    settle(&mut pair, &mut frame);
    pair.emulator.everything().join("\n")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Failure 4: a storm of sizes leaves one live region, and each printed line once.
    #[test]
    fn a_storm_of_sizes_leaves_no_row_of_the_live_region_behind(
        region: bool, gusts in prop::collection::vec(gust(), 1..8)
    ) {
        let everything = after_storm(region, &gusts);
        prop_assert_eq!(names(&everything), (0..30).collect::<Vec<_>>(), "{}", everything);
        prop_assert_eq!(everything.matches("rule").count(), 1, "{}", everything);
        prop_assert_eq!(everything.matches("agent").count(), 3, "{}", everything);
    }

    /// Failures 3 and 4: scrollback lost, text doubled by a resize.
    #[test]
    fn each_printed_line_is_there_once_in_a_terminal_that_cuts_whatever_its_size(
        region: bool, size in sizes(), steps in prop::collection::vec(step(), 1..25)
    ) {
        run(Kind::Cuts, region, Size { columns: size.0, rows: size.1 }, &steps);
    }

    #[test]
    fn each_printed_line_is_there_once_in_a_terminal_that_breaks_lines_whatever_its_size(
        region: bool, size in sizes(), steps in prop::collection::vec(step(), 1..25)
    ) {
        run(Kind::Breaks, region, Size { columns: size.0, rows: size.1 }, &steps);
    }
}
