//! The events at which hooks run, and the facts about each: the subject of its matcher, its possible handlers, the
//! meaning of exit code 2.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Serialize, Serializer};
use thiserror::Error;

use crate::handler::HandlerType;

/// An event at which hooks run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Event {
    SessionStart,
    Setup,
    InstructionsLoaded,
    UserPromptSubmit,
    UserPromptExpansion,
    PreToolUse,
    PermissionRequest,
    PermissionDenied,
    PostToolUse,
    PostToolUseFailure,
    PostToolBatch,
    Notification,
    MessageDisplay,
    SubagentStart,
    SubagentStop,
    TaskCreated,
    TaskCompleted,
    Stop,
    StopFailure,
    TeammateIdle,
    ConfigChange,
    CwdChanged,
    DirectoryAdded,
    FileChanged,
    WorktreeCreate,
    WorktreeRemove,
    PreCompact,
    PostCompact,
    PreModelSwitch,
    PostModelSwitch,
    Elicitation,
    ElicitationResult,
    SessionEnd,
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is no event that hooks run at")]
pub struct UnknownEvent(pub String);

/// The effect of a command's exit code 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitTwo {
    /// Blocks the action; the model reads the reason.
    Blocks,
    /// The action has happened already; the model reads the error output.
    TellsModel,
    /// The user reads the error output.
    TellsUser,
    /// Nothing.
    Ignored,
}

/// The facts about one event.
struct Facts {
    event: Event,
    name: &'static str,
    matcher: Option<&'static str>,
    handlers: Handlers,
    exit_two: ExitTwo,
}

/// The events that this program fires. The user is told that hooks of the others never run. Firing another one does not
/// compile.
const FIRED: &[Event] = &[
    Event::SessionStart,
    Event::Setup,
    Event::InstructionsLoaded,
    Event::UserPromptSubmit,
    Event::UserPromptExpansion,
    Event::PreToolUse,
    Event::PermissionRequest,
    Event::PermissionDenied,
    Event::PostToolUse,
    Event::PostToolUseFailure,
    Event::PostToolBatch,
    Event::Notification,
    Event::MessageDisplay,
    Event::SubagentStart,
    Event::SubagentStop,
    Event::Stop,
    Event::StopFailure,
    Event::TeammateIdle,
    Event::PreCompact,
    Event::PostCompact,
    Event::PreModelSwitch,
    Event::PostModelSwitch,
    Event::ConfigChange,
    Event::CwdChanged,
    Event::DirectoryAdded,
    Event::FileChanged,
    Event::WorktreeCreate,
    Event::WorktreeRemove,
    Event::Elicitation,
    Event::ElicitationResult,
    Event::TaskCreated,
    Event::TaskCompleted,
    Event::SessionEnd,
];

/// The handlers that an event accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Handlers {
    All,
    /// No model: it would be asked too often, or the event would not wait for its answer.
    NoModel,
    /// Only handlers that work before the network does.
    Early,
}

const fn facts(
    event: Event,
    name: &'static str,
    matcher: Option<&'static str>,
    handlers: Handlers,
    exit_two: ExitTwo,
) -> Facts {
    Facts { event, name, matcher, handlers, exit_two }
}

