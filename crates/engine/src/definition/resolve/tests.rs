//! The resolver, one table of cases for each thing that it decides.

use centurion_config::Located;
use centurion_config::agents::AgentOrigin;

use super::*;
use crate::definition::model_check::ModelRefusal;
use crate::definition::rules::DelegationRules;

const POOL: [&str; 9] = [
    "Agent",
    "AskUserQuestion",
    "Bash",
    "ExitPlanMode",
    "Glob",
    "Read",
    "TaskOutput",
    "Write",
    "mcp__desk__greet",
];

fn at<T>(value: T) -> Located<T> {
    Located::new(value, 7)
}

fn list(names: &[&str]) -> Located<Vec<String>> {
    at(names.iter().map(|name| (*name).to_owned()).collect())
}

fn definition() -> AgentDefinition {
    let text = |text: &str| Located::new(text.to_owned(), 1);
    let origin =
        AgentOrigin { source: AgentSource::User, path: "/agents/a.md".into(), plugin: None };
    AgentDefinition::new(text("scout"), text("looks"), text("Look."), origin)
}

fn starter() -> Starter {
    Starter {
        model: "parent-model".to_owned(),
        effort: Some(Effort::High),
        thinking: Thinking::default(),
        stance: Stance::default(),
        depth: 0,
        cwd: "/project".into(),
    }
}

/// Everything that a resolution depends on, to be changed by each test.
struct Case {
    definition: AgentDefinition,
    wishes: Wishes,
    flags: Option<MainFlags>,
    starter: Starter,
    rules: DelegationRules,
    bypass: Bypass,
    refused: Option<&'static str>,
    keeps_memory: bool,
}

/// The change of a case against the usual one.
type Change<'c> = &'c dyn Fn(&mut Case);

impl Case {
    fn new() -> Self {
        Self {
            definition: definition(),
            wishes: Wishes::default(),
            flags: None,
            starter: starter(),
            rules: DelegationRules::default(),
            bypass: Bypass::Enabled,
            refused: None,
            keeps_memory: true,
        }
    }

    fn with(change: impl FnOnce(&mut Self)) -> Self {
        let mut case = Self::new();
        change(&mut case);
        case
    }

    fn resolve(&self) -> Result<EffectiveAgent, LaunchError> {
        let pool: Vec<String> = POOL.iter().map(|name| (*name).to_owned()).collect();
        let context = ResolveContext {
            rules: &self.rules,
            resolve_model: &|name| format!("full-{}", name.trim_start_matches("full-")),
            check_model: &|model| match self.refused {
                Some(refused) if model.contains(refused) => Err(ModelRefusal::new("not here")),
                _ => Ok(()),
            },
            bypass: self.bypass,
            pool: &pool,
            keeps_memory: self.keeps_memory,
            only_plugin_hooks: false,
        };
        let place =
            self.flags.as_ref().map_or(AgentPosition::Below(&self.wishes), AgentPosition::Main);
        resolve(&self.definition, Color::of_name("scout"), place, &self.starter, &context)
    }

    fn effective(&self) -> EffectiveAgent {
        self.resolve().unwrap()
    }
}

#[test]
fn tools_pass_one_pipeline_and_each_is_left_out_for_one_reason() {
    // D-7, S-082, S-083, S-084, S-085
    let usual = ["Agent", "Bash", "Glob", "Read", "Write", "mcp__desk__greet"];
    for (listed, taken, expected) in [
        (None, None, &usual[..]),
        (Some(list(&["*"])), None, &usual[..]),
        (Some(list(&["Read", "Bash"])), None, &["Bash", "Read"][..]),
        (Some(list(&["Read", "Bash"])), Some(list(&["Bash"])), &["Read"][..]),
        (None, Some(list(&["Write", "mcp__desk"])), &["Agent", "Bash", "Glob", "Read"][..]),
        (Some(list(&["Task", "LS"])), None, &["Agent", "Read"][..]),
        (Some(list(&["mcp__desk__*"])), None, &["mcp__desk__greet"][..]),
        (Some(list(&[])), None, &[][..]),
    ] {
        let what = format!("{listed:?} {taken:?}");
        let case = Case::with(|case| {
            case.definition.tools = listed;
            case.definition.disallowed_tools = taken;
        });
        assert_eq!(case.effective().tools, expected, "{what}");
    }
    let case = Case::with(|case| {
        case.definition.tools = Some(list(&["Read", "Write"]));
        case.definition.disallowed_tools = Some(list(&["Write"]));
    });
    let effective = case.effective();
    let why =
        |tool: &str| effective.left_out.iter().find(|(name, _)| name == tool).unwrap().1.clone();
    assert_eq!(why("Write"), LeftOut::Taken("Write".to_owned()));
    assert_eq!(why("Bash"), LeftOut::NotListed);
    assert_eq!(why("AskUserQuestion"), LeftOut::MainOnly);
    assert_eq!(why("ExitPlanMode"), LeftOut::NotPlanning);
}

