//! One type for HTTP with and without the tokens of a login, so that the SDK's transport is compiled once.

use std::collections::HashMap;
use std::sync::Arc;

use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::auth::AuthClient;
use rmcp::transport::streamable_http_client::{StreamableHttpClient, StreamableHttpPostResponse};

use super::http::{BoundedHttp, Events, Failed};

#[derive(Clone)]
pub(crate) enum HttpCaller {
    Unknown(BoundedHttp),
    LoggedIn(AuthClient<BoundedHttp>),
}

impl StreamableHttpClient for HttpCaller {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        match self {
            Self::Unknown(http) => http.post_message(uri, message, session, token, headers).await,
            Self::LoggedIn(http) => http.post_message(uri, message, session, token, headers).await,
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failed> {
        match self {
            Self::Unknown(http) => http.delete_session(uri, session, token, headers).await,
            Self::LoggedIn(http) => http.delete_session(uri, session, token, headers).await,
        }
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Events, Failed> {
        match self {
            Self::Unknown(http) => http.get_stream(uri, session, last, token, headers).await,
            Self::LoggedIn(http) => http.get_stream(uri, session, last, token, headers).await,
        }
    }
}
