//! The rows of agents and background shells: a tree, in the order of their start.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use centurion_protocol::AgentId;
use centurion_protocol::sdk::{TaskStarted, TaskUsage, WaitsFor};

use super::Moment;
use super::call::Call;
use crate::frame::{Colour, Line};

/// The most lines of an agent's transcript in memory; older ones are pages of its journal.
pub(crate) const MOST_LINES: usize = 200;
/// The most rows of ended agents in memory.
const MOST_ENDED: usize = 500;
/// The time that the row of an ended agent stays in the tree.
const STAYS: Duration = Duration::from_secs(30);

/// The rows of a session.
#[derive(Clone, Debug, Default)]
pub(crate) struct Agents {
    rows: HashMap<AgentId, AgentRow>,
    /// In the order of their start.
    order: Vec<AgentId>,
    pub(crate) folded: HashSet<AgentId>,
}

/// The state of an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum AgentState {
    #[default]
    Works,
    Asks,
    Waits(WaitsFor),
    /// A member of a team with nothing to do.
    Rests,
    Done,
    Failed,
    Stopped,
}

impl AgentState {
    pub(crate) fn has_ended(self) -> bool {
        matches!(self, Self::Done | Self::Failed | Self::Stopped)
    }

    /// The mark beside the row.
    pub(crate) fn mark(self) -> &'static str {
        match self {
            Self::Works => "●",
            Self::Asks => "?",
            Self::Waits(_) => "⧗",
            Self::Rests => "◌",
            Self::Done => "✓",
            Self::Failed => "✗",
            Self::Stopped => "■",
        }
    }
}

/// One agent, or a shell in the background.
#[derive(Clone, Debug, Default)]
pub(crate) struct AgentRow {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) task: String,
    /// The colour that people know it by.
    pub(crate) colour: Colour,
    pub(crate) parent: Option<AgentId>,
    pub(crate) depth: usize,
    pub(crate) is_shell: bool,
    pub(crate) is_background: bool,
    pub(crate) state: AgentState,
    /// Its present act.
    pub(crate) activity: String,
    pub(crate) running: Vec<Call>,
    pub(crate) calls: u64,
    pub(crate) tokens: u64,
    /// The spending with everything below it.
    pub(crate) dollars: f64,
    pub(crate) began: Moment,
    pub(crate) ended: Option<Moment>,
    pub(crate) worked: Duration,
    /// The last lines of its transcript.
    pub(crate) lines: VecDeque<Line>,
    /// True if a person saw how it failed.
    pub(crate) is_seen: bool,
}

impl AgentRow {
    pub(crate) fn time(&self, now: Moment) -> Duration {
        match self.ended {
            Some(_) => self.worked,
            None => now.saturating_sub(self.began),
        }
    }

    pub(crate) fn note(&mut self, line: Line) {
        if self.lines.len() >= MOST_LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }
}

/// The colour of the terminal that is nearest to the one of a definition.
fn colour(name: &str) -> Colour {
    match name {
        "red" => Colour::Red,
        "green" => Colour::Green,
        "yellow" | "orange" => Colour::Yellow,
        "blue" => Colour::Blue,
        "purple" | "pink" | "magenta" => Colour::Magenta,
        "cyan" => Colour::Cyan,
        _ => Colour::Default,
    }
}

/// The sums of a row with everything below it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sums {
    pub(crate) agents: usize,
    pub(crate) calls: u64,
    pub(crate) tokens: u64,
}

impl Agents {
    pub(crate) fn get(&self, id: &AgentId) -> Option<&AgentRow> {
        self.rows.get(id)
    }

