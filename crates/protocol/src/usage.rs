//! Token counts as providers report them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Tokens of one or several requests. `input_tokens` excludes tokens that the cache read or wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    pub input_tokens: u64,
    pub cache_creation_input_tokens: u64,
    pub cache_read_input_tokens: u64,
    pub output_tokens: u64,
}

impl Usage {
    pub fn total(&self) -> u64 {
        self.context().saturating_add(self.output_tokens)
    }

    /// Everything the request put before the model.
    pub fn context(&self) -> u64 {
        let written = self.input_tokens.saturating_add(self.cache_creation_input_tokens);
        written.saturating_add(self.cache_read_input_tokens)
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        // The numbers are of other programs: the sum has a largest value, and no overflow.
        let add = |sum: &mut u64, more| *sum = sum.saturating_add(more);
        add(&mut self.input_tokens, other.input_tokens);
        add(&mut self.cache_creation_input_tokens, other.cache_creation_input_tokens);
        add(&mut self.cache_read_input_tokens, other.cache_read_input_tokens);
        add(&mut self.output_tokens, other.output_tokens);
    }
}

/// The most bytes of details that are kept.
const MOST_DETAILS: usize = 16 * 1024;

/// Usage as a provider reports it: the counts, and everything else as it was sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReportedUsage {
    #[serde(flatten)]
    pub counts: Usage,
    #[serde(flatten)]
    details: Map<String, Value>,
}

impl ReportedUsage {
    /// Takes what a provider has sent. Fields that it leaves out, or says to be null, keep their earlier values.
    pub fn update(&mut self, sent: Map<String, Value>) {
        let counts = &mut self.counts;
        let mut details = Map::new();
        for (name, value) in sent {
            let count = match name.as_str() {
                "input_tokens" => &mut counts.input_tokens,
                "cache_creation_input_tokens" => &mut counts.cache_creation_input_tokens,
                "cache_read_input_tokens" => &mut counts.cache_read_input_tokens,
                "output_tokens" => &mut counts.output_tokens,
                _ => {
                    if !value.is_null() || !self.details.contains_key(&name) {
                        details.insert(name, value);
                    }
                    continue;
                }
            };
            *count = value.as_u64().unwrap_or(*count);
        }
        if size(&self.details) + size(&details) <= MOST_DETAILS {
            self.details.extend(details);
        }
    }

    /// The number below these names, or 0.
    pub fn number(&self, path: [&str; 2]) -> u64 {
        let [outer, inner] = path;
        self.details.get(outer).and_then(|it| it.get(inner)?.as_u64()).unwrap_or(0)
    }

    /// The number of searches that the provider has made.
    pub fn web_searches(&self) -> u64 {
        self.number(["server_tool_use", "web_search_requests"])
    }

    /// The tokens that were written to a cache for an hour, as far as the provider tells them apart.
    pub fn hour_writes(&self) -> u64 {
        let hour = self.number(["cache_creation", "ephemeral_1h_input_tokens"]);
        hour.min(self.counts.cache_creation_input_tokens)
    }

    /// The usage with every field that hosts expect of a result: nothing is counted in those that the provider did
    /// not send.
    pub fn completed(mut self) -> Self {
        let searches = json!({"web_search_requests": 0, "web_fetch_requests": 0});
        let writes = json!({"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": 0});
        for (name, neutral) in [
            ("output_tokens_details", json!({"thinking_tokens": 0})),
            ("server_tool_use", searches),
            ("service_tier", "standard".into()),
            ("cache_creation", writes),
            ("inference_geo", "".into()),
            ("iterations", json!([])),
            ("speed", "standard".into()),
        ] {
            let value = self.details.entry(name).or_insert(Value::Null);
            if value.is_null() {
                *value = neutral;
            }
        }
        self.details.entry("fallback_credit").or_insert(Value::Null);
        self
    }
}

impl From<Usage> for ReportedUsage {
    fn from(counts: Usage) -> Self {
        Self { counts, details: Map::new() }
    }
}

