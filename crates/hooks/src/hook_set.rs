//! A set of hooks from one source: parsed once, never changed, cheap to clone.

use std::sync::Arc;

use centurion_config::FileError;
use centurion_config::settings::{Lines, Off, Settings};
use serde_json::Value;

use crate::event::{Event, EventSet};
use crate::handler::Handler;
use crate::matcher::Matcher;
use crate::origin::{HookOrigin, HookProblem, HookSource};
use crate::parse::{Form, Parser};

/// The hooks of one source, and their problems.
#[derive(Clone, Debug, Default)]
pub struct HookSet(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    hooks: Vec<Hook>,
    events: EventSet,
    problems: Vec<HookProblem>,
    skipped: usize,
}

/// A hook with its event.
#[derive(Clone, Debug)]
pub(crate) struct Hook {
    pub(crate) event: Event,
    pub(crate) matcher: Arc<Matcher>,
    pub(crate) handler: Arc<Handler>,
}

/// The kind of file with the frontmatter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frontmatter {
    Agent,
    Skill,
}

impl HookSet {
    pub(crate) fn new(hooks: Vec<Hook>, problems: Vec<HookProblem>, skipped: usize) -> Self {
        let events = hooks.iter().map(|hook| hook.event).collect();
        Self(Arc::new(Inner { hooks, events, problems, skipped }))
    }

    /// The hooks of all settings files in force, the strongest first.
    pub fn from_settings(settings: &Settings) -> Self {
        let mut parser = Parser::new(Form::Settings);
        let limits = settings.hook_limits();
        let mut was_told = Vec::new();
        for declared in settings.hooks() {
            let origin = &declared.origin;
            let source = HookSource::Settings(origin.level);
            let origin = HookOrigin::in_file(source, Arc::clone(&origin.file), Some(origin.line));
            if let Some(off) = &declared.off {
                // A file may hold many groups that are off for the same reason.
                let told = (Arc::clone(&declared.origin.file), switched_off(off));
                if !was_told.contains(&told) {
                    parser.keep_off(&origin, told.1.clone());
                    was_told.push(told);
                }
            } else if let Some(by) = &limits.managed_only
                && !origin.source.is_managed()
            {
                parser.keep_off(
                    &origin,
                    format!("these hooks do not run: {by} lets only managed hooks count"),
                );
            } else {
                parser.read(&declared.value, &declared.lines, "", &origin);
            }
        }
        parser.finish()
    }

    /// Parses the hooks of a plugin or the command line: the events, or an object with the events in `hooks`.
    pub fn from_value(value: &Value, origin: &HookOrigin) -> Self {
        Self::with_lines(value, &Lines::default(), origin)
    }

    /// The same from the text of a file, so that problems have line numbers.
    pub fn from_text(text: &str, origin: &HookOrigin) -> Result<Self, FileError> {
        let (value, lines) = Lines::read(text)?;
        Ok(Self::with_lines(&value, &lines, origin))
    }

    /// The same from a part of a file, with its line numbers.
    pub fn with_lines(value: &Value, lines: &Lines, origin: &HookOrigin) -> Self {
        let mut parser = Parser::new(Form::Settings);
        match value.get("hooks") {
            Some(hooks) => parser.read(hooks, lines, "/hooks", origin),
            None => parser.read(value, lines, "", origin),
        }
        parser.finish()
    }

    /// Parses the hooks of an agent's definition or of a skill, in either form: a handler directly below its event has
    /// its timeout in milliseconds, one in a list `hooks` has it in seconds.
    pub fn from_frontmatter(value: &Value, origin: &HookOrigin, of: Frontmatter) -> Self {
        let mut parser = Parser::new(Form::Frontmatter(of));
        parser.read(value, &Lines::default(), "", origin);
        let set = parser.finish();
        if set.skipped() > 0 {
            tracing::debug!(%origin, skipped = set.skipped(), "entries without hooks are skipped");
        }
        set
    }

    /// Parses the functions of the host, which it names at its start.
    pub fn from_host(value: &Value) -> Self {
        let mut parser = Parser::new(Form::Host);
        parser.read(value, &Lines::default(), "", &HookOrigin::new(HookSource::Host));
        parser.finish()
    }

    /// The same hooks for a subagent: its end is a `SubagentStop`.
    pub fn as_subagent(&self) -> Self {
        let hooks = self.0.hooks.iter().cloned().map(|hook| match hook.event {
            Event::Stop => Hook { event: Event::SubagentStop, ..hook },
            _ => hook,
        });
        Self::new(hooks.collect(), self.0.problems.clone(), self.0.skipped)
    }

    /// Declared hooks that cannot run, or not as written.
    pub fn problems(&self) -> &[HookProblem] {
        &self.0.problems
    }

    /// The number of entries without hooks.
    pub fn skipped(&self) -> usize {
        self.0.skipped
    }

    /// All hooks, in the order of their declaration.
    pub fn handlers(&self) -> impl Iterator<Item = (Event, &Handler)> {
        self.0.hooks.iter().map(|hook| (hook.event, &*hook.handler))
    }

    pub fn len(&self) -> usize {
        self.0.hooks.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.hooks.is_empty()
    }

    pub(crate) fn hooks(&self) -> &[Hook] {
        &self.0.hooks
    }

    pub(crate) fn events(&self) -> EventSet {
        self.0.events
    }
}

fn switched_off(off: &Off) -> String {
    match off {
        Off::Untrusted => {
            "these hooks do not run: they come from the repository, and this folder is \
                           not trusted; help: `centurion trust`"
                .to_owned()
        }
        Off::Unaccepted(reason) => format!("these hooks do not run: {reason}"),
        Off::PluginOnly(by) => {
            format!("these hooks do not run: {by} leaves hooks to plugins and managed settings")
        }
        _ => "these hooks do not run: they do not count in a file of this level".to_owned(),
    }
}

#[cfg(test)]
mod tests;
