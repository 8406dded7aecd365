//! Gets one address over HTTP, within limits.

use std::error::Error as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use centurion_permissions::HostRule;
use centurion_protocol::{Env, HostName, is_local_address};
use futures_util::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{CONTENT_TYPE, HeaderMap, LOCATION};
use reqwest::redirect::Policy;
use reqwest::{Client, NoProxy, Proxy, StatusCode};
use thiserror::Error;
use tokio::sync::OnceCell;
use url::{Host, Url};

#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// The bytes of a body; the rest is not loaded.
    pub(super) download: usize,
    /// The time for everything: name, connection, redirects and body.
    pub(super) time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { download: 10 << 20, time: Duration::from_secs(30) }
    }
}

/// The result of a request.
pub(super) enum Arrival {
    Here(Response),
    /// A redirect to another host, for which the model has not asked.
    Elsewhere {
        status: StatusCode,
        target: Url,
    },
}

pub(super) struct Response {
    pub(super) url: Url,
    pub(super) status: StatusCode,
    pub(super) content_type: Option<String>,
    pub(super) body: Vec<u8>,
    /// Whether there was more.
    pub(super) cut: bool,
}

#[derive(Debug, Error)]
pub(super) enum FetchError {
    #[error("{0:?} is not an address: {1}. Give a full one, such as https://example.com/page")]
    Address(String, url::ParseError),
    #[error("only http and https can be fetched, not {0}")]
    Scheme(String),
    #[error("an address with a name and password in it is not fetched")]
    Credentials,
    #[error(
        "{0} is this machine or its network, which is fetched from only if the user names it: a rule such as \
         WebFetch(domain:{0}) does"
    )]
    Local(HostName),
    #[error("no answer within {} seconds", .0.as_secs_f32())]
    TimedOut(Duration),
    #[error("redirected more than {0} times")]
    RedirectLoop(usize),
    #[error("redirected to {0:?}, which is not an address")]
    Redirect(String),
    #[error("{0}")]
    Http(String),
}

impl From<reqwest::Error> for FetchError {
    fn from(error: reqwest::Error) -> Self {
        // The causes tell the failure; the outermost error only repeats the address.
        let mut causes = Vec::new();
        let mut cause = error.source();
        while let Some(error) = cause {
            let text = error.to_string();
            if causes.last().is_none_or(|last: &String| !last.contains(&text)) {
                causes.push(text);
            }
            cause = error.source();
        }
        let causes = if causes.is_empty() { error.to_string() } else { causes.join(": ") };
        Self::Http(if error.is_connect() { format!("cannot connect: {causes}") } else { causes })
    }
}

/// The address to request: http stays only for this machine and private addresses.
pub(super) fn address(text: &str) -> Result<Url, FetchError> {
    // Nothing is trimmed before: rules read the same text.
    let url = Url::parse(text).map_err(|error| FetchError::Address(text.into(), error))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(FetchError::Scheme(url.scheme().to_owned()));
    }
    if has_credentials(&url) {
        return Err(FetchError::Credentials);
    }
    let mut url = upgraded(url);
    url.set_fragment(None);
    Ok(url)
}

fn has_credentials(url: &Url) -> bool {
    !url.username().is_empty() || url.password().is_some()
}

fn upgraded(mut url: Url) -> Url {
    let local = match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback() || address.is_private(),
        Some(Host::Ipv6(address)) => address.is_loopback() || address.is_unique_local(),
        None => false,
    };
    if url.scheme() == "http" && !local {
        // Cannot fail between these two.
        let _ = url.set_scheme("https");
    }
    url
}

/// Fetches with a client that is built when it is first needed: loading certificates takes a while.
pub(super) struct Fetcher {
    limits: Limits,
    lookup: Lookup,
    /// Resolves no name to this machine or its network.
    outside: OnceCell<Client>,
    /// For hosts that the user named.
    anywhere: OnceCell<Client>,
}

/// The permission of a fetch.
pub(super) struct Leave<'a> {
    /// The rule about the host of an address.
    pub(super) rule: &'a (dyn Fn(&Url) -> HostRule + Send + Sync),
    /// Whether a person has approved the address as it is written.
    pub(super) is_approved: bool,
}

