//! The spending of agents of earlier processes, from their records.
//!
//! Every run was asked for by the main agent or in a run of another agent. What it spent counts for its own agent
//! and for all agents up that line, once each, as it did while it ran (`budget.rs`).

use std::collections::{HashMap, HashSet};

use centurion_model::Model;
use centurion_protocol::{AgentId, ReportedUsage};
use serde::Deserialize;

use crate::agent::task::Asker;
use crate::delegate::recall;
use crate::money::budget::Amount;
use crate::turn::internal_fork::{COMPACT_PURPOSE, NOTE};

/// One run, as its record tells.
#[derive(Clone, Debug)]
pub(crate) struct PastRun {
    pub(crate) agent: AgentId,
    pub(crate) id: String,
    pub(crate) asker: Option<Asker>,
    /// The spending of its own requests.
    pub(crate) spent: Amount,
}

/// The spending of each agent with everything below it.
pub(crate) fn by_agent(runs: &[PastRun]) -> HashMap<AgentId, Amount> {
    let by_id: HashMap<&str, &PastRun> = runs.iter().map(|run| (run.id.as_str(), run)).collect();
    let mut spent: HashMap<AgentId, Amount> = HashMap::new();
    for run in runs {
        let mut charged: HashSet<&AgentId> = HashSet::new();
        // A record that was tampered with could lead round in circles.
        let mut seen: HashSet<&str> = HashSet::new();
        let mut next = Some(run);
        while let Some(one) = next.filter(|one| seen.insert(&one.id)) {
            if charged.insert(&one.agent) {
                *spent.entry(one.agent.clone()).or_default() += run.spent;
            }
            next = one.asker.as_ref().and_then(|asker| by_id.get(asker.run.as_str()).copied());
        }
    }
    spent
}

/// The usage of the answers in a part of a transcript, summaries of the conversation included, and its cost.
pub(crate) fn of_answers(text: &[u8], model: &Model) -> (ReportedUsage, f64) {
    let (mut usage, mut dollars) = of_turns(text, model);
    for (_, note) in recall::notes::<InternalForkNote>(text, NOTE) {
        if note.data.purpose == COMPACT_PURPOSE {
            usage += &note.data.usage;
            dollars += model.info(&note.data.model).cost_of(&note.data.usage);
        }
    }
    (usage, dollars)
}

/// The usage of a request beside a conversation.
#[derive(Deserialize)]
struct InternalForkNote {
    purpose: String,
    model: String,
    usage: ReportedUsage,
}

fn of_turns(text: &[u8], model: &Model) -> (ReportedUsage, f64) {
    #[derive(Deserialize)]
    struct AnswerLine {
        #[serde(rename = "type")]
        kind: String,
        message: Option<Answer>,
    }
    #[derive(Deserialize)]
    struct Answer {
        id: Option<String>,
        model: Option<String>,
        usage: Option<ReportedUsage>,
    }
    // An answer has a line for each of its blocks, and each says what all of it consumed.
    let mut seen: HashSet<String> = HashSet::new();
    let (mut total, mut dollars) = (ReportedUsage::default(), 0.0);
    let finder = memchr::memmem::Finder::new("\"type\":\"assistant\"");
    for line in text.split(|byte| *byte == b'\n').filter(|line| finder.find(line).is_some()) {
        let line =
            serde_json::from_slice::<AnswerLine>(line).ok().filter(|it| it.kind == "assistant");
        let Some(Answer { id: Some(id), model: Some(name), usage: Some(usage) }) =
            line.and_then(|line| line.message)
        else {
            continue;
        };
        if seen.insert(id) {
            total += &usage;
            dollars += model.info(&name).cost_of(&usage);
        }
    }
    (total, dollars)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(agent: &str, id: &str, asker: Option<(&str, &str)>, tokens: u64) -> PastRun {
        let asker =
            asker.map(|(agent, run)| Asker { agent: AgentId::new(agent), run: run.to_owned() });
        let spent = Amount { dollars: 0.0, tokens };
        PastRun { agent: AgentId::new(agent), id: id.to_owned(), asker, spent }
    }

    #[test]
    fn a_run_counts_for_its_agent_and_for_all_askers_above() {
        // scenario 23, S-158
        let runs = [
            run("a", "a1", None, 100),
            run("b", "b1", Some(("a", "a1")), 10),
            // The main agent asked for this one, and `a` does not pay for it.
            run("b", "b2", None, 1),
            run("c", "c1", Some(("b", "b2")), 1000),
        ];
        let spent = by_agent(&runs);
        let of = |agent: &str| spent[&AgentId::new(agent)].tokens;
        assert_eq!((of("a"), of("b"), of("c")), (110, 1011, 1000));
    }

    #[test]
    fn a_summary_counts_for_the_run_that_needed_it_and_a_side_question_does_not() {
        // S-276
        let note = |purpose: &str, tokens: u64| {
            format!(
                "{{\"type\":\"system\",\"subtype\":\"internal_fork\",\"timestamp\":\"2026-11-17T00:00:00Z\",\"uuid\":\"00000000-0000-4000-8000-{tokens:012}\",\
                 \"data\":{{\"purpose\":\"{purpose}\",\"model\":\"claude-opus-5-5\",\"usage\":{{\"input_tokens\":{tokens}}}}}}}\n"
            )
        };
        let answer = "{\"type\":\"assistant\",\"message\":{\"id\":\"m1\",\"model\":\"claude-opus-5-5\",\"usage\":{\"input_tokens\":100}}}\n";
        let text =
            [answer.to_owned(), note("compact", 40_000), note("side_question", 7_000)].concat();
        let script = centurion_model::script::parse(r#"{"default": "x"}"#, "s.json").unwrap();
        let model = Model::with_provider(
            std::sync::Arc::new(script),
            centurion_model::ProviderKind::Script,
            "claude-opus-5-5",
            centurion_model::RetryPolicy::new(&centurion_protocol::Env::default()),
            std::sync::Arc::new(centurion_protocol::SeededWorld::new(1)),
        );
        let (usage, dollars) = of_answers(text.as_bytes(), &model);
        assert_eq!(usage.counts.total(), 40_100);
        assert!((dollars - model.info("claude-opus-5-5").cost_of(&usage)).abs() < 1e-9);
    }

    #[test]
    fn an_agent_resumed_by_its_own_child_is_charged_once() {
        let runs = [
            run("a", "a1", None, 100),
            run("b", "b1", Some(("a", "a1")), 10),
            run("a", "a2", Some(("b", "b1")), 1),
        ];
        let spent = by_agent(&runs);
        let of = |agent: &str| spent[&AgentId::new(agent)].tokens;
        assert_eq!((of("a"), of("b")), (111, 11));
        let circle = [run("a", "a1", Some(("b", "b1")), 1), run("b", "b1", Some(("a", "a1")), 1)];
        assert_eq!(by_agent(&circle)[&AgentId::new("a")].tokens, 2);
    }
}
