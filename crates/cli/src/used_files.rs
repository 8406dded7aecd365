//! The files in the working directories that hooks, servers, plugins, helpers and git run in this session: commands and
//! edits must not change them without a question.

use std::path::{Path, PathBuf};

use centurion_config::agents::AgentSource;
use centurion_config::mcp::McpScope;
use centurion_config::paths::repo_root;
use centurion_config::plugins::Plugin;
use centurion_config::repository::named_by_configuration;
use centurion_config::settings::Settings;
use centurion_config::skills::SkillSource;
use centurion_config::trust::{Lookup, Trust, collect_hook_texts, collect_texts, named_files};
use centurion_protocol::Env;

use crate::delegation::AgentParts;
use crate::sandbox::reachable;
use crate::surroundings::Surroundings;

/// The files that run in this session: those of plugins, those of the folders that were accepted, and those of the
/// folders that anything names which runs. What would run as soon as it is there counts as well, but for what is judged
/// before it runs.
pub(crate) fn used_files(
    found: &AgentParts,
    trust: &Trust,
    settings: &Settings,
    surroundings: &Surroundings,
    env: &Env,
    added: &[PathBuf],
) -> Vec<PathBuf> {
    let cwd = surroundings.cwd.as_path();
    let home = surroundings.home.as_deref();
    let folders: Vec<&Path> =
        std::iter::once(cwd).chain(added.iter().map(PathBuf::as_path)).collect();
    let commands = CommandTexts::collect(found, settings);
    let programs = folders.iter().flat_map(|folder| {
        let root = repo_root(folder).unwrap_or_else(|| folder.to_path_buf());
        let lookup = Lookup { places: &[cwd, folder], root: &root, home };
        let named = named_files(&commands.own, &lookup);
        let named = named.present.into_iter().chain(named.missing).chain(named.searched);
        let judged = named_files(&commands.judged, &lookup).present;
        let accepted = trust.programs(folder).into_iter().filter(|path| path.exists());
        accepted.chain(named).chain(judged).chain(named_by_configuration(&root, home))
    });
    // Wherever else a command may write: nothing there is judged by its content.
    let beside = reachable(settings, surroundings, added).into_iter().flat_map(|place| {
        let lookup = Lookup { places: &[cwd], root: &place, home };
        let named = named_files(&commands.own, &lookup);
        let judged = named_files(&commands.judged, &lookup);
        [named, judged].into_iter().flat_map(|it| it.present.into_iter().chain(it.missing))
    });
    let beside: Vec<PathBuf> =
        beside.filter(|file| !folders.iter().any(|it| file.starts_with(it))).collect();
    let plugins = found.plugins.enabled.iter().flat_map(|plugin| {
        let root = plugin.root();
        // A person who works on a plugin may change files that do not run.
        if !folders.iter().any(|folder| folder.starts_with(root)) {
            return vec![root.to_owned()];
        }
        let lookup = Lookup { places: &[cwd, root], root, home };
        let named = named_files(&commands.own, &lookup);
        let parts = plugin_parts(plugin, env).into_iter();
        parts.chain(named.present).chain(named.missing).chain(named.searched).collect()
    });
    let named = named_by_variables(env, cwd);
    let files: Vec<PathBuf> = plugins.chain(programs).chain(beside).chain(named).collect();
    // A command that writes where a link leads writes the file.
    let real = files.iter().filter_map(|file| file.canonicalize().ok());
    let real: Vec<PathBuf> =
        real.filter(|file| folders.iter().any(|it| file.starts_with(it))).collect();
    files.into_iter().chain(real).collect()
}

/// Texts that may name files which run.
#[derive(Default)]
struct CommandTexts {
    /// Files that are not judged again before they run.
    own: Vec<String>,
    /// Files that are judged by their content before they run.
    judged: Vec<String>,
}

