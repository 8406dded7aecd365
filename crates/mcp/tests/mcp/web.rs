//! A server on the net for tests: JSON-RPC over HTTP, as a function from messages to answers.

use centurion_testkit::{Recorded, Reply};
use serde_json::{Value, json};

/// The server's answer to a message; `None` for a notification.
pub(crate) fn answer(message: &Value) -> Option<Value> {
    let id = message.get("id")?;
    let params = &message["params"];
    let result = match message["method"].as_str()? {
        "initialize" => json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "tools": { "listChanged": true } },
            "serverInfo": { "name": "web", "version": "1" },
        }),
        "tools/list" => {
            json!({ "tools": [{ "name": "echo", "inputSchema": { "type": "object" } }] })
        }
        "tools/call" => {
            let text = params["arguments"].to_string();
            json!({ "content": [{ "type": "text", "text": text }] })
        }
        "ping" => json!({}),
        other => {
            let error = json!({ "code": -32601, "message": format!("{other} is unknown") });
            return Some(json!({ "jsonrpc": "2.0", "id": id, "error": error }));
        }
    };
    Some(json!({ "jsonrpc": "2.0", "id": id, "result": result }))
}

/// The same as an HTTP answer.
pub(crate) fn reply(request: &Recorded) -> Reply {
    if request.method != "POST" {
        return Reply::status(405);
    }
    match answer(&request.json()) {
        Some(answer) => {
            let reply = Reply::status(200).header("content-type", "application/json");
            reply.body(answer.to_string())
        }
        None => Reply::status(202),
    }
}
