//! Parses hooks from JSON: checks every part once, and reports the location of a hook that cannot run.

mod error;
mod fields;

use std::sync::Arc;
use std::time::Duration;

use centurion_config::settings::Lines;
use serde_json::{Map, Value};

use self::error::HandlerError;
use self::fields::Fields;
use crate::condition::Condition;
use crate::event::Event;
use crate::handler::{
    Action, CallbackAction, CommandAction, Handler, HandlerType, HookShell, HttpAction, OnFailure,
    PromptAction, Waiting,
};
use crate::hook_set::{Frontmatter, Hook, HookSet};
use crate::matcher::{Matcher, MatcherError};
use crate::origin::{HookOrigin, HookProblem};

/// The form of hooks in a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Settings,
    Frontmatter(Frontmatter),
    /// Names of functions instead of handlers.
    Host,
}

/// The unit of the number under `timeout`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TimeoutUnit {
    Seconds,
    Milliseconds,
}

/// Parses hooks, source after source.
pub(crate) struct Parser {
    form: Form,
    hooks: Vec<Hook>,
    problems: Vec<HookProblem>,
    skipped: usize,
}

/// The location of a part of the JSON.
struct JsonPlace<'a> {
    lines: &'a Lines,
    origin: &'a HookOrigin,
}

impl JsonPlace<'_> {
    fn at(&self, pointer: &str) -> HookOrigin {
        self.origin.at(self.lines.line(pointer))
    }
}

impl Parser {
    pub(crate) fn new(form: Form) -> Self {
        Self { form, hooks: Vec::new(), problems: Vec::new(), skipped: 0 }
    }

    pub(crate) fn finish(self) -> HookSet {
        HookSet::new(self.hooks, self.problems, self.skipped)
    }

    pub(crate) fn problem(&mut self, origin: &HookOrigin, message: impl Into<String>) {
        let message = message.into();
        self.problems.push(HookProblem { origin: origin.clone(), message, is_off: false });
    }

    /// Tells of hooks that are kept off.
    pub(crate) fn keep_off(&mut self, origin: &HookOrigin, message: String) {
        self.problems.push(HookProblem { origin: origin.clone(), message, is_off: true });
    }

    /// Parses an object of events. `pointer` is its location in the document that `lines` is about.
    pub(crate) fn read(&mut self, value: &Value, lines: &Lines, pointer: &str, from: &HookOrigin) {
        let place = JsonPlace { lines, origin: from };
        let events = match value {
            Value::Object(events) => events,
            Value::Null => return,
            _ => {
                return self
                    .problem(&place.at(pointer), "`hooks` must be an object of events and lists");
            }
        };
        for (name, groups) in events {
            let pointer = format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
            let origin = place.at(&pointer);
            match name.parse::<Event>() {
                Err(unknown) => {
                    let names: Vec<_> = Event::all().map(Event::name).collect();
                    self.problem(
                        &origin,
                        format!("{unknown}; help: use one of {}", names.join(", ")),
                    );
                }
                Ok(event) => self.event(event, groups, &pointer, &place),
            }
        }
    }

    fn event(&mut self, event: Event, groups: &Value, pointer: &str, place: &JsonPlace<'_>) {
        let groups = match groups {
            Value::Array(groups) => groups,
            Value::Null => return,
            _ => return self.problem(&place.at(pointer), format!("`{event}` must hold a list")),
        };
        for (index, group) in groups.iter().enumerate() {
            let pointer = format!("{pointer}/{index}");
            match group {
                Value::Object(group) => self.group(event, group, &pointer, place),
                _ => self.problem(
                    &place.at(&pointer),
                    format!("an entry of `{event}` must be an object with a list `hooks`"),
                ),
            }
        }
    }

