//! The contents of a plugin's directory.

use std::os::unix::fs::symlink;

use serde_json::json;

use super::*;
use crate::mcp::McpTransport;
use crate::skills::{Invocation, Piece, expand};

#[test]
fn a_manifest_may_be_in_either_place_or_nowhere() {
    // S-066, S-069, S-076, S-078, S-080, D-24
    let machine = Machine::new();
    let agent = "---\nname: code-reviewer\ndescription: Reviews code.\n---\nReview.\n";
    let seed = r#"{"name": "my-plugin", "version": "1.0.0", "description": "Mine"}"#;
    machine.write("my-plugin/plugin.json", seed);
    machine.write("my-plugin/agents/code-reviewer.md", agent);
    machine.write("second/.claude-plugin/plugin.json", r#"{"name": "better"}"#);
    machine.write("second/plugin.json", r#"{"name": "worse"}"#);
    machine.write("second/agents/code-reviewer.md", agent);
    machine.write("bare/agents/quick.md", "---\ndescription: Quick.\n---\nBe quick.\n");
    let catalog = machine.load(&["my-plugin", "second", "bare"]);
    assert_eq!(said(&catalog), Vec::<String>::new());
    let expected = ["bare:quick", "better:code-reviewer", "my-plugin:code-reviewer"];
    assert_eq!(agent_names(&catalog), expected);
    let mine = catalog.find("my-plugin").unwrap();
    assert_eq!((mine.id.to_string().as_str(), &mine.power), ("my-plugin@inline", &Power::Full));
    assert_eq!(mine.manifest().version.as_deref(), Some("1.0.0"));
    assert_eq!(mine.manifest().description.as_deref(), Some("Mine"));
}

#[test]
fn agents_and_skills_add_to_the_usual_places_and_commands_take_theirs() {
    // S-067, S-068, S-071, S-072, D-25
    let machine = Machine::new();
    machine.plugin("kit", "kit", "1");
    let manifest = json!({
        "name": "kit", "agents": ["./more", "./one.md", "./agents/helper.md", "./none"],
        "skills": ["./extra", "./alone"], "commands": "./other",
    });
    machine.write("kit/.claude-plugin/plugin.json", manifest.to_string());
    let agent = "---\ndescription: d\n---\nx\n";
    for file in ["more/web/front.md", "one.md", "commands/unused.md", "other/used.md"] {
        machine.write(&format!("kit/{file}"), agent);
    }
    for skill in ["skills/s", "extra/e", "alone"] {
        machine.write(&format!("kit/{skill}/SKILL.md"), "---\ndescription: d\n---\nx\n");
    }
    let catalog = machine.load(&["kit"]);
    assert_eq!(agent_names(&catalog), ["kit:helper", "kit:one", "kit:web:front"]);
    let skills = skills(&catalog);
    let names: Vec<_> = skills.active.iter().map(|skill| skill.name.as_str()).collect();
    assert_eq!(names, ["kit:alone", "kit:e", "kit:s", "kit:used"]);
    let file = machine.path("kit/.claude-plugin/plugin.json");
    assert_eq!(said(&catalog), [format!("{}:1: there is nothing at `./none`", file.display())]);
}

#[test]
fn nothing_of_a_plugin_lies_outside_of_it() {
    let machine = Machine::new();
    machine.plugin("kit", "kit", "1");
    machine.write("secret.md", "---\nname: secret\ndescription: s\n---\nx\n");
    machine.write("secret.json", r#"{"Stop": []}"#);
    let manifest = json!({
        "name": "kit", "agents": ["../secret.md", "/etc", "./agents/../../secret.md", "./link.md"],
        "skills": "../", "commands": ["./up"], "hooks": "../secret.json",
        "mcpServers": ["/secret.json", "./link.json"],
    });
    machine.write("kit/.claude-plugin/plugin.json", manifest.to_string());
    for (target, link) in [
        ("secret.md", "kit/link.md"),
        ("secret.md", "kit/agents/inner.md"),
        ("secret.json", "kit/link.json"),
        ("secret.json", "kit/.mcp.json"),
        ("repo", "kit/up"),
    ] {
        symlink(machine.path(target), machine.path(link)).unwrap();
    }
    let catalog = machine.load(&["kit"]);
    let plugin = catalog.find("kit").unwrap();
    assert!(plugin.hooks().is_empty() && plugin.servers(&Env::default()).is_empty());
    assert_eq!(agent_names(&catalog), ["kit:helper"]);
    assert_eq!(agents(&catalog).failed.len(), 1, "the link among its agents");
    let said = said(&catalog);
    let count = |part: &str| said.iter().filter(|it| it.contains(part)).count();
    assert_eq!(
        (count("leads out of"), count("is absolute"), count("is a link that leads out")),
        (8, 2, 4),
        "{said:?}"
    );
}

#[test]
fn hooks_come_from_files_and_from_the_manifest_each_once() {
    let machine = Machine::new();
    machine.plugin("kit", "kit", "1");
    let manifest = "{\"name\": \"kit\", \"hooks\": [\"./hooks/hooks.json\", \"./more.json\",\n\
                    {\"Stop\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"x\"}]}]}]}";
    machine.write("kit/.claude-plugin/plugin.json", manifest);
    machine.write("kit/hooks/hooks.json", "{\"hooks\": {\n\"Stop\": [{\n\"hooks\": []}]}}");
    let command = "${user_config.key} ${CLAUDE_PLUGIN_ROOT}";
    let more =
        json!({"Stop": [{"hooks": [{"command": command}, {"command": command, "args": []}]}]});
    machine.write("kit/more.json", more.to_string());
    let catalog = machine.load(&["kit"]);
    let plugin = catalog.find("kit").unwrap();
    let places: Vec<_> = plugin.hooks().iter().map(|it| (it.file.clone(), it.line)).collect();
    let expected =
        [("kit/hooks/hooks.json", 1), ("kit/more.json", 1), ("kit/.claude-plugin/plugin.json", 2)];
    assert_eq!(places, expected.map(|(path, line)| (machine.path(path), line)));
    assert_eq!(plugin.hooks()[0].lines.line("/hooks/Stop/0/hooks"), Some(3));
    assert_eq!(plugin.hooks()[1].value, more, "whoever runs hooks knows their variables");
    let said = said(&catalog);
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("more.json:1: a command for a shell cannot hold"), "{said:?}");
}

#[test]
fn servers_are_declared_at_the_top_or_under_their_key() {
    let machine = Machine::new();
    machine.plugin("kit", "kit", "1");
    let manifest = json!({
        "name": "kit", "userConfig": {"host": {"type": "string"}, "port": {"type": "number", "default": 80}},
        "mcpServers": {
            "far": {"type": "http", "url": "https://${user_config.host}:${user_config.port}/",
                    "headers": {"X-Root": "${CLAUDE_PLUGIN_ROOT}", "X-Env": "${TOKEN}"}},
            "near": {"command": "second"},
            "shell": {"type": "http", "url": "https://h/", "headersHelper": "get ${user_config.host}"},
        },
    });
    machine.write("kit/.claude-plugin/plugin.json", manifest.to_string());
    let near = json!({"near": {"command": "${CLAUDE_PLUGIN_ROOT}/run", "args": ["${CLAUDE_PROJECT_DIR}"],
                               "env": {"D": "${CLAUDE_PLUGIN_DATA}"}}});
    machine.write("kit/.mcp.json", near.to_string());
    let config = json!({"pluginConfigs": {"kit@inline": {"options": {"host": "h.example"}}}});
    machine.write("home/.claude/settings.json", config.to_string());
    let project = json!({"pluginConfigs": {"kit@inline": {"options": {"host": "evil"}}}});
    machine.write("repo/.claude/settings.json", project.to_string());
    let catalog = machine.load_as(RepositoryTrust::Full, &["kit"]);
    let plugin = catalog.find("kit").unwrap();
    let env = Env::from([("TOKEN", "t")]);
    let servers: Vec<_> = plugin.servers(&env).into_iter().map(|it| it.server.unwrap()).collect();
    let names: Vec<_> = servers.iter().map(|server| server.name.as_str()).collect();
    assert_eq!(names, ["plugin:kit:near", "plugin:kit:far"]);
    let root = machine.path("kit").display().to_string();
    let data = machine.path("home/.centurion/plugins/data/kit-inline");
    let McpTransport::Stdio { command, args, env } = &servers[0].transport else { panic!() };
    assert_eq!(*command, format!("{root}/run"));
    assert_eq!(*args, [machine.path("repo").display().to_string()]);
    let data_text = data.display().to_string();
    assert_eq!((&env["D"], &env["CLAUDE_PLUGIN_DATA"]), (&data_text, &data_text));
    assert_eq!(env["CLAUDE_PLUGIN_ROOT"], root);
    let remote = servers[1].transport.remote().unwrap();
    assert_eq!(remote.url, "https://h.example:80/");
    assert_eq!((&remote.headers["X-Root"], remote.headers["X-Env"].as_str()), (&root, "t"));
    let said = said(&catalog);
    assert!(said.iter().any(|it| it.contains("server `near` is declared before")), "{said:?}");
    assert!(
        said.iter().any(|it| it.contains("server `shell` is left out: a shell runs")),
        "{said:?}"
    );
    assert!(!data.exists());
    plugin.make_data_dir().unwrap();
    assert!(data.is_dir());
}

#[test]
fn variables_stand_in_the_texts_of_agents_and_skills() {
    let machine = Machine::new();
    machine.plugin("kit", "kit", "1");
    machine.write(
        "kit/agents/helper.md",
        "---\ndescription: d\nhooks:\n  Stop:\n    - command: ${CLAUDE_PLUGIN_ROOT}/x ${CLAUDE_PROJECT_DIR}\n\
         mcpServers:\n  - s: {command: \"${CLAUDE_PLUGIN_ROOT}/s\"}\n---\nIn ${CLAUDE_PLUGIN_ROOT} and ${HOME}.\n",
    );
    machine.write(
        "kit/skills/s/SKILL.md",
        "---\nallowed-tools: Bash(${CLAUDE_PLUGIN_ROOT}/run *)\n---\nKeep it in ${CLAUDE_PLUGIN_DATA}.\n",
    );
    let catalog = machine.load(&["kit"]);
    let root = machine.path("kit").display().to_string();
    let agents = agents(&catalog);
    let agent = &agents.find("kit:helper").unwrap().definition;
    assert_eq!(agent.prompt.value, format!("In {root} and ${{HOME}}."));
    let hooks = agent.hooks.as_ref().unwrap().value.to_string();
    assert!(hooks.contains(&format!("{root}/x ${{CLAUDE_PROJECT_DIR}}")), "{hooks}");
    assert_eq!(agent.mcp_servers.as_ref().unwrap().value[0]["s"]["command"], format!("{root}/s"));
    let skill = skill(&skills(&catalog), "kit:s");
    let data = machine.path("home/.centurion/plugins/data/kit-inline");
    let invocation = Invocation {
        arguments: "",
        project_dir: Path::new("/repo"),
        session: SystemWorld.session_id(),
        effort: None,
    };
    let expanded = expand(&skill.template(), &invocation).unwrap();
    let [Piece::Text(filled)] = expanded.pieces.as_slice() else { panic!("{expanded:?}") };
    assert_eq!(filled.text, format!("Keep it in {}.", data.display()));
    let rule = &skill.allowed_tools.as_ref().unwrap().value[0];
    let filled = skill.fill_rule(rule, Path::new("/repo"));
    assert_eq!(filled, Ok(format!("Bash({root}/run *)")));
}

#[test]
fn a_plugin_may_name_the_agent_of_the_main_conversation() {
    let machine = Machine::new();
    machine.plugin("kit", "kit", "1");
    let manifest = json!({"name": "kit", "settings": {"agent": "first"}});
    machine.write("kit/.claude-plugin/plugin.json", manifest.to_string());
    let named = || {
        let catalog = machine.load(&["kit"]);
        let agent = catalog.find("kit").unwrap().main_agent().unwrap();
        (agent.name.clone(), agent.line, said(&catalog))
    };
    assert_eq!(named(), ("first".to_owned(), 1, Vec::new()));
    machine.write("kit/settings.json", "{\n\"agent\": \"helper\",\n\"model\": \"opus\"}");
    let (name, line, said) = named();
    assert_eq!((name.as_str(), line), ("helper", 2));
    assert!(said[0].contains("settings.json:3: `model` does nothing"), "{said:?}");
}
