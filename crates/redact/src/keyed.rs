//! Values that are secret by what stands before them: assignments, fields of JSON and headers.

use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};

use crate::Found;
use crate::scan::{Class, Scan, work};
use crate::url::is_placeholder;

/// How long a value may be that is looked at.
const LONGEST: usize = 8 * 1024;

/// The rules that judge a value, each of which judges it once.
#[derive(Clone, Copy)]
enum Rule {
    Password,
    PasswordInCapitals,
    Secret,
}

/// A value behind `…password`, as in `PGPASSWORD=x`, `"password": "x"` and `;Password=x1;`. In code, a
/// value without quotes is a type or a name: it counts if it has a digit, or its name is in capitals.
pub(crate) fn password(scan: &mut Scan, at: usize) -> Option<Found> {
    let is_capital = scan.text[at].is_ascii_uppercase();
    let rule = if is_capital { Rule::PasswordInCapitals } else { Rule::Password };
    judge(scan, at, 4, rule, |scan, value, has_digit| {
        let bytes = &scan.text[value.clone()];
        let is_value = match scan.text.get(value.start - 1) {
            Some(quote @ (b'"' | b'\'')) => {
                matches!(scan.text.get(value.end), Some(b'\\'))
                    || scan.text.get(value.end) == Some(quote)
            }
            // `OLD_PWD` is a directory.
            _ if scan.text[at..].starts_with(b"_PWD") && bytes.starts_with(b"/") => false,
            _ => is_capital || has_digit,
        };
        let is_secret = is_value && !is_placeholder(bytes) && !is_word_of_schema(bytes);
        is_secret.then_some("password")
    })
}

/// `;Pwd=x1;` of a connection string.
pub(crate) fn connection_password(scan: &mut Scan, at: usize) -> Option<Found> {
    password(scan, at + 1)
}

/// A value behind a name that ends in `secret`, `token` or `key`. Ordinary values of such names have no
/// digit, or are short.
pub(crate) fn secret(scan: &mut Scan, at: usize) -> Option<Found> {
    judge(scan, at, 16, Rule::Secret, |scan, value, has_digit| {
        let bytes = &scan.text[value.clone()];
        let is_secret = has_digit
            && bytes.iter().any(u8::is_ascii_alphabetic)
            && !is_placeholder(bytes)
            && is_opaque(scan, value);
        is_secret.then_some("secret")
    })
}

/// `machine host login name password value`: a blank is enough there. The hint is `login `.
pub(crate) fn netrc(scan: &mut Scan, at: usize) -> Option<Found> {
    let text = scan.text;
    let line = &text[at.saturating_sub(256)..at];
    work::count(512);
    memchr::memmem::find(line, b"machine ")?;
    let rest = text.get(at..text.len().min(at + 256 + b"password ".len()))?;
    let from = at + memchr::memmem::find(rest, b"password ")? + b"password ".len();
    let value = scan.run(Class::Bare, from);
    (value > 0).then_some(Found { kind: "password", range: from..from + value })
}

/// `Bearer` and a token. The hint is `earer `, whatever the case of its first letter.
pub(crate) fn bearer(scan: &mut Scan, at: usize) -> Option<Found> {
    let from = at + b"earer ".len();
    let (length, has_digit) = scan.run_with_digit(Class::Bearer, from);
    (length >= 16 && has_digit)
        .then_some(Found { kind: "bearer_token", range: from..from + length })
}

/// `Basic` and `name:password` in base64. The hint is `asic `.
pub(crate) fn basic(scan: &mut Scan, at: usize) -> Option<Found> {
    let from = at + b"asic ".len();
    let length = scan.run(Class::Base64, from);
    let value = &scan.text[from..from + length];
    let trimmed: Vec<u8> = value.iter().copied().take_while(|byte| *byte != b'=').collect();
    let decoded = STANDARD.decode(value).or_else(|_| STANDARD_NO_PAD.decode(trimmed)).ok()?;
    let is_pair = decoded.contains(&b':') && decoded.iter().all(|byte| (b' '..127).contains(byte));
    (length >= 4 && is_pair)
        .then_some(Found { kind: "basic_credentials", range: from..from + length })
}

