//! From layers to what counts: each value of each file is judged once, and the reason is kept.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::keys::{AllowedLevels, Gate, Join, KEYS, ValueKind};
use super::layer::{Layer, LayerEntry};
use super::level::{Level, Origin, Sourced};
use super::plugin_only::PluginOnly;
use crate::trust::{ContentTrust, Unaccepted};

/// The trust that a repository has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum RepositoryTrust {
    /// Nothing: what it brings is off.
    #[default]
    Untrusted,
    /// A folder above it is trusted, or there is no user to ask: hooks, helpers and variables count.
    Partly,
    /// The folder itself is trusted.
    Full,
}

/// The reason why a value does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Off {
    /// The file is the repository's and the folder is not trusted.
    Untrusted,
    /// The folder is trusted, and this was not accepted with it.
    Unaccepted(Unaccepted),
    /// Only managed settings may say so.
    OnlyManaged,
    /// A file of a project may not say so.
    NotInProject,
    /// Managed settings let no other allow rules count.
    ManagedRulesOnly,
    /// Managed settings leave this to plugins and to themselves.
    PluginOnly(Origin),
    /// A stronger file says otherwise.
    Overridden(Origin),
}

impl Off {
    /// Whether it would count if the user accepted it.
    pub fn is_for_want_of_trust(&self) -> bool {
        matches!(self, Self::Untrusted | Self::Unaccepted(_))
    }
}

impl From<Unaccepted> for Off {
    fn from(reason: Unaccepted) -> Self {
        match reason {
            Unaccepted::Untrusted => Self::Untrusted,
            reason => Self::Unaccepted(reason),
        }
    }
}

/// One value, and whether it counts.
#[derive(Clone, Debug)]
pub(super) struct JudgedValue {
    pub(super) entry: LayerEntry,
    pub(super) origin: Origin,
    pub(super) off: Option<Off>,
}

/// All values, the strongest first.
#[derive(Clone, Debug, Default)]
pub(super) struct MergedValues {
    pub(super) values: Vec<JudgedValue>,
}

impl MergedValues {
    pub(super) fn new(layers: &[Layer], content: &ContentTrust) -> Self {
        let managed_rules_only =
            layers.iter().filter(|it| it.level == Level::Managed).find_map(|layer| {
                single(layer, "allowManagedPermissionRulesOnly").and_then(Value::as_bool)
            });
        let plugin_only = PluginOnly::of(layers);
        let mut values = Vec::new();
        // Limits that the repository brought and the user did not accept.
        let mut foreign = Vec::new();
        for layer in layers {
            for entry in &layer.entries {
                let judged = layer.judge(entry, content);
                foreign.push(entry.key.is_limit() && judged.is_err());
                let needs_trust = entry.key.gate(&entry.value) != Gate::Open;
                let off = refusal(layer.level, entry)
                    .or_else(|| judged.err().filter(|_| needs_trust).map(Off::from));
                let off = off.or_else(|| {
                    let is_foreign_allow =
                        entry.key.path == "permissions.allow" && layer.level != Level::Managed;
                    (is_foreign_allow && managed_rules_only == Some(true))
                        .then_some(Off::ManagedRulesOnly)
                });
                let off = off.or_else(|| plugin_only.refusal(layer.level, entry.key.path));
                values.push(JudgedValue {
                    entry: entry.clone(),
                    origin: layer.origin(entry.line),
                    off,
                });
            }
        }
        let mut merged = Self { values };
        merged.keep_limits(&foreign);
        merged.keep_strictest();
        merged.override_weaker();
        merged
    }

    /// Switches off the repository's unaccepted limits that are higher than what another file says: the
    /// repository's files are the stronger ones, and would raise them. The flags mark such limits.
    fn keep_limits(&mut self, foreign: &[bool]) {
        if !foreign.contains(&true) {
            return;
        }
        let raises = |(index, judged): (usize, &JudgedValue)| {
            let own = |index: usize| foreign.get(index) == Some(&false);
            let number = |it: &JudgedValue| it.entry.value.as_f64();
            let mut others = self.values.iter().enumerate().filter(|(other, it)| {
                own(*other) && it.off.is_none() && it.entry.key.path == judged.entry.key.path
            });
            judged.entry.key.is_limit()
                && !own(index)
                && others.any(|(_, other)| number(other) < number(judged))
        };
        let too_high: Vec<bool> = self.values.iter().enumerate().map(raises).collect();
        for (judged, too_high) in self.values.iter_mut().zip(too_high) {
            if too_high && judged.off.is_none() {
                judged.off = Some(Off::Untrusted);
            }
        }
    }

    /// Switches off what is less strict than another file says, where the strictest counts.
    fn keep_strictest(&mut self) {
        let strictness = |it: &JudgedValue| it.entry.key.strictness(&it.entry.value);
        let mut strictest: HashMap<&'static str, (usize, Origin)> = HashMap::new();
        for judged in self.values.iter().filter(|it| it.off.is_none()) {
            if let Some(strict) = strictness(judged) {
                let path = judged.entry.key.path;
                if strictest.get(path).is_none_or(|(most, _)| *most < strict) {
                    strictest.insert(path, (strict, judged.origin.clone()));
                }
            }
        }
        for judged in self.values.iter_mut().filter(|it| it.off.is_none()) {
            if let (Some(strict), Some((most, winner))) =
                (strictness(judged), strictest.get(judged.entry.key.path))
                && strict < *most
            {
                judged.off = Some(Off::Overridden(winner.clone()));
            }
        }
    }

