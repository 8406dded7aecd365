//! Messages to the user's other sessions: `uds:` and an id or a socket.

use centurion_permissions::Access;
use centurion_team::peers::{Outgoing, PeerAddress, SCHEME, SendError};
use centurion_tools::{ToolError, ToolOutput};
use serde_json::{Value, json};

use super::receipt;
use crate::agent::shared::Shared;

/// The prefix of addresses of sessions on other machines.
const BRIDGE: &str = "bridge:";

/// Tells whether a message is for another session.
pub(super) fn is_peer(to: &str) -> bool {
    to.starts_with(SCHEME) || to.starts_with(BRIDGE)
}

/// Speaking to another session acts outside of this one: the user is asked unless a rule allows it.
pub(super) fn access(to: &str) -> Access {
    if to.trim().starts_with(SCHEME) {
        return Access::External { only_reads: false };
    }
    Access::Session
}

/// Sends a text to another session. The receipt is given after that one has written it down.
pub(super) async fn send(
    shared: &Shared,
    to: &str,
    message: &Value,
    summary: &str,
) -> Result<ToolOutput, ToolError> {
    if to.starts_with(BRIDGE) {
        let reason = "sessions on other machines cannot be reached: no cluster is configured";
        return Err(ToolError::Input(reason.to_owned()));
    }
    let Value::String(text) = message else {
        let reason = "another session takes plain text only: send text";
        return Err(ToolError::Input(reason.to_owned()));
    };
    let address: PeerAddress =
        to.parse().map_err(|error| ToolError::Input(format!("{error}; ListAgents lists them")))?;
    let Some(peers) = &shared.delegation.peers else {
        return Err(ToolError::Input("this session reaches no other sessions".to_owned()));
    };
    if peers.is_own(&address) {
        return Err(ToolError::Input("this is your own session: speak to another".to_owned()));
    }
    let message = Outgoing::new(shared.world.record_id(), text.clone());
    let (status, text) = match peers.send(&address, &message).await {
        Ok(()) => {
            let text = format!("The session {to} has your message and reads it at its next step.");
            let status = json!({"success": true, "message": text, "status": "delivered",
                                "summary": summary, "msg_id": message.id});
            return Ok(receipt(status));
        }
        Err(SendError::Held) => {
            let text = format!(
                "The session {to} keeps your message until its user lets it in or declines it. If you can be reached, you \
                 are told which."
            );
            let status = json!({"success": true, "message": text, "status": "held",
                                "summary": summary, "msg_id": message.id});
            return Ok(receipt(status));
        }
        Err(error @ (SendError::Elsewhere | SendError::TooLong(_))) => {
            return Err(ToolError::Input(error.to_string()));
        }
        Err(error @ SendError::Unreachable(_)) => ("no_such_session", error.to_string()),
        Err(error @ SendError::Refused(_)) => ("refused", error.to_string()),
        Err(error @ SendError::Unknown(_)) => (
            "unknown",
            format!("{error}. Do not send it again unless reading it twice does no harm"),
        ),
    };
    let text = format!("No receipt of {to}: {text}.");
    Ok(receipt(json!({"success": false, "message": text, "status": status})))
}
