//! Passwords in URLs: `scheme://user:password@host`. Only the password is taken out.

use memchr::{memchr, memrchr};

use crate::FoundSecret;
use crate::scan::{Class, Scan, work};

/// The longest password that is looked for: a URL has its `@` sooner.
const LONGEST: usize = 512;

/// Reads the password of a URL whose `://` begins at the index.
pub(crate) fn password(scan: &mut Scan, at: usize) -> Option<FoundSecret> {
    let has_scheme = scan.text[..at].last().is_some_and(u8::is_ascii_alphanumeric);
    let from = at + 3;
    // A password may hold `/`, `?` and `#` where it was not encoded: the last `@` before a blank or
    // a quote counts if there is none before the path.
    let authority = scan.run(Class::Authority, from).min(LONGEST);
    let whole = scan.run(Class::WholeUrl, from).min(LONGEST);
    let url = scan.text.get(from..from + whole)?;
    work::count(whole);
    let Some(colon) = memchr(b':', &url[..authority]) else {
        return token(&url[..authority], from);
    };
    let host = memrchr(b'@', &url[..authority]).or_else(|| unencoded(url, authority, colon))?;
    let password = url.get(colon + 1..host)?;
    let fits = has_scheme && !password.is_empty() && !is_placeholder(password);
    let range = from + colon + 1..from + host;
    fits.then_some(FoundSecret { kind: "url_password", range })
}

/// A token in the place of a user: `https://token@host`.
fn token(authority: &[u8], from: usize) -> Option<FoundSecret> {
    let host = memrchr(b'@', authority)?;
    let token = &authority[..host];
    let is_token = token.len() >= 20
        && token.iter().all(|byte| Class::Url.contains(*byte))
        && token.iter().any(u8::is_ascii_digit)
        && token.iter().any(u8::is_ascii_alphabetic);
    is_token.then_some(FoundSecret { kind: "url_token", range: from..from + host })
}

/// `jdbc:oracle:thin:user/password@host`. The hint is `oracle:thin:`.
pub(crate) fn oracle(scan: &mut Scan, at: usize) -> Option<FoundSecret> {
    /// The longest name and password together.
    const LONGEST_LOGIN: usize = 256;
    let from = at + b"oracle:thin:".len();
    let whole = scan.run(Class::WholeUrl, from).min(LONGEST_LOGIN);
    let url = scan.text.get(from..from + whole)?;
    work::count(whole);
    let (slash, host) = (memchr(b'/', url)?, memchr(b'@', url)?);
    let password = url.get(slash + 1..host)?;
    (!password.is_empty() && !is_placeholder(password))
        .then_some(FoundSecret { kind: "url_password", range: from + slash + 1..from + host })
}

/// The offset of `@` behind a password with characters that end an authority. The text before the first of
/// them must not be a host with a port: `http://host:80/@name` has no password.
fn unencoded(url: &[u8], authority: usize, colon: usize) -> Option<usize> {
    let port = &url[colon + 1..authority];
    if !port.is_empty() && port.len() <= 5 && port.iter().all(u8::is_ascii_digit) {
        return None;
    }
    // The next character must look like that of a host.
    let host = memrchr(b'@', url)?;
    let next = url.get(host + 1)?;
    next.is_ascii_alphanumeric().then_some(host)
}

/// Whether something else is put here later: `${PASSWORD}`, `$PASSWORD`, `<password>`, `{password}`,
/// `%s`, `***`.
pub(crate) fn is_placeholder(value: &[u8]) -> bool {
    matches!(value.first(), Some(b'$' | b'<' | b'{' | b'%' | b'*' | b'['))
        || value.iter().all(|byte| matches!(byte, b'x' | b'X' | b'*' | b'.' | b'_' | b'-'))
}
