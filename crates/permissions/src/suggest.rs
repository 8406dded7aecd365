//! Suggestions for a person who is asked: answers that avoid the same question later.

use std::path::PathBuf;

use serde::Serialize;
use url::Url;

use crate::access::Access;
use crate::decide::{Verdict, decide};
use crate::mode::Mode;
use crate::paths::is_inside;
use crate::policy::{Call, Policy};
use crate::query::Query;
use crate::reason::Reason;
use crate::shell_verdict::grants;

/// The most rules for one line; a line that needs more gets no suggestion.
const MOST_RULES: usize = 5;

/// A change to the permissions, in the shape of the public protocol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum Suggestion {
    AddRules {
        rules: Vec<SuggestedRule>,
        /// Always `allow`: a question never suggests more questions.
        behavior: &'static str,
        destination: Destination,
    },
    AddDirectories {
        directories: Vec<PathBuf>,
        destination: Destination,
    },
    SetMode {
        mode: Mode,
        destination: Destination,
    },
}

/// A rule to add.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SuggestedRule {
    pub tool_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule_content: Option<String>,
}

/// The storage of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Destination {
    /// The project's settings of this person.
    LocalSettings,
    /// Not stored: it ends with the session.
    Session,
}

/// The changes after which the present call would run without a question. Empty where no answer may last: an ask rule,
/// a protected path, a removal that always asks.
pub fn suggest(policy: &Policy, call: &Call<'_>) -> Vec<Suggestion> {
    let decision = decide(policy, call);
    let lasting = match &decision.reason {
        Reason::Rule { .. }
        | Reason::ProtectedPath(_)
        | Reason::CriticalRemoval(_)
        | Reason::SharedTree { .. }
        | Reason::Unreadable { .. }
        | Reason::MayMatch { .. } => false,
        _ => decision.verdict == Verdict::Ask && policy.mode != Mode::Bubble,
    };
    if !lasting {
        return Vec::new();
    }
    match call.access {
        Access::Shell(_) => for_command(policy, call),
        Access::Network(url) if call.tool == "WebFetch" => {
            let host = Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned));
            host.map(|host| rules(vec![rule("WebFetch", Some(format!("domain:{host}")))]))
                .into_iter()
                .collect()
        }
        Access::Network(_) | Access::External { .. } => {
            vec![rules(vec![rule(call.tool, None)])]
        }
        Access::Read(path) => vec![directory(path.clone())],
        Access::Write(path) => {
            let accept =
                Suggestion::SetMode { mode: Mode::AcceptEdits, destination: Destination::Session };
            let outside = !is_inside(path, &policy.directories);
            outside.then(|| directory(path.clone())).into_iter().chain([accept]).collect()
        }
        Access::Session => Vec::new(),
    }
}

fn for_command(policy: &Policy, call: &Call<'_>) -> Vec<Suggestion> {
    let query = Query::new(policy, call);
    let Some(analysis) = &query.analysis else { return Vec::new() };
    let whole = || vec![rules(vec![rule("Bash", Some(escape(analysis.text())))])];
    if analysis.unclear().is_some() {
        return whole();
    }
    let mut missing: Vec<String> = Vec::new();
    let mut others = Vec::new();
    for part in analysis.parts() {
        match grants(&query, &part, &analysis.script().commands) {
            Ok(_) => {}
            Err(Reason::Command(text)) if !text.is_empty() => {
                let text = escape(&text);
                if !missing.contains(&text) {
                    missing.push(text);
                }
                // The files that a command opens are judged after the command itself; and where its words do not tell
                // its effect, only a rule for the whole line helps.
                if !part.command.redirections.is_empty() || part.is_steered() {
                    return whole();
                }
            }
            Err(Reason::ReadOutside(path)) => others.push(directory(path)),
            Err(_) => return whole(),
        }
    }
    if missing.len() > MOST_RULES {
        return Vec::new();
    }
    let commands = missing.into_iter().map(|text| rule("Bash", Some(text))).collect::<Vec<_>>();
    let added = (!commands.is_empty()).then(|| rules(commands));
    added.into_iter().chain(others).collect()
}

fn rules(rules: Vec<SuggestedRule>) -> Suggestion {
    Suggestion::AddRules { rules, behavior: "allow", destination: Destination::LocalSettings }
}

fn rule(tool: &str, content: Option<String>) -> SuggestedRule {
    SuggestedRule { tool_name: tool.to_owned(), rule_content: content }
}

/// The directory of a path, as a working directory for this session.
fn directory(path: PathBuf) -> Suggestion {
    let directory = path.parent().map(PathBuf::from).unwrap_or(path);
    Suggestion::AddDirectories { directories: vec![directory], destination: Destination::Session }
}

/// A text with all pattern characters escaped.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, '*' | '(' | ')' | '\\') {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}
