//! Anthropic's Messages API, streaming.
//!
//! [`request`] writes the request, [`reader`] reads the answer; this file knows the address and the credentials.

mod rate_limit;
mod reader;
mod request;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use centurion_protocol::sdk::RateLimit;
use centurion_protocol::{Env, World};
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use serde_json::{Map, Value};
use url::Url;

use self::rate_limit::RateLimits;
pub use reader::AnthropicReader;

use crate::catalog::ModelInfo;
use crate::http::{self, Http};
use crate::{
    ErrorKind, EventStream, KeyFuture, KeyHelper, ModelAccess, ModelError, OpenError, Provider,
    Request, RequestExtras, ServedNames, sse,
};

const DEFAULT_BASE: &str = "https://api.anthropic.com";
const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const UNAUTHORIZED: u16 = 401;

/// A client of the Messages API.
pub struct Anthropic {
    http: Http,
    url: Url,
    /// The headers of every request: version, credential, and the user's additions.
    headers: HeaderMap,
    /// The user's additions to every body.
    extra_body: Map<String, Value>,
    extras: RequestExtras,
    credential: String,
    key_source: &'static str,
    names: ServedNames,
    helper: Option<Arc<dyn KeyHelper>>,
    limits: RateLimits,
}

impl Anthropic {
    /// Whether the environment configures access to the service.
    pub fn is_configured(env: &Env) -> bool {
        ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL"]
            .iter()
            .any(|name| env.get(name).is_some())
    }

    pub fn open(env: &Env, world: Arc<dyn World>) -> Result<Self, OpenError> {
        let base = env.get("ANTHROPIC_BASE_URL").unwrap_or(DEFAULT_BASE);
        let base = crate::open::parse_base("ANTHROPIC_BASE_URL", base)?;
        let (key_source, key) = ["ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY"]
            .into_iter()
            .find_map(|name| env.get(name).map(|key| (name, key.trim())))
            .unwrap_or(("none", ""));
        let limits = RateLimits::default();
        let noted = limits.clone();
        let http = Http::open(&base, env, world)
            .map_err(|error| OpenError::new(error.to_string()))?
            .watched(move |status, headers| noted.note(status, headers));
        Ok(Self {
            http,
            limits,
            headers: headers(env, key_source, key)?,
            extra_body: extra_body(env)?,
            extras: RequestExtras::default(),
            credential: format!("{} {key}", http::origin(&base)),
            key_source,
            url: http::below(&base, "v1/messages"),
            names: ServedNames::default(),
            helper: None,
        })
    }

    /// The same with the user's access settings.
    pub(crate) fn with(self, access: &ModelAccess) -> Self {
        // With a key in the environment, no helper is needed.
        let helper = access.key_helper.clone().filter(|_| self.key_source == "none");
        let key_source = if helper.is_some() { "apiKeyHelper" } else { self.key_source };
        let extras = access.extras.clone();
        let mut headers = self.headers;
        if let Some(betas) = extras.beta_header(headers.get(request::BETA)) {
            headers.insert(request::BETA, betas);
        }
        Self { names: access.names.clone(), helper, key_source, extras, headers, ..self }
    }

    /// The variable with the credential, or `none`.
    pub fn key_source(&self) -> &'static str {
        self.key_source
    }
}

impl Provider for Anthropic {
    fn stream(&self, request: Request) -> EventStream {
        let info = ModelInfo::anthropic(&request.model);
        let headers = request::headers(&self.headers, &request, &info);
        let name = self.names.of(&request.model);
        let body = request::body(&request, &info, name, &self.extras, &self.extra_body);
        let (http, url, helper) = (self.http.clone(), self.url.clone(), self.helper.clone());
        let sending = async move {
            let Some(helper) = helper else { return http.post(url, headers, body).await };
            let key = helped(helper.key(None)).await?;
            let sent = http.post(url.clone(), keyed(headers.clone(), &key)?, body.clone()).await;
            match sent {
                // The key may have expired.
                Err(error) if error.status == Some(UNAUTHORIZED) => {
                    let key = helped(helper.key(Some(&key))).await?;
                    http.post(url, keyed(headers, &key)?, body).await
                }
                sent => sent,
            }
        };
        sse::events(sending, self.http.silence(), AnthropicReader::default())
    }

