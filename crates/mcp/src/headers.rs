//! The headers that go with every request to a remote server.

use std::collections::HashMap;
use std::time::Duration;

use centurion_config::mcp::McpRemote;
use centurion_tools::{Piped, PipedProgram};
use reqwest::header::{HeaderName, HeaderValue};
use serde_json::{Map, Value};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::time::timeout;

use crate::pool::Settings;
use crate::process::others_words;

/// How long the user's command for headers may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// No list of headers is longer.
const MOST: u64 = 64 * 1024;

/// The headers of a server: those that are configured, then those that its command prints.
pub(crate) async fn collect(
    settings: &Settings,
    server: &str,
    remote: &McpRemote,
) -> Result<HashMap<HeaderName, HeaderValue>, String> {
    let mut headers = HashMap::new();
    for (name, value) in &remote.headers {
        add(&mut headers, name, value)?;
    }
    if let Some(command) = &remote.headers_helper {
        let printed = timeout(PATIENCE, ask(settings, server, remote, command))
            .await
            .map_err(|_| format!("its headersHelper did not finish within {PATIENCE:?}"))??;
        for (name, value) in &printed {
            let value = value
                .as_str()
                .ok_or_else(|| format!("its headersHelper gave no text for the header {name}"))?;
            add(&mut headers, name, value)?;
        }
    }
    Ok(headers)
}

fn add(
    headers: &mut HashMap<HeaderName, HeaderValue>,
    name: &str,
    value: &str,
) -> Result<(), String> {
    let known = HeaderName::try_from(name).map_err(|_| format!("`{name}` is no header name"))?;
    // The value may be a secret: it is not repeated.
    let mut value = HeaderValue::try_from(value)
        .map_err(|_| format!("the header {name} has a value that cannot be sent"))?;
    value.set_sensitive(true);
    headers.insert(known, value);
    Ok(())
}

/// Runs the command below a guard and reads the JSON object that it prints.
async fn ask(
    settings: &Settings,
    server: &str,
    remote: &McpRemote,
    command: &str,
) -> Result<Map<String, Value>, String> {
    let mut environment = settings.environment();
    environment.insert("CLAUDE_CODE_MCP_SERVER_NAME".to_owned(), server.to_owned());
    environment.insert("CLAUDE_CODE_MCP_SERVER_URL".to_owned(), remote.url.clone());
    let program = PipedProgram {
        program: "/bin/sh".into(),
        args: vec!["-c".into(), command.into()],
        environment,
        cwd: settings.cwd.clone(),
    };
    let mut piped = Piped::start(&settings.guard, &program)
        .map_err(|error| format!("its headersHelper could not be started: {error}"))?;
    drop(piped.stdin.take());
    let (stdout, stderr) = (piped.stdout.take(), piped.stderr.take());
    let (printed, said) = tokio::join!(read(stdout), read(stderr));
    match piped.wait().await.code {
        Some(0) => serde_json::from_str(&printed)
            .map_err(|error| format!("its headersHelper did not print a JSON object: {error}")),
        Some(code) => {
            Err(format!("its headersHelper ended with code {code}: {}", others_words(&said)))
        }
        None => Err("its headersHelper was ended by a signal".to_owned()),
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
