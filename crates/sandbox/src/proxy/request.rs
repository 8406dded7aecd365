//! The head of a request to the proxy, parsed strictly: a head that two parsers could read differently is refused.

use centurion_protocol::HostName;
use httparse::{EMPTY_HEADER, Status};
use thiserror::Error;

/// The most headers of a request.
const MOST_HEADERS: usize = 128;

/// A valid request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) host: HostName,
    pub(super) port: u16,
    method: String,
    /// The path at the server; `None` for a tunnel.
    pub(super) plain: Option<String>,
    version: u8,
    headers: Vec<(String, Vec<u8>)>,
}

/// The result of parsing the beginning of a connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Head {
    /// It is incomplete.
    Partial,
    /// A request, and the offset of the bytes behind it.
    Request(Box<Request>, usize),
    Refused(HeadError),
}

/// The reason that a head is refused.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub(super) enum HeadError {
    #[error("the request is not one of HTTP/1")]
    Version,
    #[error("the lines of the request do not end as they must")]
    LineEnds,
    #[error("the head of the request is too long")]
    TooLong,
    #[error("this is a proxy: ask for https with CONNECT, or for an http address")]
    NoProxyRequest,
    #[error("the request is incomplete")]
    Incomplete,
    #[error("the host of the request cannot be read")]
    Host,
    #[error("the request names its host more than once")]
    HostTwice,
    #[error("the request gives its length more than once")]
    LengthTwice,
    #[error("the request names two different hosts")]
    TwoHosts,
}

impl Head {
    pub(super) fn parse(bytes: &[u8]) -> Self {
        let mut headers = [EMPTY_HEADER; MOST_HEADERS];
        let mut parsed = httparse::Request::new(&mut headers);
        let end = match parsed.parse(bytes) {
            Ok(Status::Complete(end)) => end,
            Ok(Status::Partial) if has_loose_line_end(bytes) => {
                return Self::Refused(HeadError::LineEnds);
            }
            Ok(Status::Partial) => return Self::Partial,
            Err(_) => return Self::Refused(HeadError::Version),
        };
        // The parser accepts lines that end with a line feed alone, which others read as the middle of a line.
        if bytes.get(..end).is_none_or(has_loose_line_end) {
            return Self::Refused(HeadError::LineEnds);
        }
        match Request::of(&parsed) {
            Ok(request) => Self::Request(Box::new(request), end),
            Err(error) => Self::Refused(error),
        }
    }
}

fn has_loose_line_end(bytes: &[u8]) -> bool {
    let lone_feed = |at: usize| at == 0 || bytes.get(at - 1) != Some(&b'\r');
    let lone_return = |at: usize| bytes.get(at + 1).is_some_and(|next| *next != b'\n');
    bytes.iter().enumerate().any(|(at, byte)| match byte {
        b'\n' => lone_feed(at),
        b'\r' => lone_return(at),
        _ => false,
    })
}