#[test]
fn a_list_that_gives_nothing_is_a_mistake_that_is_named() {
    // D-7, I-5
    let case = Case::with(|case| case.definition.tools = Some(list(&["Raed", "AskUserQuestion"])));
    let error = case.resolve().unwrap_err().to_string();
    assert!(error.contains("Raed (there is no such tool)"), "{error}");
    assert!(error.contains("AskUserQuestion (only the main agent has it)"), "{error}");
    assert!(error.contains("/agents/a.md:7"), "{error}");
    let case = Case::with(|case| case.definition.tools = Some(list(&["Raed", "Read"])));
    assert_eq!(case.effective().tools, ["Read"], "one that is there is enough");
    assert_eq!(
        case.effective().unresolved,
        ["Raed (there is no such tool)"],
        "and the other is named"
    );
}

#[test]
fn depth_background_and_planning_decide_about_tools() {
    // D-12, S-087
    let deepest = Case::with(|case| case.starter.depth = case.rules.limits.depth - 1).effective();
    assert!(!deepest.tools.contains(&"Agent".to_owned()), "{:?}", deepest.tools);
    let too_deep = Case::with(|case| case.starter.depth = case.rules.limits.depth).resolve();
    assert!(matches!(too_deep, Err(LaunchError::TooDeep { depth: 3, most: 3 })), "{too_deep:?}");
    let planning = Case::with(|case| case.starter.stance.mode = Mode::Plan).effective();
    assert!(planning.tools.contains(&"ExitPlanMode".to_owned()));
    let main = Case::with(|case| case.flags = Some(MainFlags::default())).effective();
    assert_eq!(main.tools, POOL, "the main agent has them all");
}

#[test]
fn a_memory_gives_back_the_tools_that_it_needs() {
    // S-086, D-34
    let keeper = |case: &mut Case| {
        case.definition.tools = Some(list(&["Glob"]));
        case.definition.memory = Some(at(MemoryScope::Project));
    };
    let effective = Case::with(keeper).effective();
    assert_eq!(effective.tools, ["Glob", "Read", "Write"], "the pool has no Edit");
    assert_eq!(effective.for_memory, ["Edit", "Read", "Write"]);
    let off = Case::with(|case| {
        keeper(case);
        case.keeps_memory = false;
    });
    assert_eq!(off.effective().tools, ["Glob"]);
    assert!(off.effective().memory.is_none());
}

