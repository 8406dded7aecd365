//! Whole trees of settings files in scratch directories: which count, and what they are together.

mod hooks;
mod plugin_only;
mod properties;
mod reading;
mod subagents;
mod trust;

use std::fs;
use std::path::{Path, PathBuf};

use centurion_protocol::{Effort, Env};
use serde_json::{Value, json};

use super::*;

/// The directory that the program is started in.
const START: &str = "home/repo/app";

/// A scratch machine: a home, and a repository in `home/repo`.
/// Marks the machine of these tests.
struct SettingsTests;

type Machine = crate::testing::Machine<SettingsTests>;

impl Machine {
    fn new() -> Self {
        let machine = Self::with(|_| SettingsTests);
        fs::create_dir_all(machine.path("home/repo/.git")).unwrap();
        fs::create_dir_all(machine.path(START)).unwrap();
        machine
    }

    fn json(&self, relative: &str, value: &Value) -> &Self {
        self.write(relative, value.to_string())
    }

    fn project(&self, value: &Value) -> &Self {
        self.json("home/repo/app/.claude/settings.json", value)
    }

    fn user(&self, value: &Value) -> &Self {
        self.json("home/.claude/settings.json", value)
    }

    /// The mode that the user's own file gives.
    fn user_alone(&self) -> Option<DefaultMode> {
        let alone = Self::new();
        alone.write(
            "home/.claude/settings.json",
            fs::read(self.path("home/.claude/settings.json")).unwrap(),
        );
        alone.load().permissions().default_mode.clone().map(|mode| mode.value)
    }

    fn managed(&self, value: &Value) -> &Self {
        self.json("etc/managed-settings.json", value)
    }

    fn sources(&self) -> SettingsSources {
        SettingsSources {
            managed_dir: Some(self.path("etc")),
            start_dir: self.path(START),
            checkout: Some(self.path("home/repo")),
            home: Some(self.path("home")),
            config_dirs: vec![self.path("home/.claude"), self.path("home/.centurion")],
            ..SettingsSources::default()
        }
    }

    /// Settings of a folder that is not trusted.
    fn load(&self) -> Settings {
        load(self.sources())
    }

    fn trusted(&self) -> Settings {
        Settings::load(self.sources(), RepositoryTrust::Full)
    }

    fn relative(&self, path: &Path) -> String {
        path.strip_prefix(self.path("")).unwrap_or(path).display().to_string()
    }

    /// Problems with paths relative to the machine.
    fn problems(&self, settings: &Settings) -> Vec<String> {
        let root = format!("{}/", self.path("").display().to_string().trim_end_matches('/'));
        settings.problems().map(|problem| problem.to_string().replace(&root, "")).collect()
    }
}

fn texts(rules: &[RuleText]) -> Vec<&str> {
    rules
        .iter()
        .map(|rule| match &rule.form {
            RuleForm::Text(text) => text.as_str(),
            RuleForm::Object(value) => panic!("{value}"),
        })
        .collect()
}

fn load(sources: SettingsSources) -> Settings {
    Settings::load(sources, RepositoryTrust::Untrusted)
}

fn values<T: Clone>(sourced: &[Sourced<T>]) -> Vec<T> {
    sourced.iter().map(|it| it.value.clone()).collect()
}

/// Every file that counts, the strongest first.
const ALL: [&str; 12] = [
    "etc/managed-settings.d/20-b.json",
    "etc/managed-settings.d/10-a.json",
    "etc/managed-settings.json",
    "flag/my.json",
    "home/repo/.centurion/settings.local.json",
    "home/repo/.claude/settings.local.json",
    "home/repo/app/.centurion/settings.local.json",
    "home/repo/app/.claude/settings.local.json",
    "home/repo/app/.centurion/settings.json",
    "home/repo/app/.claude/settings.json",
    "home/.centurion/settings.json",
    "home/.claude/settings.json",
];

