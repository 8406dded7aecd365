//! Reading a transcript back into a conversation that a provider accepts.
//!
//! Files come from us, from other programs that write the same layout, and from processes that were
//! killed in the middle of anything: torn and broken lines are passed over, calls without results get an
//! `interrupted` result, results without calls are dropped. Whatever the bytes, the outcome is a valid
//! history. The last message may have calls that wait for results: those are the caller's to answer, so
//! that the answers get into the file as well. Where only some of them wait, they are answered here and named,
//! and the caller records the answers.

mod boundary;
mod dropped;
mod history;
mod standing;
mod used_skills;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use centurion_protocol::transcript::{LineKind, LineView, TITLE_FIELD};
use centurion_protocol::{
    Block, Conversation, Message, RecordId, Role, ToolResult, ToolUse, ToolUseId,
};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

pub use self::dropped::{NotOneTurn, check_one_turn};
use self::history::History;
pub use self::standing::{KeptRecord, SESSION_CONTEXT, Standing, TASK_ORIGIN};
pub use self::used_skills::{SKILL_USED, UsedSkill, used_skills};
use super::round::Round;

/// The result of a call whose program ended before the result was recorded.
pub const INTERRUPTED: &str = "The program ended before this call's result was recorded. It may have \
     taken effect in part, in full or not at all: check before you repeat it.";

/// The content of a transcript.
#[derive(Debug, Default)]
pub struct Loaded {
    pub conversation: Conversation,
    /// The record that the next one follows.
    pub last: Option<RecordId>,
    /// The newest round, for the journal that continues writing.
    pub round: Round,
    /// The records that stay in the conversation at every compaction.
    pub standing: Standing,
    /// The tokens left out at all boundaries together.
    pub dropped_tokens: u64,
    /// The agent's last list of things to do.
    pub todos: Option<Value>,
    /// The plan that was approved last.
    pub plan: Option<String>,
    /// The plans that were put to the lead of a team since, in their order.
    pub proposed_plans: Vec<ProposedPlan>,
    /// The model of the last answer.
    pub model: Option<String>,
    /// The provider's count for the last answer, and our own estimate at that point.
    pub counted: Option<(u64, usize)>,
    /// Results that tell which content of a file the agent has seen, oldest first.
    pub seen_files: Vec<Value>,
    /// The skills whose texts are in the conversation.
    pub told_skills: Vec<UsedSkill>,
    /// Calls of the last answer whose results the transcript lacks, although it has results of others: the conversation
    /// has `interrupted` results for them. They are the caller's to record.
    pub interrupted: Vec<ToolUseId>,
    /// The call that a hook had deferred when the session last ended.
    pub deferred: Option<ToolUse>,
    /// Whether the provider refused the conversation as it is.
    pub is_refused: bool,
    /// The agent that the session ran as.
    pub agent: Option<String>,
    /// The latest name of the session.
    pub title: Option<String>,
    /// Lines that could not be read.
    pub broken_lines: usize,
}

/// The subtype of the note about a deferred call.
pub const DEFERRED: &str = "tool_deferred";
/// The subtype of the note about a conversation that its provider refused.
pub const REFUSED: &str = "conversation_refused";
/// The subtype of the note about the agent that a session runs as.
pub const MAIN_AGENT: &str = "main_agent";

/// Reads a whole transcript. Never fails: what cannot be read is left out and counted.
pub fn load(text: &[u8]) -> Loaded {
    let mut loaded = load_chain(&InheritedConversation::default(), text, false);
    loaded.deferred = deferred(text, loaded.conversation.open_calls());
    loaded.is_refused = is_refused(text);
    loaded
}

/// Reads the transcript of an agent that another one started: all its lines stand beside the main chain.
pub fn load_agent(text: &[u8]) -> Loaded {
    load_chain(&InheritedConversation::default(), text, true)
}

/// The beginning of an agent that started with another agent's conversation.
#[derive(Debug, Default)]
pub struct InheritedConversation {
    pub conversation: Conversation,
    /// The number of blocks of its first message that other agents share.
    pub shared_blocks: usize,
}

/// Reads the transcript of an agent behind the conversation that it was started with.
pub fn load_behind(inherited: &InheritedConversation, text: &[u8]) -> Loaded {
    load_chain(inherited, text, true)
}

