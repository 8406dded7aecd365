//! Logging in to servers that want to know who is there.

use anyhow::ensure;
use centurion_protocol::Env;

use super::{ListedServers, ServerSourceArgs, browser};
use crate::output::{Output, note};

pub(crate) async fn login(name: &str) -> anyhow::Result<()> {
    let servers = ListedServers::load(&ServerSourceArgs::default())?;
    let declared = servers.find(name)?;
    ensure!(declared.standing.is_active(), "server `{name}` is {}", declared.standing);
    let credentials = servers.surroundings.dirs.mcp_credentials();
    // A client that was registered beforehand may have a secret; a flag would show it to all users of the
    // machine.
    let secret = servers.env.get("MCP_CLIENT_SECRET").map(str::to_owned);
    let show = |page: &str| show_page(page, &servers.surroundings.env);
    centurion_mcp::login(&declared.server, &credentials, secret.as_deref(), show).await?;
    say(&format!("logged in to `{name}`"));
    Ok(())
}

pub(crate) fn logout(name: &str) -> anyhow::Result<()> {
    let servers = ListedServers::load(&ServerSourceArgs::default())?;
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

/// Shows a page to the person at this machine: its address, and the page itself where there is a desktop.
fn show_page(url: &str, env: &Env) {
    note(&format!("Open this page in a browser to log in:\n  {url}"));
    browser::open(url, env);
}

fn say(line: &str) {
    Output::default().write(format!("{line}\n").as_bytes());
}
