//! The user's additions to requests of the Messages API. Other interfaces do not have these.

use std::str::FromStr;
use std::sync::Arc;

use parking_lot::Mutex;
use reqwest::header::HeaderValue;
use serde_json::{Map, Value, json};

/// Lets a request tell the model the token budget of its task.
const TASK_BUDGETS: &str = "task-budgets-2026-03-13";

/// Settings for the whole process.
#[derive(Clone, Debug, Default)]
pub struct RequestExtras {
    /// Names of features of the interface that are not generally available.
    pub betas: Vec<Beta>,
    /// The token budget of the main agent's task, as the model is told.
    pub task_budget: Option<u64>,
    /// The part of its thinking that the model shows.
    pub thinking_display: SharedDisplay,
}

/// The part of their thinking that models show, which may change while a session runs. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct SharedDisplay(Arc<Mutex<Option<ThinkingDisplay>>>);

impl SharedDisplay {
    pub fn new(display: Option<ThinkingDisplay>) -> Self {
        Self(Arc::new(Mutex::new(display)))
    }

    /// Changes it for requests that come from now on; `None` leaves it to the provider.
    pub fn set(&self, display: Option<ThinkingDisplay>) {
        *self.0.lock() = display;
    }

    fn get(&self) -> Option<ThinkingDisplay> {
        *self.0.lock()
    }
}

impl RequestExtras {
    /// Adds to the list that a header has already.
    pub(crate) fn beta_header(&self, chosen: Option<&HeaderValue>) -> Option<HeaderValue> {
        let chosen = chosen.and_then(|value| value.to_str().ok());
        let budget = self.task_budget.map(|_| TASK_BUDGETS);
        let names = self.betas.iter().map(|beta| beta.0.as_str());
        let mut list: Vec<&str> = Vec::new();
        for name in chosen.into_iter().chain(names).chain(budget) {
            if !list.contains(&name) {
                list.push(name);
            }
        }
        HeaderValue::from_str(&list.join(",")).ok().filter(|_| !list.is_empty())
    }

    /// Adds to the thinking field of a request.
    pub(crate) fn add_display(&self, thinking: &mut Value) {
        if let Some(display) = self.thinking_display.get()
            && thinking.get("type").is_some_and(|kind| kind != "disabled")
        {
            thinking["display"] = display.name().into();
        }
    }

    /// Adds to `output_config` of a request of the main agent.
    pub(crate) fn add_budget(&self, config: &mut Map<String, Value>) {
        if let Some(total) = self.task_budget {
            config.insert("task_budget".into(), json!({"type": "tokens", "total": total}));
        }
    }
}

/// The name of a feature, such as a header can hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beta(String);

/// A name that no feature can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no name of a beta feature: letters, digits, `-`, `_` and `.` are")]
pub struct NotABeta(String);

impl Beta {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Beta {
    type Err = NotABeta;

    fn from_str(text: &str) -> Result<Self, NotABeta> {
        let name = text.trim();
        let is_letter = |letter: u8| letter.is_ascii_alphanumeric() || b"-_.".contains(&letter);
        if name.is_empty() || !name.bytes().all(is_letter) {
            return Err(NotABeta(text.to_owned()));
        }
        Ok(Self(name.to_owned()))
    }
}

/// The part of its thinking that a model shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThinkingDisplay {
    Summarized,
    /// Nothing but the signature.
    Omitted,
}

impl ThinkingDisplay {
    /// The display of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "summarized" => Some(Self::Summarized),
            "omitted" => Some(Self::Omitted),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Summarized => "summarized",
            Self::Omitted => "omitted",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_a_header_can_hold_are_features() {
        assert_eq!(
            "  context-1m-2025-08-07 ".parse::<Beta>().unwrap().as_str(),
            "context-1m-2025-08-07"
        );
        for wrong in ["", " ", "a b", "a,b", "a\nx-api-key: stolen", "é"] {
            assert!(wrong.parse::<Beta>().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn features_follow_those_of_the_user_and_none_is_named_twice() {
        let betas = ["one", "two", "one"].map(|name| name.parse().unwrap()).into();
        let extras = RequestExtras {
            betas,
            task_budget: Some(1),
            thinking_display: SharedDisplay::default(),
        };
        let mine = HeaderValue::from_static("mine");
        assert_eq!(
            extras.beta_header(Some(&mine)).unwrap(),
            "mine,one,two,task-budgets-2026-03-13"
        );
        assert_eq!(RequestExtras::default().beta_header(None), None);
        assert_eq!(RequestExtras::default().beta_header(Some(&mine)).unwrap(), "mine");
    }
}
