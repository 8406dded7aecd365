//! Servers that may run at all: the lists of allowed and denied ones in the settings.
//!
//! An item names a server by its name, by its whole command, or by its address with `*` for any part. A
//! denied server never runs. Where there is a list of allowed ones, a server must be on it; one that names
//! commands decides about all commands, and one that names addresses about all addresses.

use serde_json::Value;
use url::Url;

use super::{McpDenial, McpServer, McpTransport};
use crate::Problem;
use crate::settings::{McpSettings, Origin, Sourced};

/// The lists, checked.
#[derive(Clone, Debug, Default)]
pub(super) struct Policy {
    /// `None` if no setting limits what may run.
    allowed: Option<Vec<Item>>,
    denied: Vec<Sourced<Item>>,
    /// The setting that limits it, for the message.
    limited_by: Option<Origin>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Item {
    Name(String),
    Command(Vec<String>),
    Url(UrlPattern),
}

impl Policy {
    /// Reads the lists. An item that is not understood is told; a list of allowed servers counts even so.
    pub(super) fn new(settings: &McpSettings, problems: &mut Vec<Problem>) -> Self {
        let mut read = |items: &[Sourced<Value>], key: &str| -> Vec<Sourced<Item>> {
            let read = items.iter().filter_map(|item| {
                let origin = item.origin.clone();
                let Some(value) = Item::read(&item.value) else {
                    problems.push(not_understood(key, &origin));
                    return None;
                };
                Some(Sourced { value, origin })
            });
            read.collect()
        };
        let allowed = settings.allowed.as_ref().map(|items| {
            read(items, "allowedMcpServers").into_iter().map(|item| item.value).collect()
        });
        let first = settings.allowed.as_ref().and_then(|items| items.first());
        Self {
            allowed,
            denied: read(&settings.denied, "deniedMcpServers"),
            limited_by: first.map(|item| item.origin.clone()).or(settings.managed_only.clone()),
        }
    }

    /// The reason why a server may not run; `None` if it may.
    pub(super) fn denial(&self, server: &McpServer) -> Option<McpDenial> {
        if let Some(item) = self.denied.iter().find(|item| item.value.matches(server)) {
            return Some(McpDenial::Listed(item.origin.clone()));
        }
        let allowed = self.allowed.as_ref()?;
        let decides = |item: &&Item| match &server.transport {
            McpTransport::Stdio { .. } => matches!(item, Item::Command(_)),
            McpTransport::Http(_) | McpTransport::Sse(_) => matches!(item, Item::Url(_)),
            McpTransport::Sdk { .. } => false,
        };
        // A name is only a name: where commands or addresses are listed, they must fit.
        let is_allowed = if allowed.iter().any(|item| decides(&item)) {
            allowed.iter().filter(decides).any(|item| item.matches(server))
        } else {
            allowed.iter().any(|item| item.matches(server))
        };
        (!is_allowed).then(|| McpDenial::NotListed(self.limited_by.clone()))
    }
}

fn not_understood(key: &str, origin: &Origin) -> Problem {
    let message = format!(
        "an item of `{key}` is left out: it must be an object with one of `serverName`, `serverCommand` \
         (a list of texts) and `serverUrl`"
    );
    Problem { path: origin.file.to_path_buf(), line: Some(origin.line), message }
}

impl Item {
    fn read(value: &Value) -> Option<Self> {
        if let Some(name) = value.as_str() {
            return Some(Self::Name(name.to_owned()));
        }
        let object = value.as_object().filter(|object| object.len() == 1)?;
        let (key, value) = object.iter().next()?;
        match key.as_str() {
            "serverName" => value.as_str().map(|name| Self::Name(name.to_owned())),
            "serverCommand" => {
                let words = value.as_array()?.iter().map(|word| word.as_str().map(str::to_owned));
                let words: Vec<String> = words.collect::<Option<_>>()?;
                (!words.is_empty()).then_some(Self::Command(words))
            }
            "serverUrl" => UrlPattern::parse(value.as_str()?).map(Self::Url),
            _ => None,
        }
    }

