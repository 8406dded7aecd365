//! One file of settings, checked key by key: what is good counts, what is bad is reported.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};

use super::document::{Json, JsonMember, Node};
use super::hooks::Lines;
use super::keys::{self, Gate, Join, Key, ValueKind};
use super::level::{Level, Origin};
use crate::Problem;
use crate::trust::{ContentTrust, PowerItem, Reach, Unaccepted};

/// The most problems of one file that are told.
const MOST_PROBLEMS: usize = 50;

/// The most letters of a file's text that are shown.
const LONGEST_SHOWN: usize = 120;

/// The contents of one file.
#[derive(Clone, Debug)]
pub(super) struct Layer {
    pub(super) level: Level,
    pub(super) file: Arc<Path>,
    pub(super) root: Arc<Path>,
    pub(super) entries: Vec<LayerEntry>,
    /// Keys that mean nothing to this program, with their lines.
    pub(super) unknown: Vec<(String, usize)>,
    pub(super) problems: Vec<Problem>,
    /// The file could not be read, or not since it changed.
    pub(super) is_unread: bool,
    /// Keys whose values could not be used.
    pub(super) refused: Vec<String>,
}

/// One value: of a key, of an item of its list, or of a name in its map.
#[derive(Clone, Debug)]
pub(super) struct LayerEntry {
    pub(super) key: &'static Key,
    /// For a map such as `env`.
    pub(super) name: Option<String>,
    pub(super) line: usize,
    pub(super) value: Value,
    /// The lines of the parts of `hooks`.
    pub(super) lines: Lines,
}

impl LayerEntry {
    /// The key as a person writes it.
    pub(super) fn path(&self) -> String {
        key_path(self.key.path, self.name.as_deref())
    }
}

fn key_path(key: &str, name: Option<&str>) -> String {
    match name {
        Some(name) => format!("{key}.{}", printable(name)),
        None => key.to_owned(),
    }
}

/// A value as it must be accepted, together with its whole name.
pub(super) fn power_item(
    file: &Path,
    line: Option<usize>,
    key: &str,
    name: Option<&str>,
    value: &Value,
) -> PowerItem {
    /// Keys whose texts are rules, patterns and names, and no commands.
    const DATA: [&str; 6] =
        ["permissions.", "sandbox.", "subagents.", "claudeMdExcludes", "model", "fallbackModel"];
    let named = name.map(|name| json!({ name: value }));
    let value = named.as_ref().unwrap_or(value);
    let make = if key == "hooks" { PowerItem::of_hooks } else { PowerItem::of_value };
    let item = make(file, line, key_path(key, name), value);
    if DATA.iter().any(|data| key.starts_with(data)) { item.without_programs() } else { item }
}

/// Keys that add something to the program.
const ADDITIONS: [&str; 11] = [
    "agent",
    "agents",
    "enableAllProjectMcpServers",
    "enabledMcpjsonServers",
    "enabledPlugins",
    "extraKnownMarketplaces",
    "fileSuggestion",
    "hooks",
    "outputStyle",
    "statusLine",
    "subagentStatusLine",
];

impl Layer {
    /// Leaves out what the file adds to the program, unless the administrator wrote it or a flag names it.
    pub(super) fn drop_additions(&mut self) {
        if !matches!(self.level, Level::Managed | Level::Flag) {
            self.entries.retain(|entry| !ADDITIONS.contains(&entry.key.path));
        }
    }

    pub(super) fn new(level: Level, file: PathBuf, root: PathBuf) -> Self {
        let (file, root) = (Arc::from(file), Arc::from(root));
        Self {
            level,
            file,
            root,
            entries: Vec::new(),
            unknown: Vec::new(),
            problems: Vec::new(),
            is_unread: false,
            refused: Vec::new(),
        }
    }

    /// Takes over what a document says.
    pub(super) fn fill(&mut self, document: Node) {
        let found = document.kind();
        if let Json::Object(members) = document.json {
            self.object("", members);
        } else {
            self.is_unread = true;
            self.problem(document.line, format!("must be an object, and is {found}"));
        }
    }

    /// Whether it is not known what the file says about a key.
    pub(super) fn is_unclear(&self, key: &str) -> bool {
        self.is_unread || self.refused.iter().any(|refused| refused == key)
    }

