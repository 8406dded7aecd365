//! Waits of agents are events: for a slot, for a person, for the provider, for another agent.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use centurion_engine::{Answerer, Ask, ElicitFuture, Reply, ReplyFuture};
use centurion_mcp::Elicitation;
use centurion_protocol::Outcome;
use serde_json::{Value, json};

use crate::agent_stage::{starts, waits};
use crate::bench::{Bench, Told};

/// Says no, after a while.
struct Slow;

impl Answerer for Slow {
    fn answer(&self, _: Ask) -> ReplyFuture<'_> {
        Box::pin(async {
            tokio::time::sleep(Duration::from_mins(1)).await;
            Ok(Reply::Denied { reason: "no".to_owned(), interrupt: false })
        })
    }

    fn elicit(&self, _: Elicitation) -> ElicitFuture<'_> {
        unreachable!("no server is there to ask")
    }
}

/// For what each agent waited, in order; the main agent has no name. Every wait begins once and is over once.
fn waits_of(told: &Told) -> BTreeMap<String, Vec<String>> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let names: BTreeMap<String, String> = told
        .of("system", Some("task_started"))
        .into_iter()
        .map(|event| (text(&event["task_id"]), text(&event["name"])))
        .collect();
    let (mut open, mut waits) = (Vec::new(), BTreeMap::<String, Vec<String>>::new());
    for event in told.of("system", Some("agent_waiting")) {
        let name = event.get("agent_id").map_or(String::new(), |id| names[&text(id)].clone());
        let wait = (name.clone(), text(&event["waits_for"]));
        let at = open.iter().position(|known| *known == wait);
        match at {
            None => {
                assert_eq!(event["is_over"], false, "{event}");
                waits.entry(name).or_default().push(wait.1.clone());
                open.push(wait);
            }
            Some(at) => {
                assert_eq!(event["is_over"], true, "{event}");
                open.remove(at);
            }
        }
    }
    assert!(open.is_empty(), "{open:?}");
    waits
}

fn named(mut call: Value, name: &str) -> Value {
    call["input"]["name"] = json!(name);
    call
}

#[tokio::test(start_paused = true)]
async fn every_wait_is_told_of_when_it_begins_and_when_it_is_over() {
    let refused = json!({"status": 429, "type": "rate_limit_error", "retry_after": 30, "times": 1});
    let shell = json!({"tool": "Bash", "input": {"command": "make it so"}});
    let mut bench = Bench::cast(&json!({
        "lead": [
            [named(starts("@@asks"), "asks"), named(starts("@@long"), "long")],
            [named(waits("@@refused"), "refused")],
            "done", "heard", "heard",
        ],
        "asks": [[shell], "could not"],
        // Holds the only slot when the answer is there.
        "long": [{"text": "at last", "latency_ms": 600_000}],
        "refused": [{"error": refused, "text": "got through"}],
    }));
    bench.answerer = Some(Arc::new(Slow));
    bench.knows_agents(|agents| {
        agents.rules.limits.running = 1;
        agents.rules.wait = None;
    });
    let told = bench.run("@@lead").await;
    assert_eq!(told.outcome, Some(Outcome::Completed));
    let waits = waits_of(&told);
    let of = |name: &str| waits.get(name).unwrap_or_else(|| panic!("{name}: {waits:?}")).as_slice();
    assert_eq!(of(""), ["agent"]);
    // The last because the provider has refused another one: it holds all back.
    assert_eq!(of("asks"), ["person", "slot", "provider"]);
    assert_eq!(of("refused"), ["slot", "provider"], "{waits:?}");
    let retry = told.of("system", Some("api_retry"))[0];
    let refused = told.of("system", Some("task_started"));
    let refused = refused.iter().find(|event| event["name"] == "refused").unwrap();
    assert_eq!(retry["agent_id"], refused["task_id"], "{retry}");
}

#[tokio::test(start_paused = true)]
async fn what_does_not_wait_tells_of_no_wait() {
    let told = Bench::says(&json!(["hello"])).run("hi").await;
    assert!(told.of("system", Some("agent_waiting")).is_empty());
}
