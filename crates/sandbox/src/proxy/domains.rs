//! The hosts that may be reached.

use std::net::{IpAddr, SocketAddr};

use centurion_protocol::{HostName, is_local_address};

/// Hosts by name: `example.com` is that host, `*.example.com` every host below it, `*` every host. A pattern with a
/// star never matches an address or this machine; those have to be named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Domains {
    pub allowed: Vec<String>,
    /// Not reachable, even if allowed.
    pub denied: Vec<String>,
}

impl Domains {
    /// Whether the user's own proxy may be asked for a host. It decides alone if nothing is listed; a host that is
    /// denied here stays denied.
    pub(super) fn pass_on(&self, host: &HostName) -> bool {
        let is_denied = self.denied.iter().any(|pattern| denies(pattern, host));
        !is_denied && (self.allowed.is_empty() || self.allow(host))
    }

    pub(super) fn allow(&self, host: &HostName) -> bool {
        self.allowed.iter().any(|pattern| matches(pattern, host))
            && !self.denied.iter().any(|pattern| denies(pattern, host))
    }

    /// Whether an address is acceptable for an allowed host. A name must not lead to this machine, to the metadata of a
    /// cloud or to a denied address, whatever the name server says.
    pub(super) fn mean(&self, host: &HostName, address: &SocketAddr) -> bool {
        let address =
            HostName::parse(&address.ip().to_string()).unwrap_or(HostName::Address(address.ip()));
        let HostName::Address(ip) = address else { return false };
        if self.denied.iter().any(|pattern| denies(pattern, &address)) {
            return false;
        }
        let is_named = match host {
            HostName::Address(named) => *named == ip,
            HostName::Domain(_) => {
                (host.is_localhost() && ip.is_loopback())
                    || self.allowed.iter().any(|pattern| matches(pattern, &address))
            }
        };
        is_named || !is_local_address(ip)
    }
}

/// Whether a pattern of allowed hosts matches a host.
fn matches(pattern: &str, host: &HostName) -> bool {
    let is_special = host.is_localhost() || matches!(host, HostName::Address(_));
    match Pattern::parse(pattern) {
        Pattern::Host(named) => named == *host,
        Pattern::Below(domain) => !is_special && is_below(host, &domain),
        Pattern::All => !is_special,
        Pattern::Nothing => false,
    }
}

/// Whether a pattern of denied hosts matches a host. It matches more: a star matches addresses, too.
fn denies(pattern: &str, host: &HostName) -> bool {
    match Pattern::parse(pattern) {
        Pattern::Host(named) => named == *host,
        Pattern::Below(domain) => is_below(host, &domain),
        Pattern::All => true,
        Pattern::Nothing => false,
    }
}

enum Pattern {
    Host(HostName),
    Below(String),
    All,
    /// An invalid pattern.
    Nothing,
}

impl Pattern {
    fn parse(text: &str) -> Self {
        let text = text.trim();
        if text == "*" {
            return Self::All;
        }
        match text.strip_prefix("*.") {
            Some(rest) => match HostName::parse(rest) {
                Some(HostName::Domain(domain)) => Self::Below(domain),
                _ => Self::Nothing,
            },
            None => HostName::parse(text).map_or(Self::Nothing, Self::Host),
        }
    }
}

