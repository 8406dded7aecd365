//! The team of a session: which agents are members, and which requests between them and the lead are open.
//!
//! A member is an agent like any other: its run ends when it has nothing to do, and a message begins the next one.
//! So the roster is nothing but the agents that were started as members. It survives the process with their
//! transcripts.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use centurion_protocol::{AgentId, RecordId};
use centurion_team::{MemberName, TeamName};
use indexmap::IndexMap;
use jiff::Timestamp;
use parking_lot::Mutex;
use thiserror::Error;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::agent::task::{End, Task};
use crate::agent::team_view::TeamView;

/// The colours of members, in the order in which they join.
const COLORS: [&str; 7] = ["blue", "green", "yellow", "purple", "orange", "pink", "cyan"];

/// The options of teams.
#[derive(Clone, Debug)]
pub struct TeamOptions {
    /// The name of the team until a call gives it another.
    pub name: TeamName,
    /// The longest time that a member may work on after it was asked to end.
    pub teardown: Duration,
    /// The directory of the files by which other programs see teams; `None` keeps this one out of their sight.
    pub views: Option<PathBuf>,
}

/// The team of a session.
pub(crate) struct Team {
    teardown: Duration,
    view: Option<TeamView>,
    state: Mutex<TeamState>,
}

struct TeamState {
    name: TeamName,
    description: Option<String>,
    /// True if the lead has chosen the name.
    is_named: bool,
    /// By name, in the order in which they joined; `None` while a member is being started.
    members: IndexMap<String, Option<Arc<Task>>>,
    shutdowns: Vec<OpenRequest>,
    plans: Vec<OpenRequest>,
    asks: Vec<OpenAsk>,
    /// The number in the id of the last request.
    last_number: i64,
}

/// A request that waits for its one answer.
#[derive(Clone, Debug)]
struct OpenRequest {
    id: String,
    /// The member that is to answer, or that asks.
    member: AgentId,
}

/// The ids of the requests that are open between the lead and one member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OpenRequests {
    pub(crate) shutdown: Option<String>,
    pub(crate) plan: Option<String>,
}

/// A question to the lead that waits for its answer.
struct OpenAsk {
    id: String,
    /// The message that puts it.
    mail: RecordId,
    answer: oneshot::Sender<LeadsAnswer>,
}

/// The lead's answer to a call of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LeadsAnswer {
    pub(crate) approve: bool,
    pub(crate) reason: String,
}

/// The reason why something was not done in the team.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum TeamError {
    #[error("the team is called {0:?} since its first member joined: leave `team_name` out")]
    HasOtherName(String),
    #[error("there is no open {what} with the id {id:?}")]
    NoRequest { what: &'static str, id: String },
    #[error("{0} was asked to end already and has not answered yet")]
    AskedAlready(String),
}

/// A name that is kept for a member while its agent is being started.
pub(crate) struct ReservedName<'a> {
    team: &'a Team,
    pub(crate) name: MemberName,
    pub(crate) color: &'static str,
    has_joined: bool,
}

impl ReservedName<'_> {
    /// The agent has begun.
    pub(crate) fn join(mut self, task: &Arc<Task>) {
        self.has_joined = true;
        let mut state = self.team.state.lock();
        state.members.insert(self.name.to_string(), Some(Arc::clone(task)));
        drop(state);
        self.team.show();
    }
}

impl Drop for ReservedName<'_> {
    fn drop(&mut self) {
        if !self.has_joined {
            self.team.state.lock().members.shift_remove(self.name.as_str());
        }
    }
}

impl End {
    /// Tells whether an agent that ended so is no longer a member of its team.
    pub(crate) fn leaves_team(&self) -> bool {
        use crate::agent::task::Stopper::{Agent, Person, Shutdown};
        matches!(self.stopped_by, Some(Agent | Person | Shutdown))
    }
}

impl Team {
    pub(crate) fn new(options: TeamOptions) -> Self {
        let state = TeamState {
            name: options.name,
            description: None,
            is_named: false,
            members: IndexMap::new(),
            shutdowns: Vec::new(),
            plans: Vec::new(),
            asks: Vec::new(),
            last_number: 0,
        };
        let view = options.views.map(TeamView::new);
        Self { teardown: options.teardown, view, state: Mutex::new(state) }
    }

