//! Mail among the members of a team, as the transcripts of a session tell of it: a receipt is true, and accepted mail is
//! read once, in the order of each pair.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use serde_json::Value;

use crate::program::Program;

/// The transcript of the lead or of a member.
pub(crate) struct Record {
    pub(crate) path: PathBuf,
    pub(crate) lines: Vec<Value>,
}

/// A message that a transcript has accepted.
struct Accepted<'a> {
    id: &'a str,
    from: &'a str,
    text: &'a str,
}

impl Record {
    fn read(path: PathBuf) -> Self {
        let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
        // A line that was torn says nothing.
        let lines = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        Self { path, lines }
    }

    fn accepted(&self) -> Vec<Accepted<'_>> {
        let accepted = self.lines.iter().filter_map(|line| {
            let (id, from, text) = match line["type"].as_str()? {
                "queue-operation" => {
                    (&line["queueItem"], &line["origin"]["from"], &line["content"])
                }
                "system" if line["subtype"] == "agent_resume" => {
                    let data = &line["data"];
                    (&data["item"], &data["from"], &data["prompt"])
                }
                _ => return None,
            };
            Some(Accepted { id: id.as_str()?, from: from.as_str()?, text: text.as_str()? })
        });
        accepted.collect()
    }

    /// The messages that the conversation contains, in order.
    fn taken_up(&self) -> Vec<&str> {
        let is_read = |line: &&Value| line["type"] == "user" && line["origin"]["kind"] == "peer";
        let read = self.lines.iter().filter(is_read);
        read.map(|line| line["queueItem"].as_str().unwrap()).collect()
    }

    /// The number of messages that were accepted.
    pub(crate) fn count(&self) -> usize {
        self.accepted().len()
    }

    /// The number of messages that were accepted and are not read.
    pub(crate) fn waiting(&self) -> usize {
        self.accepted().len() - self.taken_up().len()
    }

    /// The calls that have no result, and those that have two.
    pub(crate) fn calls_without_one_result(&self) -> Vec<String> {
        let blocks = || self.lines.iter().filter_map(|line| line["message"]["content"].as_array());
        let ids = |kind: &str, field: &str| -> Vec<&str> {
            let found = blocks().flatten().filter(|block| block["type"] == kind);
            found.filter_map(|block| block[field].as_str()).collect()
        };
        let results = ids("tool_result", "tool_use_id");
        let mut times: HashMap<&str, usize> = HashMap::new();
        for call in results {
            *times.entry(call).or_default() += 1;
        }
        let calls = ids("tool_use", "id").into_iter();
        let calls = calls.map(|call| (call, times.get(call).copied().unwrap_or_default()));
        let wrong = calls.filter(|(_, times)| *times != 1);
        wrong.map(|(call, times)| format!("{call} has {times} results")).collect()
    }

    /// Names the events of the agent, in one word each: structured messages that it got, resumes and ends.
    fn happened(&self) -> impl Iterator<Item = String> {
        let what = |line: &Value| -> Option<String> {
            let frame = &line["origin"]["team"]["frame"]["type"];
            let what = match line["subtype"].as_str() {
                Some("agent_resume") => "resumed",
                Some("agent_end") => match line["data"]["end"]["outcome"].as_str()? {
                    "completed" => "idle",
                    "interrupted" => "interrupted",
                    _ => "failed",
                },
                _ => frame.as_str()?,
            };
            Some(what.to_owned())
        };
        self.lines.iter().filter_map(what)
    }

    /// The number of messages that it accepted and read, and of its runs.
    pub(crate) fn state(&self) -> (PathBuf, usize, usize, usize) {
        let runs = self.lines.iter().filter(|line| line["subtype"] == "agent_resume").count();
        (self.path.clone(), self.count(), self.taken_up().len(), runs)
    }

    /// The name of the member; `None` is the lead.
    pub(crate) fn name(&self) -> Option<&str> {
        let spawn = self.lines.iter().find(|line| line["subtype"] == "agent_spawn")?;
        spawn["data"]["spec"]["name"].as_str().or_else(|| spawn["data"]["name"].as_str())
    }

    /// The part of the program, or the person, that stopped it at each of its ends.
    pub(crate) fn stoppers(&self) -> Vec<&Value> {
        let ends = self.lines.iter().filter(|line| line["subtype"] == "agent_end");
        ends.map(|line| &line["data"]["end"]["stoppedBy"]).collect()
    }

    /// The ids of the news of its ends.
    fn ends(&self) -> impl Iterator<Item = &str> {
        let ends = self.lines.iter().filter(|line| line["subtype"] == "agent_end");
        ends.filter_map(|line| line["data"]["end"]["notification"].as_str())
    }
}