#[rustfmt::skip]
static FACTS: [Facts; Event::COUNT] = {
    use Event as E;
    use ExitTwo::{Blocks, Ignored, TellsModel, TellsUser};
    use Handlers::{All, Early, NoModel};
    const TOOL: Option<&str> = Some("the name of the tool");
    const AGENT: Option<&str> = Some("the type of the agent");
    const TRIGGER: Option<&str> = Some("manual or auto");
    const SERVER: Option<&str> = Some("the name of the MCP server");
    [
        facts(E::SessionStart, "SessionStart", Some("startup, resume, clear, compact or fork"), Early, TellsUser),
        facts(E::Setup, "Setup", Some("init or maintenance"), Early, TellsUser),
        facts(E::InstructionsLoaded, "InstructionsLoaded", Some("why the file was loaded"), NoModel, Ignored),
        facts(E::UserPromptSubmit, "UserPromptSubmit", None, All, Blocks),
        facts(E::UserPromptExpansion, "UserPromptExpansion", Some("the name of the command"), All, Blocks),
        facts(E::PreToolUse, "PreToolUse", TOOL, All, Blocks),
        facts(E::PermissionRequest, "PermissionRequest", TOOL, All, Ignored),
        facts(E::PermissionDenied, "PermissionDenied", TOOL, All, Ignored),
        facts(E::PostToolUse, "PostToolUse", TOOL, All, TellsModel),
        facts(E::PostToolUseFailure, "PostToolUseFailure", TOOL, All, TellsModel),
        facts(E::PostToolBatch, "PostToolBatch", None, All, Blocks),
        facts(E::Notification, "Notification", Some("the type of the notification"), NoModel, Ignored),
        facts(E::MessageDisplay, "MessageDisplay", None, NoModel, Ignored),
        facts(E::SubagentStart, "SubagentStart", AGENT, NoModel, TellsUser),
        facts(E::SubagentStop, "SubagentStop", AGENT, All, Blocks),
        facts(E::TaskCreated, "TaskCreated", None, All, Blocks),
        facts(E::TaskCompleted, "TaskCompleted", None, All, Blocks),
        facts(E::Stop, "Stop", None, All, Blocks),
        facts(E::StopFailure, "StopFailure", Some("the type of the error"), NoModel, Ignored),
        facts(E::TeammateIdle, "TeammateIdle", None, All, Blocks),
        facts(E::ConfigChange, "ConfigChange", Some("user_settings, project_settings, local_settings, policy_settings or skills"), NoModel, Blocks),
        facts(E::CwdChanged, "CwdChanged", None, NoModel, TellsUser),
        facts(E::DirectoryAdded, "DirectoryAdded", Some("slash_command or register_repo_root"), NoModel, Ignored),
        facts(E::FileChanged, "FileChanged", Some("the name of the file"), NoModel, TellsUser),
        facts(E::WorktreeCreate, "WorktreeCreate", None, NoModel, Blocks),
        facts(E::WorktreeRemove, "WorktreeRemove", None, NoModel, Ignored),
        facts(E::PreCompact, "PreCompact", TRIGGER, NoModel, Blocks),
        facts(E::PostCompact, "PostCompact", TRIGGER, NoModel, TellsUser),
        facts(E::PreModelSwitch, "PreModelSwitch", Some("command, picker or sdk"), NoModel, Blocks),
        facts(E::PostModelSwitch, "PostModelSwitch", Some("command, picker, sdk, auto or resume"), NoModel, TellsUser),
        facts(E::Elicitation, "Elicitation", SERVER, NoModel, Blocks),
        facts(E::ElicitationResult, "ElicitationResult", SERVER, NoModel, Blocks),
        facts(E::SessionEnd, "SessionEnd", Some("clear, resume, logout, prompt_input_exit or other"), NoModel, TellsUser),
    ]
};

impl Event {
    pub const COUNT: usize = 33;

    /// All events, in the order in which they may happen.
    pub fn all() -> impl Iterator<Item = Self> {
        FACTS.iter().map(|facts| facts.event)
    }

