//! Servers in words. What may be a secret, the values of headers, variables and arguments, is not shown.

use std::fmt;

use super::{McpOAuth, McpOrigin, McpRemote, McpScope, McpTransport};

impl fmt::Debug for McpTransport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdio { command, args, env } => formatter
                .debug_struct("Stdio")
                .field("command", command)
                .field("args", &format_args!("{} not shown", args.len()))
                .field("env", &env.keys())
                .finish(),
            Self::Http(remote) => formatter.debug_tuple("Http").field(remote).finish(),
            Self::Sse(remote) => formatter.debug_tuple("Sse").field(remote).finish(),
            Self::Sdk { name } => formatter.debug_struct("Sdk").field("name", name).finish(),
        }
    }
}

impl fmt::Debug for McpRemote {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { url, headers, headers_helper, oauth } = self;
        formatter
            .debug_struct("McpRemote")
            .field("url", &shown_url(url))
            .field("headers", &headers.keys())
            .field("headers_helper", &headers_helper.is_some())
            .field("oauth", oauth)
            .finish()
    }
}

impl McpTransport {
    /// The name of the transport as people write it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Stdio { .. } => "stdio",
            Self::Http(_) => "http",
            Self::Sse(_) => "sse",
            Self::Sdk { .. } => "sdk",
        }
    }

    pub fn remote(&self) -> Option<&McpRemote> {
        match self {
            Self::Http(remote) | Self::Sse(remote) => Some(remote),
            Self::Stdio { .. } | Self::Sdk { .. } => None,
        }
    }
}

impl McpOAuth {
    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// An address without what may be a secret in it: who signs in, and what stands after `?` or `#`.
pub(super) fn shown_url(url: &str) -> String {
    let (address, rest) = match url.find(['?', '#']) {
        Some(at) => (url.get(..at).unwrap_or_default(), "?…"),
        None => (url, ""),
    };
    let Some((scheme, after)) = address.split_once("://") else {
        return format!("{address}{rest}");
    };
    let (authority, path) = match after.find('/') {
        Some(at) => after.split_at(at),
        None => (after, ""),
    };
    let host = authority.rsplit('@').next().unwrap_or_default();
    format!("{scheme}://{host}{path}{rest}")
}

/// A command as it is typed, for a person to read.
pub(super) fn shown_command<'w>(words: impl Iterator<Item = &'w str>) -> String {
    let quoted = words.map(|word| {
        if word.is_empty() || word.contains(char::is_whitespace) {
            format!("'{word}'")
        } else {
            word.to_owned()
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

impl fmt::Display for McpScope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Managed => formatter.write_str("managed"),
            Self::Flag => formatter.write_str("flag"),
            Self::Local => formatter.write_str("local"),
            Self::Project => formatter.write_str("project"),
            Self::User => formatter.write_str("user"),
            Self::Plugin(name) => write!(formatter, "plugin {name}"),
            Self::Agent(name) => write!(formatter, "agent {name}"),
            Self::Host => formatter.write_str("host"),
        }
    }
}

/// The file and line, or who said it where no file does.
impl fmt::Display for McpOrigin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.place().display())?;
        match self.line {
            Some(line) => write!(formatter, ":{line} ({})", self.scope),
            None => write!(formatter, " ({})", self.scope),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn what_may_be_a_secret_is_not_printed() {
        let pair = |name: &str| BTreeMap::from([(name.to_owned(), "s3cret".to_owned())]);
        let stdio = McpTransport::Stdio {
            command: "npx".to_owned(),
            args: vec!["--key".to_owned(), "s3cret".to_owned()],
            env: pair("TOKEN"),
        };
        let http = McpTransport::Http(McpRemote {
            url: "https://ann:s3cret@host.example/mcp?key=s3cret#s3cret".to_owned(),
            headers: pair("Authorization"),
            headers_helper: Some("echo s3cret".to_owned()),
            oauth: None,
        });
        for (transport, name) in [(&stdio, "TOKEN"), (&http, "Authorization")] {
            let text = format!("{transport:?} {transport:#?}");
            assert!(text.contains(name) && !text.contains("s3cret"), "{text}");
        }
    }

    #[test]
    fn an_address_is_shown_without_its_secrets() {
        for (url, shown) in [
            ("https://h/mcp", "https://h/mcp"),
            ("https://u:p@h:8/a@b?x=1", "https://h:8/a@b?…"),
            ("https://h#x", "https://h?…"),
            ("${BASE}/mcp?k=${K}", "${BASE}/mcp?…"),
            ("https://${USER}:${P}@${H}/x", "https://${H}/x"),
        ] {
            assert_eq!(shown_url(url), shown);
        }
    }
}
