//! Hosts in `WebFetch(domain:host)`.

use url::Url;

use crate::wildcard::Wildcard;

/// A host name, label by label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DomainPattern {
    labels: Vec<Wildcard>,
    /// `*.host`: any depth of subdomains, but not the host itself.
    subdomains: bool,
}

impl DomainPattern {
    pub(crate) fn parse(host: &str) -> Self {
        let host = clean(host);
        match host.strip_prefix("*.") {
            Some(rest) => Self { labels: patterns(rest), subdomains: true },
            None => Self { labels: patterns(&host), subdomains: false },
        }
    }

    pub(crate) fn matches(&self, host: &Host) -> bool {
        let Some(extra) = host.0.len().checked_sub(self.labels.len()) else { return false };
        if (extra > 0) != self.subdomains {
            return false;
        }
        let tail = host.0.iter().skip(extra);
        self.labels.iter().zip(tail).all(|(pattern, label)| pattern.fits(label))
    }
}

/// The labels of a URL's host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host(Vec<String>);

impl Host {
    /// Reads the host as the client that fetches will read it.
    pub(crate) fn of(url: &str) -> Option<Self> {
        let url = Url::parse(url).ok()?;
        Some(Self(clean(url.host_str()?).split('.').map(str::to_owned).collect()))
    }
}

fn clean(host: &str) -> String {
    host.trim().trim_end_matches('.').to_lowercase()
}

fn patterns(host: &str) -> Vec<Wildcard> {
    host.split('.').map(Wildcard::parse).collect()
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
            ("example.com", "example.com", false),
            ("example.com", "data:text/html,example.com", false),
        ] {
            let matched =
                Host::of(url).is_some_and(|host| DomainPattern::parse(pattern).matches(&host));
            assert_eq!(matched, expected, "{pattern} on {url}");
        }
    }
}
