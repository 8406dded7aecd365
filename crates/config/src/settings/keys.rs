//! The keys of a settings file: what each may hold, who may set it, and whether it does anything yet.
//!
//! A key is written with dots, `sandbox.network.allowedDomains`. This table is the only place that
//! knows the keys; what they mean together is in `merge`.

use serde_json::Value;

use super::skills::are_overrides;

/// The kind of value of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueKind {
    Bool,
    Text,
    Choice(&'static [&'static str]),
    /// A whole number within bounds.
    Integer(u64, u64),
    /// A number from zero to one.
    Fraction,
    /// A number that is not below zero, such as one of dollars.
    Number,
    Texts(Join),
    /// Permission rules: texts, or objects with a `tool`.
    Rules,
    /// One of them.
    Rule,
    TextMap,
    /// Environment variables.
    Variables,
    /// The value of one.
    Variable,
    BoolMap,
    /// Names and what they stand for, each taken whole from one file.
    Map,
    /// An object whose parts may come from several files.
    Object,
    List,
    /// True for all of these words, false for none, or a list of some.
    Switches(&'static [&'static str]),
    Any,
}

/// The way in which lists of several levels are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Join {
    /// All of them, one after the other.
    Concatenate,
    /// All of them, and that one was written counts even if it is empty: it limits something.
    Limit,
    /// The strongest level's alone.
    Strongest,
    /// As managed settings say; all of them where those say nothing.
    ManagedAlone,
}

/// The levels that may set a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AllowedLevels {
    Anywhere,
    Managed,
    /// Everywhere but in files of a project.
    Personal,
}

/// The trust that a repository needs before a key in its files counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gate {
    Open,
    /// Trust in this folder or in one above it.
    Parent,
    /// Trust in this very folder.
    Folder,
}

#[derive(Debug)]
pub(super) struct Key {
    pub(super) path: &'static str,
    pub(super) kind: ValueKind,
    /// Tells whether this program does something with a value.
    works: fn(&Value) -> bool,
    /// The reason why it does nothing with the others, if there is more to say than that.
    reason: Option<&'static str>,
    pub(super) place: AllowedLevels,
    gate: Gate,
    /// Tells whether a value needs the gate.
    widens: fn(&Value) -> bool,
    /// Whether it is a number that holds something down: without trust, a repository may lower what
    /// others wrote and not raise it.
    is_limit: bool,
    /// Whether the strictest of several values counts, at whatever level: the last one of its choice.
    takes_strictest: bool,
}

impl Key {
    /// The trust that a repository needs to set the key to this value.
    pub(super) fn gate(&self, value: &Value) -> Gate {
        if (self.widens)(value) { self.gate } else { Gate::Open }
    }

    /// Whether this program does anything with the value.
    pub(super) fn is_used(&self, value: &Value) -> bool {
        (self.works)(value)
    }

    pub(super) fn is_limit(&self) -> bool {
        self.is_limit
    }

    /// The strictness of a value, for keys of which the strictest value counts.
    pub(super) fn strictness(&self, value: &Value) -> Option<usize> {
        match self.kind {
            ValueKind::Choice(words) if self.takes_strictest => {
                words.iter().position(|word| value == word)
            }
            _ => None,
        }
    }

    /// The reason why a value is not used.
    pub(super) fn reason(&self) -> Option<&'static str> {
        self.reason
    }

    const fn works(self) -> Self {
        Self { works: |_| true, ..self }
    }

    const fn works_if(self, works: fn(&Value) -> bool) -> Self {
        Self { works, ..self }
    }

    const fn since(self, reason: &'static str) -> Self {
        Self { reason: Some(reason), ..self }
    }

    const fn managed(self) -> Self {
        Self { place: AllowedLevels::Managed, ..self }
    }

    const fn personal(self) -> Self {
        Self { place: AllowedLevels::Personal, ..self }
    }

    const fn parent(self) -> Self {
        Self { gate: Gate::Parent, ..self }
    }

    const fn folder(self) -> Self {
        Self { gate: Gate::Folder, ..self }
    }

    const fn if_it(self, widens: fn(&Value) -> bool) -> Self {
        Self { widens, ..self }
    }

    const fn limit(self) -> Self {
        Self { is_limit: true, ..self }
    }

    const fn strictest(self) -> Self {
        Self { takes_strictest: true, ..self }
    }
}