    /// Switches off what a stronger level has decided already.
    fn override_weaker(&mut self) {
        let mut strongest: HashMap<(&'static str, Option<String>), Origin> = HashMap::new();
        for judged in &mut self.values {
            if judged.off.is_some() || !is_decided_once(judged.entry.key.kind) {
                continue;
            }
            let slot = (judged.entry.key.path, judged.entry.name.clone());
            let is_switches = matches!(judged.entry.key.kind, ValueKind::Switches(_));
            let adds_up = is_switches && judged.entry.value.is_array();
            match strongest.get(&slot) {
                // A weaker file may add to a list; only a plain yes or no ends the matter.
                None if adds_up => {}
                None => {
                    strongest.insert(slot, judged.origin.clone());
                }
                Some(winner) if !shares_with(judged.entry.key.kind, &judged.origin, winner) => {
                    judged.off = Some(Off::Overridden(winner.clone()));
                }
                Some(_) => {}
            }
        }
    }

    /// The values of a key that count, the strongest first.
    pub(super) fn all<'m>(&'m self, path: &'m str) -> impl Iterator<Item = &'m JudgedValue> {
        self.values.iter().filter(move |it| it.off.is_none() && it.entry.key.path == path)
    }

    pub(super) fn first<'m>(&'m self, path: &str) -> Option<&'m JudgedValue> {
        self.values.iter().find(|it| it.off.is_none() && it.entry.key.path == path)
    }

    pub(super) fn bool(&self, path: &str) -> Option<bool> {
        self.first(path)?.entry.value.as_bool()
    }

    pub(super) fn text(&self, path: &str) -> Option<Sourced<String>> {
        let judged = self.first(path)?;
        let value = judged.entry.value.as_str()?.to_owned();
        Some(Sourced { value, origin: judged.origin.clone() })
    }

    /// The texts of a list, each once.
    pub(super) fn texts(&self, path: &str) -> Vec<Sourced<String>> {
        let mut seen = HashSet::new();
        let mut texts = Vec::new();
        for judged in self.all(path) {
            let value = &judged.entry.value;
            let items = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
            for text in items.iter().filter_map(Value::as_str) {
                if seen.insert(text) {
                    texts.push(Sourced { value: text.to_owned(), origin: judged.origin.clone() });
                }
            }
        }
        texts
    }

    /// All that files say about a key, or about the keys below it, as one JSON value.
    pub(super) fn value(&self, path: &str) -> Option<Value> {
        let below = KEYS.iter().filter_map(|key| {
            let name = key.path.strip_prefix(path)?.strip_prefix('.')?;
            let value = self.value_of_key(key.path)?;
            Some(name.rsplit('.').fold(value, |value, name| {
                Value::Object(Map::from_iter([(name.to_owned(), value)]))
            }))
        });
        let group = below.reduce(|mut whole, part| {
            lay_under(&mut whole, part);
            whole
        });
        group.or_else(|| self.value_of_key(path))
    }

    fn value_of_key(&self, path: &str) -> Option<Value> {
        let mut values = self.all(path).map(|judged| match &judged.entry.name {
            Some(name) => {
                Value::Object(Map::from_iter([(name.clone(), judged.entry.value.clone())]))
            }
            None if is_list(judged.entry.key.kind) => Value::from(vec![judged.entry.value.clone()]),
            None => judged.entry.value.clone(),
        });
        let mut merged = values.next()?;
        values.for_each(|weaker| lay_under(&mut merged, weaker));
        Some(merged)
    }
}

fn single<'l>(layer: &'l Layer, path: &str) -> Option<&'l Value> {
    layer.entries.iter().find(|entry| entry.key.path == path).map(|entry| &entry.value)
}

/// The reason why a level may not say this at all.
fn refusal(level: Level, entry: &LayerEntry) -> Option<Off> {
    let in_project = matches!(level, Level::Local | Level::Project);
    let is_auto = entry.key.path == "permissions.defaultMode" && entry.value == "auto";
    match entry.key.place {
        AllowedLevels::Managed if level != Level::Managed => Some(Off::OnlyManaged),
        AllowedLevels::Personal if in_project => Some(Off::NotInProject),
        _ if is_auto && in_project => Some(Off::NotInProject),
        _ => None,
    }
}

fn is_list(kind: ValueKind) -> bool {
    matches!(kind, ValueKind::Texts(Join::Concatenate) | ValueKind::Rules)
}

/// Whether one of several values is taken, and not all of them together.
fn is_decided_once(kind: ValueKind) -> bool {
    !(is_list(kind)
        || matches!(kind, ValueKind::Object | ValueKind::List | ValueKind::Texts(Join::Limit)))
}

/// Whether a value stands beside the strongest one.
fn shares_with(kind: ValueKind, origin: &Origin, winner: &Origin) -> bool {
    kind == ValueKind::Texts(Join::ManagedAlone)
        && (winner.level != Level::Managed || origin.level == Level::Managed)
}

/// Fills in what a stronger value leaves open: objects merge, lists follow, anything else stays.
fn lay_under(strong: &mut Value, weak: Value) {
    match (strong, weak) {
        (Value::Object(strong), Value::Object(weak)) => {
            for (name, value) in weak {
                match strong.get_mut(&name) {
                    Some(present) => lay_under(present, value),
                    None => {
                        strong.insert(name, value);
                    }
                }
            }
        }
        (Value::Array(strong), Value::Array(mut weak)) => strong.append(&mut weak),
        _ => {}
    }
}
