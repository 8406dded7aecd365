//! The sequences of terminals: one key, event or reply at the beginning of some bytes.

use super::parser::Begin;
use super::{Input, Key, KeyCode, Mouse, MouseEvent, TerminalReply};
use crate::frame::{Place, Size};
use crate::text::foreign_text;

const ESCAPE: u8 = 0x1b;

/// The first thing in these bytes.
pub(super) fn begin(bytes: &[u8]) -> Begin {
    match bytes {
        [] | [ESCAPE] => Begin::Open,
        [ESCAPE, b'[', rest @ ..] => control(rest),
        [ESCAPE, b'O', rest @ ..] => match rest {
            [] => Begin::Open,
            [letter, ..] => whole(3, letter_key(*letter).map(Key::plain).map(Input::Key)),
        },
        [ESCAPE, b'P' | b']' | b'_' | b'^' | b'X', ..] => string(bytes),
        // Escape before a sequence: the key was pressed alone.
        [ESCAPE, ESCAPE, ..] => whole(1, Some(Input::Key(Key::plain(KeyCode::Escape)))),
        [ESCAPE, rest @ ..] => match character(rest) {
            Begin::Whole(used, Some(Input::Key(key))) => {
                whole(used + 1, Some(Input::Key(key.alt())))
            }
            Begin::Whole(used, input) => whole(used + 1, input),
            Begin::Open => Begin::Open,
        },
        _ => character(bytes),
    }
}

/// The inputs of bytes after which nothing came.
pub(super) fn given_up(bytes: &[u8]) -> Option<Input> {
    match bytes {
        [ESCAPE] => Some(Input::Key(Key::plain(KeyCode::Escape))),
        [ESCAPE, byte @ (b'[' | b'O' | b'P' | b']' | b'_' | b'^' | b'X')] => {
            Some(Input::Key(Key::plain(KeyCode::Char(char::from(*byte))).alt()))
        }
        [] | [ESCAPE, ..] => None,
        _ => Some(Input::Key(Key::plain(KeyCode::Char(char::REPLACEMENT_CHARACTER)))),
    }
}

/// The text that a key types, if it types one.
pub(super) fn typed(input: &Input) -> Option<char> {
    match input {
        Input::Key(Key { code, ctrl: false, alt: false, .. }) => match code {
            KeyCode::Char(char) => Some(*char),
            KeyCode::Enter => Some('\n'),
            KeyCode::Tab => Some('\t'),
            _ => None,
        },
        Input::Key(Key { code: KeyCode::Char('j'), ctrl: true, alt: false, .. }) => Some('\n'),
        _ => None,
    }
}

fn whole(used: usize, input: Option<Input>) -> Begin {
    Begin::Whole(used, input)
}

fn character(bytes: &[u8]) -> Begin {
    let Some(first) = bytes.first() else { return Begin::Open };
    let length = match first {
        0..0x80 => 1,
        0xc2..0xe0 => 2,
        0xe0..0xf0 => 3,
        0xf0..0xf5 => 4,
        _ => return whole(1, Some(typed_key(char::REPLACEMENT_CHARACTER))),
    };
    let there = &bytes[..bytes.len().min(length)];
    match std::str::from_utf8(there) {
        Ok(text) => match text.chars().next() {
            Some(char) => whole(char.len_utf8(), Some(typed_key(char))),
            None => Begin::Open,
        },
        Err(error) if error.error_len().is_none() => Begin::Open,
        Err(_) => whole(1, Some(typed_key(char::REPLACEMENT_CHARACTER))),
    }
}

/// The key of a character that came alone.
fn typed_key(char: char) -> Input {
    let letter = |offset: u32| char::from_u32(u32::from(char) + offset).unwrap_or(char);
    Input::Key(match char {
        '\r' => Key::plain(KeyCode::Enter),
        '\t' => Key::plain(KeyCode::Tab),
        '\u{7f}' => Key::plain(KeyCode::Backspace),
        '\0' => Key::plain(KeyCode::Char(' ')).ctrl(),
        '\u{1}'..='\u{1a}' => Key::plain(KeyCode::Char(letter(0x60))).ctrl(),
        '\u{1b}' => Key::plain(KeyCode::Escape),
        '\u{1c}'..='\u{1f}' => Key::plain(KeyCode::Char(letter(0x40).to_ascii_lowercase())).ctrl(),
        char => Key::plain(KeyCode::Char(char)),
    })
}