const fn key(path: &'static str, kind: ValueKind) -> Key {
    Key {
        path,
        kind,
        works: |_| false,
        reason: None,
        place: AllowedLevels::Anywhere,
        gate: Gate::Open,
        widens: |_| true,
        is_limit: false,
        takes_strictest: false,
    }
}

const TEXTS: ValueKind = ValueKind::Texts(Join::Concatenate);
const DISABLE: ValueKind = ValueKind::Choice(&["disable"]);

pub(super) const MODES: &[&str] =
    &["default", "manual", "acceptEdits", "plan", "auto", "dontAsk", "bypassPermissions"];
pub(super) const EFFORTS: &[&str] = &["low", "medium", "high", "xhigh"];

/// The kinds of things that a policy can leave to plugins.
pub(super) const SURFACES: &[&str] = &["skills", "agents", "hooks", "mcp"];

/// Any other mode may let through what the mode of the user's own settings would not.
fn is_not_plan(value: &Value) -> bool {
    value != "plan"
}

/// `provider:model` sends the conversation elsewhere, or lets a file speak for the model.
fn names_a_provider(value: &Value) -> bool {
    let names = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    names.iter().filter_map(Value::as_str).any(|name| name.contains(':'))
}

/// By default, how deep agents may start others, and how many may run at once.
pub(super) const DEPTH: u32 = 3;
pub(super) const RUNNING: u32 = 20;

/// Higher numbers are not meant: they are slips.
const MOST_AGENTS: u64 = 1_000_000;
const MOST_TOKENS: u64 = 1_000_000_000_000;
const LONGEST_WAIT: u64 = 7 * 24 * 3600;

pub(super) const CHILD_MODES: &[&str] = &["inherit", "acceptEdits"];
pub(super) const FORKS: &[&str] = &["off", "interactive", "always"];
pub(super) const SESSION_MODES: &[&str] = &["normal", "coordinator", "assistant", "proactive"];

fn is_on(value: &Value) -> bool {
    value == &Value::Bool(true)
}

fn is_off(value: &Value) -> bool {
    value == &Value::Bool(false)
}

fn is_full_path(value: &Value) -> bool {
    value.as_str().is_some_and(|path| path.starts_with("~/") || path.starts_with('/'))
}

