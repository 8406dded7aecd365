//! Edits of declarations: the text that is written, its file, and the text that stays.

use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::settings::Change;

const OURS: &str = "home/.centurion/.claude.json";

fn mode(machine: &Machine, path: &str) -> u32 {
    fs::metadata(machine.path(path)).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_server_comes_and_goes_and_all_else_stays_byte_for_byte() {
    let machine = Machine::trusted();
    let places = machine.places();
    let key = machine.project_key();
    let text = format!(
        "{{\r\n\t\"tips\" : [ 1,2 ],\r\n\t\"projects\": {{\r\n\t\t\"{key}\": {{ \"history\": [\"\\u00e4\"] }}\r\n\t}},\r\n\t\"mcpServers\": {{}}\r\n}}"
    );
    machine.write(OURS, &text);
    for target in [McpTarget::Local, McpTarget::User] {
        let file = places.add_server(target, "x", &command("run")).unwrap();
        assert_eq!(file, machine.path(OURS));
        let added = machine.read(OURS);
        assert!(added.contains("\"tips\" : [ 1,2 ]") && added.contains("[\"\\u00e4\"]"), "{added}");
        assert_eq!(machine.servers(), ["x run: active"]);
        let error = places.add_server(target, "x", &command("y")).unwrap_err().to_string();
        let place = format!("{}:", file.display());
        assert!(
            error.contains("there is a server `x` already") && error.contains(&place),
            "{error}"
        );
        assert_eq!(machine.read(OURS), added);
        places.remove_server(target, "x").unwrap();
        assert_eq!(machine.servers(), [""; 0]);
    }
    let kept = text.replace(
        "{ \"history\": [\"\\u00e4\"] }",
        "{ \"history\": [\"\\u00e4\"], \"mcpServers\": {} }",
    );
    assert_eq!(machine.read(OURS), kept, "only the object that held the server is left");
}

#[test]
fn new_files_are_the_owners_alone_unless_they_go_into_the_repository() {
    let machine = Machine::trusted();
    let places = machine.places();
    places.add_server(McpTarget::Local, "l", &command("l")).unwrap();
    places.add_server(McpTarget::Project, "p", &command("p")).unwrap();
    assert_eq!(mode(&machine, OURS), 0o600);
    machine.write("repo/usual", "");
    assert_eq!(mode(&machine, "repo/.mcp.json"), mode(&machine, "repo/usual"));
    assert_eq!(
        machine.read("repo/.mcp.json"),
        "{\n  \"mcpServers\": {\n    \"p\": {\n      \"command\": \"p\"\n    }\n  }\n}\n"
    );
    assert_eq!(machine.servers(), ["l l: active", "p p: active"]);
    assert!(!machine.path("home/.claude.json").exists());
}

#[test]
fn servers_at_the_top_of_a_file_stay_there() {
    let machine = Machine::trusted();
    let text = "{\n  \"a\": {\"command\": \"a\"}\n}\n";
    machine.write("repo/.mcp.json", text);
    let places = machine.places();
    places.add_server(McpTarget::Project, "b", &command("b")).unwrap();
    assert_eq!(machine.servers(), ["a a: active", "b b: active"]);
    assert!(places.add_server(McpTarget::Project, "a", &command("c")).is_err());
    places.remove_server(McpTarget::Project, "b").unwrap();
    assert_eq!(machine.read("repo/.mcp.json"), text);
    places.remove_server(McpTarget::Project, "a").unwrap();
    assert_eq!(machine.read("repo/.mcp.json"), "{}\n");
}

#[test]
fn a_server_is_removed_from_where_it_is_declared() {
    let machine = Machine::trusted();
    let near = "{\"x\": {\"command\": \"near\"}, \"x\": {\"command\": \"again\"}}";
    machine.write("repo/app/.mcp.json", near);
    machine.json("repo/.mcp.json", &json!({"x": command("root")}));
    let places = machine.places();
    assert_eq!(places.targets_of("x").unwrap(), [McpTarget::Project]);
    let file = places.remove_server(McpTarget::Project, "x").unwrap();
    assert_eq!(file, machine.path("repo/app/.mcp.json"));
    assert_eq!(machine.read("repo/app/.mcp.json"), "{}", "a name that stands there twice is gone");
    assert_eq!(machine.servers(), ["x root: active"]);
    let error = places.remove_server(McpTarget::User, "x").unwrap_err();
    assert!(matches!(error, McpEditError::Missing { .. }), "{error}");
    assert!(!machine.path(OURS).exists(), "nothing is made for what is not there");
}

#[test]
fn another_programs_file_is_not_written() {
    let machine = Machine::trusted();
    let text = json!({"mcpServers": {"x": command("x")}}).to_string();
    machine.write("home/.claude.json", &text);
    let places = machine.places();
    assert_eq!(places.targets_of("x").unwrap(), [McpTarget::User]);
    let error = places.remove_server(McpTarget::User, "x").unwrap_err().to_string();
    assert!(error.contains("another program's file") && error.contains("mcp disable x"), "{error}");
    assert_eq!(places.choose("x", McpChoice::Disabled).unwrap(), Change::Written);
    assert_eq!(machine.servers(), ["x x: disabled"]);
    assert_eq!(machine.read("home/.claude.json"), text);
}

#[test]
fn choices_are_kept_by_project_and_can_be_forgotten() {
    let machine = Machine::trusted();
    let places = machine.places();
    machine.json("repo/.mcp.json", &json!({"x": command("x"), "y": command("y")}));
    let start = machine.path("repo/app").display().to_string();
    machine
        .json(OURS, &json!({"a": 1, "projects": {&start: {"disabledMcpServers": ["x"], "b": 2}}}));
    assert_eq!(machine.servers(), ["x x: disabled", "y y: active"]);
    places.choose("x", McpChoice::Enabled).unwrap();
    assert_eq!(machine.servers(), ["x x: active", "y y: active"]);
    assert_eq!(places.choose("x", McpChoice::Enabled).unwrap(), Change::AlreadyThere);
    places.choose("x", McpChoice::Disabled).unwrap();
    assert_eq!(machine.servers()[0], "x x: disabled");
    places.choose("x", McpChoice::Unsaid).unwrap();
    assert_eq!(machine.servers()[0], "x x: active");
    places.choose("y", McpChoice::Disabled).unwrap();
    assert_eq!(machine.servers()[1], "y y: disabled");
    assert_eq!(places.forget_choices().unwrap(), Change::Written);
    assert_eq!(machine.servers(), ["x x: active", "y y: active"]);
    assert_eq!(places.forget_choices().unwrap(), Change::AlreadyThere);
    let value: Value = serde_json::from_str(&machine.read(OURS)).unwrap();
    assert_eq!((&value["a"], &value["projects"][&start]["b"]), (&json!(1), &json!(2)));
}

#[test]
fn a_file_that_is_not_understood_is_left_alone() {
    let machine = Machine::new();
    let places = machine.places();
    for (text, message) in [
        ("{\n\"a\": 1,\n}", ".claude.json:3: is not valid JSON"),
        ("{\n\"mcpServers\": []}", ".claude.json:2: `mcpServers` is no object"),
        ("[]", ".claude.json:1: `the file` is no object"),
    ] {
        machine.write(OURS, text);
        let error = places.add_server(McpTarget::User, "x", &command("x")).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
        assert_eq!(machine.read(OURS), text);
    }
    machine.write(
        OURS,
        format!(
            "{{\"projects\": {{\"{}\": {{\"disabledMcpServers\": 1}}}}}}",
            machine.project_key()
        ),
    );
    let error = places.choose("x", McpChoice::Disabled).unwrap_err().to_string();
    assert!(error.contains("`disabledMcpServers` is no list of texts"), "{error}");
    let error = places.add_server(McpTarget::User, "../x", &command("x")).unwrap_err().to_string();
    assert!(error.contains("its name may hold only"), "{error}");
}

#[test]
fn a_repositorys_link_is_not_written_through() {
    let machine = Machine::trusted();
    machine.write("elsewhere.json", "{}");
    std::os::unix::fs::symlink(machine.path("elsewhere.json"), machine.path("repo/.mcp.json"))
        .unwrap();
    let error = machine.places().add_server(McpTarget::Project, "x", &command("x")).unwrap_err();
    assert!(error.to_string().contains("reached through a link"), "{error}");
    assert_eq!(machine.read("elsewhere.json"), "{}");
}

#[test]
fn a_large_state_file_of_another_program_is_read_where_it_matters() {
    let machine = Machine::trusted();
    let history = vec!["\"[{,:}]\""; 500_000].join(",\n");
    let key = machine.project_key();
    machine.write(
        "home/.claude.json",
        format!("{{\"history\": [{history}],\n\"projects\": {{\"/other\": {{\"mcpServers\": {{\"no\": {{}}}}}}, \"{key}\": {{\"mcpServers\": {{\n\"x\": {{\"command\": \"x\"}}}}}}}}}}"),
    );
    let configuration = machine.load();
    assert_eq!(configuration.problems, []);
    assert_eq!(configuration.servers[0].server.origin.line, Some(500_002));
}
