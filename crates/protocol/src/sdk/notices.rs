//! Events that tell a host how things stand: limits of a provider, thinking, calls that are over, what needs attention.

use serde::Serialize;

use crate::{RecordId, SessionId, ToolUseId};

/// The limits of an account with a provider, in the words that hosts know.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RateLimit {
    /// `allowed`, `allowed_warning` or `rejected`.
    pub status: &'static str,
    /// The end of the window that counts, in seconds since the epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resets_at: Option<i64>,
    /// The window that counts, such as `five_hour`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_limit_type: Option<&'static str>,
    /// The used part of that window: 1 is all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub utilization: Option<f64>,
    /// The state of what may be used beyond the limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overage_status: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overage_resets_at: Option<i64>,
}

impl RateLimit {
    /// Whether this is news to a reader who knows the other one. The used part changes with every request.
    pub fn differs_from(&self, known: Option<&Self>) -> bool {
        let without_use = |limit: &Self| Self { utilization: None, ..limit.clone() };
        known.map(without_use) != Some(without_use(self))
    }
}

/// The limits of the provider have changed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RateLimitEvent {
    pub rate_limit_info: RateLimit,
}

/// The main agent's model continues thinking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ThinkingTokens {
    /// The estimated tokens of the present block.
    pub estimated_tokens: u64,
    /// The tokens since the last event about the block.
    pub estimated_tokens_delta: u64,
    /// The prompt that the turn answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_message_uuid: Option<RecordId>,
}

/// One line that says what the calls of an answer of the main agent did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ToolUseSummary {
    pub summary: String,
    pub preceding_tool_use_ids: Vec<ToolUseId>,
}

/// Something that a person may want to look at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Notification {
    /// The kind of notification.
    pub key: &'static str,
    pub text: String,
    /// `low`, `medium`, `high` or `immediate`.
    pub priority: &'static str,
}

/// The goal that the main agent works for until it is reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ActiveGoal {
    pub condition: String,
    /// The number of times that it was found not to be reached.
    pub iterations: u32,
    /// In milliseconds since the epoch.
    pub set_at: i64,
    /// The size of the conversation when it was set, in tokens.
    pub tokens_at_start: u64,
    /// The reason why it was not reached the last time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_reason: Option<String>,
}

/// Records were not written, because there is no room for them: a resume may miss part of the conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SessionWritesLost {
    /// `ENOSPC` or `EDQUOT`.
    pub error_code: &'static str,
    pub lost: [&'static str; 1],
    pub transcript_session_ids: [SessionId; 1],
}

/// The model declined, and no other model was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ModelRefusalNoFallback {
    pub original_model: String,
    pub request_id: Option<String>,
    /// The prompt that it declined to answer; null if no person wrote it.
    pub refused_user_message_uuid: Option<RecordId>,
    /// For people.
    pub content: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_news_when_more_than_its_use_has_changed() {
        let limit = RateLimit { status: "allowed", utilization: Some(0.1), ..RateLimit::default() };
        assert!(limit.differs_from(None));
        let used = RateLimit { utilization: Some(0.9), ..limit.clone() };
        assert!(!used.differs_from(Some(&limit)));
        let warned = RateLimit { status: "allowed_warning", ..limit.clone() };
        assert!(warned.differs_from(Some(&limit)));
    }
}
