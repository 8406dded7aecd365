//! Finds the provider for a model's name and an environment.

#[cfg(test)]
mod tests;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use centurion_protocol::{Env, World};
use reqwest::header::HeaderValue;
use thiserror::Error;
use url::Url;

use crate::anthropic::Anthropic;
use crate::catalog::Aliases;
use crate::discover::{self, FoundServer, Search};
use crate::openai::OpenAi;
use crate::{ModelAccess, Provider, ProviderKind, cassette, script};

/// The reason that no model could be opened, and the remedy.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{message}{help}")]
pub struct OpenError {
    message: String,
    /// Lines that each start with a line break and `help:`.
    help: String,
}

impl OpenError {
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), help: String::new() }
    }

    /// Adds a line with a remedy.
    pub fn help(self, line: impl fmt::Display) -> Self {
        Self { help: format!("{}\nhelp: {line}", self.help), ..self }
    }

    /// Adds the step that failed.
    fn because(self, doing: impl fmt::Display) -> Self {
        Self { message: format!("{doing}: {}", self.message), ..self }
    }
}

/// A provider, and the session's facts about it.
pub(crate) struct OpenedProvider {
    pub(crate) provider: Arc<dyn Provider>,
    pub(crate) kind: ProviderKind,
    /// The model of the session: the provider's own name of it.
    pub(crate) model: String,
    pub(crate) key_source: &'static str,
    pub(crate) is_local: bool,
}

/// The inputs that determine the provider.
pub(crate) struct ProviderInputs<'a> {
    pub(crate) env: &'a Env,
    pub(crate) aliases: &'a Aliases,
    pub(crate) access: &'a ModelAccess,
    pub(crate) world: &'a Arc<dyn World>,
    /// The addresses of servers to try when the environment names none.
    pub(crate) search: Search<'a>,
}

impl ProviderInputs<'_> {
    pub(crate) async fn open(&self, spec: Option<&str>) -> Result<OpenedProvider, OpenError> {
        let wanted = spec.or(self.env.get("ANTHROPIC_MODEL")).map(str::trim);
        let wanted = wanted.filter(|name| !name.is_empty());
        match wanted.and_then(|name| name.split_once(':')) {
            Some(("script", file)) => open_script(file),
            Some(("cassette", file)) => self.cassette(file).await,
            Some(("openai", name)) => self.openai(Some(name)).await,
            _ => self.network(wanted).await,
        }
    }

    /// Opens a model of the service that the environment names.
    async fn network(&self, wanted: Option<&str>) -> Result<OpenedProvider, OpenError> {
        if Anthropic::is_configured(self.env) || self.access.key_helper.is_some() {
            return self.anthropic(wanted.unwrap_or("default"));
        }
        if let Some(name) = wanted.filter(|name| self.is_foreign_alias(name)) {
            let text = format!("`{name}` is a model of Anthropic, and there is no key for it");
            return Err(with_ways_out(OpenError::new(text)));
        }
        self.openai(wanted).await
    }

    /// Whether only Anthropic has a model for this name: an alias that the environment does not define.
    fn is_foreign_alias(&self, name: &str) -> bool {
        const MARK: &str = "\0";
        name != "default" && self.aliases.resolve_elsewhere(name, MARK).starts_with(MARK)
    }

    fn anthropic(&self, name: &str) -> Result<OpenedProvider, OpenError> {
        let provider = Anthropic::open(self.env, Arc::clone(self.world))?.with(self.access);
        Ok(OpenedProvider {
            key_source: provider.key_source(),
            model: self.aliases.resolve(name),
            provider: Arc::new(provider),
            kind: ProviderKind::Anthropic,
            is_local: false,
        })
    }

    /// Opens an OpenAI-compatible server: the one that the environment names, or a local one.
    async fn openai(&self, wanted: Option<&str>) -> Result<OpenedProvider, OpenError> {
        let wanted = wanted.or(self.env.get("OPENAI_MODEL")).filter(|name| *name != "default");
        if OpenAi::is_configured(self.env) {
            let provider =
                OpenAi::open(self.env, Arc::clone(self.world))?.named(&self.access.names);
            let model = match wanted {
                Some(name) => self.aliases.resolve_elsewhere(name, name),
                None => provider.default_model().await?,
            };
            return Ok(opened(provider, model));
        }
        let found = discover::look(self.search, self.env, self.world).await;
        let (server, model) = choose(&found, wanted)?;
        let provider =
            OpenAi::connect(server.base.clone(), None, self.env, Arc::clone(self.world))?
                .named(&self.access.names);
        tracing::debug!(kind = server.kind, model, "using a local server");
        Ok(opened(provider, model))
    }

    /// Opens a recording, or a provider to record if there is no recording yet.
    async fn cassette(&self, text: &str) -> Result<OpenedProvider, OpenError> {
        let spec = cassette::Spec::parse(text);
        let is_recorded = std::fs::metadata(spec.path).is_ok_and(|file| file.len() > 0);
        let inner = match (is_recorded, spec.record) {
            (true, _) => None,
            (false, Some(model)) => Some(Box::pin(self.open(Some(model))).await?),
            (false, None) => Some(self.network(self.env_model()).await.map_err(|error| {
                let path = spec.path.display();
                error.because(format!("there is no cassette `{path}` yet, and nothing to record"))
            })?),
        };
        let provider = inner.as_ref().map(|inner| Arc::clone(&inner.provider));
        let cassette = cassette::open(spec.path, provider)
            .map_err(|error| OpenError::new(error.to_string()))?;
        let recorded = || cassette.recorded_model().map(str::to_owned);
        let model = inner.as_ref().map(|inner| inner.model.clone()).or_else(recorded);
        Ok(OpenedProvider {
            model: model.unwrap_or_else(|| self.aliases.resolve("default")),
            key_source: inner.as_ref().map_or("none", |inner| inner.key_source),
            is_local: inner.as_ref().is_some_and(|inner| inner.is_local),
            provider: Arc::new(cassette),
            kind: ProviderKind::Cassette,
        })
    }

    /// The model that the environment names, if it belongs to a service.
    fn env_model(&self) -> Option<&str> {
        let is_file = |name: &str| name.starts_with("cassette:") || name.starts_with("script:");
        self.env.get("ANTHROPIC_MODEL").map(str::trim).filter(|name| !is_file(name))
    }
}