/// A control sequence, after its first two bytes.
fn control(rest: &[u8]) -> Begin {
    // Old mouse events and keys of the Linux console have letters of their own.
    if let [b'[', after @ ..] = rest {
        return match after {
            [] => Begin::Open,
            [letter @ b'A'..=b'E', ..] => {
                whole(4, Some(Input::Key(Key::plain(KeyCode::F(letter - b'A' + 1)))))
            }
            _ => whole(3, None),
        };
    }
    let Some(end) = rest.iter().position(|byte| !(0x20..0x40).contains(byte)) else {
        return Begin::Open;
    };
    if !(0x40..0x7f).contains(&rest[end]) {
        // It was cut off: what follows is read for itself.
        return whole(end + 2, None);
    }
    whole(end + 3, meaning(&rest[..end], rest[end]))
}

fn meaning(parameters: &[u8], last: u8) -> Option<Input> {
    let (mark, body) = match parameters.first() {
        Some(mark @ (b'?' | b'<' | b'>' | b'=')) => (Some(*mark), &parameters[1..]),
        _ => (None, parameters),
    };
    let (body, inner) = match body.last() {
        Some(inner @ 0x20..0x30) => (&body[..body.len() - 1], Some(*inner)),
        _ => (body, None),
    };
    let body = std::str::from_utf8(body).ok()?;
    let numbers: Vec<u32> = body
        .split(';')
        .map(|part| part.split(':').next().unwrap_or_default().parse().unwrap_or(0))
        .collect();
    let number = |index: usize| numbers.get(index).copied().unwrap_or(0);
    match (mark, inner, last) {
        (None, None, b'I') => Some(Input::Focus(true)),
        (None, None, b'O') => Some(Input::Focus(false)),
        (None, None, b'R') if numbers.len() == 2 && number(0) > 0 => {
            // F3 with modifiers looks the same in row 1: we asked for a place, so it is one.
            Some(Input::Reply(TerminalReply::Cursor(place(number(1), number(0)))))
        }
        (None, None, b't') if number(0) == 8 && number(1) > 0 && number(2) > 0 => {
            let (rows, columns) = (u16::try_from(number(1)).ok()?, u16::try_from(number(2)).ok()?);
            Some(Input::Reply(TerminalReply::Size(Size { columns, rows })))
        }
        (Some(b'?'), Some(b'$'), b'y') => Some(Input::Reply(TerminalReply::Mode {
            mode: u16::try_from(number(0)).ok()?,
            known: matches!(number(1), 1..=3),
        })),
        (Some(b'?'), None, b'u') => {
            Some(Input::Reply(TerminalReply::KittyKeys(u8::try_from(number(0)).ok()?)))
        }
        (Some(b'?'), None, b'c') => Some(Input::Reply(TerminalReply::Attributes)),
        (Some(b'<'), None, b'M' | b'm') => mouse(number(0), number(1), number(2), last == b'M'),
        (None, None, b'u') => key_event(body, number(0)),
        // modifyOtherKeys: CSI 27 ; modifiers ; character ~
        (None, None, b'~') if number(0) == 27 => {
            Some(Input::Key(modified(character_key(number(2))?, number(1))))
        }
        (None, None, b'~') => {
            Some(Input::Key(modified(Key::plain(numbered(number(0))?), number(1))))
        }
        (None, None, b'Z') => Some(Input::Key(Key::plain(KeyCode::Tab).shift())),
        (None, None, letter) => {
            let key = Key::plain(letter_key(letter)?);
            is_press(body).then(|| Input::Key(modified(key, number(1))))
        }
        _ => None,
    }
}

/// Bits of modifiers.
const SHIFT: u32 = 1;
const ALT: u32 = 2;
const CTRL: u32 = 4;
const SUPER: u32 = 8;
const HYPER: u32 = 16;
const META: u32 = 32;

/// A key of the kitty protocol: CSI code : with shift : on a Latin keyboard ; modifiers : event u
fn key_event(body: &str, code: u32) -> Option<Input> {
    if !is_press(body) {
        return None;
    }
    let modifiers = body.split(';').nth(1).and_then(|part| part.split(':').next());
    let modifiers: u32 = modifiers.and_then(|text| text.parse().ok()).unwrap_or(1);
    let bits = modifiers.saturating_sub(1);
    // Shortcuts of the desktop.
    if bits & (SUPER | HYPER) != 0 {
        return None;
    }
    let mut others = body.split(';').next().into_iter().flat_map(|keys| keys.split(':').skip(1));
    let mut other = || others.next().and_then(|text| text.parse().ok());
    let (shifted, latin): (Option<u32>, Option<u32>) = (other(), other());
    let has_shortcut = bits & (ALT | CTRL) != 0;
    let code = match (shifted, latin) {
        // A shortcut is where it is on a Latin keyboard, whatever is written there.
        (_, Some(latin)) if has_shortcut && code > 0x7f && latin <= 0x7f => latin,
        (Some(shifted), _) if bits & SHIFT != 0 && bits & CTRL == 0 => shifted,
        _ => code,
    };
    Some(Input::Key(modified(character_key(code)?, modifiers)))
}

