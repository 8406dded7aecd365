//! Control requests of hosts: every one is answered, with what the program knows, or refused with a code.

use centurion_testkit::{Fault, Reply, sse};
use serde_json::{Value, json};

use crate::components::python_server;
use crate::host::{Host, control};
use crate::program::{Program, call};
use crate::real_servers::with;

#[test]
fn every_request_of_the_protocol_is_answered_and_nothing_hangs() {
    let program = Program::with_handler(|_| Reply::text("ok"));
    let mut host = Host::start(&program, &[]);
    // Requests that are answered: their meaning is tested where it is made.
    for request in [
        json!({"subtype": "initialize"}),
        json!({"subtype": "interrupt"}),
        json!({"subtype": "set_permission_mode", "mode": "default"}),
        json!({"subtype": "set_model", "model": "haiku"}),
        json!({"subtype": "set_max_thinking_tokens", "max_thinking_tokens": null}),
        json!({"subtype": "set_has_subscribers", "has_subscribers": false}),
        json!({"subtype": "rename_session", "title": "a name"}),
        json!({"subtype": "generate_session_title", "description": "work"}),
        json!({"subtype": "supported_commands"}),
        json!({"subtype": "reload_skills"}),
        json!({"subtype": "reload_plugins"}),
        json!({"subtype": "reload_output_styles"}),
        json!({"subtype": "list_models"}),
        json!({"subtype": "get_binary_version"}),
        json!({"subtype": "get_context_usage"}),
        json!({"subtype": "get_session_cost"}),
        json!({"subtype": "get_usage"}),
        json!({"subtype": "mcp_status"}),
        json!({"subtype": "mcp_set_servers", "servers": {}}),
        json!({"subtype": "cancel_async_message", "message_uuid": "7b5e1e6e-8d6c-4c54-9d0c-6a2b0f0b8f11"}),
        json!({"subtype": "stop_all_tasks"}),
        json!({"subtype": "set_color", "color": "default"}),
        json!({"subtype": "get_settings"}),
        json!({"subtype": "apply_flag_settings", "settings": {"effortLevel": "low"}}),
        json!({"subtype": "update_settings", "source": "userSettings", "settings": {"effortLevel": "high"}}),
        json!({"subtype": "list_permission_rules"}),
        json!({"subtype": "get_hooks_listing"}),
        json!({"subtype": "set_mcp_permission_mode_override", "serverName": "nobody", "mode": "auto"}),
        json!({"subtype": "background_tasks"}),
        json!({"subtype": "background_tasks", "tool_use_id": "toolu_9"}),
        json!({"subtype": "file_suggestions", "query": "x"}),
    ] {
        let answer = host.ask(&request);
        assert_eq!(answer["subtype"], "success", "{request}: {answer}");
        assert!(answer["response"].is_object(), "{request}: {answer}");
    }
    // Requests that cannot be carried out here and now, or not at all.
    for (request, code) in [
        (json!({"subtype": "set_permission_mode", "mode": "yolo"}), "invalid_request"),
        (
            json!({"subtype": "set_max_thinking_tokens", "max_thinking_tokens": "many"}),
            "invalid_request",
        ),
        (json!({"subtype": "mcp_reconnect", "serverName": "nobody"}), "invalid_request"),
        (
            json!({"subtype": "mcp_read_resource", "serverName": "nobody", "uri": "ui://a"}),
            "invalid_request",
        ),
        (json!({"subtype": "stop_task", "task_id": "nobody"}), "invalid_request"),
        (json!({"subtype": "get_task_output", "task_id": "nobody"}), "invalid_request"),
        (json!({"subtype": "set_color", "color": "mauve"}), "invalid_request"),
        (json!({"subtype": "read_file", "path": "missing.txt"}), "invalid_request"),
        (json!({"subtype": "read_file", "path": "/etc/shadow"}), "invalid_request"),
        (json!({"subtype": "seed_read_state", "path": "x", "mtime": -1}), "invalid_request"),
        (json!({"subtype": "register_repo_root", "directory": "/"}), "invalid_request"),
        (json!({"subtype": "mcp_call", "tool": "mcp__nobody__x"}), "invalid_request"),
        (json!({"subtype": "apply_flag_settings", "settings": {"model": 7}}), "invalid_request"),
        (json!({"subtype": "apply_flag_settings", "settings": {"agent": "x"}}), "invalid_request"),
        (
            json!({"subtype": "update_settings", "source": "localSettings", "settings": {"hooks": {}}}),
            "invalid_request",
        ),
        (json!({"subtype": "rewind_files", "user_message_id": "x"}), "invalid_request"),
        (json!({"subtype": "rename_session", "title": " \n"}), "invalid_request"),
        (
            json!({"subtype": "rename_session", "title": "a", "session_id": "another"}),
            "invalid_request",
        ),
        (json!({"subtype": "side_question", "question": "early?"}), "invalid_request"),
        (json!({"subtype": "teleport"}), "unsupported_request"),
    ] {
        let answer = host.ask(&request);
        assert_eq!((&answer["subtype"], &answer["error_code"]), (&json!("error"), &json!(code)));
        assert!(!answer["error"].as_str().unwrap().is_empty(), "{request}: {answer}");
    }
    assert_eq!(host.finish(), 0);
}

