//! `centurion mcp serve` for clients that know tasks: long calls continue after their answers.

use centurion_testkit::Reply;
use serde_json::{Value, json};

use crate::program::{Program, call, eventually};
use crate::serve::{Client, endless, failure, gone, process, success};
use crate::stage::Stage;

/// The capabilities of a client that knows tasks and can ask a person.
fn knows_tasks() -> Value {
    json!({"extensions": {"io.modelcontextprotocol/tasks": {}}, "elicitation": {"form": {}}})
}

/// Calls a tool; the request says that its client knows tasks.
fn call_with_tasks(client: &mut Client, tool: &str, arguments: &Value) -> Value {
    let meta = json!({
        "progressToken": "the call",
        "io.modelcontextprotocol/clientCapabilities": knows_tasks(),
    });
    let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
    client.ask("tools/call", &params)["result"].take()
}

/// Calls a tool whose call continues as a task; the id of the task.
fn begin(client: &mut Client, tool: &str, arguments: &Value) -> String {
    let result = call_with_tasks(client, tool, arguments);
    assert_eq!(result["resultType"], "task", "{result}");
    assert!(["working", "input_required"].contains(&result["status"].as_str().unwrap()));
    assert!(result["ttlMs"].is_null() && result["pollIntervalMs"].is_u64(), "{result}");
    for payload in ["result", "error", "inputRequests"] {
        assert!(result[payload].is_null(), "{result}");
    }
    result["taskId"].as_str().unwrap().to_owned()
}

fn look(client: &mut Client, task: &str) -> Value {
    let told = client.ask("tasks/get", &json!({"taskId": task}))["result"].take();
    assert_eq!(told["taskId"], task, "{told}");
    told
}

/// Looks until the task stands like this.
fn look_until(client: &mut Client, task: &str, status: &str) -> Value {
    eventually(status, || Some(look(client, task)).filter(|told| told["status"] == status))
}

/// The key of the only open question of a task, and the question.
fn question(told: &Value) -> (String, Value) {
    let open: Vec<_> = told["inputRequests"].as_object().unwrap().iter().collect();
    let [(key, question)] = open[..] else { panic!("{told}") };
    assert_eq!(question["method"], "elicitation/create", "{told}");
    (key.clone(), question["params"].clone())
}

fn reply(client: &mut Client, task: &str, key: &str, action: &str) {
    let answer = json!({key: {"action": action, "content": {}}});
    let told = client.ask("tasks/update", &json!({"taskId": task, "inputResponses": answer}));
    assert_eq!(told["result"], json!({"resultType": "complete"}), "{told}");
}

#[test]
fn an_agent_continues_as_a_task_that_says_what_it_does_and_asks() {
    let program = Program::answering([
        call("toolu_1", "Write", json!({"file_path": "b.txt", "content": "b"})),
        Reply::text("written"),
    ]);
    let mut client = Client::start_as(&program, &[], &knows_tasks());
    let task = begin(&mut client, "centurion", &json!({"prompt": "write b.txt"}));
    let (key, asked) = question(&look_until(&mut client, &task, "input_required"));
    assert!(asked["message"].as_str().unwrap().starts_with("May Write run?"), "{asked}");
    let says_what = |told: &Value| told["statusMessage"] == "Write";
    let again = eventually("a step", || Some(look(&mut client, &task)).filter(says_what));
    assert_eq!(question(&again).0, key, "a question stays until it is answered");
    reply(&mut client, &task, &key, "accept");
    let told = look_until(&mut client, &task, "completed");
    assert_eq!(success(&told["result"]), "written");
    assert_eq!(told["result"]["structuredContent"]["outcome"], "completed", "{told}");
    assert!(told["ttlMs"].as_u64().is_some(), "{told}");
    assert_eq!(program.scratch.read("b.txt"), "b");
    // An end stays, and nothing more is heard of the call.
    reply(&mut client, &task, &key, "decline");
    assert_eq!(look(&mut client, &task)["status"], "completed");
    let steps = client.heard.iter().filter(|it| it["method"] == "notifications/progress");
    assert_eq!(steps.count(), 0, "the call has its answer: progress is told by the task");
    assert_eq!(client.finish(), Some(0));
}

