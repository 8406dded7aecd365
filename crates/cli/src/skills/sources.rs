//! Everything that may define skills here: the one gathering, for commands and for runs.

use centurion_config::agents::AgentSources;
use centurion_config::plugins::PluginCatalog;
use centurion_config::settings::Settings;
use centurion_config::skills::SkillSources;

/// All sources of skills: the places of agents hold them, too.
pub(crate) fn sources(
    agents: &AgentSources,
    settings: &Settings,
    plugins: &PluginCatalog,
) -> SkillSources {
    let said = settings.skills();
    SkillSources {
        managed_dir: agents.managed_dir.clone(),
        folders: agents.folders.clone(),
        config_dirs: agents.config_dirs.clone(),
        levels: agents.levels,
        plugins: plugins.enabled.iter().map(|plugin| plugin.skills()).collect(),
        plugin_only: settings.plugin_only().skills.is_some(),
        plugin_folders: plugins.skill_folders.clone(),
        nested: Vec::new(),
        bundled: said.bundled,
        is_off: false,
        takes_added: false,
        overrides: said.overrides,
        content: agents.content.clone(),
        chosen: None,
        only_as_seen: false,
        index_dir: None,
        read_rules: agents.read_rules.clone(),
    }
}