/// The part of a transcript that ends with a record; `None` if that record is not in it.
pub fn until(text: &[u8], record: RecordId) -> Option<&[u8]> {
    // The id also stands in the record that follows, under another key. Text inside a record has its quotes escaped.
    let at = memchr::memmem::find(text, format!("\"uuid\":\"{record}\"").as_bytes())?;
    let end = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |end| at + end + 1);
    Some(&text[..end])
}

/// Tells whether a part of a transcript has a record of a conversation.
pub(crate) fn has_conversation(text: &[u8]) -> bool {
    lines(text).filter_map(parse).any(|view| is_conversation(&view))
}

/// The last words of a transcript's agent.
pub fn last_words(text: &[u8]) -> Option<String> {
    let conversation = load_agent(text).conversation;
    let said = |message: &Message| {
        let texts = message.blocks().into_iter().filter_map(|block| match block {
            Block::Text(text) if message.role() == Role::Assistant => Some(text),
            _ => None,
        });
        Some(texts.collect::<Vec<_>>().join("\n")).filter(|text| !text.trim().is_empty())
    };
    conversation.iter().filter_map(said).last()
}

fn load_chain(inherited: &InheritedConversation, text: &[u8], is_side: bool) -> Loaded {
    let told_skills = used_skills::told_skills(text, is_side);
    Loaded { told_skills, ..load_conversation(inherited, text, is_side) }
}

fn load_conversation(inherited: &InheritedConversation, text: &[u8], is_side: bool) -> Loaded {
    let history = || History::behind(inherited, text);
    // Messages before the last boundary are not sent any more.
    let start = boundary::last(text, is_side).unwrap_or(0);
    let Some(mut loaded) = load_straight(history(), &text[start..], is_side) else {
        return load_branch(history(), text, is_side);
    };
    if start > 0 {
        let before = &text[..start];
        loaded.title = loaded.title.or_else(|| last_title(before));
        loaded.agent = loaded.agent.or_else(|| last_agent(before));
        loaded.todos = loaded.todos.or_else(|| last_todos(before));
        let later = std::mem::take(&mut loaded.seen_files);
        loaded.seen_files = seen_files(before);
        loaded.seen_files.extend(later);
    }
    loaded
}

/// The facts about files in the results of a part of a transcript.
fn seen_files(text: &[u8]) -> Vec<Value> {
    let field = memchr::memmem::Finder::new(SEEN_FILE);
    let views = lines(text).filter(|line| field.find(line).is_some()).filter_map(parse);
    views.filter_map(|view| seen_file(&view)).collect()
}

/// The last name that a part of a transcript gives its session.
pub fn last_title(text: &[u8]) -> Option<String> {
    let read = |at: usize| parse(line_around(text, at))?.title().map(str::to_owned);
    places(text, TITLE_FIELD.as_bytes()).into_iter().rev().find_map(read)
}

/// The last list of things to do that was recorded.
fn last_todos(text: &[u8]) -> Option<Value> {
    let read = |at: usize| todos(parse(line_around(text, at))?.tool_use_result?);
    places(text, TODOS.as_bytes()).into_iter().rev().find_map(read)
}

/// The field of a result that holds a list of things to do.
const TODOS: &str = "\"newTodos\"";

fn todos(result: &RawValue) -> Option<Value> {
    let mut data: Value = serde_json::from_str(result.get()).ok()?;
    data.get_mut("newTodos").map(Value::take)
}

/// The field of a result that holds a plan.
const PLAN: &str = "\"plan\"";

/// A plan that waits for the lead of a team.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProposedPlan {
    /// The request that the lead answers.
    pub request: Option<String>,
    pub text: String,
}

/// A plan that an agent put to others.
enum PlanView {
    Approved(String),
    Proposed(ProposedPlan),
}

fn plan(result: &RawValue) -> Option<PlanView> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Data {
        plan: String,
        #[serde(default)]
        awaiting_leader_approval: bool,
        request_id: Option<String>,
    }
    let data: Data = serde_json::from_str(result.get()).ok()?;
    Some(if data.awaiting_leader_approval {
        PlanView::Proposed(ProposedPlan { request: data.request_id, text: data.plan })
    } else {
        PlanView::Approved(data.plan)
    })
}

