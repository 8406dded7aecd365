//! The usage of the main agent's window by parts, as hosts and commands show it.

use centurion_protocol::Usage;

use crate::agent::context_file::ContextFile;
use crate::agent::fork_point::ForkPoint;
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

/// The usage of the main agent's window by its last request.
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

/// The usage of the main agent's last request; no parts before its first request.
pub(crate) fn context_usage(shared: &Shared) -> ContextUsage {
    let point = shared.main_point();
    let model = point.as_ref().map_or(shared.model.name(), |point| point.settings.model.as_str());
    let rules = shared.delegation.builder.context;
    let (parts, tools) = point.as_deref().map(sent).unwrap_or_default();
    let info = shared.model.info(model);
    ContextUsage {
        model: model.to_owned(),
        window: rules.window(&info),
        parts,
        tools,
        compacted_from: rules.threshold(&info),
        memory: shared.context_files(),
        used: point.as_ref().and_then(|point| point.used),
    }
}

fn sent(point: &ForkPoint) -> (Vec<ContextPart>, Vec<(String, u64)>) {
    let prefix = &point.prefix;
    let sizes = prefix.tools.iter().map(|spec| {
        let size = spec.name.len() + spec.description.len() + spec.input_schema.get().len();
        (spec.name.clone(), size)
    });
    let sizes: Vec<(String, usize)> = sizes.collect();
    let of_servers = sizes.iter().filter(|(name, _)| name.starts_with("mcp__"));
    let served = of_servers.map(|(_, size)| size).sum();
    let fixed = FixedSizes {
        system: prefix.system.wire().len(),
        own: prefix.tools.wire().len().saturating_sub(served),
        served,
    };
    let said = prefix.conversation.tokens();
    let (counted, guess) = point
        .counted
        .unwrap_or_else(|| (tokens(prefix.system.wire().len() + prefix.tools.wire().len()), 0));
    let total = counted + said.saturating_sub(guess) as u64;
    let tools = sizes.into_iter().map(|(name, size)| (name, tokens(size))).collect();
    (parts(fixed, total), tools)
}