#[test]
fn a_tool_with_a_question_is_a_task_at_once_and_others_are_answered() {
    let program = Program::answering([]);
    program.scratch.write("a.txt", "here");
    let mut client =
        Client::start_as(&program, &["--allowedTools", "Bash(echo *)"], &knows_tasks());
    let read = call_with_tasks(&mut client, "Read", &json!({"file_path": "a.txt"}));
    assert!(success(&read).contains("here"));
    let said = call_with_tasks(&mut client, "Bash", &json!({"command": "echo hi"}));
    assert_eq!(success(&said).trim(), "hi");
    // Each call asks for itself, also while another one does.
    let ask = |client: &mut Client, file: &str| {
        let task = begin(client, "Bash", &json!({"command": format!("touch {file}")}));
        let (key, asked) = question(&look_until(client, &task, "input_required"));
        assert!(asked["message"].as_str().unwrap().contains(file), "{asked}");
        (task, key)
    };
    let (first, key) = ask(&mut client, "yes.txt");
    reply(&mut client, &first, &key, "accept");
    look_until(&mut client, &first, "completed");
    assert!(program.scratch.project().join("yes.txt").exists());
    let (second, key) = ask(&mut client, "no.txt");
    reply(&mut client, &second, &key, "decline");
    let told = look_until(&mut client, &second, "completed");
    assert!(failure(&told["result"]).contains("said no"), "{told}");
    assert!(!program.scratch.project().join("no.txt").exists());
    assert_eq!(client.finish(), Some(0));
}

#[test]
fn a_command_that_takes_long_becomes_a_task_and_keeps_its_result() {
    let program = Program::answering([]);
    let mut client = Client::start_as(&program, &["--allowedTools", "Bash"], &knows_tasks());
    let command = "until [ -e go ]; do sleep 0.01; done; echo went";
    let task = begin(&mut client, "Bash", &json!({"command": command}));
    assert_eq!(look(&mut client, &task)["status"], "working");
    program.scratch.write("go", "");
    let told = look_until(&mut client, &task, "completed");
    assert_eq!(success(&told["result"]).trim(), "went");
    assert_eq!(look(&mut client, &task)["result"], told["result"]);
    assert_eq!(client.finish(), Some(0));
}

#[test]
fn a_task_is_cancelled_with_all_that_it_started() {
    let program = Program::answering([call("toolu_1", "Bash", endless())]);
    let mut client = Client::start_as(&program, &["--allowedTools", "Bash"], &knows_tasks());
    let task = begin(&mut client, "centurion", &json!({"prompt": "go"}));
    let running = process(&program);
    for _ in 0..2 {
        let told = client.ask("tasks/cancel", &json!({"taskId": task}));
        assert_eq!(told["result"], json!({"resultType": "complete"}), "{told}");
    }
    gone(&running);
    let told = look_until(&mut client, &task, "cancelled");
    assert!(told["result"].is_null(), "{told}");
    assert_eq!(client.finish(), Some(0));
}

#[test]
fn tasks_end_with_the_server() {
    let program = Program::answering([call("toolu_1", "Bash", endless())]);
    let mut client = Client::start_as(&program, &["--allowedTools", "Bash"], &knows_tasks());
    begin(&mut client, "centurion", &json!({"prompt": "go"}));
    let running = process(&program);
    assert_eq!(client.finish(), Some(0));
    gone(&running);
}

#[test]
fn tasks_are_for_clients_that_know_them_and_for_no_others() {
    let program = Program::answering([Reply::text("fine"), Reply::text("fine, too")]);
    // Some clients declare for their session what they do not know of every request.
    let mut client = Client::start_as(&program, &[], &knows_tasks());
    assert_eq!(success(&client.call("centurion", &json!({"prompt": "go"}))), "fine");
    assert_eq!(client.finish(), Some(0));
    let mut client = Client::start_as(&program, &[], &json!({}));
    assert_eq!(success(&client.call("centurion", &json!({"prompt": "go"}))), "fine, too");
    for method in ["tasks/get", "tasks/cancel"] {
        let told = client.ask(method, &json!({"taskId": "any"}));
        assert_eq!(told["error"]["code"], -32021, "{told}");
        let needed = &told["error"]["data"]["requiredCapabilities"]["extensions"];
        assert!(needed["io.modelcontextprotocol/tasks"].is_object(), "{told}");
    }
    assert_eq!(client.finish(), Some(0));

    let mut client = Client::start_as(&program, &[], &knows_tasks());
    let nothing = json!({"taskId": "any", "inputResponses": {}});
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let told = client.ask(method, &nothing);
        assert_eq!(told["error"]["code"], -32602, "{told}");
    }
    assert_eq!(client.ask("tasks/list", &json!({}))["error"]["code"], -32601);
    assert_eq!(client.finish(), Some(0));
}