#[test]
fn a_host_is_told_how_models_are_reached_and_which_it_may_choose() {
    let program = Program::answering([]);
    let settings = json!({"availableModels": ["opus", "haiku"]});
    program.scratch.write_home(".claude/settings.json", settings.to_string());
    let mut host = Host::start(&program, &[]);
    let told = host.ask(&json!({"subtype": "initialize"}))["response"].clone();
    let account = json!({
        "apiProvider": "firstParty", "apiKeySource": "ANTHROPIC_API_KEY", "tokenSource": "none",
    });
    assert_eq!(told["account"], account);
    let models = told["models"].as_array().unwrap();
    let names: Vec<&Value> = models.iter().map(|model| &model["value"]).collect();
    assert_eq!(names, ["default", "opus", "haiku"]);
    let haiku = models.last().unwrap();
    assert_eq!(haiku["resolvedModel"], "claude-haiku-5-5");
    for model in models {
        assert!(!model["description"].as_str().unwrap().is_empty(), "{model}");
        assert!(model["supportedEffortLevels"].is_array() && model["supportsEffort"].is_boolean());
    }
    assert_eq!(host.ask(&json!({"subtype": "list_models"}))["response"]["models"], told["models"]);
    assert_eq!(host.finish(), 0);
}

#[test]
fn a_host_sees_what_fills_the_window_and_what_the_session_has_cost() {
    // A provider that counts about as we guess.
    let program = Program::with_handler(|request| {
        let usage = sse::usage(request.body.len() as u64 / 4, 0, 0, 5);
        Reply::events(sse::answer_with(&[sse::text("hello")], "end_turn", &usage))
    });
    let flags = with("py", &python_server());
    let mut host = Host::start(&program, &flags.iter().map(String::as_str).collect::<Vec<_>>());
    let usage =
        |host: &mut Host| host.ask(&json!({"subtype": "get_context_usage"}))["response"].clone();
    let before = usage(&mut host);
    host.say("hi");
    host.result();
    let first = usage(&mut host);
    let part = |usage: &Value, id: &str| {
        let all = usage["categories"].as_array().unwrap();
        all.iter().find(|part| part["id"] == id).unwrap()["tokens"].as_u64().unwrap()
    };
    let ids = ["system_prompt", "system_tools", "mcp_tools", "messages"];
    let sum: u64 = ids.iter().map(|id| part(&first, id)).sum();
    assert_eq!(first["totalTokens"], sum);
    let (window, buffer) =
        (first["maxTokens"].as_u64().unwrap(), part(&first, "autocompact_buffer"));
    assert_eq!(part(&first, "free_space"), window - buffer - sum);
    assert_eq!((&first["autoCompactThreshold"], buffer), (&json!(window - 33_000), 33_000));
    assert!(part(&first, "system_tools") > 0 && part(&first, "mcp_tools") > 0, "{first}");
    assert_eq!(part(&before, "system_prompt"), part(&first, "system_prompt"));
    let served = first["mcpTools"].as_array().unwrap();
    assert!(!served.is_empty() && served.iter().all(|tool| tool["serverName"] == "py"), "{first}");
    host.say(&"many words ".repeat(4000));
    host.result();
    assert!(part(&usage(&mut host), "messages") > part(&first, "messages") + 5000);
    let cost = host.ask(&json!({"subtype": "get_usage"}))["response"].clone();
    let models = cost["session"]["model_usage"].as_object().unwrap();
    assert_eq!(models.len(), 1, "{cost}");
    assert!(cost["session"]["total_cost_usd"].as_f64().unwrap() > 0.0, "{cost}");
    let text = host.ask(&json!({"subtype": "get_session_cost"}))["response"]["text"].clone();
    assert!(text.as_str().unwrap().starts_with("Total cost: $"), "{text}");
    assert_eq!(host.finish(), 0);
}

