//! A host's answer to a permission question.

use centurion_engine::{Remember, Reply};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PermissionResponse {
    behavior: String,
    updated_input: Option<Box<RawValue>>,
    #[serde(default)]
    updated_permissions: Vec<Value>,
    message: Option<String>,
    #[serde(default)]
    interrupt: bool,
}

/// Reads an answer to `can_use_tool`, from a host or from a tool that stands in for one.
pub fn reply(body: &Value) -> Reply {
    // By way of text, because a `Value` cannot be read into raw JSON.
    let parsed = to_raw_value(body)
        .ok()
        .and_then(|raw| serde_json::from_str::<PermissionResponse>(raw.get()).ok());
    match parsed {
        Some(PermissionResponse { behavior, updated_input, updated_permissions, .. })
            if behavior == "allow" =>
        {
            // A kind of change that this program does not know changes nothing.
            let remember = updated_permissions
                .into_iter()
                .filter_map(|update| serde_json::from_value(update).ok())
                .filter_map(Remember::from_update);
            Reply::Allowed { input: updated_input, remember: remember.collect() }
        }
        Some(PermissionResponse { message, interrupt, .. }) => {
            let reason = message.unwrap_or_else(|| "the user said no".to_owned());
            Reply::HostDenied { reason, interrupt }
        }
        None => Reply::HostDenied {
            reason: "the host's answer was not understood".to_owned(),
            interrupt: false,
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_clear_yes_is_a_yes() {
        let yes = json!({"behavior": "allow", "updatedInput": {"a": 1}});
        assert!(matches!(reply(&yes), Reply::Allowed { input: Some(_), .. }));
        for no in [
            json!({"behavior": "deny", "message": "no"}),
            json!({"behavior": "perhaps"}),
            json!({}),
            json!(null),
        ] {
            let reply = reply(&no);
            assert!(matches!(reply, Reply::HostDenied { .. }), "{no}");
        }
    }
}
