//! The id of a session and the places of its transcripts. All of them change when its conversation begins anew: that is
//! another session, in the same process.

use std::path::{Path, PathBuf};

use centurion_protocol::{CurrentSession, SessionId};
use parking_lot::RwLock;

/// The id of a session and the places of its transcripts, as they are now.
pub(crate) struct SessionPlace {
    current: CurrentSession,
    files: RwLock<PlaceFiles>,
}

#[derive(Clone)]
struct PlaceFiles {
    /// The main agent's; `None` where none is kept.
    transcript: Option<PathBuf>,
    agents_dir: PathBuf,
}

impl SessionPlace {
    /// Without a transcript, those of agents are below `output_dir`.
    pub(crate) fn new(id: SessionId, transcript: Option<PathBuf>, output_dir: &Path) -> Self {
        let agents_dir = match &transcript {
            Some(transcript) => directory(transcript).join("subagents"),
            None => output_dir.join("subagents"),
        };
        let files = RwLock::new(PlaceFiles { transcript, agents_dir });
        Self { current: CurrentSession::new(id), files }
    }

    pub(crate) fn id(&self) -> SessionId {
        self.current.id()
    }

    /// The id, for those that look at it later.
    pub(crate) fn current(&self) -> CurrentSession {
        self.current.clone()
    }

    /// The main agent's transcript; an empty path where none is kept.
    pub(crate) fn transcript(&self) -> PathBuf {
        self.files.read().transcript.clone().unwrap_or_default()
    }

    /// The directory of the agents' transcripts: beside the session's own, in the layout that readers know.
    pub(crate) fn agents_dir(&self) -> PathBuf {
        self.files.read().agents_dir.clone()
    }

    /// The directory of the session's other files; `None` where no transcript is kept.
    pub(crate) fn directory(&self) -> Option<PathBuf> {
        self.files.read().transcript.as_deref().map(directory)
    }

    /// The transcript of another session of the same project; `None` where none is kept.
    pub(crate) fn transcript_of(&self, id: SessionId) -> Option<PathBuf> {
        let files = self.files.read();
        Some(files.transcript.as_ref()?.with_file_name(format!("{id}.jsonl")))
    }

    /// This is another session from now on.
    pub(crate) fn begin_anew(&self, id: SessionId) {
        if let Some(transcript) = self.transcript_of(id) {
            let agents_dir = directory(&transcript).join("subagents");
            *self.files.write() = PlaceFiles { transcript: Some(transcript), agents_dir };
        }
        self.current.become_session(id);
    }
}

/// The directory of a session's files beside its transcript.
fn directory(transcript: &Path) -> PathBuf {
    transcript.with_extension("")
}

/// The transcript of the main agent under which an agent's transcript stands.
pub(crate) fn main_transcript_of(agent: &Path) -> Option<PathBuf> {
    Some(agent.parent()?.parent()?.with_extension("jsonl"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_begins_anew_has_files_beside_those_before() {
        let id = |last: u8| format!("6f1c5d52-7d0c-4d1b-9d5a-2a3a4f1d2f1{last}").parse().unwrap();
        let (one, two): (SessionId, SessionId) = (id(0), id(1));
        let place = SessionPlace::new(one, Some(format!("/p/{one}.jsonl").into()), Path::new("/o"));
        let current = place.current();
        assert_eq!(place.agents_dir(), Path::new(&format!("/p/{one}/subagents")));
        place.begin_anew(two);
        assert_eq!((place.id(), current.id()), (two, two));
        assert_eq!(place.transcript(), Path::new(&format!("/p/{two}.jsonl")));
        assert_eq!(place.agents_dir(), Path::new(&format!("/p/{two}/subagents")));
        assert_eq!(place.directory(), Some(format!("/p/{two}").into()));
        let agent = place.agents_dir().join("agent-a.jsonl");
        assert_eq!(main_transcript_of(&agent), Some(place.transcript()));
    }

    #[test]
    fn a_session_without_a_transcript_gets_none_by_beginning_anew() {
        let id = "6f1c5d52-7d0c-4d1b-9d5a-2a3a4f1d2f10".parse().unwrap();
        let place = SessionPlace::new(id, None, Path::new("/o"));
        place.begin_anew("6f1c5d52-7d0c-4d1b-9d5a-2a3a4f1d2f11".parse().unwrap());
        assert_eq!(place.transcript(), Path::new(""));
        assert_eq!(place.agents_dir(), Path::new("/o/subagents"));
        assert_eq!(place.directory(), None);
    }
}
