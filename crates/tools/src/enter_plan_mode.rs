//! The `EnterPlanMode` tool.

use centurion_permissions::Access;
use serde::Deserialize;

use crate::{Tool, ToolContext, ToolError, ToolOutput};

/// Switches to planning: you read and think, but change nothing until the person has approved a
/// plan. Use it before work that is large, risky or open to several designs, not for small and
/// clear tasks.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EnterPlanModeInput {}

pub(crate) struct EnterPlanMode;

impl Tool for EnterPlanMode {
    type Input = EnterPlanModeInput;

    const NAME: &'static str = "EnterPlanMode";

    fn is_read_only(&self, _: &EnterPlanModeInput) -> bool {
        true
    }

    fn access(&self, _: &EnterPlanModeInput, _: &ToolContext) -> Access {
        Access::Session
    }

    async fn run(
        &self,
        _: EnterPlanModeInput,
        context: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let entered = tokio::select! {
            biased;
            () = context.cancel.cancelled() => {
                return Err(ToolError::Cancelled { partial: None });
            }
            entered = context.workspace.host.enter_plan_mode(&context.call) => entered,
        };
        entered.map_err(|reason| {
            ToolError::Failed(format!("planning was not started: {reason}. Continue without it"))
        })?;
        Ok(ToolOutput::text(
            "You are planning now: change nothing. Explore, settle the design, then call ExitPlanMode with the plan.",
        ))
    }
}