    fn credential(&self) -> &str {
        &self.credential
    }

    fn rate_limit(&self) -> Option<RateLimit> {
        self.limits.last()
    }
}

async fn helped(key: KeyFuture<'_>) -> Result<String, ModelError> {
    key.await.map_err(|error| ModelError::new(ErrorKind::Authentication, error.to_string()))
}

/// The headers with a key of unknown kind.
fn keyed(mut headers: HeaderMap, key: &str) -> Result<HeaderMap, ModelError> {
    for (name, value) in [(API_KEY, key.to_owned()), (AUTHORIZATION, format!("Bearer {key}"))] {
        let value = crate::open::secret("apiKeyHelper", &value)
            .map_err(|error| ModelError::new(ErrorKind::Authentication, error.to_string()))?;
        headers.insert(name, value);
    }
    Ok(headers)
}

/// The program's name, with that of the program around it where that gives itself one.
fn user_agent(env: &Env) -> HeaderValue {
    const NAME: &str = concat!("centurion/", env!("CARGO_PKG_VERSION"));
    const LONGEST: usize = 200;
    let is_plain = |letter: char| letter.is_ascii_graphic() && !matches!(letter, '(' | ')');
    let app = env.get("CLAUDE_AGENT_SDK_CLIENT_APP").map(str::trim);
    let app =
        app.filter(|app| !app.is_empty() && app.len() <= LONGEST && app.chars().all(is_plain));
    let named =
        app.and_then(|app| HeaderValue::from_str(&format!("{NAME} (client-app/{app})")).ok());
    named.unwrap_or(HeaderValue::from_static(NAME))
}

fn headers(env: &Env, key_source: &str, key: &str) -> Result<HeaderMap, OpenError> {
    let mut headers = HeaderMap::new();
    let fixed = [("anthropic-version", "2023-06-01"), ("content-type", "application/json")];
    for (name, value) in fixed {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    headers.insert(USER_AGENT, user_agent(env));
    let secret = match key_source {
        "ANTHROPIC_API_KEY" => Some((API_KEY, key.to_owned())),
        "ANTHROPIC_AUTH_TOKEN" => Some((AUTHORIZATION, format!("Bearer {key}"))),
        _ => None,
    };
    if let Some((name, secret)) = secret {
        headers.insert(name, crate::open::secret(key_source, &secret)?);
    }
    for line in env.get("ANTHROPIC_CUSTOM_HEADERS").unwrap_or_default().lines() {
        if line.trim().is_empty() {
            continue;
        }
        let (name, value) = custom_header(line).ok_or_else(|| {
            // The line may contain a secret, so only its name is shown.
            let name = line.split(':').next().unwrap_or_default().trim();
            OpenError::new(format!(
                "ANTHROPIC_CUSTOM_HEADERS has a line that is no header: `{name}`"
            ))
            .help("write one `Name: value` on each line")
        })?;
        headers.insert(name, value);
    }
    Ok(headers)
}

fn custom_header(line: &str) -> Option<(HeaderName, HeaderValue)> {
    let (name, value) = line.split_once(':')?;
    Some((name.trim().parse().ok()?, value.trim().parse().ok()?))
}

fn extra_body(env: &Env) -> Result<Map<String, Value>, OpenError> {
    let Some(text) = env.get("CLAUDE_CODE_EXTRA_BODY") else { return Ok(Map::new()) };
    let wrong = |why: String| {
        OpenError::new(format!("CLAUDE_CODE_EXTRA_BODY {why}"))
            .help("set it to a JSON object of fields to add to each request")
    };
    let extra: Map<String, Value> =
        serde_json::from_str(text).map_err(|error| wrong(format!("is no JSON object: {error}")))?;
    match ["messages", "stream"].into_iter().find(|key| extra.contains_key(*key)) {
        Some(key) => Err(wrong(format!("cannot replace `{key}`"))),
        None => Ok(extra),
    }
}
