//! The model: what the terminal knows of a session. Rows and states, no history: what is finished is printed once, and older
//! parts of a transcript are read as pages.
//!
//! Only [`fold`](crate::fold()) changes it. It knows no clock: every change brings its moment.

pub(crate) mod agents;
pub(crate) mod asks;
pub(crate) mod call;
pub(crate) mod menu;
pub(crate) mod picker;
pub(crate) mod prompts;
pub(crate) mod screen;
pub(crate) mod table;
pub(crate) mod talk;

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use centurion_protocol::{AgentId, SessionId};

use self::agents::Agents;
use self::asks::Asks;
use self::menu::Menu;
use self::prompts::Prompts;
use self::screen::Screen;
use self::table::TableOf;
use self::talk::TurnState;
use crate::attachment::Attachment;
use crate::draft::{Draft, History, Vi};
use crate::frame::{Line, Size};
use crate::keys::Bindings;

/// A moment, counted from the start of the terminal.
pub type Moment = Duration;

/// The agent that keys and words are for; `None` is the main agent.
pub(crate) type Addressee = Option<AgentId>;

/// The interval between ticks while something moves: as a rule, over a network, and where a person looks elsewhere.
const TICK: Duration = Duration::from_millis(250);
const FAR_TICK: Duration = Duration::from_millis(500);
const CLOCK_TICK: Duration = Duration::from_secs(1);
/// The longest pause between two presses of one gesture, such as Esc Esc.
const GESTURE: Duration = Duration::from_millis(800);
/// The pause after the last key before a draft is saved.
pub(crate) const SAVE_AFTER: Duration = Duration::from_millis(300);

/// All that the terminal knows of a session.
#[derive(Clone, Debug, Default)]
pub struct Model {
    pub(crate) now: Moment,
    /// The window, as far as it was told.
    pub(crate) size: Size,
    pub(crate) facts: Facts,
    pub(crate) talk: TurnState,
    pub(crate) agents: Agents,
    pub(crate) prompts: Prompts,
    pub(crate) asks: Asks,
    pub(crate) focus: Focus,
    pub(crate) drafts: HashMap<Addressee, Draft>,
    /// The drafts that are not saved, each with the moment of its last change.
    pub(crate) unsaved: HashMap<Addressee, Moment>,
    pub(crate) history: History,
    pub(crate) menu: Option<Menu>,
    pub(crate) screen: Option<Screen>,
    pub(crate) bindings: Bindings,
    pub(crate) hands: Gestures,
    pub(crate) taste: Preferences,
    pub(crate) images: Images,
    /// A line that tells of the last thing that a key did; until the next key.
    pub(crate) notice: Option<String>,
    /// The commands that can be typed, each with its hint.
    pub(crate) commands: Vec<CommandHint>,
}

#[expect(clippy::struct_excessive_bools, reason = "each is a wish of its own")]
/// The ways in which a person wants things, from their settings.
#[derive(Clone, Debug, Default)]
pub(crate) struct Preferences {
    /// vi keys, where they are wanted.
    pub(crate) vi: Option<Vi>,
    /// True if lines are written one below the other, and lines are read.
    pub(crate) is_plain: bool,
    /// True if nothing is to turn or count.
    pub(crate) is_still: bool,
    /// True if each byte is long on its way: ticks are rarer.
    pub(crate) is_far: bool,
    /// True if a command of the person's own makes rows of the status.
    pub(crate) wants_status: bool,
    /// The rows that the person's own command has made for the status line.
    pub(crate) status: Vec<Line>,
    /// The same for rows of agents.
    pub(crate) agent_rows: HashMap<AgentId, Line>,
}

/// The images that drafts and prompts name, by the label that names them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Images {
    pub(crate) last: u64,
    pub(crate) kept: VecDeque<(String, Attachment)>,
}

/// The facts of the session that the status line shows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    pub(crate) session: Option<SessionId>,
    pub(crate) model: String,
    pub(crate) mode: String,
    pub(crate) cwd: String,
    /// The tokens of the last request, and of the window.
    pub(crate) context: u64,
    pub(crate) window: u64,
    pub(crate) dollars: f64,
    /// False until the session is open.
    pub(crate) is_open: bool,
    /// True if the terminal has told that the person looks elsewhere. One that tells nothing may be looked at.
    pub(crate) is_away: bool,
}

/// A command that can be typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandHint {
    /// Without the slash.
    pub name: String,
    pub about: String,
    pub arguments: String,
}

