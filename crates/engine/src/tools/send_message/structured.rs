//! Structured messages of a team. Each belongs to one side: the lead asks members to end and answers plans and questions,
//! members answer requests to end. An answer names an open request, and every request has one answer.

use std::sync::Arc;

use centurion_permissions::Mode;
use centurion_protocol::ToolUseId;
use centurion_team::{Frame, LEAD};
use centurion_tools::{ToolError, ToolOutput};
use serde::Deserialize;
use serde_json::{Value, json};

use super::deliver::{Delivery, Letter, Recipient};
use super::{address, receipt, unreachable};
use crate::agent::Agent;
use crate::agent::shared::Shared;
use crate::agent::task::Task;
use crate::agent::team::{LeadsAnswer, Team};

/// A structured message, as an agent sends it.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
enum StructuredMessage {
    ShutdownRequest { reason: Option<String> },
    ShutdownResponse { request_id: String, approve: bool, reason: Option<String> },
    PlanApprovalResponse { request_id: String, approve: bool, feedback: Option<String> },
    PermissionResponse { request_id: String, approve: bool, reason: Option<String> },
}

/// One structured message on its way.
struct Sending<'a> {
    shared: &'a Arc<Shared>,
    caller: &'a Agent,
    team: &'a Team,
    call: &'a ToolUseId,
}

fn input(reason: impl Into<String>) -> ToolError {
    ToolError::Input(reason.into())
}

/// Sends a structured message.
pub(crate) fn send(
    shared: &Arc<Shared>,
    caller: &Agent,
    to: &str,
    message: &Value,
    call: &ToolUseId,
) -> Result<ToolOutput, ToolError> {
    let Some(team) = &shared.delegation.team else {
        return Err(input(
            "structured messages are for members of a team, and there is none: send text",
        ));
    };
    if to == "*" {
        return Err(input("structured messages go to one agent: name it"));
    }
    let structured = StructuredMessage::deserialize(message)
        .map_err(|error| input(format!("this is no structured message of a team: {error}")))?;
    let sending = Sending { shared, caller, team, call };
    match structured {
        StructuredMessage::ShutdownRequest { reason } => sending.ask_to_end(to, reason),
        StructuredMessage::ShutdownResponse { request_id, approve, reason } => {
            sending.answer_shutdown(to, &request_id, approve, reason)
        }
        StructuredMessage::PlanApprovalResponse { request_id, approve, feedback } => {
            sending.answer_plan(to, &request_id, approve, feedback)
        }
        StructuredMessage::PermissionResponse { request_id, approve, reason } => {
            sending.answer_question(&request_id, approve, reason)
        }
    }
}

