//! Every built-in agent reads well, has what it should, and can be switched off or replaced.

use std::sync::Arc;

use centurion_config::agents::{
    AGENT_KEYS, AgentCatalog, AgentLoader, AgentSources, PERMISSION_MODES, Vocabulary,
};
use centurion_hooks::Event;
use centurion_permissions::all_tool_names;
use centurion_protocol::SystemWorld;

use super::*;

/// Tools that Explore and Plan may not have.
const SCOUTS_LACK: [&str; 9] = [
    "Agent",
    "Edit",
    "Write",
    "NotebookEdit",
    "ExitPlanMode",
    "EnterPlanMode",
    "AskUserQuestion",
    "SendMessage",
    "TaskStop",
];

/// A name, the tools that are listed, those that are taken away, and the model.
type ExpectedProcess<'e> = (&'e str, &'e [&'e str], &'e [&'e str], Option<&'e str>);

fn load(switches: &Switches) -> Arc<AgentCatalog> {
    let sources = AgentSources {
        built_in: agents(switches),
        vocabulary: Vocabulary { tools: all_tool_names().map(str::to_owned).collect() },
        ..AgentSources::default()
    };
    AgentLoader::new().load(&sources, &SystemWorld)
}

fn definition(name: &str) -> Arc<AgentDefinition> {
    Arc::clone(&load(&Switches::default()).find(name).unwrap().definition)
}

fn names(switches: &Switches) -> Vec<String> {
    let catalog = load(switches);
    catalog.active.iter().map(|agent| agent.definition.name.value.clone()).collect()
}

fn words(list: Option<&centurion_config::Located<Vec<String>>>) -> Vec<&str> {
    list.map(|list| list.iter().map(String::as_str).collect()).unwrap_or_default()
}

#[test]
fn every_built_in_agent_is_read_without_a_problem() {
    // S-045, S-114, D-3
    let catalog = load(&Switches::default());
    assert_eq!((&catalog.failed[..], &catalog.problems[..]), (&[][..], &[][..]));
    let expected = [
        "Bash",
        "centurion-guide",
        "Explore",
        "fork",
        "general-purpose",
        "Plan",
        "statusline-setup",
        "verification",
    ];
    assert_eq!(names(&Switches::default()), expected);
    for agent in &catalog.active {
        let definition = &agent.definition;
        assert_eq!(definition.origin.source, AgentSource::BuiltIn);
        assert_eq!(definition.origin.directory(), None);
        assert!(definition.description.len() > 80, "{}", definition.name.value);
        let is_fork = definition.name.value == "fork";
        assert_eq!(definition.prompt.is_empty(), is_fork, "{}", definition.name.value);
    }
}

#[test]
fn the_table_names_agents_as_their_files_do() {
    let catalog = load(&Switches::default());
    for entry in &ENTRIES {
        let agent = catalog.find(entry.name).unwrap();
        assert_eq!(agent.definition.name.value, entry.name);
        assert_eq!(agent.definition.origin.path.to_str(), Some(entry.agent.path));
    }
    assert!(ONE_SHOT.iter().all(|name| ENTRIES.iter().any(|entry| entry.name == *name)));
    assert!(ALIASES.iter().all(|(_, name)| ENTRIES.iter().any(|entry| entry.name == *name)));
}

#[test]
fn each_has_its_tools_and_its_model() {
    // S-098, S-099, S-100, S-102, S-104, S-106, S-108, S-109, S-110, D-2, D-3, D-46
    let guide_tools = ["Glob", "Grep", "Read", "WebFetch", "WebSearch"];
    let cases: [ExpectedProcess<'_>; 8] = [
        ("general-purpose", &["*"], &[], None),
        ("Explore", &[], &SCOUTS_LACK, Some("haiku")),
        ("Plan", &[], &SCOUTS_LACK, Some("inherit")),
        ("verification", &[], &["Edit", "Write", "NotebookEdit", "Agent"], Some("inherit")),
        ("Bash", &["Bash"], &[], Some("inherit")),
        ("statusline-setup", &["Read", "Edit"], &[], Some("sonnet")),
        ("centurion-guide", &guide_tools, &[], Some("haiku")),
        ("fork", &["*"], &[], Some("inherit")),
    ];
    for (name, tools, lacks, model) in cases {
        let agent = definition(name);
        assert_eq!(words(agent.tools.as_ref()), tools, "{name}");
        assert_eq!(words(agent.disallowed_tools.as_ref()), lacks, "{name}");
        assert_eq!(agent.model.as_ref().map(|model| model.as_str()), model, "{name}");
    }
}