    /// Notes what is wrong, up to a number that a person would still read.
    pub(super) fn problem(&mut self, line: impl Into<Option<usize>>, message: String) {
        let message = match self.problems.len().cmp(&MOST_PROBLEMS) {
            Ordering::Less => message,
            Ordering::Equal => "there is more that is wrong with it".to_owned(),
            Ordering::Greater => return,
        };
        self.problems.push(Problem { path: self.file.to_path_buf(), line: line.into(), message });
    }

    pub(super) fn origin(&self, line: usize) -> Origin {
        let (file, root) = (Arc::clone(&self.file), Arc::clone(&self.root));
        Origin { level: self.level, file, line, root }
    }

    /// Whether a value counts. What is not the user's own counts as far as it was accepted.
    pub(super) fn judge(
        &self,
        entry: &LayerEntry,
        content: &ContentTrust,
    ) -> Result<(), Unaccepted> {
        let reach = match entry.key.gate(&entry.value) {
            Gate::Open if !entry.key.is_limit() => return Ok(()),
            Gate::Parent => Reach::Parent,
            Gate::Open | Gate::Folder => Reach::Folder,
        };
        match self.level {
            Level::Project | Level::Local => content.judge(&self.power_item(entry), reach),
            Level::Managed | Level::Flag | Level::User => Ok(()),
        }
    }

    fn power_item(&self, entry: &LayerEntry) -> PowerItem {
        let (key, name) = (entry.key.path, entry.name.as_deref());
        power_item(&self.file, Some(entry.line), key, name, &entry.value)
    }

    /// Everything in a project's file that needs to be accepted.
    pub(super) fn power_items(&self) -> Vec<PowerItem> {
        let nothing = ContentTrust::default();
        let gated = self.entries.iter().filter(|entry| self.judge(entry, &nothing).is_err());
        gated.map(|entry| self.power_item(entry)).collect()
    }

    fn object(&mut self, prefix: &str, members: Vec<JsonMember>) {
        for JsonMember { name, node } in self.last_of_each(prefix, members) {
            let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
            // A dot in a name must not pass for a path of names.
            let known = !name.contains('.');
            if let Some(key) = keys::find(&path).filter(|_| known) {
                self.value(key, node);
            } else if known && keys::is_group(&path) {
                let found = node.kind();
                if let Json::Object(members) = node.json {
                    self.object(&path, members);
                } else {
                    self.refuse(&path, node.line, found, "an object");
                    let deny = keys::find("permissions.deny").filter(|_| takes_away(&path));
                    if let Some(key) = deny {
                        self.unread(key, &node);
                    }
                }
            } else {
                self.unknown.push((printable(&path), node.line));
            }
        }
    }

    /// The members that count; one that is written again is reported.
    fn last_of_each(&mut self, prefix: &str, members: Vec<JsonMember>) -> Vec<JsonMember> {
        let mut seen = HashSet::new();
        let mut last = Vec::with_capacity(members.len());
        for member in members.into_iter().rev() {
            if seen.insert(member.name.clone()) {
                last.push(member);
            } else {
                let inside = if prefix.is_empty() { "" } else { " in " };
                self.problem(
                    member.node.line,
                    format!(
                        "`{}`{inside}{prefix} is written again further down, which counts instead",
                        printable(&member.name)
                    ),
                );
            }
        }
        last.reverse();
        last
    }