    pub(crate) fn get_mut(&mut self, id: &AgentId) -> Option<&mut AgentRow> {
        self.rows.get_mut(id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&AgentId, &AgentRow)> {
        self.order.iter().filter_map(|id| Some((id, self.rows.get(id)?)))
    }

    /// Takes note that an agent or a shell begins, or is resumed.
    pub(crate) fn begin(&mut self, started: &TaskStarted, now: Moment) -> AgentId {
        let id = AgentId::new(started.task_id.as_str());
        if let Some(row) = self.rows.get_mut(&id) {
            row.state = AgentState::Works;
            row.is_background = started.is_backgrounded;
            (row.began, row.ended) = (now, None);
            row.activity.clear();
            return id;
        }
        let kind = started.subagent_type.clone();
        let parent = started.parent_task_id.clone().filter(|parent| self.rows.contains_key(parent));
        let row = AgentRow {
            name: started
                .name
                .clone()
                .or_else(|| kind.clone())
                .unwrap_or_else(|| "shell".to_owned()),
            is_shell: kind.is_none(),
            kind: kind.unwrap_or_default(),
            task: started.description.clone(),
            colour: started.color.as_deref().map_or(Colour::Default, colour),
            depth: parent.as_ref().and_then(|it| self.rows.get(it)).map_or(0, |row| row.depth + 1),
            parent,
            is_background: started.is_backgrounded,
            began: now,
            ..AgentRow::default()
        };
        self.rows.insert(id.clone(), row);
        self.order.push(id.clone());
        self.drop_oldest();
        id
    }

    pub(crate) fn end(
        &mut self,
        id: &AgentId,
        state: AgentState,
        usage: Option<TaskUsage>,
        now: Moment,
    ) {
        let Some(row) = self.rows.get_mut(id) else { return };
        row.worked = now.saturating_sub(row.began);
        row.state = state;
        row.ended = Some(now);
        row.running.clear();
        row.activity.clear();
        if let Some(usage) = usage {
            row.use_up(usage);
            row.worked = Duration::from_millis(usage.duration_ms);
        }
    }

    /// Drops rows of agents that ended first, where there are too many.
    fn drop_oldest(&mut self) {
        if self.order.len() <= MOST_ENDED * 2 {
            return;
        }
        let surplus = self.order.len() - MOST_ENDED;
        let rows = &self.rows;
        let is_parent: HashSet<AgentId> = rows
            .values()
            .filter(|row| row.ended.is_none())
            .filter_map(|row| row.parent.clone())
            .collect();
        let gone: HashSet<AgentId> = self
            .order
            .iter()
            .filter(|id| {
                rows.get(*id).is_none_or(|row| row.ended.is_some()) && !is_parent.contains(*id)
            })
            .take(surplus)
            .cloned()
            .collect();
        self.order.retain(|id| !gone.contains(id));
        self.rows.retain(|id, _| !gone.contains(id));
        self.folded.retain(|id| !gone.contains(id));
        let rows: HashSet<AgentId> = self.rows.keys().cloned().collect();
        for row in self.rows.values_mut() {
            row.parent = row.parent.take().filter(|parent| rows.contains(parent));
        }
    }

    pub(crate) fn any_at_work(&self) -> bool {
        self.rows.values().any(|row| row.ended.is_none() && row.state != AgentState::Rests)
    }

    /// True if the row of an ended agent has yet to leave the tree.
    pub(crate) fn any_leaving(&self, now: Moment) -> bool {
        self.rows
            .values()
            .any(|row| row.state != AgentState::Failed && row.ended.is_some() && row.is_shown(now))
    }

    /// The number of agents at work, and of those that ask.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let at_work = self.rows.values().filter(|row| row.ended.is_none());
        at_work.fold((0, 0), |(count, asks), row| {
            (count + 1, asks + usize::from(row.state == AgentState::Asks))
        })
    }

    /// The names from the main agent's children down to an agent.
    pub(crate) fn path(&self, id: &AgentId) -> Vec<String> {
        let mut names = Vec::new();
        let mut next = Some(id.clone());
        while let Some(row) = next.as_ref().and_then(|id| self.rows.get(id)) {
            names.push(row.name.clone());
            next.clone_from(&row.parent);
            if names.len() > self.rows.len() {
                break;
            }
        }
        names.reverse();
        names
    }

    pub(crate) fn children<'a>(
        &'a self,
        parent: Option<&'a AgentId>,
    ) -> impl Iterator<Item = &'a AgentId> {
        self.iter().filter(move |(_, row)| row.parent.as_ref() == parent).map(|(id, _)| id)
    }

    /// The sums of a row with everything below it.
    pub(crate) fn sums(&self, id: &AgentId) -> Sums {
        let mut sums = Sums::default();
        let mut below: Vec<&AgentId> = vec![id];
        while let Some(id) = below.pop() {
            if let Some(row) = self.rows.get(id) {
                sums.agents += 1;
                sums.calls += row.calls;
                sums.tokens += row.tokens;
            }
            if sums.agents > self.rows.len() {
                break;
            }
            below.extend(self.children(Some(id)));
        }
        sums
    }

    /// The rows that the tree shows, in their order: those that ask come first among siblings.
    pub(crate) fn shown(&self, now: Moment) -> Vec<&AgentId> {
        let mut children: HashMap<Option<&AgentId>, Vec<&AgentId>> = HashMap::new();
        for (id, row) in self.iter() {
            children.entry(row.parent.as_ref()).or_default().push(id);
        }
        let mut asking: HashSet<&AgentId> = HashSet::new();
        let mut visible: HashSet<&AgentId> = HashSet::new();
        for (id, row) in self.iter() {
            let marks =
                [(row.state == AgentState::Asks, &mut asking), (row.is_shown(now), &mut visible)];
            for (is_so, set) in marks {
                let mut next = Some(id).filter(|_| is_so);
                while let Some(id) = next.filter(|id| set.insert(*id)) {
                    next = self.rows.get(id).and_then(|row| row.parent.as_ref());
                }
            }
        }
        for siblings in children.values_mut() {
            siblings.retain(|id| visible.contains(id));
            siblings.sort_by_key(|id| !asking.contains(id));
        }
        let mut shown = Vec::new();
        let mut stack: Vec<&AgentId> =
            children.get(&None).into_iter().flatten().rev().copied().collect();
        while let Some(id) = stack.pop() {
            shown.push(id);
            if !self.folded.contains(id) {
                stack.extend(children.get(&Some(id)).into_iter().flatten().rev().copied());
            }
        }
        shown
    }
}

impl AgentRow {
    /// True if the tree has a row for it: an ended one leaves after a while, one that failed when it was seen.
    pub(crate) fn is_shown(&self, now: Moment) -> bool {
        match self.ended {
            None => true,
            Some(_) if self.state == AgentState::Failed => !self.is_seen,
            Some(ended) => now.saturating_sub(ended) < STAYS,
        }
    }

    pub(crate) fn use_up(&mut self, usage: TaskUsage) {
        self.tokens = usage.total_tokens;
        self.calls = usage.tool_uses;
    }
}