#[test]
fn files_count_in_their_order() {
    let machine = Machine::new();
    let files = ALL;
    let rule = |file: &str| json!({"model": file, "permissions": {"deny": [file]}});
    for file in files {
        machine.json(file, &rule(file));
    }
    // None of these count.
    for file in [
        "home/repo/.claude/settings.json",
        "home/.claude/settings.local.json",
        "etc/managed-settings.d/.hidden.json",
        "etc/managed-settings.d/30-c.json.bak",
    ] {
        machine.json(file, &rule(file));
    }
    let flag = FlagSettings::parse("flag/my.json", &machine.path("")).unwrap();
    let sources = SettingsSources { flag: Some(flag), ..machine.sources() };
    let settings = load(sources.clone());
    let found: Vec<String> = settings.files().map(|(_, file)| machine.relative(file)).collect();
    assert_eq!(found, files);
    assert_eq!(texts(&settings.permissions().deny), files);
    let levels: Vec<Level> = settings.files().map(|(level, _)| level).collect();
    assert!(levels.is_sorted());
    // The strongest file decides; when it goes away, the next one decides.
    for file in files {
        assert_eq!(load(sources.clone()).model().unwrap().value, file);
        fs::remove_file(machine.path(file)).unwrap();
    }
    let none = SettingsSources { flag: None, ..sources };
    assert!(load(none).model().is_none());
}

#[test]
fn only_the_wanted_sources_are_read_but_managed_always() {
    let machine = Machine::new();
    machine.managed(&json!({"permissions": {"deny": ["M"]}}));
    machine.user(&json!({"permissions": {"deny": ["U"]}}));
    machine.project(&json!({"permissions": {"deny": ["P"]}}));
    machine.json("home/repo/.claude/settings.local.json", &json!({"permissions": {"deny": ["L"]}}));
    for (choice, denied) in
        [("", vec!["M"]), ("user", vec!["M", "U"]), ("local, project", vec!["M", "L", "P"])]
    {
        let levels = LevelChoice::parse(choice).unwrap();
        let settings = load(SettingsSources { levels, ..machine.sources() });
        assert_eq!(texts(&settings.permissions().deny), denied);
    }
}

#[test]
fn the_home_directory_is_no_project() {
    let machine = Machine::new();
    machine.user(&json!({"permissions": {"allow": ["U"]}}));
    let home = machine.path("home");
    let sources =
        SettingsSources { start_dir: home.clone(), checkout: Some(home), ..machine.sources() };
    let settings = load(sources.clone());
    assert_eq!(texts(&settings.permissions().allow), ["U"]);
    // Moved elsewhere, what is left behind counts for nothing.
    let config_dirs = vec![machine.path("moved")];
    let settings = load(SettingsSources { config_dirs, ..sources });
    assert_eq!(settings.files().count(), 0);
}

#[test]
fn every_kind_merges_in_its_way() {
    let machine = Machine::new();
    machine.user(&json!({
        "model": "weak", "effortLevel": "high", "fallbackModel": ["u1", "u2"],
        "availableModels": ["a", "b"], "claudeMdExcludes": ["x", "y"],
        "env": {"A": "user", "B": "user", "C": "user"},
        "subagents": {"models": {"Explore": "haiku"}, "background": true, "disabled": ["Plan"]},
        "agents": {"one": {"description": "user", "prompt": "p"}, "two": {"prompt": "q"}},
    }));
    machine.project(&json!({
        "model": "strong", "fallbackModel": "p", "availableModels": ["b", "c"],
        "claudeMdExcludes": ["y", "z"], "env": {"A": "", "B": "project"},
        "subagents": {"models": {"Plan": "opus"}, "background": false, "disabled": ["Bash"]},
        "agents": {"one": {"prompt": "project"}}, "alwaysThinkingEnabled": false,
    }));
    let settings = machine.trusted();
    assert_eq!(settings.model().unwrap().value, "strong");
    assert_eq!(settings.effort().unwrap().value, Effort::High);
    assert_eq!(values(&settings.fallback_models()), ["p"]);
    assert_eq!(values(&settings.available_models().unwrap()), ["b", "c", "a"]);
    assert_eq!(settings.memory_excludes(), ["y", "z", "x"]);
    assert_eq!(settings.always_thinking(), Some(false));
    assert_eq!(
        settings.value("subagents"),
        Some(json!({
            "models": {"Plan": "opus", "Explore": "haiku"}, "background": false,
            "disabled": ["Bash", "Plan"],
        }))
    );
    assert_eq!(
        settings.value("agents"),
        Some(json!({"one": {"prompt": "project"}, "two": {"prompt": "q"}}))
    );
    // An empty text takes a variable away, a settings file wins over the shell.
    let env = settings.overlay(&Env::from([("A", "shell"), ("C", "shell"), ("D", "shell")]));
    let mut set: Vec<_> = env.iter().collect();
    set.sort_unstable();
    assert_eq!(set, [("B", "project"), ("C", "user"), ("D", "shell")]);

    machine.managed(&json!({
        "availableModels": [], "modelOverrides": {"b": "managed"}, "claudeMd": "Be kind.",
    }));
    machine.user(&json!({
        "modelOverrides": {"a": "one", "b": "two", "c": " "}, "enforceAvailableModels": true,
        "claudeMd": "Be mine.",
    }));
    let settings = machine.trusted();
    assert_eq!(
        Vec::from_iter(settings.model_overrides()),
        [("a".to_owned(), "one".to_owned()), ("b".to_owned(), "managed".to_owned())]
    );
    assert!(settings.enforces_available_models());
    assert_eq!(settings.managed_memory().unwrap().value, "Be kind.");
    assert_eq!(machine.trusted().available_models(), Some(Vec::new()));
    machine.project(&json!({"fallbackModel": []}));
    assert_eq!(machine.trusted().fallback_models(), []);
}

