//! Plugins in words and as JSON.

use std::path::Path;

use centurion_config::agents::Vocabulary;
use centurion_config::plugins::{
    DisabledPlugin, EnabledBy, Plugin, PluginCatalog, PluginPlace, Validation, validate,
};
use centurion_protocol::SystemWorld;
use serde_json::{Value, json};

use crate::output::{Output, printable};

/// Shows all plugins.
pub(super) fn list(catalog: &PluginCatalog, as_json: bool) {
    let output = Output::default();
    if as_json {
        let enabled = catalog.enabled.iter().map(|plugin| enabled_json(plugin));
        let rows: Vec<Value> = enabled.chain(catalog.disabled.iter().map(disabled_json)).collect();
        return output.json_line(&rows);
    }
    if catalog.enabled.is_empty() && catalog.disabled.is_empty() {
        return output.write(b"there are no plugins; `centurion plugin add` adds one\n");
    }
    let enabled = catalog.enabled.iter().flat_map(|plugin| enabled_lines(plugin));
    for line in enabled.chain(catalog.disabled.iter().flat_map(disabled_lines)) {
        output.write(format!("{}\n", printable(&line)).as_bytes());
    }
}

/// That a plugin is on, who says so, and how far.
pub(super) fn state_line(plugin: &Plugin) -> String {
    let by = by(plugin);
    match plugin.power.limit() {
        None => format!("enabled ({by})"),
        Some(reason) => format!("enabled with limited power ({by}): {reason}"),
    }
}

fn by(plugin: &Plugin) -> String {
    match &plugin.enabled_by {
        EnabledBy::Flag => "--plugin-dir".to_owned(),
        EnabledBy::Settings(origin) => origin.to_string(),
        EnabledBy::Default if matches!(plugin.place, PluginPlace::SkillsDir(_)) => {
            "in a directory of skills, and on by default".to_owned()
        }
        EnabledBy::Default => "installed, and on by default".to_owned(),
    }
}

fn enabled_lines(plugin: &Plugin) -> Vec<String> {
    let version = plugin.manifest().version.as_deref().unwrap_or("without a version");
    let mut lines = vec![format!("{} {version}: {}", plugin.id, state_line(plugin))];
    lines.extend(plugin.manifest().description.iter().map(|it| format!("  {it}")));
    lines.push(format!("  from {}", plugin.root().display()));
    lines.push(format!("  brings {}", in_words(&looked_at(plugin.root()))));
    lines
}

fn disabled_lines(plugin: &DisabledPlugin) -> Vec<String> {
    let version = plugin.version.as_deref().unwrap_or("without a version");
    let mut lines = vec![format!("{} {version}: disabled: {}", plugin.id, plugin.why)];
    lines.extend(plugin.root.iter().map(|root| format!("  from {}", root.display())));
    lines
}

/// The contents of a plugin's directory. Its problems have been told.
fn looked_at(root: &Path) -> Validation {
    validate(root, &Vocabulary::default(), &SystemWorld)
}

fn in_words(brought: &Validation) -> String {
    let counts = [
        (brought.agents.len(), "agent"),
        (brought.skills.len(), "skill"),
        (brought.servers.len(), "server"),
    ];
    let mut parts = listing(&counts);
    parts.extend((!brought.hooks.is_empty()).then(|| "hooks".to_owned()));
    if parts.is_empty() { "nothing".to_owned() } else { parts.join(", ") }
}

/// The number of each kind, without kinds of which there are none.
pub(super) fn listing(counts: &[(usize, &str)]) -> Vec<String> {
    counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| counted(*count, word))
        .collect()
}

/// A number of things.
pub(super) fn counted(count: usize, word: &str) -> String {
    let end = if count == 1 { "" } else { "s" };
    format!("{count} {word}{end}")
}

fn enabled_json(plugin: &Plugin) -> Value {
    let manifest = plugin.manifest();
    let brought = looked_at(plugin.root());
    let reason = plugin.power.limit();
    let place = match &plugin.place {
        PluginPlace::Flag => "--plugin-dir".to_owned(),
        PluginPlace::Store(directory) | PluginPlace::SkillsDir(directory) => {
            directory.display().to_string()
        }
    };
    json!({
        "id": plugin.id.to_string(), "name": plugin.name(), "version": manifest.version,
        "displayName": manifest.display_name, "description": manifest.description,
        "author": manifest.author, "homepage": manifest.homepage, "license": manifest.license,
        "repository": manifest.repository, "keywords": manifest.keywords,
        "state": "enabled", "why": by(plugin), "root": plugin.root(), "from": place,
        "power": if reason.is_some() { "limited" } else { "full" }, "limits": reason.map(|it| it.to_string()),
        "agents": brought.agents, "skills": brought.skills, "servers": brought.servers,
        "hooks": brought.hooks.iter().map(|hooks| &hooks.file).collect::<Vec<_>>(),
        "mainAgent": plugin.main_agent().map(|agent| &agent.name),
    })
}

fn disabled_json(plugin: &DisabledPlugin) -> Value {
    json!({
        "id": plugin.id.to_string(), "name": plugin.id.name(), "version": plugin.version,
        "state": "disabled", "why": plugin.why.to_string(), "root": plugin.root,
    })
}
