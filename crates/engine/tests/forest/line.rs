//! One answer of a model that plays a plan, and how it comes.

use std::time::Duration;

use centurion_model::{BlockStart, Delta, ErrorKind, EventStream, ModelError, StreamEvent};
use centurion_protocol::{ReportedUsage, StopReason, ToolUseId, Usage};
use futures_util::{StreamExt, stream};
use serde_json::Value;

/// One answer.
pub(crate) enum Line {
    Calls(Duration, Vec<(String, &'static str, Value)>),
    Text(Duration, String, StopReason),
    Error,
    Silence,
}

impl Line {
    /// The answer as it comes, and what it consumes.
    pub(crate) fn events(
        self,
        number: usize,
        model: &str,
        (input_tokens, output_tokens): (u64, u64),
    ) -> EventStream {
        let begun = Usage { input_tokens, ..Usage::default() };
        let usage = ReportedUsage::from(Usage { output_tokens, ..begun });
        let start = StreamEvent::Start {
            id: format!("msg_{number}"),
            model: model.to_owned(),
            usage: begun.into(),
            request_id: None,
        };
        let finish = |stop_reason| StreamEvent::Finish { stop_reason, usage };
        let (latency, events) = match self {
            Self::Error => {
                let error = ModelError::new(ErrorKind::Server, "it broke").with_status(500);
                return stream::iter([Err(error)]).boxed();
            }
            Self::Silence => {
                return stream::iter([Ok(start)]).chain(stream::pending()).boxed();
            }
            Self::Text(latency, text, stop_reason) => {
                let half = text.len() / 2;
                let mut events = vec![start];
                if !text.is_empty() {
                    let delta = |text: &str| StreamEvent::Delta {
                        index: 0,
                        delta: Delta::Text(text.to_owned()),
                    };
                    events.push(StreamEvent::BlockStart { index: 0, block: BlockStart::Text });
                    events.extend([delta(&text[..half]), delta(&text[half..])]);
                    events.push(StreamEvent::BlockStop { index: 0 });
                }
                events.push(finish(stop_reason));
                (latency, events)
            }
            Self::Calls(latency, calls) => {
                let blocks =
                    calls.into_iter().enumerate().flat_map(|(index, (id, name, input))| {
                        let (id, name) = (ToolUseId::new(id), name.to_owned());
                        let delta = Delta::InputJson(input.to_string());
                        [
                            StreamEvent::BlockStart {
                                index,
                                block: BlockStart::ToolUse { id, name },
                            },
                            StreamEvent::Delta { index, delta },
                            StreamEvent::BlockStop { index },
                        ]
                    });
                let events = [start].into_iter().chain(blocks).chain([finish(StopReason::ToolUse)]);
                (latency, events.collect())
            }
        };
        // The answer streams in: an agent that is stopped is stopped in the middle of it.
        let pause = latency / u32::try_from(events.len()).unwrap();
        let spoken = stream::iter(events).then(move |event| async move {
            tokio::time::sleep(pause).await;
            Ok(event)
        });
        spoken.boxed()
    }
}