/// All transcripts of the one session of a program, the lead's first.
pub(crate) fn records(program: &Program) -> Vec<Record> {
    let Some(lead) = program.transcripts().into_iter().next() else { return Vec::new() };
    let members = std::fs::read_dir(lead.with_extension("").join("subagents"));
    let members = members.into_iter().flatten().flatten().map(|entry| entry.path());
    let mut members: Vec<PathBuf> =
        members.filter(|path| path.extension().is_some_and(|it| it == "jsonl")).collect();
    members.sort();
    std::iter::once(lead).chain(members).map(Record::read).collect()
}

/// Names the events of all of them.
pub(crate) fn happened(records: &[Record]) -> impl Iterator<Item = String> {
    records.iter().flat_map(Record::happened)
}

/// Accepted mail is in one transcript once; it is read at most once, in the order in which it came, and
/// each sender's messages come in the order in which they were sent.
pub(crate) fn holds(records: &[Record], when: &str) {
    let mut places: HashMap<&str, usize> = HashMap::new();
    for record in records {
        let path = record.path.display();
        let accepted = record.accepted();
        let ids: Vec<&str> = accepted.iter().map(|mail| mail.id).collect();
        let read = record.taken_up();
        assert!(ids.starts_with(&read), "{when}: {path} read {read:?} of {ids:?}");
        let unique: HashSet<&&str> = ids.iter().collect();
        assert_eq!(unique.len(), ids.len(), "{when}: {path} accepted {ids:?}");
        let mut last: HashMap<&str, u64> = HashMap::new();
        for mail in accepted {
            *places.entry(mail.id).or_default() += 1;
            let Some((_, rest)) = mail.text.split_once("message <") else { continue };
            let number = rest.split_once('>').unwrap().0.parse().unwrap();
            let before = last.insert(mail.from, number).unwrap_or_default();
            assert!(before < number, "{when}: {path}: {number} of {} after {before}", mail.from);
        }
    }
    for receipt in records.iter().flat_map(receipts) {
        let id = receipt["msg_id"].as_str().unwrap();
        assert_eq!(places.get(id), Some(&1), "{when}: {receipt}");
    }
}

/// No end of a member is told to the lead twice.
pub(crate) fn ends_are_told_once(records: &[Record], when: &str) {
    let [lead, members @ ..] = records else { return };
    let told = lead.lines.iter().filter(|line| line["type"] == "user");
    let told: Vec<&str> = told.filter_map(|line| line["queueItem"].as_str()).collect();
    for id in members.iter().flat_map(Record::ends) {
        let times = told.iter().filter(|it| **it == id).count();
        assert!(times <= 1, "{when}: the end {id} was told {times} times");
    }
}

/// The receipts of a transcript that say that a message will be read.
fn receipts(record: &Record) -> Vec<&Value> {
    let results = record.lines.iter().map(|line| &line["toolUseResult"]);
    let single = results.flat_map(|data| {
        let many = data["recipients"].as_array();
        many.map_or_else(|| vec![data], |many| many.iter().collect())
    });
    single.filter(|data| data["success"] == true && data["msg_id"].is_string()).collect()
}
