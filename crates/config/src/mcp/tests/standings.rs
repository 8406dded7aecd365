//! Servers that run, and the reasons why others do not.

use super::*;

fn everywhere(machine: &Machine) {
    let key = machine.project_key();
    machine
        .json("repo/.mcp.json", &json!({"mcpServers": {"x": command("project")}}))
        .json(
            "home/.centurion/.claude.json",
            &json!({"mcpServers": {"x": command("user")},
                    "projects": {key: {"mcpServers": {"x": command("local")}}}}),
        )
        .json("home/.claude.json", &json!({"mcpServers": {"x": command("other")}}));
}

#[test]
fn the_strongest_declaration_of_a_name_runs_and_the_others_are_listed() {
    let mut machine = Machine::trusted();
    everywhere(&machine);
    machine.flags = vec![McpFlag::Json(json!({"mcpServers": {"x": command("flag")}}).to_string())];
    assert_eq!(
        machine.servers(),
        [
            "x flag: active",
            "x local: shadowed",
            "x project: shadowed",
            "x user: shadowed",
            "x other: shadowed",
        ]
    );
    let configuration = machine.load();
    let words = configuration.servers[1].standing.to_string();
    assert_eq!(words, "shadowed: --mcp-config:1 (flag) has the same name");
    assert_eq!(configuration.find("x").unwrap().endpoint, "flag");
    assert_eq!(configuration.active().count(), 1);
    machine.flags.clear();
    assert_eq!(machine.servers()[0], "x local: active");
    assert_eq!(machine.problems(), [""; 0]);
}

#[test]
fn servers_know_their_file_and_line() {
    let machine = Machine::trusted();
    machine.write(
        "repo/.mcp.json",
        "{\n\"mcpServers\": {\n\"a\": {\"command\": \"a\"},\n\"b\":\n{\"command\": \"b\"}}}",
    );
    let servers = machine.load().servers;
    let places: Vec<_> = servers.iter().map(|it| it.server.origin.line).collect();
    assert_eq!(places, [Some(3), Some(5)]);
    let place = format!("{}:3 (project)", machine.path("repo/.mcp.json").display());
    assert_eq!(servers[0].server.origin.to_string(), place);
}

#[test]
fn a_project_has_files_from_the_start_directory_up_to_its_root() {
    let machine = Machine::trusted();
    machine
        .json(".mcp.json", &json!({"mcpServers": {"outside": command("no")}}))
        .json("repo/.mcp.json", &json!({"mcpServers": {"x": command("root"), "y": command("y")}}))
        .json("repo/app/.mcp.json", &json!({"x": command("near")}));
    assert_eq!(machine.servers(), ["x near: active", "x root: shadowed", "y y: active"]);
}

#[test]
fn servers_may_stand_at_the_top_of_a_file_too() {
    let mut machine = Machine::trusted();
    machine.json(
        "repo/.mcp.json",
        &json!({"$schema": "x", "a": command("a"), "b": {"type": "sse", "url": "https://h/"}}),
    );
    machine.json(
        "flag.json",
        &json!({"inputs": [], "c": command("c"), "mcpServers": {"d": command("d")}}),
    );
    machine.flags = vec![McpFlag::parse("flag.json", &machine.path("")).unwrap()];
    assert_eq!(
        machine.servers(),
        ["d d: active", "c c: active", "a a: active", "b https://h/: active"]
    );
    assert_eq!(machine.problems(), [""; 0]);
}

#[test]
fn a_repository_that_is_not_trusted_starts_nothing_and_hides_nothing() {
    let mut machine = Machine::new();
    everywhere(&machine);
    machine.write("home/.centurion/.claude.json", "{}");
    assert_eq!(machine.servers(), ["x project: untrusted", "x other: active"]);
    let words = machine.load().servers[0].standing.to_string();
    assert!(words.contains("`centurion trust grant`"), "{words}");
    machine.standing = RepositoryTrust::Partly;
    assert_eq!(machine.servers()[0], "x project: untrusted");
    machine.standing = RepositoryTrust::Full;
    assert_eq!(machine.servers(), ["x project: active", "x other: shadowed"]);
}

#[test]
fn the_users_own_word_starts_a_server_of_a_repository() {
    for settings in
        [json!({"enableAllProjectMcpServers": true}), json!({"enabledMcpjsonServers": ["x"]})]
    {
        let mut machine = Machine::new();
        machine.settings = Some(settings.clone());
        machine.json("repo/.mcp.json", &json!({"x": command("x"), "h": {"type": "http", "url": "https://h/", "headersHelper": "id"}}));
        assert_eq!(machine.servers(), ["x x: active", "h https://h/: untrusted"], "{settings}");
        // The repository's own word does not.
        machine.settings = None;
        machine.json("repo/app/.claude/settings.json", &settings);
        assert_eq!(machine.servers()[0], "x x: untrusted", "{settings}");
    }
    // A choice is of a name: what the repository has under it must be accepted, too.
    let machine = Machine::new();
    machine.json("repo/.mcp.json", &json!({"x": command("x")}));
    machine.json(
        "home/.centurion/.claude.json",
        &json!({"projects": {machine.project_key(): {"enabledMcpServers": ["x"]}}}),
    );
    assert_eq!(machine.servers(), ["x x: untrusted"]);
}

