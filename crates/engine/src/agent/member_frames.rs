//! The frames between the process of a lead and that of a member of its team.
//!
//! The lead's process sends what begins and ends a run, and mail. The member's process sends what comes of it, and asks
//! whatever the lead's process alone decides: calls, money, and all that concerns the team.

use std::path::PathBuf;
use std::time::Duration;

use centurion_permissions::Mode;
use centurion_protocol::sdk::PermissionDenial;
use centurion_protocol::{AgentId, Block, Outcome, RecordId, ReportedUsage, ToolUse, ToolUseId};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};
use thiserror::Error;

use crate::agent::evidence::Evidence;
use crate::agent::task::{Asker, Denial};
use crate::definition::spec::AgentSpec;
use crate::message::manner::Manner;
use crate::message::queue::{Item, Origin, Priority};
use crate::money::budget::{Amount, OverBudget, not_negative};

/// The most bytes of a frame. A conversation is never sent: what is large is one result or one message.
pub(crate) const MOST_FRAME: usize = 64 * 1024 * 1024;

/// A frame of the member's process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum FromMember {
    /// The first frame. A process that `becomes` the member wants to know what to execute.
    Hello {
        ticket: String,
        becomes: bool,
    },
    /// The session is there and can begin a run.
    Ready,
    /// It cannot be a member, for this reason.
    Unable(String),
    Asks {
        id: u64,
        question: LeadQuestion,
    },
    /// Nothing waits for the answer any more.
    Withdraws(u64),
    /// A reservation of money is over, and cost this.
    Closes {
        reservation: u64,
        cost: Amount,
    },
    /// The conversation contains these items.
    Took(Vec<RecordId>),
    Used {
        model: String,
        usage: ReportedUsage,
    },
    Progress(ProgressNews),
    Informs {
        level: String,
        text: String,
    },
    /// An event for observers.
    Shows {
        uuid: RecordId,
        body: Map<String, Value>,
    },
    Ended(Box<RunReport>),
    /// It works, and had nothing to say for a while.
    Alive,
}

impl FromMember {
    /// Tells whether it can only come of a run. The others may be left over from the time before it.
    pub(crate) fn is_of_run(&self) -> bool {
        !matches!(self, Self::Alive | Self::Shows { .. } | Self::Informs { .. })
    }
}

/// A frame of the lead's process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ToMember {
    Welcome(LeadSession),
    /// The answer to a process that becomes the member.
    Execute(ExecutionFrame),
    Begin(Box<BeginRun>),
    Answers {
        id: u64,
        answer: LeadAnswer,
    },
    Item(ItemFrame),
    /// The run is to end now.
    Cancel,
    /// The run is to end before its next request.
    Leave,
    /// The process is to end.
    Bye,
}

/// The session of the lead.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LeadSession {
    pub(crate) transcript: PathBuf,
    pub(crate) output_dir: PathBuf,
    /// Whether files are kept before they are changed.
    pub(crate) keeps_files: bool,
    /// The words of the lead's command line that hold for its members, as bytes.
    pub(crate) inherited: Vec<Vec<u8>>,
    /// The time after which a process at work that says nothing counts as one that hangs.
    pub(crate) silence: Duration,
}

/// A program with its arguments and its environment, as bytes.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ExecutionFrame {
    pub(crate) program: Vec<u8>,
    pub(crate) args: Vec<Vec<u8>>,
    pub(crate) environment: Vec<(Vec<u8>, Vec<u8>)>,
    pub(crate) cwd: Vec<u8>,
}

/// The beginning of a run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct BeginRun {
    pub(crate) agent: AgentId,
    pub(crate) spec: AgentSpec,
    pub(crate) run: String,
    pub(crate) call: ToolUseId,
    pub(crate) asker: Option<Asker>,
    pub(crate) prompt: String,
    pub(crate) items: Vec<ItemFrame>,
    /// Texts before the first input of a new conversation.
    pub(crate) context: Vec<String>,
    /// Notes that the agent reads with its first input.
    pub(crate) notes: Vec<String>,
    /// The lead's permission mode.
    pub(crate) mode: Mode,
    /// The functions of the lead's host that are hooks, as the host names them.
    #[serde(default)]
    pub(crate) host_functions: Option<Value>,
}

/// A question that the lead's process alone decides.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum LeadQuestion {
    /// May this call run?
    Call(CallFrame),
    Reserve(Amount),
    /// Keep a file as it is: it is about to get content with this digest.
    Keep {
        path: PathBuf,
        written: String,
    },
    /// Call a function of the host, which is a hook.
    Function(FunctionCall),
}

/// The reason that a function of the host gave no answer.
#[derive(Debug, Error, Serialize, Deserialize)]
pub(crate) enum FunctionFault {
    #[error("the host has no such function")]
    Unknown,
    #[error("nothing waits for it any more")]
    Withdrawn,
    #[error("{0}")]
    Failed(String),
}

/// A call of a function of the host.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FunctionCall {
    pub(crate) id: String,
    pub(crate) input: Value,
    /// The call of a tool that the hook is about.
    pub(crate) call: Option<ToolUseId>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum LeadAnswer {
    /// The call may run.
    Permitted(PermittedCall),
    /// The call was refused, or carried out there.
    Done(Box<DoneCall>),
    Reserved(Result<(), OverBudget>),
    /// The file is kept, or why it is not.
    Kept(Option<String>),
    /// The answer of the host's function, or why there is none.
    Function(Result<Value, FunctionFault>),
}

