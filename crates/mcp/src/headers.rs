//! The headers of every request to a remote server.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use centurion_config::mcp::McpRemote;
use centurion_tools::{PipedProcess, PipedProgram};
use reqwest::header::{HeaderName, HeaderValue};
use serde_json::{Map, Value};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::time::timeout;

use crate::pool::Settings;
use crate::process::others_words;
use crate::transport::failure::Failure;

/// The time limit of the user's command for headers.
const PATIENCE: Duration = Duration::from_secs(10);
/// The largest list of headers.
const MOST: u64 = 64 * 1024;

/// The reason that a server has no headers. Values may be secrets: no error repeats one.
#[derive(Debug, Error)]
pub(crate) enum HeadersError {
    #[error("`{0}` is no header name")]
    Name(String),
    #[error("the header {0} has a value that cannot be sent")]
    Value(String),
    #[error("its headersHelper could not be started: {0}")]
    NotStarted(io::Error),
    #[error("its headersHelper did not finish within {PATIENCE:?}")]
    Slow,
    #[error("its headersHelper ended with code {code}: {said}")]
    Failed { code: i32, said: String },
    #[error("its headersHelper was ended by a signal")]
    Killed,
    #[error("its headersHelper did not print a JSON object: {0}")]
    NoObject(serde_json::Error),
    #[error("its headersHelper gave no text for the header {0}")]
    NoText(String),
}

impl From<HeadersError> for Failure {
    fn from(error: HeadersError) -> Self {
        Self::Lasting(error.to_string())
    }
}

/// The headers of a server: the configured ones, then the output of its command.
pub(crate) async fn collect(
    settings: &Settings,
    server: &str,
    remote: &McpRemote,
) -> Result<HashMap<HeaderName, HeaderValue>, HeadersError> {
    let mut headers = HashMap::new();
    for (name, value) in &remote.headers {
        add(&mut headers, name, value)?;
    }
    if let Some(command) = &remote.headers_helper {
        let printed = timeout(PATIENCE, ask(settings, server, remote, command))
            .await
            .map_err(|_| HeadersError::Slow)??;
        for (name, value) in &printed {
            let value = value.as_str().ok_or_else(|| HeadersError::NoText(name.clone()))?;
            add(&mut headers, name, value)?;
        }
    }
    Ok(headers)
}

fn add(
    headers: &mut HashMap<HeaderName, HeaderValue>,
    name: &str,
    value: &str,
) -> Result<(), HeadersError> {
    let known = HeaderName::try_from(name).map_err(|_| HeadersError::Name(name.to_owned()))?;
    let mut value =
        HeaderValue::try_from(value).map_err(|_| HeadersError::Value(name.to_owned()))?;
    value.set_sensitive(true);
    headers.insert(known, value);
    Ok(())
}

/// Runs the command below a guard and parses the JSON object that it prints.
async fn ask(
    settings: &Settings,
    server: &str,
    remote: &McpRemote,
    command: &str,
) -> Result<Map<String, Value>, HeadersError> {
    let mut environment = settings.environment();
    environment.insert("CLAUDE_CODE_MCP_SERVER_NAME".to_owned(), server.to_owned());
    environment.insert("CLAUDE_CODE_MCP_SERVER_URL".to_owned(), remote.url.clone());
    let program = PipedProgram {
        program: "/bin/sh".into(),
        args: vec!["-c".into(), command.into()],
        environment,
        cwd: settings.cwd.clone(),
    };
    let mut piped =
        PipedProcess::start(&settings.guard, &program).map_err(HeadersError::NotStarted)?;
    drop(piped.stdin.take());
    let (stdout, stderr) = (piped.stdout.take(), piped.stderr.take());
    let (printed, said) = tokio::join!(read(stdout), read(stderr));
    match piped.wait().await.code {
        Some(0) => serde_json::from_str(&printed).map_err(HeadersError::NoObject),
        Some(code) => Err(HeadersError::Failed { code, said: others_words(&said) }),
        None => Err(HeadersError::Killed),
    }
}

/// Reads a stream to its end and keeps its beginning.
async fn read(stream: Option<impl AsyncRead + Unpin>) -> String {
    let mut text = Vec::new();
    if let Some(mut stream) = stream {
        let _ = (&mut stream).take(MOST).read_to_end(&mut text).await;
        let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
    }
    String::from_utf8_lossy(&text).into_owned()
}
