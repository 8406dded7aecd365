//! The one form in which hosts are compared and connected to.
//!
//! A host can be written in many ways: other letters, other dots, percent signs, numbers of any base. Rules and
//! requests are both read here, the way browsers do it, and what is connected to is what was read.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

/// A host by its name, in lower-case ASCII without a last dot, or by its address.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HostName {
    Domain(String),
    Address(IpAddr),
}

impl HostName {
    /// Reads the host of an address such as `https://example.com/`.
    pub fn of(url: &Url) -> Option<Self> {
        match url.host()? {
            Host::Domain(name) => Self::domain(name),
            Host::Ipv4(address) => Some(Self::Address(address.into())),
            Host::Ipv6(address) => Some(Self::Address(plain(address))),
        }
    }

    /// Reads a host by itself: a name, an address in any notation, or one of version 6 with or without brackets.
    pub fn parse(text: &str) -> Option<Self> {
        let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
        if let Ok(address) = inner.parse::<Ipv6Addr>() {
            return Some(Self::Address(plain(address)));
        }
        // Nothing that ends a host may be in it, or another reader would see another host.
        if text.contains(|character: char| character.is_control() || character.is_whitespace()) {
            return None;
        }
        match Host::parse(text).ok()? {
            Host::Domain(name) => Self::domain(&name),
            Host::Ipv4(address) => Some(Self::Address(address.into())),
            Host::Ipv6(address) => Some(Self::Address(plain(address))),
        }
    }

    fn domain(name: &str) -> Option<Self> {
        let name = name.trim_end_matches('.').to_lowercase();
        // A resolver takes a number with dots behind it for a number.
        match Host::parse(&name) {
            Ok(Host::Ipv4(address)) => Some(Self::Address(address.into())),
            Ok(Host::Domain(name)) if !name.is_empty() => Some(Self::Domain(name)),
            _ => None,
        }
    }

    /// Whether it means this machine by its name.
    pub fn is_localhost(&self) -> bool {
        match self {
            Self::Domain(name) => name == "localhost" || name.ends_with(".localhost"),
            Self::Address(_) => false,
        }
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Domain(name) => formatter.write_str(name),
            Self::Address(IpAddr::V4(address)) => write!(formatter, "{address}"),
            Self::Address(IpAddr::V6(address)) => write!(formatter, "[{address}]"),
        }
    }
}

/// An address of version 6, or the one of version 4 that it stands for.
fn plain(address: Ipv6Addr) -> IpAddr {
    let [.., a, b, c, d] = address.octets();
    let inner = Ipv4Addr::new(a, b, c, d);
    match address.segments() {
        // Mapped, translated, and translated as some networks do.
        [0, 0, 0, 0, 0, 0xffff, _, _]
        | [0, 0, 0, 0, 0xffff, 0, _, _]
        | [0x64, 0xff9b, 0, 0, 0, 0, _, _] => inner.into(),
        // The old compatible form; the first two of them mean something else.
        [0, 0, 0, 0, 0, 0, high, low] if (high, low) != (0, 0) && (high, low) != (0, 1) => {
            inner.into()
        }
        _ => address.into(),
    }
}

