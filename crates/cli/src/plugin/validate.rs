//! `centurion plugin validate`: all that is wrong with a plugin, for its author.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use centurion_config::agents::Vocabulary;
use centurion_config::plugins::{PluginHooks, Validation, validate};
use centurion_hooks::{HookOrigin, HookSet, HookSource, PluginSource};
use centurion_protocol::SystemWorld;
use centurion_tools::builtin;

use super::show::{counted, listing};
use crate::output::{Output, printable};

/// Checks a directory and says what is wrong with it; fails if something cannot be used.
pub(super) fn run(directory: &Path) -> ExitCode {
    let tools = builtin().iter().map(|tool| tool.name().to_owned()).collect();
    let validation = validate(directory, &Vocabulary { tools }, &SystemWorld);
    let hooks: Vec<HookSet> = validation.hooks.iter().map(|it| hook_set(it, &validation)).collect();
    let mut errors: Vec<String> = validation.errors.iter().map(ToString::to_string).collect();
    errors.extend(hooks.iter().flat_map(HookSet::problems).map(ToString::to_string));
    let warnings: Vec<String> = validation.warnings.iter().map(ToString::to_string).collect();
    let output = Output::default();
    for (word, lines) in [("error", &errors), ("warning", &warnings)] {
        for line in lines {
            output.write(format!("{word}: {}\n", printable(line)).as_bytes());
        }
    }
    let count: usize = hooks.iter().map(HookSet::len).sum();
    output.write(format!("{}\n", printable(&summary(&validation, count, errors.len()))).as_bytes());
    if errors.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn hook_set(hooks: &PluginHooks, validation: &Validation) -> HookSet {
    let source = PluginSource {
        name: validation.plugin.clone().unwrap_or_default(),
        root: validation.root.clone(),
        ..PluginSource::default()
    };
    let source = HookSource::Plugin(Arc::new(source));
    let origin = HookOrigin::in_file(source, hooks.file.clone(), Some(hooks.line));
    HookSet::with_lines(&hooks.value, &hooks.lines, &origin)
}

fn summary(validation: &Validation, hooks: usize, errors: usize) -> String {
    let what = match (&validation.plugin, &validation.marketplace) {
        (Some(plugin), _) => format!("plugin `{plugin}`"),
        (None, Some(marketplace)) => format!("marketplace `{marketplace}`"),
        (None, None) => validation.root.display().to_string(),
    };
    if errors > 0 {
        return format!("{what} has {}", counted(errors, "error"));
    }
    let parts = listing(&[
        (validation.agents.len(), "agent"),
        (validation.skills.len(), "skill"),
        (validation.servers.len(), "server"),
        (hooks, "hook"),
    ]);
    let parts = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
    format!("{what} can be used{parts}")
}
