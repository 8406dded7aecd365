//! What this run may do: rules of flags and settings, mode and directories as one policy.

use std::path::PathBuf;

use anyhow::{Context, bail};
use centurion_config::settings::{DefaultMode, Level, Origin, RuleForm, RuleText, Settings};
use centurion_engine::{Bypass, Change, RuleSource, Rules};
use centurion_hooks::HookRules;
use centurion_permissions::{Mode, Policy, Rule, RuleKind, RuleLevel, RuleOrigin, RuleSet};
use centurion_protocol::Env;

use crate::args::RunArgs;
use crate::extensions;
use crate::output::note;
use crate::surroundings::Surroundings;

/// The policy of the main agent.
pub(crate) fn policy(
    args: &RunArgs,
    surroundings: &Surroundings,
    settings: &Settings,
    repository: Option<PathBuf>,
    added: &[PathBuf],
) -> anyhow::Result<Policy> {
    let mode = mode(args, settings)?;
    if let (Mode::BypassPermissions, Bypass::Refused(reason)) =
        (mode, bypass(mode, settings, &surroundings.env))
    {
        bail!("{reason}");
    }
    let flags = FlagRules::parse(args)?;
    flags.warn();
    let Rules { allow, ask, deny, directories } = rules(settings, &flags, note_rule);
    let cwd = surroundings.cwd.clone();
    let home =
        surroundings.home.as_ref().map(|home| home.canonicalize().unwrap_or_else(|_| home.clone()));
    Ok(Policy {
        mode,
        allow,
        ask,
        deny,
        project_root: cwd.clone(),
        home,
        directories: std::iter::once(cwd.clone())
            .chain(added.iter().cloned())
            .chain(directories)
            .collect(),
        repository,
        cwd,
        ..Policy::default()
    })
}

/// The mode: the flag's, or else what the settings say.
pub(crate) fn mode(args: &RunArgs, settings: &Settings) -> anyhow::Result<Mode> {
    let chosen = args.mode().or_else(|| {
        settings.permissions().default_mode.as_ref().map(|mode| match mode.value {
            DefaultMode::Default => Mode::Default,
            DefaultMode::AcceptEdits => Mode::AcceptEdits,
            DefaultMode::Plan => Mode::Plan,
            DefaultMode::Auto => Mode::Auto,
            DefaultMode::DontAsk => Mode::DontAsk,
            DefaultMode::BypassPermissions => Mode::BypassPermissions,
        })
    });
    let mode = chosen.unwrap_or_default();
    if let (Mode::Auto, Some(origin)) = (mode, &settings.permissions().auto_disabled) {
        bail!("auto mode is switched off by {origin}");
    }
    Ok(mode)
}

/// Whether permissions may be skipped in a run that starts in this mode.
pub(crate) fn bypass(mode: Mode, settings: &Settings, env: &Env) -> Bypass {
    if settings.permissions().bypass_disabled.is_some() {
        return Bypass::Refused("the settings do not let permissions be skipped");
    }
    if rustix::process::geteuid().is_root() && !env.is_on("IS_SANDBOX") {
        return Bypass::Refused(
            "permissions cannot be skipped as root: every command would run with full rights\n\
             help: run as another user, or set IS_SANDBOX=1 inside a container that may be lost",
        );
    }
    match mode {
        Mode::BypassPermissions => Bypass::Enabled,
        _ => Bypass::Refused("this run was not started with leave to skip permissions"),
    }
}

/// The rules of the command line.
#[derive(Clone)]
struct FlagRules {
    allow: Vec<Rule>,
    deny: Vec<Rule>,
}

impl FlagRules {
    fn parse(args: &RunArgs) -> anyhow::Result<Self> {
        let parse = |texts: &[String], flag: &str| -> anyhow::Result<Vec<Rule>> {
            let lists = texts.iter().map(|text| {
                Rule::parse_list(text, &RuleOrigin::Flag)
                    .with_context(|| format!("{flag} `{text}`"))
            });
            Ok(lists.collect::<anyhow::Result<Vec<_>>>()?.into_iter().flatten().collect())
        };
        let permissions = &args.permissions;
        Ok(Self {
            allow: parse(&permissions.allowed_tools, "--allowedTools")?,
            deny: parse(&permissions.disallowed_tools, "--disallowedTools")?,
        })
    }

