//! What `centurion agents explain` says is what a run does: one function decides both.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use centurion_protocol::{SeededWorld, World as _};
use centurion_testkit::{Lack, skip};
use serde_json::json;

use crate::agent_stage::agent;
use crate::bench::{Bench, Watcher};
use centurion_engine::{ExplainError, Explanation, Start};

/// What the runtime would give an agent.
async fn explained(bench: &Bench, name: &str) -> Result<Explanation, ExplainError> {
    let start = Start::New(SeededWorld::new(7).session_id());
    let session = bench.open(start, None, &Arc::new(Watcher::default())).await;
    session.explain(name, false, 0).await
}

/// Starts each agent of a bench, and compares the tools of its request with what is explained.
async fn compare(bench: &mut Bench, names: &[String]) {
    for name in names {
        bench.scenario = json!({"scripts": {
            "lead": [[agent(name, "@@worker", &json!({"run_in_background": false}))], "done", "done"],
            "worker": ["a report"],
        }});
        let explained = explained(bench, name).await;
        let told = bench.run("@@lead").await;
        let asked = told.asked.iter().find(|asked| asked.agent.is_some());
        match (explained, asked) {
            (Ok(explained), Some(asked)) => {
                let sections: Vec<&str> =
                    explained.prompt_sections.iter().map(|section| section.text.as_str()).collect();
                assert_eq!(asked.tools, explained.agent.tools, "{name}");
                assert_eq!(asked.model, explained.agent.model.value, "{name}");
                assert_eq!(asked.system, sections, "{name}");
            }
            // What cannot be started is refused in the same words.
            (Err(error), None) => {
                let reason = error.to_string();
                let results = told.results();
                assert!(
                    results.iter().any(|(text, _)| text.contains(&reason)),
                    "{name}: {reason} {results:?}"
                );
            }
            (explained, asked) => panic!("{name}: {explained:?}, started: {}", asked.is_some()),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_explained_is_what_is_sent_for_every_built_in_agent() {
    let mut bench = Bench::cast(&json!({}));
    let names = ["general-purpose", "Explore", "Plan", "verification", "Bash", "statusline-setup"];
    let names: Vec<String> =
        names.into_iter().chain(["centurion-guide"]).map(str::to_owned).collect();
    bench.agent("limited", "tools: Read, Bash(git *), NoSuchTool\ndisallowedTools: Grep\n", "x");
    bench.agent("nothing", "tools: NoSuchTool\n", "x");
    compare(&mut bench, &names).await;
    let own = ["limited", "nothing"].map(str::to_owned);
    compare(&mut bench, &own).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_explained_is_what_is_sent_for_agents_that_strangers_wrote() {
    let Some(corpus) = std::env::var_os("CENTURION_CORPUS").map(PathBuf::from) else {
        return skip(Lack::Corpus);
    };
    let files = tempfile::tempdir().unwrap();
    let unpacked = Command::new("tar")
        .arg("-xzf")
        .arg(corpus.join("open.tar.gz"))
        .arg("-C")
        .arg(files.path())
        .status();
    assert!(unpacked.unwrap().success());
    let oracle = std::fs::read(corpus.join("oracle.json")).unwrap();
    let oracle: serde_json::Value = serde_json::from_slice(&oracle).unwrap();
    let mut bench = Bench::cast(&json!({}));
    let directory = bench.project().join(".claude/agents");
    std::fs::create_dir_all(&directory).unwrap();
    let entries = oracle["agents"].as_array().unwrap();
    // Spread over the whole corpus, so that many authors are among them.
    for (n, entry) in entries.iter().step_by(entries.len() / 70).enumerate() {
        let path = files.path().join("open").join(entry["path"].as_str().unwrap());
        std::fs::copy(path, directory.join(format!("{n}.md"))).unwrap();
    }
    let start = Start::New(SeededWorld::new(8).session_id());
    let session = bench.open(start, None, &Arc::new(Watcher::default())).await;
    let names: Vec<String> = session
        .handle()
        .agents()
        .iter()
        .filter(|agent| agent.definition.origin.path.starts_with(&directory as &Path))
        .map(|agent| agent.definition.name.value.clone())
        .take(50)
        .collect();
    assert_eq!(names.len(), 50);
    drop(session);
    compare(&mut bench, &names).await;
}
