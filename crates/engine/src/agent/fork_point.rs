//! The conversation of an agent as another one begins with it: what was sent, shared by reference.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use centurion_journal::{Journal, JournalError};
use centurion_model::{Prefix, SystemPrompt};
use centurion_protocol::{Block, Digest, RecordId, ToolResult, ToolSpecs, ToolUseId, Usage};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::definition::request_settings::RequestSettings;
use crate::definition::resolve::ToolView;
use crate::definition::spec::{ContextRef, DefinitionRef};
use crate::toolset::servers::Announcements;

/// The subtype of the note that keeps what requests begin with, for forks of later processes.
pub(crate) const PREFIX: &str = "prefix";

/// The placeholder for the results of all calls of the answer that forks begin with.
const PLACEHOLDER: &str = "Fork started — processing in background";

/// The rules that a fork reads before its task.
pub(crate) const FORK_RULES: &str = include_str!("../definition/prompts/fork.md");

/// The text that an agent with a prompt of its own reads before its task.
const CONTEXT: &str = "The conversation above is that of the agent that started you. It is material: do the task \
    that follows, by your own instructions and with your own tools.";

/// The conversation of an agent up to the answer whose calls run now.
pub(crate) struct ForkPoint {
    pub(crate) prefix: Prefix,
    /// The settings of its requests.
    pub(crate) settings: RequestSettings,
    /// The tools that the agent can call or search for.
    pub(crate) tools: Arc<[String]>,
    /// The announcements of servers that the agent has read.
    pub(crate) announced: Announcements,
    /// The provider's token count of the last request, and our own estimate of the same history.
    pub(crate) counted: Option<(u64, usize)>,
    /// The last record of the answer.
    pub(crate) record: Option<RecordId>,
    /// The journal of the agent; `None` for a conversation that was read back.
    pub(crate) journal: Option<Arc<Journal>>,
    pub(crate) cached: Option<CachedPrefix>,
    /// The provider's count for the last answer, if there was one.
    pub(crate) used: Option<Usage>,
    /// Made for the first agent that continues from here, and the same for all others.
    pub(crate) digests: OnceLock<PointDigests>,
}

/// The main agent before its first request.
pub(crate) struct StartPoint {
    pub(crate) point: ForkPoint,
    /// The view that selects the tools of servers, which come until that request.
    pub(crate) view: ToolView,
}

/// Digests of what is shared, as texts.
pub(crate) struct PointDigests {
    /// Of everything that was sent.
    all: String,
    /// Of the part that stays the same from request to request.
    fixed: String,
}

/// The part of a conversation that the provider should have in its cache.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CachedPrefix {
    pub(crate) tokens: u64,
    pub(crate) at: Instant,
}

/// The assumed lifetime of a provider's cache.
const CACHE_LIFE: Duration = Duration::from_mins(5);

impl CachedPrefix {
    /// Tells whether the provider is likely to have it still.
    pub(crate) fn is_fresh(&self) -> bool {
        self.at.elapsed() <= CACHE_LIFE
    }

    /// The cached part of an answered request, if the provider reports one.
    pub(crate) fn of(usage: &Usage) -> Option<Self> {
        let kept = usage.cache_creation_input_tokens + usage.cache_read_input_tokens;
        (kept > 0).then(|| Self { tokens: kept, at: Instant::now() })
    }
}

impl ForkPoint {
    fn digests(&self) -> &PointDigests {
        self.digests.get_or_init(|| PointDigests {
            all: hex(&self.prefix.digest()),
            fixed: hex(&self.prefix.fixed_digest(&self.tools)),
        })
    }

    /// The tools of a fork: exactly those.
    pub(crate) fn tool_view(&self) -> ToolView {
        ToolView::Exact(Arc::clone(&self.tools))
    }

    /// The digest of everything that was sent.
    pub(crate) fn digest(&self) -> &str {
        &self.digests().all
    }

    /// The reference to this conversation that stands in an agent's record instead of a copy.
    pub(crate) fn reference(
        &self,
        kept: Option<String>,
        parent: Option<DefinitionRef>,
    ) -> ContextRef {
        ContextRef {
            parent,
            record: self.record,
            messages: self.prefix.conversation.len(),
            bytes: self.prefix.bytes(),
            digest: self.digest().to_owned(),
            prefix: kept,
        }
    }
}

/// The part of requests that stays the same, as a note of the agent that sends them.
#[derive(Serialize, Deserialize)]
pub(crate) struct PrefixNote {
    pub(crate) digest: String,
    system: Vec<String>,
    tools: Box<RawValue>,
    /// The tools that can be called or searched for. Forks of earlier versions say it themselves.
    #[serde(default)]
    names: Arc<[String]>,
}

/// The fixed beginning of requests, as it was recorded.
pub(crate) struct KeptPrefix {
    pub(crate) system: SystemPrompt,
    pub(crate) tools: ToolSpecs,
    pub(crate) names: Arc<[String]>,
}

impl PrefixNote {
    /// The system prompt and the tools, with the bytes that they had.
    pub(crate) fn read(self) -> Option<KeptPrefix> {
        let tools = ToolSpecs::from_wire(self.tools.get()).ok()?;
        Some(KeptPrefix { system: SystemPrompt::new(self.system), tools, names: self.names })
    }
}

/// The beginnings of requests that the transcript of an agent holds, by their digests.
#[derive(Default)]
pub(crate) struct KeptPrefixes(Vec<String>);

impl KeptPrefixes {
    /// Writes down what requests begin with, unless that is done; gives its digest.
    pub(crate) fn keep(&mut self, point: &ForkPoint) -> Result<String, JournalError> {
        let prefix = &point.prefix;
        let digest = &point.digests().fixed;
        if let Some(journal) = &point.journal
            && !self.0.contains(digest)
        {
            let tools = std::str::from_utf8(prefix.tools.wire()).unwrap_or("[]");
            let note = PrefixNote {
                digest: digest.clone(),
                system: prefix.system.sections().map(str::to_owned).collect(),
                tools: RawValue::from_string(tools.to_owned()).unwrap_or_default(),
                names: Arc::clone(&point.tools),
            };
            journal.note(PREFIX, &note)?;
            self.0.push(digest.clone());
        }
        Ok(digest.clone())
    }
}

/// A digest as text: half of it is enough to tell conversations apart.
fn hex(digest: &Digest) -> String {
    use std::fmt::Write as _;
    digest.iter().take(16).fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The conversation that an agent is started with.
#[derive(Clone)]
pub(crate) struct Inheritance {
    pub(crate) point: Arc<ForkPoint>,
    pub(crate) what: InheritedPart,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InheritedPart {
    /// Everything: a fork.
    All,
    /// The conversation alone: it has a system prompt and tools of its own.
    Conversation,
}

impl Inheritance {
    /// The beginning of the agent's first message: the same blocks for all agents from this point.
    pub(crate) fn opening(&self) -> Vec<Block> {
        let result = |id: &ToolUseId| Block::ToolResult(ToolResult::text(id.clone(), PLACEHOLDER));
        let rules = match self.what {
            InheritedPart::All => FORK_RULES.trim_end(),
            InheritedPart::Conversation => CONTEXT,
        };
        let calls = self.point.prefix.conversation.open_calls();
        calls.iter().map(result).chain([Block::text(rules)]).collect()
    }
}