    fn warn(&self) {
        for rule in &self.allow {
            note_rule("--allowedTools", RuleKind::Allow, rule);
        }
        for rule in &self.deny {
            note_rule("--disallowedTools", RuleKind::Deny, rule);
        }
    }
}

/// A rule that does not do what it seems to say is told, since its author expects something of it.
fn note_rule(place: &str, kind: RuleKind, rule: &Rule) {
    if let Some(warning) = rule.unknown_tool(kind).or_else(|| rule.warning(kind)) {
        note(&format!("warning: {place}: {warning}"));
    }
}

/// The rules of settings and flags together.
fn rules(settings: &Settings, flags: &FlagRules, warn: impl Fn(&str, RuleKind, &Rule)) -> Rules {
    let permissions = settings.permissions();
    let read = |texts: &[RuleText], kind: RuleKind| -> Vec<Rule> {
        texts.iter().filter_map(|text| read_rule(text, kind, &warn)).collect()
    };
    // Managed settings may say that nobody else lets anything through.
    let flags_allow = permissions.managed_rules_only.is_none();
    let allow = read(&permissions.allow, RuleKind::Allow)
        .into_iter()
        .chain(flags.allow.iter().filter(|_| flags_allow).cloned());
    let deny =
        read(&permissions.deny, RuleKind::Deny).into_iter().chain(flags.deny.iter().cloned());
    let directories = permissions.additional_directories.iter();
    Rules {
        allow: allow.collect(),
        ask: RuleSet::from(read(&permissions.ask, RuleKind::Ask)),
        deny: deny.collect(),
        directories: directories
            .filter_map(|directory| directory.value.canonicalize().ok())
            .collect(),
    }
}

fn read_rule(
    text: &RuleText,
    kind: RuleKind,
    warn: &impl Fn(&str, RuleKind, &Rule),
) -> Option<Rule> {
    let origin = rule_origin(&text.origin);
    let rule = match &text.form {
        RuleForm::Text(text) => Rule::parse(text, origin),
        RuleForm::Object(value) => Rule::from_value(value, origin),
    };
    match rule {
        Ok(rule) => {
            warn(&text.origin.to_string(), kind, &rule);
            Some(rule)
        }
        Err(error) => {
            note(&format!("warning: {}: {error}", text.origin));
            None
        }
    }
}

fn rule_origin(origin: &Origin) -> RuleOrigin {
    RuleOrigin::Settings {
        level: match origin.level {
            Level::Managed => RuleLevel::Managed,
            Level::Flag => RuleLevel::Flag,
            Level::Local => RuleLevel::Local,
            Level::Project => RuleLevel::Project,
            Level::User => RuleLevel::User,
        },
        file: origin.file.to_path_buf(),
        line: u32::try_from(origin.line).ok(),
        root: origin.root.to_path_buf(),
    }
}

/// Settings that are read again when a file changes while the session runs.
pub(crate) struct LiveRules {
    settings: Settings,
    flags: FlagRules,
    /// Directories that the command line gave.
    fixed: Vec<PathBuf>,
}

impl LiveRules {
    pub(crate) fn new(
        settings: Settings,
        args: &RunArgs,
        fixed: Vec<PathBuf>,
    ) -> anyhow::Result<Self> {
        Ok(Self { settings, flags: FlagRules::parse(args)?, fixed })
    }
}

impl RuleSource for LiveRules {
    fn changed(&mut self) -> Option<Change> {
        let files: Vec<_> = self.settings.stale_files().map(named_change).collect();
        if files.is_empty() {
            return None;
        }
        self.settings.reload();
        for problem in self.settings.problems() {
            note(&format!("warning: {problem}"));
        }
        let mut rules = rules(&self.settings, &self.flags, note_rule);
        rules.directories.splice(0..0, self.fixed.iter().cloned());
        let hooks = extensions::settings_hooks(&self.settings);
        let hook_rules = HookRules::new(&self.settings.hook_limits());
        Some(Change { rules, files, hooks, hook_rules })
    }
}

/// A settings file that changed, and what hooks call its level.
fn named_change((level, path): (Level, PathBuf)) -> (&'static str, PathBuf) {
    let name = match level {
        Level::Managed => "policy_settings",
        Level::User => "user_settings",
        Level::Project => "project_settings",
        Level::Local | Level::Flag => "local_settings",
    };
    (name, path)
}
