//! Bytes of terminals, and what they mean.

use proptest::prelude::*;

use super::*;
use crate::frame::Place;

fn read(bytes: &[u8]) -> Vec<Input> {
    let (mut parser, mut out) = (InputParser::new(), Vec::new());
    parser.feed(bytes, &mut out);
    parser.flush(&mut out);
    out
}

fn key(bytes: &[u8]) -> Key {
    match read(bytes).as_slice() {
        [Input::Key(key)] => *key,
        other => panic!("{bytes:?} is {other:?}"),
    }
}

#[test]
fn keys_are_read_in_every_encoding() {
    let plain = Key::plain;
    for (bytes, expected) in [
        (&b"a"[..], plain(KeyCode::Char('a'))),
        ("日".as_bytes(), plain(KeyCode::Char('日'))),
        (b"\r", plain(KeyCode::Enter)),
        (b"\n", plain(KeyCode::Char('j')).ctrl()),
        (b"\x1b", plain(KeyCode::Escape)),
        (b"\x1ba", plain(KeyCode::Char('a')).alt()),
        (b"\x1b\r", plain(KeyCode::Enter).alt()),
        (b"\x1b[13;2u", plain(KeyCode::Enter).shift()),
        (b"\x1b[27;2;13~", plain(KeyCode::Enter).shift()),
        (b"\x1b[13;5u", plain(KeyCode::Enter).ctrl()),
        (b"\x1b[97;5u", plain(KeyCode::Char('a')).ctrl()),
        (b"\x1b[97;5:1u", plain(KeyCode::Char('a')).ctrl()),
        (b"\x1b[27u", plain(KeyCode::Escape)),
        // Ctrl+C on a Russian and Alt+P on a Greek keyboard; Alt+Shift+2, and letters of their own.
        (b"\x1b[1089::99;5u", plain(KeyCode::Char('c')).ctrl()),
        (b"\x1b[960::112;3u", plain(KeyCode::Char('p')).alt()),
        (b"\x1b[50:64;4u", plain(KeyCode::Char('@')).alt()),
        (b"\x1b[97:65;69u", plain(KeyCode::Char('a')).ctrl()),
        (b"\x1b[1089:1057:99;2u", plain(KeyCode::Char('\u{421}'))),
        (b"\x1b[A", plain(KeyCode::Up)),
        (b"\x1bOA", plain(KeyCode::Up)),
        (b"\x1b[1;5D", plain(KeyCode::Left).ctrl()),
        (b"\x1b[Z", plain(KeyCode::Tab).shift()),
        (b"\x1b[9;2u", plain(KeyCode::Tab).shift()),
        (b"\x1b[3~", plain(KeyCode::Delete)),
        (b"\x1b[15~", plain(KeyCode::F(5))),
        (b"\x1bOP", plain(KeyCode::F(1))),
        (b"\x18", plain(KeyCode::Char('x')).ctrl()),
        (b"\x1f", plain(KeyCode::Char('_')).ctrl()),
        (b"\x7f", plain(KeyCode::Backspace)),
    ] {
        assert_eq!(key(bytes), expected, "{}", String::from_utf8_lossy(bytes));
    }
}

#[test]
fn a_shortcut_of_the_desktop_writes_nothing() {
    // Failure 24.
    assert_eq!(read(b"\x1b[99;9u\x1b[107;17u"), []);
}

#[test]
fn a_key_that_is_let_go_is_no_key() {
    assert_eq!(read(b"\x1b[97;1:3u"), []);
    assert_eq!(read(b"\x1b[1;1:3A"), []);
}

