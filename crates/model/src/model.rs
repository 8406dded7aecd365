//! The engine's access to models: a provider with retries, a rate gate and a catalogue of its models.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use centurion_protocol::sdk::RateLimit;
use centurion_protocol::{Env, Thinking, World};
use parking_lot::Mutex;

use crate::catalog::{Aliases, ModelInfo};
use crate::discover::{self, Search};
use crate::gate::Gate;
use crate::open::{OpenedProvider, ProviderInputs};
use crate::retry::{Attempts, ModelStream, Patience, RetryPolicy};
use crate::{Gates, ModelAccess, OpenError, Provider, Request};

/// An opened provider, ready for requests. Cloning shares it.
#[derive(Clone)]
pub struct Model(Arc<Inner>);

struct Inner {
    opened: OpenedProvider,
    aliases: Aliases,
    policy: RetryPolicy,
    gates: Gates,
    /// The user's setting for thinking, for requests without one.
    thinking: Thinking,
    world: Arc<dyn World>,
    /// The last lookup of a model's facts, by the requested name: every request looks several times.
    last_info: Mutex<Option<(String, ModelInfo)>>,
}

/// The kinds of providers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderKind {
    Anthropic,
    OpenAi,
    Script,
    Cassette,
}

impl ProviderKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
            Self::Script => "script",
            Self::Cassette => "cassette",
        }
    }
}

impl fmt::Display for ProviderKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl Model {
    /// Opens the model that `spec` names: `script:FILE`, `cassette:FILE`, `openai:NAME`, an alias or a full name.
    /// Without one, `ANTHROPIC_MODEL` decides, then the credentials in the environment, then a local server.
    pub async fn open(
        spec: Option<&str>,
        env: &Env,
        world: Arc<dyn World>,
    ) -> Result<Self, OpenError> {
        Self::open_with(spec, env, ModelAccess::default(), world).await
    }

    /// The same, with the user's access settings.
    pub async fn open_with(
        spec: Option<&str>,
        env: &Env,
        access: ModelAccess,
        world: Arc<dyn World>,
    ) -> Result<Self, OpenError> {
        Self::open_among(spec, env, access, world, discover::USUAL).await
    }

    pub(crate) async fn open_among(
        spec: Option<&str>,
        env: &Env,
        access: ModelAccess,
        world: Arc<dyn World>,
        search: Search<'_>,
    ) -> Result<Self, OpenError> {
        let aliases = Aliases::new(env);
        let opening =
            ProviderInputs { env, aliases: &aliases, access: &access, world: &world, search };
        let opened = opening.open(spec).await?;
        Ok(Self(Arc::new(Inner {
            opened,
            aliases,
            policy: RetryPolicy::new(env),
            gates: Gates::of_process(),
            thinking: match env.number("MAX_THINKING_TOKENS") {
                None => Thinking::Auto,
                Some(0) => Thinking::Disabled,
                Some(tokens) => Thinking::Budget(tokens),
            },
            world,
            last_info: Mutex::default(),
        })))
    }

    /// A model on an existing provider, with gates of its own.
    pub fn with_provider(
        provider: Arc<dyn Provider>,
        kind: ProviderKind,
        model: &str,
        policy: RetryPolicy,
        world: Arc<dyn World>,
    ) -> Self {
        let opened = OpenedProvider {
            provider,
            kind,
            model: model.to_owned(),
            key_source: "none",
            is_local: kind == ProviderKind::Script,
        };
        Self(Arc::new(Inner {
            opened,
            aliases: Aliases::new(&Env::default()),
            policy,
            gates: Gates::default(),
            thinking: Thinking::Auto,
            world,
            last_info: Mutex::default(),
        }))
    }

    /// Sends a request, with as many retries as `patience` allows.
    pub fn stream(&self, mut request: Request, patience: Patience) -> ModelStream {
        if request.thinking == Thinking::Auto {
            request.thinking = self.0.thinking;
        }
        let provider = Arc::clone(&self.0.opened.provider);
        let gate = self.gate(&request.model);
        let (policy, world) = (self.0.policy.with(patience), Arc::clone(&self.0.world));
        let watches_events = self.0.opened.kind == ProviderKind::Script;
        Attempts { provider, request, gate, policy, watches_events, world }.stream()
    }

    /// The time for which requests to a model must wait, because its provider asked for it.
    pub fn held_back(&self, model: &str) -> Duration {
        self.gate(model).held()
    }

    /// Waits until requests to a model may be sent.
    pub async fn passable(&self, model: &str) {
        self.gate(model).open(self.0.world.as_ref()).await;
    }

    /// The limits of the account, as the provider told them last.
    pub fn rate_limit(&self) -> Option<RateLimit> {
        self.0.opened.provider.rate_limit()
    }

    fn gate(&self, model: &str) -> Arc<Gate> {
        self.0.gates.gate(self.0.opened.provider.credential(), model)
    }

    /// The full name of the session's model.
    pub fn name(&self) -> &str {
        &self.0.opened.model
    }

    /// The full name for an alias. For a provider without such families, an alias that the environment does not define
    /// is the session's own model.
    pub fn resolve(&self, name: &str) -> String {
        let own = self.name();
        match self.0.opened.kind {
            ProviderKind::OpenAi => {
                let name = name.strip_prefix("openai:").unwrap_or(name);
                self.0.aliases.resolve_elsewhere(name, own)
            }
            ProviderKind::Script if name.eq_ignore_ascii_case("default") => own.to_owned(),
            _ => self.0.aliases.resolve(name),
        }
    }

    /// The facts about a model, by its full name or an alias.
    pub fn info(&self, name: &str) -> ModelInfo {
        let mut last = self.0.last_info.lock();
        if let Some((_, info)) = last.as_ref().filter(|(asked, _)| asked == name) {
            return info.clone();
        }
        let info = self.look_up(name);
        *last = Some((name.to_owned(), info.clone()));
        info
    }

    fn look_up(&self, name: &str) -> ModelInfo {
        let name = self.resolve(name);
        let opened = &self.0.opened;
        match opened.kind {
            ProviderKind::OpenAi => ModelInfo::openai(&name, opened.is_local),
            ProviderKind::Script if !name.starts_with("claude") => ModelInfo::openai(&name, true),
            _ => ModelInfo::anthropic(&name),
        }
    }

    pub fn provider_kind(&self) -> ProviderKind {
        self.0.opened.kind
    }

    /// Whether its provider searches the web for a model that may ask for it.
    pub fn searches_web(&self) -> bool {
        self.provider_kind() == ProviderKind::Anthropic
    }

    /// The variable with the credential, or `none`.
    pub fn key_source(&self) -> &'static str {
        self.0.opened.key_source
    }
}

impl fmt::Debug for Model {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Model")
            .field("provider", &self.provider_kind())
            .field("model", &self.name())
            .finish_non_exhaustive()
    }
}