fn is_press(body: &str) -> bool {
    let event = body.split(';').nth(1).and_then(|part| part.split(':').nth(1));
    !matches!(event, Some("3"))
}

fn character_key(code: u32) -> Option<Key> {
    Some(Key::plain(match code {
        9 => KeyCode::Tab,
        13 | 57_414 => KeyCode::Enter,
        27 => KeyCode::Escape,
        8 | 127 => KeyCode::Backspace,
        57_417 => KeyCode::Left,
        57_418 => KeyCode::Right,
        57_419 => KeyCode::Up,
        57_420 => KeyCode::Down,
        57_421 => KeyCode::PageUp,
        57_422 => KeyCode::PageDown,
        57_423 => KeyCode::Home,
        57_424 => KeyCode::End,
        57_425 => KeyCode::Insert,
        57_426 => KeyCode::Delete,
        // The digits of the number pad.
        57_399..=57_408 => KeyCode::Char(char::from_digit(code - 57_399, 10)?),
        // Keys without a character: modifiers, media keys.
        57_344..=63_743 => return None,
        code => {
            let char = char::from_u32(code)?;
            if char.is_control() {
                return None;
            }
            KeyCode::Char(char)
        }
    }))
}

/// The key with the modifiers of a parameter, which is one more than their bits.
fn modified(key: Key, parameter: u32) -> Key {
    let bits = parameter.saturating_sub(1);
    let (shift, alt, ctrl) = (bits & SHIFT != 0, bits & (ALT | META) != 0, bits & CTRL != 0);
    match key.code {
        // Shift makes another character.
        KeyCode::Char(char) if shift => {
            let upper =
                if char.is_ascii_lowercase() && !ctrl { char.to_ascii_uppercase() } else { char };
            Key { code: KeyCode::Char(upper), ctrl, alt, shift: ctrl }
        }
        code => Key { code, ctrl, alt, shift },
    }
}

fn letter_key(letter: u8) -> Option<KeyCode> {
    Some(match letter {
        b'A' => KeyCode::Up,
        b'B' => KeyCode::Down,
        b'C' => KeyCode::Right,
        b'D' => KeyCode::Left,
        b'F' => KeyCode::End,
        b'H' => KeyCode::Home,
        b'M' => KeyCode::Enter,
        b'P'..=b'S' => KeyCode::F(letter - b'P' + 1),
        _ => return None,
    })
}

fn numbered(number: u32) -> Option<KeyCode> {
    Some(match number {
        1 | 7 => KeyCode::Home,
        2 => KeyCode::Insert,
        3 => KeyCode::Delete,
        4 | 8 => KeyCode::End,
        5 => KeyCode::PageUp,
        6 => KeyCode::PageDown,
        11..=15 => KeyCode::F(u8::try_from(number - 10).ok()?),
        17..=21 => KeyCode::F(u8::try_from(number - 11).ok()?),
        23..=24 => KeyCode::F(u8::try_from(number - 12).ok()?),
        _ => return None,
    })
}

fn mouse(code: u32, column: u32, row: u32, is_pressed: bool) -> Option<Input> {
    let event = match code & !0b1_1100 {
        64 => MouseEvent::WheelUp,
        65 => MouseEvent::WheelDown,
        0 if is_pressed => MouseEvent::Pressed,
        0 => MouseEvent::Released,
        32 => MouseEvent::Dragged,
        35 => MouseEvent::Moved,
        _ => return None,
    };
    Some(Input::Mouse(Mouse {
        event,
        place: place(column, row),
        shift: code & 4 != 0,
        alt: code & 8 != 0,
        ctrl: code & 16 != 0,
    }))
}

/// A place that a terminal counts from one.
fn place(column: u32, row: u32) -> Place {
    let short = |number: u32| u16::try_from(number.saturating_sub(1)).unwrap_or(u16::MAX);
    Place { row: short(row), column: short(column) }
}

/// A string of the terminal, which ends with BEL or ST; of these only the name of the terminal is of use.
fn string(bytes: &[u8]) -> Begin {
    let end = bytes.iter().enumerate().skip(2).find_map(|(at, byte)| match *byte {
        7 => Some((at, at + 1)),
        ESCAPE => Some((at, at + 2)),
        _ => None,
    });
    let Some((end, used)) = end else { return Begin::Open };
    match bytes.get(used - 1) {
        None => Begin::Open,
        // Another sequence begins: this one was cut off.
        Some(byte) if used == end + 2 && *byte != b'\\' => whole(end, None),
        Some(_) => {
            let name = bytes[..end].strip_prefix(b"\x1bP>|".as_slice());
            let name = name.map(|name| foreign_text(&String::from_utf8_lossy(name)));
            whole(used, name.map(|name| Input::Reply(TerminalReply::Version(name))))
        }
    }
}
