//! Settings: what people wrote in their files, in order, checked, merged, and with its origin.
//!
//! A stronger level wins over a weaker one: managed, flag, local, project, user. Nothing here fails: a
//! file that cannot be read is reported and the others count, a value that cannot be used is reported
//! and the rest of its file counts. What a repository brings is off until its folder is trusted.

mod agents;
pub(crate) mod document;
mod document_view;
pub(crate) mod draft;
pub(crate) mod edit;
mod hooks;
mod keys;
mod layer;
mod level;
mod mcp;
mod memory;
mod merge;
mod parent;
mod permissions;
mod plugin_only;
mod plugins;
mod report;
mod sandbox;
mod skills;
mod sources;
mod subagents;
#[cfg(test)]
mod tests;
mod worktree;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use centurion_protocol::{Effort, Env};
use serde_json::Value;

pub use self::agents::DeclaredAgent;
pub use self::document_view::SettingsDocument;
pub use self::edit::{
    Change, EditError, KnownSetting, RuleList, SettingsFile, ValueError, add_directory, add_rule,
    known_settings, read_setting, remove_directories, remove_rules, replace_rules,
    set_default_mode, set_text, set_value, switch_plugin, unset,
};
pub use self::hooks::{DeclaredHooks, HookLimits, Lines};
pub(crate) use self::keys::closest;
pub use self::keys::closest_words;
use self::layer::Layer;
pub(crate) use self::layer::printable;
pub use self::level::{Level, LevelChoice, Origin, Sourced, UnknownSource};
pub use self::mcp::McpSettings;
pub use self::memory::{MemorySettings, MemoryTask};
use self::merge::MergedValues;
pub use self::merge::{Off, RepositoryTrust};
pub use self::parent::ParentSettings;
pub use self::permissions::{DefaultMode, Permissions, RuleForm, RuleText};
pub use self::plugin_only::PluginOnly;
pub use self::plugins::{PluginSettings, PluginSwitch};
pub use self::report::{KeyReport, KeyState};
pub use self::sandbox::{Sandbox, SandboxFiles, SandboxNetwork};
pub use self::skills::{SkillOverride, SkillSettings};
use self::sources::SettingsCandidate;
pub use self::sources::{Additions, FlagError, FlagSettings, SettingsSources};
pub use self::subagents::{
    ChildMode, ForkGate, PeerPolicy, SessionMode, SubagentLimits, SubagentSettings, TeammateMode,
};
pub use self::worktree::WorktreeSettings;
use crate::Problem;
use crate::files::{self, LARGEST_SETTINGS, Stamp};
use crate::trust::{ContentTrust, FolderTrust, PowerItem};

/// The number of days that a session is kept by default.
const KEPT_DAYS: u32 = 30;

/// All settings of a run.
#[derive(Clone, Debug)]
pub struct Settings {
    sources: SettingsSources,
    trust: FolderTrust,
    /// The strongest first.
    layers: Vec<Layer>,
    /// Every place that was looked at, and what was there.
    looked_at: Vec<(Level, PathBuf, Option<Stamp>)>,
    /// Problems besides those of the files.
    problems: Vec<Problem>,
    merged: MergedValues,
    permissions: Permissions,
    sandbox: Sandbox,
}

impl Settings {
    /// Reads all files, for a folder that has been given this much.
    pub fn load(sources: SettingsSources, trust: impl Into<FolderTrust>) -> Self {
        let mut settings = Self {
            sources,
            trust: trust.into(),
            layers: Vec::new(),
            looked_at: Vec::new(),
            problems: Vec::new(),
            merged: MergedValues::default(),
            permissions: Permissions::default(),
            sandbox: Sandbox::default(),
        };
        settings.reload();
        settings
    }

    /// Whether a file has changed, come or gone since it was read. Costs one look at each place.
    pub fn is_stale(&self) -> bool {
        self.stale_files().next().is_some()
    }

    /// The files that have changed, come or gone since they were read.
    pub fn stale_files(&self) -> impl Iterator<Item = (Level, PathBuf)> {
        let stale = self.looked_at.iter().filter(|(_, path, stamp)| Stamp::of(path) != *stamp);
        stale.map(|(level, path, _)| (*level, path.clone()))
    }

