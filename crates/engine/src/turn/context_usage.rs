//! The usage of the main agent's window by parts, as hosts and commands show it.

use centurion_protocol::{ToolSpec, Usage};

use crate::agent::context_file::ContextFile;
use crate::agent::fork_point::{ForkPoint, StartPoint};
use crate::agent::shared::Shared;

/// A part of a request, with about how many tokens it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextPart {
    /// The id of the part, for programs.
    pub id: &'static str,
    /// The same for people.
    pub name: &'static str,
    pub tokens: u64,
}

/// The usage of the main agent's window by its last request, or by its first one as it would be now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextUsage {
    pub model: String,
    /// The size of the window in tokens.
    pub window: u64,
    pub parts: Vec<ContextPart>,
    /// The tools that were offered, each with about how many tokens it takes.
    pub tools: Vec<(String, u64)>,
    /// The tokens from which on the conversation is compacted automatically; `None` where that is switched off.
    pub compacted_from: Option<u64>,
    /// The instruction files that the conversation begins with.
    pub memory: Vec<ContextFile>,
    /// The provider's count for the last answer.
    pub used: Option<Usage>,
}

/// The sizes in bytes of the fixed parts of a request.
#[derive(Clone, Copy)]
pub(crate) struct FixedSizes {
    pub(crate) system: usize,
    /// The definitions of the program's tools.
    pub(crate) own: usize,
    /// The definitions of tools of servers.
    pub(crate) served: usize,
}

/// About how many tokens so many bytes are.
fn tokens(bytes: usize) -> u64 {
    bytes as u64 / 4
}

/// The parts of a request that has about `total` tokens.
pub(crate) fn parts(sizes: FixedSizes, total: u64) -> Vec<ContextPart> {
    let [system, own, served] = [sizes.system, sizes.own, sizes.served].map(tokens);
    // The difference between the provider's count and our estimate belongs to the messages.
    let messages = total.saturating_sub(system + own + served);
    [
        ("system_prompt", "System prompt", system),
        ("system_tools", "Tools", own),
        ("mcp_tools", "MCP tools", served),
        ("messages", "Messages", messages),
    ]
    .map(|(id, name, tokens)| ContextPart { id, name, tokens })
    .into()
}

/// The usage of the main agent's last request; before that, of its first one as it would be now.
pub(crate) fn context_usage(shared: &Shared) -> ContextUsage {
    let rules = shared.delegation.builder.context;
    let (sent, start) = shared.sent_or_start();
    let mut usage = ContextUsage {
        model: shared.model.name().to_owned(),
        window: 0,
        parts: Vec::new(),
        tools: Vec::new(),
        compacted_from: None,
        memory: shared.context_files(),
        used: sent.as_ref().and_then(|point| point.used),
    };
    if let Some(point) = &sent {
        usage.model.clone_from(&point.settings.model);
        (usage.parts, usage.tools) = measure(point, &Coming::default());
    } else if let Some(start) = &start {
        let chosen = shared.chosen().0;
        usage.model = chosen.unwrap_or_else(|| start.point.settings.model.clone());
        let coming = Coming::of(start, shared, rules.window(&shared.model.info(&usage.model)));
        (usage.parts, usage.tools) = measure(&start.point, &coming);
    }
    let info = shared.model.info(&usage.model);
    ContextUsage { window: rules.window(&info), compacted_from: rules.threshold(&info), ..usage }
}

/// The parts of a first request that are not there before it.
#[derive(Default)]
struct Coming {
    /// The tools of servers that are connected.
    tools: Vec<(String, usize)>,
    /// The tokens of instruction files.
    instructions: u64,
}

impl Coming {
    fn of(start: &StartPoint, shared: &Shared, window: u64) -> Self {
        let served = shared.servers.serve(&shared.permissions, window);
        let tools = served.offered.values();
        let tools = tools.filter(|tool| start.view.admits(tool.name()).is_ok());
        let is_new = start.point.prefix.conversation.is_empty();
        let files = shared.context_files();
        Self {
            tools: tools.map(|tool| sized(&tool.spec())).collect(),
            instructions: files.iter().filter(|_| is_new).map(|file| file.tokens).sum(),
        }
    }
}

/// A tool with the bytes of its definition.
fn sized(spec: &ToolSpec) -> (String, usize) {
    let size = spec.name.len() + spec.description.len() + spec.input_schema.get().len();
    (spec.name.clone(), size)
}

/// The parts of a request at this point, and its tools.
fn measure(point: &ForkPoint, coming: &Coming) -> (Vec<ContextPart>, Vec<(String, u64)>) {
    let is_served = |(name, _): &&(String, usize)| name.starts_with("mcp__");
    let sum = |tools: &[(String, usize)]| tools.iter().map(|(_, size)| size).sum::<usize>();
    let served_of = |tools: &[(String, usize)]| {
        tools.iter().filter(is_served).map(|(_, size)| size).sum::<usize>()
    };
    let prefix = &point.prefix;
    let sizes: Vec<(String, usize)> = prefix.tools.iter().map(sized).collect();
    let (served, more_served) = (served_of(&sizes), served_of(&coming.tools));
    let own = prefix.tools.wire().len().saturating_sub(served);
    let fixed = FixedSizes {
        system: prefix.system.wire().len(),
        own: own + sum(&coming.tools) - more_served,
        served: served + more_served,
    };
    let said = prefix.conversation.tokens();
    // The provider's count of an earlier request has the tools in it.
    let guessed = || (tokens(fixed.system + fixed.own + fixed.served), 0);
    let (counted, guess) = point.counted.unwrap_or_else(guessed);
    let total = counted + said.saturating_sub(guess) as u64 + coming.instructions;
    let tools = sizes.iter().chain(&coming.tools);
    let tools = tools.map(|(name, size)| (name.clone(), tokens(*size))).collect();
    (parts(fixed, total), tools)
}
