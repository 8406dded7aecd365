//! Facts about the session for a host: models, the account, commands, agents, the window, costs.

use std::time::Duration;

use centurion_config::agents::{ActiveAgent, AgentSource};
use centurion_engine::{
    ContextFile, ContextPart, ContextUsage, Handle, MessageBreakdown, TypedCommand,
};
use centurion_model::{Model, ProviderKind, ThinkingKind};
use serde_json::{Value, json};

use super::Control;

/// The short names of models, each with what it is for.
const MODELS: [(&str, &str, &str); 5] = [
    ("default", "Default", "The model of the session"),
    ("opus", "Opus", "For hard work"),
    ("sonnet", "Sonnet", "For everyday work"),
    ("haiku", "Haiku", "For quick and small work"),
    ("fable", "Fable", "For the longest work"),
];

/// The models that a host may choose.
pub(super) fn models(control: &Control) -> Vec<Value> {
    let Control { model, limits, handle, .. } = control;
    let is_usable = |name: &str| name == "default" || limits.check(name, model).is_ok();
    let usable = MODELS.iter().filter(|(name, ..)| is_usable(name));
    let described = usable.map(|(name, display, description)| {
        let full =
            if *name == "default" { model.name().to_owned() } else { handle.resolve_model(name) };
        let info = model.info(&full);
        json!({
            "value": name,
            "resolvedModel": full,
            "displayName": display,
            "description": description,
            "supportsEffort": !info.efforts.is_empty(),
            "supportedEffortLevels": info.efforts,
            "supportsAdaptiveThinking":
                matches!(info.thinking, ThinkingKind::Adaptive | ThinkingKind::AdaptiveOrBudget),
        })
    });
    described.collect()
}

/// The access to models, without the key.
pub(super) fn account(model: &Model) -> Value {
    let source = model.key_source();
    match model.provider_kind() {
        ProviderKind::Anthropic => {
            let token = if source == "ANTHROPIC_AUTH_TOKEN" { source } else { "none" };
            json!({"apiProvider": "firstParty", "apiKeySource": source, "tokenSource": token})
        }
        // Hosts know no word for the other kinds of providers.
        _ => json!({"apiKeySource": source}),
    }
}

pub(super) fn commands(handle: &Handle) -> Vec<Value> {
    handle.commands().into_iter().map(TypedCommand::for_hosts).collect()
}

/// The skills, as hosts list them.
pub(super) fn skills(handle: &Handle) -> Vec<Value> {
    let names = handle.skill_names();
    let is_skill = |command: &Value| names.iter().any(|name| command["name"] == **name);
    commands(handle).into_iter().filter(is_skill).collect()
}

/// The agents that can be asked for, as hosts list them.
pub(super) fn agents(handle: &Handle) -> Vec<Value> {
    let agent = |agent: ActiveAgent| {
        let definition = &agent.definition;
        let (name, description) = (&definition.name.value, &definition.description.value);
        match definition.model.as_ref().map(|model| model.as_str()) {
            Some(model) => json!({"name": name, "description": description, "model": model}),
            None => json!({"name": name, "description": description}),
        }
    };
    handle.agents().into_iter().map(agent).collect()
}