    fn group(
        &mut self,
        event: Event,
        group: &Map<String, Value>,
        pointer: &str,
        place: &JsonPlace<'_>,
    ) {
        let origin = place.at(pointer);
        let matcher = match group.get("matcher") {
            None | Some(Value::Null) => Ok(Matcher::Every),
            Some(Value::String(text)) => Matcher::parse(text, event),
            Some(_) => Err(MatcherError::NoText),
        };
        let must_run = on_failure(group) == OnFailure::Block;
        let matcher = match matcher {
            Ok(matcher) => Arc::new(matcher),
            // A function that guards something guards too much rather than nothing.
            Err(error) if self.form == Form::Host && must_run => {
                self.problem(&origin, format!("{error}; its functions see every one"));
                Arc::new(Matcher::Every)
            }
            Err(error) => return self.problem(&origin, error.to_string()),
        };
        match (self.form, group.get("hooks")) {
            (Form::Host, _) => self.callbacks(event, group, &matcher, &origin),
            (_, Some(Value::Array(handlers))) => {
                self.skipped += usize::from(handlers.is_empty());
                for (index, handler) in handlers.iter().enumerate() {
                    let origin = place.at(&format!("{pointer}/hooks/{index}"));
                    match handler {
                        Value::Object(fields) => {
                            self.handler(event, fields, &matcher, &origin, TimeoutUnit::Seconds);
                        }
                        _ => self.problem(&origin, "a hook must be an object with a `type`"),
                    }
                }
            }
            (Form::Frontmatter(_), None) if is_handler(group) => {
                self.handler(event, group, &matcher, &origin, TimeoutUnit::Milliseconds);
            }
            (Form::Frontmatter(_), None | Some(Value::Null)) => self.skipped += 1,
            (_, None) => self.problem(&origin, "has no list `hooks`, so that nothing runs"),
            (_, Some(_)) => self.problem(&origin, "`hooks` must be a list"),
        }
    }

    fn callbacks(
        &mut self,
        event: Event,
        group: &Map<String, Value>,
        matcher: &Arc<Matcher>,
        origin: &HookOrigin,
    ) {
        let mut fields = Fields::new(group);
        let timeout = timeout(&mut fields, TimeoutUnit::Seconds);
        let ids = fields.texts("hookCallbackIds").unwrap_or_default();
        for message in fields.problems() {
            self.problem(origin, message);
        }
        let on_failure = on_failure(group);
        for id in ids {
            let action = Action::Callback(CallbackAction { id, on_failure });
            self.keep(event, matcher, plain_handler(action, timeout, origin));
        }
    }

    fn keep(&mut self, event: Event, matcher: &Arc<Matcher>, handler: Handler) {
        let (matcher, handler) = (Arc::clone(matcher), Arc::new(handler));
        self.hooks.push(Hook { event, matcher, handler });
    }

    fn handler(
        &mut self,
        event: Event,
        object: &Map<String, Value>,
        matcher: &Arc<Matcher>,
        origin: &HookOrigin,
        unit: TimeoutUnit,
    ) {
        let mut fields = Fields::new(object);
        let read = self.read_handler(event, &mut fields, origin, unit);
        match read {
            // Wrong fields are reported below.
            _ if fields.is_wrong() => {}
            Ok(handler) => self.keep(event, matcher, handler),
            Err(error) => self.problem(origin, error.to_string()),
        }
        for message in fields.problems() {
            self.problem(origin, message);
        }
    }

    fn read_handler(
        &self,
        event: Event,
        fields: &mut Fields<'_>,
        origin: &HookOrigin,
        unit: TimeoutUnit,
    ) -> Result<Handler, HandlerError> {
        let written = fields.text("type");
        let kind = match written.as_deref() {
            Some(name) => HandlerType::WRITTEN.into_iter().find(|kind| kind.name() == name),
            None if unit == TimeoutUnit::Milliseconds => Some(HandlerType::Command),
            None => None,
        };
        let Some(kind) = kind else {
            return Err(match written {
                Some(name) => HandlerError::UnknownType { name },
                None => HandlerError::NoType,
            });
        };
        if !event.supports(kind) {
            return Err(HandlerError::WrongEvent { kind, event });
        }
        let action = action(kind, fields, origin)?;
        let condition = match fields.text("if") {
            None => None,
            Some(_) if !event.is_about_a_call() => {
                return Err(HandlerError::NeedlessCondition { event });
            }
            Some(rule) => Some(Condition::parse(&rule).map_err(HandlerError::Condition)?),
        };
        let timeout = timeout(fields, unit);
        let mut once = fields.switch("once");
        if once && self.form != Form::Frontmatter(Frontmatter::Skill) {
            fields.ignore("`once` counts only in skills: this hook runs every time");
            once = false;
        }
        let status_message = fields.text("statusMessage");
        let handler = plain_handler(action, timeout, origin);
        Ok(Handler { condition, status_message, once, ..handler })
    }
}

