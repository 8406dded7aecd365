//! A time as all records and events write it: UTC, with exactly three digits of a second.
//!
//! Readers of such files compare and cut times as text, and some refuse any other form. The library's own
//! type prints as many digits as there happen to be and cannot be serialised here: this one is the way.

use std::fmt;
use std::ops::Deref;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A time that is written with exactly three digits of a second, and read with any number of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(jiff::Timestamp);

impl fmt::Display for Timestamp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:.3}", self.0)
    }
}

impl Deref for Timestamp {
    type Target = jiff::Timestamp;

    fn deref(&self) -> &jiff::Timestamp {
        &self.0
    }
}

impl From<jiff::Timestamp> for Timestamp {
    fn from(time: jiff::Timestamp) -> Self {
        Self(time)
    }
}

impl FromStr for Timestamp {
    type Err = jiff::Error;

    fn from_str(text: &str) -> Result<Self, jiff::Error> {
        text.parse().map(Self)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_exactly_three_digits_of_a_second() {
        // D-61
        for (read, written) in [
            ("2026-11-16T10:34:33Z", "2026-11-16T10:34:33.000Z"),
            ("2026-11-16T10:34:33.5Z", "2026-11-16T10:34:33.500Z"),
            ("2026-11-16T10:34:33.083Z", "2026-11-16T10:34:33.083Z"),
            ("2026-11-16T10:34:33.999999999Z", "2026-11-16T10:34:33.999Z"),
            ("2026-11-16T12:34:33.1+02:00", "2026-11-16T10:34:33.100Z"),
        ] {
            let time: Timestamp = serde_json::from_str(&format!("\"{read}\"")).unwrap();
            assert_eq!(serde_json::to_string(&time).unwrap(), format!("\"{written}\""));
            assert_eq!(time.to_string(), written);
        }
        assert!(serde_json::from_str::<Timestamp>("\"yesterday\"").is_err());
    }
}
