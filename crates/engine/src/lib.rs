//! Everything between a prompt and its outcome.
//!
//! Knows nothing of HTTP, terminals or command lines, and reads neither the environment nor the home
//! directory: the binary hands in what it found there.
//!
//! The folders, from the bottom to the top. Each may use those above it in this list, and none below:
//! - `money`: budgets, usage and its price
//! - `definition`: what an agent is to be, as plain values: definitions, rules of the user, what both mean together
//! - `message`: what reaches an agent between its turns: the queue, mail
//! - `policy`: what agents may do: live rules, questions to people
//! - `schedule`: prompts that an agent sets up for later
//! - `toolset`: which tools an agent can call: the program's, those of servers
//! - `agent`: one agent, and what the agents of a session share
//! - `turn`: one turn of an agent: requests, calls, hooks, records
//! - `delegate`: how one agent has another work for it: start, resume, report, stop
//! - `tools`: the tools that reach agents and schedules
//! - `session`: the life of one conversation, from outside
//!
//! A session (programs of others use the crate `centurion-embed`, whose surface is stable):
//!
//! ```
//! # use centurion_engine::{Base, Options, Session, Storage};
//! # use centurion_model::{Model, ProviderKind, RetryPolicy, script};
//! # use centurion_protocol::{Block, Env, Outcome, SystemWorld, World as _};
//! # use centurion_tools::guard::GuardProgram;
//! # use std::sync::Arc;
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let scratch = tempfile::tempdir()?;
//! # let script = script::parse(r#"{"default": "Hello."}"#, "scenario.json")?;
//! # let retries = RetryPolicy::new(&Env::default());
//! # let provider = Arc::new(script);
//! # let model = Model::with_provider(provider, ProviderKind::Script, "m", retries, Arc::new(SystemWorld));
//! let base = Base::new(scratch.path().to_owned(), GuardProgram::new("/usr/bin/centurion"));
//! let storage = Storage::without_transcript(scratch.path().join("output"));
//! let mut session = Session::open(Options::new(model, base, storage)).await?;
//! session.handle().submit(SystemWorld.record_id(), vec![Block::Text("Say hello.".to_owned())]);
//! session.handle().close();
//! assert_eq!(session.run().await, Some(Outcome::Completed));
//! # Ok(())
//! # }
//! ```

mod agent;
mod definition;
mod delegate;
mod message;
mod money;
mod policy;
mod schedule;
mod session;
mod tools;
mod toolset;
mod turn;

pub use agent::builder::{AgentServers, AgentServersError, BroughtBy, ServersError, TASK_TOOLS};
pub use agent::context_file::ContextFile;
pub use agent::isolation::IsolationError;
pub use agent::isolation::entered::{EnterError, usual_name as worktree_name};
pub use agent::isolation::guarded_git::GuardedGit;
pub use agent::lead_link::{LeadHearing, LeadLink, LeadView, LinkEnd, LinkError, member_execution};
pub use agent::member_processes::{Inherited, MemberProcessOptions};
pub use agent::peers::PeerOptions;
pub use agent::session_tasks::TaskListPlace;
pub use agent::shared::{RoomFuture, View};
pub use agent::team::TeamOptions;
pub use centurion_journal::{JournalError, Mirror, Page, PageEntry, Redaction, Speaker};
pub use centurion_mcp::{Elicitation, ElicitationAnswer, ElicitationKind};
pub use definition::builtin;
pub use definition::bypass::{Bypass, BypassRefused};
pub use definition::context_rules::{ContextRules, SMALLEST_WINDOW};
pub use definition::definitions::Definitions;
pub use definition::limits::{LimitError, Limits};
pub use definition::model_check::{ModelCheck, ModelRefusal};
pub use definition::prompt::{PromptOptions, Section};
pub use definition::request_settings::RequestSettings;
pub use definition::resolve::{
    Decided, EffectiveAgent, LaunchError, LeftOut, MainFlags, Provenance, Reach, ToolView,
};
pub use definition::rules::{DelegationRules, SessionMode};
pub use delegate::interrupted::interrupted_agents;
pub use message::manner::Manner;
pub use message::queue::Priority;
pub use money::budget::Limit;
pub use money::usage::UsageTotals;
pub use policy::broker::{
    Answerer, Ask, AskReason, AskedServer, AskingAgent, ElicitFuture, Reply, ReplyFuture,
    Unanswered,
};
pub use policy::permissions::{
    Change, Destination, KeepError, Remember, RuleChange, RuleSource, RuleStore, Rules,
    SavedChange, ServerRules,
};
pub use policy::rule_text::{RuleTextError, UnreadRule, read_rule};
pub use session::{
    AgentOptions, AgentSpending, AsideError, AskToEndError, Base, CAPABILITIES, DirectoryRefused,
    ENDED_BEFORE, ExplainError, Extensions, FILE_HISTORY, FileRefused, Handle, MemberStanding,
    MessageRoute, ModelChange, OpenError, Options, PROTOCOL_VERSION, PermissionOptions,
    PluginParts, ReadInstructions, Remembering, ResumePoint, ServerCallError, Session,
    SetupTrigger, Start, Storage, TeamMember, TeamMessage, TeamReport, TellError, ToolReply,
    ToolServer,
};
pub use tools::agent_tool::Explanation;
pub use toolset::servers::{
    REQUIRED_PATIENCE, RequireError, ServerPatience, UnusableServer, WithheldServer, public_source,
};
pub use toolset::structured::{SchemaError, StructuredOutput};
pub use toolset::toolbox::{ToolChoice, ToolUnavailable, ToolWithheld, ToolboxError};
pub use turn::commands::TypedCommand;
pub use turn::context_usage::{ContextPart, ContextUsage};
pub use turn::elicitation::Elicitations;
pub use turn::hooks::HookHost;
pub use turn::internal_fork::InternalForkError;
pub use turn::message_breakdown::MessageBreakdown;
pub use turn::model_switch::SwitchRefused;
pub use turn::typed_command::{BUILT_IN_COMMANDS, BuiltInCommand, COMMAND_ALIASES};
