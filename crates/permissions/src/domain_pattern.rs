//! Hosts in `WebFetch(domain:host)`.

use centurion_protocol::HostName;
use url::Url;

use crate::wildcard::Wildcard;

/// A host name, label by label, in the form that [`HostName`] gives to requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DomainPattern {
    labels: Vec<Wildcard>,
    /// `*.host`: any depth of subdomains, but not the host itself.
    subdomains: bool,
    /// Whether it has no star, and matches one host.
    is_exact: bool,
}

impl DomainPattern {
    pub(crate) fn parse(host: &str) -> Self {
        let host = host.trim();
        if !host.contains(['*', '?'])
            && let Some(exact) = HostName::parse(host)
        {
            let labels = labels(&exact).iter().map(|label| Wildcard::parse(label)).collect();
            return Self { labels, subdomains: false, is_exact: true };
        }
        let host = host.replace(DOTS, ".");
        let host = host.trim_end_matches('.');
        let (rest, subdomains) = match host.strip_prefix("*.") {
            Some(rest) => (rest, true),
            None => (host, false),
        };
        let labels = rest.split('.').map(|label| Wildcard::parse(&label_of(label))).collect();
        Self { labels, subdomains, is_exact: false }
    }

    pub(crate) fn matches(&self, host: &Host) -> bool {
        let Some(extra) = host.0.len().checked_sub(self.labels.len()) else { return false };
        if (extra > 0) != self.subdomains {
            return false;
        }
        let tail = host.0.iter().skip(extra);
        self.labels.iter().zip(tail).all(|(pattern, label)| pattern.fits(label))
    }

    /// Whether it names this host and no other.
    pub(crate) fn names(&self, host: &Host) -> bool {
        self.is_exact && self.matches(host)
    }
}

/// The characters that count as dots in names.
const DOTS: [char; 3] = ['\u{3002}', '\u{ff0e}', '\u{ff61}'];

/// One label of a pattern. Non-ASCII characters are read as in host names.
fn label_of(label: &str) -> String {
    if label.is_ascii() {
        return label.to_lowercase();
    }
    match HostName::parse(label) {
        Some(HostName::Domain(label)) => label,
        _ => label.to_lowercase(),
    }
}

/// The labels of a URL's host. An address of version 6 is one label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host(Vec<String>);

impl Host {
    /// Reads the host as the fetching client will read it.
    pub(crate) fn of(url: &str) -> Option<Self> {
        Some(Self(labels(&HostName::of(&Url::parse(url).ok()?)?)))
    }
}

fn labels(host: &HostName) -> Vec<String> {
    match host {
        HostName::Address(std::net::IpAddr::V6(_)) => vec![host.to_string()],
        _ => host.to_string().split('.').map(str::to_owned).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_match_by_label() {
        for (pattern, url, expected) in [
            ("example.com", "https://example.com/a?b#c", true),
            ("example.com", "https://EXAMPLE.com:8443/", true),
            ("Example.COM.", "https://example.com", true),
            ("example.com", "https://example.com./", true),
            ("example.com", "https://www.example.com/", false),
            ("example.com", "https://example.com.evil.org/", false),
            ("example.com", "https://notexample.com/", false),
            ("example.com", "https://example.com@evil.org/", false),
            ("example.com", "https://evil.org/example.com", false),
            ("example.com", "https://evil.org\\@example.com/", false),
            ("*.example.com", "https://www.example.com/", true),
            ("*.example.com", "https://a.b.example.com/", true),
            ("*.example.com", "https://example.com/", false),
            ("*.example.com", "https://badexample.com/", false),
            ("api-*.example.com", "https://api-7.example.com/", true),
            ("api-*.example.com", "https://api-7.x.example.com/", false),
            ("docs.*.org", "https://docs.rust.org/", true),
            ("docs.*.org", "https://docs.a.b.org/", false),
            ("example.com", "https://ex%61mple.com/", true),
            ("example.com", "https://example。com/", true),
            ("example.com", "https://ｅｘａｍｐｌｅ.com/", true),
            ("ｅxample。com", "https://example.com/", true),
            ("example.com", "https://user:pass@example.com/", true),
            ("example.com", "https:\\\\example.com\\x", true),
            ("example.com", "ht\ttps://exa\nmple.com/", true),
            ("bücher.org", "https://xn--bcher-kva.org/", true),
            ("xn--bcher-kva.org", "https://BÜCHER.org/", true),
            ("*.bücher.org", "https://a.xn--bcher-kva.org/", true),
            ("*。bücher。org", "https://a.xn--bcher-kva.org/", true),
            ("127.0.0.1", "http://127.1/", true),
            ("127.0.0.1", "http://2130706433/", true),
            ("127.0.0.1", "http://0x7f.0.0.1:8080/", true),
            ("127.0.0.1", "http://0177.1/", true),
            ("127.0.0.1", "http://[::ffff:127.0.0.1]/", true),
            ("127.0.0.1", "http://[::ffff:7f00:1]/", true),
            ("127.0.0.1", "http://[64:ff9b::127.0.0.1]/", true),
            ("[::ffff:127.0.0.1]", "http://127.0.0.1/", true),
            ("0x7f.1", "http://127.0.0.1/", true),
            ("::1", "http://[0:0::1]:80/", true),
            ("[::1]", "http://[::1]/", true),
            ("127.*.*.*", "http://127.9/", true),
            ("*.0.0.1", "http://127.1/", true),
            ("example.com", "example.com", false),
            ("example.com", "data:text/html,example.com", false),
        ] {
            let matched =
                Host::of(url).is_some_and(|host| DomainPattern::parse(pattern).matches(&host));
            assert_eq!(matched, expected, "{pattern} on {url}");
        }
    }
}
