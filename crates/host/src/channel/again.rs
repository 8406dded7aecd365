//! A host that introduces itself again, after a gap in which it may have missed lines.

use serde_json::{Value, json};

use super::HostChannel;

/// The fields of the answer to `initialize` that list questions, each with the subtype of these.
const LISTED: [(&str, &str); 3] = [
    ("pending_permission_requests", "can_use_tool"),
    ("pending_user_dialog_requests", "request_user_dialog"),
    ("pending_elicitation_requests", "elicitation"),
];

impl HostChannel {
    /// Adds the questions that the host has not answered yet to the answer to `initialize`, as they were put.
    pub(crate) fn list_open_questions(&self, response: &mut Value) {
        for (field, subtype) in LISTED {
            let open = self.requests.open(subtype).into_iter();
            response[field] = open.map(|(_, line)| (*line).clone()).collect();
        }
    }

    /// Ends the waits for hooks of the host: the functions that it registers now need not be those that were called.
    /// What they guard does not continue.
    pub(crate) fn abandon_hooks(&self) {
        for (id, line) in self.requests.open("hook_callback") {
            self.send(&json!({"type": "control_cancel_request", "request_id": id}));
            let event = line["request"]["input"]["hook_event_name"].as_str().unwrap_or_default();
            // The hook may have been answered in this very moment.
            let _ = self.requests.respond(&id, abandoned(event));
        }
    }
}

/// The response in the place of that of a hook that is abandoned.
fn abandoned(event: &str) -> Value {
    const WHY: &str = "the host began anew before its hook answered";
    let output = match event {
        "PreToolUse" => json!({"hookSpecificOutput": {
            "hookEventName": event,
            "permissionDecision": "deny",
            "permissionDecisionReason": format!("{WHY}: call the tool again"),
        }}),
        "UserPromptSubmit" => {
            json!({"decision": "block", "reason": format!("{WHY}: send the prompt again")})
        }
        _ => return json!({"subtype": "error", "error": WHY}),
    };
    json!({"subtype": "success", "response": output})
}
