//! The `AskUserQuestion` tool.

use std::ops::RangeInclusive;

use centurion_permissions::Access;
use centurion_protocol::Env;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{Question, Tool, ToolContext, ToolError, ToolOutput};

/// Asks the person one to four questions with choices. Use it when you need a decision that only
/// they can make and that the code, the task or good sense does not answer. Put the choice that you
/// recommend first and say so in its label. They can always answer in their own words.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AskUserQuestionInput {
    /// The questions.
    #[schemars(length(min = 1, max = 4))]
    questions: Vec<Question>,
}

const QUESTIONS: RangeInclusive<usize> = 1..=4;
const OPTIONS: RangeInclusive<usize> = 2..=4;

/// The form of the previews that a host shows beside choices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreviewFormat {
    Markdown,
    Html,
}

impl PreviewFormat {
    /// The form that the host has chosen in the environment; `None` where previews are not shown.
    pub fn chosen(env: &Env) -> Option<Self> {
        match env.get("CLAUDE_CODE_QUESTION_PREVIEW_FORMAT")? {
            "html" => Some(Self::Html),
            "markdown" => Some(Self::Markdown),
            _ => None,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Markdown => "Markdown or text art",
            Self::Html => "a fragment of HTML that needs nothing else and has no scripts",
        }
    }
}

pub(crate) struct AskUserQuestion {
    pub(crate) preview: Option<PreviewFormat>,
}

impl Tool for AskUserQuestion {
    type Input = AskUserQuestionInput;

    const NAME: &'static str = "AskUserQuestion";

    fn withheld(&self) -> &[&'static str] {
        if self.preview.is_some() { &[] } else { &["questions.options.preview"] }
    }

    fn describe(&self, usual: String) -> String {
        match self.preview {
            Some(format) => {
                format!("{usual} Previews of choices are {}.", format.words())
            }
            None => usual,
        }
    }

    fn is_read_only(&self, _: &AskUserQuestionInput) -> bool {
        true
    }

    fn access(&self, _: &AskUserQuestionInput, _: &ToolContext) -> Access {
        Access::Session
    }

    async fn run(
        &self,
        AskUserQuestionInput { questions }: AskUserQuestionInput,
        context: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        check(&questions)?;
        let asked = context.workspace.host.ask(&context.call, questions.clone());
        let answers = tokio::select! {
            biased;
            () = context.cancel.cancelled() => {
                return Err(ToolError::Cancelled { partial: None });
            }
            answers = asked => answers,
        };
        let answers = answers.map_err(|reason| {
            ToolError::Failed(format!(
                "the user did not answer: {reason}. Decide yourself, continue, and state your assumptions"
            ))
        })?;
        let lines = answers.iter().map(|answer| format!("{} → {}", answer.question, answer.answer));
        let text = lines.collect::<Vec<_>>().join("\n");
        let answers: Map<String, Value> = answers
            .into_iter()
            .map(|answer| (answer.question, Value::String(answer.answer)))
            .collect();
        let data = json!({ "questions": questions, "answers": answers });
        Ok(ToolOutput::text(text).with_data(data))
    }
}

