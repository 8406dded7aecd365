//! The code of a source file: comments, strings and characters become blanks, so that brackets can be counted.

/// The text with blanks in place of comments, strings and characters. Line ends stay where they are.
pub(crate) fn code(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut code = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let Some(end) = literal_end(bytes, at) else {
            at += 1;
            continue;
        };
        let end = end.min(bytes.len());
        for byte in &mut code[at..end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = end;
    }
    String::from_utf8(code).expect("only whole characters were replaced")
}

/// The end of the comment, string or character that begins here.
fn literal_end(text: &[u8], at: usize) -> Option<usize> {
    let rest = &text[at..];
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let begins_word = at == 0 || !is_word(text[at - 1]);
    let find = |from: usize, wanted: &[u8]| {
        let found = text[from..].windows(wanted.len()).position(|it| it == wanted);
        found.map_or(text.len(), |place| from + place + wanted.len())
    };
    match rest {
        [b'/', b'/', ..] => Some(find(at, b"\n") - usize::from(rest.contains(&b'\n'))),
        [b'/', b'*', ..] => Some(find(at + 2, b"*/")),
        [b'"', ..] => Some(quoted_end(text, at, b'"')),
        [b'r', ..] | [b'b', b'r', ..] if begins_word => {
            let mark = at + usize::from(rest[0] == b'b') + 1;
            let hashes = text[mark..].iter().take_while(|it| **it == b'#').count();
            let is_raw = text.get(mark + hashes) == Some(&b'"');
            let closing = [b"\"", vec![b'#'; hashes].as_slice()].concat();
            is_raw.then(|| find(mark + hashes + 1, &closing))
        }
        [b'\'', b'\\', ..] => Some(quoted_end(text, at, b'\'')),
        [b'\'', ..] => {
            // A lifetime has no second quote right behind its first character.
            let letter = str::from_utf8(&rest[1..rest.len().min(5)]);
            let letter = letter.or_else(|error| str::from_utf8(&rest[1..=error.valid_up_to()]));
            let length = letter.ok()?.chars().next()?.len_utf8();
            (rest.get(1 + length) == Some(&b'\'')).then_some(at + length + 2)
        }
        _ => None,
    }
}

/// The end of a text with escapes between two quotes.
fn quoted_end(text: &[u8], at: usize, quote: u8) -> usize {
    let mut at = at + 1;
    while at < text.len() && text[at] != quote {
        at += if text[at] == b'\\' { 2 } else { 1 };
    }
    at + 1
}

/// The place of the bracket that closes the one at a place.
pub(crate) fn closing(code: &str, open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

/// The number of parts between commas: arguments, or fields. Attributes are no parts.
pub(crate) fn parts(list: &str) -> usize {
    let (mut depth, mut count, mut has_any, mut before) = (0_i32, 0, false, ' ');
    let mut in_attribute = false;
    for letter in list.chars() {
        match letter {
            '#' if depth == 0 => in_attribute = true,
            '(' | '[' | '{' | '<' => depth += 1,
            '>' if before == '-' || before == '=' => {}
            ')' | ']' | '}' | '>' => {
                depth -= 1;
                if depth == 0 && in_attribute {
                    in_attribute = false;
                    before = letter;
                    continue;
                }
            }
            _ => {}
        }
        if letter == ',' && depth == 0 {
            count += usize::from(has_any);
            has_any = false;
        } else if !letter.is_whitespace() && !in_attribute {
            has_any = true;
        }
        before = letter;
    }
    count + usize::from(has_any)
}

#[test]
fn only_code_is_left() {
    let text =
        "a('\\'', '{', \"}\\\"\", r#\"\"}\"#, b'x', 'é'); // }\n/* { */ fn f<'a>(b: &'a str) {}";
    let left = code(text);
    assert_eq!(left.len(), text.len());
    let words = left.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(words, "a( , , , , b , ); fn f<'a>(b: &'a str) {}");
}

#[test]
fn parts_are_counted_between_commas() {
    assert_eq!(parts(""), 0);
    assert_eq!(parts("\n    a: A,\n    b: HashMap<K, Vec<(A, B)>>,\n"), 2);
    assert_eq!(parts("&self, f: impl Fn(A, B) -> C, [a, b]: [A; 2]"), 3);
    assert_eq!(parts("#[serde(default, rename = x)]\n pub a: A, #[b]\n c: C"), 2);
    assert_eq!(closing("f(a[b], {c}) }", 1), Some(11));
}
