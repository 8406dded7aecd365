//! Single entries: what they mean, and what is said about those that mean nothing.

use std::time::Duration;

use super::*;

fn parse(name: &str, value: &Value) -> ParsedServer {
    parse_in(McpScope::Flag, name, value)
}

fn parse_in(scope: McpScope, name: &str, value: &Value) -> ParsedServer {
    let env = Env::from([("TOKEN", "s3cret"), ("HOST", "h.example"), ("LINE", "a\r\nX: b")]);
    let known = BTreeMap::from([("CLAUDE_PLUGIN_ROOT".to_owned(), "/plugins/p".to_owned())]);
    let origin = McpOrigin { scope, file: None, line: None };
    parse_server(name, value, &origin, &McpVariables { env: &env, known: &known })
}

fn transport(value: &Value) -> McpTransport {
    let parsed = parse("x", value);
    assert_eq!(parsed.problems, [], "{value}");
    parsed.server.unwrap().transport
}

fn texts<const N: usize>(pairs: [(&str, &str); N]) -> BTreeMap<String, String> {
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[test]
fn every_transport_is_read_and_its_variables_are_expanded() {
    let stdio = transport(&json!({
        "command": "${CLAUDE_PLUGIN_ROOT}/run", "args": ["--token", "${TOKEN}", "${NONE:-d}"],
        "env": {"KEY": "${TOKEN}", "OTHER": ""},
    }));
    assert_eq!(
        stdio,
        McpTransport::Stdio {
            command: "/plugins/p/run".to_owned(),
            args: vec!["--token".to_owned(), "s3cret".to_owned(), "d".to_owned()],
            env: texts([("KEY", "s3cret"), ("OTHER", "")]),
        }
    );
    let remote = json!({
        "url": "https://${HOST}/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"},
        "headersHelper": "${CLAUDE_PLUGIN_ROOT}/h ${TOKEN}",
        "oauth": {"clientId": "c", "callbackPort": 8080, "scopes": "a b", "authServerMetadataUrl": "https://a/.well-known"},
    });
    let expected = McpRemote {
        url: "https://h.example/mcp".to_owned(),
        headers: texts([("Authorization", "Bearer s3cret")]),
        headers_helper: Some("/plugins/p/h ${TOKEN}".to_owned()),
        oauth: Some(McpOAuth {
            client_id: Some("c".to_owned()),
            callback_port: Some(8080),
            scopes: vec!["a".to_owned(), "b".to_owned()],
            auth_server_metadata_url: Some("https://a/.well-known".to_owned()),
        }),
    };
    for (kind, expected) in [
        ("http", McpTransport::Http(expected.clone())),
        ("streamable-http", McpTransport::Http(expected.clone())),
        ("sse", McpTransport::Sse(expected.clone())),
    ] {
        let mut value = remote.clone();
        value["type"] = json!(kind);
        assert_eq!(transport(&value), expected);
    }
    for sdk in [json!({"type": "sdk"}), json!({"type": "sdk", "name": "calls itself so"})] {
        assert_eq!(transport(&sdk), McpTransport::Sdk { name: "x".to_owned() });
    }
}

#[test]
fn the_rest_of_an_entry_counts_too() {
    let server = |value: &Value| parse("x", value).server.unwrap();
    let full = server(&json!({"command": "x", "timeout": 2500, "alwaysLoad": true, "env": null}));
    assert_eq!((full.timeout, full.always_load), (Some(Duration::from_millis(2500)), true));
    let bare = server(&json!({"type": "stdio", "command": "x"}));
    assert_eq!((bare.timeout, bare.always_load), (None, false));
    let plugin = parse_in(McpScope::Plugin("p".to_owned()), "s", &json!({"command": "x"}));
    assert_eq!(plugin.server.unwrap().name, "plugin:p:s");
}

#[test]
fn what_is_shown_is_what_was_written_and_holds_no_secret() {
    let stdio = parse("x", &json!({"command": "npx", "args": ["-y", "a b", "${TOKEN}"]}));
    assert_eq!(stdio.endpoint, "npx -y 'a b' ${TOKEN}");
    let value = json!({"type": "http", "url": "https://u:${TOKEN}@h/?k=${TOKEN}", "headers": {"A": "${TOKEN}"}});
    let http = parse("x", &value);
    assert_eq!(http.endpoint, "https://h/?…");
    let text = format!("{http:?} {stdio:?}");
    assert!(!text.contains("s3cret"), "{text}");
}

