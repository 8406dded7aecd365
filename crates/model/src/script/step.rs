//! One step of a script: an answer, its speed, and its faults.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use centurion_protocol::{ReportedUsage, StopReason, SystemWorld, Usage};
use reqwest::StatusCode;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Unexpected, Visitor};
use serde_json::{Map, Value, json};

use super::keys::{read_fields, read_object, unknown_key};
use super::template::{Template, TemplateError};
use crate::{ModelError, failure};

/// The signature of thinking for which a scenario gives none.
const SIGNATURE: &str = "c2NyaXB0";
const STALL: Duration = Duration::from_mins(1);

#[derive(Debug)]
pub(super) struct Step {
    /// The blocks in the Messages API's form; a call may lack its id.
    pub(super) blocks: Vec<Template>,
    pub(super) latency: Duration,
    pub(super) chunk_delay: Duration,
    /// The characters of one delta; zero puts all into one.
    pub(super) chunk_chars: usize,
    pub(super) stop_reason: Option<StopReason>,
    pub(super) usage: GivenUsage,
    pub(super) error: Option<ScriptedFailure>,
    pub(super) faults: Vec<Fault>,
    /// The number of times that the faults occur in one conversation; always if not given.
    pub(super) times: Option<u64>,
}

/// A fault after `after` events.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) after: usize,
    pub(super) kind: FaultKind,
}

#[derive(Debug)]
pub(super) enum FaultKind {
    Reset,
    Malformed,
    Overloaded,
    Stall(Duration),
}

/// A refusal instead of an answer, as a server's response.
#[derive(Debug)]
pub(super) struct ScriptedFailure {
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
    pub(super) times: Option<u64>,
}

