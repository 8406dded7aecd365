//! An act that a fold wants done: by the session, the disk, the terminal or another program.

use centurion_protocol::{AgentId, SessionId};
use serde_json::Value;

use crate::attachment::Attachment;
use crate::draft::Draft;
use crate::look::Theme;
use crate::model::asks::AskNumber;
use crate::model::prompts::{PromptNumber, When};
use crate::model::table::{FileLine, TableOf};
use crate::surface::{Scroll, Tui};

#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Sends a prompt to the main agent.
    Submit { number: PromptNumber, text: String, when: When },
    /// Sends words to another agent.
    Tell { agent: AgentId, number: PromptNumber, text: String, when: When },
    /// Sends images along with the prompt of this number, which follows.
    Attach { number: PromptNumber, images: Vec<Attachment> },
    /// Takes back what no turn has read.
    Withdraw(PromptNumber),
    /// Stops the main agent's turn.
    Interrupt,
    /// Stops what an agent or a shell does; a message resumes the agent.
    StopTask(AgentId),
    /// Stops all agents in the background.
    StopAll,
    /// Lets the calls that wait continue: of one agent, or all.
    Background(Option<AgentId>),
    /// Has the main agent wait for an agent in the background.
    Foreground(AgentId),
    /// Answers a question, in the shape of the public protocol.
    Answer { number: AskNumber, answer: Value },
    /// Takes the next of the permission modes.
    SetMode(String),
    /// Changes how much the model is to work on an answer: a level, or `usual`.
    SetEffort(String),
    /// Lets the model think before it answers, or not.
    ToggleThinking,
    /// Asks for the status line of a state, in the documented shape.
    StatusLine(Value),
    /// Shows everything in the colours of a theme.
    Restyle(Theme),
    /// Uses another screen of the terminal.
    Use(Tui),
    /// Moves through what was printed, where the terminal's own scrollback does not have it.
    Scroll(Scroll),
    /// Asks whether files of the person's that the terminal follows have changed.
    LookAtFiles,
    /// Asks for the image that was copied last.
    PasteImage,
    /// Asks for the image of a path that was pasted.
    ReadImage { path: String, pasted: String },
    /// Asks for a page of a transcript.
    Page { agent: Option<AgentId>, before: Option<u64> },
    /// Asks for what a command shows.
    Show { command: String },
    /// Asks for a table; `is_again` if it is shown already.
    Table { of: TableOf, subject: String, is_again: bool },
    /// Asks for all that is known of a row of a table.
    Detail { of: TableOf, subject: String, id: String },
    /// Asks in which sessions of these places something was said.
    SearchSessions { words: String, places: String },
    /// Changes something that is on disk, or of the session.
    Change { change: TableChange, of: TableOf, subject: String },
    /// Opens a file in the person's editor.
    OpenFile(FileLine),
    /// Leaves this session for a copy of another one.
    Fork(SessionId),
    /// Leaves this session for a copy of it.
    Branch,
    /// Has the person change their keys in an editor.
    EditKeys,
    /// Keeps a setting of the person's own.
    KeepSetting { key: &'static str, value: String },
    /// Leaves this session for another one.
    Resume(SessionId),
    /// Asks for files whose names fit a word.
    FindFiles(String),
    /// Runs a command of the person's own.
    Shell { number: u64, command: String },
    /// Ends such a command with everything that it started.
    StopShell(u64),
    /// Keeps a draft, which may be empty.
    SaveDraft { agent: Option<AgentId>, draft: Draft },
    /// Keeps a prompt in the history.
    Remember(String),
    /// Opens the draft in an editor.
    Editor(String),
    /// Opens a plan that waits for approval in an editor.
    EditPlan { number: AskNumber, text: String },
    /// Opens a text in an editor for reading.
    ReadInEditor(String),
    /// Copies a text.
    Copy(String),
    /// Calls a person who looks elsewhere.
    Notify(String),
    /// Writes the whole live region again.
    Redraw,
    /// Stops the program until the shell continues it.
    Suspend,
    /// Leaves this session for the demo.
    PlayDemo,
    /// Ends the session.
    Exit,
}

/// The files in which a setting can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingLevel {
    /// The person's own.
    User,
    /// The person's own for this project.
    Local,
    /// The project's, for all its users.
    Project,
}

/// A change that a person makes in a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableChange {
    /// A setting is this value; nothing unsets it.
    Setting {
        key: String,
        text: String,
        level: SettingLevel,
    },
    /// A field of an agent's file is this text; `None` takes it out.
    AgentField {
        file: String,
        field: String,
        text: Option<String>,
    },
    /// There is a new agent: the person's own, or the project's.
    NewAgent {
        name: String,
        is_own: bool,
    },
    SwitchAgent {
        name: String,
        is_on: bool,
    },
    SwitchSkill {
        name: String,
        is_on: bool,
    },
    SwitchServer {
        name: String,
        is_on: bool,
    },
    /// A server is connected again.
    ConnectServer(String),
    /// A member of the team is asked to end.
    AskToEnd(AgentId),
    SessionTitle {
        session: SessionId,
        title: String,
    },
}
