//! The output of hooks as JSON: fields of every event, and fields of one event.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::event::Event;

/// The JSON object that a hook prints.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct HookOutput {
    /// `false` ends the run.
    #[serde(rename = "continue")]
    pub(crate) should_continue: Option<bool>,
    pub(crate) stop_reason: Option<String>,
    pub(crate) system_message: Option<String>,
    pub(crate) terminal_sequence: Option<String>,
    pub(crate) decision: Option<DecisionWord>,
    pub(crate) reason: Option<String>,
    #[serde(rename = "hookSpecificOutput")]
    pub(crate) specific: Option<Specific>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DecisionWord {
    Approve,
    Block,
}

/// The fields of particular events.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Specific {
    hook_event_name: Option<String>,
    pub(crate) additional_context: Option<String>,
    pub(crate) permission_decision: Option<ToolDecision>,
    pub(crate) permission_decision_reason: Option<String>,
    pub(crate) updated_input: Option<Map<String, Value>>,
    pub(crate) decision: Option<RequestDecision>,
    pub(crate) retry: Option<bool>,
    pub(crate) updated_tool_output: Option<Value>,
    #[serde(rename = "updatedMCPToolOutput")]
    pub(crate) updated_mcp_tool_output: Option<Value>,
    pub(crate) classifier_context: Option<serde::de::IgnoredAny>,
    pub(crate) initial_user_message: Option<String>,
    pub(crate) session_title: Option<String>,
    pub(crate) watch_paths: Option<Vec<PathBuf>>,
    pub(crate) reload_skills: Option<bool>,
    pub(crate) suppress_original_prompt: Option<bool>,
    pub(crate) display_content: Option<String>,
    pub(crate) action: Option<ElicitationAction>,
    pub(crate) content: Option<Value>,
    pub(crate) worktree_path: Option<PathBuf>,
}

/// A hook's decision about a call before it runs, in order of increasing strength.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolDecision {
    Allow,
    Ask,
    /// The run ends here; a resumed run continues with this call.
    Defer,
    Deny,
}

/// A hook's answer to a question about a call.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "behavior", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum RequestDecision {
    Allow {
        #[serde(default)]
        updated_input: Option<Map<String, Value>>,
        #[serde(default)]
        updated_permissions: Vec<PermissionUpdate>,
    },
    Deny {
        #[serde(default)]
        message: Option<String>,
        /// Whether the whole run should stop.
        #[serde(default)]
        interrupt: bool,
    },
}