#[test]
fn scouts_only_read_and_go_without_instruction_files() {
    // S-101, S-103, S-115, D-38
    for agent in load(&Switches::default()).active.iter().map(|agent| &agent.definition) {
        let name = agent.name.value.as_str();
        let is_scout = matches!(name, "Explore" | "Plan");
        assert_eq!(only_reads(agent), is_scout || name == "centurion-guide", "{name}");
        assert_eq!(agent.omit_claude_md.as_ref().is_some_and(|it| it.value), is_scout, "{name}");
        if is_scout {
            let reminder = agent.critical_reminder.as_ref().unwrap();
            assert!(reminder.starts_with("You only read"), "{name}");
            assert!(reminder.contains("change, move and delete nothing"), "{name}");
        }
    }
}

#[test]
fn modes_colours_and_the_background_are_as_they_should_be() {
    // S-038, S-104, S-106, S-108, S-110, S-112
    for agent in load(&Switches::default()).active.iter().map(|agent| &agent.definition) {
        let name = agent.name.value.as_str();
        let mode = agent.permission_mode.as_ref().map(|mode| mode.as_str());
        let expected = match name {
            "centurion-guide" => Some("dontAsk"),
            "fork" => Some("bubble"),
            _ => None,
        };
        assert_eq!(mode, expected, "{name}");
        let is_background = agent.background.as_ref().is_some_and(|it| it.value);
        assert_eq!(is_background, name == "verification");
        let color = agent.color.as_ref().map(|color| color.as_str());
        assert_eq!(color, (name == "statusline-setup").then_some("orange"), "{name}");
    }
}

#[test]
fn a_verification_ends_with_its_verdict_and_writes_only_to_tmp() {
    // S-104, S-105
    let agent = definition("verification");
    for verdict in ["\nVERDICT: PASS\n", "\nVERDICT: FAIL\n", "\nVERDICT: PARTIAL\n"] {
        assert!(agent.prompt.contains(verdict), "{verdict}");
    }
    assert!(agent.prompt.contains("goes to /tmp and nowhere else"));
    let reminder = agent.critical_reminder.as_ref().unwrap();
    assert!(reminder.contains("/tmp") && reminder.contains("VERDICT: PARTIAL"));
}

#[test]
fn the_guide_knows_the_manual_and_the_user() {
    // S-030, S-097, S-106
    let facts = PromptFacts { servers: vec!["my-server".to_owned()], ..PromptFacts::default() };
    let agent = definition("centurion-guide");
    let told = prompt(&agent, &facts);
    assert!(told.contains("- MCP servers: `my-server`\n"));
    assert!(told.contains("centurion agents check"));
    assert!(!told.contains("{{"), "a place was left empty");
    // No other agent has places for facts.
    for entry in ENTRIES.iter().filter(|entry| entry.kind != Kind::Guide) {
        assert!(!entry.agent.text.contains("{{"), "{}", entry.name);
    }
}

#[test]
fn the_manual_names_every_field_mode_event_and_agent() {
    let named = |word: &str| facts::MANUAL.contains(&format!("`{word}`"));
    let missing: Vec<_> = AGENT_KEYS.iter().filter(|key| !named(key)).collect();
    assert_eq!(missing, [&""; 0]);
    // The same as `default` by another name.
    let modes = PERMISSION_MODES.iter().filter(|mode| **mode != "manual");
    assert_eq!(modes.filter(|mode| !named(mode)).count(), 0);
    let events = Event::all().filter(|event| event.is_fired());
    let missing: Vec<_> = events.filter(|it| !facts::MANUAL.contains(it.name())).collect();
    assert_eq!(missing, [Event::Stop; 0]);
    let chosen = ENTRIES.iter().filter(|entry| entry.kind != Kind::Internal);
    assert_eq!(chosen.filter(|entry| !facts::MANUAL.contains(entry.name)).count(), 0);
    // A guide pays for every word of it.
    assert!(facts::MANUAL.len() < 15 * 1024, "{}", facts::MANUAL.len());
}