/// Every key that is known.
pub(super) static KEYS: &[Key] = &[
    key("$schema", ValueKind::Text).works(),
    // Rules about what may run.
    key("permissions.allow", ValueKind::Rules).works().folder(),
    key("permissions.ask", ValueKind::Rules).works(),
    key("permissions.deny", ValueKind::Rules).works(),
    key("permissions.defaultMode", ValueKind::Choice(MODES)).works().folder().if_it(is_not_plan),
    key("permissions.additionalDirectories", TEXTS).works().folder(),
    key("permissions.disableBypassPermissionsMode", DISABLE).works(),
    key("permissions.disableAutoMode", DISABLE).works(),
    key("disableAutoMode", DISABLE).works(),
    key("allowManagedPermissionRulesOnly", ValueKind::Bool).works().managed(),
    key("autoMode", ValueKind::Object).personal(),
    key("useAutoModeDuringPlan", ValueKind::Bool),
    // Limits of one command.
    key("commandLimits.memoryMb", ValueKind::Integer(16, 16_777_216)).works().folder(),
    key("commandLimits.processes", ValueKind::Integer(1, 4_194_304)).works().folder(),
    key("commandLimits.fileMb", ValueKind::Integer(1, 16_777_216)).works().folder(),
    // The sandbox. A repository may make it tighter without being trusted.
    key("sandbox.enabled", ValueKind::Bool).works().folder().if_it(is_off),
    key("sandbox.failIfUnavailable", ValueKind::Bool).works().folder().if_it(is_off),
    key("sandbox.autoAllowBashIfSandboxed", ValueKind::Bool).works().folder().if_it(is_on),
    key("sandbox.excludedCommands", TEXTS).works().folder(),
    key("sandbox.allowUnsandboxedCommands", ValueKind::Bool).works().folder().if_it(is_on),
    key("sandbox.filesystem.allowWrite", TEXTS).works().folder(),
    key("sandbox.filesystem.denyWrite", TEXTS).works(),
    key("sandbox.filesystem.denyRead", TEXTS).works(),
    key("sandbox.filesystem.allowRead", TEXTS).works().folder(),
    key("sandbox.filesystem.disabled", ValueKind::Bool).works().folder().if_it(is_on),
    key("sandbox.network.allowedDomains", TEXTS).works().folder(),
    key("sandbox.network.deniedDomains", TEXTS).works(),
    key("sandbox.network.strictAllowlist", ValueKind::Bool)
        .works_if(is_on)
        .since("no question is asked about a host: one that is not allowed is refused")
        .folder()
        .if_it(is_off),
    key("sandbox.network.allowUnixSockets", TEXTS).works().folder(),
    key("sandbox.network.allowAllUnixSockets", ValueKind::Bool).works().folder().if_it(is_on),
    key("sandbox.network.allowLocalBinding", ValueKind::Bool).works().folder().if_it(is_on),
    key("sandbox.network.httpProxyPort", ValueKind::Integer(1, 65_535)).works().folder(),
    key("sandbox.network.socksProxyPort", ValueKind::Integer(1, 65_535)).works().folder(),
    key("sandbox.credentials", ValueKind::Object)
        .since("what it may hold is not settled; filesystem.denyRead keeps files from commands")
        .folder(),
    // Models.
    key("model", ValueKind::Text).works().folder().if_it(names_a_provider),
    key("fallbackModel", ValueKind::Texts(Join::Strongest))
        .works()
        .folder()
        .if_it(names_a_provider),
    // A list adds to the user's own, and its first entry may become the model.
    key("availableModels", ValueKind::Texts(Join::ManagedAlone)).works().folder(),
    key("enforceAvailableModels", ValueKind::Bool).works().folder(),
    key("modelOverrides", ValueKind::TextMap).works().folder(),
    key("effortLevel", ValueKind::Choice(EFFORTS)).works(),
    key("ultracode", ValueKind::Any),
    key("alwaysThinkingEnabled", ValueKind::Bool).works(),
    key("fastMode", ValueKind::Bool),
    key("advisorModel", ValueKind::Text),
    // Agents.
    key("agent", ValueKind::Text).works().parent(),
    key("agents", ValueKind::Map).folder(),
    key("subagents.models", ValueKind::TextMap).works().folder(),
    key("subagents.permissionMode", ValueKind::Choice(CHILD_MODES))
        .works()
        .folder()
        .if_it(|value| value != "inherit"),
    key("subagents.background", ValueKind::Bool).works().folder().if_it(is_on),
    key("subagents.fork", ValueKind::Choice(FORKS)).works().folder().if_it(|value| value != "off"),
    key("subagents.teams", ValueKind::Bool).works().folder().if_it(is_on),
    key("subagents.escStopsBackground", ValueKind::Bool).works().folder().if_it(is_off),
    key("subagents.disabled", TEXTS).works(),
    key("subagents.memorySnapshot", ValueKind::Bool).works().folder().if_it(is_on),
    key("subagents.summaries", ValueKind::Bool).works().folder().if_it(is_on),
    key("subagents.mode", ValueKind::Choice(SESSION_MODES))
        .works()
        .folder()
        .if_it(|value| value != "normal"),
    key("subagents.autoBackgroundSeconds", ValueKind::Integer(0, LONGEST_WAIT)).works(),
    key("subagents.stallSeconds", ValueKind::Integer(0, LONGEST_WAIT)).works(),
    key("subagents.limits.depth", ValueKind::Integer(0, 100))
        .works()
        .folder()
        .if_it(|value| value.as_u64() > Some(DEPTH.into()))
        .limit(),
    key("subagents.limits.running", ValueKind::Integer(0, MOST_AGENTS))
        .works()
        .folder()
        .if_it(|value| value.as_u64() > Some(RUNNING.into()))
        .limit(),
    // Without these there is no limit: whatever a repository says, it lowers.
    key("subagents.limits.spawns", ValueKind::Integer(0, MOST_AGENTS)).works().limit(),
    key("subagents.limits.spawnsPerMinute", ValueKind::Integer(0, MOST_AGENTS)).works().limit(),
    key("subagents.limits.budgetUsd", ValueKind::Number).works().limit(),
    key("subagents.limits.tokens", ValueKind::Integer(0, MOST_TOKENS)).works().limit(),
    key("subagents.limits.turns", ValueKind::Integer(0, MOST_AGENTS)).works().limit(),
    key("teammateMode", ValueKind::Choice(&["in-process", "process", "auto", "tmux", "iterm2"]))
        .works_if(|value| value != "iterm2")
        .since("iTerm2 is not driven: members stay in the process of their lead")
        .folder(),
    key("worktree.baseRef", ValueKind::Choice(&["fresh", "head"])).works(),
    key("worktree.symlinkDirectories", TEXTS).works(),
    key("worktree.sparsePaths", TEXTS).works(),
    key("worktree.bgIsolation", ValueKind::Choice(&["worktree", "none"])),
    key("worktree.requireSandbox", ValueKind::Bool).works().folder().if_it(is_off),
    key("crossSessionInbound", ValueKind::Choice(&["accept", "hold", "refuse"]))
        .works()
        .folder()
        .if_it(|value| value != "refuse")
        .strictest(),
    key("isolatePeerMachines", ValueKind::Bool),
    key("disableAgentView", ValueKind::Bool),
    key("processWrapper", ValueKind::Any).parent(),
    // Hooks.
    key("hooks", ValueKind::Object).works().parent(),
    key("disableAllHooks", ValueKind::Bool).works().parent().if_it(is_on),
    key("allowManagedHooksOnly", ValueKind::Bool).works().managed(),
    key("allowedHttpHookUrls", ValueKind::Texts(Join::Limit)).works().parent(),
    key("httpHookAllowedEnvVars", ValueKind::Texts(Join::Limit)).works().parent(),
    // Plugins.
    key("enabledPlugins", ValueKind::BoolMap).works().folder(),
    key("extraKnownMarketplaces", ValueKind::Map).works().folder(),
    key("additionalMarketplaces", ValueKind::Map).works().folder(),
    key("strictKnownMarketplaces", ValueKind::List).works().managed(),
    key("allowedMarketplaces", ValueKind::List).works().managed(),
    key("blockedMarketplaces", ValueKind::List).works().managed(),
    key("pluginConfigs", ValueKind::Object).works().personal(),
    key("strictPluginOnlyCustomization", ValueKind::Switches(SURFACES)).works().managed(),
    key("disableSideloadFlags", ValueKind::Bool).works().managed(),
    // MCP servers.
    key("enableAllProjectMcpServers", ValueKind::Bool).works().folder().if_it(is_on),
    key("enabledMcpjsonServers", TEXTS).works().folder(),
    key("disabledMcpjsonServers", TEXTS).works(),
    key("allowedMcpServers", ValueKind::List).works().folder(),
    key("deniedMcpServers", ValueKind::List).works(),
    key("allowManagedMcpServersOnly", ValueKind::Bool).works().managed(),
    key("disableClaudeAiConnectors", ValueKind::Bool),
    // Memory and sessions.
    key("env", ValueKind::Variables).works().parent(),
    key("cleanupPeriodDays", ValueKind::Integer(1, 36_500)).works().folder(),
    key("redactTranscripts", ValueKind::Bool).works().folder().if_it(is_off),
    // Without trust, a repository could leave out what the user wrote for all agents.
    key("claudeMdExcludes", TEXTS).works().folder(),
    key("claudeMd", ValueKind::Text).works().managed(),
    key("includeGitInstructions", ValueKind::Bool).works(),
    key("autoMemoryEnabled", ValueKind::Bool).works().folder().if_it(is_on),
    key("autoMemoryDirectory", ValueKind::Text)
        .works_if(is_full_path)
        .since("a directory is named by an absolute path or one that begins with ~/")
        .folder(),
    // They send the conversation once more, and write where the user's notes are.
    key("memory.session.enabled", ValueKind::Bool).works().folder().if_it(is_on),
    key("memory.session.model", ValueKind::Text).works().folder(),
    key("memory.session.maxBudgetUsd", ValueKind::Number).works().folder(),
    key("memory.extraction.enabled", ValueKind::Bool).works().folder().if_it(is_on),
    key("memory.extraction.model", ValueKind::Text).works().folder(),
    key("memory.extraction.maxBudgetUsd", ValueKind::Number).works().folder(),
    key("memory.consolidation.enabled", ValueKind::Bool).works().folder().if_it(is_on),
    key("memory.consolidation.model", ValueKind::Text).works().folder(),
    key("memory.consolidation.maxBudgetUsd", ValueKind::Number).works().folder(),
    key("autoCompactEnabled", ValueKind::Bool).works(),
    key("autoCompactWindow", ValueKind::Integer(100_000, 1_000_000)).works(),
    key("fileCheckpointingEnabled", ValueKind::Bool).works(),
    key("plansDirectory", ValueKind::Text).folder(),
    // Skills.
    key("skillListingBudgetFraction", ValueKind::Fraction).works(),
    key("skillListingMaxDescChars", ValueKind::Integer(1, 1_000_000)).works(),
    key("skillOverrides", ValueKind::Object)
        .works_if(are_overrides)
        .since("a skill is on, name-only, user-invocable-only or off")
        .folder(),
    key("disableBundledSkills", ValueKind::Bool).works(),
    key("disableSkillShellExecution", ValueKind::Bool).works().folder().if_it(is_off),
    key("syncClaudeAiSkills", ValueKind::Bool),
    // Settings of what a person sees.
    key("statusLine", ValueKind::Object).works().parent(),
    key("subagentStatusLine", ValueKind::Object).works().parent(),
    key("fileSuggestion", ValueKind::Object).works().parent(),
    // A repository has no say in what a person's keys mean and how things look.
    key("theme", ValueKind::Choice(THEMES)).works().personal(),
    key("tui", ValueKind::Choice(&["default", "fullscreen", "inline"])).works().personal(),
    key("editorMode", ValueKind::Choice(&["normal", "vim"])).works().personal(),
    key("prefersReducedMotion", ValueKind::Bool).works().personal(),
    key("reduceMotion", ValueKind::Bool).works().personal(),
    // A style may leave out rules of the prompt.
    key("outputStyle", ValueKind::Text).works().folder(),
    key("language", ValueKind::Text),
    key("companyAnnouncements", TEXTS),
    key("askUserQuestionTimeout", ValueKind::Any),
    key("dialogExpiry", ValueKind::Any),
    key("remoteControlAtStartup", ValueKind::Bool),
    // The rest.
    key("apiKeyHelper", ValueKind::Text).works().parent(),
    key("attribution", ValueKind::Object),
];

