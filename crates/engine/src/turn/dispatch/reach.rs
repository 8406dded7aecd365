//! The reach of a call, in words for the person who decides about it: what it may touch, and what confines it.

use std::path::Path;

use centurion_permissions::Access;
use centurion_sandbox::Network;
use centurion_tools::{CommandConfinement, Workspace};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The most places that are named.
const MOST_PLACES: usize = 3;

/// Describes what a call with this input may touch; `None` for one that touches the session alone.
pub(super) fn of(access: &Access, input: &RawValue, workspace: &Workspace) -> Option<String> {
    let root = workspace.root();
    Some(match access {
        Access::Session => return None,
        Access::Read(path) => format!("reads {}", place(path, &root)),
        Access::Write(path) => format!("changes {}", place(path, &root)),
        Access::Shell(command) => of_command(command, input, workspace, &root),
        Access::Network(url) => format!("reaches {}", host_of(url)),
        Access::External { only_reads: true } => {
            "works outside of this program, and says that it only reads".to_owned()
        }
        Access::External { only_reads: false } => "works outside of this program".to_owned(),
    })
}

fn of_command(command: &str, input: &RawValue, workspace: &Workspace, root: &Path) -> String {
    #[derive(Deserialize)]
    struct Input {
        #[serde(default, rename = "dangerouslyDisableSandbox")]
        is_disabled: bool,
    }
    let is_disabled =
        serde_json::from_str::<Input>(input.get()).is_ok_and(|input| input.is_disabled);
    let confinement = workspace.sandbox.as_ref().map(|it| it.confinement(command, is_disabled));
    match confinement {
        None | Some(CommandConfinement::Nothing) => {
            "may touch all that you may · no sandbox".to_owned()
        }
        Some(CommandConfinement::Refused) => {
            "touches nothing: no sandbox can be had, and so it will not run".to_owned()
        }
        Some(CommandConfinement::Sandbox { writes, network }) => {
            let places: Vec<String> =
                writes.iter().take(MOST_PLACES).map(|path| place(path, root)).collect();
            let more = writes.len().saturating_sub(MOST_PLACES);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let places = if places.is_empty() { "nothing".to_owned() } else { places.join(", ") };
            let network = match network {
                Network::Open => "with network",
                Network::Off | Network::Loopback => "no network",
                Network::Proxied { .. } => "some hosts alone",
            };
            format!("changes {places}{more} · sandbox on, {network}")
        }
    }
}

/// A path as a person knows it.
fn place(path: &Path, root: &Path) -> String {
    match path.strip_prefix(root) {
        Ok(rest) if rest.as_os_str().is_empty() => "this folder".to_owned(),
        Ok(_) => format!("{} in this folder", name_of(path)),
        Err(_) => format!("{}, outside of this folder", path.display()),
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).display().to_string()
}

/// The host of an address, which may be no address at all.
fn host_of(url: &str) -> String {
    let parsed = url::Url::parse(url).ok();
    let host = parsed.as_ref().and_then(|url| url.host_str());
    host.unwrap_or("an address that cannot be read").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_named_as_a_person_knows_it() {
        let root = Path::new("/work");
        for (path, expected) in [
            ("/work", "this folder"),
            ("/work/src/main.rs", "main.rs in this folder"),
            ("/workshop/x", "/workshop/x, outside of this folder"),
            ("/", "/, outside of this folder"),
        ] {
            assert_eq!(place(Path::new(path), root), expected);
        }
        assert_eq!(host_of("https://user@example.com:8/x?y"), "example.com");
        assert_eq!(host_of("no url"), "an address that cannot be read");
    }
}
