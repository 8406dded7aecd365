//! The `TodoWrite` tool.

use centurion_permissions::Access;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::context::lock;
use crate::{Tool, ToolContext, ToolError, ToolOutput};

/// One step of an agent's work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Todo {
    /// The task: "Run the tests".
    pub content: String,
    /// The state of the task.
    pub status: TodoStatus,
    /// The same while it is being done: "Running the tests".
    pub active_form: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    Pending,
    InProgress,
    Completed,
}

/// Replaces your to-do list, which the person sees. Use it for work of three or more steps, or when
/// several things are asked at once; not for simple tasks. Keep exactly one item in progress while
/// you work, and mark each completed as soon as it really is: not while tests fail or parts are
/// missing. Drop items that no longer matter.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TodoWriteInput {
    /// The whole list, in order.
    todos: Vec<Todo>,
}

pub(crate) struct TodoWrite;

impl Tool for TodoWrite {
    type Input = TodoWriteInput;

    const NAME: &'static str = "TodoWrite";

    fn is_read_only(&self, _: &TodoWriteInput) -> bool {
        false
    }

    fn access(&self, _: &TodoWriteInput, _: &ToolContext) -> Access {
        Access::Session
    }

    async fn run(
        &self,
        TodoWriteInput { todos: new }: TodoWriteInput,
        context: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        if let Some(place) = new.iter().position(|todo| todo.content.trim().is_empty()) {
            return Err(ToolError::Input(format!("item {} has no content", place + 1)));
        }
        let count = |status| new.iter().filter(|todo| todo.status == status).count();
        let (active, open) = (count(TodoStatus::InProgress), count(TodoStatus::Pending));
        let advice = match (active, open) {
            (0 | 1, _) if active + open == 0 => " All is done.",
            (0, _) => " Nothing is in progress: mark the item that you work on.",
            (1, _) => "",
            _ => " More than one item is in progress: work on one at a time.",
        };
        let done = count(TodoStatus::Completed);
        let text = match new.len() {
            0 => "The list is empty now.".to_owned(),
            all => format!("The list is saved: {done} of {all} done.{advice}"),
        };
        let old = std::mem::replace(&mut *lock(&context.workspace.todos), new.clone());
        Ok(ToolOutput::text(text).with_data(json!({ "oldTodos": old, "newTodos": new })))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::testing::{call, context, text};

    fn todo(content: &str, status: &str) -> Value {
        json!({ "content": content, "status": status, "activeForm": content })
    }

    #[tokio::test]
    async fn a_list_replaces_the_one_before() {
        let scratch = tempfile::tempdir().unwrap();
        let context = context(scratch.path());
        let first = json!({ "todos": [todo("a", "in_progress"), todo("b", "pending")] });
        call(TodoWrite, &context, first.clone()).await.unwrap();
        assert_eq!(lock(&context.workspace.todos).len(), 2);

        let second = json!({ "todos": [todo("a", "completed")] });
        let output = call(TodoWrite, &context, second.clone()).await.unwrap();
        assert_eq!(output.data, json!({ "oldTodos": first["todos"], "newTodos": second["todos"] }));
        assert_eq!(text(&output), "The list is saved: 1 of 1 done. All is done.");
    }

    #[tokio::test]
    async fn an_empty_list_is_not_work_done() {
        let scratch = tempfile::tempdir().unwrap();
        let context = context(scratch.path());
        let list = json!({ "todos": [todo("a", "pending")] });
        call(TodoWrite, &context, list).await.unwrap();
        let output = call(TodoWrite, &context, json!({ "todos": [] })).await.unwrap();
        assert_eq!(text(&output), "The list is empty now.");
        assert!(lock(&context.workspace.todos).is_empty());
    }

    #[tokio::test]
    async fn two_items_in_progress_are_advised_against_but_kept() {
        let scratch = tempfile::tempdir().unwrap();
        let context = context(scratch.path());
        let list = json!({ "todos": [todo("a", "in_progress"), todo("b", "in_progress")] });
        let output = call(TodoWrite, &context, list).await.unwrap();
        assert!(text(&output).contains("one at a time"));
        assert_eq!(lock(&context.workspace.todos).len(), 2);
    }

    #[tokio::test]
    async fn a_list_that_says_nothing_is_refused() {
        let scratch = tempfile::tempdir().unwrap();
        let context = context(scratch.path());
        for bad in [
            json!({ "todos": [todo(" ", "pending")] }),
            json!({ "todos": [todo("a", "begun")] }),
            json!({ "todos": [{ "content": "a", "status": "pending" }] }),
            json!({ "todos": [], "more": 1 }),
        ] {
            let error = call(TodoWrite, &context, bad).await.unwrap_err();
            assert!(matches!(error, ToolError::Input(_)), "{error}");
        }
        assert!(lock(&context.workspace.todos).is_empty());
    }
}
