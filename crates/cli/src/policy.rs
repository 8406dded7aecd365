//! The policy of this run: rules of flags and settings, mode and directories.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, bail};
use centurion_config::ReadRules;
use centurion_config::paths::repo_root;
use centurion_config::settings::{
    DefaultMode, Level, Origin, RepositoryTrust, RuleForm, RuleText, Settings, closest_words,
};
use centurion_config::trust::Trust;
use centurion_engine::{Bypass, Change, RuleSource, Rules, UnreadRule, read_rule};
use centurion_hooks::{HookJudge, HookRules};
use centurion_permissions::{
    Bounds, GitCheck, Mode, Policy, Rule, RuleKind, RuleLevel, RuleOrigin, RuleSet, all_tool_names,
};
use centurion_protocol::Env;
use serde_json::Value;

use crate::args::RunArgs;
use crate::extensions;
use crate::live_settings::{LiveSettings, SettingsState};
use crate::output::note;
use crate::surroundings::{MANAGED, Surroundings};

/// The policy of the main agent, and the part of it that binds files which no agent reads itself.
pub(crate) fn policy(
    args: &RunArgs,
    surroundings: &Surroundings,
    settings: &Settings,
    added: &[PathBuf],
) -> anyhow::Result<(Policy, ReadRules)> {
    let mode = mode(args, settings)?;
    if let (Mode::BypassPermissions, Bypass::Refused(reason)) =
        (mode, bypass(mode, args, settings, &surroundings.env))
    {
        bail!("{reason}");
    }
    let flags = FlagRules::parse(args)?;
    flags.warn();
    let unread = settings.unread_files().map(ToString::to_string).collect();
    refuse("rules that deny something may be in a file that cannot be read", unread)?;
    let (rules, untold) = rules(settings, &flags, note_rule);
    refuse("it is not clear which tool these rules take away", untold)?;
    let Rules { allow, ask, deny, directories } = rules;
    let cwd = surroundings.cwd.clone();
    let home =
        surroundings.home.as_ref().map(|home| home.canonicalize().unwrap_or_else(|_| home.clone()));
    let policy = Policy {
        mode,
        bounds: Bounds { stays_inside: args.reach.restricted, ..Bounds::default() },
        allow,
        ask,
        deny,
        project_root: cwd.clone(),
        home,
        directories: std::iter::once(cwd.clone())
            .chain(added.iter().cloned())
            .chain(directories)
            .collect(),
        trusted_repository: repo_root(&cwd)
            .filter(|_| settings.standing() == RepositoryTrust::Full),
        cwd,
        ..Policy::default()
    };
    let read_rules = read_rules(&policy, surroundings);
    Ok((policy, read_rules))
}

/// The deny rules for reading of a policy. The session puts its own in their place, which change while it runs.
fn read_rules(policy: &Policy, surroundings: &Surroundings) -> ReadRules {
    let mut own = surroundings.dirs.config_dirs().to_vec();
    own.push(PathBuf::from(MANAGED));
    let rules = ReadRules::new(&own, |denial| note(&format!("warning: {denial}")));
    let policy = policy.clone();
    rules.bind(move |path| policy.read_denial(path).map(|rule| rule.source().to_string()));
    rules
}

/// Stops the run if there are reasons: a deny rule might not be in force.
fn refuse(why: &str, mut reasons: Vec<String>) -> anyhow::Result<()> {
    const MOST: usize = 20;
    if reasons.is_empty() {
        return Ok(());
    }
    reasons.truncate(MOST);
    bail!("{why}, so nothing runs\n{}", reasons.join("\n"))
}

/// Lets git be free only while it runs nothing but what was accepted with the repository. Says once if it does.
pub(crate) fn check_git(policy: &mut Policy, trust: &Arc<Trust>) {
    let (trust, was_told) = (Arc::clone(trust), AtomicBool::new(false));
    let Some(root) = policy.trusted_repository.clone() else { return };
    policy.git_check = Some(GitCheck::new(move || match trust.judge_git(&root) {
        Ok(()) => true,
        Err(reason) => {
            if !was_told.swap(true, Ordering::Relaxed) {
                note(&format!("warning: git commands are asked about: {reason}"));
            }
            false
        }
    }));
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

/// Whether permissions may be skipped in a run that starts in this mode, or that a flag gives leave to skip them later.
pub(crate) fn bypass(mode: Mode, args: &RunArgs, settings: &Settings, env: &Env) -> Bypass {
    if args.reach.restricted {
        return Bypass::Refused("--restricted does not let permissions be skipped");
    }
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
        _ if args.permissions.allow_dangerously_skip_permissions => Bypass::OnRequest,
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
    if let Some(warning) = rule.unknown_tool(kind) {
        let nearest = nearest_tool(&rule.source().text);
        let hint = nearest.map(|tool| format!("; did you mean `{tool}`?")).unwrap_or_default();
        note(&format!("warning: {place}: {warning}{hint}"));
    } else if let Some(warning) = rule.warning(kind) {
        note(&format!("warning: {place}: {warning}"));
    }
}

/// The tool that a rule probably means whose tool does not exist.
fn nearest_tool(rule: &str) -> Option<&'static str> {
    let tools: Vec<&'static str> = all_tool_names().collect();
    let name = rule.split('(').next().unwrap_or_default().trim();
    tools.get(*closest_words(name, &tools).first()?).copied()
}

