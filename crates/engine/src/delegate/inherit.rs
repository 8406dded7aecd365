//! Agents that begin with the conversation of another: forks, which continue as that agent with one task, and agents whose
//! definition asks for it (`forkContext`), which have a prompt and tools of their own.
//!
//! Nothing is copied. In memory the conversation is shared; on disk the record of the agent refers to its parent's
//! transcript by the last record and a digest. Whenever the agent begins again, what it begins with is held against
//! the digest: another beginning than before is told, because the provider then reads it anew.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use centurion_journal::MOST_TRANSCRIPT;
use centurion_journal::transcript::{self, InheritedConversation};
use centurion_model::{Prefix, SystemPrompt};
use centurion_protocol::{AgentId, Conversation, RecordId, Role, ToolSpecs, bounded};
use thiserror::Error;

use crate::agent::delegation::Delegation;
use crate::agent::fork_point::{
    ForkPoint, Inheritance, InheritedPart, KeptPrefix, PREFIX, PrefixNote,
};
use crate::agent::session_place::main_transcript_of;
use crate::agent::task::Task;
use crate::definition::request_settings::RequestSettings;
use crate::definition::resolve::ToolView;
use crate::definition::spec::{AgentSpec, ContextRef};
use crate::delegate::recall;
use crate::delegate::spawn::agent_files;
use crate::message::life_records::SPAWN;
use crate::toolset::servers::Announcements;
use crate::turn::driver::{Driver, UnansweredCalls};

/// The tags of the rules of a fork, ours and the one that others write.
const TAGS: [&[u8]; 2] = [b"<fork-boilerplate>", b"<claude:fork-boilerplate>"];

/// The most conversations behind each other.
const MOST_LEVELS: usize = 64;

/// The reason why the conversation that an agent was started with is not there any more.
#[derive(Debug, Error)]
pub(crate) enum InheritError {
    #[error("the transcript {path} of the agent that it was forked from cannot be read: {source}")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("its record names an agent that cannot be: `{0}`")]
    NoAgent(AgentId),
    #[error("the transcript {path} does not hold the conversation that it was forked from")]
    Gone { path: PathBuf },
}

/// Tells whether a conversation is that of a fork, by what it was told. A model may speak of the tags.
pub(crate) fn is_of_fork(conversation: &Conversation) -> bool {
    let mut told = conversation.iter().filter(|message| message.role() == Role::User);
    told.any(|message| TAGS.iter().any(|tag| memchr::memmem::find(message.wire(), tag).is_some()))
}

/// The conversation that an agent was started with: from memory, or from the transcripts.
pub(crate) fn inherited(
    delegation: &Delegation,
    task: &Task,
) -> Result<Option<Inheritance>, InheritError> {
    match (&task.inherited, &task.spec.context) {
        (_, None) => Ok(None),
        (Some(inherited), _) => Ok(Some(inherited.clone())),
        (None, Some(context)) => reload(delegation, task, context).map(Some),
    }
}

/// The conversation with what is read behind it.
pub(crate) fn behind(inheritance: &Inheritance) -> InheritedConversation {
    let conversation = inheritance.point.prefix.conversation.clone();
    InheritedConversation { shared_blocks: conversation.open_calls().len() + 1, conversation }
}

/// Tells whether an agent begins with other bytes than those that it was started with.
pub(crate) fn has_changed(spec: &AgentSpec, inheritance: &Inheritance) -> bool {
    let began_with = spec.context.as_ref().filter(|_| spec.is_fork()).map(|it| &it.digest);
    began_with.is_some_and(|digest| digest != inheritance.point.digest())
}

impl Inheritance {
    /// The provider's token count of the conversation, where the agent sends the same bytes.
    pub(crate) fn counted(&self) -> Option<(u64, usize)> {
        self.point.counted.filter(|_| self.what == InheritedPart::All)
    }

    /// Has a driver continue with the conversation, unless it has done so before.
    pub(crate) fn set_up(&self, driver: &mut Driver, has_begun: bool) {
        let point = &self.point;
        driver.known_servers.announced = point.announced.clone();
        if !has_begun {
            driver.unanswered = UnansweredCalls::default();
            driver.preamble.opening = Some(self.clone());
            driver.cached = point.cached.filter(|_| self.what == InheritedPart::All);
        }
    }
}