/// The themes of the terminal.
const THEMES: &[&str] = &[
    "auto",
    "dark",
    "light",
    "dark-ansi",
    "light-ansi",
    "dark-daltonized",
    "light-daltonized",
    "no-colour",
];

pub(super) fn find(path: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.path == path)
}

/// Whether keys are known below this one.
pub(super) fn is_group(path: &str) -> bool {
    KEYS.iter().any(|key| key.path.strip_prefix(path).is_some_and(|rest| rest.starts_with('.')))
}

/// The known key that was probably meant by an unknown one.
pub(super) fn nearest(unknown: &str) -> Option<&'static str> {
    let last = |path: &str| path.rsplit('.').next().unwrap_or_default().to_lowercase();
    let name = last(unknown);
    let same_name = KEYS.iter().find(|key| last(key.path) == name);
    let closest = || {
        let distances = KEYS.iter().map(|key| (distance(unknown, key.path), key));
        let (distance, key) = distances.min_by_key(|(distance, _)| *distance)?;
        (distance <= 1 + unknown.chars().count() / 5).then_some(key)
    };
    // Keys stand in objects, whose names are no keys themselves.
    let object = || {
        let names = KEYS.iter().filter_map(|key| key.path.split_once('.')).map(|(name, _)| name);
        names
            .map(|name| (distance(unknown, name), name))
            .min()
            .filter(|(distance, _)| *distance <= 2)
    };
    let key = same_name.map(|key| key.path).or_else(|| object().map(|(_, name)| name));
    key.or_else(|| closest().map(|key| key.path))
}