    /// Reads all files again. A file that cannot be read now, perhaps because an editor is still writing
    /// it, counts as it was when it last could: a deny must not go away by accident.
    pub fn reload(&mut self) {
        let before = std::mem::take(&mut self.layers);
        self.looked_at.clear();
        if let Some(directory) = self.sources.drop_in_dir() {
            let stamp = Stamp::of(&directory);
            self.looked_at.push((Level::Managed, directory, stamp));
        }
        self.problems.clear();
        for candidate in self.sources.candidates(&mut self.problems) {
            let same = |it: &&Layer| it.level == candidate.level && *it.file == *candidate.path;
            let was = before.iter().find(same);
            if let Some(layer) = self.read(candidate, was) {
                self.layers.push(layer);
            }
        }
        self.merge();
    }

    /// Whether a repository that is not trusted brings a link to something outside of it.
    fn is_link_of_a_stranger(&self, level: Level, path: &Path) -> bool {
        let is_projects = matches!(level, Level::Project | Level::Local);
        let directory = path.ancestors().nth(2).unwrap_or(path);
        is_projects && self.standing() != RepositoryTrust::Full && files::leads_out(path, directory)
    }

    fn read(&mut self, candidate: SettingsCandidate, was: Option<&Layer>) -> Option<Layer> {
        let SettingsCandidate { level, path, text, root } = candidate;
        if self.is_link_of_a_stranger(level, &path) {
            let message = files::LEADS_OUT.to_owned();
            self.looked_at.push((level, path.clone(), Stamp::of(&path)));
            let mut layer = Layer::new(level, path, root);
            layer.problem(None, message);
            return Some(layer);
        }
        let text = if let Some(text) = text {
            Ok(Some(text))
        } else {
            let (stamp, text) = files::read(&path, LARGEST_SETTINGS);
            self.looked_at.push((level, path.clone(), stamp));
            text
        };
        let document = match text {
            Ok(None) => return None,
            Ok(Some(text)) => document::parse(&text),
            Err(error) => Err(error),
        };
        let mut layer = Layer::new(level, path, root);
        match (document, was) {
            (Ok(document), _) => {
                layer.fill(document);
                if self.sources.additions == Additions::Named {
                    layer.drop_additions();
                }
            }
            (Err(error), None) => {
                layer.is_unread = true;
                layer.problem(error.line(), error.to_string());
            }
            (Err(error), Some(was)) => {
                layer = Layer { problems: Vec::new(), is_unread: true, ..was.clone() };
                let message = format!("{error}; what it said before still counts");
                layer.problem(error.line(), message);
            }
        }
        Some(layer)
    }

    /// Problems of files of the user and of the machine's administrator that cannot be read at all. Rules that take
    /// away may be in them.
    pub fn unread_files(&self) -> impl Iterator<Item = &Problem> {
        let is_own = |layer: &&Layer| matches!(layer.level, Level::Managed | Level::User);
        let unread = self.layers.iter().filter(is_own).filter(|layer| layer.is_unread);
        self.problems.iter().chain(unread.flat_map(|layer| &layer.problems))
    }

    /// Switches what the repository brought on or off.
    pub fn apply_trust(&mut self, trust: impl Into<FolderTrust>) {
        self.trust = trust.into();
        self.reload();
    }

    /// The trust that the folder has.
    pub fn standing(&self) -> RepositoryTrust {
        self.trust.standing
    }

    /// Says which contents of the repository were accepted.
    pub fn content_trust(&self) -> &ContentTrust {
        &self.trust.content
    }

    /// The parts of the project's files that the user has not accepted, in words: each with its place.
    pub fn unaccepted(&self) -> Vec<Problem> {
        let mut problems: Vec<Problem> = Vec::new();
        for judged in &self.merged.values {
            // The reader of hooks reports them.
            let Some(Off::Unaccepted(reason)) = &judged.off else { continue };
            if judged.entry.key.path == "hooks" {
                continue;
            }
            let message = format!("`{}` is off: {reason}", judged.entry.path());
            let origin = &judged.origin;
            let path = origin.file.to_path_buf();
            // The items of a list follow each other.
            let is_told =
                problems.last().is_some_and(|last| last.path == path && last.message == message);
            if !is_told {
                problems.push(Problem { path, line: Some(origin.line), message });
            }
        }
        problems
    }