/// The field of a result that tells which content of a file the agent has seen.
const SEEN_FILE: &str = "\"contentHash\"";

fn seen_file(view: &LineView<'_>) -> Option<Value> {
    let data = view.tool_use_result.filter(|data| has_field(data, SEEN_FILE))?;
    serde_json::from_str::<Value>(data.get()).ok().map(without_content)
}

/// Whether a field is somewhere in a result. Most results are long and have none of the fields that are looked for.
/// The facts of a result about a file, without the text of the file.
fn without_content(mut data: Value) -> Value {
    if let Some(file) = data.get_mut("file").and_then(Value::as_object_mut) {
        file.shift_remove("content");
    }
    data
}

fn has_field(result: &RawValue, field: &str) -> bool {
    memchr::memmem::find(result.get().as_bytes(), field.as_bytes()).is_some()
}

/// The agent that the session ran as when it last began.
fn last_agent(text: &[u8]) -> Option<String> {
    let mark = format!("\"subtype\":\"{MAIN_AGENT}\"");
    let read = |at: usize| agent(&parse(line_around(text, at))?);
    places(text, mark.as_bytes()).into_iter().rev().find_map(read)
}

/// The agent that a line says the session runs as.
fn agent(view: &LineView<'_>) -> Option<String> {
    #[derive(Deserialize)]
    struct Noted {
        agent: String,
    }
    view.note::<Noted>(MAIN_AGENT).map(|noted| noted.agent)
}

/// The offsets of a text. A search from the front is so much faster than one from the end that it may pass over
/// everything.
fn places(text: &[u8], wanted: &[u8]) -> Vec<usize> {
    memchr::memmem::find_iter(text, wanted).collect()
}

/// The line that a place is in.
fn line_around(text: &[u8], at: usize) -> &[u8] {
    let start = memchr::memrchr(b'\n', &text[..at]).map_or(0, |end| end + 1);
    let end = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |end| at + end);
    &text[start..end]
}

/// The call that waits for its result because it was put off. Looked for from the end, and only where a call
/// waits at all.
fn deferred(text: &[u8], open: &[ToolUseId]) -> Option<ToolUse> {
    #[derive(Deserialize)]
    struct Note<'a> {
        subtype: Cow<'a, str>,
        #[serde(borrow)]
        data: Deferred<'a>,
    }
    #[derive(Deserialize)]
    struct Deferred<'a> {
        tool_use_id: ToolUseId,
        name: String,
        #[serde(borrow)]
        input: &'a RawValue,
    }
    let [waits] = open else { return None };
    let at = memchr::memmem::rfind(text, DEFERRED.as_bytes())?;
    let line = std::str::from_utf8(line_around(text, at)).ok()?;
    let note: Note<'_> = serde_json::from_str(line).ok()?;
    let Deferred { tool_use_id: id, name, input } = note.data;
    let is_it = note.subtype == DEFERRED && id == *waits;
    is_it.then(|| ToolUse { id, name, input: input.to_owned() })
}

/// Whether the provider refused the conversation, and neither an answer nor a boundary came since.
fn is_refused(text: &[u8]) -> bool {
    let mark = format!("\"subtype\":\"{REFUSED}\"");
    let is_it = |at: &usize| {
        let line = parse(line_around(text, *at));
        line.is_some_and(|view| view.note::<serde::de::IgnoredAny>(REFUSED).is_some())
    };
    let Some(at) = places(text, mark.as_bytes()).into_iter().rev().find(is_it) else {
        return false;
    };
    let cures = |view: &LineView<'_>| view.kind == LineKind::Assistant || view.is_boundary();
    !lines(&text[at..]).filter_map(parse).any(|view| cures(&view))
}

/// Nearly all transcripts are one straight line of records; `None` for one that is not.
fn load_straight<'a>(mut history: History<'a>, text: &'a [u8], is_side: bool) -> Option<Loaded> {
    for line in lines(text) {
        match parse(line) {
            Some(view) if view.is_sidechain == is_side && is_conversation(&view) => {
                if history.loaded.last.is_some() && view.parent_uuid != history.loaded.last {
                    return None;
                }
                history.take(&view);
            }
            Some(view) => history.take_note(&view),
            None => history.loaded.broken_lines += 1,
        }
    }
    Some(history.finish())
}

