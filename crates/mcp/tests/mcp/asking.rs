//! Requests of servers to the client.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use centurion_mcp::{
    Elicitation, ElicitationAnswer, ElicitationKind, Elicitor, HostError, HostFuture, Sampler,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::bench::{Bench, call, object};

/// Answers as the test prescribes and records the questions.
struct Person {
    answer: ElicitationAnswer,
    asked: mpsc::UnboundedSender<Elicitation>,
}

impl Elicitor for Person {
    fn elicit(&self, question: Elicitation) -> HostFuture<'_, ElicitationAnswer> {
        self.asked.send(question).unwrap();
        Box::pin(std::future::ready(self.answer.clone()))
    }
}

fn form() -> Value {
    json!({
        "method": "elicitation/create",
        "params": {
            "message": "Who are you?",
            "requestedSchema": { "type": "object", "properties": {
                "name": { "type": "string" },
                "age": { "type": "integer", "default": 30 },
            } },
        },
    })
}

async fn answered(answer: ElicitationAnswer, question: Value) -> (Value, Elicitation) {
    let (asked, mut questions) = mpsc::unbounded_channel();
    let bench = Bench::with([], |options| options.elicitor = Arc::new(Person { answer, asked }));
    let connection = bench.connect("").await;
    let told = call(&connection, "ask", question).await;
    (serde_json::from_str(&told).unwrap(), questions.recv().await.unwrap())
}

#[tokio::test]
async fn a_person_fills_a_form_in() {
    let fields = object(json!({ "name": "Ada" }));
    let (told, asked) = answered(ElicitationAnswer::Accept(fields), form()).await;
    assert_eq!(told, json!({ "action": "accept", "content": { "name": "Ada", "age": 30 } }));
    assert_eq!((asked.server.as_str(), asked.message.as_str()), ("test", "Who are you?"));
    let ElicitationKind::Form { schema } = asked.kind else { panic!("{asked:?}") };
    assert_eq!(schema["properties"]["name"]["type"], "string");
}

#[tokio::test]
async fn a_person_says_no_or_nothing_or_visits_a_page() {
    let (told, _) = answered(ElicitationAnswer::Decline, form()).await;
    assert_eq!(told, json!({ "action": "decline" }));
    let (told, _) = answered(ElicitationAnswer::Cancel, form()).await;
    assert_eq!(told, json!({ "action": "cancel" }));
    let page = json!({ "method": "elicitation/create", "params": {
        "mode": "url", "message": "Pay", "url": "https://pay.example", "elicitationId": "e1",
    } });
    let (told, asked) = answered(ElicitationAnswer::Accept(object(json!({}))), page).await;
    assert_eq!(told, json!({ "action": "accept" }));
    let kind = ElicitationKind::Url { url: "https://pay.example".into(), id: "e1".into() };
    assert_eq!(asked.kind, kind);
}

/// Never answers; records the withdrawal of its question.
struct Thinker {
    asked: std::path::PathBuf,
    withdrawn: Arc<AtomicBool>,
}

struct OnDrop(Arc<AtomicBool>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Elicitor for Thinker {
    fn elicit(&self, _: Elicitation) -> HostFuture<'_, ElicitationAnswer> {
        let dropped = OnDrop(Arc::clone(&self.withdrawn));
        std::fs::write(&self.asked, "").unwrap();
        Box::pin(async move {
            let _dropped = dropped;
            std::future::pending().await
        })
    }
}

#[tokio::test]
async fn a_question_that_a_server_withdraws_is_dropped() {
    let scratch = tempfile::tempdir().unwrap();
    let asked = scratch.path().join("asked");
    let withdrawn = Arc::new(AtomicBool::new(false));
    let thinker = Thinker { asked: asked.clone(), withdrawn: Arc::clone(&withdrawn) };
    let bench = Bench::with([], |options| options.elicitor = Arc::new(thinker));
    let connection = bench.connect("").await;
    let mut question = form()["params"].clone();
    question["mark"] = json!(asked.to_str().unwrap());
    assert_eq!(call(&connection, "ask-and-withdraw", question).await, "withdrawn");
    crate::bench::eventually("the withdrawal", || withdrawn.load(Ordering::SeqCst)).await;
}

#[tokio::test]
async fn an_open_question_does_not_hold_up_the_end_of_a_server() {
    let scratch = tempfile::tempdir().unwrap();
    let asked = scratch.path().join("asked");
    let thinker = Thinker { asked: asked.clone(), withdrawn: Arc::default() };
    let bench = Bench::with([], |options| options.elicitor = Arc::new(thinker));
    let connection = bench.connect("").await;
    let options = centurion_mcp::CallOptions::default();
    let asking = connection.call("ask", object(form()), &options);
    let killing = async {
        crate::bench::eventually("the question", || asked.exists()).await;
        let pid = bench.pids().remove(0);
        let pid = pid.file_name().unwrap().to_str().unwrap().to_owned();
        let killed = std::process::Command::new("kill").args(["-9", &pid]).status();
        assert!(killed.unwrap().success());
    };
    let (result, ()) = tokio::join!(asking, killing);
    let error = result.unwrap_err().to_string();
    assert!(error.contains("went away") && error.contains("signal"), "{error}");
}

const SAMPLE: &str = r#"{ "method": "sampling/createMessage", "params": {
    "messages": [{ "role": "user", "content": { "type": "text", "text": "hi" } }], "maxTokens": 5 } }"#;

#[tokio::test]
async fn a_server_may_not_use_the_model() {
    let bench = Bench::new();
    let connection = bench.connect("").await;
    let told = call(&connection, "ask", serde_json::from_str(SAMPLE).unwrap()).await;
    assert!(told.contains("does not let servers use its model"), "{told}");
}

struct Parrot;

impl Sampler for Parrot {
    fn sample<'a>(
        &'a self,
        server: &'a str,
        request: Value,
    ) -> HostFuture<'a, Result<Value, HostError>> {
        let said = request["messages"][0]["content"]["text"].as_str().unwrap_or("?");
        let said = format!("{server}: {said}");
        Box::pin(async move {
            Ok(json!({
                "role": "assistant", "model": "parrot",
                "content": { "type": "text", "text": said },
            }))
        })
    }
}

#[tokio::test]
async fn a_server_may_use_the_model_where_that_is_allowed() {
    let bench = Bench::with([], |options| options.sampler = Some(Arc::new(Parrot)));
    let connection = bench.connect("").await;
    let told = call(&connection, "ask", serde_json::from_str(SAMPLE).unwrap()).await;
    assert!(told.contains("test: hi"), "{told}");
}

#[tokio::test]
async fn roots_and_pings_are_answered() {
    let bench = Bench::new();
    let connection = bench.connect("").await;
    let told = call(&connection, "ask", json!({ "method": "roots/list", "params": {} })).await;
    let told: Value = serde_json::from_str(&told).unwrap();
    let uri = format!("file://{}/a%20b", bench.root().display());
    assert_eq!(told, json!({ "roots": [{ "uri": uri, "name": "a b" }] }));
    assert_eq!(call(&connection, "ask", json!({ "method": "ping", "params": {} })).await, "{}");
}