    fn matches(&self, server: &McpServer) -> bool {
        match (self, &server.transport) {
            (Self::Name(name), _) => *name == server.name,
            (Self::Command(words), McpTransport::Stdio { command, args, .. }) => {
                words.iter().eq(std::iter::once(command).chain(args))
            }
            (Self::Url(pattern), McpTransport::Http(remote) | McpTransport::Sse(remote)) => {
                pattern.matches(&remote.url)
            }
            _ => false,
        }
    }
}

/// An address with `*` for any part. Host and path are compared apart, so that a `*` in a host cannot
/// be filled by a path that looks like one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct UrlPattern {
    scheme: String,
    host: String,
    /// `None` is the usual one of the scheme.
    port: Option<String>,
    /// `None` is any path.
    path: Option<String>,
}

impl UrlPattern {
    fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = text.trim().split_once("://")?;
        let (authority, path) = match rest.find('/') {
            Some(at) => (rest.get(..at)?, rest.get(at..)),
            None => (rest, None),
        };
        // A port stands after the last colon, unless that is within an address in brackets.
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, Some(port.to_owned())),
            _ => (authority, None),
        };
        let is_good = !scheme.is_empty() && !host.is_empty() && !host.contains('@');
        is_good.then(|| Self {
            scheme: scheme.to_ascii_lowercase(),
            host: host.to_ascii_lowercase(),
            port,
            path: path.map(str::to_owned),
        })
    }

    fn matches(&self, url: &str) -> bool {
        let Ok(url) = Url::parse(url) else { return false };
        let host = url.host_str().unwrap_or_default().trim_end_matches('.');
        let port = match &self.port {
            Some(port) => url.port_or_known_default().is_some_and(|it| fits(port, &it.to_string())),
            None => url.port().is_none(),
        };
        let path = match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        };
        fits(&self.scheme, url.scheme())
            && fits(&self.host, host)
            && port
            && self.path.as_ref().is_none_or(|pattern| fits(pattern, &path))
    }
}

/// Whether a text fits a pattern in which `*` stands for anything.
fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else { return false };
        rest = after;
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_compared_part_by_part() {
        for (pattern, url, expected) in [
            ("https://mcp.example.com/*", "https://mcp.example.com/a/b?c", true),
            ("https://mcp.example.com/*", "https://MCP.example.com./", true),
            ("https://mcp.example.com", "https://mcp.example.com/any", true),
            ("https://mcp.example.com/a", "https://mcp.example.com/ab", false),
            ("https://*.example.com/*", "https://a.b.example.com/x", true),
            ("https://*.example.com/*", "https://example.com/x", false),
            ("https://*.example.com/*", "https://evil.test/.example.com/", false),
            ("https://*.example.com/*", "https://a.example.com@evil.test/", false),
            ("https://*.example.com/*", "https://evil.test?x=.example.com/", false),
            ("https://*.example.com/*", "http://a.example.com/", false),
            ("*://localhost:*/*", "http://localhost:3000/mcp", true),
            ("http://localhost:3000", "http://localhost:3001/", false),
            ("http://localhost/*", "http://localhost:3001/", false),
            ("https://h:443/*", "https://h/x", true),
            ("http://[::1]:8/*", "http://[::1]:8/x", true),
            ("http://[::1]/*", "http://[::1]/x", true),
        ] {
            let parsed = UrlPattern::parse(pattern).unwrap();
            assert_eq!(parsed.matches(url), expected, "{pattern} {url}");
        }
        for bad in ["example.com", "https://", "https://u@h/", "://h"] {
            assert_eq!(UrlPattern::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn stars_stand_for_anything() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("a*", "abc", true),
            ("*c", "abc", true),
            ("a*b*c", "axxbyyc", true),
            ("a*a", "a", false),
            ("a*b*c", "acb", false),
            ("abc", "abcd", false),
            ("**", "x", true),
        ] {
            assert_eq!(fits(pattern, text), expected, "{pattern} {text}");
        }
    }
}
