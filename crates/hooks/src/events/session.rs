//! A session begins and ends.

use std::path::PathBuf;

use serde::Serialize;

use crate::event::Event;
use crate::input::{Common, EventInput};
use crate::reply::{self, Reply};

/// A session starts, or continues after an event such as a resume.
#[derive(Clone, Debug, Serialize)]
pub struct SessionStart<'a> {
    /// `startup`, `resume`, `clear`, `compact` or `fork`.
    pub source: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_title: Option<&'a str>,
}

/// The settings of hooks for a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionStartVerdict {
    /// Used as the user's first message; only without a terminal.
    pub initial_user_message: Option<String>,
    pub session_title: Option<String>,
    /// Files to watch from now on; `None` leaves the present list.
    pub watch_paths: Option<Vec<PathBuf>>,
    pub reload_skills: bool,
}

impl EventInput for SessionStart<'_> {
    const EVENT: Event = Event::SessionStart;
    type Verdict = SessionStartVerdict;

    fn subject(&self) -> Option<&str> {
        Some(self.source)
    }

    fn fold(&self, common: &Common, replies: &[Reply]) -> SessionStartVerdict {
        SessionStartVerdict {
            initial_user_message: reply::last(replies, |it| it.initial_user_message.clone()),
            session_title: reply::last(replies, |it| it.session_title.clone()),
            watch_paths: watch_paths(common, replies),
            reload_skills: replies
                .iter()
                .any(|reply| reply.specific().is_some_and(|it| it.reload_skills == Some(true))),
        }
    }

    fn watches(verdict: &SessionStartVerdict) -> Option<&[PathBuf]> {
        verdict.watch_paths.as_deref()
    }
}

/// All paths that hooks want to watch, each once; `None` if no hook names any.
pub(super) fn watch_paths(common: &Common, replies: &[Reply]) -> Option<Vec<PathBuf>> {
    let mut wanted = replies.iter().filter_map(|it| it.specific()?.watch_paths.as_ref()).peekable();
    wanted.peek()?;
    let mut paths: Vec<PathBuf> = Vec::new();
    for path in wanted.flatten().map(|path| common.cwd.join(path)) {
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    Some(paths)
}

/// The program was started for setup or maintenance.
#[derive(Clone, Debug, Serialize)]
pub struct Setup<'a> {
    /// `init` or `maintenance`.
    pub trigger: &'a str,
}

impl EventInput for Setup<'_> {
    const EVENT: Event = Event::Setup;
    type Verdict = ();

    fn subject(&self) -> Option<&str> {
        Some(self.trigger)
    }

    fn fold(&self, _: &Common, _: &[Reply]) {}
}

/// A session ends.
#[derive(Clone, Debug, Serialize)]
pub struct SessionEnd<'a> {
    /// `clear`, `resume`, `logout`, `prompt_input_exit` or `other`.
    pub reason: &'a str,
}

impl EventInput for SessionEnd<'_> {
    const EVENT: Event = Event::SessionEnd;
    type Verdict = ();

    fn subject(&self) -> Option<&str> {
        Some(self.reason)
    }

    fn fold(&self, _: &Common, _: &[Reply]) {}
}