/// The contents of the window, by category.
pub(super) fn context_usage(handle: &Handle) -> Value {
    let usage = handle.context_usage();
    let used: u64 = usage.parts.iter().map(|part| part.tokens).sum();
    let percentage = used as f64 * 100.0 / usage.window.max(1) as f64;
    let category = |part: &ContextPart, color: &str, kind: &str| json!({"id": part.id, "name": part.name, "tokens": part.tokens, "color": color, "kind": kind});
    let part = |id, name, tokens| ContextPart { id, name, tokens };
    let buffer = usage.compacted_from.map_or(0, |most| usage.window.saturating_sub(most));
    let free = part("free_space", "Free", usage.window.saturating_sub(used + buffer));
    let buffer = usage.compacted_from.map(|_| {
        category(&part("autocompact_buffer", "Autocompact buffer", buffer), "gray", "buffer")
    });
    let parts = usage.parts.iter().map(|part| category(part, "cyan", "used"));
    let categories: Vec<Value> =
        parts.chain([category(&free, "gray", "free")]).chain(buffer).collect();
    let (served, own): (Vec<_>, Vec<_>) =
        usage.tools.iter().partition(|(name, _)| name.starts_with("mcp__"));
    let of_server = |(name, tokens): &&(String, u64)| {
        let origin = name.trim_start_matches("mcp__").split("__").next().unwrap_or_default();
        json!({"name": name, "serverName": origin, "tokens": tokens, "isLoaded": true})
    };
    let own_tool = |(name, tokens): &&(String, u64)| json!({"name": name, "tokens": tokens});
    let mut told = json!({
        "categories": categories,
        "totalTokens": used,
        "maxTokens": usage.window,
        "rawMaxTokens": usage.window,
        "percentage": percentage.round(),
        // A drawing for terminals; a host that wants one has the categories.
        "gridRows": [],
        "model": usage.model,
        "memoryFiles": usage.memory.iter().map(memory_file).collect::<Vec<_>>(),
        "mcpTools": served.iter().map(of_server).collect::<Vec<_>>(),
        "systemTools": own.iter().map(own_tool).collect::<Vec<_>>(),
        "agents": custom_agents(handle),
        "isAutoCompactEnabled": usage.compacted_from.is_some(),
        "autoCompactThreshold": usage.compacted_from,
        "apiUsage": usage.used,
    });
    if let Some(messages) = handle.message_breakdown() {
        told["messageBreakdown"] = breakdown(&messages, &usage);
    }
    told
}

fn breakdown(messages: &MessageBreakdown, usage: &ContextUsage) -> Value {
    let whole = usage.parts.iter().find(|part| part.id == "messages").map_or(0, |it| it.tokens);
    let by_tool = messages.by_tool.iter().map(
        |(name, (call, result))| json!({"name": name, "callTokens": call, "resultTokens": result}),
    );
    let by_attachment = messages.by_attachment.iter();
    let by_attachment = by_attachment.map(|(name, tokens)| json!({"name": name, "tokens": tokens}));
    json!({
        "toolCallTokens": messages.calls,
        "toolResultTokens": messages.results,
        "attachmentTokens": messages.attachments,
        "assistantMessageTokens": messages.assistant,
        "userMessageTokens": messages.user,
        "redirectedContextTokens": 0,
        "unattributedTokens": whole.saturating_sub(messages.total()),
        "toolCallsByType": by_tool.collect::<Vec<_>>(),
        "attachmentsByType": by_attachment.collect::<Vec<_>>(),
    })
}

fn memory_file(file: &ContextFile) -> Value {
    json!({"path": file.path, "type": file.kind, "tokens": file.tokens})
}

/// The agents that are not the program's own, each with about how many tokens the model is told of it.
fn custom_agents(handle: &Handle) -> Vec<Value> {
    let agents = handle.agents();
    let custom = agents.iter().filter(|it| it.definition.origin.source != AgentSource::BuiltIn);
    let shown = custom.map(|agent| {
        let (definition, origin) = (&agent.definition, &agent.definition.origin);
        let (name, description) = (&definition.name.value, &definition.description.value);
        json!({
            "agentType": name,
            "source": origin.source.as_str(),
            "tokens": (name.len() + description.len()) / 4,
        })
    });
    shown.collect()
}

/// The usage of the session. Providers by key have no plan whose limits could be told.
pub(super) fn usage(handle: &Handle) -> Value {
    let used = handle.usage();
    json!({
        "session": {
            "total_cost_usd": used.total_cost(),
            "total_api_duration_ms": millis(used.api_time),
            "total_duration_ms": millis(used.began.elapsed()),
            "total_lines_added": used.lines_added,
            "total_lines_removed": used.lines_removed,
            "model_usage": used.by_model(),
        },
        "subscription_type": null,
        "rate_limits_available": false,
        "rate_limits": null,
        "behaviors": null,
    })
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
