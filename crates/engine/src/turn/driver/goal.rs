//! A goal that a person set (`/goal`): the main agent does not stop before it is reached.
//!
//! The agent's own model is asked beside the conversation, with all that was said, if the goal is reached.

use centurion_protocol::sdk::{ActiveGoal, EventBody};
use tokio_util::sync::CancellationToken;

use super::{Driver, Run};
use crate::agent::hooks::reminder;
use crate::turn::internal_fork::InternalFork;

/// The most times that the agent is told that its goal is not reached.
const MOST_TIMES: u32 = 50;

const QUESTION: &str = "Decide whether the goal below is reached, from what this conversation shows and nothing else: a claim \
    without evidence does not count. Call no tools. Answer with one line: `YES` or `NO`, a colon, and the reason in one \
    sentence.";

impl Driver {
    /// Sets the goal that the agent works for, or none any more.
    pub(crate) fn set_goal(&mut self, condition: Option<String>) {
        let goal = condition.map(|condition| ActiveGoal {
            condition,
            iterations: 0,
            set_at: self.shared.world.now().as_millisecond(),
            tokens_at_start: self.context_parts().iter().map(|part| part.tokens).sum(),
            last_reason: None,
        });
        self.change_goal(goal);
    }

    fn change_goal(&mut self, goal: Option<ActiveGoal>) {
        if self.stop_rules.goal != goal {
            self.stop_rules.goal.clone_from(&goal);
            self.shared.show(EventBody::ActiveGoal { value: goal });
        }
    }

    /// The reason why the agent has to continue, if a person set a goal that is not reached. One that is reached is over.
    pub(super) async fn goal_missed(
        &mut self,
        run: &Run,
        cancel: &CancellationToken,
    ) -> Option<String> {
        let goal = self.stop_rules.goal.clone().filter(|_| self.identity().is_main())?;
        if goal.iterations >= MOST_TIMES {
            let message =
                format!("the goal was not reached after {MOST_TIMES} tries; it is given up");
            self.give_up_goal(message);
            return None;
        }
        let question = format!("{}\n\nThe goal: {}", reminder(QUESTION), goal.condition);
        let fork = InternalFork::after_conversation(
            &self.shared,
            &self.point(run, None),
            "goal",
            question,
        );
        let answer = tokio::select! {
            biased;
            () = cancel.cancelled() => {
                // The next prompt is about something else.
                self.change_goal(None);
                return None;
            }
            answer = fork.ask(&self.shared) => answer,
        };
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                self.give_up_goal(format!(
                    "whether the goal is reached could not be found out: {error}"
                ));
                return None;
            }
        };
        let (verdict, reason) = answer.trim().split_once(':').unwrap_or((answer.trim(), ""));
        let verdict: String = verdict.chars().filter(|it| it.is_alphabetic()).collect();
        if verdict.eq_ignore_ascii_case("yes") {
            let message = format!("the goal is reached: {}", reason.trim());
            self.dispatch.agent.inform("info", message);
            self.change_goal(None);
            return None;
        }
        self.change_goal(Some(ActiveGoal {
            iterations: goal.iterations + 1,
            last_reason: Some(reason.trim().to_owned()),
            ..goal.clone()
        }));
        let text = format!(
            "The goal is not reached yet ({}). Continue until it is: {}",
            reason.trim(),
            goal.condition
        );
        Some(reminder(&text))
    }

    fn give_up_goal(&mut self, message: String) {
        self.dispatch.agent.inform("warning", message.clone());
        self.change_goal(None);
        self.stop_rules.given_up = Some(message);
    }
}
