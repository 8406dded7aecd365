//! Which hosts may be reached.

use std::net::{IpAddr, SocketAddr};

/// Hosts by name: `example.com` is that host, `*.example.com` every host below it, `*` every host. A
/// pattern with a star never means an address or this machine; those have to be named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Domains {
    pub allowed: Vec<String>,
    /// Not to be reached, even if allowed.
    pub denied: Vec<String>,
}

impl Domains {
    /// Whether a proxy of the user's own may be asked for a host. It decides alone where nothing is
    /// listed; what is denied here stays denied.
    pub(super) fn pass_on(&self, host: &str) -> bool {
        let is_denied = self.denied.iter().any(|pattern| matches(pattern, &normal(host)));
        !is_denied && (self.allowed.is_empty() || self.allow(host))
    }

    pub(super) fn allow(&self, host: &str) -> bool {
        let host = normal(host);
        let is_among = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, &host));
        is_among(&self.allowed) && !is_among(&self.denied)
    }
}

/// Whether a connection to this address is what somebody meant who allowed the host: a name must not lead
/// to this machine, whatever the name server says.
pub(super) fn is_meant(host: &str, address: &SocketAddr) -> bool {
    let address = address.ip().to_canonical();
    is_local_or_address(&normal(host)) || !is_this_machine(address)
}

fn is_this_machine(address: IpAddr) -> bool {
    let is_link_local = match address {
        IpAddr::V4(address) => address.is_link_local() || address.is_broadcast(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    is_link_local || address.is_loopback() || address.is_unspecified() || address.is_multicast()
}

fn matches(pattern: &str, host: &str) -> bool {
    let pattern = normal(pattern);
    match pattern.strip_prefix('*') {
        None => pattern == host,
        Some(_) if is_local_or_address(host) => false,
        Some(rest) => match rest.strip_prefix('.') {
            None => rest.is_empty(),
            Some(domain) => host.strip_suffix(domain).is_some_and(|sub| sub.ends_with('.')),
        },
    }
}

fn is_local_or_address(host: &str) -> bool {
    // Old notations of addresses are all numbers and dots, too: `127.1`, `2130706433`, `0x7f.1`.
    let last = host.rsplit('.').next().unwrap_or_default();
    let is_number = last.starts_with(|first: char| first.is_ascii_digit());
    host == "localhost" || host.ends_with(".localhost") || is_number || host.contains(':')
}

fn normal(host: &str) -> String {
    let host = host.trim().trim_start_matches('[').trim_end_matches(']');
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(allowed: &[&str], denied: &[&str], host: &str) -> bool {
        let owned = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
        Domains { allowed: owned(allowed), denied: owned(denied) }.allow(host)
    }

    #[test]
    fn a_host_must_be_allowed_and_not_denied() {
        for (allowed, denied, host, expected) in [
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
            (&["*"], &[], "localhost", false),
            (&["*"], &[], "x.localhost", false),
            (&["*"], &[], "127.0.0.1", false),
            (&["*"], &[], "[::1]", false),
            (&["*"], &[], "2130706433", false),
            (&["*"], &[], "0x7f.1", false),
            (&["127.0.0.1"], &[], "127.0.0.1", true),
            (&["*example.com"], &[], "notexample.com", false),
            (&[], &[], "example.com", false),
        ] {
            assert_eq!(allows(allowed, denied, host), expected, "{allowed:?} {denied:?} {host}");
        }
    }

    #[test]
    fn a_proxy_of_the_users_own_decides_what_is_left_to_it() {
        for (allowed, denied, host, expected) in [
            (&[][..], &[][..], "anything.org", true),
            (&[], &["evil.org"], "evil.org", false),
            (&[], &["evil.org"], "good.org", true),
            (&["good.org"], &[], "good.org", true),
            (&["good.org"], &[], "other.org", false),
            (&["*"], &["evil.org"], "evil.org", false),
        ] {
            let owned = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
            let domains = Domains { allowed: owned(allowed), denied: owned(denied) };
            assert_eq!(domains.pass_on(host), expected, "{allowed:?} {denied:?} {host}");
        }
    }

    #[test]
    fn a_name_that_leads_to_this_machine_is_not_followed() {
        for (host, address, expected) in [
            ("example.com", "93.184.216.34:80", true),
            ("example.com", "10.0.0.1:80", true),
            ("example.com", "127.0.0.1:80", false),
            ("example.com", "169.254.169.254:80", false),
            ("example.com", "0.0.0.0:80", false),
            ("example.com", "[::1]:80", false),
            ("example.com", "[::ffff:127.0.0.1]:80", false),
            ("localhost", "127.0.0.1:80", true),
            ("127.0.0.1", "127.0.0.1:80", true),
        ] {
            assert_eq!(is_meant(host, &address.parse().unwrap()), expected, "{host} {address}");
        }
    }
}