/// `Authorization: scheme value` with any scheme, and headers that hold nothing but a key. The hint is
/// the name of the header or its end.
pub(crate) fn header(scan: &mut Scan, at: usize) -> Option<Found> {
    let after = name_end(scan, at);
    let from = separator(scan, after)?;
    let first = scan.run_with_digit(Class::Header, from);
    // A scheme before the value.
    let (from, (length, has_digit), has_scheme) = match scan.text.get(from + first.0) {
        Some(b' ') if first.0 < 12 => {
            let from = from + first.0 + 1;
            (from, scan.run_with_digit(Class::Header, from), true)
        }
        _ => (from, first, false),
    };
    // A token behind a scheme may have no digit: no word of a sentence has letters of either case within it.
    let is_mixed = || {
        let head = &scan.text[from + 1..from + length.min(64)];
        head.iter().any(u8::is_ascii_uppercase) && head.iter().any(u8::is_ascii_lowercase)
    };
    (length >= 16 && (has_digit || (has_scheme && length >= 20 && is_mixed())))
        .then_some(Found { kind: "authorization", range: from..from + length })
}

/// `AccountKey=…` and `SharedAccessKey=…` of Azure, and the signature of a shared link. The hint is the
/// name with its `=`.
pub(crate) fn azure(scan: &mut Scan, at: usize) -> Option<Found> {
    let equals = scan.text.get(at..)?.iter().take(32).position(|byte| *byte == b'=')?;
    let from = at + equals + 1;
    let length = scan.run(Class::AzureKey, from);
    (length >= 40).then_some(Found { kind: "azure_key", range: from..from + length })
}

/// The index behind the rest of a name.
fn name_end(scan: &mut Scan, at: usize) -> usize {
    at + scan.run(Class::Url, at)
}

/// The index behind `=`, `:` or `=>` with its blanks and with the quotes around it, which may be escaped.
fn separator(scan: &mut Scan, from: usize) -> Option<usize> {
    let mut at = from;
    at += scan.run(Class::Quote, at);
    at += scan.run(Class::Blank, at);
    let signs = scan.text.get(at..).unwrap_or_default().iter().take(3);
    let sign = signs.take_while(|byte| matches!(byte, b'=' | b':' | b'>')).count();
    if sign == 0 || sign > 2 {
        return None;
    }
    at += sign;
    at += scan.run(Class::Blank, at);
    at += scan.run(Class::Quote, at);
    Some(at)
}

/// Reads the value that is assigned behind the name at the index, if it is at least so long, and asks what kind of
/// credential it is.
fn judge(
    scan: &mut Scan,
    at: usize,
    least: usize,
    rule: Rule,
    kind: impl FnOnce(&mut Scan, Range<usize>, bool) -> Option<&'static str>,
) -> Option<Found> {
    let after = name_end(scan, at);
    let start = separator(scan, after)?;
    if scan.rejected_values[rule as usize] == Some(start) {
        return None;
    }
    let (length, has_digit) = scan.run_with_digit(Class::Value, start);
    let value = start..start + length;
    // A call or a name of something is code, not a value.
    let is_code = scan.text.get(value.end) == Some(&b'(') || length > LONGEST;
    let kind =
        if length >= least && !is_code { kind(scan, value.clone(), has_digit) } else { None };
    if kind.is_none() {
        scan.rejected_values[rule as usize] = Some(start);
    }
    kind.map(|kind| Found { kind, range: value })
}

/// Whether bytes look like a credential and not like a path, a name in code or a sentence.
fn is_opaque(scan: &mut Scan, value: Range<usize>) -> bool {
    let length = value.len();
    scan.run(Class::Opaque, value.start) >= length
        && scan.text[value.start] != b'/'
        && !is_name(&scan.text[value.clone()])
        && scan.separators(value) * 5 <= length
}

/// Whether a value is a name of words: `my-app-secret-v2`, `config.openai.apiKey2`.
fn is_name(value: &[u8]) -> bool {
    let mut words = value.split(|byte| matches!(byte, b'/' | b'.' | b'_' | b'-'));
    let is_word = |word: &[u8]| {
        let letters = word.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        word.len() - letters <= 1 && word[letters..].iter().all(u8::is_ascii_digit)
    };
    value.len() <= LONGEST_NAME && words.clone().count() >= 4 && words.all(is_word)
}

/// A longer value is no name.
const LONGEST_NAME: usize = 128;

/// Values of `password` in schemas and forms.
fn is_word_of_schema(value: &[u8]) -> bool {
    const WORDS: [&str; 14] = [
        "string",
        "password",
        "passwd",
        "text",
        "true",
        "false",
        "null",
        "none",
        "None",
        "undefined",
        "required",
        "optional",
        "hidden",
        "str",
    ];
    WORDS.iter().any(|word| word.as_bytes() == value)
}
