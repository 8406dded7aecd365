//! Output of the program is as the SDK for TypeScript declares it: names, types and required fields.
//!
//! `declared.json` holds the declarations of the installed version. Every line that these tests read of the program is
//! checked against them, as are the answers to requests of hosts.

use std::process::Command;
use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use crate::components::{clients, python, script};

/// The declarations by their names.
pub(crate) static DECLARED: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("../declared.json")).unwrap());

/// Events of our own. Hosts of the protocol are shown none of them unless they ask.
const OWN: [&str; 3] = ["agent_waiting", "transcript_mirror", "command_lifecycle"];

fn definition(name: &str) -> &'static Value {
    let found = DECLARED["definitions"].get(name);
    found.unwrap_or_else(|| panic!("{name} is not declared"))
}

/// Checks a line that the program printed.
///
/// # Panics
/// If it is not as it is declared.
pub(crate) fn check(line: &Value) {
    let problems = problems_of(line);
    assert!(problems.is_empty(), "not as it is declared: {problems:#?}\n{line}");
}

/// Checks the answer to a host's request.
///
/// # Panics
/// If it is not as it is declared.
pub(crate) fn check_answer(request: &str, answer: &Value) {
    let name = match request {
        "initialize" => "SDKControlInitializeResponse",
        "interrupt" => "SDKControlInterruptResponse",
        "get_context_usage" => "SDKControlGetContextUsageResponse",
        "get_usage" => "SDKControlGetUsageResponse",
        "list_permission_rules" => "SDKControlListPermissionRulesResponse",
        "get_hooks_listing" => "SDKControlGetHooksListingResponse",
        "reload_plugins" => "SDKControlReloadPluginsResponse",
        "reload_skills" => "SDKControlReloadSkillsResponse",
        "reload_output_styles" => "SDKControlReloadOutputStylesResponse",
        "read_file" => "SDKControlReadFileResponse",
        "mcp_read_resource" => "SDKControlMcpReadResourceResponse",
        "get_task_output" => "SDKControlGetTaskOutputResponse",
        "mcp_set_servers" => "McpSetServersResult",
        "rewind_files" => "RewindFilesResult",
        // Lists: of these answers the parts are declared.
        "mcp_status" => "McpServerStatus",
        "list_models" => "ModelInfo",
        _ => return,
    };
    let mut problems = Vec::new();
    let response = &answer["response"];
    let parts = match request {
        "mcp_status" => response["mcpServers"].as_array(),
        "list_models" => response["models"].as_array(),
        _ => None,
    };
    match parts {
        _ if answer["subtype"] != "success" => {}
        Some(parts) => {
            for part in parts {
                compare(definition(name), part, request, &mut problems);
            }
        }
        None => compare(definition(name), response, request, &mut problems),
    }
    assert!(problems.is_empty(), "not as it is declared: {problems:#?}\n{answer}");
}

fn problems_of(line: &Value) -> Vec<String> {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (kind, subtype) = (word(&line["type"]), word(&line["subtype"]));
    let mut problems = Vec::new();
    if OWN.contains(&kind.as_str()) || OWN.contains(&subtype.as_str()) {
        return problems;
    }
    let (name, value, place) = match kind.as_str() {
        "control_request" => {
            let request = &line["request"];
            let name = match word(&request["subtype"]).as_str() {
                "can_use_tool" => "SDKControlPermissionRequest",
                "hook_callback" => "SDKHookCallbackRequest",
                "mcp_message" => "SDKControlMcpMessageRequest",
                "elicitation" => "SDKControlElicitationRequest",
                other => return vec![format!("no request {other} is declared")],
            };
            (name, request, "request")
        }
        "control_response" => {
            let line = with_text_id(line, "/response/request_id");
            compare(definition("SDKControlResponse"), &line, "line", &mut problems);
            return problems;
        }
        "control_cancel_request" => ("SDKControlCancelRequest", line, "line"),
        "keep_alive" => ("SDKKeepAliveMessage", line, "line"),
        "system" if subtype == "control_request_progress" => {
            let line = with_text_id(line, "/request_id");
            compare(definition("SDKControlRequestProgressMessage"), &line, "line", &mut problems);
            return problems;
        }
        _ => match event(&kind, &subtype, line["isReplay"] == true) {
            Some(name) => (name, line, "line"),
            None => return vec![format!("no event {kind} {subtype} is declared")],
        },
    };
    compare(definition(name), value, place, &mut problems);
    problems
}

/// The line with a text in the place of a number as the id of a request: declared are texts, and a host that counts gets its
/// numbers back.
fn with_text_id(line: &Value, place: &str) -> Value {
    let mut line = line.clone();
    if let Some(id) = line.pointer_mut(place).filter(|id| id.is_number()) {
        *id = json!("a number");
    }
    line
}

