//! Calls that a server continues as tasks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use centurion_mcp::{
    CallError, CallOptions, Connection, Elicitation, ElicitationAnswer, Elicitor, HostFuture,
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::bench::{Bench, call, eventually, object, program};

/// A step of a task: what the server says when it is asked.
fn step(task: &Value) -> Value {
    json!({ "task": task })
}

fn working() -> Value {
    step(&json!({ "status": "working", "statusMessage": "half way" }))
}

fn done(text: &str) -> Value {
    let content = json!([{ "type": "text", "text": text }]);
    step(&json!({ "status": "completed", "result": { "content": content, "isError": false } }))
}

fn question(key: &str) -> Value {
    let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    json!({ key: {
        "method": "elicitation/create",
        "params": { "message": format!("Who is {key}?"), "requestedSchema": schema },
    } })
}

fn asks(key: &str, until_said: usize) -> Value {
    json!({
        "task": { "status": "input_required", "inputRequests": question(key) },
        "until_said": until_said,
    })
}

async fn run(connection: &Connection, steps: Value) -> Result<String, CallError> {
    let options = CallOptions::default();
    let output = connection.call("task", object(json!({ "steps": steps })), &options).await;
    output.map(|output| output.text())
}

async fn said(connection: &Connection) -> Value {
    serde_json::from_str(&call(connection, "about-tasks", json!({})).await).unwrap()
}

#[tokio::test]
async fn a_call_that_continues_as_a_task_ends_with_its_result() {
    let bench = Bench::new();
    let connection = bench.connect("").await;
    let signs: Arc<Mutex<Vec<Option<String>>>> = Arc::default();
    let seen = Arc::clone(&signs);
    let options = CallOptions {
        on_progress: Some(Arc::new(move |progress| seen.lock().push(progress.message))),
        ..CallOptions::default()
    };
    let steps = json!({ "steps": [working(), working(), done("it is finished")] });
    let output = connection.call("task", object(steps), &options).await.unwrap();
    assert_eq!((output.text().as_str(), output.is_error), ("it is finished", false));
    let signs: Vec<Option<String>> = signs.lock().clone();
    assert_eq!(signs.iter().flatten().filter(|text| *text == "half way").count(), 2, "{signs:?}");
    assert_eq!(said(&connection).await, json!([]), "nobody cancels what has ended");
}

#[tokio::test]
async fn a_task_that_fails_or_that_its_server_cancels_says_so() {
    let bench = Bench::new();
    let connection = bench.connect("").await;
    let broken = json!({ "status": "failed", "error": { "code": -32603, "message": "no disk" } });
    let error = run(&connection, json!([working(), step(&broken)])).await.unwrap_err();
    assert!(matches!(error, CallError::TaskFailed { code: -32603, .. }), "{error}");
    assert!(error.to_string().contains("no disk"), "{error}");

    let dropped = json!({ "status": "cancelled", "statusMessage": "the owner stopped it" });
    let error = run(&connection, json!([step(&dropped)])).await.unwrap_err();
    assert!(matches!(error, CallError::TaskCancelled { .. }), "{error}");
    assert!(error.to_string().contains("the owner stopped it"), "{error}");
    assert_eq!(said(&connection).await, json!([]));
}

#[tokio::test]
async fn an_answer_that_is_no_task_ends_the_call_and_the_task() {
    let bench = Bench::new();
    let connection = bench.connect("").await;
    let strange = step(&json!({ "status": "asleep" }));
    let error = run(&connection, json!([strange])).await.unwrap_err();
    assert!(matches!(error, CallError::Unexpected { .. }), "{error}");
    assert_eq!(said(&connection).await, json!([{ "cancel": "task" }]));
}

/// Answers by the message; records what was asked.
struct Person(Mutex<Vec<String>>);

impl Elicitor for Person {
    fn elicit(&self, question: Elicitation) -> HostFuture<'_, ElicitationAnswer> {
        self.0.lock().push(question.message);
        let fields = object(json!({ "name": "Ada" }));
        Box::pin(std::future::ready(ElicitationAnswer::Accept(fields)))
    }
}

#[tokio::test]
async fn a_question_of_a_task_is_put_once_and_its_answer_reaches_the_task() {
    let person = Arc::new(Person(Mutex::default()));
    let elicitor = Arc::clone(&person) as Arc<dyn Elicitor>;
    let bench = Bench::with([], |options| options.elicitor = elicitor);
    let connection = bench.connect("").await;
    // The server repeats a question until it has the answer.
    let steps = json!([asks("first", 0), asks("first", 1), asks("second", 2), done("thanks")]);
    assert_eq!(run(&connection, steps).await.unwrap(), "thanks");
    assert_eq!(*person.0.lock(), ["Who is first?", "Who is second?"]);
    let answer = json!({ "action": "accept", "content": { "name": "Ada" } });
    let expected = json!([{ "update": { "first": answer } }, { "update": { "second": answer } }]);
    assert_eq!(said(&connection).await, expected);
}

/// Never answers; records the withdrawal of its question.
struct Thinker(Arc<AtomicBool>);