#[test]
fn replies_are_told_from_keys() {
    assert_eq!(
        read(b"\x1b[8;24;80t\x1b[12;40R\x1b[?2026;2$y\x1b[?1u\x1bP>|kitty(0.32)\x1b\\\x1b[?62;4c\x1b[I"),
        [
            Input::Reply(TerminalReply::Size(Size { columns: 80, rows: 24 })),
            Input::Reply(TerminalReply::Cursor(Place { row: 11, column: 39 })),
            Input::Reply(TerminalReply::Mode { mode: 2026, known: true }),
            Input::Reply(TerminalReply::KittyKeys(1)),
            Input::Reply(TerminalReply::Version("kitty(0.32)".to_owned())),
            Input::Reply(TerminalReply::Attributes),
            Input::Focus(true),
        ]
    );
}

#[test]
fn the_mouse_is_read() {
    let [Input::Mouse(mouse)] = read(b"\x1b[<65;10;5M")[..] else { panic!() };
    assert_eq!((mouse.event, mouse.place), (MouseEvent::WheelDown, Place { row: 4, column: 9 }));
}

/// Failure 12: pastes are cut.
#[test]
fn a_paste_arrives_whole_with_all_that_looks_like_keys() {
    let text = "line\n\u{1b}[Aé日".repeat(50_000);
    let bytes = format!("\x1b[200~{}\x1b[201~x", text.replace('\n', "\r"));
    let inputs = read(bytes.as_bytes());
    assert_eq!(inputs[0], Input::Paste(text));
    assert_eq!(inputs.len(), 2);
}

#[test]
fn a_paste_whose_end_is_lost_arrives_and_keys_are_keys_again() {
    for (bytes, expected) in [
        (&b"\x1b[200~one\rtwo"[..], vec![Input::Paste("one\ntwo".to_owned())]),
        (b"\x1b[200~one\x1b[201", vec![Input::Paste("one".to_owned())]),
        (b"\x1b[200~", Vec::new()),
        (b"x", vec![Input::Key(Key::plain(KeyCode::Char('x')))]),
    ] {
        let (mut parser, mut out) = (InputParser::new(), Vec::new());
        parser.feed(bytes, &mut out);
        parser.give_up_paste(&mut out);
        assert_eq!(out, expected, "{}", String::from_utf8_lossy(bytes));
        assert!(!parser.is_pasting());
        out.clear();
        // The end that comes after all is no key.
        parser.feed(b"\x1b[201~\x03", &mut out);
        assert_eq!(out, [Input::Key(Key::plain(KeyCode::Char('c')).ctrl())]);
    }
}

#[test]
fn an_enter_inside_of_one_read_is_a_line_end() {
    let mut inputs = read(b"one\rtwo\r");
    unbracketed_paste(&mut inputs);
    assert_eq!(inputs, [Input::Paste("one\ntwo\n".to_owned())]);
    let mut inputs = read(b"y\r");
    let typed = inputs.clone();
    unbracketed_paste(&mut inputs);
    assert_eq!(inputs, typed);
}

#[test]
fn what_is_too_long_is_skipped() {
    let inputs = read(&[b"\x1b]52;c;".as_slice(), &b"A".repeat(100_000), b"\x07x"].concat());
    assert_eq!(inputs, [Input::Key(Key::plain(KeyCode::Char('x')))]);
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..6),
        "[a-zé日]{1,4}".prop_map(String::into_bytes),
        prop::sample::select(vec![
            &b"\x1b"[..],
            b"\x1b[",
            b"\x1b[200~",
            b"\x1b[201~",
            b"\x1b[A",
            b"\x1b[97;5u",
            b"\x1bP>|x\x1b\\",
            b"\x1b]0;",
            b"\x07",
            b"\x1b[1;",
            b";",
            b"1",
            b"~",
            b"\x1b[<0;3;4M",
        ])
        .prop_map(<[u8]>::to_vec),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn the_pieces_in_which_bytes_come_make_no_difference(
        bytes in bytes(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6)
    ) {
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        places.extend([0, bytes.len()]);
        places.sort_unstable();
        let (mut parser, mut out) = (InputParser::new(), Vec::new());
        for pair in places.windows(2) {
            parser.feed(&bytes[pair[0]..pair[1]], &mut out);
        }
        parser.flush(&mut out);
        prop_assert_eq!(out, read(&bytes));
    }
}