fn open_script(file: &str) -> Result<OpenedProvider, OpenError> {
    let script = script::open(Path::new(file)).map_err(|error| {
        OpenError::new(error.to_string()).help("docs/scripted-models.md says what it may hold")
    })?;
    Ok(OpenedProvider {
        provider: Arc::new(script),
        kind: ProviderKind::Script,
        model: format!("script:{file}"),
        key_source: "none",
        is_local: true,
    })
}

fn opened(provider: OpenAi, model: String) -> OpenedProvider {
    OpenedProvider {
        key_source: provider.key_source(),
        is_local: provider.is_local(),
        provider: Arc::new(provider),
        kind: ProviderKind::OpenAi,
        model,
    }
}

/// Chooses a server and a model among the found ones.
fn choose<'a>(
    found: &'a [FoundServer],
    wanted: Option<&str>,
) -> Result<(&'a FoundServer, String), OpenError> {
    let chosen = match wanted {
        Some(name) => found
            .iter()
            .find(|server| server.models.iter().any(|model| model == name))
            .map(|server| (server, name.to_owned())),
        None => found.iter().find_map(|server| {
            discover::first_chat_model(&server.models).map(|model| (server, model))
        }),
    };
    chosen.ok_or_else(|| {
        let offers: Vec<String> = found
            .iter()
            .map(|server| format!("{} has {}", server.kind, server.models.join(", ")))
            .collect();
        let text = match (wanted, offers.is_empty()) {
            (Some(name), false) => {
                format!("there is no key, and no local server has `{name}`: {}", offers.join("; "))
            }
            (None, false) => {
                format!("there is no key, and no local model to talk to: {}", offers.join("; "))
            }
            (_, true) => "there is no key, and no model server runs on this machine".to_owned(),
        };
        with_ways_out(OpenError::new(text))
    })
}

fn with_ways_out(error: OpenError) -> OpenError {
    error
        .help("set ANTHROPIC_API_KEY to use a Claude model")
        .help("or set OPENAI_API_KEY, or OPENAI_BASE_URL for a server of your own")
        .help("or start a local server such as Ollama, which is found by itself")
        .help("or run `centurion demo`, which needs no model")
}

/// Parses the address of a service.
pub(crate) fn parse_base(variable: &str, text: &str) -> Result<Url, OpenError> {
    let wrong = |why: String| {
        OpenError::new(format!("{variable} is `{text}`, which is no address: {why}"))
            .help("write it like https://example.com or http://127.0.0.1:8080")
    };
    let url = Url::parse(text.trim()).map_err(|error| wrong(error.to_string()))?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        other => Err(wrong(format!("{other} is not spoken here"))),
    }
}

/// A credential as a header that is never shown.
pub(crate) fn secret(variable: &str, text: &str) -> Result<HeaderValue, OpenError> {
    let mut value = HeaderValue::from_str(text).map_err(|_| {
        OpenError::new(format!("{variable} holds characters that no header can carry"))
            .help("check that it was copied whole and without line breaks")
    })?;
    value.set_sensitive(true);
    Ok(value)
}