    fn value(&mut self, key: &'static Key, node: Node) {
        let found = node.kind();
        let line = node.line;
        match (key.kind, node.json) {
            (ValueKind::Texts(Join::Concatenate) | ValueKind::Rules, Json::List(items)) => {
                for (index, item) in items.iter().enumerate() {
                    let value = self.item(key, index, item);
                    let unread = || takes_away(key.path).then(|| item.to_value());
                    if let Some(value) = value.or_else(unread) {
                        self.keep(key, None, item.line, value);
                    }
                }
            }
            // A list that is taken whole counts even when it is empty.
            (ValueKind::Texts(_) | ValueKind::Switches(_), Json::List(items)) => {
                let items = items.iter().enumerate();
                let good: Vec<Value> =
                    items.filter_map(|(index, item)| self.item(key, index, item)).collect();
                self.keep(key, None, line, Value::Array(good));
            }
            (ValueKind::Texts(Join::Strongest), Json::Text(text)) => {
                self.keep(key, None, line, Value::from(vec![text]));
            }
            (
                ValueKind::Variables | ValueKind::TextMap | ValueKind::BoolMap | ValueKind::Map,
                Json::Object(members),
            ) => {
                for JsonMember { name, node } in self.last_of_each(key.path, members) {
                    let path = format!("{}.{}", key.path, printable(&name));
                    if key.kind == ValueKind::Variables && !is_variable_name(&name) {
                        let expected = "under a name without `=`";
                        self.refuse(&path, node.line, "not", expected);
                    } else if let Some(value) = self.check(|| path, &node, item_kind(key.kind)) {
                        self.keep(key, Some(name), node.line, value);
                    }
                }
            }
            (
                ValueKind::Texts(_)
                | ValueKind::Rules
                | ValueKind::Variables
                | ValueKind::TextMap
                | ValueKind::BoolMap
                | ValueKind::Map,
                json,
            ) => {
                self.refuse(key.path, line, found, &expectation(key.kind));
                if takes_away(key.path) {
                    self.unread(key, &Node { json, ..node });
                }
            }
            (_, Json::Object(events)) if key.path == "hooks" => self.hooks(key, line, events),
            (kind, json) => {
                let node = Node { json, ..node };
                if let Some(value) = self.check(|| key.path.to_owned(), &node, kind) {
                    self.keep(key, None, line, value);
                }
            }
        }
    }

    /// Each group of hooks is a value by itself: one may count where another does not.
    fn hooks(&mut self, key: &'static Key, line: usize, events: Vec<JsonMember>) {
        let events = self.last_of_each(key.path, events);
        // A file that declares none says so.
        if events.is_empty() {
            self.keep(key, None, line, json!({}));
        }
        let mut keep = |line, event: &str, node: Node| {
            let span = node.span.clone();
            let member = JsonMember { name: event.to_owned(), node };
            let node = Node { span, line, json: Json::Object(vec![member]) };
            let (lines, value) = (Lines::of(&node), node.to_value());
            self.entries.push(LayerEntry { key, name: None, line, value, lines });
        };
        for JsonMember { name, node } in events {
            match node.json {
                Json::List(groups) if groups.len() > 1 => {
                    for group in groups {
                        let (span, line) = (group.span.clone(), group.line);
                        let list = Node { span, line, json: Json::List(vec![group]) };
                        keep(line, &name, list);
                    }
                }
                json => keep(node.line, &name, Node { json, ..node }),
            }
        }
    }

    fn item(&mut self, key: &Key, index: usize, item: &Node) -> Option<Value> {
        self.check(|| format!("{}[{index}]", key.path), item, item_kind(key.kind))
    }

    /// The value if it is of the kind; what is allowed is reported if it is not.
    fn check(
        &mut self,
        path: impl FnOnce() -> String,
        node: &Node,
        kind: ValueKind,
    ) -> Option<Value> {
        let value = node.to_value();
        if fits(kind, &value) {
            return Some(value);
        }
        let found = match (&value, kind) {
            (Value::String(text), ValueKind::Choice(_)) => {
                format!("`{}`", printable(text))
            }
            (Value::String(text), ValueKind::Rule) if text.trim().is_empty() => "empty".to_owned(),
            (
                Value::Number(number),
                ValueKind::Integer(..) | ValueKind::Fraction | ValueKind::Number,
            ) => number.to_string(),
            // Other text may be a secret in the wrong place.
            _ => node.kind().to_owned(),
        };
        self.refuse(&path(), node.line, &found, &expectation(kind));
        None
    }

    /// Keeps what may be rules that take away: what they mean must not be lost.
    fn unread(&mut self, key: &'static Key, node: &Node) {
        if !matches!(node.json, Json::Null) {
            self.keep(key, None, node.line, node.to_value());
        }
    }

    fn keep(&mut self, key: &'static Key, name: Option<String>, line: usize, value: Value) {
        self.entries.push(LayerEntry { key, name, line, value, lines: Lines::default() });
    }

