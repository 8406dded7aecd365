//! What the transcripts of a forest say about its agents.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::Value;

use crate::stage::Stage;

/// One transcript.
pub(crate) struct Transcript {
    pub(crate) path: PathBuf,
    pub(crate) lines: Vec<Value>,
    /// The same as text.
    pub(crate) texts: Vec<String>,
}

/// All of them.
pub(crate) struct Records {
    pub(crate) lead: Option<Transcript>,
    pub(crate) agents: Vec<Transcript>,
}

impl Transcript {
    fn read(path: PathBuf) -> Self {
        let text = std::fs::read_to_string(&path).unwrap();
        // A line that was torn says nothing.
        let whole = |line: &str| Some((serde_json::from_str(line).ok()?, line.to_owned()));
        let (lines, texts) = text.lines().filter_map(whole).unzip();
        Self { path, lines, texts }
    }

    /// The notes of a kind, each with its place.
    pub(crate) fn notes<'a>(
        &'a self,
        subtype: &'a str,
    ) -> impl Iterator<Item = (usize, &'a Value)> {
        let notes =
            self.lines.iter().enumerate().filter(move |(_, line)| line["subtype"] == subtype);
        notes.map(|(at, line)| (at, &line["data"]))
    }

    pub(crate) fn spawn(&self) -> &Value {
        self.notes("agent_spawn").next().unwrap().1
    }

    pub(crate) fn id(&self) -> &str {
        self.spawn()["agentId"].as_str().unwrap()
    }

    /// How often it was set to work.
    pub(crate) fn runs(&self) -> usize {
        1 + self.notes("agent_resume").count()
    }

    /// The beginnings of its runs.
    pub(crate) fn beginnings(&self) -> impl Iterator<Item = &Value> {
        let notes = self.notes("agent_spawn").chain(self.notes("agent_resume"));
        notes.map(|(_, data)| data)
    }

    /// Who asked for a run; `None` is the lead.
    pub(crate) fn asker(&self, run: &Value) -> Option<&str> {
        let begun = self.beginnings().find(|it| it["run"] == *run).unwrap();
        begun["asker"]["agent"].as_str()
    }

    pub(crate) fn ends(&self) -> Vec<&Value> {
        self.notes("agent_end").map(|(_, data)| &data["end"]).collect()
    }

    /// The state of the agent in the words of the protocol.
    pub(crate) fn status(&self) -> &str {
        let is_running = self.ends().len() < self.runs();
        let last = self.notes("agent_end").last().filter(|_| !is_running);
        last.map_or("running", |(_, data)| data["status"].as_str().unwrap())
    }
}

impl Records {
    pub(crate) fn of(stage: &Stage) -> Self {
        let (lead, agents): (Vec<PathBuf>, Vec<PathBuf>) =
            stage.paths().into_iter().partition(|path| *path == stage.transcript());
        let lead = lead.into_iter().next().map(Transcript::read);
        let agents = agents.into_iter().map(Transcript::read);
        let has_begun = |agent: &Transcript| agent.notes("agent_spawn").next().is_some();
        Self {
            lead: lead.filter(|lead| !lead.lines.is_empty()),
            agents: agents.filter(has_begun).collect(),
        }
    }

    pub(crate) fn agent(&self, id: &str) -> Option<&Transcript> {
        self.agents.iter().find(|agent| agent.id() == id)
    }

    /// Who was told something with this id: the transcripts of others than `but`, once for each line that
    /// holds it. `None` is the lead.
    pub(crate) fn told<'a>(&'a self, id: &'a str, but: &Transcript) -> Vec<Option<&'a str>> {
        let lead = self.lead.iter().map(|lead| (None, lead));
        let agents = self.agents.iter().filter(|agent| agent.path != but.path);
        let others = lead.chain(agents.map(|agent| (Some(agent.id()), agent)));
        others
            .flat_map(|(reader, other)| {
                other.texts.iter().filter(|line| line.contains(id)).map(move |_| reader)
            })
            .collect()
    }

    /// How agents ended.
    pub(crate) fn outcomes(&self) -> BTreeSet<String> {
        let ends = self.agents.iter().flat_map(Transcript::ends);
        ends.map(|end| end["outcome"].as_str().unwrap().to_owned()).collect()
    }

    /// Everything that the files hold, to see whether anything changed.
    pub(crate) fn bytes(&self) -> Vec<&str> {
        let all = self.lead.iter().chain(&self.agents);
        all.flat_map(|it| it.texts.iter().map(String::as_str)).collect()
    }
}