impl Request {
    fn of(parsed: &httparse::Request<'_, '_>) -> Result<Self, HeadError> {
        let method = parsed.method.ok_or(HeadError::Incomplete)?;
        let target = parsed.path.ok_or(HeadError::Incomplete)?;
        let version = parsed.version.ok_or(HeadError::Incomplete)?;
        let (place, plain) = if method == "CONNECT" {
            (target, None)
        } else {
            let rest = strip_scheme(target).ok_or(HeadError::NoProxyRequest)?;
            let (place, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
            let slash = if path.starts_with('/') { "" } else { "/" };
            (place, Some(format!("{slash}{path}")))
        };
        let (host, port) = authority(place).ok_or(HeadError::Host)?;
        let port = match (port, &plain) {
            (Some(port), _) => port,
            (None, Some(_)) => 80,
            (None, None) => return Err(HeadError::NoProxyRequest),
        };
        let headers = headers(parsed, &host)?;
        let method = method.to_owned();
        Ok(Self { host, port, method, plain, version, headers })
    }

    /// The host and port that were decided about.
    fn place(&self) -> String {
        match &self.plain {
            Some(_) if self.port == 80 => self.host.to_string(),
            _ => format!("{}:{}", self.host, self.port),
        }
    }

    /// The bytes of a plain request for its server.
    pub(super) fn to_server(&self, path: &str) -> Vec<u8> {
        self.written(path, &["proxy-authorization"])
    }

    /// The bytes of any request for another proxy.
    pub(super) fn to_proxy(&self) -> Vec<u8> {
        let target = match &self.plain {
            Some(path) => format!("http://{}{path}", self.place()),
            None => self.place(),
        };
        self.written(&target, &[])
    }

    /// The request written again, without headers for this proxy.
    fn written(&self, target: &str, dropped: &[&str]) -> Vec<u8> {
        const REPLACED: [&str; 3] = ["host", "connection", "proxy-connection"];
        // The host is the one that was decided about, and the connection carries one request only.
        let connection = if self.plain.is_some() { "Connection: close\r\n" } else { "" };
        let (method, version, place) = (&self.method, self.version, self.place());
        let mut bytes =
            format!("{method} {target} HTTP/1.{version}\r\nHost: {place}\r\n{connection}")
                .into_bytes();
        for (name, value) in &self.headers {
            let lower = name.to_ascii_lowercase();
            if !REPLACED.iter().chain(dropped).any(|dropped| *dropped == lower) {
                bytes.extend_from_slice(name.as_bytes());
                bytes.extend_from_slice(b": ");
                bytes.extend_from_slice(value);
                bytes.extend_from_slice(b"\r\n");
            }
        }
        bytes.extend_from_slice(b"\r\n");
        bytes
    }
}

fn strip_scheme(target: &str) -> Option<&str> {
    const SCHEME: &str = "http://";
    let scheme = target.get(..SCHEME.len())?;
    scheme.eq_ignore_ascii_case(SCHEME).then(|| target.get(SCHEME.len()..)).flatten()
}

/// The headers, if no two parsers could read them differently.
fn headers(
    parsed: &httparse::Request<'_, '_>,
    host: &HostName,
) -> Result<Vec<(String, Vec<u8>)>, HeadError> {
    let is = |name: &str, known: &str| name.eq_ignore_ascii_case(known);
    let count = |known: &str| parsed.headers.iter().filter(|it| is(it.name, known)).count();
    if count("host") > 1 {
        return Err(HeadError::HostTwice);
    }
    if count("content-length") > 1
        || count("transfer-encoding") > 1
        || (count("content-length") == 1 && count("transfer-encoding") == 1)
    {
        return Err(HeadError::LengthTwice);
    }
    for header in parsed.headers.iter().filter(|header| is(header.name, "host")) {
        let named = str::from_utf8(header.value).ok().and_then(authority);
        if named.is_none_or(|(named, _)| named != *host) {
            return Err(HeadError::TwoHosts);
        }
    }
    Ok(parsed.headers.iter().map(|it| (it.name.to_owned(), it.value.to_vec())).collect())
}

/// The host and port of `host:port`; refuses user names, which are not for the proxy.
fn authority(text: &str) -> Option<(HostName, Option<u16>)> {
    let is_plain = |character: char| character.is_ascii_graphic() && !"@/\\".contains(character);
    if text.is_empty() || !text.chars().all(is_plain) {
        return None;
    }
    let after_bracket = if text.starts_with('[') { text.find(']')? + 1 } else { 0 };
    let (host, port) = match text.get(after_bracket..)?.find(':') {
        Some(colon) => (text.get(..after_bracket + colon)?, text.get(after_bracket + colon + 1..)),
        None => (text, None),
    };
    let port = match port {
        // A sign is not part of a port, although number parsers accept it.
        Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => Some(port.parse().ok()?),
        Some(_) => return None,
        None => None,
    };
    if port == Some(0) {
        return None;
    }
    Some((HostName::parse(host)?, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(head: &str) -> Head {
        Head::parse(format!("{head}\r\n\r\n").as_bytes())
    }

    fn request(head: &str) -> Request {
        match parse(head) {
            Head::Request(request, _) => *request,
            other => panic!("{head:?}: {other:?}"),
        }
    }

    #[test]
    fn requests_are_written_anew() {
        let secret = "Proxy-Authorization: s";
        let tunnel =
            request(&format!("CONNECT EXAMPLE.com:443 HTTP/1.1\r\nHost: example.com\r\n{secret}"));
        assert_eq!((tunnel.host.to_string().as_str(), tunnel.port), ("example.com", 443));
        assert_eq!(tunnel.plain, None);
        assert_eq!(
            String::from_utf8(tunnel.to_proxy()).unwrap(),
            format!(
                "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n{secret}\r\n\r\n"
            )
        );
        let plain = request(&format!(
            "GET http://example.com:8080?q HTTP/1.1\r\nHost: example.com:8080\r\nProxy-Connection: x\r\n\
             {secret}\r\nA: b"
        ));
        assert_eq!((plain.host.to_string().as_str(), plain.port), ("example.com", 8080));
        assert_eq!(
            String::from_utf8(plain.to_server(plain.plain.as_deref().unwrap())).unwrap(),
            "GET /?q HTTP/1.1\r\nHost: example.com:8080\r\nConnection: close\r\nA: b\r\n\r\n"
        );
        assert_eq!(
            String::from_utf8(plain.to_proxy()).unwrap(),
            format!(
                "GET http://example.com:8080/?q HTTP/1.1\r\nHost: example.com:8080\r\n\
                 Connection: close\r\n{secret}\r\nA: b\r\n\r\n"
            )
        );
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_refused() {
        for head in [
            "",
            "GET / HTTP/1.1",
            "GET https://example.com/ HTTP/1.1",
            "CONNECT example.com HTTP/1.1",
            "CONNECT :443 HTTP/1.1",
            "CONNECT example.com:many HTTP/1.1",
            "CONNECT example.com:+443 HTTP/1.1",
            "CONNECT example.com:0 HTTP/1.1",
            "CONNECT example.com:65536 HTTP/1.1",
            "CONNECT example.com:443:80 HTTP/1.1",
            "CONNECT example.com:443\tx HTTP/1.1",
            "CONNECT\texample.com:443 HTTP/1.1",
            "CONNECT example.com:443 HTTP/2.0",
            "CONNECT example.com:443",
            "CONNECT [::1:443 HTTP/1.1",
            "CONNECT [::1%25lo]:443 HTTP/1.1",
            "CONNECT good.org:443@evil.org:443 HTTP/1.1",
            "GET http://good.org@evil.org/ HTTP/1.1",
            "GET http://user:pass@evil.org/ HTTP/1.1",
            "GET http://good.org\\evil.org/ HTTP/1.1",
            "GET http://good.org%00.evil.org/ HTTP/1.1",
            "GET http://good.org%2fevil.org/ HTTP/1.1",
            "GET http://good.org/ HTTP/1.1\r\nHost: evil.org",
            "GET http://good.org/ HTTP/1.1\r\nHost: good.org\r\nHost: evil.org",
            "GET http://good.org/ HTTP/1.1\r\nHost: good.org\r\nhost: good.org",
            "GET http://good.org/ HTTP/1.1\r\nHost: \0",
            "GET http://good.org/ HTTP/1.1\r\nHost:",
            "GET http://good.org/ HTTP/1.1\nHost: good.org",
            "GET http://good.org/ HTTP/1.1\r\nA: b\nHost: evil.org",
            "GET http://good.org/ HTTP/1.1\r\nA: b\rHost: evil.org",
            "GET http://good.org/ HTTP/1.1\r\nA: b\0c",
            "GET http://good.org/ HTTP/1.1\r\nA : b",
            "GET http://good.org/ HTTP/1.1\r\nA\t: b",
            "GET http://good.org/ HTTP/1.1\r\n: b",
            "GET http://good.org/ HTTP/1.1\r\nA: b\r\n folded",
            "GET http://good.org/ HTTP/1.1\r\nA: b\r\n\tfolded",
            "GET http://good.org/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1",
            "POST http://good.org/ HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked",
            "POST http://good.org/ HTTP/1.1\r\nTransfer-Encoding: x\r\nTransfer-Encoding: chunked",
            "GET  http://good.org/ HTTP/1.1",
        ] {
            let head_read = parse(head);
            assert!(!matches!(head_read, Head::Request(..)), "{head:?}: {head_read:?}");
        }
    }

    #[test]
    fn a_head_is_waited_for_and_what_follows_is_kept_apart() {
        let whole = b"CONNECT example.com:443 HTTP/1.1\r\n\r\nrest";
        for end in 0..whole.len() - 4 {
            assert_eq!(Head::parse(&whole[..end]), Head::Partial, "{end}");
        }
        assert!(matches!(Head::parse(whole), Head::Request(_, 36)));
        assert!(matches!(Head::parse(b"GET http://a/ HTTP/1.1\nHost"), Head::Refused(_)));
    }
}