    fn merge(&mut self) {
        self.merged = MergedValues::new(&self.layers, &self.trust.content);
        self.permissions = Permissions::new(&self.merged, &self.sources);
        self.sandbox = Sandbox::new(&self.merged);
    }

    /// The places in which the settings were looked for.
    pub fn sources(&self) -> &SettingsSources {
        &self.sources
    }

    /// The problems of the files.
    pub fn problems(&self) -> impl Iterator<Item = &Problem> {
        self.problems.iter().chain(self.layers.iter().flat_map(|layer| &layer.problems))
    }

    /// The files that were found, the strongest first.
    pub fn files(&self) -> impl Iterator<Item = (Level, &Path)> {
        self.layers.iter().map(|layer| (layer.level, &*layer.file))
    }

    pub fn permissions(&self) -> &Permissions {
        &self.permissions
    }

    pub fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    /// The settings about worktrees of agents.
    pub fn worktrees(&self) -> WorktreeSettings {
        WorktreeSettings::new(&self.merged)
    }

    /// The treatment of messages that other sessions of the user send to this one.
    pub fn other_sessions(&self) -> PeerPolicy {
        let said = self.merged.text("crossSessionInbound");
        said.and_then(|it| PeerPolicy::named(&it.value)).unwrap_or_default()
    }

    /// The processes in which members of a team run.
    pub fn teammate_mode(&self) -> Option<TeammateMode> {
        TeammateMode::named(&self.merged.text("teammateMode")?.value)
    }

    /// A limit on what one command may use: `memoryMb`, `processes` or `fileMb`.
    pub fn command_limit(&self, name: &str) -> Option<u64> {
        self.merged.first(&format!("commandLimits.{name}"))?.entry.value.as_u64()
    }

    /// The settings about MCP servers that may run.
    pub fn mcp(&self) -> McpSettings {
        McpSettings::new(&self.merged)
    }

    /// The agent that the main session runs as.
    pub fn agent(&self) -> Option<Sourced<String>> {
        self.merged.text("agent").filter(|agent| !agent.value.trim().is_empty())
    }

    /// The name of the output style.
    pub fn output_style(&self) -> Option<String> {
        self.merged.text("outputStyle").map(|style| style.value)
    }

    /// The settings about agents that other agents start, with their limits.
    pub fn subagents(&self) -> SubagentSettings {
        SubagentSettings::new(&self.merged)
    }

    pub fn model(&self) -> Option<Sourced<String>> {
        self.merged.text("model")
    }

    /// The models to go over to, in order.
    pub fn fallback_models(&self) -> Vec<Sourced<String>> {
        self.merged.texts("fallbackModel")
    }

    /// The models that may be chosen; `None` if no setting limits them.
    pub fn available_models(&self) -> Option<Vec<Sourced<String>>> {
        let key = "availableModels";
        self.merged.first(key).map(|_| self.merged.texts(key))
    }

    /// Whether the default model must be listed, too.
    pub fn enforces_available_models(&self) -> bool {
        self.merged.bool("enforceAvailableModels").unwrap_or(false)
    }

    /// The names that the provider gives its models, by the names that users write.
    pub fn model_overrides(&self) -> BTreeMap<String, String> {
        let named = self.merged.all("modelOverrides").filter_map(|judged| {
            let (name, value) = (judged.entry.name.as_deref()?, judged.entry.value.as_str()?);
            Some((name.trim().to_owned(), value.trim().to_owned()))
        });
        named.filter(|(name, value)| !name.is_empty() && !value.is_empty()).collect()
    }

    /// A command that prints the key of the Messages API.
    pub fn api_key_helper(&self) -> Option<Sourced<String>> {
        self.merged.text("apiKeyHelper").filter(|command| !command.value.trim().is_empty())
    }

    pub fn effort(&self) -> Option<Sourced<Effort>> {
        let Sourced { value, origin } = self.merged.text("effortLevel")?;
        Some(Sourced { value: value.parse().ok()?, origin })
    }

    pub fn always_thinking(&self) -> Option<bool> {
        self.merged.bool("alwaysThinkingEnabled")
    }

    /// Whether conversations are made shorter before they outgrow their window.
    pub fn auto_compact_enabled(&self) -> Option<bool> {
        self.merged.bool("autoCompactEnabled")
    }

    /// Whether copies of files are kept before agents change them.
    pub fn file_checkpointing_enabled(&self) -> Option<bool> {
        self.merged.bool("fileCheckpointingEnabled")
    }

