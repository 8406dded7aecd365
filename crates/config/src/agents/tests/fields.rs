//! Each field: what it takes, and what it says about the rest.

use super::*;
use crate::frontmatter::Shape;

#[test]
fn every_field_is_read_with_its_line() {
    // S-001, S-002, S-003, S-007, S-008, S-010, S-011, S-012, S-013, S-014, S-015, S-016, S-022,
    // S-023, S-024, S-025, S-026, S-027, S-051
    let agent = definition(
        "---\nname: scout\ndescription: Looks around\ntools: Read, Grep\ndisallowedTools: [Bash]\n\
         model: opus\neffort: high\npermissionMode: dontAsk\nmcpServers:\n  - github\n\
         requiredMcpServers: git*, jira\nhooks:\n  Stop:\n    - command: x\n      timeout: 5\n\
         skills: [a, 'p:b']\nmaxTurns: 7\nbackground: true\nisolation: worktree\nmemory: local\n\
         color: cyan\ninitialPrompt: /start now\nforkContext: yes\nomitClaudeMd: true\n\
         criticalSystemReminder_EXPERIMENTAL: Only read.\n---\n\n\nYou look.\n\n",
    );
    let names = |names: &Option<crate::Located<Vec<String>>>| {
        let names = names.as_ref().unwrap();
        (names.join("|"), names.line)
    };
    assert_eq!((agent.name.as_str(), agent.name.line), ("scout", 2));
    assert_eq!((agent.description.as_str(), agent.description.line), ("Looks around", 3));
    assert_eq!(names(&agent.tools), ("Read|Grep".to_owned(), 4));
    assert_eq!(names(&agent.disallowed_tools), ("Bash".to_owned(), 5));
    let model = agent.model.as_ref().unwrap();
    assert_eq!((model.as_str(), model.line), ("opus", 6));
    let effort = agent.effort.as_ref().unwrap();
    assert_eq!((effort.to_string(), effort.line), ("high".to_owned(), 7));
    let mode = agent.permission_mode.as_ref().unwrap();
    assert_eq!((mode.as_str(), mode.line), ("dontAsk", 8));
    let servers = agent.mcp_servers.as_ref().unwrap();
    assert_eq!((&servers.value, servers.line), (&json(r#"["github"]"#), 9));
    assert_eq!(names(&agent.required_mcp_servers), ("git*|jira".to_owned(), 11));
    let hooks = agent.hooks.as_ref().unwrap();
    let expected = json(r#"{"Stop": [{"command": "x", "timeout": 5}]}"#);
    assert_eq!((&hooks.value, hooks.line), (&expected, 12));
    assert_eq!(names(&agent.skills), ("a|p:b".to_owned(), 16));
    let turns = agent.max_turns.as_ref().unwrap();
    assert_eq!((turns.get(), turns.line), (7, 17));
    let flags = [&agent.background, &agent.fork_context, &agent.omit_claude_md];
    let flags = flags.map(|flag| flag.as_ref().map(|it| (it.value, it.line)).unwrap());
    assert_eq!(flags, [(true, 18), (true, 23), (true, 24)]);
    let isolation = agent.isolation.as_ref().unwrap();
    assert_eq!((isolation.as_str(), isolation.line), ("worktree", 19));
    let memory = agent.memory.as_ref().unwrap();
    assert_eq!((memory.as_str(), memory.line), ("local", 20));
    let color = agent.color.as_ref().unwrap();
    assert_eq!((color.as_str(), color.line), ("cyan", 21));
    let first = agent.initial_prompt.as_ref().unwrap();
    assert_eq!((first.as_str(), first.line), ("/start now", 22));
    let reminder = agent.critical_reminder.as_ref().unwrap();
    assert_eq!((reminder.as_str(), reminder.line), ("Only read.", 25));
    assert_eq!((agent.prompt.as_str(), agent.prompt.line), ("You look.", 29));
    assert_eq!(agent.origin.source.as_str(), "projectSettings");
    assert_eq!(agent.origin.directory(), Some(Path::new("/p/.claude/agents")));
}

#[test]
fn tools_are_all_where_nothing_limits_them() {
    // S-006, S-083, S-084
    assert!(with("").definition.has_all_tools());
    assert!(with("tools: ['*']").definition.has_all_tools());
    assert!(with("tools: *").definition.has_all_tools());
    let all = with("tools: All tools");
    assert!(all.definition.has_all_tools());
    let advice = "`tools: All tools` is read as all tools; leave the key out";
    assert_eq!(problems(&all), [(4, advice)]);
    assert!(!with("tools: []").definition.has_all_tools());
    assert!(!with("tools: Read").definition.has_all_tools());
}

#[test]
fn unknown_tools_are_told_and_kept() {
    // D-50: an old name is none of them.
    let read = with("tools: read, Task(a, b), LS, mcp__x__*, search/files, Bash(git *)");
    let tools = &read.definition.tools.as_ref().unwrap().value;
    assert_eq!(tools.len(), 6);
    let expected = [
        (4, "there is no tool `read` in `tools`; write `Read`"),
        (4, "there is no tool `search/files`, which `tools` names"),
    ];
    assert_eq!(problems(&read), expected);
}

#[test]
fn models_are_aliases_or_full_ids() {
    // S-008, S-009, D-8
    let model = |value: &str| {
        let read = with(&format!("model: {value}"));
        let model = read.definition.model.as_ref().unwrap().value.clone();
        (model, read.problems.len())
    };
    let named = |name: &str| AgentModel::Named(name.to_owned());
    assert_eq!(model("fable"), (named("fable"), 0));
    assert_eq!(model("claude-opus-4-8"), (named("claude-opus-4-8"), 0));
    assert_eq!(model("gpt-4o"), (named("gpt-4o"), 0));
    assert_eq!(model("inherit"), (AgentModel::Inherit, 0));
    assert_eq!(model("Inherit"), (AgentModel::Inherit, 1));
    assert_eq!(model("Sonnet"), (named("sonnet"), 1));
    assert_eq!(model("banana"), (named("banana"), 1));
}

#[test]
fn effort_is_a_level_or_a_number() {
    // D-4
    let effort = |value: &str| {
        let read = with(&format!("effort: {value}"));
        (read.definition.effort.as_ref().map(|it| it.to_string()), read.problems.len())
    };
    assert_eq!(effort("xhigh"), (Some("xhigh".to_owned()), 0));
    assert_eq!(effort("12000"), (Some("12000".to_owned()), 0));
    assert_eq!(effort("normal"), (Some("medium".to_owned()), 1));
    assert_eq!(effort("huge"), (None, 1));
}

#[test]
fn a_value_that_cannot_be_used_is_left_out_and_the_agent_stays() {
    // S-015, S-016, S-022, S-036
    let cases = [
        ("isolation: remote", "there are no remote agents here; use worktree"),
        ("isolation: vm", "use worktree"),
        ("memory: global", "use user, project or local"),
        ("permissionMode: yolo", "use one of default, manual, acceptEdits"),
        ("maxTurns: 0", "use a whole number above zero"),
        ("maxTurns: many", "use a whole number above zero"),
        ("background: maybe", "must be true or false"),
        ("color: teal", "use one of red, blue, green"),
        ("hooks: [a]", "must be a map of events"),
        ("tools: {Read: true}", "must be a list of names"),
        ("initialPrompt: [a]", "must be text"),
        ("model: [a]", "must be one word"),
        ("tools:", "says nothing and counts as not there"),
    ];
    for (line, expected) in cases {
        let read = with(line);
        let [problem] = read.problems.as_slice() else { panic!("{line}: {:?}", read.problems) };
        assert_eq!(problem.line, Some(4), "{line}");
        assert!(problem.message.contains(expected), "{line}: {}", problem.message);
        let mut plain = with("").definition.as_ref().clone();
        plain.prompt = read.definition.prompt.clone();
        assert_eq!(*read.definition, plain, "{line}");
    }
}

#[test]
fn unknown_keys_and_near_misses_name_the_fix() {
    // D-45
    let cases = [
        ("allowed-tools: Read", "agents have `tools`; without it this one has all of them"),
        ("allowedTools: [Read]", "agents have `tools`; without it this one has all of them"),
        ("max_turns: 3", "write `maxTurns`"),
        ("Model: opus", "write `model`"),
        ("permission-mode: plan", "write `permissionMode`"),
        ("prompt: Do it", "the text below the frontmatter is the prompt"),
        ("descripton: x", "did you mean `description`?"),
        ("emoji: x", "`emoji` is unknown and ignored"),
    ];
    for (line, expected) in cases {
        let read = with(line);
        let [problem] = read.problems.as_slice() else { panic!("{line}: {:?}", read.problems) };
        assert!(problem.message.contains(expected), "{line}: {}", problem.message);
        assert_eq!(problem.to_string().split(": ").next(), Some("/p/.claude/agents/x.md:4"));
        assert_eq!(read.definition.prompt.as_str(), "prompt");
    }
    let many: Vec<_> = (0..30).map(|n| format!("zzzz{n}: 1")).collect();
    let read = with(&many.join("\n"));
    assert_eq!(read.problems.len(), 21);
    assert_eq!(read.problems[20].message, "10 more keys are unknown and ignored");
}

#[test]
fn servers_of_an_agent_can_be_read_by_who_starts_them() {
    // S-017, S-018
    let read = with("mcpServers:\n  - github\n  - own:\n      command: run\n      args: [-x, 1]");
    let expected = json(r#"["github", {"own": {"command": "run", "args": ["-x", 1]}}]"#);
    assert_eq!(read.definition.mcp_servers.as_ref().unwrap().value, expected);
    assert!(matches!(
        crate::frontmatter::Value::of_json(&expected, 1).shape,
        Shape::List(items) if items.len() == 2
    ));
}

mod of_json {
    use super::*;

    fn flag(text: &str) -> Result<Vec<ReadAgent>, String> {
        read_agents_flag(text, Path::new("/"), &vocabulary()).map_err(|error| error.to_string())
    }

    #[test]
    fn agents_on_the_command_line_have_the_same_fields() {
        // S-031, S-032, S-037, S-042
        let agents = flag(
            "{\n \"scout\": {\"description\": \"d\", \"prompt\": \"p\",\n  \"tools\": [\"Read\"], \
             \"maxTurns\": 3, \"background\": true,\n  \"hooks\": {\"Stop\": []}, \
             \"mcpServers\": {\"a\": null}, \"zzzzz\": 1}}",
        )
        .unwrap();
        let [agent] = agents.as_slice() else { panic!("{agents:?}") };
        let definition = &agent.definition;
        assert_eq!((definition.name.as_str(), definition.name.line), ("scout", 2));
        assert_eq!(definition.prompt.as_str(), "p");
        let tools = definition.tools.as_ref().unwrap();
        assert_eq!((tools.join(","), tools.line), ("Read".to_owned(), 3));
        assert_eq!(definition.max_turns.as_ref().unwrap().get(), 3);
        assert!(definition.background.as_ref().unwrap().value);
        let hooks = definition.hooks.as_ref().unwrap();
        assert_eq!((&hooks.value, hooks.line), (&json(r#"{"Stop": []}"#), 4));
        assert_eq!(definition.mcp_servers.as_ref().unwrap().value, json(r#"{"a": null}"#));
        assert_eq!(definition.origin.source, AgentSource::Flag);
        assert_eq!(problems(agent), [(4, "`zzzzz` is unknown and ignored")]);
    }

    #[test]
    fn all_that_is_wrong_is_told_at_once() {
        let error = flag(
            r#"{"a": {"prompt": "p"}, "b": {"description": "d", "prompt": 5, "memory": "x"},
                "c:d": {}, "e": 1, "f": {"description": "d", "prompt": "p"}}"#,
        )
        .unwrap_err();
        let expected = "--agents: a.description: must be text that is not empty\n\
                        b.prompt: must be text that is not empty\n\
                        b.memory: `memory: x` is ignored: use user, project or local\n\
                        c:d: the name contains `:`, which is kept for the agents of plugins\n\
                        e: must be an object";
        assert_eq!(error, expected);
        assert!(flag("{broken").unwrap_err().starts_with("--agents: the JSON is not valid JSON"));
        assert_eq!(flag("/no/such").unwrap_err(), "--agents: there is no file `/no/such`");
    }

    #[test]
    fn a_file_may_hold_them() {
        let scratch = tempfile::tempdir().unwrap();
        let text = r#"{"a": {"description": "d", "prompt": "p"}}"#;
        std::fs::write(scratch.path().join("agents.json"), text).unwrap();
        let agents = read_agents_flag("agents.json", scratch.path(), &vocabulary()).unwrap();
        assert_eq!(agents[0].definition.origin.path, scratch.path().join("agents.json"));
        std::fs::write(scratch.path().join("agents.json"), "[]").unwrap();
        let error = read_agents_flag("agents.json", scratch.path(), &vocabulary()).unwrap_err();
        assert_eq!(error.to_string(), "--agents: must be an object of agents by their names");
    }
}
