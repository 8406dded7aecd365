//! Commands that ask a model: a question beside the conversation, a goal.

use std::sync::Arc;

use centurion_journal::JournalError;
use centurion_protocol::Block;
use tokio_util::sync::CancellationToken;

use super::CommandEnd;
use crate::agent::shared::Shared;
use crate::message::manner::Manner;
use crate::message::queue::{Item, Origin, Priority};
use crate::session::{Session, side_question};
use crate::turn::driver::Run;

/// Asks a side question, which never enters the conversation.
pub(super) async fn ask_aside(
    shared: &Arc<Shared>,
    question: &str,
    cancel: &CancellationToken,
) -> CommandEnd {
    let answer = tokio::select! {
        biased;
        () = cancel.cancelled() => return CommandEnd::Failed("it was interrupted".to_owned()),
        answer = side_question::ask(shared, question) => answer,
    };
    match answer {
        Ok(answer) => CommandEnd::Said(answer),
        Err(error) => CommandEnd::Failed(error.to_string()),
    }
}

/// The question behind `/recap`.
const RECAP: &str = "The user comes back to this session. Say in at most five sentences where it stands: what is wanted, \
    what is done, what is open or in the way, and what comes next.";

/// Says where the session stands, beside the conversation.
pub(super) async fn recap(shared: &Arc<Shared>, cancel: &CancellationToken) -> CommandEnd {
    ask_aside(shared, RECAP, cancel).await
}

impl Session {
    /// Sets a goal and begins to work on it; shows or clears the one that there is.
    pub(super) async fn set_goal(
        &mut self,
        run: &mut Run,
        condition: &str,
        cancel: &CancellationToken,
    ) -> Result<CommandEnd, JournalError> {
        match condition {
            "" => {
                let shown = self
                    .driver
                    .stop_rules
                    .goal
                    .as_ref()
                    .map(|goal| format!("The goal: {}", goal.condition));
                return Ok(CommandEnd::Said(
                    shown.unwrap_or_else(|| "There is no goal.".to_owned()),
                ));
            }
            "clear" | "stop" | "off" => {
                self.driver.set_goal(None);
                return Ok(CommandEnd::Said("There is no goal any more.".to_owned()));
            }
            condition => self.driver.set_goal(Some(condition.to_owned())),
        }
        let text = format!("Work until this holds, and show that it does: {condition}");
        let item = Item {
            id: self.shared.world.record_id(),
            priority: Priority::Next,
            addressee: None,
            content: vec![Block::Text(text)],
            origin: Origin::Person,
            manner: Manner::default(),
        };
        self.driver.run(run, &[item], cancel).await?;
        Ok(CommandEnd::Ran)
    }
}