    /// The window by which that is judged.
    pub fn auto_compact_window(&self) -> Option<u64> {
        self.merged.first("autoCompactWindow")?.entry.value.as_u64()
    }

    /// Environment variables to set; an empty text unsets one.
    pub fn env(&self) -> BTreeMap<&str, Sourced<&str>> {
        self.merged
            .all("env")
            .filter_map(|judged| {
                let (name, value) = (judged.entry.name.as_deref()?, judged.entry.value.as_str()?);
                Some((name, Sourced { value, origin: judged.origin.clone() }))
            })
            .collect()
    }

    /// The process's environment with the settings' variables laid over it.
    pub fn overlay(&self, env: &Env) -> Env {
        let mut variables: BTreeMap<&str, &str> = env.iter().collect();
        for (name, value) in self.env() {
            variables.insert(name, value.value);
        }
        let set = variables.into_iter().filter(|(_, value)| !value.is_empty());
        Env::new(set.map(|(name, value)| (name.to_owned(), value.to_owned())))
    }

    /// For how many days sessions are kept; `None` where a file that might say so cannot be read or
    /// says something else. What is deleted by mistake does not come back.
    pub fn cleanup_period_days(&self) -> Option<u32> {
        const KEY: &str = "cleanupPeriodDays";
        if !self.problems.is_empty() || self.layers.iter().any(|layer| layer.is_unclear(KEY)) {
            return None;
        }
        let days = self.merged.first(KEY).and_then(|judged| judged.entry.value.as_u64());
        Some(days.and_then(|days| u32::try_from(days).ok()).unwrap_or(KEPT_DAYS))
    }

    /// The setting that forbids flags that bring servers and the like of their own.
    pub fn sideload_disabled(&self) -> Option<Origin> {
        let judged = self.merged.first("disableSideloadFlags")?;
        (judged.entry.value == Value::Bool(true)).then(|| judged.origin.clone())
    }

    /// The text of managed settings for the model, as an instruction file would have it.
    pub fn managed_memory(&self) -> Option<Sourced<String>> {
        self.merged.text("claudeMd").filter(|text| !text.value.trim().is_empty())
    }

    /// Globs over the absolute paths of memory files that are not wanted.
    pub fn memory_excludes(&self) -> Vec<String> {
        self.merged.texts("claudeMdExcludes").into_iter().map(|glob| glob.value).collect()
    }

    pub fn include_git_instructions(&self) -> bool {
        self.merged.bool("includeGitInstructions").unwrap_or(true)
    }

    pub fn auto_memory(&self) -> bool {
        self.merged.bool("autoMemoryEnabled").unwrap_or(true)
    }

    /// The directory of the main agent's memory: an absolute path, or one that begins with `~/`.
    pub fn auto_memory_directory(&self) -> Option<Sourced<String>> {
        let is_path = |text: &str| text.starts_with("~/") || Path::new(text).is_absolute();
        self.merged.text("autoMemoryDirectory").filter(|it| is_path(&it.value))
    }

    /// The settings about the end of a session.
    pub fn memory(&self) -> MemorySettings {
        MemorySettings::new(&self.merged)
    }

    /// Whether keys and the like are removed from what is kept of a session.
    pub fn redact_transcripts(&self) -> bool {
        self.merged.bool("redactTranscripts").unwrap_or(true)
    }

    /// The value of a known key such as `subagents`, from all levels together, as it was written.
    pub fn value(&self, key: &str) -> Option<Value> {
        self.merged.value(key)
    }
}

/// Everything in one file of a project that needs to be accepted.
pub(crate) fn file_power(level: Level, path: &Path) -> Vec<PowerItem> {
    let Ok(Some(text)) = files::read(path, LARGEST_SETTINGS).1 else { return Vec::new() };
    let Ok(document) = document::parse(&text) else { return Vec::new() };
    let mut layer = Layer::new(level, path.to_owned(), PathBuf::new());
    layer.fill(document);
    layer.power_items()
}

/// The item that an answer of the user puts into a file of a project, as it must be accepted. A name is one of a map
/// such as `enabledPlugins`.
pub fn answered_power(path: &Path, key: &str, name: Option<&str>, value: &Value) -> PowerItem {
    layer::power_item(path, None, key, name, value)
}
