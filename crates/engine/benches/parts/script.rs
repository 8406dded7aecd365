//! Answers of a model that plays a script, as the events of a stream.

use centurion_model::{BlockStart, Delta, EventStream, StreamEvent};
use centurion_protocol::{ReportedUsage, StopReason, SystemWorld, ToolUseId, Usage, World as _};
use futures_util::{StreamExt, stream};

/// An answer that is this text.
pub(crate) fn text(text: &str) -> EventStream {
    let delta = Delta::Text(text.to_owned());
    let block = [
        StreamEvent::BlockStart { index: 0, block: BlockStart::Text },
        StreamEvent::Delta { index: 0, delta },
        StreamEvent::BlockStop { index: 0 },
    ];
    whole(block.into(), StopReason::EndTurn)
}

/// An answer that calls tools, each with its input.
pub(crate) fn answer(calls: Vec<(&'static str, String)>) -> EventStream {
    let call = |(index, (tool, input)): (usize, (&'static str, String))| {
        let id = ToolUseId::new(format!("toolu_{}", SystemWorld.record_id()));
        [
            StreamEvent::BlockStart {
                index,
                block: BlockStart::ToolUse { id, name: tool.to_owned() },
            },
            StreamEvent::Delta { index, delta: Delta::InputJson(input) },
            StreamEvent::BlockStop { index },
        ]
    };
    whole(calls.into_iter().enumerate().flat_map(call).collect(), StopReason::ToolUse)
}

fn whole(blocks: Vec<StreamEvent>, stop_reason: StopReason) -> EventStream {
    let counts = Usage { input_tokens: 1_000, output_tokens: 50, ..Usage::default() };
    let usage = ReportedUsage::from(counts);
    let id = format!("msg_{}", SystemWorld.record_id());
    let begin = StreamEvent::Start {
        id,
        model: "script".to_owned(),
        usage: usage.clone(),
        request_id: None,
    };
    let events =
        [begin].into_iter().chain(blocks).chain([StreamEvent::Finish { stop_reason, usage }]);
    stream::iter(events.map(Ok)).boxed()
}
