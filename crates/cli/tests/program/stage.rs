//! A run of the program whose model follows a scenario: who says what is in the test itself.

use std::io::{BufRead, BufReader, Read};
use std::process::Command;

use serde_json::{Value, json};

use crate::program::{Ended, Program, ended};

pub(crate) struct Stage {
    pub(crate) program: Program,
    model: String,
}

impl Stage {
    /// Each script answers the agent whose prompt names it with `@@name`.
    pub(crate) fn new(scripts: &Value) -> Self {
        let program = Program::alone();
        let path = program.scratch.root().join("scenario.json");
        std::fs::write(&path, json!({"scripts": scripts}).to_string()).unwrap();
        Self { program, model: format!("script:{}", path.display()) }
    }

    pub(crate) fn model(&self) -> &str {
        &self.model
    }

    pub(crate) fn command(&self, prompt: &str, more: &[&str]) -> Command {
        let stream = ["--output-format", "stream-json", "--verbose"];
        self.program.command([&["-p", prompt, "--model", &self.model], &stream[..], more].concat())
    }

    /// A run whose events are read.
    pub(crate) fn run(&self, prompt: &str, more: &[&str]) -> Told {
        Told::new(ended(self.command(prompt, more).output().unwrap()))
    }

    /// The transcripts of all agents but the main one, oldest name first.
    pub(crate) fn agent_transcripts(&self) -> Vec<String> {
        self.files_of_agents(".jsonl")
    }

    /// The cards of all agents but the main one, which other programs read.
    pub(crate) fn agent_cards(&self) -> Vec<Value> {
        let texts = self.files_of_agents(".meta.json").into_iter();
        texts.map(|text| serde_json::from_str(&text).unwrap()).collect()
    }

    fn files_of_agents(&self, end: &str) -> Vec<String> {
        let mut paths: Vec<_> = self
            .program
            .transcripts()
            .iter()
            .filter_map(|path| std::fs::read_dir(path.with_extension("").join("subagents")).ok())
            .flat_map(|entries| entries.flatten().map(|entry| entry.path()))
            .filter(|path| path.to_string_lossy().ends_with(end))
            .collect();
        paths.sort();
        paths.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect()
    }
}

/// Runs to the end; `act` happens when a line of the output fits.
pub(crate) fn run_and(
    command: &mut Command,
    fits: impl Fn(&str) -> bool,
    act: impl FnOnce(),
) -> Ended {
    let mut child = command.spawn().unwrap();
    let stdout = read_and(child.stdout.take().unwrap(), fits, act);
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    Ended { code: child.wait().unwrap().code(), stdout, stderr }
}

/// Runs to the end; `act` happens when a line for people fits.
pub(crate) fn watch_and(
    command: &mut Command,
    fits: impl Fn(&str) -> bool,
    act: impl FnOnce(),
) -> Ended {
    let mut child = command.spawn().unwrap();
    let stderr = read_and(child.stderr.take().unwrap(), fits, act);
    let mut stdout = String::new();
    child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
    Ended { code: child.wait().unwrap().code(), stdout, stderr }
}

fn read_and(from: impl Read, fits: impl Fn(&str) -> bool, act: impl FnOnce()) -> String {
    let mut lines = BufReader::new(from);
    let mut text = String::new();
    let mut act = Some(act);
    loop {
        let begin = text.len();
        if lines.read_line(&mut text).unwrap() == 0 {
            return text;
        }
        if fits(&text[begin..])
            && let Some(act) = act.take()
        {
            act();
        }
    }
}

/// A call for an agent.
pub(crate) fn agent(prompt: &str, more: &Value) -> Value {
    let mut input = json!({"description": "a job", "prompt": prompt});
    let fields = input.as_object_mut().unwrap();
    fields.extend(more.as_object().unwrap().clone());
    json!({"tool": "Agent", "input": input})
}

/// A call for a shell.
pub(crate) fn bash(command: &str) -> Value {
    json!({"tool": "Bash", "input": {"command": command}})
}

/// The events of a run.
pub(crate) struct Told {
    pub(crate) ended: Ended,
    pub(crate) events: Vec<Value>,
}

impl Told {
    pub(crate) fn new(ended: Ended) -> Self {
        let events = ended.events();
        Self { ended, events }
    }

    /// All events of a type; of the type `system`, those of a subtype.
    pub(crate) fn of(&self, kind: &str) -> Vec<&Value> {
        self.events
            .iter()
            .filter(|event| event["type"] == kind || event["subtype"] == kind)
            .collect()
    }

    /// The results of the main agent's calls, as data.
    pub(crate) fn data(&self) -> Vec<&Value> {
        let main = self.of("user").into_iter().filter(|event| event.get("agent_id").is_none());
        main.map(|event| &event["tool_use_result"]).collect()
    }

    pub(crate) fn assert_code(&self, code: i32) {
        assert_eq!(self.ended.code, Some(code), "{}\n{}", self.ended.stdout, self.ended.stderr);
    }
}

/// The names of an object's fields, sorted.
pub(crate) fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}