fn is_below(host: &HostName, domain: &str) -> bool {
    match host {
        HostName::Domain(name) => name.strip_suffix(domain).is_some_and(|sub| sub.ends_with('.')),
        HostName::Address(IpAddr::V4(_) | IpAddr::V6(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn domains(allowed: &[&str], denied: &[&str]) -> Domains {
        let owned = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
        Domains { allowed: owned(allowed), denied: owned(denied) }
    }

    fn host(text: &str) -> HostName {
        HostName::parse(text).unwrap()
    }

    #[test]
    fn a_host_must_be_allowed_and_not_denied() {
        for (allowed, denied, name, expected) in [
            (&["example.com"][..], &[][..], "example.com", true),
            (&["Example.com"], &[], "EXAMPLE.com.", true),
            (&["example.com"], &[], "www.example.com", false),
            (&["example.com"], &[], "notexample.com", false),
            (&["*.example.com"], &[], "a.b.example.com", true),
            (&["*.example.com"], &[], "example.com", false),
            (&["*.example.com"], &[], "notexample.com", false),
            (&["*.example.com"], &[], "example.com.evil.org", false),
            (&["*"], &[], "anything.org", true),
            (&["*"], &["*.evil.org"], "www.evil.org", false),
            (&["*"], &["*.evil.org"], "www.evil。org", false),
            (&["*"], &["evil.org"], "ｅvil.org", false),
            (&["*"], &["bücher.org"], "xn--bcher-kva.org", false),
            (&["bücher.org"], &[], "xn--bcher-kva.org", true),
            (&["*.bücher.org"], &[], "a.xn--bcher-kva.org", true),
            (&["*"], &[], "localhost", false),
            (&["*"], &[], "x.localhost", false),
            (&["*"], &[], "127.0.0.1", false),
            (&["*"], &[], "[::1]", false),
            (&["*"], &[], "2130706433", false),
            (&["*"], &[], "0x7f.1", false),
            (&["127.0.0.1"], &[], "127.0.0.1", true),
            (&["127.0.0.1"], &["127.1"], "127.0.0.1", false),
            (&["127.0.0.1"], &["[::ffff:127.0.0.1]"], "127.0.0.1", false),
            (&["*example.com"], &[], "notexample.com", false),
            (&[], &[], "example.com", false),
        ] {
            let allows = domains(allowed, denied).allow(&host(name));
            assert_eq!(allows, expected, "{allowed:?} {denied:?} {name}");
        }
    }

    #[test]
    fn a_proxy_of_the_users_own_decides_what_is_left_to_it() {
        for (allowed, denied, name, expected) in [
            (&[][..], &[][..], "anything.org", true),
            (&[], &["evil.org"], "evil.org", false),
            (&[], &["evil.org"], "EVIL%2eorg.", false),
            (&[], &["evil.org"], "good.org", true),
            (&["good.org"], &[], "good.org", true),
            (&["good.org"], &[], "other.org", false),
            (&["*"], &["evil.org"], "evil.org", false),
        ] {
            let passes = domains(allowed, denied).pass_on(&host(name));
            assert_eq!(passes, expected, "{allowed:?} {denied:?} {name}");
        }
    }

    #[test]
    fn a_name_that_leads_to_this_machine_is_not_followed() {
        for (allowed, denied, name, address, expected) in [
            (&["*"][..], &[][..], "example.com", "93.184.216.34:80", true),
            (&["*"], &[], "example.com", "10.0.0.1:80", true),
            (&["*"], &["10.0.0.1"], "example.com", "10.0.0.1:80", false),
            (&["example.com"], &[], "example.com", "127.0.0.1:80", false),
            (&["example.com"], &[], "example.com", "169.254.169.254:80", false),
            (&["example.com"], &[], "example.com", "100.100.100.200:80", false),
            (&["example.com"], &[], "example.com", "[fd00:ec2::254]:80", false),
            (&["example.com"], &[], "example.com", "0.0.0.0:80", false),
            (&["example.com"], &[], "example.com", "[::1]:80", false),
            (&["example.com"], &[], "example.com", "[::ffff:127.0.0.1]:80", false),
            (&["example.com"], &[], "example.com", "[64:ff9b::7f00:1]:80", false),
            (&["example.com", "127.0.0.1"], &[], "example.com", "127.0.0.1:80", true),
            (&["localhost"], &[], "localhost", "127.0.0.1:80", true),
            (&["localhost"], &[], "localhost", "169.254.169.254:80", false),
            (&["127.0.0.1"], &[], "127.0.0.1", "127.0.0.1:80", true),
        ] {
            let meant = domains(allowed, denied).mean(&host(name), &address.parse().unwrap());
            assert_eq!(meant, expected, "{allowed:?} {denied:?} {name} {address}");
        }
    }
}