fn check(questions: &[Question]) -> Result<(), ToolError> {
    let fault = |message: String| Err(ToolError::Input(message));
    if !QUESTIONS.contains(&questions.len()) {
        return fault(format!("ask one to four questions, not {}", questions.len()));
    }
    for (place, question) in questions.iter().enumerate() {
        let text = &question.question;
        if !OPTIONS.contains(&question.options.len()) {
            return fault(format!("give two to four choices for {text:?}"));
        }
        // Answers are told apart by their questions, choices by their labels.
        if questions.iter().take(place).any(|other| other.question == *text) {
            return fault(format!("{text:?} is asked twice"));
        }
        let labels = question.options.iter().map(|option| &option.label);
        for (place, label) in labels.clone().enumerate() {
            if labels.clone().take(place).any(|other| other == label) {
                return fault(format!("{text:?} offers {label:?} twice"));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use centurion_protocol::ToolUseId;

    use super::*;
    use crate::testing::{call, context, context_with, text};
    use crate::{
        Answer, Host, HostFuture, NoAnswer, PlanModeError, PlanVerdict, ShellChange, ShellEnd,
    };

    const QUIET: AskUserQuestion = AskUserQuestion { preview: None };

    /// Answers every question with its first choice, or is absent.
    struct Person {
        there: bool,
    }

    impl Host for Person {
        fn ask<'a>(
            &'a self,
            _: &'a ToolUseId,
            questions: Vec<Question>,
        ) -> HostFuture<'a, Result<Vec<Answer>, NoAnswer>> {
            let answers = questions.into_iter().map(|question| Answer {
                answer: question.options.first().unwrap().label.clone(),
                question: question.question,
            });
            let answers = answers.collect();
            let answers = self
                .there
                .then_some(answers)
                .ok_or(NoAnswer::Refused("the terminal is gone".to_owned()));
            Box::pin(async { answers })
        }

        fn enter_plan_mode<'a>(
            &'a self,
            _: &'a ToolUseId,
        ) -> HostFuture<'a, Result<(), PlanModeError>> {
            unreachable!("no test asks for it")
        }

        fn propose_plan<'a>(&'a self, _: &'a ToolUseId, _: String) -> HostFuture<'a, PlanVerdict> {
            unreachable!("no test asks for it")
        }

        fn shell_changed(&self, _: ShellChange) {}

        fn report_shell_end(&self, _: ShellEnd) {}
    }

    fn question(text: &str, labels: &[&str]) -> Value {
        let options = labels.iter().map(|label| json!({ "label": label, "description": "" }));
        json!({
            "question": text,
            "header": "Choice",
            "options": options.collect::<Vec<_>>(),
            "multiSelect": false,
        })
    }

    #[tokio::test]
    async fn answers_come_back_by_question() {
        let scratch = tempfile::tempdir().unwrap();
        let context = context_with(scratch.path(), Arc::new(Person { there: true }));
        let questions = json!([question("Tabs?", &["yes", "no"]), question("Why?", &["a", "b"])]);
        let input = json!({ "questions": questions });
        let output = call(QUIET, &context, input).await.unwrap();
        assert_eq!(text(&output), "Tabs? → yes\nWhy? → a");
        assert_eq!(output.data["answers"], json!({ "Tabs?": "yes", "Why?": "a" }));
        assert_eq!(output.data["questions"], questions);
    }

    #[tokio::test]
    async fn without_a_user_the_model_is_told_to_decide() {
        let scratch = tempfile::tempdir().unwrap();
        let context = context_with(scratch.path(), Arc::new(Person { there: false }));
        let input = json!({ "questions": [question("Tabs?", &["yes", "no"])] });
        let error = call(QUIET, &context, input).await.unwrap_err().to_string();
        assert!(error.contains("the terminal is gone. Decide yourself"), "{error}");
    }

    #[tokio::test]
    async fn questions_that_cannot_be_asked_are_refused() {
        let scratch = tempfile::tempdir().unwrap();
        let context = context(scratch.path());
        let good = question("Tabs?", &["yes", "no"]);
        for bad in [
            json!([]),
            json!([good, good]),
            json!([question("Tabs?", &["yes"])]),
            json!([question("Tabs?", &["yes", "yes"])]),
            json!([question("Tabs?", &["1", "2", "3", "4", "5"])]),
        ] {
            let error = call(QUIET, &context, json!({ "questions": bad })).await;
            assert!(matches!(error, Err(ToolError::Input(_))), "{bad}");
        }
    }

    #[tokio::test]
    async fn a_cancelled_question_is_not_waited_for() {
        let scratch = tempfile::tempdir().unwrap();
        let context = context_with(scratch.path(), Arc::new(Person { there: true }));
        context.cancel.cancel();
        let input = json!({ "questions": [question("Tabs?", &["yes", "no"])] });
        let error = call(QUIET, &context, input).await;
        assert!(matches!(error, Err(ToolError::Cancelled { .. })));
    }
}
