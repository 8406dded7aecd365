//! Authorization with OAuth: stores, uses and renews tokens, and obtains them by a login.

mod login;
mod store;

use std::path::Path;
use std::time::Duration;

use centurion_config::mcp::{McpRemote, McpServer};
use reqwest::redirect::Policy;
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationMetadata, OAuthClientConfig,
};
use url::Url;

pub use login::{LoginError, login, logout};
use store::TokenStore;

use crate::State;
use crate::pool::Settings;
use crate::transport::read_body;

/// The largest description of an authorization server that is read.
const MOST_METADATA: usize = 1024 * 1024;

/// The longest wait for such a description.
const PATIENCE: Duration = Duration::from_secs(30);

/// The place of a server's own description in revision 2025-03-26.
const OWN_METADATA: &str = "/.well-known/oauth-authorization-server";

/// The part of a challenge that says where a server describes what protects it, which later revisions have.
const RESOURCE_METADATA: &str = "resource_metadata";

/// A manager with tokens for a server, or `None` where the user has not logged in.
pub(crate) async fn manager_with_tokens(
    remote: &McpRemote,
    credentials: &Path,
) -> Result<Option<AuthorizationManager>, AuthError> {
    let store = TokenStore::new(credentials, &remote.url);
    if !store.has_tokens() {
        return Ok(None);
    }
    let secret = store.secret();
    let mut manager = manager(remote, store).await?;
    if !names_metadata(remote) {
        let metadata = metadata(&manager, remote, None).await?;
        manager.set_metadata(metadata);
    }
    if !manager.initialize_from_store().await? {
        return Ok(None);
    }
    if let Some(secret) = secret {
        // Tokens are renewed without a browser: the redirect address does not matter.
        let (client, _) = manager.get_credentials().await?;
        let config = OAuthClientConfig::new(client, "http://localhost");
        manager.configure_client(config.with_client_secret(secret))?;
    }
    Ok(Some(manager))
}

/// A manager that knows only the configuration.
async fn manager(remote: &McpRemote, store: TokenStore) -> Result<AuthorizationManager, AuthError> {
    // The user has named the server: an authorization server in the same private network is expected.
    let mut manager =
        AuthorizationManager::new_allowing_private_addresses(remote.url.as_str()).await?;
    manager.set_credential_store(store);
    let url = remote.oauth.as_ref().and_then(|oauth| oauth.auth_server_metadata_url.as_ref());
    if let Some(url) = url {
        let response = reqwest::get(url).await?.error_for_status()?;
        let (text, _) = read_body(response, MOST_METADATA).await?;
        let metadata: AuthorizationMetadata = serde_json::from_slice(&text)
            .map_err(|error| AuthError::MetadataError(format!("{url}: {error}")))?;
        manager.set_metadata(metadata);
    }
    Ok(manager)
}

/// Tells whether the configuration says where the authorization server describes itself.
fn names_metadata(remote: &McpRemote) -> bool {
    remote.oauth.as_ref().is_some_and(|oauth| oauth.auth_server_metadata_url.is_some())
}

/// Finds the description of the authorization server, beginning with the server's challenge to an unknown client.
async fn metadata(
    manager: &AuthorizationManager,
    remote: &McpRemote,
    challenge: Option<&str>,
) -> Result<AuthorizationMetadata, AuthError> {
    let names_another = challenge.is_some_and(|challenge| challenge.contains(RESOURCE_METADATA));
    match manager.resolve_metadata_from_challenge(challenge).await {
        Err(error @ AuthError::AuthorizationServerMismatch { .. }) if !names_another => {
            own_metadata(remote).await?.ok_or(error)
        }
        found => Ok(found?.metadata),
    }
}

/// The description that a server of revision 2025-03-26 gives of itself, at the root of its address. That revision asks for
/// no issuer, and some name a path there; so everything in it has to be of the server's own origin.
async fn own_metadata(remote: &McpRemote) -> Result<Option<AuthorizationMetadata>, AuthError> {
    let Ok(server) = Url::parse(&remote.url) else { return Ok(None) };
    let Ok(url) = server.join(OWN_METADATA) else { return Ok(None) };
    let client = reqwest::Client::builder().redirect(Policy::none()).timeout(PATIENCE).build()?;
    let response = client.get(url).send().await?;
    if !response.status().is_success() {
        return Ok(None);
    }
    let (text, _) = read_body(response, MOST_METADATA).await?;
    let Ok(metadata) = serde_json::from_slice::<AuthorizationMetadata>(&text) else {
        return Ok(None);
    };
    let is_own = |text: &str| Url::parse(text).is_ok_and(|url| url.origin() == server.origin());
    let all = [Some(&metadata.authorization_endpoint), Some(&metadata.token_endpoint)]
        .into_iter()
        .chain([metadata.registration_endpoint.as_ref(), metadata.issuer.as_ref()]);
    let is_all_own = all.flatten().all(|url| is_own(url));
    Ok(is_all_own.then_some(metadata))
}

/// The state of a server that asks for authorization. Stores the scopes that it demands for the next login.
pub(crate) fn needs_login(
    settings: &Settings,
    server: &McpServer,
    reason: &str,
    scope: Option<String>,
) -> State {
    if let (Some(credentials), Some(scope), Ok(remote)) =
        (&settings.credentials, scope, login::remote(server))
        && let Err(error) = TokenStore::new(credentials, &remote.url).want(&scope)
    {
        tracing::warn!(%error, "a wanted permission could not be remembered");
    }
    State::NeedsAuth { reason: format!("{reason}; run `centurion mcp login {}`", server.name) }
}