/// An entry that is left out, and a part of why.
#[test]
fn an_entry_that_is_not_what_was_asked_for_is_left_out() {
    let http = |extra: Value| {
        let mut value = json!({"type": "http", "url": "https://h/"});
        value.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        value
    };
    for (value, why) in [
        (json!([]), "must be an object, and is a list"),
        (json!({}), "neither a `command` nor a `url`"),
        (json!({"url": "https://h/"}), "add `\"type\": \"http\"`"),
        (json!({"type": "ws", "url": "wss://h/"}), "not supported; use `\"type\": \"http\"`"),
        (json!({"type": "htpp", "url": "https://h/"}), "perhaps `http` is meant"),
        (json!({"type": 1, "command": "x"}), "`type` must be text in quotes, and is a number"),
        (json!({"type": "stdio"}), "no `command`"),
        (json!({"command": " "}), "`command` is empty"),
        (json!({"command": ["x"]}), "`command` must be text in quotes, and is a list"),
        (json!({"command": "x", "args": "-y"}), "`args` must be a list of texts"),
        (json!({"command": "x", "args": ["a", 1]}), "`args[1]` must be text in quotes"),
        (json!({"command": "x", "env": {"A": 1}}), "`env.A` must be text in quotes"),
        (json!({"command": "x", "env": {"A=B": "x"}}), "a name that cannot be used"),
        (json!({"command": "x", "args": ["a\u{0}b"]}), "holds a NUL"),
        (json!({"command": "x", "timeout": "5"}), "`timeout` must be a whole number"),
        (json!({"command": "x", "alwaysLoad": 1}), "`alwaysLoad` must be true or false"),
        (json!({"type": "http"}), "no `url`"),
        (json!({"type": "http", "url": "file:///etc/passwd"}), "is no http:// or https:// address"),
        (json!({"type": "http", "url": "${NONE}/mcp"}), "needs the variable NONE"),
        (http(json!({"headers": {"A:B": "x"}})), "a name that cannot be used"),
        (http(json!({"headers": {"A": "${LINE}"}})), "holds the end of a line"),
        (http(json!({"headersHelper": true})), "`headersHelper` must be text"),
        (http(json!({"oauth": "x"})), "`oauth` must be an object"),
        (http(json!({"oauth": {"callbackPort": 70000}})), "a port from 1 to 65535"),
        (http(json!({"oauth": {"callbackPort": 0}})), "a port from 1 to 65535"),
        (http(json!({"oauth": {"scopes": [1]}})), "`oauth.scopes[0]` must be text"),
        (http(json!({"oauth": {"authServerMetadataUrl": "http://a/"}})), "is no https:// address"),
    ] {
        let parsed = parse("x", &value);
        assert_eq!(parsed.server, None, "{value}");
        let told: Vec<String> = parsed.problems.iter().map(ToString::to_string).collect();
        assert!(told.iter().any(|it| it.contains(why)), "{value}: {told:?}");
        assert!(told.iter().any(|it| it.contains("server `x` is left out")), "{told:?}");
        assert!(!told.concat().contains("s3cret"), "{told:?}");
    }
}

#[test]
fn what_does_no_harm_is_told_and_the_server_stays() {
    for (value, what) in [
        (json!({"command": "x", "comand": "y"}), "`comand` is no known key; perhaps `command`"),
        (json!({"command": "x", "zzzzzz": 1}), "`zzzzzz` is no known key"),
        (
            json!({"command": "x", "url": "https://h/"}),
            "`url` means nothing for a server of type `stdio`",
        ),
        (json!({"command": "x", "timeout": 999}), "less than 1000 ms, and does not count"),
        (json!({"command": "${NONE}/x"}), "`command` needs the variable NONE, which is not set"),
        (
            json!({"type": "http", "url": "https://h/", "oauth": {"clientID": "x"}}),
            "`clientID` is no known key; perhaps `clientId`",
        ),
    ] {
        let parsed = parse("x", &value);
        assert!(parsed.server.is_some(), "{value}");
        let told: Vec<String> = parsed.problems.iter().map(ToString::to_string).collect();
        assert!(told.len() == 1 && told[0].contains(what), "{value}: {told:?}");
    }
    let literal = parse("x", &json!({"command": "x", "args": ["${NONE}"]})).server.unwrap();
    let McpTransport::Stdio { args, .. } = literal.transport else { panic!() };
    assert_eq!(args, ["${NONE}"]);
}