/// The one of these words that was probably meant by an unknown one.
pub(crate) fn closest<'w>(unknown: &str, words: &[&'w str]) -> Option<&'w str> {
    let distances = words.iter().map(|word| (distance(unknown, word), *word));
    let (distance, word) = distances.min_by_key(|(distance, _)| *distance)?;
    (distance <= most_distance(unknown)).then_some(word)
}

/// The places of the words that may have been meant by an unknown one, the nearest first: those that differ in a few
/// letters, and those that begin with it.
pub fn closest_words(unknown: &str, words: &[&str]) -> Vec<usize> {
    let is_beginning = |word: &str| unknown.chars().count() > 2 && word.starts_with(unknown);
    let mut near: Vec<(usize, usize)> = words
        .iter()
        .enumerate()
        .map(|(place, word)| (distance(unknown, word), place, *word))
        .filter(|(distance, _, word)| *distance <= most_distance(unknown) || is_beginning(word))
        .map(|(distance, place, _)| (distance, place))
        .collect();
    near.sort_unstable();
    near.into_iter().map(|(_, place)| place).collect()
}

/// The most wrong letters of a word.
fn most_distance(word: &str) -> usize {
    1 + word.chars().count() / 4
}

/// The number of letters that must be added, dropped or changed to make one word of the other.
fn distance(one: &str, other: &str) -> usize {
    // Longer than any key: the table would only take time.
    if one.len() > 100 {
        return usize::MAX;
    }
    strsim::levenshtein(&one.to_lowercase(), &other.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_either_a_value_or_a_group() {
        for (index, key) in KEYS.iter().enumerate() {
            assert!(!is_group(key.path), "{}", key.path);
            assert!(
                KEYS.iter().skip(index + 1).all(|other| other.path != key.path),
                "{}",
                key.path
            );
        }
        assert!(is_group("sandbox") && is_group("sandbox.network") && !is_group("sand"));
    }

    #[test]
    fn what_a_repository_may_set_without_trust_is_listed_here_and_loosens_nothing() {
        // Rules that take, lists that take, limits (which it can only lower), and how the program speaks and thinks.
        let harmless = [
            "$schema",
            "permissions.ask",
            "permissions.deny",
            "permissions.disableBypassPermissionsMode",
            "permissions.disableAutoMode",
            "disableAutoMode",
            "sandbox.filesystem.denyWrite",
            "sandbox.filesystem.denyRead",
            "sandbox.network.deniedDomains",
            "effortLevel",
            "alwaysThinkingEnabled",
            "subagents.disabled",
            "subagents.autoBackgroundSeconds",
            "subagents.stallSeconds",
            "subagents.limits.spawns",
            "subagents.limits.spawnsPerMinute",
            "subagents.limits.budgetUsd",
            "subagents.limits.tokens",
            "subagents.limits.turns",
            // What of the repository's own an agent apart finds in its worktree.
            "worktree.baseRef",
            "worktree.symlinkDirectories",
            "worktree.sparsePaths",
            "disabledMcpjsonServers",
            "deniedMcpServers",
            "includeGitInstructions",
            // A conversation that is made shorter seldom or often is still the user's.
            "autoCompactEnabled",
            "autoCompactWindow",
            // Copies go to the user's own directory.
            "fileCheckpointingEnabled",
            // More or less is told of skills, whose texts are the user's or say for themselves what they are.
            "skillListingBudgetFraction",
            "skillListingMaxDescChars",
            "disableBundledSkills",
        ];
        let is_open = |key: &&Key| {
            let works = key.is_used(&Value::Bool(true)) || key.is_used(&Value::Null);
            works && key.place == AllowedLevels::Anywhere && key.gate == Gate::Open
        };
        let open: Vec<&str> = KEYS.iter().filter(is_open).map(|key| key.path).collect();
        assert_eq!(open, harmless);
    }

    #[test]
    fn a_slip_finds_the_key_that_was_meant() {
        for (unknown, meant) in [
            ("allow", Some("permissions.allow")),
            ("permissions.Deny", Some("permissions.deny")),
            ("modle", Some("model")),
            ("cleanupPeriodDay", Some("cleanupPeriodDays")),
            ("sandbox.allowedDomains", Some("sandbox.network.allowedDomains")),
            ("somethingElse", None),
            ("", None),
        ] {
            assert_eq!(nearest(unknown), meant, "{unknown}");
        }
        assert_eq!((distance("", "abc"), distance("kitten", "sitting")), (3, 3));
    }
}