/// The rules of settings and flags together, and what is wrong with those whose tool cannot be told.
fn rules(
    settings: &Settings,
    flags: &FlagRules,
    warn: impl Fn(&str, RuleKind, &Rule),
) -> (Rules, Vec<String>) {
    let permissions = settings.permissions();
    let mut untold = Vec::new();
    let mut read = |texts: &[RuleText], kind: RuleKind| -> Vec<Rule> {
        texts.iter().flat_map(|text| read_setting(text, kind, &warn, &mut untold)).collect()
    };
    // Managed settings may say that only their own rules allow anything.
    let flags_allow = permissions.managed_rules_only.is_none();
    let allow = read(&permissions.allow, RuleKind::Allow)
        .into_iter()
        .chain(flags.allow.iter().filter(|_| flags_allow).cloned());
    let deny =
        read(&permissions.deny, RuleKind::Deny).into_iter().chain(flags.deny.iter().cloned());
    let ask = read(&permissions.ask, RuleKind::Ask);
    let directories = permissions.additional_directories.iter();
    let rules = Rules {
        allow: allow.collect(),
        ask: RuleSet::from(ask),
        deny: deny.collect(),
        directories: directories
            .filter_map(|directory| directory.value.canonicalize().ok())
            .collect(),
    };
    (rules, untold)
}

/// A rule of the settings. One that takes away and cannot be read takes the whole tool, or every tool where it does not
/// tell which one it means.
fn read_setting(
    text: &RuleText,
    kind: RuleKind,
    warn: &impl Fn(&str, RuleKind, &Rule),
    untold: &mut Vec<String>,
) -> Vec<Rule> {
    let origin = rule_origin(&text.origin);
    let value = match &text.form {
        RuleForm::Text(text) => &Value::from(text.as_str()),
        RuleForm::Object(value) => value,
    };
    let UnreadRule { source: reason, tools } = match read_rule(value, &origin) {
        Ok(rule) => {
            warn(&text.origin.to_string(), kind, &rule);
            return vec![rule];
        }
        Err(unread) => unread,
    };
    let place = &text.origin;
    if kind == RuleKind::Allow {
        note(&format!("warning: {place}: {reason}"));
        return Vec::new();
    }
    if tools.is_empty() {
        untold.push(format!("{place}: {reason}"));
        return Rule::parse("*", origin).into_iter().collect();
    }
    let names = tools.iter().map(|rule| rule.source().text.as_str());
    let names: Vec<&str> = names.filter(|name| !name.contains('(')).collect();
    note(&format!(
        "warning: {place}: {reason}; until it can be read, it takes all of {}",
        names.join(", ")
    ));
    tools
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
    settings: LiveSettings,
    flags: FlagRules,
    /// Directories that the command line gave.
    fixed: Vec<PathBuf>,
    hook_judge: HookJudge,
}

impl LiveRules {
    pub(crate) fn new(
        settings: LiveSettings,
        args: &RunArgs,
        fixed: Vec<PathBuf>,
        hook_judge: HookJudge,
    ) -> anyhow::Result<Self> {
        Ok(Self { settings, flags: FlagRules::parse(args)?, fixed, hook_judge })
    }
}

impl RuleSource for LiveRules {
    fn changed(&mut self) -> Option<Change> {
        self.settings.with(|state| self.change(state))
    }
}

impl LiveRules {
    fn change(&self, SettingsState { settings, is_changed }: &mut SettingsState) -> Option<Change> {
        let files: Vec<_> = settings.stale_files().map(named_change).collect();
        if files.is_empty() && !std::mem::take(is_changed) {
            return None;
        }
        *is_changed = false;
        settings.reload();
        for problem in settings.problems().chain(&settings.unaccepted()) {
            note(&format!("warning: {problem}"));
        }
        let (mut rules, untold) = rules(settings, &self.flags, note_rule);
        for reason in untold {
            note(&format!("warning: {reason}; until it can be read, it takes every tool"));
        }
        rules.directories.splice(0..0, self.fixed.iter().cloned());
        let hooks = extensions::settings_hooks(settings);
        let hook_rules = HookRules::new(&settings.hook_limits()).judged_by(self.hook_judge.clone());
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