/// The reason that a step of a scenario cannot be used.
#[derive(Debug, thiserror::Error)]
enum StepError {
    #[error("a step has either `blocks` or the keys of one block")]
    BlocksTwice,
    #[error("a step needs `blocks`, one block or a fault")]
    Empty,
    #[error("a block needs one of `text`, `thinking`, `tool` or `type`")]
    NoKind,
    #[error("{}", unknown_key_of(.block, .key, .known))]
    UnknownKey { key: String, block: &'static str, known: &'static [&'static str] },
    #[error("the `type` of a block is a text")]
    KindIsNoText,
    #[error("a `{kind}` block needs `{needed}`: a text")]
    Lacks { kind: String, needed: &'static str },
    #[error("the `input` of a call is an object")]
    InputIsNoObject,
    #[error("the `id` of a call is a text")]
    IdIsNoText,
    #[error("`{name}: {text}` is no header")]
    NoHeader { name: String, text: String },
    #[error(transparent)]
    Template(#[from] TemplateError),
}

fn unknown_key_of(block: &str, key: &str, known: &[&str]) -> String {
    unknown_key(key, &format!("a `{block}` block"), known)
}

/// Token counts that replace the estimate.
#[derive(Debug, Default)]
pub(super) struct GivenUsage {
    input: Option<u64>,
    cache_creation: Option<u64>,
    cache_read: Option<u64>,
    output: Option<u64>,
    /// Usage of the provider beside the counts, as it is sent.
    details: Map<String, Value>,
}

impl Step {
    pub(super) fn text(text: &str) -> Result<Self, TemplateError> {
        let block = Template::compile(json!({"type": "text", "text": text}))?;
        Ok(Self::of_blocks(vec![block]))
    }

    fn of_blocks(blocks: Vec<Template>) -> Self {
        Self {
            blocks,
            latency: Duration::ZERO,
            chunk_delay: Duration::ZERO,
            chunk_chars: 0,
            stop_reason: None,
            usage: GivenUsage::default(),
            error: None,
            faults: Vec::new(),
            times: None,
        }
    }
}

impl GivenUsage {
    pub(super) fn or(&self, estimate: Usage) -> ReportedUsage {
        let mut usage = ReportedUsage::from(Usage {
            input_tokens: self.input.unwrap_or(estimate.input_tokens),
            cache_creation_input_tokens: self
                .cache_creation
                .unwrap_or(estimate.cache_creation_input_tokens),
            cache_read_input_tokens: self.cache_read.unwrap_or(estimate.cache_read_input_tokens),
            output_tokens: self.output.unwrap_or(estimate.output_tokens),
        });
        usage.update(self.details.clone());
        usage
    }
}

impl ScriptedFailure {
    /// The error that a real provider gives for this response.
    pub(super) fn to_error(&self) -> ModelError {
        failure::from_response(self.status, &self.headers, &self.body, &SystemWorld)
    }
}

impl<'de> Deserialize<'de> for Step {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnyForm;
        impl<'de> Visitor<'de> for AnyForm {
            type Value = Step;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a step: a text, a list of blocks or an object")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Step, E> {
                Step::text(text).map_err(E::custom)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Step, A::Error> {
                let mut blocks = Vec::new();
                while let Some(BlockForm(block)) = items.next_element()? {
                    blocks.push(block);
                }
                Ok(Step::of_blocks(blocks))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Step, A::Error> {
                read_step(map)
            }
        }
        deserializer.deserialize_any(AnyForm)
    }
}

fn read_step<'de, A: MapAccess<'de>>(mut map: A) -> Result<Step, A::Error> {
    read_fields!(map, "a step", {
        "blocks" => blocks, "latency_ms" => latency, "chunk_delay_ms" => chunk_delay,
        "chunk_chars" => chunk_chars, "stop_reason" => stop_reason, "usage" => usage,
        "error" => error, "reset_after_events" => reset, "malformed_after_events" => malformed,
        "stall_after_events" => stall, "stall_ms" => stall_time,
        "stream_error_after_events" => stream_error, "times" => times,
        "text" => text, "thinking" => thinking, "signature" => signature, "tool" => tool,
        "input" => input, "id" => id, "type" => kind, "name" => name, "data" => data
    });
    let (latency, chunk_delay): (Option<Millis>, Option<Millis>) = (latency, chunk_delay);
    let stall_time: Option<Millis> = stall_time;
    let inline: Map<String, Value> = [
        ("text", text),
        ("thinking", thinking),
        ("signature", signature),
        ("tool", tool),
        ("input", input),
        ("id", id),
        ("type", kind),
        ("name", name),
        ("data", data),
    ]
    .into_iter()
    .filter_map(|(key, value)| Some((key.to_owned(), value?)))
    .collect();
    // A stall comes first, so that a stream can fall silent and then break.
    let faults: Vec<Fault> = [
        (stall, FaultKind::Stall(stall_time.map_or(STALL, |time| time.0))),
        (reset, FaultKind::Reset),
        (malformed, FaultKind::Malformed),
        (stream_error, FaultKind::Overloaded),
    ]
    .into_iter()
    .filter_map(|(after, kind)| Some(Fault { after: after?, kind }))
    .collect();
    let fails = error.is_some() || !faults.is_empty();
    let blocks = step_blocks(blocks, inline, fails).map_err(A::Error::custom)?;
    Ok(Step {
        blocks,
        latency: latency.unwrap_or_default().0,
        chunk_delay: chunk_delay.unwrap_or_default().0,
        chunk_chars: chunk_chars.unwrap_or_default(),
        stop_reason,
        usage: usage.unwrap_or_default(),
        error,
        faults,
        times,
    })
}

/// The blocks of a step, from its list or from the keys of one block in the step itself.
fn step_blocks(
    blocks: Option<Vec<BlockForm>>,
    inline: Map<String, Value>,
    fails: bool,
) -> Result<Vec<Template>, StepError> {
    match blocks {
        Some(_) if !inline.is_empty() => Err(StepError::BlocksTwice),
        Some(blocks) => Ok(blocks.into_iter().map(|block| block.0).collect()),
        None if !inline.is_empty() => Ok(vec![block_of(inline)?]),
        // The answer once the failures are over.
        None if fails => Ok(vec![Template::Fixed(json!({"type": "text", "text": "recovered"}))]),
        None => Err(StepError::Empty),
    }
}

/// A block as a scenario writes it, converted to the Messages API's form.
struct BlockForm(Template);

impl<'de> Deserialize<'de> for BlockForm {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnyForm;
        impl<'de> Visitor<'de> for AnyForm {
            type Value = BlockForm;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(
                    "a block: a text, or an object with `text`, `thinking`, `tool` or `type`",
                )
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<BlockForm, E> {
                let block = json!({"type": "text", "text": text});
                Template::compile(block).map(BlockForm).map_err(E::custom)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<BlockForm, A::Error> {
                let mut fields = Map::new();
                while let Some((key, value)) = map.next_entry::<String, Value>()? {
                    fields.insert(key, value);
                }
                block_of(fields).map(BlockForm).map_err(A::Error::custom)
            }
        }
        deserializer.deserialize_any(AnyForm)
    }
}

/// Expands a shorthand and checks that the block is complete.
fn block_of(mut fields: Map<String, Value>) -> Result<Template, StepError> {
    const SHORTHANDS: [(&str, &[&str]); 3] = [
        ("tool", &["tool", "input", "id"]),
        ("thinking", &["thinking", "signature"]),
        ("text", &["text"]),
    ];
    if !fields.contains_key("type") {
        let (shorthand, known) = SHORTHANDS
            .into_iter()
            .find(|(key, _)| fields.contains_key(*key))
            .ok_or(StepError::NoKind)?;
        if let Some(key) = fields.keys().find(|key| !known.contains(&key.as_str())) {
            return Err(StepError::UnknownKey { key: key.clone(), block: shorthand, known });
        }
        let mut take = |key: &str| fields.remove(key).filter(|value| !value.is_null());
        fields = match shorthand {
            "tool" => {
                let (name, id) = (take("tool"), take("id"));
                let input = take("input").unwrap_or_else(|| json!({}));
                let mut block = json!({"type": "tool_use", "name": name, "input": input});
                if let Some(id) = id {
                    block["id"] = id;
                }
                block
            }
            "thinking" => {
                let signature = take("signature").unwrap_or_else(|| json!(SIGNATURE));
                json!({"type": "thinking", "thinking": take("thinking"), "signature": signature})
            }
            _ => json!({"type": "text", "text": take("text")}),
        }
        .as_object()
        .cloned()
        .unwrap_or_default();
    }
    check_block(&fields)?;
    Ok(Template::compile(Value::Object(fields))?)
}

fn check_block(fields: &Map<String, Value>) -> Result<(), StepError> {
    let kind = fields.get("type").and_then(Value::as_str).ok_or(StepError::KindIsNoText)?;
    let needed = match kind {
        "text" => "text",
        "thinking" => "thinking",
        "redacted_thinking" => "data",
        "tool_use" => "name",
        _ => return Ok(()),
    };
    if !fields.get(needed).is_some_and(Value::is_string) {
        return Err(StepError::Lacks { kind: kind.to_owned(), needed });
    }
    if kind == "tool_use" {
        if !fields.get("input").is_some_and(Value::is_object) {
            return Err(StepError::InputIsNoObject);
        }
        if fields.get("id").is_some_and(|id| !id.is_string()) {
            return Err(StepError::IdIsNoText);
        }
    }
    Ok(())
}

read_object!(ScriptedFailure, "an error: an object with `status`", |map| {
    read_fields!(map, "`error`", {
        "status" => status, "type" => kind, "message" => message, "headers" => headers,
        "retry_after" => retry_after, "times" => times
    });
    let status = StatusCode::from_u16(status.unwrap_or(500))
        .ok()
        .filter(|status| status.as_u16() >= 400)
        .ok_or_else(|| A::Error::custom("the `status` of an error is 400 or more"))?;
    let mut headers = header_map(headers.unwrap_or_default()).map_err(A::Error::custom)?;
    if let Some(Seconds(wait)) = retry_after {
        let millis = HeaderValue::from_str(&wait.as_millis().to_string());
        headers.extend(millis.ok().map(|value| (RETRY_AFTER_MS, value)));
    }
    let kind: Option<String> = kind;
    let message: Option<String> = message;
    let error = json!({
        "type": kind.as_deref().unwrap_or("api_error"),
        "message": message.as_deref().unwrap_or("the scenario refuses this request"),
    });
    let body = json!({"type": "error", "error": error}).to_string().into_bytes();
    Ok(ScriptedFailure { status, headers, body, times })
});

const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");

fn header_map(headers: BTreeMap<String, Value>) -> Result<HeaderMap, StepError> {
    headers
        .into_iter()
        .map(|(name, value)| {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let parsed =
                HeaderName::from_bytes(name.as_bytes()).ok().zip(HeaderValue::from_str(&text).ok());
            parsed.ok_or(StepError::NoHeader { name, text })
        })
        .collect()
}

read_object!(GivenUsage, "token counts: an object", |map| {
    read_fields!(map, "`usage`", {
        "input_tokens" => input, "cache_creation_input_tokens" => cache_creation,
        "cache_read_input_tokens" => cache_read, "output_tokens" => output,
        "cache_creation" => creation_parts, "server_tool_use" => server_tools,
        "output_tokens_details" => output_parts, "iterations" => iterations,
        "service_tier" => tier, "inference_geo" => geo, "speed" => speed
    });
    let details: [(&str, Option<Value>); 7] = [
        ("cache_creation", creation_parts),
        ("server_tool_use", server_tools),
        ("output_tokens_details", output_parts),
        ("iterations", iterations),
        ("service_tier", tier),
        ("inference_geo", geo),
        ("speed", speed),
    ];
    let details = details.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let details = details.collect();
    Ok(GivenUsage { input, cache_creation, cache_read, output, details })
});

/// A time in milliseconds.
#[derive(Default)]
struct Millis(Duration);

impl<'de> Deserialize<'de> for Millis {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        duration(f64::deserialize(deserializer)?, 0.001, "milliseconds").map(Self)
    }
}

struct Seconds(Duration);

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        duration(f64::deserialize(deserializer)?, 1.0, "seconds").map(Self)
    }
}

fn duration<E: Error>(number: f64, unit: f64, name: &str) -> Result<Duration, E> {
    Duration::try_from_secs_f64(number * unit).map_err(|_| {
        E::invalid_value(Unexpected::Float(number), &format!("a number of {name}").as_str())
    })
}