impl std::ops::AddAssign<&Self> for ReportedUsage {
    /// Adds numbers; of everything else the later one stands.
    fn add_assign(&mut self, other: &Self) {
        self.counts += other.counts;
        add_fields(&mut self.details, &other.details);
    }
}

fn add_fields(sum: &mut Map<String, Value>, more: &Map<String, Value>) {
    for (name, value) in more {
        match (sum.get_mut(name), value) {
            (Some(Value::Object(sum)), Value::Object(more)) => add_fields(sum, more),
            (Some(known), Value::Null) if !known.is_null() => {}
            (Some(known), value) => match known.as_u64().zip(value.as_u64()) {
                Some((one, other)) => *known = one.saturating_add(other).into(),
                None => known.clone_from(value),
            },
            (None, value) => drop(sum.insert(name.clone(), value.clone())),
        }
    }
}

fn size(details: &Map<String, Value>) -> usize {
    serde_json::to_string(details).map_or(usize::MAX, |text| text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: &Value) -> ReportedUsage {
        let mut usage = ReportedUsage::default();
        usage.update(value.as_object().unwrap().clone());
        usage
    }

    #[test]
    fn what_a_provider_sends_is_kept_as_it_was_sent() {
        let sent = json!({
            "input_tokens": 3, "cache_creation_input_tokens": 4, "cache_read_input_tokens": 5,
            "output_tokens": 1, "service_tier": "priority", "inference_geo": null,
            "cache_creation": {"ephemeral_5m_input_tokens": 1, "ephemeral_1h_input_tokens": 3},
        });
        let mut usage = read(&sent);
        assert_eq!(serde_json::to_value(&usage).unwrap(), sent);
        assert_eq!(serde_json::from_value::<ReportedUsage>(sent.clone()).unwrap(), usage);
        let later = json!({
            "input_tokens": null, "output_tokens": 9, "service_tier": null,
            "server_tool_use": {"web_search_requests": 2}, "iterations": [{"type": "message"}],
        });
        usage.update(later.as_object().unwrap().clone());
        let mut whole = sent;
        whole["output_tokens"] = json!(9);
        whole["server_tool_use"] = json!({"web_search_requests": 2});
        whole["iterations"] = json!([{"type": "message"}]);
        assert_eq!(serde_json::to_value(&usage).unwrap(), whole);
        assert_eq!((usage.web_searches(), usage.hour_writes()), (2, 3));
    }

    #[test]
    fn sums_add_numbers_and_keep_the_last_of_the_rest() {
        let first = json!({
            "input_tokens": 1, "server_tool_use": {"web_search_requests": 1, "web_fetch_requests": 4},
            "service_tier": "standard", "iterations": [1],
        });
        let second = json!({
            "input_tokens": 2, "server_tool_use": {"web_search_requests": 2},
            "service_tier": "batch", "speed": null, "iterations": [2],
        });
        let mut sum = read(&first);
        sum += &read(&second);
        let sum = serde_json::to_value(&sum).unwrap();
        assert_eq!(sum["input_tokens"], 3);
        assert_eq!(
            sum["server_tool_use"],
            json!({"web_search_requests": 3, "web_fetch_requests": 4})
        );
        assert_eq!((&sum["service_tier"], &sum["iterations"]), (&json!("batch"), &json!([2])));
    }

    #[test]
    fn details_have_a_bound_and_hours_no_more_than_all_writes() {
        let usage = read(&json!({"output_tokens": 2, "note": "x".repeat(MOST_DETAILS)}));
        assert_eq!(usage, ReportedUsage::from(Usage { output_tokens: 2, ..Usage::default() }));
        let usage = read(
            &json!({"cache_creation_input_tokens": 5, "cache_creation": {"ephemeral_1h_input_tokens": 9}}),
        );
        assert_eq!(usage.hour_writes(), 5);
        assert_eq!(read(&json!({"server_tool_use": 7})).web_searches(), 0);
    }
}