/// Reads the branch that ends in the last record of the conversation.
fn load_branch<'a>(mut history: History<'a>, text: &'a [u8], is_side: bool) -> Loaded {
    let views: Vec<Option<LineView<'_>>> = lines(text).map(parse).collect();
    history.loaded.broken_lines = views.iter().filter(|view| view.is_none()).count();
    let title = views.iter().rev().flatten().find_map(LineView::title);
    history.loaded.title = title.map(str::to_owned);
    history.loaded.agent = views.iter().rev().flatten().find_map(agent);
    let records = views.into_iter().flatten().filter(|view| view.is_sidechain == is_side);
    let records = boundary::without_torn(records.collect());
    // To-do lists and files of other branches do not belong to this one.
    for index in branch(&records) {
        history.take(&records[index]);
    }
    history.finish()
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let ends = memchr::memchr_iter(b'\n', text).chain([text.len()]);
    let mut start = 0;
    ends.map(move |end| {
        let line = &text[start.min(end)..end];
        start = end + 1;
        line
    })
    .filter(|line| !line.trim_ascii().is_empty())
}

fn parse(line: &[u8]) -> Option<LineView<'_>> {
    // Bytes that are no UTF-8 can only stand in a line that is damaged.
    serde_json::from_str(std::str::from_utf8(line).ok()?).ok()
}

fn is_conversation(view: &LineView<'_>) -> bool {
    view.kind != LineKind::Other || view.is_boundary()
}

