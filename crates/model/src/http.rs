//! The one HTTP client of a provider: its connections, and its time limits for silence.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use centurion_protocol::{Env, World};
use futures_util::{Stream, stream};
use reqwest::header::HeaderMap;
use reqwest::{Client, Response, StatusCode, redirect};
use url::Url;

use crate::body::ChunkedBody;
use crate::{ModelError, RetryPolicy, failure, limits};

/// The bytes of an error's body that are read.
const LARGEST_ERROR: usize = 64 * 1024;

/// A connection pool to one server. Cloning shares it.
#[derive(Clone)]
pub(crate) struct Http {
    client: Client,
    /// The longest silence: while connecting, before the answer, and between two of its bytes.
    silence: Duration,
    world: Arc<dyn World>,
    /// Sees the head of each answer to a body.
    watch: Option<Arc<HeadWatch>>,
}

type HeadWatch = dyn Fn(StatusCode, &HeaderMap) + Send + Sync;

impl Http {
    pub(crate) fn open(base: &Url, env: &Env, world: Arc<dyn World>) -> reqwest::Result<Self> {
        Ok(Self {
            client: client(base, env)?,
            silence: RetryPolicy::new(env).silence,
            world,
            watch: None,
        })
    }

    /// The same, with something that sees the head of each answer to a body.
    pub(crate) fn watched(
        self,
        watch: impl Fn(StatusCode, &HeaderMap) + Send + Sync + 'static,
    ) -> Self {
        Self { watch: Some(Arc::new(watch)), ..self }
    }

    pub(crate) fn silence(&self) -> Duration {
        self.silence
    }

    /// Sends a body and waits for the head of a successful answer.
    pub(crate) async fn post(
        &self,
        url: Url,
        headers: HeaderMap,
        body: ChunkedBody,
    ) -> Result<Response, ModelError> {
        let doing = format!("cannot reach {}", origin(&url));
        let request = self.client.post(url).headers(headers).body(reqwest::Body::wrap(body));
        let response = tokio::time::timeout(self.silence, request.send())
            .await
            .map_err(|_| failure::silent(&doing, self.silence))?
            .map_err(|error| failure::from_transport(&error, &doing))?;
        if let Some(watch) = &self.watch {
            watch(response.status(), response.headers());
        }
        if response.status().is_success() {
            return Ok(response);
        }
        let (status, headers) = (response.status(), response.headers().clone());
        let body = self.error_body(response).await;
        Err(failure::from_response(status, &headers, &body, self.world.as_ref()))
    }

    /// Reads the body of an error; an incomplete body is shown as far as it came.
    async fn error_body(&self, mut response: Response) -> Vec<u8> {
        let mut body = Vec::new();
        while body.len() < LARGEST_ERROR
            && let Ok(Ok(Some(chunk))) = tokio::time::timeout(self.silence, response.chunk()).await
        {
            body.extend_from_slice(&chunk);
        }
        body
    }

    /// Gets a whole body of a bounded size.
    pub(crate) async fn get(&self, url: Url, headers: HeaderMap) -> Result<Vec<u8>, ModelError> {
        let doing = format!("cannot reach {}", origin(&url));
        let exchange = async {
            let mut response =
                self.client.get(url).headers(headers).send().await?.error_for_status()?;
            let mut body = Vec::new();
            while let Some(chunk) = response.chunk().await? {
                body.extend_from_slice(&chunk);
                if body.len() > limits::MOST_BODY {
                    return Ok(None);
                }
            }
            Ok(Some(body))
        };
        tokio::time::timeout(self.silence, exchange)
            .await
            .map_err(|_| failure::silent(&doing, self.silence))?
            .map_err(|error| failure::from_transport(&error, &doing))?
            .ok_or_else(|| {
                let most = limits::MOST_BODY;
                limits::too_large(format!("the body has more than {most} bytes"))
            })
    }
}

/// The bytes of an answer as they arrive; too long a silence is an error.
pub(crate) fn bytes_of(
    response: Response,
    silence: Duration,
) -> impl Stream<Item = Result<Bytes, ModelError>> + Send + 'static {
    stream::unfold(Some(response), move |response| async move {
        let mut response = response?;
        match tokio::time::timeout(silence, response.chunk()).await {
            Ok(Ok(chunk)) => chunk.map(|chunk| (Ok(chunk), Some(response))),
            Ok(Err(error)) => {
                Some((Err(failure::from_transport(&error, "the answer broke off")), None))
            }
            Err(_) => Some((Err(failure::silent("the answer stopped coming", silence)), None)),
        }
    })
}

fn client(base: &Url, env: &Env) -> reqwest::Result<Client> {
    let mut builder = Client::builder()
        .tcp_nodelay(true)
        // A redirect would carry the key to a host that the user did not name.
        .redirect(redirect::Policy::none())
        // Compressed events arrive in bursts.
        .no_gzip();
    if is_loopback(base) {
        builder = builder.no_proxy();
    }
    if base.scheme() == "http" && (is_loopback(base) || !has_tls_proxy(env)) {
        // Reading the system's certificates takes longer than a whole local request.
        builder = builder.tls_backend_preconfigured(trusting_no_authority()).http1_only();
    } else if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Another thread may install one at the same moment, which is equivalent.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
    builder.build()
}

fn trusting_no_authority() -> rustls::ClientConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("invariant: ring speaks the default protocol versions")
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth()
}

/// Whether plain requests may pass a proxy that is itself reached over TLS.
fn has_tls_proxy(env: &Env) -> bool {
    ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"]
        .iter()
        .any(|name| env.get(name).is_some_and(|proxy| proxy.starts_with("https:")))
}

/// Whether the server is on this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// The address without path, user or password.
pub(crate) fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

/// A path below a base URL, whether or not the base ends with a slash.
pub(crate) fn below(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("{}/{path}", base.path().trim_end_matches('/')));
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_url_may_have_a_path_or_a_slash_at_its_end() {
        for (base, expected) in [
            ("https://example.com", "https://example.com/v1/messages"),
            ("https://example.com/", "https://example.com/v1/messages"),
            ("https://example.com/proxy/x/", "https://example.com/proxy/x/v1/messages"),
            ("http://[::1]:80/a?key=1", "http://[::1]/a/v1/messages?key=1"),
        ] {
            assert_eq!(below(&Url::parse(base).unwrap(), "v1/messages").as_str(), expected);
        }
    }

    #[test]
    fn this_machine_is_recognised() {
        let local = |url: &str| is_loopback(&Url::parse(url).unwrap());
        assert!(local("http://127.0.0.1:1") && local("http://localhost") && local("http://[::1]/"));
        assert!(!local("http://example.com") && !local("http://10.0.0.1"));
    }

    #[test]
    fn an_origin_shows_no_secret() {
        let url = Url::parse("https://user:secret@example.com/path?key=1").unwrap();
        assert_eq!(origin(&url), "https://example.com");
    }
}
