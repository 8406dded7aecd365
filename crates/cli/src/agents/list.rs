//! Agents in words and in JSON.

use std::sync::Arc;

use centurion_config::agents::{AgentCatalog, AgentDefinition, AgentSource, Color, ShadowedAgent};
use centurion_engine::builtin;
use serde_json::{Value, json};

use super::check::finding;
use crate::definitions::listing::{Form, failed_json, shortened, titled};

/// The sources in the order of a list, with what they are called in it.
const GROUPS: [(AgentSource, &str); 6] = [
    (AgentSource::Policy, "Managed"),
    (AgentSource::Flag, "For this run"),
    (AgentSource::Project, "Project"),
    (AgentSource::User, "User"),
    (AgentSource::Plugin, "Plugins"),
    (AgentSource::BuiltIn, "Built in"),
];

pub(super) fn print(catalog: &AgentCatalog, form: Form) {
    form.print(|| as_text(catalog), || as_json(catalog));
}

/// The agents that can be asked for by name.
fn shown(catalog: &AgentCatalog) -> impl Iterator<Item = &Arc<AgentDefinition>> {
    let all = catalog.active.iter().map(|agent| &agent.definition);
    all.filter(|definition| !builtin::is_hidden(definition))
}

fn shadowed(catalog: &AgentCatalog) -> impl Iterator<Item = &ShadowedAgent> {
    catalog.shadowed.iter().filter(|agent| !builtin::is_hidden(&agent.definition))
}

fn as_json(catalog: &AgentCatalog) -> Value {
    let active = shown(catalog).map(|definition| agent_json(definition));
    let shadowed = shadowed(catalog).map(|agent| {
        let mut value = agent_json(&agent.definition);
        value["shadowedBy"] = json!(agent.by.path);
        value
    });
    let failed = catalog.failed.iter().map(|failed| failed_json(&finding(failed)));
    json!({
        "active": active.collect::<Vec<_>>(),
        "shadowed": shadowed.collect::<Vec<_>>(),
        "failed": failed.collect::<Vec<_>>(),
    })
}

fn agent_json(definition: &AgentDefinition) -> Value {
    let own = definition.color.as_ref().map(|color| color.value);
    let color = own.unwrap_or_else(|| Color::of_name(&definition.name));
    json!({
        "name": definition.name.value,
        "description": definition.description.value,
        "tools": definition.tools.as_ref().map(|tools| &tools.value),
        "disallowedTools": definition.disallowed_tools.as_ref().map(|tools| &tools.value),
        "model": definition.model.as_ref().map(|model| model.as_str()),
        "color": color.as_str(),
        "source": definition.origin.source.as_str(),
        "path": definition.origin.path,
    })
}

fn as_text(catalog: &AgentCatalog) -> String {
    let mut groups: Vec<(&str, Vec<String>)> = Vec::new();
    for (source, title) in GROUPS {
        let of_source = shown(catalog).filter(|definition| definition.origin.source == source);
        groups.push((title, of_source.flat_map(|definition| described(definition)).collect()));
    }
    groups.push(("Another has their name", shadowed(catalog).map(beaten).collect()));
    let failed = catalog.failed.iter().map(|failed| finding(failed).to_string());
    groups.push(("Cannot be used", failed.collect()));
    let nothing = || "there are no agents; `centurion agents new` writes one\n".to_owned();
    titled(groups).unwrap_or_else(nothing)
}

/// An agent in a few lines.
fn described(definition: &AgentDefinition) -> Vec<String> {
    let model = definition.model.as_ref().map_or("inherit", |model| model.as_str());
    let mut lines = vec![
        format!("{} (model {model}; {})", definition.name.value, tools(definition)),
        format!("    {}", shortened(&definition.description)),
    ];
    if definition.origin.source != AgentSource::BuiltIn {
        lines.push(format!("    {}", definition.origin.path.display()));
    }
    lines
}

fn tools(definition: &AgentDefinition) -> String {
    let without = definition.disallowed_tools.as_ref().filter(|tools| !tools.is_empty());
    let except = without.map(|tools| format!(" except {}", tools.join(", "))).unwrap_or_default();
    match &definition.tools {
        Some(tools) if !definition.has_all_tools() && tools.is_empty() => "no tools".to_owned(),
        Some(tools) if !definition.has_all_tools() => format!("{}{except}", tools.join(", ")),
        _ => format!("all tools{except}"),
    }
}

fn beaten(agent: &ShadowedAgent) -> String {
    let ShadowedAgent { definition, by } = agent;
    let own = definition.origin.path.display();
    format!("{} of {own}: {} goes before it", definition.name.value, by.path.display())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use centurion_config::agents::{AgentScope, Vocabulary, read_markdown};

    use super::*;

    fn with(lines: &str) -> Arc<AgentDefinition> {
        let text = format!("---\nname: x\ndescription: y\n{lines}\n---\n");
        let scope = AgentScope::Own(AgentSource::User);
        let read = read_markdown(&text, Path::new("/x.md"), &scope, &Vocabulary::default());
        read.unwrap().unwrap().definition
    }

    #[test]
    fn tools_are_told_in_words() {
        for (lines, expected) in [
            ("", "all tools"),
            ("tools: '*'", "all tools"),
            ("disallowedTools: Edit, Write", "all tools except Edit, Write"),
            ("tools: Read, Grep", "Read, Grep"),
            ("tools: Read, Grep\ndisallowedTools: Grep", "Read, Grep except Grep"),
            ("tools: []", "no tools"),
        ] {
            assert_eq!(tools(&with(lines)), expected, "{lines}");
        }
    }

    #[test]
    fn a_list_cannot_command_a_terminal() {
        let agent = with("model: \"m\\e[31m\"");
        let active = centurion_config::agents::ActiveAgent { definition: agent, color: Color::Red };
        let catalog = AgentCatalog { active: vec![active], ..AgentCatalog::default() };
        let text = as_text(&catalog);
        assert!(text.starts_with("User:\n  x (model m[31m; all tools)\n"), "{text}");
        assert!(as_text(&AgentCatalog::default()).starts_with("there are no agents"));
    }
}