    fn facts(self) -> &'static Facts {
        // The table has the order of the enum, which a test holds.
        &FACTS[self as usize]
    }

    pub fn name(self) -> &'static str {
        self.facts().name
    }

    /// The subject of a matcher; `None` where every hook runs whatever its matcher says.
    pub fn what_matcher_means(self) -> Option<&'static str> {
        self.facts().matcher
    }

    /// Whether the event is about one call of a tool.
    pub fn is_about_a_call(self) -> bool {
        matches!(
            self,
            Self::PreToolUse
                | Self::PermissionRequest
                | Self::PermissionDenied
                | Self::PostToolUse
                | Self::PostToolUseFailure
        )
    }

    /// Whether a handler of this type can run at the event.
    pub fn supports(self, handler: HandlerType) -> bool {
        use HandlerType::{Agent, Callback, Command, Http, McpTool, Prompt};
        match (handler, self.facts().handlers) {
            (Command | McpTool | Callback, _) | (_, Handlers::All) => true,
            (Http, handlers) => handlers == Handlers::NoModel,
            (Prompt | Agent, _) => false,
        }
    }

    pub fn exit_two(self) -> ExitTwo {
        self.facts().exit_two
    }

    /// Whether this program fires the event.
    pub const fn is_fired(self) -> bool {
        let mut place = 0;
        while place < FIRED.len() {
            if FIRED[place] as usize == self as usize {
                return true;
            }
            place += 1;
        }
        false
    }

    /// Whether plain output of a hook is context for the model.
    pub(crate) fn takes_plain_context(self) -> bool {
        matches!(
            self,
            Self::UserPromptSubmit
                | Self::UserPromptExpansion
                | Self::SessionStart
                | Self::PreCompact
        )
    }

    /// Whether hooks get a file in which they may set variables for commands.
    pub fn has_env_file(self) -> bool {
        matches!(self, Self::SessionStart | Self::Setup | Self::CwdChanged | Self::FileChanged)
    }

    /// The default timeout of this event's hooks, if it is shorter than usual.
    pub(crate) fn patience(self) -> Option<Duration> {
        match self {
            Self::UserPromptSubmit => Some(Duration::from_secs(30)),
            Self::MessageDisplay => Some(Duration::from_secs(10)),
            _ => None,
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Event {
    type Err = UnknownEvent;

    fn from_str(name: &str) -> Result<Self, UnknownEvent> {
        Self::all().find(|event| event.name() == name).ok_or_else(|| UnknownEvent(name.to_owned()))
    }
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// A set of events in one number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EventSet(u64);

impl EventSet {
    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    pub(crate) fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    pub(crate) fn contains(self, event: Event) -> bool {
        self.0 & (1 << event as u32) != 0
    }
}

impl FromIterator<Event> for EventSet {
    fn from_iter<I: IntoIterator<Item = Event>>(events: I) -> Self {
        Self(events.into_iter().fold(0, |bits, event| bits | (1 << event as u32)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_the_order_of_the_events() {
        for (place, facts) in FACTS.iter().enumerate() {
            assert_eq!(facts.event as usize, place, "{}", facts.name);
            assert_eq!(format!("{:?}", facts.event), facts.name);
            assert_eq!(facts.name.parse(), Ok(facts.event));
        }
        assert_eq!("preToolUse".parse::<Event>(), Err(UnknownEvent("preToolUse".to_owned())));
    }

    #[test]
    fn handlers_are_supported_as_documented() {
        use HandlerType::{Agent, Callback, Command, Http, McpTool, Prompt};
        for (event, handler, expected) in [
            (Event::Stop, Prompt, true),
            (Event::PreToolUse, Agent, true),
            (Event::Notification, Http, true),
            (Event::Notification, Prompt, false),
            (Event::SubagentStart, Agent, false),
            (Event::SessionStart, McpTool, true),
            (Event::SessionStart, Http, false),
            (Event::Setup, Prompt, false),
            (Event::Setup, Command, true),
            (Event::Setup, Callback, true),
        ] {
            assert_eq!(event.supports(handler), expected, "{handler} on {event}");
        }
        // As many as the published table has in each column, and the two events about models.
        let count = |handler| Event::all().filter(|event| event.supports(handler)).count();
        assert_eq!((count(Prompt), count(Http), count(Command)), (13, 31, 33));
    }

    #[test]
    fn a_set_holds_what_was_put_in() {
        let set: EventSet = [Event::SessionStart, Event::SessionEnd].into_iter().collect();
        let found: Vec<_> = Event::all().filter(|event| set.contains(*event)).collect();
        assert_eq!(found, [Event::SessionStart, Event::SessionEnd]);
        assert_eq!(EventSet::from_bits(set.bits()), set);
    }
}