/// Whether an address leads to this machine, to its neighbours on the same wire, or to the service by which clouds
/// hand out credentials. A name that leads there is not what its reader took it for.
pub fn is_local_address(address: IpAddr) -> bool {
    /// Metadata services of clouds outside of the link-local range.
    const METADATA_4: [Ipv4Addr; 3] = [
        Ipv4Addr::new(100, 100, 100, 200),
        Ipv4Addr::new(168, 63, 129, 16),
        Ipv4Addr::new(192, 0, 0, 192),
    ];
    const METADATA_6: [Ipv6Addr; 2] = [
        Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
        Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
    ];
    let address = match address {
        IpAddr::V6(address) => plain(address),
        address @ IpAddr::V4(_) => address,
    };
    let is_near = match address {
        IpAddr::V4(address) => {
            address.is_link_local()
                || address.is_broadcast()
                || address.octets().first() == Some(&0)
                || METADATA_4.contains(&address)
        }
        IpAddr::V6(address) => address.is_unicast_link_local() || METADATA_6.contains(&address),
    };
    is_near || address.is_loopback() || address.is_unspecified() || address.is_multicast()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(text: &str) -> Option<String> {
        HostName::parse(text).map(|host| host.to_string())
    }

    #[test]
    fn every_spelling_of_a_host_is_the_same_host() {
        for (host, spellings) in [
            (
                "example.com",
                &[
                    "EXAMPLE.com",
                    "example.com.",
                    "example.com..",
                    "example。com",
                    "example．com",
                    "example｡com",
                    "ｅｘａｍｐｌｅ.com",
                    "ex%61mple.com",
                    "%65xample%2ecom",
                    "exam\u{ad}ple.com",
                    "exa\u{200b}mple.com",
                ][..],
            ),
            (
                "xn--bcher-kva.example",
                &[
                    "bücher.example",
                    "BÜCHER.example",
                    "b\u{75}\u{308}cher.example",
                    "XN--BCHER-KVA.example",
                ],
            ),
            (
                "127.0.0.1",
                &[
                    "127.1",
                    "127.0.1",
                    "2130706433",
                    "0x7f.1",
                    "0x7f000001",
                    "0177.0.0.1",
                    "017700000001",
                    "127.0.0.1.",
                    "１２７.0.0.1",
                    "127。0。0。1",
                    "[::ffff:127.0.0.1]",
                    "::ffff:7f00:1",
                    "[64:ff9b::7f00:1]",
                    "[::127.0.0.1]",
                    "0x7F.0.0.0x1",
                    "%31%32%37.1",
                ],
            ),
            ("[::1]", &["::1", "[0:0:0:0:0:0:0:1]", "[::0001]"]),
        ] {
            for spelling in spellings {
                assert_eq!(shown(spelling).as_deref(), Some(host), "{spelling}");
            }
        }
    }

    #[test]
    fn what_is_no_host_is_refused() {
        for text in [
            "",
            ".",
            "..",
            "a b",
            "a\tb",
            "a\nb",
            "a\0b",
            "a%00b",
            "a/b",
            "a\\b",
            "a@b",
            "a:80",
            "a#b",
            "a?b",
            "[::1",
            "::1]",
            "[::1%lo]",
            "fe80::1%eth0",
            "256.0.0.1",
            "1.2.3.4.5",
            "a%2fb",
            "a%40b",
            "<a>",
            "xn--a",
        ] {
            let parsed = HostName::parse(text);
            assert!(parsed.is_none(), "{text:?}: {parsed:?}");
        }
    }

    #[test]
    fn addresses_that_are_near_are_known() {
        for near in [
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "0.1.2.3",
            "169.254.169.254",
            "100.100.100.200",
            "168.63.129.16",
            "255.255.255.255",
            "224.0.0.1",
            "::",
            "::1",
            "fe80::1",
            "fd00:ec2::254",
            "::ffff:169.254.169.254",
            "64:ff9b::a9fe:a9fe",
            "ff02::1",
        ] {
            assert!(is_local_address(near.parse().unwrap()), "{near}");
        }
        for far in [
            "93.184.216.34",
            "10.0.0.1",
            "192.168.1.1",
            "2606:2800:220:1::1",
            "100.100.100.201",
            "fd00::1",
        ] {
            assert!(!is_local_address(far.parse().unwrap()), "{far}");
        }
    }

    /// One number of an address, in one of the notations that name servers' libraries take.
    fn number(value: u32, base: u8) -> String {
        match base % 4 {
            0 => format!("{value}"),
            1 => format!("0x{value:x}"),
            2 => format!("0{value:o}"),
            _ => format!("0X{value:X}"),
        }
    }

    proptest! {
        #[test]
        fn any_notation_of_an_address_is_that_address(address: u32, parts in 1..=4_u32, bases: [u8; 4], dot in "|\\.") {
            let octets = address.to_be_bytes().map(u32::from);
            let count = usize::try_from(parts).unwrap();
            let rest = address & (u32::MAX.checked_shr(8 * (parts - 1)).unwrap_or(0));
            let mut words: Vec<String> = octets.iter().zip(bases).take(count - 1).map(|(octet, base)| number(*octet, base)).collect();
            words.push(number(rest, bases[3]));
            let text = words.join(".") + &dot;
            prop_assert_eq!(HostName::parse(&text), Some(HostName::Address(Ipv4Addr::from(address).into())), "{}", text);
        }

        #[test]
        fn any_spelling_of_a_name_is_that_name(name in "[a-z][a-z0-9]{0,8}(\\.[a-z][a-z0-9]{1,6}){1,2}", choices: Vec<u8>) {
            let spelled: String = name.chars().zip(choices.iter().chain(std::iter::repeat(&0))).map(|(letter, choice)| match choice % 5 {
                1 => letter.to_ascii_uppercase().to_string(),
                2 => format!("%{:02x}", u32::from(letter)),
                3 if letter == '.' => "。".to_owned(),
                // The full-width forms stand in the same order.
                3 => char::from_u32(u32::from(letter) + 0xfee0).unwrap().to_string(),
                4 => format!("{letter}\u{200b}"),
                _ => letter.to_string(),
            }).collect();
            prop_assert_eq!(HostName::parse(&spelled), Some(HostName::Domain(name)), "{}", spelled);
        }

        /// Parsing is idempotent: a second reader of the result sees the same host.
        #[test]
        fn the_form_is_final(text in "[a-zA-Z0-9.:%\\[\\]xX。．ｅ_ -]{0,24}") {
            if let Some(host) = HostName::parse(&text) {
                prop_assert_eq!(HostName::parse(&host.to_string()), Some(host.clone()), "{}", text);
                let url = Url::parse(&format!("http://{host}/")).unwrap();
                prop_assert_eq!(HostName::of(&url), Some(host), "{}", text);
            }
        }
    }
}