#[test]
fn nothing_set_means_the_defaults() {
    let settings = Machine::new().load();
    assert_eq!(settings.permissions(), &Permissions::default());
    assert_eq!(settings.sandbox(), &Sandbox::default());
    let sandbox = settings.sandbox();
    assert!(!sandbox.enabled && !sandbox.fail_if_unavailable);
    assert!(sandbox.auto_allow_bash && sandbox.allow_unsandboxed_commands);
    assert!(settings.include_git_instructions() && settings.auto_memory());
    assert!(settings.redact_transcripts());
    assert_eq!(settings.cleanup_period_days(), Some(30));
    assert_eq!((settings.available_models(), settings.fallback_models()), (None, Vec::new()));
    assert_eq!((settings.problems().count(), settings.keys()), (0, Vec::new()));
}

#[test]
fn the_sandbox_is_read_in_full() {
    let machine = Machine::new();
    machine.user(&json!({"sandbox": {
        "enabled": true, "failIfUnavailable": true, "autoAllowBashIfSandboxed": false,
        "excludedCommands": ["docker"], "allowUnsandboxedCommands": false,
        "filesystem": {"allowWrite": ["/w"], "denyWrite": ["/dw"], "denyRead": ["/dr"],
                       "allowRead": ["/r"], "disabled": true},
        "network": {"allowedDomains": ["a.org"], "deniedDomains": ["b.org"], "strictAllowlist": true,
                    "allowUnixSockets": ["/s"], "allowAllUnixSockets": true,
                    "allowLocalBinding": true, "httpProxyPort": 8080, "socksProxyPort": 1080},
        "credentials": {"x": 1},
    }}));
    machine.project(&json!({"sandbox": {
        "enabled": false, "network": {"allowedDomains": ["c.org"], "httpProxyPort": 70000}
    }}));
    let settings = machine.trusted();
    let sandbox = settings.sandbox();
    assert!(!sandbox.enabled && sandbox.fail_if_unavailable && !sandbox.auto_allow_bash);
    assert!(!sandbox.allow_unsandboxed_commands);
    assert_eq!(values(&sandbox.excluded_commands), ["docker"]);
    let files = &sandbox.filesystem;
    assert_eq!(values(&files.allow_write), ["/w"]);
    assert_eq!(values(&files.deny_write), ["/dw"]);
    assert_eq!(values(&files.deny_read), ["/dr"]);
    assert_eq!(values(&files.allow_read), ["/r"]);
    assert!(files.disabled);
    let network = &sandbox.network;
    assert_eq!(values(&network.allowed_domains), ["c.org", "a.org"]);
    assert_eq!(values(&network.denied_domains), ["b.org"]);
    assert_eq!(values(&network.allow_unix_sockets), ["/s"]);
    assert!(network.strict_allowlist && network.allow_all_unix_sockets);
    assert!(network.allow_local_binding);
    assert_eq!((network.http_proxy_port, network.socks_proxy_port), (Some(8080), Some(1080)));
    assert_eq!(sandbox.credentials, Some(json!({"x": 1})));
}

#[test]
fn a_repository_may_require_the_sandbox_of_worktrees_but_needs_trust_to_free_it() {
    let require = |user: bool, project: bool| {
        let machine = Machine::new();
        machine.user(&json!({"worktree": {"requireSandbox": user}}));
        machine.project(&json!({"worktree": {"requireSandbox": project}}));
        let requires = |settings: &Settings| settings.worktrees().requires_sandbox;
        (requires(&machine.load()), requires(&machine.trusted()))
    };
    assert_eq!(Machine::new().load().worktrees(), WorktreeSettings::default());
    assert_eq!(require(false, true), (true, true));
    assert_eq!(require(true, false), (true, false));
}

