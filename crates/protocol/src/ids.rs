//! Newtypes for everything that is told apart by a string.

use std::fmt;
use std::sync::Arc;

use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// One conversation with a person, across processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionId(pub Uuid);

/// One record of a transcript; also the id of the event that shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct RecordId(pub Uuid);

impl<'de> Deserialize<'de> for RecordId {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = RecordId;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("the id of a record")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<RecordId, E> {
                text.parse().map_err(E::custom)
            }
        }
        reader.deserialize_str(Text)
    }
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            pub fn new(text: impl Into<Arc<str>>) -> Self {
                Self(text.into())
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }
    };
}

text_id!(
    /// One agent: `a` and sixteen hex digits.
    AgentId
);
text_id!(
    /// One tool call, as the provider named it.
    ToolUseId
);
text_id!(
    /// One piece of background work: an agent's id, or `b` and eight characters for a shell.
    TaskId
);

impl fmt::Display for SessionId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl fmt::Display for RecordId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// A resumed session reads two ids for each of its records, nearly all in the usual spelling.
impl std::str::FromStr for RecordId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        read_hyphenated(text).map_or_else(|| Uuid::parse_str(text), Ok).map(Self)
    }
}

/// Offsets of the pairs of digits in `00000000-0000-0000-0000-000000000000`.
const PAIRS: [usize; 16] = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];

/// The value of a character as a digit, or 255.
const DIGITS: [u8; 256] = {
    let mut digits = [255; 256];
    let mut value = 0_u8;
    while value < 16 {
        digits[b"0123456789abcdef"[value as usize] as usize] = value;
        digits[b"0123456789ABCDEF"[value as usize] as usize] = value;
        value += 1;
    }
    digits
};

/// Reads an id in the usual spelling, several times as fast as one in any spelling.
fn read_hyphenated(text: &str) -> Option<Uuid> {
    let text: &[u8; 36] = text.as_bytes().try_into().ok()?;
    let mut is_none = [8, 13, 18, 23].iter().any(|at| text[*at] != b'-');
    let bytes = PAIRS.map(|at| {
        let (high, low) = (DIGITS[usize::from(text[at])], DIGITS[usize::from(text[at + 1])]);
        is_none |= high > 15 || low > 15;
        high << 4 | low & 15
    });
    (!is_none).then(|| Uuid::from_bytes(bytes))
}

impl std::str::FromStr for SessionId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Uuid::parse_str(text).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ids_are_read_as_their_library_reads_them(
            value in any::<u128>(),
            at in 0_usize..36,
            other in "[-0-9a-fA-Fg-z{é]",
        ) {
            let id = Uuid::from_u128(value);
            let usual = id.to_string();
            let mut changed = usual.clone();
            changed.replace_range(at..=at, &other);
            let upper = usual.to_uppercase();
            let spellings = [usual, upper, changed, id.simple().to_string(), id.urn().to_string()];
            for text in spellings {
                let expected = Uuid::parse_str(&text).ok().map(RecordId);
                prop_assert_eq!(text.parse::<RecordId>().ok(), expected, "{}", text);
                let read = serde_json::from_value(text.clone().into()).ok();
                prop_assert_eq!(read, expected, "{}", text);
            }
        }
    }
}