#[test]
fn a_host_sees_what_the_messages_consist_of() {
    let program = Program::answering([
        call("toolu_1", "Read", json!({"file_path": "a.txt"})),
        call("toolu_2", "Glob", json!({"pattern": "*.txt"})),
        Reply::text(&"x".repeat(4_000)),
    ]);
    program.scratch.write("a.txt", "many words\n".repeat(400));
    let mut host = Host::start(&program, &[]);
    let ask = json!({"subtype": "get_context_usage"});
    let before = host.ask(&ask)["response"].clone();
    assert!(before.get("messageBreakdown").is_none_or(Value::is_null), "{before}");
    host.say(&"look ".repeat(200));
    host.result();
    let told = host.ask(&ask)["response"]["messageBreakdown"].clone();
    let of = |field: &str| told[field].as_u64().unwrap();
    assert!(of("toolResultTokens") > 1_000 && of("userMessageTokens") >= 250, "{told}");
    assert!(of("toolCallTokens") > 10, "{told}");
    // The last request is shown: the answer to it is not in it yet.
    let tools = told["toolCallsByType"].as_array().unwrap();
    let [read, glob] = &tools[..] else { panic!("{told}") };
    assert_eq!((&read["name"], &glob["name"]), (&json!("Read"), &json!("Glob")));
    let sum = |field: &str| tools.iter().map(|tool| tool[field].as_u64().unwrap()).sum::<u64>();
    assert_eq!(sum("callTokens"), of("toolCallTokens"), "{told}");
    assert_eq!(sum("resultTokens"), of("toolResultTokens"), "{told}");
    assert_eq!(host.finish(), 0);
}

#[test]
fn a_host_takes_back_what_no_turn_has_taken() {
    let program = Program::answering([
        call(
            "toolu_1",
            "Bash",
            json!({"command": "touch started; until [ -e go ]; do sleep 0.01; done"}),
        ),
        Reply::text("done"),
    ]);
    let mut host = Host::start(&program, &["--allowedTools", "Bash"]);
    host.say("begin");
    program.server().wait_for(1);
    let id = "7b5e1e6e-8d6c-4c54-9d0c-6a2b0f0b8f11";
    let message = json!({"role": "user", "content": "never mind this"});
    host.send(&json!({"type": "user", "uuid": id, "message": message}));
    let take_back = json!({"subtype": "cancel_async_message", "message_uuid": id});
    assert_eq!(host.ask(&take_back)["response"], json!({"cancelled": true}));
    assert_eq!(host.ask(&take_back)["response"], json!({"cancelled": false}), "it is gone");
    program.scratch.write("go", "");
    assert_eq!(host.result()["result"], "done");
    assert!(!program.server().last().json().to_string().contains("never mind this"));
    assert_eq!(host.finish(), 0);
}

#[test]
fn an_interrupt_can_drop_what_waits() {
    let program = Program::answering([
        call("toolu_1", "Bash", json!({"command": "sleep 98853"})),
        Reply::text("afterwards"),
    ]);
    let mut host = Host::start(&program, &["--allowedTools", "Bash"]);
    host.say("begin");
    program.server().wait_for(1);
    let id = "7b5e1e6e-8d6c-4c54-9d0c-6a2b0f0b8f12";
    let message = json!({"role": "user", "content": "dropped"});
    host.send(&json!({"type": "user", "uuid": id, "message": message}));
    host.send(&control("i", &json!({"subtype": "interrupt", "cancel_queued": true})));
    let answer = host.until(|event| event["response"]["request_id"] == "i").pop().unwrap();
    let expected = json!({"still_queued": [], "cancelled": [id]});
    assert_eq!(answer["response"]["response"], expected);
    host.result();
    host.say("go on");
    assert_eq!(host.result()["result"], "afterwards");
    assert!(!program.server().last().json().to_string().contains("dropped"));
    host.finish();
}

#[test]
fn a_name_that_a_host_gives_is_in_the_list_of_sessions() {
    let program = Program::answering([Reply::text("ok")]);
    let mut host = Host::start(&program, &[]);
    assert_eq!(
        host.ask(&json!({"subtype": "rename_session", "title": "Mend the roof"}))["subtype"],
        "success"
    );
    host.say("hi");
    host.result();
    assert_eq!(host.finish(), 0);
    let listed = program.run(&["sessions"]).stdout;
    assert!(listed.contains("Mend the roof"), "{listed}");
}