impl Leave<'_> {
    /// Decides which addresses a name may resolve to.
    fn reach(&self, url: &Url) -> Result<Reach, FetchError> {
        if (self.rule)(url) == HostRule::Named {
            return Ok(Reach::Anywhere);
        }
        let host = HostName::of(url).ok_or_else(|| FetchError::Redirect(url.to_string()))?;
        let is_local = match &host {
            HostName::Address(address) => is_local_address(*address),
            HostName::Domain(_) => host.is_localhost(),
        };
        match (is_local, self.is_approved) {
            // The address itself tells its network.
            (true, true) => Ok(Reach::Anywhere),
            (true, false) => Err(FetchError::Local(host)),
            (false, _) => Ok(Reach::Outside),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    Outside,
    Anywhere,
}

/// The addresses of a name.
pub(super) type Lookup = fn(String) -> BoxFuture<'static, std::io::Result<Vec<SocketAddr>>>;

/// Asks the system's resolver.
fn look_up(name: String) -> BoxFuture<'static, std::io::Result<Vec<SocketAddr>>> {
    Box::pin(async move { Ok(tokio::net::lookup_host((name.as_str(), 0)).await?.collect()) })
}

/// Resolves names, and skips addresses of this machine and its network.
struct OutsideOnly(Lookup);

impl Resolve for OutsideOnly {
    fn resolve(&self, name: Name) -> Resolving {
        let lookup = self.0;
        Box::pin(async move {
            let found = lookup(name.as_str().to_owned()).await?;
            let outside: Vec<SocketAddr> =
                found.into_iter().filter(|address| !is_local_address(address.ip())).collect();
            if outside.is_empty() {
                let host = HostName::parse(name.as_str())
                    .unwrap_or_else(|| HostName::Domain(name.as_str().to_owned()));
                return Err(FetchError::Local(host).into());
            }
            let addresses: Addrs = Box::new(outside.into_iter());
            Ok(addresses)
        })
    }
}

impl Fetcher {
    const REDIRECTS: usize = 10;

    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, lookup: look_up, outside: OnceCell::new(), anywhere: OnceCell::new() }
    }

    /// The same with another resolver.
    #[cfg(test)]
    pub(super) fn with_lookup(limits: Limits, lookup: Lookup) -> Self {
        Self { lookup, ..Self::new(limits) }
    }

    pub(super) async fn fetch(
        &self,
        url: &Url,
        env: &Env,
        leave: &Leave<'_>,
    ) -> Result<Arrival, FetchError> {
        tokio::time::timeout(self.limits.time, self.follow(url.clone(), env, leave))
            .await
            .unwrap_or(Err(FetchError::TimedOut(self.limits.time)))
    }

    async fn follow(
        &self,
        mut url: Url,
        env: &Env,
        leave: &Leave<'_>,
    ) -> Result<Arrival, FetchError> {
        for _ in 0..=Self::REDIRECTS {
            let client = match leave.reach(&url)? {
                Reach::Outside => {
                    self.outside.get_or_try_init(|| client(env, Some(self.lookup))).await?
                }
                Reach::Anywhere => self.anywhere.get_or_try_init(|| client(env, None)).await?,
            };
            let response = client.get(url.clone()).send().await?;
            let status = response.status();
            let target = match header(response.headers(), LOCATION) {
                Some(target) if status.is_redirection() => target,
                _ => return self.load(url, response).await.map(Arrival::Here),
            };
            let target = url.join(&target).map_err(|_| FetchError::Redirect(target))?;
            if has_credentials(&target) {
                return Err(FetchError::Credentials);
            }
            // The rule judges each redirect: it may treat `www.` as another host.
            if !same_host(&url, &target)
                || (target.host() != url.host() && (leave.rule)(&target) == HostRule::Taken)
            {
                return Ok(Arrival::Elsewhere { status, target });
            }
            url = upgraded(target);
        }
        Err(FetchError::RedirectLoop(Self::REDIRECTS))
    }

    async fn load(
        &self,
        url: Url,
        mut response: reqwest::Response,
    ) -> Result<Response, FetchError> {
        let status = response.status();
        let content_type = header(response.headers(), CONTENT_TYPE);
        let mut body = Vec::new();
        let mut cut = false;
        while let Some(chunk) = response.chunk().await? {
            let room = self.limits.download.saturating_sub(body.len());
            cut = chunk.len() > room;
            body.extend(chunk.into_iter().take(room));
            if cut {
                break;
            }
        }
        Ok(Response { url, status, content_type, body, cut })
    }
}

