//! OpenAI's chat completions, streaming, and all compatible servers: `OpenRouter`, vLLM, llama.cpp, Ollama, LM Studio.
//!
//! [`request`] translates the conversation, [`reader`] translates the answer back; this file knows the address and the
//! credentials.

mod message;
mod reader;
mod request;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use centurion_protocol::{Env, World};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, USER_AGENT};
use url::Url;

pub use reader::OpenAiReader;

use crate::http::{self, Http};
use crate::{EventStream, OpenError, Provider, Request, ServedNames, discover, sse};

const DEFAULT_BASE: &str = "https://api.openai.com/v1";

/// A client of a chat completions interface.
pub struct OpenAi {
    http: Http,
    base: Url,
    headers: HeaderMap,
    credential: String,
    key_source: &'static str,
    names: ServedNames,
    world: Arc<dyn World>,
}

impl OpenAi {
    /// Whether the environment configures access to a server.
    pub fn is_configured(env: &Env) -> bool {
        env.get("OPENAI_API_KEY").is_some() || env.get("OPENAI_BASE_URL").is_some()
    }

    pub fn open(env: &Env, world: Arc<dyn World>) -> Result<Self, OpenError> {
        let base = env.get("OPENAI_BASE_URL").unwrap_or(DEFAULT_BASE);
        let base = crate::open::parse_base("OPENAI_BASE_URL", base)?;
        let key = env.get("OPENAI_API_KEY").map(str::trim);
        if key.is_none() && is_openai(&base) {
            return Err(OpenError::new("there is no key for the OpenAI interface")
                .help("set OPENAI_API_KEY")
                .help("or set OPENAI_BASE_URL to a server that needs no key"));
        }
        Self::connect(base, key, env, world)
    }

    /// The same with other names for models.
    pub(crate) fn named(self, names: &ServedNames) -> Self {
        Self { names: names.clone(), ..self }
    }

    /// A client of a server at a known address.
    pub(crate) fn connect(
        base: Url,
        key: Option<&str>,
        env: &Env,
        world: Arc<dyn World>,
    ) -> Result<Self, OpenError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let agent = concat!("centurion/", env!("CARGO_PKG_VERSION"));
        headers.insert(USER_AGENT, HeaderValue::from_static(agent));
        if let Some(key) = key {
            let secret = crate::open::secret("OPENAI_API_KEY", &format!("Bearer {key}"))?;
            headers.insert(AUTHORIZATION, secret);
        }
        Ok(Self {
            http: Http::open(&base, env, Arc::clone(&world))
                .map_err(|error| OpenError::new(error.to_string()))?,
            credential: format!("{} {}", http::origin(&base), key.unwrap_or_default()),
            names: ServedNames::default(),
            key_source: if key.is_some() { "OPENAI_API_KEY" } else { "none" },
            base,
            headers,
            world,
        })
    }

    /// The variable with the credential, or `none`.
    pub fn key_source(&self) -> &'static str {
        self.key_source
    }

    /// Whether the server is on this machine, where tokens cost nothing.
    pub fn is_local(&self) -> bool {
        http::is_loopback(&self.base)
    }

    /// The default model: the first that the server offers.
    pub(crate) async fn default_model(&self) -> Result<String, OpenError> {
        if is_openai(&self.base) {
            return Ok("gpt-5".to_owned());
        }
        let url = http::below(&self.base, "models");
        let origin = http::origin(&self.base);
        let help = "name a model with --model openai:NAME";
        let list = self
            .http
            .get(url, self.headers.clone())
            .await
            .map_err(|error| OpenError::new(error.message).help(help))?;
        discover::first_chat_model(&discover::model_names(&list)).ok_or_else(|| {
            OpenError::new(format!("the server at {origin} offers no model to talk to")).help(help)
        })
    }
}

fn is_openai(base: &Url) -> bool {
    base.host_str().is_some_and(|host| host == "api.openai.com")
}

impl Provider for OpenAi {
    fn stream(&self, request: Request) -> EventStream {
        let body = request::body(&request, self.names.of(&request.model));
        let url = http::below(&self.base, "chat/completions");
        let (http, headers) = (self.http.clone(), self.headers.clone());
        let sending = async move { http.post(url, headers, body).await };
        sse::events(sending, self.http.silence(), OpenAiReader::new(self.world.random()))
    }

    fn credential(&self) -> &str {
        &self.credential
    }
}
