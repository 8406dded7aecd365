//! The state of the session for the person's own status line, told when it has changed.

use std::time::Duration;

use centurion_engine::Handle;
use serde_json::{Value, json};

use super::App;
use crate::effect::Effect;
use crate::model::{Model, Moment};

/// The shortest time between two states that are told.
const PAUSE: Duration = Duration::from_millis(300);

/// The state that was told last.
#[derive(Default)]
pub(super) struct StatusWatch {
    told: Option<(Moment, Value)>,
    /// The moment at which a change may be told.
    pub(super) due: Option<Moment>,
}

impl App {
    /// Tells of the state if it has changed since it was told.
    pub(super) fn watch_status(&mut self) {
        if !self.front.model().taste.wants_status {
            return;
        }
        let Some(handle) = self.front.session() else { return };
        let now = self.front.now();
        let state = state(&self.front.model(), &handle, self.size.columns);
        self.status.due = None;
        match &self.status.told {
            Some((_, told)) if *told == state => return,
            Some((at, _)) if now < *at + PAUSE => {
                self.status.due = Some(*at + PAUSE);
                return;
            }
            _ => {}
        }
        self.status.told = Some((now, state.clone()));
        let mut state = state;
        // The time is told, and is no reason to tell.
        let elapsed = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        state["cost"]["total_duration_ms"] = json!(elapsed);
        self.running.push(self.desk.carry_out(Effect::StatusLine(state)));
    }
}

/// The state, in the documented shape.
fn state(model: &Model, handle: &Handle, columns: u16) -> Value {
    let facts = &model.facts;
    let window = facts.window.max(1);
    let used = facts.context.saturating_mul(100) / window;
    let tasks: Vec<Value> = model
        .agents
        .iter()
        .filter(|(_, row)| row.ended.is_none())
        .map(|(id, row)| {
            json!({
                "id": id, "name": row.name, "type": row.kind, "description": row.task,
                "label": row.activity, "tokenCount": row.tokens,
                "status": if row.is_background { "background" } else { "running" },
                "startTime": u64::try_from(row.began.as_millis()).unwrap_or(u64::MAX),
                "cwd": facts.cwd,
            })
        })
        .collect();
    json!({
        "hook_event_name": "Status",
        "session_id": handle.id(),
        "transcript_path": handle.transcript(None),
        "cwd": facts.cwd,
        "version": env!("CARGO_PKG_VERSION"),
        "model": {"id": facts.model, "display_name": facts.model},
        "workspace": {"current_dir": facts.cwd, "project_dir": facts.cwd},
        "output_style": {"name": handle.output_style()},
        "permission_mode": facts.mode,
        "cost": {"total_cost_usd": facts.dollars},
        "context_window": {
            "total_input_tokens": facts.context,
            "context_window_size": facts.window,
            "used_percentage": used,
            "remaining_percentage": 100_u64.saturating_sub(used),
        },
        "exceeds_200k_tokens": facts.context > 200_000,
        "columns": columns,
        "tasks": tasks,
    })
}
