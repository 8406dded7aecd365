//! Names of models that people and hosts choose: those that no model of the session's provider can have, and those that
//! the catalogue does not know.
//!
//! A provider may have models that are newer than this program: an unknown name is sent as it is, and that is said.

use thiserror::Error;

use crate::{Model, ProviderKind};

/// The longest name of a model: addresses in clouds are long.
const LONGEST: usize = 512;

/// The most bytes of a refused name that are shown.
const SHOWN: usize = 60;

/// The beginnings of names that choose a provider.
const PROVIDERS: [&str; 3] = ["openai:", "script:", "cassette:"];

/// The reason why a name can be none of a model of the session's provider.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum NameRefused {
    #[error("`{0}` is no name of a model: say one name, without spaces")]
    Malformed(String),
    #[error(
        "`{0}` is a model of another provider than this session's: start a session with --model {0}"
    )]
    Elsewhere(String),
}

/// A model that the catalogue does not know.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "`{0}` is a model that is not known here: its name is sent as it is, and its window and price are estimates"
)]
pub struct UnknownModel(String);

impl Model {
    /// Refuses a name that no model of the session's provider can have.
    pub fn check_name(&self, name: &str) -> Result<(), NameRefused> {
        let name = name.trim();
        if self.resolve(name) == self.name() {
            return Ok(());
        }
        let is_odd = |letter: char| letter.is_whitespace() || letter.is_control();
        if name.is_empty() || name.len() > LONGEST || name.chars().any(is_odd) {
            let shown: String = name.chars().filter(|letter| !letter.is_control()).collect();
            let end = shown.floor_char_boundary(SHOWN);
            let more = if end < shown.len() { "…" } else { "" };
            return Err(NameRefused::Malformed(format!("{}{more}", &shown[..end])));
        }
        let chooses = |provider: &&&str| name.starts_with(**provider);
        match PROVIDERS.iter().find(chooses) {
            Some(&"openai:") if self.provider_kind() == ProviderKind::OpenAi => Ok(()),
            Some(_) => Err(NameRefused::Elsewhere(name.to_owned())),
            None => Ok(()),
        }
    }

    /// Tells of a model that is not in the catalogue, by its full name. Servers with the interface of OpenAI have models
    /// of their own, which no catalogue lists, and so may recordings.
    pub fn unknown(&self, name: &str) -> Option<UnknownModel> {
        let is_listed = match self.provider_kind() {
            ProviderKind::Anthropic | ProviderKind::Script => !self.info(name).is_estimate,
            ProviderKind::OpenAi | ProviderKind::Cassette => true,
        };
        (!is_listed).then(|| UnknownModel(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use centurion_protocol::SeededWorld;

    use super::*;
    use crate::{RetryPolicy, script};

    fn model(kind: ProviderKind) -> Model {
        let script = script::parse("{\"default\": [\"hi\"]}", "scenario.json").unwrap();
        let world = Arc::new(SeededWorld::new(1));
        Model::with_provider(Arc::new(script), kind, "own model", RetryPolicy::default(), world)
    }

    #[test]
    fn a_name_that_no_model_of_the_provider_can_have_is_refused() {
        use ProviderKind::{Anthropic, Cassette, OpenAi, Script};
        for kind in [Anthropic, OpenAi, Script, Cassette] {
            let model = model(kind);
            for good in [
                "opus",
                "Sonnet[1m]",
                "claude-opus-5-5",
                "claude-nova-9",
                "own model",
                " us.anthropic.claude-opus-4-1-20250805-v1:0 ",
                "arn:aws:bedrock:us-east-1:1:inference-profile/x",
                "qwen3:8b",
            ] {
                assert_eq!(model.check_name(good), Ok(()), "{kind:?} {good}");
            }
            let long = "x".repeat(LONGEST + 1);
            for bad in ["", " ", "claude opus", "a\tb", "a\u{1b}[31mb", "a\u{2003}b", &long] {
                let refused = model.check_name(bad).unwrap_err();
                let shown = refused.to_string();
                assert!(matches!(refused, NameRefused::Malformed(_)), "{kind:?} {bad}");
                assert!(shown.len() < 200 && !shown.contains(char::is_control), "{shown}");
            }
            for other in ["script:a.json", "cassette:a.jsonl", "openai:gpt-5"] {
                let is_own = kind == OpenAi && other.starts_with("openai:");
                assert_eq!(model.check_name(other).is_ok(), is_own, "{kind:?} {other}");
            }
        }
    }

    #[test]
    fn a_model_that_is_not_in_the_catalogue_is_told_of() {
        let unknown = |kind, name: &str| model(kind).unknown(name).is_some();
        for name in ["claude-opus-5-5", "us.anthropic.claude-haiku-4-5-v1:0", "claude-fable-5-2"] {
            assert!(!unknown(ProviderKind::Anthropic, name), "{name}");
        }
        for name in ["claude-nova-9", "gpt-5", "opsu"] {
            assert!(unknown(ProviderKind::Anthropic, name), "{name}");
            assert!(!unknown(ProviderKind::OpenAi, name), "{name}");
        }
    }
}
