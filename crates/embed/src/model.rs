//! The choice of a model, and opening it.

use std::sync::Arc;

use centurion_model::{Model as OpenModel, ProviderKind, RetryPolicy, script};
use centurion_protocol::{Env, World};
use rustls::crypto::ring;

use crate::{Error, ErrorKind};

/// The name that stands for the file of a script in errors.
const SCRIPT: &str = "script.yaml";

/// The model that answers.
#[derive(Clone, Debug)]
pub struct Model(Choice);

#[derive(Clone, Debug)]
enum Choice {
    Usual,
    Named(String),
    Script(String),
}

impl Model {
    /// The model that the [environment](crate::SessionBuilder::environment) gives access to: `ANTHROPIC_MODEL`, or the
    /// usual model of the provider that a key is there for.
    pub fn usual() -> Self {
        Self(Choice::Usual)
    }

    /// A model by its name: an alias (`sonnet`), a full name, `openai:NAME`, `script:FILE` or `cassette:FILE`. Its key
    /// comes from the [environment](crate::SessionBuilder::environment).
    pub fn named(name: impl Into<String>) -> Self {
        Self(Choice::Named(name.into()))
    }

    /// A script in the place of a model, for tests: the text of a scenario, in YAML, as `docs/scripted-models.md`
    /// describes it. It needs no key and no network.
    pub fn script(scenario: impl Into<String>) -> Self {
        Self(Choice::Script(scenario.into()))
    }

    pub(crate) async fn open(self, env: &Env, world: Arc<dyn World>) -> Result<OpenModel, Error> {
        let name = match &self.0 {
            Choice::Script(text) => {
                let script = script::parse(text, SCRIPT)
                    .map_err(|error| Error::caused(ErrorKind::Model, "the script", error))?;
                let retries = RetryPolicy::new(env);
                let provider = Arc::new(script);
                let kind = ProviderKind::Script;
                return Ok(OpenModel::with_provider(provider, kind, "script", retries, world));
            }
            Choice::Named(name) => Some(name.as_str()),
            Choice::Usual => None,
        };
        // Fails where the program has chosen a provider of its own, which is then used.
        drop(ring::default_provider().install_default());
        let opened = OpenModel::open(name, env, world).await;
        opened.map_err(|error| Error::caused(ErrorKind::Model, "the model", error))
    }
}