struct OnDrop(Arc<AtomicBool>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Elicitor for Thinker {
    fn elicit(&self, _: Elicitation) -> HostFuture<'_, ElicitationAnswer> {
        let dropped = OnDrop(Arc::clone(&self.0));
        Box::pin(async move {
            let _dropped = dropped;
            std::future::pending().await
        })
    }
}

#[tokio::test]
async fn a_question_that_a_task_no_longer_has_is_taken_back() {
    let withdrawn = Arc::new(AtomicBool::new(false));
    let thinker = Arc::new(Thinker(Arc::clone(&withdrawn)));
    let bench = Bench::with([], |options| options.elicitor = thinker);
    let connection = bench.connect("").await;
    let steps = json!([asks("first", 0), working(), done("without an answer")]);
    assert_eq!(run(&connection, steps).await.unwrap(), "without an answer");
    assert!(withdrawn.load(Ordering::SeqCst));
    assert_eq!(said(&connection).await, json!([]), "there was no answer to send");
}

#[tokio::test]
async fn a_question_that_cannot_be_answered_ends_the_call_and_the_task() {
    let bench = Bench::new();
    let connection = bench.connect("").await;
    let sample = json!({ "method": "sampling/createMessage", "params": {
        "messages": [{ "role": "user", "content": { "type": "text", "text": "hi" } }], "maxTokens": 5,
    } });
    let wants = step(&json!({ "status": "input_required", "inputRequests": { "think": sample } }));
    let error = run(&connection, json!([wants])).await.unwrap_err().to_string();
    assert!(error.contains("does not let servers use its model"), "{error}");
    assert_eq!(said(&connection).await, json!([{ "cancel": "task" }]));
}

#[tokio::test]
async fn a_task_whose_call_is_cancelled_or_takes_too_long_is_cancelled_too() {
    let bench = Bench::new();
    let connection = bench.connect("").await;
    let mark = bench.root().join("asked");
    let mut step = working();
    step["mark"] = json!(mark);
    let cancel = CancellationToken::new();
    let options = CallOptions { cancel: cancel.clone(), ..CallOptions::default() };
    let calling = connection.call("task", object(json!({ "steps": [step] })), &options);
    let cancelling = async {
        eventually("a look at the task", || mark.exists()).await;
        cancel.cancel();
    };
    let (result, ()) = tokio::join!(calling, cancelling);
    assert!(matches!(result, Err(CallError::Cancelled)), "{result:?}");
    assert_eq!(said(&connection).await, json!([{ "cancel": "task" }]));

    let mut hurried = program("");
    hurried.timeout = Some(Duration::from_millis(200));
    let connection = bench.pool.share(hurried);
    connection.ready(crate::bench::PATIENCE).await;
    let error = run(&connection, json!([working()])).await.unwrap_err();
    assert!(matches!(error, CallError::Timeout { .. }), "{error}");
}

#[tokio::test]
async fn a_server_that_ends_takes_its_tasks_along() {
    let bench = Bench::new();
    let connection = bench.connect("").await;
    let mark = bench.root().join("asked");
    let mut step = working();
    step["mark"] = json!(mark);
    let options = CallOptions::default();
    let calling = connection.call("task", object(json!({ "steps": [step] })), &options);
    let killing = async {
        eventually("a look at the task", || mark.exists()).await;
        let _ = connection.call("die", object(json!({})), &options).await;
    };
    let (result, ()) = tokio::join!(calling, killing);
    let error = result.unwrap_err();
    assert!(matches!(error, CallError::Gone { .. }), "{error}");
}

#[tokio::test]
async fn a_task_that_another_call_waits_for_is_neither_followed_nor_cancelled() {
    // The connection is shared by agents: the end of one's call would be that of the other's
    let bench = Bench::new();
    let connection = bench.connect("").await;
    let scratch = tempfile::tempdir().unwrap();
    let mark = scratch.path().join("looked");
    let mut looked = working();
    looked["mark"] = json!(mark);
    let first = run(&connection, json!([looked]));
    let second = async {
        eventually("the first look", || mark.exists()).await;
        // The server gives it the same id, and gives it again to the next.
        for steps in [json!([working()]), json!([done("mine")])] {
            let error = run(&connection, steps).await.unwrap_err();
            assert!(matches!(error, CallError::Unexpected { .. }), "{error}");
        }
        assert_eq!(said(&connection).await, json!([]), "nothing was cancelled");
    };
    let (first, ()) = tokio::join!(first, second);
    assert_eq!(first.unwrap(), "mine", "the first call continues");
    // It has ended: its id can come again.
    assert_eq!(run(&connection, json!([done("again")])).await.unwrap(), "again");
}

#[tokio::test]
async fn an_answer_about_another_task_and_an_id_that_is_none_end_the_call() {
    let bench = Bench::new();
    let connection = bench.connect("").await;
    let mut other = working();
    other["task"]["taskId"] = json!("other");
    let error = run(&connection, json!([other])).await.unwrap_err();
    assert!(matches!(error, CallError::Unexpected { .. }), "{error}");
    for id in [String::new(), "x".repeat(1 << 20)] {
        let input = json!({"id": id, "steps": [done("never")]});
        let error = connection.call("task", object(input), &CallOptions::default()).await;
        assert!(matches!(error, Err(CallError::Unexpected { .. })), "{error:?}");
    }
}