/// A change of the permissions that a hook requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum PermissionUpdate {
    AddRules { rules: Vec<RuleValue>, behavior: RuleBehavior, destination: UpdateDestination },
    ReplaceRules { rules: Vec<RuleValue>, behavior: RuleBehavior, destination: UpdateDestination },
    RemoveRules { rules: Vec<RuleValue>, behavior: RuleBehavior, destination: UpdateDestination },
    SetMode { mode: String, destination: UpdateDestination },
    AddDirectories { directories: Vec<PathBuf>, destination: UpdateDestination },
    RemoveDirectories { directories: Vec<PathBuf>, destination: UpdateDestination },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RuleValue {
    pub tool_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule_content: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleBehavior {
    Allow,
    Ask,
    Deny,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum UpdateDestination {
    Session,
    LocalSettings,
    ProjectSettings,
    UserSettings,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ElicitationAction {
    Accept,
    Decline,
    Cancel,
}

/// The reason that the output of a hook cannot be used, as the end of a sentence about the output.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OutputError {
    #[error("is no JSON: {0}")]
    NoJson(#[source] serde_json::Error),
    #[error("is no JSON object")]
    NoObject,
    /// The error names the invalid field.
    #[error("cannot be used: {0}")]
    WrongField(#[source] serde_json::Error),
    #[error("cannot be used: its hookEventName is {named}, and the event is {event}")]
    OtherEvent { named: String, event: Event },
}

impl HookOutput {
    pub(crate) fn parse(event: Event, text: &str) -> Result<Self, OutputError> {
        let value = serde_json::from_str(text).map_err(OutputError::NoJson)?;
        Self::from_value(event, value)
    }

    pub(crate) fn from_value(event: Event, value: Value) -> Result<Self, OutputError> {
        if !value.is_object() {
            return Err(OutputError::NoObject);
        }
        let output: Self = serde_json::from_value(value).map_err(OutputError::WrongField)?;
        let named = output.specific.as_ref().and_then(|it| it.hook_event_name.as_deref());
        match named {
            Some(name) if name != event.name() => {
                Err(OutputError::OtherEvent { named: name.to_owned(), event })
            }
            _ => Ok(output),
        }
    }

    /// The fields of the hook that have no effect, each with the reason.
    pub(crate) fn without_effect(&self, event: Event) -> impl Iterator<Item = (&str, String)> {
        use Event as E;
        let specific = self.specific.as_ref();
        let gives = |is_given: fn(&Specific) -> bool| specific.is_some_and(is_given);
        let elsewhere = |events: &[Event]| {
            let is_elsewhere = !events.contains(&event);
            is_elsewhere.then(|| format!("at {event}"))
        };
        let no_classifier = || Some("here: no model classifies calls".to_owned());
        [
            (
                "sessionTitle",
                gives(|it| it.session_title.is_some()),
                elsewhere(&[E::SessionStart, E::UserPromptSubmit]),
            ),
            (
                "watchPaths",
                gives(|it| it.watch_paths.is_some()),
                elsewhere(&[E::SessionStart, E::CwdChanged, E::FileChanged]),
            ),
            (
                "suppressOriginalPrompt",
                gives(|it| it.suppress_original_prompt.is_some()),
                elsewhere(&[E::UserPromptSubmit]),
            ),
            ("reloadSkills", gives(|it| it.reload_skills.is_some()), elsewhere(&[E::SessionStart])),
            (
                "displayContent",
                gives(|it| it.display_content.is_some()),
                Some("here: a text is shown while it comes".to_owned()),
            ),
            ("classifierContext", gives(|it| it.classifier_context.is_some()), no_classifier()),
        ]
        .into_iter()
        .filter(|(_, is_given, _)| *is_given)
        .filter_map(|(field, _, why)| Some((field, why?)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn permission_updates_are_read_in_the_form_that_hosts_use() {
        let updates = json!([
            {"type": "addRules", "rules": [{"toolName": "Bash", "ruleContent": "ls"}],
             "behavior": "allow", "destination": "session"},
            {"type": "setMode", "mode": "acceptEdits", "destination": "localSettings"},
            {"type": "addDirectories", "directories": ["/a"], "destination": "userSettings"},
        ]);
        let output = HookOutput::from_value(
            Event::PermissionRequest,
            json!({"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision":
                  {"behavior": "allow", "updatedPermissions": updates}}}),
        );
        let Some(RequestDecision::Allow { updated_permissions, .. }) =
            output.unwrap().specific.unwrap().decision
        else {
            panic!("an allow")
        };
        assert_eq!(serde_json::to_value(&updated_permissions).unwrap(), updates);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for (text, expected) in [
            ("{", "is no JSON"),
            (r#"{"decision": "maybe"}"#, "unknown variant `maybe`"),
            (r#"{"continue": "no"}"#, "invalid type"),
            (r#"{"hookSpecificOutput": {"permissionDecision": 1}}"#, "cannot be used"),
            (r#"{"hookSpecificOutput": {"hookEventName": "Stop"}}"#, "its hookEventName is Stop"),
        ] {
            let error = HookOutput::parse(Event::PreToolUse, text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
        let tolerated =
            r#"{"new": 1, "reason": null, "hookSpecificOutput": {"hookEventName": "Stop"}}"#;
        assert!(HookOutput::parse(Event::Stop, tolerated).is_ok());
    }
}