fn header(headers: &HeaderMap, name: reqwest::header::HeaderName) -> Option<String> {
    headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// Whether a redirect stays on the requested host; `www.` makes no difference, http neither, another port does.
fn same_host(from: &Url, to: &Url) -> bool {
    let host =
        |url: &Url| url.host_str().map(|host| host.strip_prefix("www.").unwrap_or(host).to_owned());
    matches!(to.scheme(), "http" | "https") && host(from) == host(to) && from.port() == to.port()
}

/// A client; with a lookup, one that reaches only addresses outside.
async fn client(env: &Env, outside_by: Option<Lookup>) -> Result<Client, FetchError> {
    let mut builder = Client::builder()
        .user_agent(concat!("centurion/", env!("CARGO_PKG_VERSION")))
        .redirect(Policy::none())
        .no_proxy();
    if let Some(lookup) = outside_by {
        builder = builder.dns_resolver(Arc::new(OutsideOnly(lookup)));
    }
    for proxy in proxies(env)? {
        builder = builder.proxy(proxy);
    }
    let building = tokio::task::spawn_blocking(move || {
        // The first caller in this process installs the provider; all install the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        builder.build()
    });
    Ok(building.await.map_err(|error| FetchError::Http(error.to_string()))??)
}

/// The proxies that the user has set; never for this machine itself.
fn proxies(env: &Env) -> Result<Vec<Proxy>, FetchError> {
    let either = |upper: &str| env.get(upper).or_else(|| env.get(&upper.to_lowercase()));
    let direct = format!("localhost,127.0.0.1,::1,{}", either("NO_PROXY").unwrap_or_default());
    let proxies = [
        either("HTTPS_PROXY").map(Proxy::https),
        either("HTTP_PROXY").map(Proxy::http),
        either("ALL_PROXY").map(Proxy::all),
    ];
    proxies
        .into_iter()
        .flatten()
        .map(|proxy| Ok(proxy?.no_proxy(NoProxy::from_string(&direct))))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http_is_kept_only_for_this_machine() {
        for (asked, fetched) in [
            ("http://example.com/a#b", "https://example.com/a"),
            (" https://example.com ", "https://example.com/"),
            ("\thttps://exa\nmple.com", "https://example.com/"),
            ("http://localhost:80/", "http://localhost/"),
            ("http://127.0.0.2:8080/", "http://127.0.0.2:8080/"),
            ("http://[::1]:1/", "http://[::1]:1/"),
            ("http://10.0.0.1/", "http://10.0.0.1/"),
            ("http://8.8.8.8/", "https://8.8.8.8/"),
        ] {
            assert_eq!(address(asked).unwrap().as_str(), fetched);
        }
        for bad in [
            "example.com",
            "file:///etc/passwd",
            "ftp://a/",
            "https://a:b@c/",
            "",
            "\u{a0}https://a/",
        ] {
            assert!(address(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_redirect_stays_on_its_host_or_is_named() {
        let same = |from: &str, to: &str| same_host(&from.parse().unwrap(), &to.parse().unwrap());
        assert!(same("https://example.com/a", "https://www.example.com/b"));
        assert!(same("https://www.example.com/a", "http://example.com/b"));
        assert!(!same("https://example.com/", "https://evil.example.com/"));
        assert!(!same("https://example.com/", "http://127.0.0.1/"));
        assert!(!same("http://127.0.0.1:1/", "http://127.0.0.1:2/"));
        assert!(!same("https://example.com/", "ftp://example.com/"));
    }
}
