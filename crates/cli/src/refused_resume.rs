//! A resume that `--resume-drops-turn` refuses: hosts wait for a result that says so.

use centurion_engine::{OpenError, View};
use centurion_protocol::sdk::{Event, EventBody, ResultTimes, RunResult};
use centurion_protocol::{Outcome, ReportedUsage, SessionId, SystemWorld, World};

/// Tells a front of the refusal, if that is why the session did not begin.
pub(crate) fn tell(front: &dyn View, error: &anyhow::Error, session: Option<SessionId>) {
    let Some(refused) = error.downcast_ref::<OpenError>() else { return };
    if !matches!(refused, OpenError::DropsMore(_)) {
        return;
    }
    let why = refused.to_string();
    let (model_usage, permission_denials) = Default::default();
    let result = RunResult {
        subtype: "error_during_execution",
        is_error: true,
        outcome: Outcome::CommandFailed,
        result: why.clone(),
        num_turns: 0,
        duration_ms: 0,
        duration_api_ms: 0,
        stop_reason: None,
        total_cost_usd: 0.0,
        usage: ReportedUsage::default().completed(),
        model_usage,
        permission_denials,
        structured_output: None,
        deferred_tool_use: None,
        terminal_reason: "turn_setup_failed",
        subagent_stats: None,
        api_error_status: None,
        errors: Some(vec![why]),
        times: ResultTimes::default(),
        result_index: 0,
        user_message_uuid: None,
        user_message_uuids: Vec::new(),
        queued_turn_count: 0,
        unfinished_agents: Vec::new(),
        origin: None,
    };
    front.show(&Event {
        body: EventBody::Result(Box::new(result)),
        session_id: session.unwrap_or_else(|| SystemWorld.session_id()),
        uuid: SystemWorld.record_id(),
    });
}
