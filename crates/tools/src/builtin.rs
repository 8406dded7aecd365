//! The list of all built-in tools.

use std::sync::Arc;

use crate::ask_user_question::{AskUserQuestion, PreviewFormat};
use crate::bash::Bash;
use crate::enter_plan_mode::EnterPlanMode;
use crate::exit_plan_mode::ExitPlanMode;
use crate::task_output::TaskOutput;
use crate::task_stop::TaskStop;
use crate::todo_write::TodoWrite;
use crate::web_fetch::WebFetch;
use crate::{DynTool, Edit, Glob, Grep, NotebookEdit, Read, SandboxPolicy, Write, erase};

/// Every built-in tool, in the order of names: providers cache a prompt that contains this list.
pub fn builtin() -> Vec<Arc<dyn DynTool>> {
    builtin_under(None, None)
}

/// The same for an agent whose commands may be confined, and whose host may show previews of choices.
pub fn builtin_under(
    sandbox: Option<&SandboxPolicy>,
    preview: Option<PreviewFormat>,
) -> Vec<Arc<dyn DynTool>> {
    let offers_unsandboxed = sandbox.is_some_and(SandboxPolicy::allows_unsandboxed);
    vec![
        erase(AskUserQuestion { preview }),
        erase(Bash { offers_unsandboxed }),
        erase(Edit),
        erase(EnterPlanMode),
        erase(ExitPlanMode),
        erase(Glob),
        erase(Grep),
        erase(NotebookEdit),
        erase(Read),
        erase(TaskOutput),
        erase(TaskStop),
        erase(TodoWrite),
        erase(WebFetch::default()),
        erase(Write),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn the_order_is_fixed_and_alphabetical() {
        let names: Vec<_> = builtin().iter().map(|tool| tool.name().to_owned()).collect();
        assert!(names.is_sorted_by(|one, two| one < two), "{names:?}");
    }

    #[test]
    fn all_definitions_together_stay_small() {
        const LIMIT: usize = 14 * 1024;
        let mut total = 0;
        for tool in builtin() {
            let spec = tool.spec();
            let size = serde_json::to_string(&spec).unwrap().len();
            println!("{:>6} bytes, {:>5} described: {}", size, spec.description.len(), spec.name);
            assert!(spec.description.len() <= 1_000, "{} explains too much", spec.name);
            total += size;
        }
        println!("{total:>6} bytes in all");
        assert!(total < LIMIT, "{total} bytes");
    }

    #[test]
    fn every_tool_and_every_field_says_what_it_is_for() {
        for tool in builtin() {
            let spec = tool.spec();
            assert!(!spec.description.is_empty(), "{}", spec.name);
            let schema: Value = serde_json::from_str(spec.input_schema.get()).unwrap();
            assert_eq!(schema["type"], "object", "{}", spec.name);
            described(&spec.name, &schema);
        }
    }

    /// Checks every property of this object and of the objects in it.
    fn described(place: &str, schema: &Value) {
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten() {
            let place = format!("{place}.{name}");
            let description = property.get("description").and_then(Value::as_str);
            assert!(description.is_some_and(|text| !text.is_empty()), "{place}: {property}");
            described(&place, property);
        }
        if let Some(items) = schema.get("items") {
            described(&format!("{place}[]"), items);
        }
        if properties.is_some() {
            assert_eq!(schema["additionalProperties"], false, "{place} takes anything");
        }
    }
}