/// The part of the screen that keys go to, beside dialogs and screens, which come first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Focus {
    #[default]
    Prompt,
    /// The tree, with the selected row.
    Tree(AgentId),
    /// One agent: its transcript, and a prompt of its own.
    Agent(AgentId),
}

#[expect(clippy::struct_field_names, reason = "each is the last moment of something")]
/// The person's hands: when they last moved, and the gestures that have begun.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gestures {
    pub(crate) last_key: Option<Moment>,
    pub(crate) last_escape: Option<Moment>,
    pub(crate) last_clear: Option<Moment>,
    pub(crate) last_stop: Option<Moment>,
}

impl Gestures {
    /// True if a press at `now` completes a gesture that began at `first`.
    pub(crate) fn completes(first: Option<Moment>, now: Moment) -> bool {
        first.is_some_and(|first| now.saturating_sub(first) <= GESTURE)
    }
}

impl Model {
    /// The addressee of what is typed now.
    pub(crate) fn addressee(&self) -> Addressee {
        match &self.focus {
            Focus::Agent(id) => Some(id.clone()),
            Focus::Prompt | Focus::Tree(_) => None,
        }
    }

    pub(crate) fn draft(&self) -> Option<&Draft> {
        self.drafts.get(&self.addressee())
    }

    pub(crate) fn draft_mut(&mut self) -> &mut Draft {
        self.drafts.entry(self.addressee()).or_default()
    }

    pub(crate) fn is_draft_empty(&self) -> bool {
        self.draft().is_none_or(Draft::is_empty)
    }

    /// Puts a text in the place of the draft.
    pub(crate) fn set_draft(&mut self, text: &str) {
        self.draft_mut().set(text);
    }

    /// True if the main agent is at work.
    pub(crate) fn is_busy(&self) -> bool {
        self.talk.is_busy
    }

    /// The moment of the next tick; `None` where nothing moves.
    pub fn next_tick(&self) -> Option<Moment> {
        let moves = !self.taste.is_plain
            && (self.talk.is_busy
                || !self.talk.shells.is_empty()
                || self.agents.any_at_work()
                || self.agents.any_leaving(self.now));
        let tick = moves.then(|| self.now + self.tick());
        let save = self.unsaved.values().min().map(|changed| *changed + SAVE_AFTER);
        let ask = self.asks.next_change(self.hands.last_key).filter(|_| self.screen.is_none());
        [tick, save, ask].into_iter().flatten().min()
    }

    /// The interval between ticks while something moves. Clocks show whole seconds: where nothing turns, more would show
    /// the same again.
    fn tick(&self) -> Duration {
        let turns = self.talk.is_busy || !self.talk.shells.is_empty();
        match (self.facts.is_away || !turns, self.taste.is_far || self.taste.is_still) {
            (true, _) => CLOCK_TICK,
            (false, true) => FAR_TICK,
            (false, false) => TICK,
        }
    }

    /// The table that is shown, if its rows change while agents work.
    pub(crate) fn moving_table(&self) -> Option<(TableOf, String)> {
        match &self.screen {
            // Statements in words are not said again because a number has changed.
            Some(Screen::Table(table)) if table.state.words.is_none() && !self.taste.is_plain => {
                let moves = matches!(table.of, TableOf::Team | TableOf::Costs | TableOf::Contexts);
                moves.then(|| (table.of, table.subject.clone()))
            }
            _ => None,
        }
    }

    /// The finished lines that no frame has shown, for printing.
    pub fn unprinted(&self) -> &[Line] {
        &self.talk.print
    }

    /// Takes note that the finished lines were printed.
    pub fn printed(&mut self) {
        self.talk.print.clear();
    }

    /// The commands that can be typed.
    pub fn set_commands(&mut self, commands: Vec<CommandHint>) {
        self.commands = commands;
    }

    pub fn set_bindings(&mut self, bindings: Bindings) {
        self.bindings = bindings;
    }

    /// Shows lines one below the other from now on, in words for a screen reader.
    pub fn set_plain(&mut self) {
        self.taste.is_plain = true;
        self.taste.is_still = true;
    }

    /// The prompts of earlier sessions, oldest first.
    pub fn set_history(&mut self, entries: Vec<String>) {
        self.history = History::new(entries);
    }

    /// Puts back the drafts that an earlier process left, each with its agent; `None` is the main one.
    pub fn restore_drafts(&mut self, drafts: impl IntoIterator<Item = (Option<AgentId>, Draft)>) {
        for (agent, draft) in drafts {
            self.drafts.entry(agent).or_insert(draft);
        }
    }
}

impl Default for Bindings {
    fn default() -> Self {
        Self::defaults()
    }
}
