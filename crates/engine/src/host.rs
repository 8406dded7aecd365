//! What tools may ask of the agent that runs them: questions to a person, planning, news of shells.

use std::sync::{Arc, Weak};

use centurion_permissions::Mode;
use centurion_protocol::ToolUseId;
use centurion_tools::{Answer, Host, HostFuture, PlanVerdict, Question, ShellChange, ShellEnd};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::to_raw_value;
use tokio_util::sync::CancellationToken;

use crate::broker::{Ask, Reply};
use crate::notification;
use crate::permissions::Permissions;
use crate::session::Shared;

/// The host of one agent's tools.
pub(crate) struct AgentHost {
    /// Weak, because the session owns the shells that own this.
    shared: Weak<Shared>,
    permissions: Arc<Permissions>,
}

impl AgentHost {
    pub(crate) fn new(shared: Weak<Shared>, permissions: Arc<Permissions>) -> Self {
        Self { shared, permissions }
    }

    fn show_mode(&self) {
        if let Some(shared) = self.shared.upgrade() {
            shared.show_mode(self.permissions.mode());
        }
    }

    async fn put(&self, tool: &str, call: &ToolUseId, input: serde_json::Value) -> Reply {
        let denied = |reason: &str| Reply::Denied { reason: reason.to_owned(), interrupt: false };
        let Some(shared) = self.shared.upgrade() else { return denied("the session has ended") };
        let Ok(input) = to_raw_value(&input) else { return denied("the question cannot be sent") };
        let reason = format!("{tool} needs an answer from the user");
        let ask = Ask {
            tool: tool.to_owned(),
            call: call.clone(),
            input,
            reason,
            suggestions: Vec::new(),
        };
        // The dispatch drops this future when the call is cancelled, which withdraws the question.
        shared.broker.ask(ask, &CancellationToken::new()).await
    }
}

impl Host for AgentHost {
    fn ask<'a>(
        &'a self,
        call: &'a ToolUseId,
        questions: Vec<Question>,
    ) -> HostFuture<'a, Result<Vec<Answer>, String>> {
        #[derive(Deserialize)]
        struct Answered {
            #[serde(default)]
            answers: indexmap::IndexMap<String, String>,
        }
        Box::pin(async move {
            match self.put("AskUserQuestion", call, json!({"questions": questions})).await {
                Reply::Allowed { input, .. } => {
                    let answered = input.and_then(|raw| serde_json::from_str(raw.get()).ok());
                    let Answered { answers } = answered.ok_or("the answer came without answers")?;
                    let answer = |(question, answer)| Answer { question, answer };
                    Ok(answers.into_iter().map(answer).collect())
                }
                Reply::Denied { reason, .. } => Err(reason),
                Reply::Cancelled => Err("the question was withdrawn".to_owned()),
            }
        })
    }

    fn enter_plan_mode<'a>(&'a self, _: &'a ToolUseId) -> HostFuture<'a, Result<(), String>> {
        Box::pin(async move {
            self.permissions.enter_plan()?;
            self.show_mode();
            Ok(())
        })
    }

    fn propose_plan<'a>(
        &'a self,
        call: &'a ToolUseId,
        plan: String,
    ) -> HostFuture<'a, PlanVerdict> {
        Box::pin(async move {
            if self.permissions.mode() != Mode::Plan {
                return PlanVerdict::Rejected("plan mode is not on".to_owned());
            }
            match self.put("ExitPlanMode", call, json!({"plan": plan})).await {
                Reply::Allowed { .. } => {
                    self.permissions.leave_plan();
                    self.show_mode();
                    PlanVerdict::Approved
                }
                Reply::Denied { reason, .. } => PlanVerdict::Rejected(reason),
                Reply::Cancelled => PlanVerdict::Rejected("the question was withdrawn".to_owned()),
            }
        })
    }

    fn shell_changed(&self, change: ShellChange) {
        if let Some(shared) = self.shared.upgrade() {
            notification::show_shell(&shared, &change);
        }
    }

    fn owe_shell_end(&self, end: ShellEnd) {
        if let Some(shared) = self.shared.upgrade() {
            notification::owe_shell_end(&shared, &end);
        }
    }
}
