//! Values that are secret by what stands before them: assignments, fields of JSON and headers.

use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};

use crate::FoundSecret;
use crate::scan::{Class, Scan, work};
use crate::url::is_placeholder;

/// The longest value that is examined.
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
pub(crate) fn password(scan: &mut Scan, at: usize) -> Option<FoundSecret> {
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
pub(crate) fn connection_password(scan: &mut Scan, at: usize) -> Option<FoundSecret> {
    password(scan, at + 1)
}

/// A value behind a name that ends in `secret`, `token` or `key`. Ordinary values of such names have no
/// digit, or are short.
pub(crate) fn secret(scan: &mut Scan, at: usize) -> Option<FoundSecret> {
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
pub(crate) fn netrc(scan: &mut Scan, at: usize) -> Option<FoundSecret> {
    let text = scan.text;
    let line = &text[at.saturating_sub(256)..at];
    work::count(512);
    let has_host = |word: &[u8]| memchr::memmem::find(line, word).is_some();
    if !has_host(b"machine ") && !line.ends_with(b"default ") {
        return None;
    }
    let rest = text.get(at..text.len().min(at + 256 + b"password ".len()))?;
    let from = at + memchr::memmem::find(rest, b"password ")? + b"password ".len();
    let value = scan.run(Class::Bare, from);
    (value > 0).then_some(FoundSecret { kind: "password", range: from..from + value })
}

/// A value behind a flag and a blank: `--password x1`, `--token x…`. The hint is the flag with its blank.
pub(crate) fn flag(scan: &mut Scan, at: usize) -> Option<FoundSecret> {
    let name = scan.text.get(at..)?.iter().take(16).position(|byte| *byte == b' ')?;
    let is_password = scan.text[at..at + name] == *b"--password";
    let from = at + name + 1;
    let from = behind_quote(scan, from)?;
    let class = if is_password { Class::Value } else { Class::Opaque };
    let (length, has_digit) = scan.run_with_digit(class, from);
    let value = &scan.text[from..from + length.min(LONGEST)];
    let is_value = has_digit && !is_placeholder(value) && !value.starts_with(b"-");
    let least = if is_password { 6 } else { 16 };
    let kind = if is_password { "password" } else { "secret" };
    let fits = (least..=LONGEST).contains(&length)
        && is_value
        && value.iter().any(u8::is_ascii_alphabetic)
        && (is_password || is_opaque(scan, from..from + length));
    fits.then_some(FoundSecret { kind, range: from..from + length })
}

/// The index behind an opening quote, if there is one; `None` where an escape of JSON follows, which is no value.
fn behind_quote(scan: &mut Scan, from: usize) -> Option<usize> {
    let from = from + scan.run(Class::Quote, from);
    (scan.text.get(from - 1) != Some(&b'\\')).then_some(from)
}

/// `-u name:password` of curl and its like. The hint is the flag with its blank. `-u 1000:1000` is a user and a group.
pub(crate) fn user_flag(scan: &mut Scan, at: usize) -> Option<FoundSecret> {
    let name = scan.text.get(at + 1..)?.iter().take(8).position(|byte| *byte == b' ')?;
    let from = at + 1 + name + 1;
    let from = behind_quote(scan, from)?;
    let user = scan.run(Class::Dotted, from).min(LONGEST);
    if user == 0 || scan.text.get(from + user) != Some(&b':') {
        return None;
    }
    let start = from + user + 1;
    let (length, has_digit) = scan.run_with_digit(Class::Value, start);
    let value = &scan.text[start..start + length.min(LONGEST)];
    let has_letter = value.iter().any(u8::is_ascii_alphabetic);
    let fits = (6..=LONGEST).contains(&length) && has_digit && has_letter && !is_placeholder(value);
    fits.then_some(FoundSecret { kind: "password", range: start..start + length })
}

/// `Cookie: a=b; session=x…`: the first long value. The hint is `ookie: `.
pub(crate) fn cookie(scan: &mut Scan, at: usize) -> Option<FoundSecret> {
    /// The longest header that is looked at.
    const LONGEST_COOKIE: usize = 4 * 1024;
    let from = at + b"ookie: ".len();
    let rest = scan.text.get(from..scan.text.len().min(from + LONGEST_COOKIE))?;
    // The start of another header ends this one.
    let is_end = |byte: &u8| matches!(byte, b'\r' | b'\n' | b'"' | b'\'' | b'\\' | b'[' | b':');
    let header = &rest[..rest.iter().position(is_end).unwrap_or(rest.len())];
    work::count(header.len());
    let mut start = 0;
    for pair in header.split(|byte| *byte == b';') {
        let equals = pair.iter().position(|byte| *byte == b'=');
        let value = equals.map_or(&[][..], |equals| &pair[equals + 1..]);
        let is_secret = value.len() >= 16
            && value.iter().any(u8::is_ascii_digit)
            && value.iter().any(u8::is_ascii_alphabetic)
            && value.iter().all(|byte| Class::AzureKey.contains(*byte) || *byte == b'.');
        if is_secret {
            let begin = from + start + pair.len() - value.len();
            return Some(FoundSecret { kind: "cookie", range: begin..begin + value.len() });
        }
        start += pair.len() + 1;
    }
    None
}

/// `"auth": "…"` of a file of Docker: a name and a password in base64. The hint is the end of the name.
pub(crate) fn pair(scan: &mut Scan, at: usize) -> Option<FoundSecret> {
    let from = separator(scan, at + b"auth".len())?;
    let length = scan.run(Class::Base64, from);
    is_encoded_pair(&scan.text[from..from + length])
        .then_some(FoundSecret { kind: "basic_credentials", range: from..from + length })
}

/// `Bearer` and a token. The hint is `earer `, whatever the case of its first letter.
pub(crate) fn bearer(scan: &mut Scan, at: usize) -> Option<FoundSecret> {
    let from = at + b"earer ".len();
    let (length, has_digit) = scan.run_with_digit(Class::Bearer, from);
    (length >= 16 && has_digit)
        .then_some(FoundSecret { kind: "bearer_token", range: from..from + length })
}

/// `Basic` and `name:password` in base64. The hint is `asic `.
pub(crate) fn basic(scan: &mut Scan, at: usize) -> Option<FoundSecret> {
    let from = at + b"asic ".len();
    let length = scan.run(Class::Base64, from);
    is_encoded_pair(&scan.text[from..from + length])
        .then_some(FoundSecret { kind: "basic_credentials", range: from..from + length })
}

/// Whether a text is `name:password` in base64.
fn is_encoded_pair(value: &[u8]) -> bool {
    let trimmed: Vec<u8> = value.iter().copied().take_while(|byte| *byte != b'=').collect();
    let decoded = STANDARD.decode(value).or_else(|_| STANDARD_NO_PAD.decode(trimmed));
    let is_text = |it: &Vec<u8>| it.iter().all(|byte| (b' '..127).contains(byte));
    value.len() >= 4 && decoded.is_ok_and(|it| it.contains(&b':') && is_text(&it))
}

/// `Authorization: scheme value` with any scheme, and headers that hold nothing but a key. The hint is
/// the name of the header or its end.
pub(crate) fn header(scan: &mut Scan, at: usize) -> Option<FoundSecret> {
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
        .then_some(FoundSecret { kind: "authorization", range: from..from + length })
}

/// `AccountKey=…` and `SharedAccessKey=…` of Azure, and the signature of a shared link. The hint is the
/// name with its `=`.
pub(crate) fn azure(scan: &mut Scan, at: usize) -> Option<FoundSecret> {
    let equals = scan.text.get(at..)?.iter().take(32).position(|byte| *byte == b'=')?;
    let from = at + equals + 1;
    let length = scan.run(Class::AzureKey, from);
    (length >= 40).then_some(FoundSecret { kind: "azure_key", range: from..from + length })
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
) -> Option<FoundSecret> {
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
    kind.map(|kind| FoundSecret { kind, range: value })
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
