//! The cost of a session that is not open, from what its transcripts say of each answer.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

use centurion_journal::MOST_TRANSCRIPT;
use centurion_model::ModelInfo;
use centurion_protocol::{ReportedUsage, bounded};
use serde::Deserialize;

/// The most agents whose transcripts are read.
const MOST_AGENTS: usize = 500;

/// The messages and the money of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Spending {
    messages: usize,
    dollars: f64,
    agents: usize,
}

#[derive(Deserialize)]
struct CostLine<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    message: Option<CostMessage<'a>>,
}

#[derive(Deserialize)]
struct CostMessage<'a> {
    #[serde(borrow, default)]
    id: Cow<'a, str>,
    #[serde(borrow, default)]
    model: Cow<'a, str>,
    #[serde(default)]
    usage: Option<ReportedUsage>,
}

impl Spending {
    /// The messages and the money of a transcript. Blocks, so do not call it where keys are heard.
    pub(super) fn of(transcript: &Path) -> Self {
        let text = bounded::read_file(transcript, MOST_TRANSCRIPT).unwrap_or_default();
        Self::of_text(&text)
    }

    fn of_text(text: &[u8]) -> Self {
        let mut spending = Self::default();
        // An answer stands in as many records as it has blocks, and the last one has all of its usage.
        let mut answers: HashMap<String, f64> = HashMap::new();
        for line in text.split(|byte| *byte == b'\n') {
            let Ok(line) = serde_json::from_slice::<CostLine<'_>>(line) else { continue };
            if line.kind == "user" || line.kind == "assistant" {
                spending.messages += 1;
            }
            let Some(message) = line.message.filter(|_| line.kind == "assistant") else { continue };
            if let Some(usage) = &message.usage {
                let dollars = prices_of(&message.model).cost_of(usage);
                answers.insert(message.id.into_owned(), dollars);
            }
        }
        spending.dollars = answers.values().sum();
        spending
    }

    /// The same with what its agents spent.
    pub(super) fn with_agents(mut self, transcript: &Path) -> Self {
        let directory = transcript.with_extension("").join("subagents");
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        let of_agents = entries
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|it| it == "jsonl") && path.is_file());
        for path in of_agents.take(MOST_AGENTS) {
            self.dollars += Self::of(&path).dollars;
            self.agents += 1;
        }
        self
    }

    /// The money in few characters.
    pub(super) fn dollars(self) -> String {
        format!("${:.2}", self.dollars)
    }

    pub(super) fn words(self) -> String {
        let agents = match self.agents {
            0 => String::new(),
            1 => " · 1 agent".to_owned(),
            count => format!(" · {count} agents"),
        };
        format!("{} messages · {}{agents}", self.messages, self.dollars())
    }
}

/// The prices of a model by its name: of one whose prices are not known, nothing is made up.
fn prices_of(model: &str) -> ModelInfo {
    let info = if model.contains("claude") {
        ModelInfo::anthropic(model)
    } else {
        ModelInfo::openai(model, false)
    };
    if info.is_estimate { ModelInfo::openai(model, true) } else { info }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_answer_counts_once_and_agents_count_too() {
        let scratch = tempfile::tempdir().unwrap();
        let answer = |id: &str, output: u64| {
            json!({"type": "assistant", "message": {
                "id": id, "model": "claude-opus-4-5", "role": "assistant", "content": [],
                "usage": {"input_tokens": 1_000_000, "output_tokens": output},
            }})
        };
        let prompt = json!({"type": "user", "message": {"role": "user", "content": "hi"}});
        // Two blocks of one answer.
        let lines = [prompt, answer("m1", 5), answer("m1", 1_000_000), answer("m2", 0)];
        let text = lines.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n") + "\n";
        let path = scratch.path().join("s.jsonl");
        std::fs::write(&path, format!("no json\n{text}{{\"type\":\"note\"}}")).unwrap();
        let spent = Spending::of(&path);
        assert_eq!((spent.messages, spent.dollars()), (4, "$35.00".to_owned()));
        let agents = scratch.path().join("s/subagents");
        std::fs::create_dir_all(&agents).unwrap();
        std::fs::write(agents.join("agent-a1.jsonl"), format!("{}\n", answer("m9", 0))).unwrap();
        std::fs::write(agents.join("agent-a1.meta.json"), "{}").unwrap();
        assert_eq!(spent.with_agents(&path).words(), "4 messages · $40.00 · 1 agent");
        assert_eq!(Spending::of(&scratch.path().join("none")), Spending::default());
        let unknown = r#"{"type":"assistant","message":{"id":"x","model":"script:x","usage":{"input_tokens":9000000,"output_tokens":1}}}"#;
        assert_eq!(Spending::of_text(unknown.as_bytes()).dollars(), "$0.00");
    }
}
