//! The `ExitPlanMode` tool.

use centurion_permissions::Access;
use serde::Deserialize;
use serde_json::json;

use crate::context::lock;
use crate::{PlanVerdict, Tool, ToolContext, ToolError, ToolOutput};

/// The plans of an agent that it may have to be told of again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The plan that was approved last.
    pub approved: Option<String>,
    /// A plan that waits for the lead of the agent's team.
    pub proposed: Option<String>,
}

impl Plan {
    /// The lead approved what waited.
    pub fn approve(&mut self) {
        self.approved = self.proposed.take().or(self.approved.take());
    }
}

/// Puts your plan to the person and, if they approve it, ends planning. Use it only while planning,
/// when the plan is complete and no question is open.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExitPlanModeInput {
    /// The plan in Markdown: what changes where, in which order, and how it is checked.
    plan: String,
}

pub(crate) struct ExitPlanMode;

impl Tool for ExitPlanMode {
    type Input = ExitPlanModeInput;

    const NAME: &'static str = "ExitPlanMode";

    fn is_read_only(&self, _: &ExitPlanModeInput) -> bool {
        true
    }

    fn access(&self, _: &ExitPlanModeInput, _: &ToolContext) -> Access {
        Access::Session
    }

    async fn run(
        &self,
        ExitPlanModeInput { plan }: ExitPlanModeInput,
        context: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        if plan.trim().is_empty() {
            return Err(ToolError::Input("the plan is empty: write it out".to_owned()));
        }
        let verdict = tokio::select! {
            biased;
            () = context.cancel.cancelled() => {
                return Err(ToolError::Cancelled { partial: None });
            }
            verdict = context.workspace.host.propose_plan(&context.call, plan.clone()) => verdict,
        };
        match verdict {
            PlanVerdict::Approved => {
                *lock(&context.workspace.plan) =
                    Plan { approved: Some(plan.clone()), proposed: None };
                Ok(ToolOutput::text("The plan is approved: planning is over, carry it out.")
                    .with_data(json!({ "plan": plan })))
            }
            PlanVerdict::Submitted(request) => {
                lock(&context.workspace.plan).proposed = Some(plan.clone());
                let text = format!(
                    "Your plan was sent to the team lead for approval.\nRequest ID: {request}\nYou are still planning. \
                     End your turn now: the lead's answer comes as a message."
                );
                let data =
                    json!({ "plan": plan, "awaitingLeaderApproval": true, "requestId": request });
                Ok(ToolOutput::text(text).with_data(data))
            }
            PlanVerdict::Rejected(feedback) => Err(ToolError::Failed(format!(
                "the plan was not approved, you are still planning. The person says: {feedback}"
            ))),
            PlanVerdict::Refused(reason) => {
                Err(ToolError::Failed(format!("the plan was not submitted: {reason}")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use centurion_protocol::ToolUseId;
    use serde_json::Value;

    use super::*;
    use crate::enter_plan_mode::EnterPlanMode;
    use crate::testing::{call, context_with, text};
    use crate::{
        Answer, Host, HostFuture, NoAnswer, PlanModeError, Question, ShellChange, ShellEnd,
    };

    /// A host that gives one verdict on everything.
    struct Judge(Result<(), &'static str>);

    impl Host for Judge {
        fn ask<'a>(
            &'a self,
            _: &'a ToolUseId,
            _: Vec<Question>,
        ) -> HostFuture<'a, Result<Vec<Answer>, NoAnswer>> {
            unreachable!("no test asks for it")
        }

        fn enter_plan_mode<'a>(
            &'a self,
            _: &'a ToolUseId,
        ) -> HostFuture<'a, Result<(), PlanModeError>> {
            Box::pin(async { self.0.map_err(|_| PlanModeError::AlreadyOn) })
        }

        fn propose_plan<'a>(
            &'a self,
            call: &'a ToolUseId,
            plan: String,
        ) -> HostFuture<'a, PlanVerdict> {
            assert_eq!((call.as_str(), plan.as_str()), ("toolu_test", "1. do it"));
            Box::pin(async {
                match self.0 {
                    Ok(()) => PlanVerdict::Approved,
                    Err(feedback) => PlanVerdict::Rejected(feedback.to_owned()),
                }
            })
        }

        fn shell_changed(&self, _: ShellChange) {}

        fn report_shell_end(&self, _: ShellEnd) {}
    }

    async fn judged<T: Tool>(
        tool: T,
        verdict: Result<(), &'static str>,
        input: Value,
    ) -> Result<ToolOutput, ToolError> {
        let scratch = tempfile::tempdir().unwrap();
        let context = context_with(scratch.path(), Arc::new(Judge(verdict)));
        call(tool, &context, input).await
    }

    #[tokio::test]
    async fn an_approved_plan_is_carried_out() {
        let output = judged(ExitPlanMode, Ok(()), json!({ "plan": "1. do it" })).await.unwrap();
        assert!(text(&output).contains("carry it out"));
        assert_eq!(output.data, json!({ "plan": "1. do it" }));
    }

    #[tokio::test]
    async fn a_rejected_plan_comes_back_with_the_reason() {
        let result = judged(ExitPlanMode, Err("too big"), json!({ "plan": "1. do it" })).await;
        assert!(result.unwrap_err().to_string().ends_with("The person says: too big"));
        let empty = judged(ExitPlanMode, Ok(()), json!({ "plan": " " })).await;
        assert!(matches!(empty, Err(ToolError::Input(_))));
    }

    #[tokio::test]
    async fn planning_starts_unless_the_host_says_no() {
        let output = judged(EnterPlanMode, Ok(()), json!({})).await.unwrap();
        assert!(text(&output).contains("ExitPlanMode"));
        let refused = judged(EnterPlanMode, Err("it plans"), json!({})).await;
        assert!(refused.unwrap_err().to_string().contains("plan mode is on already"));
    }
}