fn plain_handler(action: Action, timeout: Option<Duration>, origin: &HookOrigin) -> Handler {
    let origin = origin.clone();
    Handler { action, condition: None, timeout, status_message: None, once: false, origin }
}

/// The effect of functions that fail, as the host says. A word that is not known blocks: it was meant to change something.
fn on_failure(group: &Map<String, Value>) -> OnFailure {
    match group.get("onFailure") {
        None | Some(Value::Null) => OnFailure::Continue,
        Some(Value::String(word)) if word == "continue" => OnFailure::Continue,
        Some(_) => OnFailure::Block,
    }
}

/// Whether an entry is a handler itself, and no group of them.
fn is_handler(entry: &Map<String, Value>) -> bool {
    ["type", "command", "url", "prompt", "tool"].iter().any(|name| entry.contains_key(*name))
}

fn timeout(fields: &mut Fields<'_>, unit: TimeoutUnit) -> Option<Duration> {
    let written = fields.value("timeout")?;
    let seconds = written.as_f64().map(|number| match unit {
        TimeoutUnit::Seconds => number,
        TimeoutUnit::Milliseconds => number / 1_000.0,
    });
    let duration =
        seconds.filter(|it| *it > 0.0).and_then(|it| Duration::try_from_secs_f64(it).ok());
    if duration.is_none() {
        let unit = match unit {
            TimeoutUnit::Seconds => "seconds",
            TimeoutUnit::Milliseconds => "milliseconds",
        };
        fields.ignore(format!(
            "`timeout` must be a number of {unit} above zero: the usual time counts instead"
        ));
    }
    duration
}

fn action(
    kind: HandlerType,
    fields: &mut Fields<'_>,
    origin: &HookOrigin,
) -> Result<Action, HandlerError> {
    Ok(match kind {
        HandlerType::Command => Action::Command(command(fields, origin)?),
        HandlerType::Http => Action::Http(http(fields)?),
        HandlerType::McpTool => Action::McpTool {
            server: fields.need("server", "the name of an MCP server")?,
            tool: fields.need("tool", "the name of a tool of the server")?,
            input: fields.object("input").unwrap_or_default(),
        },
        HandlerType::Prompt => Action::Prompt(prompt(fields)?),
        HandlerType::Agent => {
            Action::Agent(PromptAction { continue_on_block: true, ..prompt(fields)? })
        }
        HandlerType::Callback => return Err(HandlerError::Callback),
    })
}

fn command(fields: &mut Fields<'_>, origin: &HookOrigin) -> Result<CommandAction, HandlerError> {
    let command = fields.need("command", "the command to run")?;
    let args = fields.texts("args");
    let shell = match fields.text("shell").as_deref() {
        None => HookShell::Sh,
        Some("bash") => HookShell::Bash,
        Some("powershell") => HookShell::PowerShell,
        Some(other) => return Err(HandlerError::UnknownShell { name: other.to_owned() }),
    };
    if args.is_none() && command.contains("${user_config.") && origin.source.plugin().is_some() {
        return Err(HandlerError::UnsafeSetting);
    }
    let (is_async, wakes) = (fields.switch("async"), fields.switch("asyncRewake"));
    let waiting = match (is_async, wakes) {
        (_, true) => Waiting::Wakes,
        (true, false) => Waiting::Never,
        (false, false) => Waiting::Event,
    };
    Ok(CommandAction { command, args, shell, waiting })
}

fn http(fields: &mut Fields<'_>) -> Result<HttpAction, HandlerError> {
    let url = fields.need("url", "where to post to")?;
    match url::Url::parse(&url) {
        Ok(parsed) if matches!(parsed.scheme(), "http" | "https") => {}
        Ok(parsed) => {
            return Err(HandlerError::OtherScheme { scheme: parsed.scheme().to_owned() });
        }
        Err(error) => return Err(HandlerError::NoAddress(error)),
    }
    Ok(HttpAction {
        url,
        headers: fields.text_map("headers").unwrap_or_default(),
        allowed_variables: fields.texts("allowedEnvVars").unwrap_or_default(),
    })
}

fn prompt(fields: &mut Fields<'_>) -> Result<PromptAction, HandlerError> {
    Ok(PromptAction {
        prompt: fields.need("prompt", "what the model is asked")?,
        model: fields.text("model"),
        continue_on_block: fields.switch("continueOnBlock"),
    })
}
