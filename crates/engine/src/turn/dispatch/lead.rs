//! The lead of a team in a person's place: where no person and no host can be asked, a member asks its lead. The lead
//! grants only what its own rules would let it do without a question (S-358).

use std::sync::Arc;

use centurion_protocol::sdk::WaitsFor;
use centurion_team::Frame;
use centurion_tools::ToolContext;
use serde_json::Value;

use super::{Dispatch, Question, ReadyCall};
use crate::agent::shared::Shared;
use crate::agent::task::PostResult;
use crate::agent::team::{LeadsAnswer, Team};
use crate::definition::identity::Identity;
use crate::message::mail::{Mail, TeamMail};
use crate::policy::broker::Reply;

fn denied(reason: String) -> Reply {
    Reply::Denied { reason, interrupt: false }
}

impl Dispatch {
    /// Puts a call of a member, or of an agent below one, to the lead; `None` where a person can be asked, and for other
    /// agents.
    pub(super) async fn asked_lead(
        &self,
        ready: &ReadyCall<'_>,
        question: &Question,
        context: &ToolContext,
    ) -> Option<Reply> {
        let shared = self.agent.shared.upgrade()?;
        let team = shared.delegation.team.as_ref()?;
        let member = self.member(&shared)?;
        if self.broker.has_answerer() {
            return None;
        }
        if question.is_for_person || !self.lead_may(&shared, ready) {
            return Some(denied(format!(
                "{}, no person is there to ask, and the team lead may not do it without a question either. Do \
                 without it, or report that it is needed",
                question.reason.text
            )));
        }
        let asking = self.ask_lead(&shared, team, &member, ready, context);
        Some(self.agent.wait(WaitsFor::Agent, asking).await)
    }

    /// The identity of the member that the agent is, or works for.
    fn member(&self, shared: &Shared) -> Option<Arc<Identity>> {
        let own = Some(Arc::clone(&self.agent.identity));
        let above = |it: &Arc<Identity>| {
            let parent = shared.delegation.find(it.parent.as_ref()?.as_str())?;
            Some(Arc::clone(&parent.identity))
        };
        std::iter::successors(own, above).find(|it| it.team.is_some())
    }

    /// Tells whether the lead's own rules let it do the same without a question, in the place where the agent would do it.
    fn lead_may(&self, shared: &Shared, ready: &ReadyCall<'_>) -> bool {
        let (named, meant) = (self.named(&ready.call), self.target_names(&ready.call));
        let call = ready.as_call(named.as_deref(), &meant);
        shared.permissions.allows_in(&call, self.agent.workspace.cwd())
    }

    async fn ask_lead(
        &self,
        shared: &Shared,
        team: &Team,
        member: &Identity,
        ready: &ReadyCall<'_>,
        context: &ToolContext,
    ) -> Reply {
        // Ids of calls come from models: two members may make calls with one id in one moment.
        let id = format!("perm-{}-{}", team.number(shared.world.now()), ready.call.id);
        let from = member.task_name();
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
                color: member.color.map(|color| color.as_str().to_owned()),
                summary: Some(format!("asks whether {} may run", ready.call.name)),
                frame: Some(frame),
            }),
        };
        let answer = team.ask_lead(id, mail.id);
        match shared.post_to_main(&mail) {
            Ok(PostResult::Queued) => {}
            Ok(_) => return denied("too much waits unread for the team lead".to_owned()),
            Err(error) => return denied(format!("the team lead cannot be asked: {error}")),
        }
        tokio::select! {
            biased;
            () = context.cancel.cancelled() => Reply::Cancelled,
            answer = answer => match answer {
                // The lead may have begun to plan since it was asked.
                Ok(LeadsAnswer { approve: true, .. }) if self.lead_may(shared, ready) => {
                    Reply::Allowed { input: None, remember: Vec::new() }
                }
                Ok(LeadsAnswer { approve: true, .. }) => {
                    denied("the team lead may no longer do it without a question either".to_owned())
                }
                Ok(LeadsAnswer { reason, .. }) => denied(format!("the team lead says no: {reason}")),
                Err(_) => denied("the team lead did not answer".to_owned()),
            },
        }
    }
}