#[test]
fn worktrees_are_made_as_the_settings_say() {
    // D-18, D-32
    let machine = Machine::new();
    let usual = WorktreeSettings::default();
    assert_eq!(usual.symlink_directories, ["node_modules"]);
    machine.user(&json!({"worktree": {
        "baseRef": "fresh", "symlinkDirectories": [".venv", "node_modules"], "sparsePaths": ["src"],
    }}));
    let said = machine.load().worktrees();
    assert!(said.is_fresh);
    assert_eq!(said.symlink_directories, [".venv", "node_modules"]);
    assert_eq!(said.sparse_paths, ["src"]);
    machine.user(&json!({"worktree": {"baseRef": "head"}}));
    assert_eq!(machine.load().worktrees(), usual);
}

#[test]
fn a_rule_knows_where_it_hangs() {
    let machine = Machine::new();
    let rules = json!({"permissions": {"deny": ["Read(/x)"]}});
    machine.managed(&rules).user(&rules).project(&rules).json("flag/f.json", &rules);
    machine.json("home/repo/.claude/settings.local.json", &rules);
    let roots = |flag: &str| {
        let flag = Some(FlagSettings::parse(flag, &machine.path("")).unwrap());
        let settings = load(SettingsSources { flag, ..machine.sources() });
        let denies = settings.permissions().deny.iter();
        denies
            .map(|rule| (rule.origin.level.to_string(), machine.relative(&rule.origin.root)))
            .collect::<Vec<_>>()
    };
    let named = |level: &str, root: &str| (level.to_owned(), root.to_owned());
    let expected = |flag: &str| {
        vec![
            named("managed", "etc"),
            named("flag", flag),
            named("local", START),
            named("project", START),
            named("user", "home/.claude"),
        ]
    };
    assert_eq!(roots("flag/f.json"), expected("flag"));
    assert_eq!(roots(&rules.to_string()), expected(START));
}

#[test]
fn directories_are_absolute() {
    let machine = Machine::new();
    let directories = json!(["../lib", "~/docs", "~", "/abs", "~other/x", "../lib"]);
    machine.user(&json!({"permissions": {"additionalDirectories": directories}}));
    let settings = machine.load();
    let added = values(&settings.permissions().additional_directories);
    let start = machine.path(START);
    assert_eq!(
        added,
        [
            start.join("../lib"),
            machine.path("home/docs"),
            machine.path("home"),
            PathBuf::from("/abs"),
            start.join("~other/x"),
        ]
    );
}

#[test]
fn auto_mode_and_its_like_are_not_a_projects_to_set() {
    let machine = Machine::new();
    machine.user(&json!({"permissions": {"defaultMode": "plan"}}));
    let auto = json!({"permissions": {"defaultMode": "auto"}, "autoMode": {"allow": []}});
    machine.project(&auto).json("home/repo/.claude/settings.local.json", &auto);
    let settings = machine.trusted();
    let mode = |settings: &Settings| {
        settings.permissions().default_mode.as_ref().map(|mode| mode.value.name())
    };
    assert_eq!(mode(&settings), Some("plan"));
    let off =
        settings.keys().into_iter().filter(|key| key.state == KeyState::Off(Off::NotInProject));
    assert_eq!(off.count(), 4);
    machine.user(&auto);
    assert_eq!(mode(&machine.trusted()), Some("auto"));
    machine.user(&json!({"permissions": {"defaultMode": "manual"}}));
    assert_eq!(mode(&machine.trusted()), Some("default"));
}

#[test]
fn the_administrator_can_keep_modes_and_rules_away() {
    let machine = Machine::new();
    let rules = |name: &str| {
        json!({"permissions": {"allow": [name], "ask": [name], "deny": [name],
               "disableBypassPermissionsMode": "disable"},
               "disableAutoMode": "disable", "allowManagedPermissionRulesOnly": true})
    };
    machine.user(&rules("U"));
    let settings = machine.load();
    // Only managed settings may say so.
    assert_eq!(texts(&settings.permissions().allow), ["U"]);
    assert!(settings.permissions().managed_rules_only.is_none());
    assert_eq!(settings.permissions().bypass_disabled.as_ref().unwrap().level, Level::User);
    assert!(settings.permissions().auto_disabled.is_some());
    machine.managed(&rules("M"));
    let settings = machine.load();
    let permissions = settings.permissions();
    assert_eq!(texts(&permissions.allow), ["M"]);
    assert!(permissions.managed_rules_only.is_some());
    // A rule that takes away still counts.
    assert_eq!(
        (texts(&permissions.ask), texts(&permissions.deny)),
        (vec!["M", "U"], vec!["M", "U"])
    );
}