#[test]
fn where_each_server_is_asked_about_the_undecided_ones_wait() {
    let mut machine = Machine::trusted();
    machine.approval = McpApproval::EachServer;
    machine.settings =
        Some(json!({"enabledMcpjsonServers": ["yes"], "disabledMcpjsonServers": ["no"]}));
    machine.json(
        "repo/.mcp.json",
        &json!({"yes": command("y"), "no": command("n"), "x": command("x")}),
    );
    machine.json(
        "home/.claude.json",
        &json!({"mcpServers": {"no": command("mine"), "x": command("mine")}}),
    );
    assert_eq!(
        machine.servers(),
        ["yes y: active", "no n: disabled", "x x: pending", "no mine: active", "x mine: active"]
    );
    machine.standing = RepositoryTrust::Untrusted;
    assert_eq!(machine.servers()[2], "x x: untrusted");
}

#[test]
fn our_choices_count_before_another_programs() {
    let mut machine = Machine::new();
    let key = machine.project_key();
    let start = machine.path("repo/app").display().to_string();
    machine
        .json(
            "home/.claude.json",
            &json!({"mcpServers": {"a": command("a"), "b": command("b"), "c": command("c")},
                    "projects": {start: {"disabledMcpServers": ["a", "b"]}}}),
        )
        .json(
            "home/.centurion/.claude.json",
            &json!({"projects": {key: {"enabledMcpServers": ["a"], "disabledMcpServers": ["c"]}}}),
        );
    assert_eq!(machine.servers(), ["a a: active", "b b: disabled", "c c: disabled"]);
    let words = machine.load().find("c").unwrap().standing.to_string();
    assert!(words.contains(".centurion/.claude.json"), "{words}");
    // A server that is asked for in this very run is wanted.
    machine.flags = vec![McpFlag::Json(r#"{"c": {"command": "now"}}"#.to_owned())];
    assert_eq!(machine.servers()[0], "c now: active");
}

#[test]
fn strict_leaves_only_what_the_flags_say() {
    let mut machine = Machine::trusted();
    everywhere(&machine);
    machine.is_strict = true;
    machine.flags = vec![McpFlag::Json(json!({"f": command("f")}).to_string())];
    let servers = machine.servers();
    assert_eq!(servers[0], "f f: active");
    assert!(servers[1..].iter().all(|it| it.ends_with(": disabled")), "{servers:?}");
    assert_eq!(machine.load().active().count(), 1);
}

#[test]
fn a_managed_file_leaves_nothing_else_even_when_it_is_broken() {
    let mut machine = Machine::trusted();
    everywhere(&machine);
    machine.flags = vec![McpFlag::Json(json!({"f": command("f")}).to_string())];
    machine.json("etc/managed-mcp.json", &json!({"mcpServers": {"m": command("m")}}));
    let servers = machine.servers();
    assert_eq!((servers[0].as_str(), servers[1].as_str()), ("m m: active", "f f: denied"));
    assert_eq!(machine.load().active().count(), 1);
    machine.write("etc/managed-mcp.json", "{");
    assert_eq!(machine.load().active().count(), 0);
    assert_eq!(machine.problems().len(), 1);
}

#[test]
fn levels_that_are_not_wanted_are_not_read() {
    let mut machine = Machine::trusted();
    everywhere(&machine);
    machine.levels = LevelChoice { user: true, project: false, local: false };
    assert_eq!(machine.servers(), ["x user: active", "x other: shadowed"]);
    machine.levels = LevelChoice { user: false, project: true, local: false };
    assert_eq!(machine.servers(), ["x project: active"]);
}

#[test]
fn denied_servers_never_run_and_allowed_ones_are_those_on_the_list() {
    let servers = json!({"mcpServers": {
        "a": {"command": "npx", "args": ["-y", "a"]},
        "b": command("b"),
        "r": {"type": "http", "url": "https://mcp.example.com/x"},
        "s": {"type": "sse", "url": "https://evil.test/x"},
    }});
    for (settings, active) in [
        (json!({"deniedMcpServers": [{"serverName": "a"}]}), &["b", "r", "s"][..]),
        (json!({"deniedMcpServers": [{"serverCommand": ["npx", "-y", "a"]}]}), &["b", "r", "s"]),
        (json!({"deniedMcpServers": [{"serverUrl": "https://*.test/*"}, "b"]}), &["a", "r"]),
        (json!({"allowedMcpServers": []}), &[]),
        (json!({"allowedMcpServers": [{"serverName": "a"}, {"serverName": "r"}]}), &["a", "r"]),
        // A name does not vouch for a command if commands are listed.
        (
            json!({"allowedMcpServers": [{"serverName": "b"}, {"serverCommand": ["npx", "-y", "a"]}, {"serverName": "s"}]}),
            &["a", "s"],
        ),
        (
            json!({"allowedMcpServers": [{"serverName": "s"}, {"serverName": "b"}, {"serverUrl": "https://mcp.example.com/*"}]}),
            &["b", "r"],
        ),
        (
            json!({"allowedMcpServers": [{"serverName": "a"}], "deniedMcpServers": [{"serverName": "a"}]}),
            &[],
        ),
    ] {
        let mut machine = Machine::new();
        machine.json("home/.claude.json", &servers);
        machine.settings = Some(settings.clone());
        let configuration = machine.load();
        let names: Vec<_> = configuration.active().map(|it| it.name.as_str()).collect();
        assert_eq!(names, active, "{settings}");
        let denied = configuration.servers.iter().filter(|it| !it.standing.is_active());
        assert!(denied.clone().all(|it| it.standing.word() == "denied"));
    }
}

#[test]
fn an_administrator_alone_may_name_the_allowed_ones() {
    let mut machine = Machine::new();
    machine
        .json("home/.claude.json", &json!({"mcpServers": {"a": command("a"), "b": command("b")}}));
    machine.settings = Some(json!({"allowedMcpServers": [{"serverName": "b"}]}));
    machine.json("etc/managed-settings.json", &json!({"allowManagedMcpServersOnly": true}));
    assert_eq!(machine.servers(), ["a a: denied", "b b: denied"]);
    machine.json(
        "etc/managed-settings.json",
        &json!({"allowManagedMcpServersOnly": true, "allowedMcpServers": [{"serverName": "a"}, {"name": "b"}]}),
    );
    assert_eq!(machine.servers(), ["a a: active", "b b: denied"]);
    assert_eq!(machine.problems().len(), 1, "an item that is not understood is told");
    let configuration = machine.load();
    let own = McpServer { name: "z".to_owned(), ..configuration.servers[0].server.clone() };
    let standing = configuration.judge(&own);
    assert_eq!(standing.word(), "denied", "an agent's own servers are judged the same way");
}

#[test]
fn a_policy_of_plugins_alone_leaves_managed_servers_and_those_of_plugins() {
    // S-077
    let mut machine = Machine::trusted();
    everywhere(&machine);
    machine.flags = vec![McpFlag::Json(json!({"mcpServers": {"x": command("flag")}}).to_string())];
    machine.json("etc/managed-settings.json", &json!({"strictPluginOnlyCustomization": ["mcp"]}));
    let configuration = machine.load();
    assert_eq!((configuration.servers.len(), configuration.active().count()), (5, 0));
    let standing = configuration.find("x").unwrap().standing.to_string();
    let policy = machine.path("etc/managed-settings.json");
    assert_eq!(
        standing,
        format!(
            "denied: only managed servers and those of plugins run, {}:2 (managed)",
            policy.display()
        )
    );
    let server = |scope: McpScope| {
        let origin = McpOrigin { scope, ..configuration.servers[0].server.origin.clone() };
        McpServer { origin, ..configuration.servers[0].server.clone() }
    };
    let is_active = |scope| configuration.judge(&server(scope)).is_active();
    assert!(is_active(McpScope::Plugin("kit".to_owned())) && is_active(McpScope::Managed));
    assert!(!is_active(McpScope::Host) && !is_active(McpScope::Agent("kit:scout".to_owned())));
    // An agent's servers come from where the agent does.
    let own = server(McpScope::Agent("scout".to_owned()));
    for (source, runs) in [
        (AgentSource::BuiltIn, true),
        (AgentSource::Plugin, true),
        (AgentSource::Policy, true),
        (AgentSource::User, false),
        (AgentSource::Project, false),
        (AgentSource::Flag, false),
    ] {
        assert_eq!(configuration.judge_for(&own, source).is_active(), runs, "{source}");
    }
    // A server that is denied by name is denied to plugins, too.
    machine.json(
        "etc/managed-settings.json",
        &json!({"strictPluginOnlyCustomization": true, "deniedMcpServers": [{"serverName": "x"}]}),
    );
    let configuration = machine.load();
    let denied = configuration.judge_for(&own, AgentSource::Plugin);
    assert!(matches!(denied, McpStanding::Denied(McpDenial::Listed(_))), "{denied}");
    machine.json("etc/managed-settings.json", &json!({"strictPluginOnlyCustomization": ["hooks"]}));
    assert!(machine.load().judge_for(&own, AgentSource::User).is_active());
}
