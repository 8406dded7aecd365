//! HTTP hooks, which are posted to a URL.

use centurion_protocol::Env;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, NoProxy, Proxy, redirect};
use tokio::sync::OnceCell;
use url::Url;

use crate::handler::HttpAction;
use crate::reply::{End, HandlerEnd};
use crate::rules::HookRules;

/// The bytes of an answer that are read.
const LONGEST_ANSWER: usize = 1024 * 1024;

/// The HTTP client. Made when the first hook needs it.
#[derive(Debug, Default)]
pub(crate) struct HttpClient(OnceCell<Client>);

impl HttpClient {
    /// Posts the input and reads the answer.
    pub(super) async fn post(
        &self,
        action: &HttpAction,
        input: &str,
        rules: &HookRules,
        env: &Env,
    ) -> HandlerEnd {
        match self.try_post(action, input, rules, env).await {
            Ok(answer) => HandlerEnd::said(answer),
            Err(end) => HandlerEnd { end, ..HandlerEnd::default() },
        }
    }

    async fn try_post(
        &self,
        action: &HttpAction,
        input: &str,
        rules: &HookRules,
        env: &Env,
    ) -> Result<String, End> {
        let url =
            Url::parse(&action.url).map_err(|error| failed(format!("has no address: {error}")))?;
        if !rules.allows_url(&url) {
            return Err(failed("was not posted: allowedHttpHookUrls does not list its URL"));
        }
        let headers = headers(action, rules, env).map_err(|error| failed(error.to_string()))?;
        let client = self.0.get_or_try_init(|| client(env)).await;
        let client = client.map_err(|error| failed(error.to_string()))?;
        let request = client.post(url).headers(headers).body(input.to_owned());
        let mut response = request.send().await.map_err(|error| failed(unreached(&error)))?;
        let status = response.status();
        if !status.is_success() {
            return Err(failed(format!("answered with status {status}")));
        }
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(|error| failed(unreached(&error)))? {
            if body.len() + piece.len() > LONGEST_ANSWER {
                return Err(End::SaidTooMuch("answered with more than one megabyte".to_owned()));
            }
            body.extend_from_slice(&piece);
        }
        let text = String::from_utf8_lossy(&body).trim().to_owned();
        if text.is_empty() || text.starts_with('{') {
            return Ok(text);
        }
        Err(failed("answered with something that is no JSON object"))
    }
}

fn failed(why: impl Into<String>) -> End {
    End::Failed(why.into())
}

/// The error with its cause, but without the URL, which may contain a secret.
fn unreached(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    format!("could not be reached: {cause}")
}

/// The reason that a request cannot be prepared, as the end of a sentence about the hook.
#[derive(Debug, thiserror::Error)]
enum RequestError {
    #[error("has a header `{name}`, which is no name")]
    HeaderName { name: String },
    #[error("has a header `{name}` whose value cannot be sent")]
    HeaderValue { name: HeaderName },
    #[error("has no proxy: {0}")]
    Proxy(#[source] reqwest::Error),
    #[error("could not be prepared: {0}")]
    Client(#[source] reqwest::Error),
    #[error("could not be prepared: {0}")]
    Task(#[source] tokio::task::JoinError),
}

fn headers(action: &HttpAction, rules: &HookRules, env: &Env) -> Result<HeaderMap, RequestError> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for (name, text) in &action.headers {
        let value = fill(text, |variable| {
            let may = action.allowed_variables.iter().any(|it| it == variable)
                && rules.allows_variable(variable);
            if may { env.get(variable).unwrap_or_default() } else { "" }
        });
        let named = HeaderName::try_from(name);
        let name = named.map_err(|_| RequestError::HeaderName { name: name.clone() })?;
        let mut value = HeaderValue::try_from(value)
            .map_err(|_| RequestError::HeaderValue { name: name.clone() })?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

/// Expands variables in a header: `$NAME` and `${NAME}`.
fn fill<'v>(text: &str, value: impl Fn(&str) -> &'v str) -> String {
    let is_letter = |it: char| it.is_ascii_alphanumeric() || it == '_';
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        filled.push_str(before);
        let braced = after.strip_prefix('{').and_then(|after| after.split_once('}'));
        let (name, after) = match braced {
            Some((name, after)) if name.chars().all(is_letter) => (name, after),
            _ => after.split_at(after.find(|it| !is_letter(it)).unwrap_or(after.len())),
        };
        if name.is_empty() {
            filled.push('$');
        } else {
            filled.push_str(value(name));
        }
        rest = after;
    }
    filled.push_str(rest);
    filled
}

async fn client(env: &Env) -> Result<Client, RequestError> {
    let mut builder = Client::builder()
        .user_agent(concat!("centurion/", env!("CARGO_PKG_VERSION")))
        // A redirect would carry the input and its secrets to an address that no setting allowed.
        .redirect(redirect::Policy::none())
        .no_proxy();
    for proxy in proxies(env).map_err(RequestError::Proxy)? {
        builder = builder.proxy(proxy);
    }
    // Reading the system's certificates takes a while.
    let building = tokio::task::spawn_blocking(move || {
        // The first caller in this process installs the provider; all install the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        builder.build()
    });
    building.await.map_err(RequestError::Task)?.map_err(RequestError::Client)
}

/// The proxies that the user has set; never for this machine itself.
fn proxies(env: &Env) -> reqwest::Result<Vec<Proxy>> {
    let either = |upper: &str| env.get(upper).or_else(|| env.get(&upper.to_lowercase()));
    let direct = format!("localhost,127.0.0.1,::1,{}", either("NO_PROXY").unwrap_or_default());
    let proxies = [
        either("HTTPS_PROXY").map(Proxy::https),
        either("HTTP_PROXY").map(Proxy::http),
        either("ALL_PROXY").map(Proxy::all),
    ];
    let proxies = proxies.into_iter().flatten();
    proxies.map(|proxy| Ok(proxy?.no_proxy(NoProxy::from_string(&direct)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_go_into_headers() {
        let value = |name: &str| if name == "TOKEN" { "t" } else { "" };
        for (text, expected) in [
            ("Bearer $TOKEN", "Bearer t"),
            ("${TOKEN}x $OTHER.", "tx ."),
            ("a $ b", "a $ b"),
            ("${no-name}", "${no-name}"),
        ] {
            assert_eq!(fill(text, value), expected);
        }
    }
}
