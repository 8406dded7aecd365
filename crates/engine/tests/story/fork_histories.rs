//! Forks at any point of any history: what they share is the same bytes, for all of them and for ever.

use centurion_protocol::Outcome;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::agent_stage::{LAST_AGENT, agent, message};
use crate::bench::{Asked, Bench, Told};

fn fork(prompt: &str) -> Value {
    json!({"tool": "Agent", "input": {"description": "a branch", "prompt": prompt}})
}

fn read(file: &str) -> Value {
    json!({"tool": "Read", "input": {"file_path": file}})
}

/// Something that happens before a conversation is forked.
fn any_step() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!([read("a.txt")])),
        Just(json!(["I look.", read("a.txt"), read("none.txt"), read("odd.txt")])),
        Just(json!([{"thinking": "hm", "signature": "c2ln"}, "So.", read("odd.txt")])),
        Just(json!([{"tool": "NoSuchTool", "input": {"deep": [1, {"x": "\u{2028}\"\\"}]}}])),
        Just(json!([{"tool": "TodoWrite", "input": {"todos": [
            {"content": "x", "status": "pending", "activeForm": "x"},
        ]}}])),
        Just(
            json!([{"tool": "Write", "input": {"file_path": "w.txt", "content": "é\n\t\u{1f600}"}}])
        ),
    ]
}

fn of_agent<'a>(told: &'a Told, id: &str) -> Vec<&'a Asked> {
    told.asked.iter().filter(|asked| asked.agent.as_deref() == Some(id)).collect()
}

/// The ids of agents of a type.
fn started(told: &Told, kind: &str) -> Vec<String> {
    let events = told.of("system", Some("task_started"));
    let of_kind = events.iter().filter(|it| it["subagent_type"] == kind);
    let mut ids: Vec<String> =
        of_kind.map(|it| it["task_id"].as_str().unwrap().to_owned()).collect();
    // One that is woken is shown to start again.
    ids.sort();
    ids.dedup();
    ids
}

/// What a request begins with before its directive.
fn shared(asked: &Asked) -> &[u8] {
    let end = memchr::memmem::find(&asked.wire, b"FORK_DIRECTIVE: ").unwrap();
    &asked.wire[..end]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn what_forks_share_is_the_same_bytes_when_woken_resumed_restarted_and_for_forks_of_a_sibling(
        steps in prop::collection::vec(any_step(), 0..10),
        forks in 1_usize..4,
    ) {
        // S-264, S-266, I-11
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let mut lead = steps.clone();
            let mut calls = vec![agent("general-purpose", "@@sibling", &json!({}))];
            calls.extend((0..forks).map(|n| fork(&format!("@@work:{n}"))));
            lead.push(json!(calls));
            lead.extend([json!("meanwhile"), json!([message(LAST_AGENT, "@@more")])]);
            lead.extend((0..forks + 4).map(|_| json!("heard")));
            let mut sibling = steps.clone();
            sibling.extend([json!([fork("@@work:of-sibling"), read("a.txt")]), json!("sat"), json!("sat")]);
            let mut bench = Bench::cast(&json!({
                "lead": lead,
                "work": [[read("a.txt")], "Scope: it"],
                "more": [[read("odd.txt")], "Scope: more"],
                "sibling": sibling,
                "poke": [[message("${arg}", "@@more")], "said", "heard", "heard"],
            }));
            bench.knows_agents(|agents| agents.rules.forks = true);
            bench.file("a.txt", "alpha\n");
            bench.file("odd.txt", "\u{2028}\u{7f} \"quoted\" \\ é\r\n");
            let told = bench.run("@@lead").await;
            assert_eq!(told.outcome, Some(Outcome::Completed), "{}", told.result());
            let (ids, siblings) = (started(&told, "fork"), started(&told, "general-purpose"));
            assert_eq!((ids.len(), siblings.len()), (forks + 1, 1), "{:?}", told.results());
            let mut points: Vec<&[u8]> = Vec::new();
            for id in &ids {
                let all = of_agent(&told, id);
                let first = all[0];
                let is_of_sibling = first.messages.to_string().contains("@@work:of-sibling");
                let parent = if is_of_sibling { Some(siblings[0].as_str()) } else { None };
                let of_parent = told.asked.iter().filter(|it| it.agent.as_deref() == parent);
                let sent = of_parent.into_iter().nth(steps.len()).unwrap();
                assert_eq!(first.fixed, sent.fixed);
                assert!(first.wire.starts_with(&sent.wire), "history is the parent's");
                if !is_of_sibling {
                    points.push(shared(first));
                }
                for pair in all.windows(2) {
                    assert!(pair[1].wire.starts_with(&pair[0].wire) && pair[1].fixed == pair[0].fixed);
                }
            }
            assert_eq!(points.len(), forks);
            assert!(points.windows(2).all(|pair| pair[0] == pair[1]), "forks of one point");
            // Two more processes, each of which wakes all of them.
            let mut before: Vec<Asked> =
                ids.iter().map(|id| (*of_agent(&told, id).last().unwrap()).clone()).collect();
            for _ in 0..2 {
                for (id, last) in ids.iter().zip(&mut before) {
                    let later = bench.resume(&told, &format!("@@poke:{id}")).await;
                    let woken = of_agent(&later, id);
                    assert_eq!(woken.len(), 2, "{:?}", later.results());
                    assert!(woken[0].wire.starts_with(&last.wire), "{}", woken[0].messages);
                    assert_eq!(woken[0].fixed, last.fixed);
                    *last = (*woken.last().unwrap()).clone();
                }
            }
        });
    }
}
