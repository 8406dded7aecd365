//! Logging in to servers that want to know who is there.

use std::io::IsTerminal;
use std::process::{Command, Stdio};

use anyhow::ensure;

use super::{Servers, SourceArgs};
use crate::output::{Output, note};

pub(crate) async fn login(name: &str) -> anyhow::Result<()> {
    let servers = Servers::load(&SourceArgs::default())?;
    let declared = servers.find(name)?;
    ensure!(declared.standing.is_active(), "server `{name}` is {}", declared.standing);
    let credentials = servers.surroundings.dirs.mcp_credentials();
    // A client that was registered beforehand may have a secret; a flag would show it to all users of the
    // machine.
    let secret = servers.env.get("MCP_CLIENT_SECRET").map(str::to_owned);
    centurion_mcp::login(&declared.server, &credentials, secret.as_deref(), show_page).await?;
    say(&format!("logged in to `{name}`"));
    Ok(())
}

pub(crate) fn logout(name: &str) -> anyhow::Result<()> {
    let servers = Servers::load(&SourceArgs::default())?;
    let declared = servers.find(name)?;
    let credentials = servers.surroundings.dirs.mcp_credentials();
    let was_logged_in = centurion_mcp::logout(&declared.server, &credentials)?;
    say(&if was_logged_in {
        format!("logged out of `{name}`")
    } else {
        format!("there was no login to `{name}`")
    });
    Ok(())
}

/// Shows a page to the person at this terminal: its address, and the page itself where that works.
fn show_page(url: &str) {
    note(&format!("Open this page in a browser to log in:\n  {url}"));
    if !std::io::stderr().is_terminal() {
        return;
    }
    let browser = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let opened = Command::new(browser)
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    if let Err(error) = opened {
        tracing::debug!(%error, browser, "no browser could be opened");
    }
}

fn say(line: &str) {
    Output::default().write(format!("{line}\n").as_bytes());
}