/// A call of a tool.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CallFrame {
    pub(crate) id: ToolUseId,
    pub(crate) name: String,
    pub(crate) input: Box<RawValue>,
    /// The directory in which the agent stands.
    pub(crate) cwd: PathBuf,
    pub(crate) is_alone: bool,
    pub(crate) may_ask: bool,
    /// Whether an agent below the member makes it.
    #[serde(default)]
    pub(crate) is_below: bool,
    /// The reason why it has to be asked about, by the rules of an agent below the member.
    pub(crate) must_ask: Option<String>,
}

impl CallFrame {
    pub(crate) fn call(&self) -> ToolUse {
        ToolUse { id: self.id.clone(), name: self.name.clone(), input: self.input.clone() }
    }
}

/// A call that may run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PermittedCall {
    /// The input to use instead.
    pub(crate) input: Option<Box<RawValue>>,
    pub(crate) is_approved: bool,
    pub(crate) context: Vec<String>,
    /// The lead's permission mode.
    pub(crate) mode: Mode,
}

/// The denial of a call.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CallDenied {
    pub(crate) reason: String,
    /// The kind of reason, by its word in the public protocol.
    #[serde(default)]
    pub(crate) kind: Option<String>,
    /// True if it is to stop the whole run.
    pub(crate) interrupt: bool,
    /// True if the host knows of it: it was its own answer.
    pub(crate) is_told: bool,
}

/// The end of a call.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct DoneCall {
    /// The result as a block of a conversation.
    pub(crate) result: Box<RawValue>,
    pub(crate) data: Value,
    pub(crate) denied: Option<CallDenied>,
    pub(crate) is_cut_short: bool,
    pub(crate) is_deferred: bool,
    pub(crate) context: Vec<String>,
    pub(crate) stop: Option<String>,
}

/// The progress of a run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ProgressNews {
    pub(crate) tokens: u64,
    pub(crate) tool_uses: u64,
    pub(crate) last_tool: Option<String>,
    pub(crate) activity: String,
}

/// The end of a run.
#[derive(Debug, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct RunReport {
    pub(crate) outcome: Outcome,
    pub(crate) turns: u32,
    pub(crate) text: String,
    pub(crate) structured: Option<Value>,
    pub(crate) errors: Vec<String>,
    pub(crate) denials: Vec<DeniedCall>,
    pub(crate) denial_reasons: Vec<Denial>,
    pub(crate) ended_on_denial: bool,
    pub(crate) evidence: Evidence,
    pub(crate) total: ReportedUsage,
    pub(crate) last: ReportedUsage,
    #[serde(deserialize_with = "not_negative")]
    pub(crate) dollars: f64,
    pub(crate) model: String,
    /// True if hooks know that the member stops.
    pub(crate) told_stop: bool,
    /// True if it was silent for too long.
    pub(crate) is_stalled: bool,
    /// True if its transcript could not be written.
    pub(crate) is_unrecorded: bool,
    /// The last record of the conversation.
    pub(crate) record: Option<RecordId>,
}

impl RunReport {
    /// The report of a run that did not begin.
    pub(crate) fn failed(reason: String, model: String) -> Self {
        Self {
            outcome: Outcome::Fault,
            turns: 0,
            text: String::new(),
            structured: None,
            errors: vec![reason],
            denials: Vec::new(),
            denial_reasons: Vec::new(),
            ended_on_denial: false,
            evidence: Evidence::default(),
            total: ReportedUsage::default(),
            last: ReportedUsage::default(),
            dollars: 0.0,
            model,
            told_stop: false,
            is_stalled: false,
            is_unrecorded: false,
            record: None,
        }
    }
}

/// A denied call, as hosts are told of it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct DeniedCall {
    tool: String,
    call: ToolUseId,
    input: Box<RawValue>,
}

impl From<PermissionDenial> for DeniedCall {
    fn from(denial: PermissionDenial) -> Self {
        Self { tool: denial.tool_name, call: denial.tool_use_id, input: denial.tool_input }
    }
}

impl From<DeniedCall> for PermissionDenial {
    fn from(denied: DeniedCall) -> Self {
        Self { tool_name: denied.tool, tool_use_id: denied.call, tool_input: denied.input }
    }
}

/// Something that a member is told.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ItemFrame {
    id: RecordId,
    content: Vec<Box<RawValue>>,
    origin: OriginFrame,
}

#[derive(Debug, Serialize, Deserialize)]
enum OriginFrame {
    Delegation,
    Initial,
    Hook,
    Message { from: String, hands_over: Option<Mode> },
    News,
}

impl From<&Item> for ItemFrame {
    fn from(item: &Item) -> Self {
        let origin = match &item.origin {
            Origin::Delegation => OriginFrame::Delegation,
            Origin::Initial => OriginFrame::Initial,
            Origin::Hook => OriginFrame::Hook,
            Origin::Message { from, hands_over } => {
                OriginFrame::Message { from: from.clone(), hands_over: *hands_over }
            }
            _ => OriginFrame::News,
        };
        // A block is JSON already, or made of texts.
        let content = item.content.iter().filter_map(|block| to_raw_value(block).ok());
        Self { id: item.id, content: content.collect(), origin }
    }
}

impl ItemFrame {
    pub(crate) fn into_item(self, agent: &AgentId) -> Item {
        let origin = match self.origin {
            OriginFrame::Delegation => Origin::Delegation,
            OriginFrame::Initial => Origin::Initial,
            OriginFrame::Hook => Origin::Hook,
            OriginFrame::Message { from, hands_over } => Origin::Message { from, hands_over },
            OriginFrame::News => Origin::TaskNotification { run: None },
        };
        Item {
            id: self.id,
            priority: Priority::Next,
            addressee: Some(agent.clone()),
            content: self.content.iter().filter_map(|raw| Block::parse(raw).ok()).collect(),
            origin,
            manner: Manner::default(),
        }
    }
}