fn reload(
    delegation: &Delegation,
    task: &Task,
    context: &ContextRef,
) -> Result<Inheritance, InheritError> {
    let spec = &task.spec;
    let source = Source::read(delegation, &task.transcript, spec.parent.as_ref())?;
    let conversation = source.conversation(delegation, context.record, 0)?;
    let fixed = context.prefix.as_ref().map(|digest| source.prefix(digest)).transpose()?;
    let what = if fixed.is_some() { InheritedPart::All } else { InheritedPart::Conversation };
    let KeptPrefix { system, tools, names } = fixed.unwrap_or_else(|| KeptPrefix {
        system: SystemPrompt::new(spec.system.clone()),
        tools: ToolSpecs::new(Vec::new()),
        names: Arc::default(),
    });
    let names = match &spec.tools {
        ToolView::Exact(names) => Arc::clone(names),
        ToolView::Inherited | ToolView::Chosen { .. } => names,
    };
    let point = ForkPoint {
        prefix: Prefix { system, tools, conversation },
        settings: RequestSettings::default(),
        tools: names,
        announced: Announcements::default(),
        counted: None,
        record: context.record,
        journal: None,
        cached: None,
        used: None,
        digests: OnceLock::new(),
    };
    Ok(Inheritance { point: Arc::new(point), what })
}

/// The transcript of an agent that another one was started from.
struct Source {
    path: PathBuf,
    text: Vec<u8>,
    is_main: bool,
}

impl Source {
    /// Reads the transcript that the agent with the transcript `of` was started from. A main agent's is the one that
    /// stands above the agent's own: the session may have begun anew since.
    fn read(
        delegation: &Delegation,
        of: &Path,
        parent: Option<&AgentId>,
    ) -> Result<Self, InheritError> {
        let path = match parent {
            None => main_transcript_of(of)
                .unwrap_or_else(|| delegation.builder.files.place.transcript()),
            Some(id) if recall::is_id(id) => agent_files(delegation, id).transcript,
            Some(id) => return Err(InheritError::NoAgent(id.clone())),
        };
        match bounded::read_file(&path, MOST_TRANSCRIPT) {
            Ok(text) => Ok(Self { path, text, is_main: parent.is_none() }),
            Err(source) => Err(InheritError::Read { path, source }),
        }
    }

    fn missing(&self) -> InheritError {
        InheritError::Gone { path: self.path.clone() }
    }

    /// The conversation up to a record, which may itself begin with that of another agent.
    fn conversation(
        &self,
        delegation: &Delegation,
        record: Option<RecordId>,
        level: usize,
    ) -> Result<Conversation, InheritError> {
        let part = record.and_then(|record| transcript::until(&self.text, record));
        let part = part.ok_or_else(|| self.missing())?;
        if self.is_main {
            return Ok(transcript::load(part).conversation);
        }
        let spawned = recall::notes::<recall::ReadSpawnNote>(&self.text, SPAWN).next();
        let spec = spawned.map(|(_, note)| note.data.spec);
        let Some((context, parent)) = spec.and_then(|spec| Some((spec.context?, spec.parent)))
        else {
            return Ok(transcript::load_agent(part).conversation);
        };
        if level >= MOST_LEVELS {
            return Err(self.missing());
        }
        let source = Self::read(delegation, &self.path, parent.as_ref())?;
        let conversation = source.conversation(delegation, context.record, level + 1)?;
        let shared_blocks = conversation.open_calls().len() + 1;
        Ok(transcript::load_behind(&InheritedConversation { conversation, shared_blocks }, part)
            .conversation)
    }

    /// The system prompt and the tools that were kept under a digest.
    fn prefix(&self, digest: &str) -> Result<KeptPrefix, InheritError> {
        let kept = recall::notes::<PrefixNote>(&self.text, PREFIX);
        let found = kept.map(|(_, note)| note.data).find(|note| note.digest == digest);
        found.and_then(PrefixNote::read).ok_or_else(|| self.missing())
    }
}

#[cfg(test)]
mod tests {
    use centurion_protocol::{Block, Message};

    use super::*;

    #[test]
    fn a_conversation_of_a_fork_is_known_by_its_tags() {
        // S-272, D-17
        let says = |text: &str| {
            let mut conversation = Conversation::default();
            conversation.push(Message::user(text)).unwrap();
            is_of_fork(&conversation)
        };
        let rules = include_str!("../definition/prompts/fork.md");
        assert!(says(rules) && says("<claude:fork-boilerplate>\nrules"));
        assert!(!says("about forks") && !says(&centurion_protocol::markup::contain(rules)));
        // A model may speak of the tags.
        let mut conversation = Conversation::default();
        conversation.push(Message::user("what are the rules of forks?")).unwrap();
        conversation.push(Message::new(Role::Assistant, &[Block::text(rules)])).unwrap();
        assert!(!is_of_fork(&conversation));
    }
}