#[test]
fn names_are_plain_and_not_taken() {
    for bad in
        ["", "a b", "a/b", "../x", "ä", "a:b", "a.b", "workspace", "Computer-Use", "Claude Preview"]
    {
        let parsed = parse(bad, &json!({"command": "x"}));
        assert_eq!((parsed.server, parsed.problems.len()), (None, 1), "{bad}");
    }
    let evil = parse("\u{1b}[2J\n", &json!({"command": "x"}));
    assert!(!evil.problems[0].message.contains('\u{1b}'));
    assert!(parse(&"a".repeat(64), &json!({"command": "x"})).server.is_some());
    let long = parse(&"a".repeat(100_000), &json!({"command": "x"}));
    assert!(long.server.is_none() && long.problems[0].message.len() < 300);
}

#[test]
fn only_a_host_offers_servers_of_its_own() {
    for scope in [McpScope::Project, McpScope::User, McpScope::Agent("a".to_owned())] {
        assert_eq!(parse_in(scope, "x", &json!({"type": "sdk", "name": "x"})).server, None);
    }
}

#[test]
fn problems_have_their_file_and_line() {
    let machine = Machine::trusted();
    machine.write(
        "repo/.mcp.json",
        "{\n \"mcpServers\": {\n  \"a\": {\n   \"command\": \"x\",\n   \"args\": 1\n  },\n  \"b\": {\"command\": \"x\"},\n  \"b\": {\"command\": \"y\"}\n }\n}",
    );
    machine.write("home/.claude.json", "{\n\"mcpServers\": [],\n\"projects\": {}}");
    machine.write("home/.centurion/.claude.json", "{\n\n\"a\": 1,}");
    assert_eq!(
        machine.problems(),
        [
            "home/.centurion/.claude.json:3: is not valid JSON: trailing comma (column 8)",
            "repo/.mcp.json:7: server `b` is written again further down, which counts instead",
            "home/.claude.json:2: `mcpServers` must be an object, and is a list",
            "repo/.mcp.json:5: server `a` is left out: `args` must be a list of texts, and is a number",
        ]
    );
    assert_eq!(machine.servers(), ["b y: active"]);
}

#[test]
fn a_file_of_something_else_is_told_briefly() {
    let machine = Machine::trusted();
    machine.write("repo/.mcp.json", vec![b' '; 2 * 1024 * 1024 + 1]);
    assert_eq!(machine.problems(), ["repo/.mcp.json: is larger than 2 MiB"]);
    machine.write("repo/.mcp.json", r#"{"mcpServer": {"x": {"command": "x"}}}"#);
    assert_eq!(
        machine.problems(),
        ["repo/.mcp.json:1: `mcpServer` is no known key; perhaps `mcpServers` is meant"]
    );
    let many: BTreeMap<String, Value> =
        (0..10_000).map(|it| (format!("s{it}"), json!(1))).collect();
    machine.json("repo/.mcp.json", &json!({ "mcpServers": many }));
    let problems = machine.problems();
    assert_eq!(problems.len(), 51);
    assert!(problems[50].ends_with("there is more that is wrong with it"));
    machine.write("repo/.mcp.json", "[]");
    assert_eq!(machine.problems(), ["repo/.mcp.json:1: must be an object, and is a list"]);
    fs::remove_file(machine.path("repo/.mcp.json")).unwrap();
    fs::create_dir(machine.path("repo/.mcp.json")).unwrap();
    assert_eq!(machine.problems(), ["repo/.mcp.json: is not a regular file"]);
}

#[test]
fn a_flag_that_cannot_be_read_is_refused() {
    let machine = Machine::new();
    machine.write("bad.json", "{\n\"a\": }");
    let error =
        |argument: &str| McpFlag::parse(argument, &machine.path("")).unwrap_err().to_string();
    assert!(error("none.json").contains("--mcp-config: there is no file"));
    assert!(error("bad.json").contains("bad.json line 2 is not valid JSON"));
    assert!(error("{\"a\": ").contains("the JSON line 1 is not valid JSON"));
    assert!(error(".").contains("is not a regular file"));
}
