//! Authorization with OAuth: stores, uses and renews tokens, and obtains them by a login.

mod login;
mod store;

use std::path::Path;

use centurion_config::mcp::{McpRemote, McpServer};
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationMetadata, OAuthClientConfig,
};

pub use login::{LoginError, login, logout};
use store::TokenStore;

use crate::State;
use crate::pool::Settings;
use crate::transport::read_body;

/// The largest description of an authorization server that is read.
const MOST_METADATA: usize = 1024 * 1024;

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
