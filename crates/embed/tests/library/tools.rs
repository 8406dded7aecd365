//! Tools of the program: their schema, their inputs, and the rules that bind them.
#![expect(clippy::unused_async, reason = "a tool may wait, and these need not")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use centurion_embed::{
    Event, Mode, Model, Outcome, PermissionReply, Session, SessionBuilder, Tool, ToolError,
    ToolOutput,
};
use serde_json::json;

/// Greets a person,
/// warmly.
#[derive(Tool)]
#[tool(name = "Greet", state = Arc<AtomicUsize>)]
struct Greet {
    /// The name of the person.
    name: String,
    /// The number of exclamation marks.
    #[serde(default)]
    marks: usize,
}

impl Greet {
    async fn run(self, calls: &Arc<AtomicUsize>) -> Result<ToolOutput, ToolError> {
        calls.fetch_add(1, Ordering::Relaxed);
        if self.name.is_empty() {
            return Err(ToolError::new("there is no one to greet"));
        }
        let text = format!("Hello {}{}", self.name, "!".repeat(self.marks));
        Ok(ToolOutput::text(text).with_data(json!({"marks": self.marks})))
    }
}

/// Looks at the clock.
#[derive(Tool)]
#[tool(read_only)]
struct Clock;

impl Clock {
    async fn run(self) -> Result<&'static str, ToolError> {
        let hour: u32 = "12".parse()?;
        Ok(if hour == 12 { "It is noon" } else { "It is late" })
    }
}

/// Fails badly.
#[derive(Tool)]
struct Panics;

impl Panics {
    async fn run(self) -> Result<String, ToolError> {
        panic!("the tool is broken")
    }
}

/// Never ends.
#[derive(Tool)]
struct Hangs;

impl Hangs {
    async fn run(self) -> Result<String, ToolError> {
        std::future::pending().await
    }
}

/// A script that makes one call and repeats its result.
fn calls(tool: &str, input: &str) -> Model {
    Model::script(format!(
        "default:\n  - {{tool: {tool}, input: {input}}}\n  - 'It said: ${{re:(Hello.*|It is.*|.*broken.*)}}'\n"
    ))
}

fn greeter(input: &str) -> (SessionBuilder, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let builder = Session::builder(calls("Greet", input));
    (builder.tool_with::<Greet>(Arc::clone(&count)), count)
}

#[tokio::test]
async fn a_call_reaches_the_state_and_its_result_the_model() {
    let (builder, count) = greeter("{name: Ada, marks: 2}");
    let mut session = builder.allow("Greet").open().await.unwrap();
    let answer = session.ask("greet").await.unwrap();
    assert_eq!(answer.text, "It said: Hello Ada!!");
    assert_eq!(count.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_tool_without_a_rule_is_asked_about_and_denied_without_an_answer() {
    let (builder, count) = greeter("{name: Ada}");
    let mut session = builder.open().await.unwrap();
    let answer = session.ask("greet").await.unwrap();
    assert_eq!(answer.denials.len(), 1, "{answer:?}");
    assert_eq!(answer.denials[0].tool, "Greet");
    assert_eq!(answer.denials[0].input, json!({"name": "Ada"}));
    assert_eq!(count.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_deny_goes_before_an_answer_and_a_mode() {
    let (builder, count) = greeter("{name: Ada}");
    let builder = builder.deny("Greet").allow("Greet").mode(Mode::BypassPermissions);
    let mut session =
        builder.on_permission(|_| async { PermissionReply::allow() }).open().await.unwrap();
    let answer = session.ask("greet").await.unwrap();
    assert_eq!(count.load(Ordering::Relaxed), 0, "{answer:?}");
}

#[tokio::test]
async fn an_answer_may_change_the_input() {
    let (builder, _) = greeter("{name: Ada}");
    let builder = builder.on_permission(|ask| async move {
        assert_eq!((ask.tool.as_str(), &ask.input["name"]), ("Greet", &json!("Ada")));
        PermissionReply::allow_with(json!({"name": "Bob"}))
    });
    let mut session = builder.open().await.unwrap();
    assert_eq!(session.ask("greet").await.unwrap().text, "It said: Hello Bob");
}

#[tokio::test]
async fn an_input_that_does_not_fit_is_told_to_the_model_and_runs_nothing() {
    for (input, expected) in [
        ("{name: Ada, age: 3}", "age"),
        ("{marks: 1}", "name"),
        ("{name: ''}", "there is no one to greet"),
    ] {
        let (builder, _) = greeter(input);
        let mut session = builder.allow("Greet").open().await.unwrap();
        let mut turn = session.send("greet");
        let mut ends = Vec::new();
        while let Some(event) = turn.next().await {
            if let Event::CallEnded { text, is_error, .. } = event {
                ends.push((text, is_error));
            }
        }
        assert!(matches!(&ends[..], [(text, true)] if text.contains(expected)), "{ends:?}");
    }
}

#[tokio::test]
async fn a_tool_that_only_reads_runs_where_nothing_may_change() {
    for (rule, expected) in [("Clock", "It said: It is noon")] {
        let builder = Session::builder(calls("Clock", "{}")).tool::<Clock>();
        let mut session = builder.mode(Mode::Plan).allow(rule).open().await.unwrap();
        assert_eq!(session.ask("when?").await.unwrap().text, expected);
    }
    let (builder, count) = greeter("{name: Ada}");
    let mut session = builder.mode(Mode::Plan).allow("Greet").open().await.unwrap();
    session.ask("greet").await.unwrap();
    assert_eq!(count.load(Ordering::Relaxed), 0, "a call that changes something ran in plan mode");
}

#[tokio::test]
async fn a_panic_in_a_tool_fails_the_call_alone() {
    let builder = Session::builder(calls("Panics", "{}")).tool::<Panics>().allow("Panics");
    let mut session = builder.open().await.unwrap();
    let answer = session.ask("go").await.unwrap();
    assert_eq!(answer.outcome, Outcome::Completed, "{answer:?}");
    assert!(answer.text.starts_with("It said: "), "{answer:?}");
}

#[tokio::test]
async fn an_interrupt_ends_a_tool_that_hangs_and_the_conversation_continues() {
    let script = "default: [{tool: Hangs, input: {}}, I am back.]";
    let builder = Session::builder(Model::script(script)).tool::<Hangs>().allow("Hangs");
    let mut session = builder.open().await.unwrap();
    let interrupter = session.interrupter();
    let mut turn = session.send("go");
    let mut outcome = None;
    while let Some(event) = turn.next().await {
        match event {
            Event::Call { .. } => interrupter.interrupt(),
            Event::Answered(answer) => outcome = Some(answer.outcome),
            _ => {}
        }
    }
    drop(turn);
    assert_eq!(outcome, Some(Outcome::Interrupted));
    assert_eq!(session.ask("are you there?").await.unwrap().text, "I am back.");
}

#[tokio::test]
async fn a_large_result_is_bounded() {
    /// Says much.
    #[derive(Tool)]
    struct Flood;

    impl Flood {
        async fn run(self) -> Result<String, ToolError> {
            Ok("much ".repeat(1_000_000))
        }
    }

    let builder = Session::builder(calls("Flood", "{}")).tool::<Flood>().allow("Flood");
    let mut session = builder.open().await.unwrap();
    let mut turn = session.send("go");
    let mut length = None;
    while let Some(event) = turn.next().await {
        if let Event::CallEnded { text, .. } = event {
            length = Some(text.len());
        }
    }
    assert!(length.is_some_and(|length| length < 250_000), "{length:?}");
}