#[test]
fn our_own_client_follows_a_task_of_our_own_server_and_answers_its_question() {
    let write = json!({"tool": "Write", "input": {"file_path": "b.txt", "content": "b"}});
    let inner = json!({"tool": "mcp__inner__centurion", "input": {"prompt": "@@inside"}});
    let stage = Stage::new(&json!({
        "outside": [[inner], "outside heard: ${re:(written inside)}"],
        "inside": [[write], "written inside"],
    }));
    let server = json!({
        "command": env!("CARGO_BIN_EXE_centurion"),
        "args": ["mcp", "serve", "--model", stage.model()],
    });
    let servers = json!({"mcpServers": {"inner": server}}).to_string();
    let agree = json!({"hookSpecificOutput": {
        "hookEventName": "Elicitation", "action": "accept", "content": {},
    }});
    let hook = json!({"type": "command", "command": format!("cat > asked; echo '{agree}'")});
    let settings = json!({"hooks": {"Elicitation": [{"hooks": [hook]}]}}).to_string();
    let flags = ["--mcp-config", &servers, "--settings", &settings, "--allowedTools", "mcp__inner"];
    let told = stage.run("@@outside", &flags);
    told.assert_code(0);
    assert_eq!(told.of("result")[0]["result"], "outside heard: written inside");
    assert_eq!(stage.program.scratch.read("b.txt"), "b");
    assert!(stage.program.scratch.read("asked").contains("May Write run?"));
}

#[test]
fn a_task_is_found_by_its_id_in_its_own_server_and_by_nothing_else() {
    let program = Program::answering([]);
    let mut other = Client::start_as(&program, &[], &knows_tasks());
    let mut client = Client::start_as(&program, &[], &knows_tasks());
    let touch = json!({"command": "touch x"});
    let foreign = begin(&mut other, "Bash", &touch);
    let own = begin(&mut client, "Bash", &touch);
    let cut = own[..own.len() - 1].to_owned();
    let upper = own.to_uppercase();
    let long = "x".repeat(1 << 20);
    let ids = [
        foreign.as_str(),
        "../../etc/passwd",
        "/etc/passwd",
        "",
        " ",
        "*",
        "\u{0}",
        &cut,
        &long,
        &upper,
    ];
    for id in ids.into_iter().filter(|id| *id != own) {
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            let told = client.ask(method, &json!({"taskId": id, "inputResponses": {}}));
            assert_eq!(
                told["error"]["code"],
                -32602,
                "{method} {id:.40}: {:.200}",
                told.to_string()
            );
        }
    }
    for id in [json!(null), json!(7), json!([own]), json!({"id": own})] {
        let told = client.ask("tasks/cancel", &json!({"taskId": id}));
        assert!(told["error"].is_object(), "{told}");
    }
    // Answers that are none, and to what was not asked.
    let nonsense = json!({"../x": {"action": "accept"}, "question-99": "yes", "": null});
    client.ask("tasks/update", &json!({"taskId": own, "inputResponses": nonsense}));
    assert_eq!(look(&mut client, &own)["status"], "input_required", "its question is open");
    assert_eq!(look(&mut other, &foreign)["status"], "input_required", "nobody cancelled it");
    for client in [client, other] {
        assert_eq!(client.finish(), Some(0));
    }
}

#[test]
fn a_flood_of_tasks_is_refused_and_ends_with_the_server() {
    let program = Program::answering([]);
    let mut client = Client::start_as(&program, &[], &knows_tasks());
    let touch = json!({"command": "touch x"});
    let meta = json!({"io.modelcontextprotocol/clientCapabilities": knows_tasks()});
    let call = json!({"name": "Bash", "arguments": touch, "_meta": meta});
    // They take turns: the first one asks, and the others wait for it.
    let calls: Vec<u64> = (0..256).map(|_| client.request("tools/call", &call)).collect();
    let mut task = |id: u64| {
        let told = client.answer(id);
        told["result"]["taskId"].as_str().unwrap_or_else(|| panic!("{told}")).to_owned()
    };
    let tasks: Vec<String> = calls.into_iter().map(&mut task).collect();
    let told = client.ask("tools/call", &call);
    assert!(told["error"]["message"].to_string().contains("under way already"), "{told}");
    // One that is cancelled makes room for another.
    client.ask("tasks/cancel", &json!({"taskId": tasks[0]}));
    look_until(&mut client, &tasks[0], "cancelled");
    begin(&mut client, "Bash", &touch);
    assert_eq!(look(&mut client, &tasks[255])["status"], "working");
    assert_eq!(client.finish(), Some(0));
}