#[test]
fn a_host_is_told_what_a_call_is_for_and_how_servers_are_reached_without_secrets() {
    let command = json!({"command": "touch x", "description": "Makes a file"});
    let program = Program::answering([call("toolu_1", "Bash", command), Reply::text("no")]);
    let server = json!({"type": "http", "url": "http://127.0.0.1:9/mcp", "headers": {"X-Key": "hidden-value"}});
    let config = json!({"mcpServers": {"far": server}}).to_string();
    let mut host =
        Host::start(&program, &["--permission-prompt-tool", "stdio", "--mcp-config", &config]);
    let status = host.ask(&json!({"subtype": "mcp_status"}))["response"]["mcpServers"][0].clone();
    let expected = json!({"type": "http", "url": "http://127.0.0.1:9/mcp"});
    assert_eq!(status["config"], expected);
    assert!(!status.to_string().contains("hidden-value"));
    host.say("go");
    let ask = host.until(|event| event["type"] == "control_request").pop().unwrap();
    assert_eq!(ask["request"]["description"], "Makes a file");
    let answer = json!({"behavior": "deny", "message": "no"});
    let response =
        json!({"subtype": "success", "request_id": ask["request_id"], "response": answer});
    host.send(&json!({"type": "control_response", "response": response}));
    assert_eq!(host.result()["result"], "no");
    assert_eq!(host.finish(), 0);
}