    fn refuse(&mut self, path: &str, line: usize, found: &str, expected: &str) {
        self.refused.push(path.to_owned());
        let end = if takes_away(path) { "" } else { "; it is left out" };
        self.problem(line, format!("`{path}` must be {expected}, and is {found}{end}"));
    }
}

/// Whether a key holds rules that take away.
fn takes_away(path: &str) -> bool {
    let key = path.split('[').next().unwrap_or(path);
    ["permissions", "permissions.ask", "permissions.deny"].contains(&key)
}

/// Something that a file says, fit for a terminal: without control characters, and not endless.
pub(crate) fn printable(text: &str) -> String {
    let shown = text.chars().map(|it| if it.is_control() { '\u{fffd}' } else { it });
    shown.take(LONGEST_SHOWN).collect()
}

fn is_variable_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0'])
}

/// The kind of one item of a list or map.
pub(super) fn item_kind(kind: ValueKind) -> ValueKind {
    match kind {
        ValueKind::Texts(_) | ValueKind::TextMap => ValueKind::Text,
        ValueKind::BoolMap => ValueKind::Bool,
        ValueKind::Variables => ValueKind::Variable,
        ValueKind::Map => ValueKind::Any,
        ValueKind::Rules => ValueKind::Rule,
        ValueKind::Switches(words) => ValueKind::Choice(words),
        other => other,
    }
}

pub(super) fn fits(kind: ValueKind, value: &Value) -> bool {
    match kind {
        ValueKind::Bool | ValueKind::Switches(_) => value.is_boolean(),
        ValueKind::Text => value.is_string(),
        // No process can be given the other one.
        ValueKind::Variable => value.as_str().is_some_and(|text| !text.contains('\0')),
        ValueKind::Choice(words) => value.as_str().is_some_and(|text| words.contains(&text)),
        ValueKind::Integer(least, most) => {
            value.as_u64().is_some_and(|it| (least..=most).contains(&it))
        }
        ValueKind::Fraction => value.as_f64().is_some_and(|it| (0.0..=1.0).contains(&it)),
        ValueKind::Number => value.as_f64().is_some_and(|it| it.is_finite() && it >= 0.0),
        ValueKind::Rule => match value {
            Value::String(text) => !text.trim().is_empty(),
            Value::Object(rule) => {
                rule.get("tool").is_some_and(Value::is_string)
                    && rule.get("args").is_none_or(Value::is_string)
            }
            _ => false,
        },
        ValueKind::Texts(_) | ValueKind::Rules | ValueKind::List => value.is_array(),
        ValueKind::Variables
        | ValueKind::TextMap
        | ValueKind::BoolMap
        | ValueKind::Map
        | ValueKind::Object => value.is_object(),
        ValueKind::Any => true,
    }
}

/// The values that a kind allows, to follow "must be".
pub(super) fn expectation(kind: ValueKind) -> String {
    match kind {
        ValueKind::Bool => "true or false".to_owned(),
        ValueKind::Text | ValueKind::Variable => "text in quotes".to_owned(),
        ValueKind::Choice([word]) => format!("`{word}`"),
        ValueKind::Choice(words) => format!("one of {}", words.join(", ")),
        ValueKind::Integer(least, most) => format!("a whole number from {least} to {most}"),
        ValueKind::Fraction => "a number from 0 to 1".to_owned(),
        ValueKind::Number => "a number of 0 or more".to_owned(),
        ValueKind::Texts(_) => "a list of texts".to_owned(),
        ValueKind::Rules => "a list of rules such as \"Bash(ls *)\"".to_owned(),
        ValueKind::Rule => {
            "a rule such as \"Bash(ls *)\" or {\"tool\": \"Bash\", \"args\": \"ls *\"}".to_owned()
        }
        ValueKind::TextMap | ValueKind::Variables => "an object of names and texts".to_owned(),
        ValueKind::BoolMap => "an object of names with true or false".to_owned(),
        ValueKind::Map | ValueKind::Object => "an object".to_owned(),
        ValueKind::List => "a list".to_owned(),
        ValueKind::Switches(words) => format!("true, false or a list of {}", words.join(", ")),
        ValueKind::Any => "something".to_owned(),
    }
}
