//! Switching plugins on and off in settings.

use anyhow::Context;
use centurion_config::plugins::PluginId;
use centurion_config::settings::{
    Level, RepositoryTrust, SettingsFile, answered_power, switch_plugin,
};
use serde_json::Value;

use super::show::state_line;
use super::{PluginScope, Plugins};
use crate::output::{Output, note, printable};
use crate::trust::without_secrets;

/// Writes that a plugin is on or off, and says whether it is.
pub(super) fn switch(written: &str, scope: PluginScope, is_on: bool) -> anyhow::Result<()> {
    let plugins = Plugins::plain()?;
    let id = plugins.meant(written)?;
    let file = plugins.settings_file(scope)?;
    switch_plugin(&file, &id.to_string(), Some(is_on))?;
    accept_switch(&plugins, &file, &id.to_string(), (scope, is_on))?;
    tell_state(&id, is_on)
}

/// Accepts what the user has just had written into a file of the project: the user's own one, or that of a
/// folder that is trusted.
pub(super) fn accept_switch(
    plugins: &Plugins,
    file: &SettingsFile,
    id: &str,
    (scope, is_on): (PluginScope, bool),
) -> anyhow::Result<()> {
    let configuration = &plugins.configuration;
    let is_trusted = configuration.settings.standing() == RepositoryTrust::Full;
    match scope.level() {
        Level::Local => {}
        Level::Project if is_trusted => {}
        _ => return Ok(()),
    }
    let item = answered_power(file.path(), "enabledPlugins", Some(id), &Value::Bool(is_on));
    let kept = configuration.trust.accept(&[item], &without_secrets);
    kept.context("the answer could not be kept")
}

/// Tells whether a plugin is on after it was switched, as a new run would find it. What stands against the
/// change is told, too: a stronger file may say otherwise.
pub(super) fn tell_state(id: &PluginId, wanted: bool) -> anyhow::Result<()> {
    let catalog = Plugins::plain()?.catalog();
    let enabled = catalog.enabled.iter().find(|plugin| plugin.id == *id);
    let disabled = catalog.disabled.iter().find(|plugin| plugin.id == *id);
    let state = match (enabled, disabled) {
        (Some(plugin), _) => state_line(plugin),
        (None, Some(plugin)) => format!("disabled: {}", plugin.why),
        (None, None) => "not installed".to_owned(),
    };
    let line = printable(&format!("plugin `{id}` is {state}"));
    Output::default().write(format!("{line}\n").as_bytes());
    if enabled.is_some() != wanted {
        let wish = if wanted { "on" } else { "off" };
        note(&format!(
            "warning: the settings now say that it is {wish}, which does not count here"
        ));
    }
    Ok(())
}