impl CommandTexts {
    /// Everything that runs in this session beside the model's commands.
    fn collect(found: &AgentParts, settings: &Settings) -> Self {
        let mut commands = Self::default();
        for declared in settings.hooks() {
            collect_hook_texts(&declared.value, &mut commands.own);
        }
        commands.own.extend(settings.api_key_helper().map(|helper| helper.value));
        for declared in &found.servers.servers {
            let is_judged = declared.server.origin.scope == McpScope::Project;
            commands.of(is_judged).extend(declared.server.commands());
        }
        for plugin in &found.plugins.enabled {
            commands.own.extend(hooks_of(plugin));
        }
        for agent in &found.agents().active {
            let definition = &agent.definition;
            let is_judged = definition.origin.source == AgentSource::Project;
            if definition.withheld.is_some() {
                continue;
            }
            let texts = commands.of(is_judged);
            definition.hooks.iter().for_each(|it| collect_hook_texts(&it.value, texts));
            definition.mcp_servers.iter().for_each(|it| collect_texts(&it.value, texts));
        }
        let skills = found.skills();
        let with_hooks = skills.active.iter().filter(|skill| skill.card.has_hooks);
        for skill in with_hooks.filter_map(|skill| skills.read(skill).ok()) {
            let skill = skill.definition;
            let is_judged = skill.origin.source == SkillSource::Project;
            if skill.withheld.is_some() {
                continue;
            }
            let texts = commands.of(is_judged);
            skill.hooks.iter().for_each(|hooks| collect_hook_texts(&hooks.value, texts));
            texts.extend(skill.commands().map(str::to_owned));
        }
        commands
    }

    fn of(&mut self, is_judged: bool) -> &mut Vec<String> {
        if is_judged { &mut self.judged } else { &mut self.own }
    }
}

/// The commands of a plugin's hooks, with its own directories in them.
fn hooks_of(plugin: &Plugin) -> Vec<String> {
    let mut texts = Vec::new();
    plugin.hooks().iter().for_each(|hooks| collect_hook_texts(&hooks.value, &mut texts));
    texts.iter().map(|text| plugin.variables().fill(text)).collect()
}

/// Variables of the user that name files which programs run or obey, each with what stands below it.
const NAMING_VARIABLES: [(&str, &str); 14] = [
    ("BASH_ENV", ""),
    ("CLAUDE_ENV_FILE", ""),
    ("ENV", ""),
    ("GIT_ASKPASS", ""),
    ("GIT_CONFIG_GLOBAL", ""),
    ("GIT_CONFIG_SYSTEM", ""),
    ("GIT_EXEC_PATH", ""),
    ("GIT_EXTERNAL_DIFF", ""),
    ("GIT_SSH", ""),
    ("GIT_TEMPLATE_DIR", ""),
    ("PYTHONSTARTUP", ""),
    ("RIPGREP_CONFIG_PATH", ""),
    ("SSH_ASKPASS", ""),
    ("XDG_CONFIG_HOME", "git"),
];

/// Files that the user's variables name, which commands read or run by themselves. They need not exist yet.
fn named_by_variables(env: &Env, cwd: &Path) -> impl Iterator<Item = PathBuf> {
    NAMING_VARIABLES.into_iter().filter_map(|(name, below)| {
        let value = env.get(name).filter(|value| !value.is_empty())?;
        let path = cwd.join(value);
        let path = if below.is_empty() { path } else { path.join(below) };
        // A directory around the project is not all code.
        (!cwd.starts_with(&path)).then_some(path)
    })
}

/// Entries of a plugin's directory that run, or bring what runs: also those that would as soon as they are there.
/// Directories end with a slash.
const PLUGIN_PARTS: &[&str] =
    &[".claude-plugin/", ".mcp.json", "agents/", "commands/", "hooks/", "plugin.json", "skills/"];

/// The parts of a plugin, by their usual names and by those that its manifest gives them.
fn plugin_parts(plugin: &Plugin, env: &Env) -> Vec<PathBuf> {
    let root = plugin.root();
    let usual = PLUGIN_PARTS.iter().map(|part| root.join(part));
    let scripts = [root.join("scripts")].into_iter().filter(|path| path.exists());
    let skills = plugin.skills();
    let named = plugin.agents().paths.into_iter().chain(skills.skills).chain(skills.commands);
    let hooks = plugin.hooks().iter().map(|hooks| hooks.file.clone());
    let servers = plugin.servers(env).into_iter().filter_map(|it| it.server?.origin.file);
    let named = named.chain(hooks).chain(servers);
    // A plugin may be one skill as a whole, and is worked on all the same.
    let named = named.filter(|path| path.as_path() != root && path.exists());
    usual.chain(scripts).chain(named).collect()
}
