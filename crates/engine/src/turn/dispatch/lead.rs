//! The lead of a team in a person's place: where no person and no host can be asked, a member asks its lead. The lead
//! grants only what its own rules would let it do without a question (S-358).

use centurion_permissions::Verdict;
use centurion_protocol::sdk::WaitsFor;
use centurion_team::Frame;
use centurion_tools::ToolContext;
use serde_json::Value;

use super::{Dispatch, Ready};
use crate::agent::shared::Shared;
use crate::agent::task::Posted;
use crate::agent::team::{LeadsAnswer, Team};
use crate::message::mail::{Mail, TeamMail};
use crate::policy::broker::Reply;

fn denied(reason: String) -> Reply {
    Reply::Denied { reason, interrupt: false }
}

impl Dispatch {
    /// Puts a member's call to the lead; `None` where a person can be asked, and for other agents.
    pub(super) async fn asked_lead(
        &self,
        ready: &Ready<'_>,
        reason: &str,
        context: &ToolContext,
    ) -> Option<Reply> {
        let shared = self.agent.shared.upgrade()?;
        let team = shared.delegation.team.as_ref()?;
        self.agent.identity.team.as_ref()?;
        if self.broker.has_answerer() {
            return None;
        }
        if !self.lead_may(&shared, ready) {
            return Some(denied(format!(
                "{reason}, no person is there to ask, and the team lead may not do it without a question either. Do \
                 without it, or report that it is needed"
            )));
        }
        let asking = self.ask_lead(&shared, team, ready, context);
        Some(self.agent.wait(WaitsFor::Agent, asking).await)
    }

    /// Whether the lead's own rules let it do the same without a question.
    fn lead_may(&self, shared: &Shared, ready: &Ready<'_>) -> bool {
        let (named, agent) = (self.named(&ready.call), self.agent(&ready.call));
        let call = ready.as_call(named.as_deref(), &agent);
        let place = shared.permissions.place();
        shared.permissions.decide(&call, place).verdict == Verdict::Allow
    }

    async fn ask_lead(
        &self,
        shared: &Shared,
        team: &Team,
        ready: &Ready<'_>,
        context: &ToolContext,
    ) -> Reply {
        let id = format!("perm-{}-{}", shared.world.now().as_millisecond(), ready.call.id);
        let from = self.agent.identity.task_name();
        let frame = Frame::PermissionRequest {
            request_id: id.clone(),
            from: from.clone(),
            tool_name: ready.call.name.clone(),
            input: serde_json::from_str(ready.call.input.get()).unwrap_or(Value::Null),
        };
        let mail = Mail {
            id: shared.world.record_id(),
            from,
            text: frame.to_text(),
            team: Some(TeamMail {
                color: self.agent.identity.color.map(|color| color.as_str().to_owned()),
                summary: Some(format!("asks whether {} may run", ready.call.name)),
                frame: Some(frame),
            }),
        };
        let answer = team.ask_lead(id, mail.id);
        match shared.post_to_main(&mail) {
            Ok(Posted::Queued) => {}
            Ok(_) => return denied("too much waits unread for the team lead".to_owned()),
            Err(error) => return denied(format!("the team lead cannot be asked: {error}")),
        }
        tokio::select! {
            biased;
            () = context.cancel.cancelled() => Reply::Cancelled,
            answer = answer => match answer {
                Ok(LeadsAnswer { approve: true, .. }) => {
                    Reply::Allowed { input: None, remember: Vec::new() }
                }
                Ok(LeadsAnswer { reason, .. }) => denied(format!("the team lead says no: {reason}")),
                Err(_) => denied("the team lead did not answer".to_owned()),
            },
        }
    }
}