/// The declaration of the events of this type and subtype.
fn event(kind: &str, subtype: &str, is_replay: bool) -> Option<&'static str> {
    match (kind, subtype) {
        ("result", "success") => return Some("SDKResultSuccess"),
        ("result", _) => return Some("SDKResultError"),
        ("user", _) if is_replay => return Some("SDKUserMessageReplay"),
        ("active_goal", _) => return Some("SDKActiveGoalMessage"),
        _ => {}
    }
    let all = definition("SDKMessage")["anyOf"].as_array().unwrap();
    let mut names = all.iter().map(|it| named(it["$ref"].as_str().unwrap()));
    names.find(|name| {
        let fields = &definition(name)["properties"];
        fields["type"]["const"] == kind
            && fields["subtype"]["const"].as_str().unwrap_or_default() == subtype
    })
}

fn named(reference: &'static str) -> &'static str {
    reference.trim_start_matches("#/definitions/")
}

/// Adds what is wrong with a value to the problems.
fn compare(declared: &'static Value, value: &Value, place: &str, problems: &mut Vec<String>) {
    let Some(declared) = declared.as_object() else { return };
    if let Some(reference) = declared.get("$ref") {
        return compare(definition(named(reference.as_str().unwrap())), value, place, problems);
    }
    let mut wrong = |what: String| problems.push(format!("{place}: {what}"));
    if declared.get("const").is_some_and(|one| one != value) {
        wrong(format!("{value} instead of {}", declared["const"]));
    }
    let choices = declared.get("enum").and_then(Value::as_array);
    if choices.is_some_and(|choices| !choices.contains(value)) {
        wrong(format!("{value} is none of {}", declared["enum"]));
    }
    if declared.contains_key("not") && value.is_null() {
        wrong("null".to_owned());
    }
    if declared.get("type").is_some_and(|kind| kind != kind_of(value)) {
        return wrong(format!("{value} is no {}", declared["type"]));
    }
    if declared.contains_key("pattern") && !is_uuid(value.as_str().unwrap_or_default()) {
        wrong(format!("{value} is no id"));
    }
    for part in declared.get("allOf").and_then(Value::as_array).into_iter().flatten() {
        compare(part, value, place, problems);
    }
    compare_choices(declared, value, place, problems);
    compare_parts(declared, value, place, problems);
}

/// One of the choices has to fit; the problems are those of the choice that fits best.
fn compare_choices(
    declared: &'static Map<String, Value>,
    value: &Value,
    place: &str,
    problems: &mut Vec<String>,
) {
    let Some(choices) = declared.get("anyOf").and_then(Value::as_array) else { return };
    let tried = choices.iter().map(|choice| {
        let mut problems = Vec::new();
        compare(choice, value, place, &mut problems);
        problems
    });
    problems.extend(tried.min_by_key(Vec::len).unwrap_or_default());
}

fn compare_parts(
    declared: &'static Map<String, Value>,
    value: &Value,
    place: &str,
    problems: &mut Vec<String>,
) {
    if let (Some(items), Some(values)) = (declared.get("items"), value.as_array()) {
        for (n, value) in values.iter().enumerate() {
            compare(items, value, &format!("{place}[{n}]"), problems);
        }
    }
    let Some(fields) = value.as_object() else { return };
    for name in declared.get("required").and_then(Value::as_array).into_iter().flatten() {
        if !fields.contains_key(name.as_str().unwrap()) {
            problems.push(format!("{place}: {name} is missing"));
        }
    }
    let known = declared.get("properties").and_then(Value::as_object);
    for (name, value) in fields {
        let own = known.and_then(|known| known.get(name));
        if let Some(field) = own.or_else(|| declared.get("additionalProperties")) {
            compare(field, value, &format!("{place}.{name}"), problems);
        }
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn is_uuid(text: &str) -> bool {
    let groups: Vec<usize> = text.split('-').map(str::len).collect();
    groups == [8, 4, 4, 4, 12] && text.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

#[test]
fn the_declarations_are_those_of_the_installed_sdk() {
    let output =
        Command::new(python()).arg(script("declared_types.py")).arg(clients()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), include_str!("../declared.json"));
}

#[test]
fn an_event_that_is_not_as_declared_is_found() {
    let (id, session) =
        ("11111111-2222-4333-8444-555555555555", "66666666-2222-4333-8444-555555555555");
    let denied = json!({
        "type": "system", "subtype": "permission_denied", "tool_name": "Bash", "tool_use_id": "t",
        "message": "no", "uuid": id, "session_id": session,
    });
    assert_eq!(problems_of(&denied), Vec::<String>::new());
    for (field, value) in [
        ("tool_name", json!(null)),
        ("message", json!(7)),
        ("uuid", json!("x")),
        ("subtype", json!("permission_granted")),
        ("type", json!("sistem")),
    ] {
        let mut broken = denied.clone();
        broken[field] = value;
        assert_eq!(problems_of(&broken).len(), 1, "{broken}");
        broken.as_object_mut().unwrap().remove(field);
        assert_eq!(problems_of(&broken).len(), 1, "{broken}");
    }
    let status = json!({"type": "system", "subtype": "status", "status": "compacting", "uuid": id, "session_id": session});
    assert!(problems_of(&status).is_empty());
    let idle = json!({"type": "system", "subtype": "status", "status": "idle", "uuid": id, "session_id": session});
    assert_eq!(problems_of(&idle).len(), 1);
}