    /// The files by which other programs see the team.
    pub(crate) fn view(&self) -> Option<&TeamView> {
        self.view.as_ref()
    }

    /// Has the files by which other programs see the team written anew.
    pub(crate) fn show(&self) {
        self.view.iter().for_each(|view| view.changed.notify_one());
    }

    /// Tells whether there is something to see: members, or a name that the lead has chosen.
    pub(crate) fn is_shown(&self) -> bool {
        let state = self.state.lock();
        state.is_named || !state.members.is_empty()
    }

    pub(crate) fn description(&self) -> Option<String> {
        self.state.lock().description.clone()
    }

    pub(crate) fn name(&self) -> TeamName {
        self.state.lock().name.clone()
    }

    /// Gives the team a name, as long as no member knows it by another.
    pub(crate) fn set_name(
        &self,
        name: TeamName,
        description: Option<String>,
    ) -> Result<(), TeamError> {
        let mut state = self.state.lock();
        if state.name != name && !state.members.is_empty() {
            return Err(TeamError::HasOtherName(state.name.to_string()));
        }
        state.name = name;
        state.description = description.or(state.description.take());
        state.is_named = true;
        drop(state);
        self.show();
        Ok(())
    }

    /// Keeps a name for a member that is about to start: the one that was asked for, or the next free one. A name
    /// stays with its agent when that has ended: others may still speak to it.
    pub(crate) fn reserve(
        &self,
        asked: MemberName,
        is_taken: impl Fn(&str) -> bool,
    ) -> ReservedName<'_> {
        let mut state = self.state.lock();
        let name = asked.or_next_free(|name| state.members.contains_key(name) || is_taken(name));
        let color = COLORS[state.members.len() % COLORS.len()];
        state.members.insert(name.to_string(), None);
        drop(state);
        ReservedName { team: self, name, color, has_joined: false }
    }

    /// Enters a member of an earlier process.
    pub(crate) fn enter(&self, task: &Arc<Task>) {
        let (Some(team), Some(name)) = (&task.spec.team, &task.spec.name) else { return };
        let mut state = self.state.lock();
        state.name = team.name.clone();
        state.members.insert(name.clone(), Some(Arc::clone(task)));
        drop(state);
        self.show();
    }

    /// Tells whether a name is a member's, or was one's that has left.
    pub(crate) fn has_name(&self, name: &str) -> bool {
        self.state.lock().members.contains_key(name)
    }

    /// Every member that ever was, with those that have left, in the order in which they joined.
    pub(crate) fn all_members(&self) -> Vec<Arc<Task>> {
        self.state.lock().members.values().flatten().cloned().collect()
    }

    /// The members that have not left.
    pub(crate) fn members(&self) -> Vec<Arc<Task>> {
        let mut members = self.all_members();
        members.retain(|task| task.end().is_none_or(|end| !end.leaves_team()));
        members
    }

    /// Tells whether no member is at work.
    pub(crate) fn is_idle(&self) -> bool {
        self.all_members().iter().all(|task| !task.is_running())
    }

    /// Tells whether the lead has asked a member to end and has no answer yet.
    pub(crate) fn is_asked_to_end(&self, member: &AgentId) -> bool {
        self.state.lock().shutdowns.iter().any(|request| request.member == *member)
    }

    /// The number for the id of a request: the milliseconds of this moment, or the next that no request has. An answer to
    /// one request must not pass for that to a later one.
    pub(crate) fn number(&self, now: Timestamp) -> i64 {
        let mut state = self.state.lock();
        state.last_number = now.as_millisecond().max(state.last_number + 1);
        state.last_number
    }

    /// Opens a request to end.
    pub(crate) fn ask_to_end(&self, task: &Task, id: &str) -> Result<(), TeamError> {
        let mut state = self.state.lock();
        if state.shutdowns.iter().any(|request| request.member == task.id) {
            let name = task.spec.name.clone().unwrap_or_default();
            return Err(TeamError::AskedAlready(name));
        }
        state.shutdowns.push(OpenRequest { id: id.to_owned(), member: task.id.clone() });
        drop(state);
        task.set_teardown(Some(Instant::now() + self.teardown));
        Ok(())
    }

    /// Takes the member's answer to a request to end, or takes the request back.
    pub(crate) fn close_shutdown(&self, task: &Task, id: &str) -> Result<(), TeamError> {
        let mut state = self.state.lock();
        take(&mut state.shutdowns, "request to end", |it| it.id == id && it.member == task.id, id)?;
        drop(state);
        task.set_teardown(None);
        Ok(())
    }

    /// A member is gone: nothing waits for it.
    pub(crate) fn forget_requests(&self, member: &AgentId) {
        let mut state = self.state.lock();
        state.shutdowns.retain(|request| request.member != *member);
        state.plans.retain(|request| request.member != *member);
    }

    /// Opens a request to approve a plan, in the place of an earlier one of the same member, whose id it returns.
    pub(crate) fn propose_plan(&self, member: &AgentId, id: &str) -> Option<String> {
        let mut state = self.state.lock();
        let earlier = state.plans.extract_if(.., |request| request.member == *member).last();
        state.plans.push(OpenRequest { id: id.to_owned(), member: member.clone() });
        earlier.map(|request| request.id)
    }

    /// Opens again what was open when an earlier process ended.
    pub(crate) fn reopen(&self, member: &AgentId, requests: OpenRequests) {
        let mut state = self.state.lock();
        let open = |id: String| OpenRequest { id, member: member.clone() };
        state.shutdowns.extend(requests.shutdown.map(open));
        state.plans.extend(requests.plan.map(open));
    }

    /// A member begins: if it was asked to end by an earlier process, its time runs from now on.
    pub(crate) fn begin_teardown(&self, task: &Task) {
        if self.is_asked_to_end(&task.id) && !task.has_teardown() {
            task.set_teardown(Some(Instant::now() + self.teardown));
        }
    }

    /// Takes the lead's one answer to a plan.
    pub(crate) fn close_plan(&self, member: &AgentId, id: &str) -> Result<(), TeamError> {
        let mut state = self.state.lock();
        take(&mut state.plans, "plan", |it| it.id == id && it.member == *member, id)
    }

    /// Opens a question to the lead.
    pub(crate) fn ask_lead(&self, id: String, mail: RecordId) -> oneshot::Receiver<LeadsAnswer> {
        let (answer, receiver) = oneshot::channel();
        let mut state = self.state.lock();
        // Of a question whose call is gone nothing is left to wait for.
        state.asks.retain(|ask| !ask.answer.is_closed());
        state.asks.push(OpenAsk { id, mail, answer });
        receiver
    }

    /// Takes the lead's answer to a question.
    pub(crate) fn answer(&self, id: &str, answer: LeadsAnswer) -> Result<(), TeamError> {
        let missing = || TeamError::NoRequest { what: "permission request", id: id.to_owned() };
        let mut state = self.state.lock();
        let at = state.asks.iter().position(|ask| ask.id == id).ok_or_else(missing)?;
        let ask = state.asks.swap_remove(at);
        drop(state);
        ask.answer.send(answer).map_err(|_| missing())
    }

    /// The lead has ended its turn: what it has read and not answered, it does not answer.
    pub(crate) fn drop_asks(&self, is_unread: impl Fn(&RecordId) -> bool) {
        self.state.lock().asks.retain(|ask| is_unread(&ask.mail));
    }
}

fn take(
    open: &mut Vec<OpenRequest>,
    what: &'static str,
    is_meant: impl Fn(&OpenRequest) -> bool,
    id: &str,
) -> Result<(), TeamError> {
    let at = open.iter().position(is_meant);
    let at = at.ok_or_else(|| TeamError::NoRequest { what, id: id.to_owned() })?;
    open.swap_remove(at);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_requests_have_one_number_whatever_the_clock_says() {
        // Two plans within one millisecond had one id: the answer to the first approved the second.
        let options = TeamOptions {
            name: "alpha".parse().unwrap(),
            teardown: Duration::from_secs(1),
            views: None,
        };
        let team = Team::new(options);
        let at = |millis| Timestamp::from_millisecond(millis).unwrap();
        let numbers = [5, 5, 3, 6, 100].map(|millis| team.number(at(millis)));
        assert_eq!(numbers, [5, 6, 7, 8, 100]);
    }
}