#[test]
fn plugins_are_read_again_with_all_their_parts() {
    let program = Program::with_handler(|_| Reply::text("ok"));
    let scratch = &program.scratch;
    let kit = scratch.root().join("kit");
    let write = |path: &str, text: &str| {
        let path = kit.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write(".claude-plugin/plugin.json", r#"{"name": "kit"}"#);
    let mark = scratch.root().join("mark");
    let mut host = Host::start(&program, &["--plugin-dir", kit.to_str().unwrap()]);
    host.say("one");
    host.result();
    // Everything that a plugin may have comes while the session runs.
    write("agents/scout.md", "---\nname: scout\ndescription: Scouts.\n---\nScout.\n");
    write("commands/ship.md", "---\ndescription: Ships\n---\nShip.\n");
    let command = json!({"type": "command", "command": format!("touch {}", mark.display())});
    let hooks = json!({"hooks": {"UserPromptSubmit": [{"hooks": [command]}]}});
    write("hooks/hooks.json", &hooks.to_string());
    let server = json!({"mcpServers": {"echo": {"command": "/nonexistent/server"}}});
    write(".mcp.json", &server.to_string());
    let names = |list: &Value| -> Vec<String> {
        let name = |it: &Value| it["name"].as_str().unwrap().to_owned();
        list.as_array().unwrap().iter().map(name).collect()
    };
    let has = |list: &Value, name: &str| names(list).iter().any(|it| it == name);
    let told = host.ask(&json!({"subtype": "reload_plugins"}))["response"].clone();
    assert!(has(&told["agents"], "kit:scout"), "{told}");
    assert!(has(&told["commands"], "kit:ship"), "{told}");
    assert!(has(&told["mcpServers"], "plugin:kit:echo"), "{told}");
    assert_eq!(
        (names(&told["plugins"]), &told["error_count"]),
        (vec!["kit".to_owned()], &json!(0))
    );
    host.say("two");
    let seen = host.until(|event| event["type"] == "result");
    assert!(mark.exists(), "the new hook ran");
    let init = seen.iter().find(|event| event["subtype"] == "init").unwrap();
    assert!(init["slash_commands"].to_string().contains("kit:ship"), "{init}");
    assert!(init["agents"].to_string().contains("kit:scout"), "{init}");
    // And goes.
    std::fs::remove_file(&mark).unwrap();
    for path in ["agents", "commands", "hooks"] {
        std::fs::remove_dir_all(kit.join(path)).unwrap();
    }
    std::fs::remove_file(kit.join(".mcp.json")).unwrap();
    let told = host.ask(&json!({"subtype": "reload_plugins"}))["response"].clone();
    assert!(!has(&told["agents"], "kit:scout") && !has(&told["commands"], "kit:ship"), "{told}");
    assert!(!has(&told["mcpServers"], "plugin:kit:echo"), "{told}");
    host.say("three");
    host.result();
    assert!(!mark.exists(), "the hook went with its plugin");
    assert_eq!(host.finish(), 0);
}

#[test]
fn a_question_says_which_path_server_and_kind_of_reason_it_is_about() {
    let outside = json!({"file_path": "/etc/hostname"});
    let program = Program::answering([
        call("toolu_1", "Read", outside),
        call("toolu_2", "mcp__py__note", json!({"text": "x"})),
        call("toolu_3", "Bash", json!({"command": "touch a b"})),
        Reply::text("done"),
    ]);
    let config = json!({"mcpServers": {"py": python_server()}}).to_string();
    let settings = json!({"permissions": {"ask": ["Bash(touch *)"]}});
    program.scratch.write_home(".claude/settings.json", settings.to_string());
    let flags = ["--permission-prompt-tool", "stdio", "--mcp-config", &config];
    let mut host = Host::start(&program, &flags);
    host.say("go");
    let rule = json!({"source": "userSettings", "tool_name": "Bash", "rule_content": "touch *"});
    for (tool, kind, path, server, rule) in [
        ("Read", "workingDir", json!("/etc/hostname"), json!(null), json!(null)),
        (
            "mcp__py__note",
            "other",
            json!(null),
            json!({"name": "py", "source": "dynamic"}),
            json!(null),
        ),
        ("Bash", "rule", json!(null), json!(null), rule),
    ] {
        let ask = host.until(|event| event["type"] == "control_request").pop().unwrap();
        let request = &ask["request"];
        assert_eq!(request["tool_name"], tool, "{request}");
        assert_eq!(request["decision_reason_type"], kind, "{request}");
        assert_eq!(request.get("blocked_path").unwrap_or(&json!(null)), &path, "{request}");
        assert_eq!(request.get("mcp_server").unwrap_or(&json!(null)), &server, "{request}");
        assert_eq!(request.get("matched_ask_rule").unwrap_or(&json!(null)), &rule, "{request}");
        let answer = json!({"behavior": "deny", "message": "no"});
        let response =
            json!({"subtype": "success", "request_id": ask["request_id"], "response": answer});
        host.send(&json!({"type": "control_response", "response": response}));
    }
    assert_eq!(host.result()["result"], "done");
    assert_eq!(host.finish(), 0);
}

#[test]
fn hooks_of_a_plugin_that_came_to_the_working_directory_wait_for_the_next_start() {
    let program = Program::with_handler(|_| Reply::text("ok"));
    let mark = program.scratch.root().join("mark");
    let settings = json!({"enabledPlugins": {"kit@skills-dir": true}});
    program.scratch.write_home(".claude/settings.json", settings.to_string());
    let mut host = Host::start(&program, &[]);
    host.say("one");
    host.result();
    let command = json!({"type": "command", "command": format!("touch {}", mark.display())});
    let hooks = json!({"hooks": {"UserPromptSubmit": [{"hooks": [command]}]}});
    program.scratch.write(".claude/skills/kit/.claude-plugin/plugin.json", r#"{"name": "kit"}"#);
    program.scratch.write(".claude/skills/kit/hooks/hooks.json", hooks.to_string());
    host.ask(&json!({"subtype": "reload_plugins"}));
    host.say("two");
    host.result();
    assert!(!mark.exists(), "what came meanwhile does not act");
    assert_eq!(host.finish(), 0);
}

#[test]
fn a_host_withdraws_a_request_and_is_told_so() {
    let program = Program::with_handler(|request| {
        let is_aside = request.json().to_string().contains("beside the work");
        let reply = Reply::text("ok");
        if is_aside { reply.fault(Fault::BlackHole) } else { reply }
    });
    let mut host = Host::start(&program, &[]);
    host.say("hi");
    host.result();
    host.send(&control("q", &json!({"subtype": "side_question", "question": "why?"})));
    program.server().wait_for(2);
    host.send(&json!({"type": "control_cancel_request", "request_id": "q"}));
    let answer = host.until(|event| event["response"]["request_id"] == "q").pop().unwrap();
    assert_eq!(answer["response"]["error_code"], "cancelled", "{answer}");
    host.say("still there?");
    assert_eq!(host.result()["result"], "ok");
    host.finish();
}

#[test]
fn settings_are_shown_without_the_values_of_variables() {
    let program = Program::answering([]);
    let settings =
        json!({"env": {"MY_TOKEN": "hidden-value"}, "permissions": {"deny": ["WebFetch"]}});
    program.scratch.write_home(".claude/settings.json", settings.to_string());
    let mut host = Host::start(&program, &[]);
    let told = host.ask(&json!({"subtype": "get_settings"}))["response"].clone();
    assert_eq!(told["effective"]["permissions"]["deny"], json!(["WebFetch"]), "{told}");
    assert_eq!(told["sources"][0]["source"], "userSettings", "{told}");
    assert!(told["effective"]["env"]["MY_TOKEN"].is_string());
    assert!(!told.to_string().contains("hidden-value"), "{told}");
    let rules = host.ask(&json!({"subtype": "list_permission_rules"}))["response"].clone();
    let rule = json!({
        "behavior": "deny", "source": "userSettings", "rule": "WebFetch", "editability": "persistent",
    });
    assert_eq!(rules["state"]["rules"], json!([rule]));
    assert_eq!(host.finish(), 0);
}

#[test]
fn a_host_calls_tools_and_reads_pages_of_servers_beside_the_conversation() {
    let program = Program::answering([Reply::text("ok")]);
    let flags = with("py", &python_server());
    let mut host = Host::start(&program, &flags.iter().map(String::as_str).collect::<Vec<_>>());
    host.say("go");
    host.result();
    let call = |more: Value| {
        let mut request =
            json!({"subtype": "mcp_call", "tool": "mcp__py__add", "arguments": {"a": 2, "b": 40}});
        request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        request
    };
    let done = host.ask(&call(json!({"timeout_ms": 30_000})));
    assert_eq!(done["response"]["content"], json!([{"type": "text", "text": "42"}]), "{done}");
    assert_eq!(done["response"]["isError"], false);
    let hang = json!({"tool": "mcp__py__hang", "arguments": {"mark": "0"}, "timeout_ms": 1});
    let late = host.ask(&call(hang));
    assert!(late["error"].as_str().unwrap().contains("within 1000 ms"), "{late}");
    for more in [
        json!({"check_permissions": "yes"}),
        json!({"input_files": [{"name": "a", "lane_path": "/a"}]}),
        json!({"expires_at": "2020-01-01T00:00:00Z"}),
        json!({"expires_at": "soon"}),
    ] {
        assert_eq!(
            host.ask(&call(more))["error_code"],
            "invalid_request",
            "it is not run unchecked or late"
        );
    }
    let in_time = host.ask(&call(json!({"expires_at": "2999-01-01T00:00:00+01:00"})));
    assert_eq!(in_time["response"]["isError"], false, "{in_time}");
    let page = json!({"subtype": "mcp_read_resource", "serverName": "py", "uri": "ui://panel"});
    let page = host.ask(&page);
    let content = json!([{"uri": "ui://panel", "mimeType": "text/html", "text": "<p>hello</p>"}]);
    assert_eq!(page["response"]["contents"], content, "{page}");
    assert_eq!(program.server().requests().len(), 1, "no model is asked");
    assert_eq!(host.finish(), 0);
}

#[test]
fn a_call_of_another_program_is_decided_about_as_the_agents_own_and_reaches_no_server_unless_it_may()
 {
    let program = Program::answering([Reply::text("ok")]);
    let settings = json!({
        "permissions": {"allow": ["mcp__py__add"], "deny": ["mcp__py__big"]},
        "hooks": {"PostToolUse": [{"matcher": "mcp__py__add", "hooks": [{
            "type": "command", "command": "cat >> \"$CLAUDE_PROJECT_DIR/seen\""}]}]},
    });
    program.scratch.write_home(".claude/settings.json", settings.to_string());
    let config = json!({"mcpServers": {"py": python_server()}}).to_string();
    let flags = ["--permission-prompt-tool", "stdio", "--mcp-config", &config];
    let mut host = Host::start(&program, &flags);
    host.say("go");
    host.result();
    let call = |id: &str, tool: &str, arguments: Value| {
        let request = json!({"subtype": "mcp_call", "tool": tool, "arguments": arguments,
                             "check_permissions": true});
        control(id, &request)
    };
    let answer = |host: &mut Host, id: &str| {
        let is_answer = |event: &Value| event["response"]["request_id"] == id;
        host.until(is_answer).pop().unwrap()["response"].clone()
    };
    // A rule allows it, and hooks see it.
    host.send(&call("c1", "mcp__py__add", json!({"a": 2, "b": 40})));
    let done = answer(&mut host, "c1");
    assert_eq!(done["response"]["content"], json!([{"type": "text", "text": "42"}]), "{done}");
    assert!(program.scratch.read("seen").contains("mcp__py__add"));
    // A rule denies it.
    host.send(&call("c2", "mcp__py__big", json!({"size": 10})));
    let denied = answer(&mut host, "c2");
    let told = denied["error"].as_str().unwrap();
    assert!(told.starts_with("The tool did not run: "), "{denied}");
    // The host is asked about the rest.
    for (id, behavior, is_kept) in [("c3", "deny", false), ("c4", "allow", true)] {
        let input = json!({"text": "x"});
        host.send(&call(id, "mcp__py__note", input.clone()));
        let is_ask = |event: &Value| event["request"]["subtype"] == "can_use_tool";
        let ask = host.until(is_ask).pop().unwrap();
        assert_eq!(ask["request"]["tool_name"], "mcp__py__note");
        let answered = json!({"behavior": behavior, "message": "no", "updatedInput": input});
        let id_of_ask = &ask["request_id"];
        let response = json!({"subtype": "success", "request_id": id_of_ask, "response": answered});
        host.send(&json!({"type": "control_response", "response": response}));
        let done = answer(&mut host, id);
        assert_eq!(done["subtype"] == "success", is_kept, "{done}");
        assert_eq!(program.scratch.project().join("note.txt").exists(), is_kept);
    }
    assert_eq!(program.server().requests().len(), 1, "no model is asked, and none is told");
    assert_eq!(host.finish(), 0);
}

#[test]
fn a_host_sees_the_instruction_files_and_agents_that_fill_the_window() {
    let program = Program::answering([Reply::text("ok")]);
    let instructions = program.scratch.write("CLAUDE.md", "Use tabs, and say so. ".repeat(20));
    program.scratch.write(
        ".claude/agents/helper.md",
        "---\nname: helper\ndescription: Helps with everything.\n---\nHelp.\n",
    );
    let mut host = Host::start(&program, &[]);
    host.say("go");
    host.result();
    let usage = host.ask(&json!({"subtype": "get_context_usage", "detail": "summary"}));
    let usage = &usage["response"];
    let file = &usage["memoryFiles"][0];
    let path = instructions.canonicalize().unwrap();
    assert_eq!((&file["path"], &file["type"]), (&json!(path), &json!("Project")), "{usage}");
    assert!(file["tokens"].as_u64().unwrap() > 100, "{file}");
    let [agent] = &usage["agents"].as_array().unwrap()[..] else { panic!("{usage}") };
    assert_eq!(
        (&agent["agentType"], &agent["source"]),
        (&json!("helper"), &json!("projectSettings"))
    );
    assert!(usage["apiUsage"]["output_tokens"].as_u64().unwrap() > 0, "{usage}");
    assert_eq!(host.finish(), 0);
}

#[test]
fn a_host_adds_a_plugin_unless_that_would_change_the_tools_of_a_conversation() {
    let program = Program::answering([Reply::text("ok"), Reply::text("ok")]);
    let kit = program.scratch.home().join("kit");
    std::fs::create_dir_all(kit.join(".claude-plugin")).unwrap();
    std::fs::create_dir_all(kit.join("agents")).unwrap();
    std::fs::write(kit.join(".claude-plugin/plugin.json"), r#"{"name": "kit"}"#).unwrap();
    let agent = "---\nname: smith\ndescription: Mends.\n---\nMend.\n";
    std::fs::write(kit.join("agents/smith.md"), agent).unwrap();
    let servers = json!({"mcpServers": {"py": python_server()}});
    std::fs::write(kit.join(".mcp.json"), servers.to_string()).unwrap();
    let mut host = Host::start(&program, &[]);
    host.say("go");
    host.result();
    let add = |more: Value| {
        let mut request = json!({
            "subtype": "reload_plugins", "add_plugins": [{"type": "local", "path": kit}],
        });
        request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        request
    };
    let held = host.ask(&add(json!({"hold_on_cache_impact": true})))["response"].clone();
    assert_eq!((&held["held"], &held["plugins"]), (&json!(true), &json!([])), "{held}");
    assert_eq!(held["cache_impact"]["mcp_servers_added"], json!(["plugin:kit:py"]));
    let plain = host.ask(&json!({"subtype": "reload_plugins"}))["response"].clone();
    assert_eq!(plain["plugins"], json!([]), "what was held has not joined");
    for (path, kind) in [("kit", "local"), ("/nowhere/at/all", "local"), ("/", "remote")] {
        let plugin = json!({"add_plugins": [{"type": kind, "path": path}]});
        assert_eq!(host.ask(&add(plugin))["error_code"], "invalid_request", "{path}");
    }
    let added = host.ask(&add(json!({})))["response"].clone();
    assert_eq!(added["plugins"][0]["name"], "kit", "{added}");
    assert!(added["agents"].as_array().unwrap().iter().any(|it| it["name"] == "kit:smith"));
    assert_eq!(added.get("held"), None);
    let again = json!({"subtype": "reload_plugins", "hold_on_cache_impact": true});
    let again = host.ask(&again)["response"].clone();
    assert_eq!(
        (&again["held"], &again["plugins"][0]["name"]),
        (&json!(false), &json!("kit")),
        "it stays"
    );
    host.say("more");
    let events = host.until(|event| event["type"] == "result");
    let init = events.iter().find(|event| event["subtype"] == "init").unwrap();
    assert!(init["tools"].to_string().contains("mcp__plugin_kit_py__add"), "{init}");
    assert_eq!(host.finish(), 0);
}

#[test]
fn a_question_says_what_a_host_may_offer_as_its_answer() {
    let program = Program::answering([
        Reply::blocks([sse::tool_use("toolu_1", "Bash", json!({"command": "rm -rf /"}))]),
        Reply::blocks([sse::tool_use("toolu_2", "Bash", json!({"command": "touch x"}))]),
        Reply::blocks([sse::tool_use(
            "toolu_3",
            "AskUserQuestion",
            json!({"questions": [{
                "question": "Which?", "header": "Which", "multiSelect": false,
                "options": [{"label": "a", "description": "a"}, {"label": "b", "description": "b"}],
            }]}),
        )]),
        Reply::text("done"),
    ]);
    let mut host = Host::start(&program, &["--permission-prompt-tool", "stdio"]);
    host.say("go");
    let fields = ["default_to_no", "suppress_always_allow_rule", "requires_user_interaction"];
    for expected in [[true, true, false], [false, false, false], [false, true, true]] {
        let ask = host.until(|event| event["type"] == "control_request").pop().unwrap();
        let said = fields.map(|field| ask["request"][field] == true);
        assert_eq!(said, expected, "{ask}");
        let answer = json!({"behavior": "deny", "message": "no"});
        let response =
            json!({"subtype": "success", "request_id": ask["request_id"], "response": answer});
        host.send(&json!({"type": "control_response", "response": response}));
    }
    assert_eq!(host.result()["result"], "done");
    assert_eq!(host.finish(), 0);
}

#[test]
fn a_model_that_cannot_be_is_refused_and_one_that_is_not_known_is_used_and_told_of() {
    // interop.md b: unknown names are passed through, and that is said
    let known = "is a model that is not known here";
    let program = Program::with_handler(|_| Reply::text("ok"));
    for (name, is_told) in [("claude-nova-9", true), ("claude-opus-4-6", false)] {
        let ended = program.run(&["-p", "hi", "--model", name]);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert_eq!(ended.stderr.contains(known), is_told, "{name}: {}", ended.stderr);
        assert_eq!(program.server().last().json()["model"], name);
    }
    let mut host = Host::start(&program, &[]);
    for bad in ["claude opus", "script:other.yaml", "openai:gpt-5", "a\u{1b}[31m"] {
        let refused = host.ask(&json!({"subtype": "set_model", "model": bad}));
        assert_eq!(refused["subtype"], "error", "{bad}: {refused}");
        let settings = json!({"subtype": "apply_flag_settings", "settings": {"model": bad}});
        let refused = host.ask(&settings);
        assert_eq!(refused["subtype"], "error", "{bad}: {refused}");
    }
    for (name, is_told) in [("claude-nova-9", true), ("sonnet", false)] {
        host.send(&control(name, &json!({"subtype": "set_model", "model": name})));
        let seen = host.until(|event| event["response"]["request_id"] == name);
        assert_eq!(seen.last().unwrap()["response"]["subtype"], "success", "{name}");
        let told = seen.iter().filter(|event| event["subtype"] == "informational");
        let is_it = |event: &Value| event["content"].as_str().unwrap().contains(known);
        assert_eq!(told.filter(|event| is_it(event)).count(), usize::from(is_told), "{name}");
    }
    host.say("go");
    assert_eq!(host.result()["is_error"], false);
    assert_eq!(program.server().last().json()["model"], "claude-sonnet-5-5");
    assert_eq!(host.finish(), 0);
}
