//! The id of a host's request, which the answer repeats as it came.

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

/// An id that a host chose. The published SDKs choose texts; other hosts count.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RequestId {
    Text(String),
    Number(Number),
}

impl RequestId {
    /// Reads an id; `None` if the value is none.
    pub fn read(value: Option<Value>) -> Option<Self> {
        serde_json::from_value(value?).ok()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_id_is_a_text_or_a_number_and_comes_back_as_it_was() {
        for id in [json!("a"), json!(""), json!(7), json!(-1), json!(0.5), json!(u64::MAX)] {
            assert_eq!(json!(RequestId::read(Some(id.clone())).unwrap()), id);
        }
        for other in [None, Some(json!(null)), Some(json!({})), Some(json!([1])), Some(json!(true))]
        {
            assert_eq!(RequestId::read(other), None);
        }
    }
}
