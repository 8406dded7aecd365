//! Requests of a host about settings, and the changes that it makes to them.

use std::error::Error;

use centurion_config::settings::{Level, SettingsDocument};
use centurion_protocol::Effort;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::refusal::Refusal;
use super::{Answer, Control};

/// The settings of the run, as a host sees and changes them.
pub trait SettingsDesk: Send + Sync {
    fn view(&self) -> SettingsView;

    /// Lays values over what `--settings` says, for this run; null takes a key away.
    fn change_flag(&self, change: &Map<String, Value>) -> Result<(), DeskError>;

    /// Writes a text into the file of a level.
    fn write(&self, level: Level, key: &str, text: &str) -> Result<(), DeskError>;
}

/// The reason why settings were not changed.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct DeskError(Box<dyn Error + Send + Sync>);

impl DeskError {
    pub fn new(reason: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(reason.into())
    }
}

/// All settings of a run.
#[derive(Clone, Debug, Default)]
pub struct SettingsView {
    /// The values that count.
    pub effective: Map<String, Value>,
    /// The contents of each file, the weakest first.
    pub documents: Vec<SettingsDocument>,
    /// The problems of the files, each with its place.
    pub problems: Vec<(String, String)>,
    /// Whether the session runs in safe mode: only flags and the administrator add hooks.
    pub is_safe: bool,
}

/// The file that a host may write to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Source {
    LocalSettings,
    UserSettings,
}

/// The efforts that a file may name; the highest is a session's alone.
const KEPT_EFFORTS: [&str; 4] = ["low", "medium", "high", "xhigh"];

/// Tells all settings, and what the next request will be made with.
pub(super) fn get(control: &Control) -> Value {
    let view = control.settings.view();
    let mut effective = view.effective;
    hide_variables(&mut effective);
    let sources = view.documents.into_iter().map(|mut document| {
        hide_variables(&mut document.values);
        document
    });
    let sources = sources
        .map(|it| json!({"source": source_name(it.level), "path": it.file, "settings": it.values}));
    let (model, effort) = control.handle.applied();
    json!({
        "effective": effective,
        "sources": sources.collect::<Vec<_>>(),
        "applied": {"model": model, "effort": effort},
        "errors": problems(&view.problems),
    })
}

/// Hides the values of variables, which may be credentials.
fn hide_variables(settings: &mut Map<String, Value>) {
    let variables = settings.get_mut("env").and_then(Value::as_object_mut);
    for value in variables.into_iter().flat_map(Map::values_mut) {
        *value = json!("…");
    }
}

/// The problems of settings files, as hosts read them.
pub(super) fn problems(problems: &[(String, String)]) -> Vec<Value> {
    let problem =
        |(file, message): &(String, String)| json!({"file": file, "path": "", "message": message});
    problems.iter().map(problem).collect()
}

/// A level, by its word in the public protocol.
fn source_name(level: Level) -> &'static str {
    match level {
        Level::Managed => "policySettings",
        Level::Flag => "flagSettings",
        Level::Local => "localSettings",
        Level::Project => "projectSettings",
        Level::User => "userSettings",
    }
}

/// Changes the settings of this run. Rules and hooks count from the next turn on, model and effort from the next run.
pub(super) async fn apply_flag(control: &Control, change: &Map<String, Value>) -> Answer {
    if change.contains_key("agent") {
        return Err(Refusal::invalid("the agent of a session is chosen at its start"));
    }
    let model = change.get("model").map(read_model).transpose()?;
    let effort = change.get("effortLevel").map(read_effort).transpose()?;
    if let Some(Some(name)) = &model {
        control.limits.check(name, &control.model)?;
    }
    // A session may be told to work harder than a file can say.
    let mut kept = change.clone();
    if let Some(Some(effort)) = effort
        && !KEPT_EFFORTS.contains(&effort.to_string().as_str())
    {
        kept.remove("effortLevel");
    }
    let model = match &model {
        Some(name) => {
            let change = control.handle.ask_model(name.as_deref()).await;
            Some(change.map_err(Refusal::invalid)?)
        }
        None => None,
    };
    control.settings.change_flag(&kept).map_err(Refusal::invalid)?;
    if let Some(model) = model {
        model.make().await;
    }
    if let Some(effort) = effort {
        control.handle.set_effort(effort);
    }
    Ok(json!({}))
}

fn read_model(value: &Value) -> Result<Option<String>, Refusal> {
    match value {
        Value::Null => Ok(None),
        Value::String(name) => Ok(Some(name.clone()).filter(|name| name != "default")),
        other => Err(Refusal::invalid(format!("{other} is no name of a model"))),
    }
}

fn read_effort(value: &Value) -> Result<Option<Effort>, Refusal> {
    match value {
        Value::Null => Ok(None),
        Value::String(name) => name.parse().map(Some).map_err(Refusal::invalid),
        other => Err(Refusal::invalid(format!("{other} is no effort"))),
    }
}

/// Writes settings into a file: the few keys that a host may write.
pub(super) fn update(
    desk: &dyn SettingsDesk,
    source: Source,
    change: &Map<String, Value>,
) -> Answer {
    let (level, allowed) = match source {
        Source::LocalSettings => (Level::Local, "outputStyle"),
        Source::UserSettings => (Level::User, "effortLevel"),
    };
    let mut texts = Vec::new();
    for (key, value) in change {
        let text = value.as_str().filter(|_| key == allowed).ok_or_else(|| {
            Refusal::invalid(format!("only a text for `{allowed}` is written there, not `{key}`"))
        })?;
        if level == Level::User && !KEPT_EFFORTS.contains(&text) {
            return Err(Refusal::invalid(format!("`{text}` is no effort that is kept")));
        }
        texts.push((key, text));
    }
    for (key, text) in texts {
        desk.write(level, key, text).map_err(Refusal::invalid)?;
    }
    Ok(json!({}))
}