#[test]
fn other_names_and_those_who_answer_once_are_known() {
    // S-113, D-3, D-36
    assert_eq!(alias("claude-code-guide"), Some("centurion-guide"));
    assert_eq!(alias("Claude_Code_Guide"), Some("centurion-guide"));
    assert_eq!(alias("Explore"), None);
    let one_shot: Vec<_> =
        ENTRIES.iter().map(|entry| entry.name).filter(|name| is_one_shot(name)).collect();
    assert_eq!(one_shot, ["Explore", "Plan", "statusline-setup", "centurion-guide"]);
}

#[test]
fn the_fork_is_in_no_list_but_a_users_agent_of_that_name_is() {
    // S-110
    let hidden: Vec<_> = load(&Switches::default())
        .active
        .iter()
        .filter(|agent| is_hidden(&agent.definition))
        .map(|agent| agent.definition.name.value.clone())
        .collect();
    assert_eq!(hidden, ["fork"]);
    let mut own = AgentDefinition::clone(&definition("fork"));
    own.origin.source = AgentSource::User;
    assert!(!is_hidden(&own));
}

mod switches {
    use super::*;

    /// The agents that are missing with these variables and names.
    fn missing(env: &[(&str, &str)], off: &[&str], presence: Presence) -> Vec<String> {
        let pairs = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let off = off.iter().map(|name| (*name).to_owned()).collect();
        let left = names(&Switches::from(&Env::new(pairs), off, presence));
        names(&Switches::default()).into_iter().filter(|name| !left.contains(name)).collect()
    }

    #[test]
    fn nothing_is_off_by_itself() {
        assert_eq!(missing(&[], &[], Presence::Headless), [""; 0]);
        let switches = Switches::from(&Env::default(), Vec::new(), Presence::Interactive);
        assert_eq!(switches, Switches::default());
    }

    #[test]
    fn a_host_can_have_none_of_them() {
        // S-111
        let env = [("CLAUDE_AGENT_SDK_DISABLE_BUILTIN_AGENTS", "1")];
        assert_eq!(missing(&env, &[], Presence::Headless).len(), ENTRIES.len());
        assert_eq!(missing(&env, &[], Presence::Interactive), [""; 0]);
    }

    #[test]
    fn scouts_and_the_verifier_can_be_left_out() {
        // S-104
        let env = |value| [("CLAUDE_CODE_DISABLE_EXPLORE_PLAN_AGENTS", value)];
        assert_eq!(missing(&env("true"), &[], Presence::Interactive), ["Explore", "Plan"]);
        assert_eq!(missing(&env("0"), &[], Presence::Interactive), [""; 0]);
        let env = [("CENTURION_DISABLE_VERIFICATION_AGENT", "1")];
        assert_eq!(missing(&env, &[], Presence::Headless), ["verification"]);
    }

    #[test]
    fn sdks_have_no_guide() {
        // S-107
        for entrypoint in ["sdk-ts", "sdk-py", "sdk-cli"] {
            let env = [("CLAUDE_CODE_ENTRYPOINT", entrypoint)];
            assert_eq!(missing(&env, &[], Presence::Headless), ["centurion-guide"]);
        }
        let env = [("CLAUDE_CODE_ENTRYPOINT", "cli")];
        assert_eq!(missing(&env, &[], Presence::Headless), [""; 0]);
    }

    #[test]
    fn each_can_be_switched_off_by_any_of_its_names() {
        // D-3
        for entry in &ENTRIES {
            let name = entry.name.to_uppercase().replace('-', "_");
            assert_eq!(missing(&[], &[&name], Presence::Headless), [entry.name]);
        }
        let off = ["claude-code-guide", "nobody"];
        assert_eq!(missing(&[], &off, Presence::Headless), ["centurion-guide"]);
    }
}
