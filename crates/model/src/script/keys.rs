//! Parses objects with known keys: an unknown key is an error that names the nearest known one.

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error};
use strsim::levenshtein as distance;

/// Reads every entry of `$map` into a local variable per key; `null` counts as absent.
macro_rules! read_fields {
    ($map:ident, $what:literal, { $($key:literal => $field:ident),* $(,)? }) => {
        $(let mut $field = None;)*
        let known = $crate::script::keys::KnownKey { what: $what, known: &[$($key),*] };
        while let Some(key) = $map.next_key_seed(known)? {
            match key.as_str() {
                $($key => $field = $map.next_value()?,)*
                _ => {}
            }
        }
    };
}
pub(super) use read_fields;

/// Implements `Deserialize` for a type that is written as an object.
macro_rules! read_object {
    ($type:ty, $expecting:literal, |$map:ident| $body:block) => {
        impl<'de> serde::de::Deserialize<'de> for $type {
            fn deserialize<D: serde::de::Deserializer<'de>>(
                deserializer: D,
            ) -> Result<Self, D::Error> {
                struct Entries;
                impl<'de> serde::de::Visitor<'de> for Entries {
                    type Value = $type;

                    fn expecting(
                        &self,
                        formatter: &mut std::fmt::Formatter<'_>,
                    ) -> std::fmt::Result {
                        formatter.write_str($expecting)
                    }

                    fn visit_map<A: serde::de::MapAccess<'de>>(
                        self,
                        mut $map: A,
                    ) -> Result<$type, A::Error> {
                        $body
                    }
                }
                deserializer.deserialize_map(Entries)
            }
        }
    };
}
pub(super) use read_object;

/// Parses one key and refuses an unknown one. Doing so here, and not when the key is used, gives the error the key's
/// own position in the file.
#[derive(Clone, Copy)]
pub(super) struct KnownKey {
    pub(super) what: &'static str,
    pub(super) known: &'static [&'static str],
}

impl<'de> DeserializeSeed<'de> for KnownKey {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        let key = String::deserialize(deserializer)?;
        if self.known.contains(&key.as_str()) {
            Ok(key)
        } else {
            Err(D::Error::custom(unknown_key(&key, self.what, self.known)))
        }
    }
}

/// The message about an unknown key.
pub(super) fn unknown_key(key: &str, what: &str, known: &[&str]) -> String {
    match nearest(key, known.iter().copied()) {
        Some(near) => format!("{what} has no key `{key}`; did you mean `{near}`?"),
        None => format!("{what} has no key `{key}`; its keys are {}", known.join(", ")),
    }
}

/// The known word that a person who wrote `word` most likely meant.
pub(super) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = word.chars().count().div_ceil(3);
    known
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_edits() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("same", "same"), 0);
    }

    #[test]
    fn only_a_near_word_is_proposed() {
        let known = ["latency_ms", "chunk_chars"];
        assert_eq!(nearest("latencyms", known), Some("latency_ms"));
        assert_eq!(nearest("zebra", known), None);
    }
}