/// The places of the records on the branch of the last one, oldest first.
fn branch(records: &[LineView<'_>]) -> Vec<usize> {
    let by_id: HashMap<RecordId, usize> =
        records.iter().enumerate().filter_map(|(at, view)| Some((view.uuid?, at))).collect();
    let before = |at: usize| records[..at].iter().rposition(is_conversation);
    let mut branch = Vec::new();
    let mut seen = HashSet::new();
    let mut next = before(records.len());
    while let Some(at) = next {
        if !seen.insert(at) {
            break;
        }
        if is_conversation(&records[at]) {
            branch.push(at);
        }
        next = match records[at].parent_uuid {
            None => None,
            // If the parent is a line that cannot be read, the record before it is the best guess.
            Some(parent) => by_id.get(&parent).copied().or_else(|| before(at)),
        };
    }
    branch.reverse();
    branch
}

/// The result of a call whose end was not recorded.
pub fn interrupted(id: &ToolUseId) -> Block {
    Block::ToolResult(ToolResult::error(id.clone(), INTERRUPTED))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A transcript of `(type, message)` pairs, chained in order.
    fn transcript(records: &[(&str, &str)]) -> String {
        let id = |n: usize| format!("\"00000000-0000-4000-8000-{n:012}\"");
        let line = |(n, (kind, message)): (usize, &(&str, &str))| {
            let parent = if n == 0 { "null".into() } else { id(n - 1) };
            let uuid = id(n);
            let head = format!(r#"{{"type":"{kind}","uuid":{uuid},"parentUuid":{parent}"#);
            format!(r#"{head},"isSidechain":false,"message":{message}}}"#) + "\n"
        };
        records.iter().enumerate().map(line).collect::<Vec<_>>().concat()
    }

    const PROMPT: (&str, &str) = ("user", r#"{"role":"user","content":"do it"}"#);
    const THOUGHT: (&str, &str) = (
        "assistant",
        r#"{"id":"m1","model":"m","content":[{"type":"thinking","thinking":"x","signature":"s"}]}"#,
    );
    const CALL_A: (&str, &str) = (
        "assistant",
        r#"{"id":"m1","model":"m","content":[{"type":"tool_use","id":"a","name":"Bash","input":{}}]}"#,
    );
    const CALL_B: (&str, &str) = (
        "assistant",
        r#"{"id":"m1","model":"m","content":[{"type":"tool_use","id":"b","name":"Bash","input":{}}]}"#,
    );
    const RESULT_A: (&str, &str) = (
        "user",
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"A"}]}"#,
    );
    const RESULT_B: (&str, &str) = (
        "user",
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"b","content":"B"}]}"#,
    );
    const DONE: (&str, &str) =
        ("assistant", r#"{"id":"m2","model":"m","content":[{"type":"text","text":"done"}]}"#);

    fn wire(loaded: &Loaded) -> Vec<String> {
        let text = |message: &Message| String::from_utf8(message.wire()[1..].to_vec()).unwrap();
        loaded.conversation.iter().map(text).collect()
    }

    #[test]
    fn blocks_of_one_answer_and_results_of_one_round_are_one_message() {
        let loaded =
            load(transcript(&[PROMPT, CALL_A, CALL_B, RESULT_B, RESULT_A, DONE]).as_bytes());
        let wire = wire(&loaded);
        assert_eq!(wire.len(), 4);
        assert!(wire[1].contains(r#""id":"a""#) && wire[1].contains(r#""id":"b""#));
        let (a, b) = (wire[2].find("\"A\"").unwrap(), wire[2].find("\"B\"").unwrap());
        assert!(a < b, "results stand in the order of the calls");
        assert_eq!(loaded.broken_lines, 0);
    }

    /// A record with its parent and more fields; numbers stand for ids.
    fn record(number: u32, parent: Option<u32>, more: &str) -> String {
        let id = |number: u32| format!("\"00000000-0000-4000-8000-{number:012}\"");
        let parent = parent.map_or("null".to_owned(), id);
        format!(
            "{{\"uuid\":{},\"parentUuid\":{parent},\"isSidechain\":false,{more}}}\n",
            id(number)
        )
    }

    #[test]
    fn the_list_of_things_to_do_is_that_of_the_branch() {
        let says =
            |text: &str| format!(r#""type":"user","message":{{"role":"user","content":"{text}"}}"#);
        let lists = |word: &str| {
            format!(r#"{},"toolUseResult":{{"oldTodos":[],"newTodos":["{word}"]}}"#, says("listed"))
        };
        let boundary = |todos: &str| {
            format!(
                r#""type":"system","subtype":"compact_boundary","compactMetadata":{{"trigger":"auto"{todos}}}"#
            )
        };
        let list = |lines: &[String]| load(lines.concat().as_bytes()).todos;
        let first = [record(1, None, &says("go")), record(2, Some(1), &lists("ONE"))];
        assert_eq!(list(&first), Some(serde_json::json!(["ONE"])));
        // A list on an abandoned branch does not count.
        let left = [&first[..], &[record(3, Some(1), &says("again"))]].concat();
        assert_eq!(list(&left), None);
        // Nor behind a compaction of the other one.
        let compacted = |todos: &str| {
            let end = [record(4, None, &boundary(todos)), record(5, Some(4), &says("on"))];
            [&left[..], &end].concat()
        };
        assert_eq!(list(&compacted(r#","todos":[]"#)), Some(serde_json::json!([])));
        assert_eq!(list(&compacted(r#","todos":["TWO"]"#)), Some(serde_json::json!(["TWO"])));
        // One that does not say what there was to do leaves a guess.
        assert_eq!(list(&compacted("")), Some(serde_json::json!(["ONE"])));
        // A branch behind a compaction has the list from there.
        let mut branched = compacted(r#","todos":["TWO"]"#);
        branched.extend([record(6, Some(5), &lists("THREE")), record(7, Some(5), &says("back"))]);
        assert_eq!(list(&branched), Some(serde_json::json!(["TWO"])));
        branched.push(record(8, Some(7), &lists("FOUR")));
        assert_eq!(list(&branched), Some(serde_json::json!(["FOUR"])));
    }

    #[test]
    fn the_agent_is_the_last_one_that_was_noted() {
        let says = r#""type":"user","message":{"role":"user","content":"go"}"#;
        let runs_as = |agent: &str| {
            format!(r#""type":"system","subtype":"main_agent","data":{{"agent":"{agent}"}}"#)
        };
        let boundary =
            r#""type":"system","subtype":"compact_boundary","compactMetadata":{"trigger":"auto"}"#;
        let agent = |lines: &[String]| load(lines.concat().as_bytes()).agent;
        let mut lines = vec![record(1, None, says), record(2, Some(1), &runs_as("one"))];
        assert_eq!(agent(&lines).as_deref(), Some("one"));
        let branched = [&lines[..], &[record(3, None, says)]].concat();
        assert_eq!(agent(&branched).as_deref(), Some("one"));
        lines.extend([record(4, None, boundary), record(5, Some(4), says)]);
        assert_eq!(agent(&lines).as_deref(), Some("one"), "also from before a boundary");
        lines.push(record(6, Some(5), &runs_as("two")));
        assert_eq!(agent(&lines).as_deref(), Some("two"));
        assert_eq!(agent(&lines[..1]), None);
    }

    #[test]
    fn a_refusal_counts_until_an_answer_or_a_boundary_comes() {
        let says = r#""type":"user","message":{"role":"user","content":"go"}"#;
        let quotes = r#""type":"user","message":{"role":"user","content":"\"subtype\":\"conversation_refused\""}"#;
        let refused = r#""type":"system","subtype":"conversation_refused","data":{"reason":"no"}"#;
        let answers =
            r#""type":"assistant","message":{"id":"m","content":[{"type":"text","text":"ok"}]}"#;
        let boundary =
            r#""type":"system","subtype":"compact_boundary","compactMetadata":{"trigger":"auto"}"#;
        for (lines, expected) in [
            (&[says, quotes][..], false),
            (&[says, refused][..], true),
            (&[says, refused, quotes][..], true),
            (&[says, refused, says, answers][..], false),
            (&[says, refused, boundary][..], false),
            (&[says, refused, answers, says, refused][..], true),
        ] {
            let line = |(n, more): (u32, &&str)| record(n + 1, (n > 0).then_some(n), more);
            let text: String = (0..).zip(lines).map(line).collect();
            assert_eq!(load(text.as_bytes()).is_refused, expected, "{text}");
        }
    }

    #[test]
    fn unsigned_thinking_is_not_sent() {
        let unsigned = THOUGHT.1.replace(r#","signature":"s""#, "");
        for thought in [&unsigned, &THOUGHT.1.replace(r#":"s""#, r#":"""#)] {
            let thought = ("assistant", thought.as_str());
            let loaded = load(transcript(&[PROMPT, thought, CALL_A, RESULT_A, DONE]).as_bytes());
            assert_eq!(wire(&loaded).len(), 4, "{:?}", wire(&loaded));
            assert!(!wire(&loaded).concat().contains("thinking"), "{:?}", wire(&loaded));
        }
        let signed = load(transcript(&[PROMPT, THOUGHT, CALL_A, RESULT_A]).as_bytes());
        assert!(wire(&signed)[1].contains("thinking"));
    }

    #[test]
    fn a_text_that_is_none_is_left_out() {
        for text in ["", r#","text":null"#, r#","text":5"#, r#","text":" \n""#] {
            let content = format!(r#"{{"id":"m2","content":[{{"type":"text"{text}}},7]}}"#);
            let loaded = load(transcript(&[PROMPT, ("assistant", &content), DONE]).as_bytes());
            assert_eq!(wire(&loaded).len(), 2, "{text}");
            assert!(
                wire(&loaded)[1].contains("done") && wire(&loaded)[1].matches("text").count() == 2
            );
        }
    }

    #[test]
    fn unanswered_calls_get_an_interrupted_result() {
        let middle = load(transcript(&[PROMPT, CALL_A, CALL_B, RESULT_A, DONE]).as_bytes());
        assert!(wire(&middle)[2].contains("check before you repeat it"));
        assert!(middle.conversation.open_calls().is_empty());
        assert_eq!(middle.interrupted, []);
        let end = load(transcript(&[PROMPT, CALL_A]).as_bytes());
        assert_eq!(end.conversation.open_calls(), [ToolUseId::new("a")]);
        assert_eq!(end.interrupted, []);
    }

    #[test]
    fn calls_that_wait_beside_answered_ones_are_named_until_their_results_are_recorded() {
        // As this program writes it.
        let result =
            r#"{"role":"user","content":[{"tool_use_id":"a","type":"tool_result","content":"A"}]}"#;
        let cut = [PROMPT, CALL_A, CALL_B, ("user", result)];
        let loaded = load(transcript(&cut).as_bytes());
        assert_eq!(loaded.interrupted, [ToolUseId::new("b")]);
        let told = wire(&loaded).concat();
        let block = serde_json::to_string(&interrupted(&ToolUseId::new("b"))).unwrap();
        let recorded = format!(r#"{{"role":"user","content":[{block}]}}"#);
        let whole =
            load(transcript(&[&cut[..], &[("user", recorded.as_str())]].concat()).as_bytes());
        assert_eq!(whole.interrupted, []);
        assert_eq!(wire(&whole).concat(), told, "the conversation has the same bytes");
        // Results stand before everything else in their message: behind a text it is too late.
        let text = r#"{"role":"user","content":"and now?"}"#;
        let later = load(transcript(&[&cut[..], &[("user", text)]].concat()).as_bytes());
        assert_eq!(later.interrupted, []);
    }

    #[test]
    fn stray_results_and_answers_without_words_are_dropped() {
        let stray = load(transcript(&[PROMPT, RESULT_A, DONE]).as_bytes());
        assert_eq!(wire(&stray).len(), 2);
        assert!(!wire(&stray)[0].contains("tool_result"));
        let cut_off = load(transcript(&[PROMPT, THOUGHT]).as_bytes());
        assert_eq!(wire(&cut_off).len(), 1);
        let starts_wrong = load(transcript(&[DONE, PROMPT]).as_bytes());
        assert_eq!(wire(&starts_wrong).len(), 1);
    }

    #[test]
    fn only_models_call_and_only_users_answer() {
        let broken = CALL_A.1.replace("input", "in#ut");
        for kind in ["user", "assistant"] {
            let loaded = load(transcript(&[PROMPT, (kind, &broken), DONE]).as_bytes());
            assert!(
                !wire(&loaded).concat().contains("tool_use"),
                "a call without an input is none"
            );
        }
        let wrong_call = ("user", CALL_A.1);
        let wrong_answer = ("assistant", RESULT_A.1);
        let loaded = load(transcript(&[PROMPT, wrong_call, DONE, wrong_answer]).as_bytes());
        assert_eq!(wire(&loaded).len(), 2);
        assert!(!wire(&loaded).concat().contains("tool_"));
    }

    #[test]
    fn torn_and_foreign_lines_are_passed_over() {
        let mut text = transcript(&[PROMPT, CALL_A, RESULT_A]);
        text.insert_str(0, "{\"type\":\"api-request-blob\",\"hash\":\"x\"}\nnot json\n");
        text.push_str("{\"type\":\"assistant\",\"mess");
        let loaded = load(text.as_bytes());
        assert_eq!((wire(&loaded).len(), loaded.broken_lines), (3, 2));
    }

    #[test]
    fn one_unreadable_line_does_not_cost_what_was_before_it() {
        let text = transcript(&[PROMPT, CALL_A, RESULT_A, DONE]);
        let mut lines: Vec<&str> = text.lines().collect();
        lines[2] = "{\"type\":\"user\",\"uuid\":\"00000000-0000-4000-8000-000000000002\",\"mes";
        let loaded = load(lines.join("\n").as_bytes());
        assert_eq!((wire(&loaded).len(), loaded.broken_lines), (4, 1));
        assert!(wire(&loaded)[2].contains("check before you repeat it"));
    }

    #[test]
    fn only_the_branch_of_the_last_record_counts() {
        let mut text = transcript(&[PROMPT, DONE]);
        text.push_str(
            r#"{"type":"user","uuid":"00000000-0000-4000-8000-0000000000ff","parentUuid":null,"message":{"role":"user","content":"other"}}"#,
        );
        let loaded = load(text.as_bytes());
        assert_eq!(wire(&loaded).len(), 1);
        assert!(wire(&loaded)[0].contains("other"));
    }

    proptest::proptest! {
        #[test]
        fn any_order_of_records_gives_a_history_a_provider_accepts(
            picks in proptest::collection::vec(0_usize..7, 0..24),
            cut in 0_usize..4000,
        ) {
            let records = [PROMPT, THOUGHT, CALL_A, CALL_B, RESULT_A, RESULT_B, DONE];
            let picked: Vec<_> = picks.into_iter().map(|n| records[n]).collect();
            let text = transcript(&picked);
            let text = &text.as_bytes()[..cut.min(text.len())];
            let loaded = load(text);
            let mut again = Conversation::default();
            for message in loaded.conversation.iter() {
                again.push(message.clone()).unwrap();
            }
        }
    }
}