impl Sending<'_> {
    /// Only the lead may do this.
    fn lead_only(&self, what: &str) -> Result<(), ToolError> {
        if self.caller.identity.is_main() {
            return Ok(());
        }
        Err(input(format!("only the team lead can {what}: ask `{LEAD}` to do it")))
    }

    /// The member that `to` means; `Err` holds the answer where there is none.
    fn member(&self, to: &str) -> Result<Result<Arc<Task>, ToolOutput>, ToolError> {
        match address(self.shared, self.caller, to)? {
            Some(Recipient::Agent(task)) if task.spec.team.is_some() => Ok(Ok(task)),
            Some(_) => Err(input(format!("{to} is no member of the team"))),
            None => Ok(Err(unreachable(self.shared, to))),
        }
    }

    fn deliver(&self, task: &Arc<Task>, frame: Frame, words: &str) -> Result<Delivery, ToolError> {
        let text = match words {
            "" => frame.to_text(),
            words => format!("{words}\n{}", frame.to_text()),
        };
        let letter = Letter { text: &text, summary: words, frame: Some(frame) };
        Recipient::Agent(Arc::clone(task)).deliver(self.shared, self.caller, &letter, self.call)
    }

    fn ask_to_end(&self, to: &str, reason: Option<String>) -> Result<ToolOutput, ToolError> {
        self.lead_only("ask a member to end")?;
        let task = match self.member(to)? {
            Ok(task) => task,
            Err(answer) => return Ok(answer),
        };
        if task.end().is_some_and(|end| end.leaves_team()) {
            return Err(input(format!("{to} has ended already")));
        }
        let id = format!("shutdown-{}@{to}", self.team.number(self.shared.world.now()));
        self.team.ask_to_end(&task, &id).map_err(|error| input(error.to_string()))?;
        let frame =
            Frame::ShutdownRequest { request_id: id.clone(), from: LEAD.to_owned(), reason };
        let delivered = self.deliver(&task, frame, "");
        if !delivered.as_ref().is_ok_and(Delivery::is_accepted) {
            // Nothing was asked, so there is no answer to wait for.
            let _ = self.team.close_shutdown(&task, &id);
        }
        if !delivered?.is_accepted() {
            return Err(ToolError::failed(format!(
                "{to} cannot be asked: too much waits unread for it"
            )));
        }
        Ok(receipt(json!({
            "success": true,
            "message": format!("Shutdown request sent to {to}. Request ID: {id}"),
            "request_id": id,
            "target": to,
        })))
    }

    fn answer_shutdown(
        &self,
        to: &str,
        id: &str,
        approve: bool,
        reason: Option<String>,
    ) -> Result<ToolOutput, ToolError> {
        let Some(task) = self.caller.task.as_ref().filter(|_| self.caller.identity.team.is_some())
        else {
            return Err(input("only a member of the team that was asked to end can answer that"));
        };
        if !matches!(address(self.shared, self.caller, to)?, Some(Recipient::Main)) {
            return Err(input(format!("the answer goes to `{LEAD}`")));
        }
        if !approve && reason.as_ref().is_none_or(|reason| reason.trim().is_empty()) {
            return Err(input("say in `reason` why you continue"));
        }
        self.team.close_shutdown(task, id).map_err(|error| input(error.to_string()))?;
        if approve {
            task.leave();
            return Ok(receipt(
                json!({"success": true, "message": "You end now.", "request_id": id}),
            ));
        }
        let reason = reason.unwrap_or_default();
        let frame = Frame::ShutdownRejected {
            request_id: id.to_owned(),
            from: self.caller.identity.task_name(),
            reason: reason.clone(),
        };
        let letter = Letter {
            text: &frame.to_text(),
            summary: "continues working",
            frame: Some(frame.clone()),
        };
        let delivered = Recipient::Main.deliver(self.shared, self.caller, &letter, self.call);
        if !delivered.as_ref().is_ok_and(Delivery::is_accepted) {
            // The lead still waits for the answer.
            let _ = self.team.ask_to_end(task, id);
        }
        if !delivered?.is_accepted() {
            return Err(ToolError::failed(format!(
                "{LEAD} cannot be told: too much waits unread for it. Answer again later"
            )));
        }
        let message = format!("Shutdown rejected. Reason: \"{reason}\". Continuing to work.");
        Ok(receipt(json!({"success": true, "message": message, "request_id": id})))
    }

    fn answer_plan(
        &self,
        to: &str,
        id: &str,
        approve: bool,
        feedback: Option<String>,
    ) -> Result<ToolOutput, ToolError> {
        self.lead_only("approve plans")?;
        let task = match self.member(to)? {
            Ok(task) => task,
            Err(answer) => return Ok(answer),
        };
        let mode = self.caller.permissions.mode();
        if approve && mode == Mode::Plan {
            return Err(input(
                "you are planning yourself: no member of your team can begin before you do",
            ));
        }
        self.team.close_plan(&task.id, id).map_err(|error| input(error.to_string()))?;
        let limit = task.spec.team.as_ref().and_then(|team| team.limit);
        let mode = limit.filter(|limit| limit.gives_at_most(mode)).unwrap_or(mode);
        let words = if approve {
            "[Plan Approved] Carry out your plan now.".to_owned()
        } else {
            let why = feedback.as_deref().unwrap_or("No reason was given.");
            format!("[Plan Rejected] {why}")
        };
        let frame = Frame::PlanApprovalResponse {
            request_id: id.to_owned(),
            approve,
            feedback: feedback.clone(),
            permission_mode: approve.then(|| mode.to_string()),
        };
        let delivered = self.deliver(&task, frame, &words);
        if !delivered.as_ref().is_ok_and(Delivery::is_accepted) {
            self.team.propose_plan(&task.id, id);
        }
        if !delivered?.is_accepted() {
            return Err(ToolError::failed(format!(
                "{to} cannot be told: too much waits unread for it"
            )));
        }
        let message = match (approve, feedback) {
            (true, _) => format!("Plan approved for {to}."),
            (false, Some(feedback)) => {
                format!("Plan rejected for {to} with feedback: \"{feedback}\"")
            }
            (false, None) => format!("Plan rejected for {to}."),
        };
        Ok(receipt(json!({"success": true, "message": message, "request_id": id})))
    }

    fn answer_question(
        &self,
        id: &str,
        approve: bool,
        reason: Option<String>,
    ) -> Result<ToolOutput, ToolError> {
        self.lead_only("answer for the user")?;
        let reason = reason.unwrap_or_default();
        self.team
            .answer(id, LeadsAnswer { approve, reason })
            .map_err(|error| input(error.to_string()))?;
        let word = if approve { "allowed" } else { "denied" };
        Ok(receipt(
            json!({"success": true, "message": format!("The call was {word}."), "request_id": id}),
        ))
    }
}