#[test]
fn a_model_is_decided_in_order_and_says_by_what() {
    // D-8, S-134, I-5
    let named = |name: &str| Some(at(AgentModel::Named(name.to_owned())));
    let by_type = |case: &mut Case, model: &str| {
        case.rules.models.insert("scout".to_owned(), model.to_owned());
    };
    let cases: [(&str, Change<'_>, &str, &str); 8] = [
        ("nothing said", &|_| {}, "full-parent-model", "the agent that starts it"),
        (
            "the variable",
            &|case| case.rules.subagent_model = Some("variable".to_owned()),
            "full-variable",
            "$CLAUDE_CODE_SUBAGENT_MODEL",
        ),
        (
            "the definition before the variable",
            &|case| {
                case.rules.subagent_model = Some("variable".to_owned());
                case.definition.model = named("own");
            },
            "full-own",
            "/agents/a.md:7",
        ),
        (
            "inherit is said by the definition",
            &|case| {
                case.rules.subagent_model = Some("variable".to_owned());
                case.definition.model = Some(at(AgentModel::Inherit));
            },
            "full-parent-model",
            "/agents/a.md:7",
        ),
        (
            "the setting for the type",
            &|case| {
                case.definition.model = named("own");
                by_type(case, "typed");
            },
            "full-typed",
            "subagents.models.scout",
        ),
        (
            "a setting that says inherit",
            &|case| {
                case.definition.model = named("own");
                by_type(case, "inherit");
            },
            "full-parent-model",
            "subagents.models.scout",
        ),
        (
            "the call before all",
            &|case| {
                case.definition.model = named("own");
                by_type(case, "typed");
                case.wishes.model = Some("called".to_owned());
            },
            "full-called",
            "`model` of the call",
        ),
        (
            "but not a coordinator's",
            &|case| {
                case.rules.mode = SessionMode::Coordinator;
                case.wishes.model = Some("called".to_owned());
                case.definition.model = named("own");
            },
            "full-own",
            "/agents/a.md:7",
        ),
    ];
    for (name, change, model, by) in cases {
        let decided = Case::with(change).effective().model;
        assert_eq!(
            (decided.value.as_str(), decided.by.to_string().as_str()),
            (model, by),
            "{name}"
        );
    }
    let refused = Case::with(|case| {
        case.wishes.model = Some("banned".to_owned());
        case.refused = Some("banned");
    });
    let error = refused.resolve().unwrap_err().to_string();
    assert_eq!(error, "agent `scout` cannot use the model `full-banned`: not here");
}

#[test]
fn a_mode_never_exceeds_what_the_one_above_may() {
    // D-5a, S-137, S-166, S-169, I-1
    use Mode::{AcceptEdits, BypassPermissions, Default, DontAsk, Plan};
    for (parent, own, usual, expected) in [
        (Default, None, None, Default),
        (AcceptEdits, None, None, AcceptEdits),
        (DontAsk, None, None, DontAsk),
        (Default, None, Some(AcceptEdits), AcceptEdits),
        (DontAsk, None, Some(AcceptEdits), DontAsk),
        (Plan, None, Some(AcceptEdits), Plan),
        (BypassPermissions, None, Some(AcceptEdits), BypassPermissions),
        (Default, Some("dontAsk"), None, DontAsk),
        (Default, Some("acceptEdits"), None, AcceptEdits),
        (DontAsk, Some("acceptEdits"), None, DontAsk),
        (DontAsk, Some("bypassPermissions"), None, DontAsk),
        (AcceptEdits, Some("plan"), None, Plan),
        (Plan, None, None, Plan),
        (Plan, Some("acceptEdits"), None, Plan),
        (Plan, Some("bypassPermissions"), None, Plan),
        (Default, Some("bypassPermissions"), None, Default),
        (AcceptEdits, Some("bypassPermissions"), None, AcceptEdits),
        (BypassPermissions, None, None, BypassPermissions),
        (BypassPermissions, Some("default"), Some(AcceptEdits), Default),
    ] {
        let mut case = Case::with(|case| {
            case.starter.stance.mode = parent;
            case.definition.permission_mode = own.map(|own| at(own.to_owned()));
            case.rules.child_mode = usual;
            case.bypass = Bypass::Refused("not enabled");
        });
        let decided = case.effective().permission_mode.value;
        assert_eq!(decided, expected, "{parent} {own:?} usual: {usual:?}");
        case.bypass = Bypass::OnRequest;
        let decided = case.effective().permission_mode.value;
        assert_eq!(decided, expected, "a definition is no request: {parent} {own:?}");
        case.bypass = Bypass::Enabled;
        let skips = own == Some("bypassPermissions") && !matches!(parent, Plan | DontAsk);
        let expected = if skips { BypassPermissions } else { expected };
        assert_eq!(case.effective().permission_mode.value, expected, "where it is enabled");
    }
}

#[test]
fn only_what_the_user_brings_gives_more_than_the_agent_above_has() {
    // D-5a
    use AgentSource::{BuiltIn, Flag, Plugin, Policy, Project, User};
    for (source, trusted, brings) in [
        (User, false, true),
        (Policy, false, true),
        (Flag, false, true),
        (Plugin, false, true),
        (Project, true, true),
        (Project, false, false),
        (BuiltIn, true, false),
    ] {
        let mode = |parent: Mode, own: &str| {
            let case = Case::with(|case| {
                case.starter.stance.mode = parent;
                case.definition.origin.source = source;
                let is_withheld = source == Project && !trusted;
                case.definition.withheld = is_withheld.then_some(Unaccepted::Untrusted);
                case.definition.permission_mode = Some(at(own.to_owned()));
            });
            case.effective().permission_mode.value
        };
        let given = if brings { Mode::AcceptEdits } else { Mode::Default };
        assert_eq!(mode(Mode::Default, "acceptEdits"), given, "{source} {trusted}");
        let given = if brings { Mode::DontAsk } else { Mode::Auto };
        assert_eq!(mode(Mode::Auto, "dontAsk"), given, "{source} {trusted}");
        // Less is always possible.
        for (parent, own) in [
            (Mode::BypassPermissions, "default"),
            (Mode::AcceptEdits, "default"),
            (Mode::Default, "plan"),
            (Mode::Default, "dontAsk"),
        ] {
            assert_eq!(mode(parent, own).name(), own, "{source} below {parent}");
        }
    }
}

#[test]
fn a_repository_that_is_not_trusted_brings_nothing_that_acts_for_the_user() {
    // D-9
    let untrusted = |own: &str| {
        Case::with(|case| {
            case.definition.origin.source = AgentSource::Project;
            case.definition.withheld = Some(Unaccepted::Untrusted);
            case.definition.permission_mode = Some(at(own.to_owned()));
            case.definition.hooks = Some(at(serde_json::json!({"Stop": []})));
            case.definition.mcp_servers = Some(at(serde_json::json!(["desk"])));
        })
        .effective()
    };
    let effective = untrusted("dontAsk");
    assert_eq!(effective.permission_mode.value, Mode::DontAsk, "less is always allowed");
    assert!(effective.hooks.is_none() && effective.mcp_servers.is_none());
    assert_eq!(effective.problems.len(), 2, "{:?}", effective.problems);
    let effective = untrusted("acceptEdits");
    assert_eq!(effective.permission_mode.value, Mode::Default);
    assert_eq!(effective.problems.len(), 3, "{:?}", effective.problems);
}

#[test]
fn whether_an_agent_runs_in_the_background_is_one_decision() {
    // S-195, S-202, S-203, S-204, S-205, S-135, D-5
    use SessionMode::{Assistant, Coordinator, Normal, Proactive};
    for (mode, is_off, usual, own, wish, expected) in [
        (Normal, false, false, None, None, false),
        (Normal, false, false, None, Some(true), true),
        (Normal, false, false, Some(true), None, true),
        (Normal, false, false, Some(true), Some(false), true),
        (Normal, false, false, Some(false), Some(true), true),
        (Normal, false, true, None, None, true),
        (Normal, false, true, None, Some(false), false),
        (Coordinator, false, false, None, Some(false), true),
        (Assistant, false, false, None, None, true),
        (Proactive, false, false, Some(false), None, true),
        (Normal, true, true, Some(true), Some(true), false),
        (Coordinator, true, true, Some(true), Some(true), false),
    ] {
        let case = Case::with(|case| {
            case.rules.mode = mode;
            case.rules.background_is_off = is_off;
            case.rules.background = usual;
            case.definition.background = own.map(at);
            case.wishes.background = wish;
        });
        let what = format!("{mode:?} off: {is_off} usual: {usual} own: {own:?} wish: {wish:?}");
        assert_eq!(case.effective().background.value, expected, "{what}");
    }
    let background = Case::with(|case| case.wishes.background = Some(true)).effective();
    assert!(background.tools.contains(&"mcp__desk__greet".to_owned()), "servers' tools stay");
}

#[test]
fn effort_is_the_definitions_unless_the_user_fixed_it() {
    // D-4
    let level =
        |case: &mut Case| case.definition.effort = Some(at(AgentEffort::Level(Effort::Low)));
    assert_eq!(Case::new().effective().effort.value, Some(Effort::High), "the parent's");
    assert_eq!(Case::with(level).effective().effort.value, Some(Effort::Low));
    let fixed = Case::with(|case| {
        level(case);
        case.rules.effort_is_fixed = true;
    });
    assert_eq!(fixed.effective().effort.value, Some(Effort::High));
    let amount = Case::with(|case| case.definition.effort = Some(at(AgentEffort::Amount(2_000))));
    assert_eq!(amount.effective().thinking, Thinking::Budget(2_000));
    let flagged = Case::with(|case| {
        level(case);
        case.flags = Some(MainFlags { has_effort: true, ..MainFlags::default() });
    });
    assert_eq!(flagged.effective().effort.value, Some(Effort::High));
}

#[test]
fn flags_of_the_session_win_over_the_definition_of_its_agent() {
    let own = |case: &mut Case| {
        case.definition.model = Some(at(AgentModel::Named("own".to_owned())));
        case.definition.permission_mode = Some(at("plan".to_owned()));
        case.definition.max_turns = Some(at(std::num::NonZeroU32::MIN));
    };
    let plain = Case::with(|case| {
        own(case);
        case.flags = Some(MainFlags::default());
    });
    let plain = plain.effective();
    assert_eq!((plain.model.value.as_str(), plain.permission_mode.value), ("full-own", Mode::Plan));
    assert_eq!(plain.max_turns.value, Some(1));
    assert!(!plain.background.value, "nobody waits for the session itself");
    let flags = MainFlags { has_model: true, has_effort: true, has_mode: true, has_turns: true };
    let flagged = Case::with(|case| {
        own(case);
        case.flags = Some(flags);
    });
    let flagged = flagged.effective();
    assert_eq!(flagged.model.value, "full-parent-model");
    assert_eq!((flagged.permission_mode.value, flagged.max_turns.value), (Mode::Default, None));
}

#[test]
fn turns_are_the_calls_then_the_definitions_and_never_above_the_limit() {
    for (call, own, limit, expected) in [
        (None, None, None, None),
        (None, Some(4), None, Some(4)),
        (Some(9), Some(4), None, Some(9)),
        (Some(9), Some(4), Some(6), Some(6)),
        (None, None, Some(6), Some(6)),
        (Some(2), None, Some(6), Some(2)),
    ] {
        let case = Case::with(|case| {
            case.wishes.max_turns = call;
            case.definition.max_turns = own.and_then(std::num::NonZeroU32::new).map(at);
            case.rules.limits.turns = limit;
        });
        assert_eq!(case.effective().max_turns.value, expected, "{call:?} {own:?} {limit:?}");
    }
}

#[test]
fn isolation_is_the_calls_or_the_definitions_and_excludes_a_directory() {
    // S-125, S-127, S-136, I-5
    let by_call = Case::with(|case| case.wishes.isolation = Some(Isolation::Worktree));
    let by_definition =
        Case::with(|case| case.definition.isolation = Some(at(Isolation::Worktree)));
    for mut case in [by_call, by_definition] {
        assert_eq!(case.effective().isolation.unwrap().value, Isolation::Worktree);
        case.wishes.cwd = Some("/elsewhere".into());
        let error = case.resolve().unwrap_err().to_string();
        assert!(error.contains("not started") && error.contains("/elsewhere"), "{error}");
        assert!(error.contains("`cwd`") && error.contains("`isolation: worktree`"), "{error}");
    }
    assert!(Case::new().effective().isolation.is_none());
}

#[test]
fn a_limit_in_the_list_of_tools_becomes_a_rule_of_the_role() {
    let case = Case::with(|case| case.definition.tools = Some(list(&["Bash(git *)", "Read"])));
    let effective = case.effective();
    let only: Vec<String> = effective.only.iter().map(ToString::to_string).collect();
    assert_eq!(only, ["Bash(git *)", "Read"]);
    let types =
        Case::with(|case| case.definition.tools = Some(list(&["Agent(Explore, Plan)", "Read"])));
    assert_eq!(types.effective().view.startable(), Some("Explore, Plan"));
    assert!(types.effective().only.iter().next().is_none(), "types are no rule about calls");
}

#[test]
fn an_agent_that_inherits_nothing_has_no_tools_of_a_parent() {
    // A record says that it is a fork, and refers to no conversation.
    let own = ToolView::Inherited.own();
    for tool in ["Bash", "Agent", "Read", "mcp__server__tool"] {
        assert_eq!(own.admits(tool), Err(LeftOut::NotListed), "{tool}");
    }
}
