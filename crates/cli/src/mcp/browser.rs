//! Opening a page in the browser of the person at this machine.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use centurion_protocol::Env;
use url::{Host, Url};

/// Programs that open a page, in the order in which they are looked for.
const OPENERS: [&str; 3] = ["xdg-open", "gnome-open", "wslview"];

/// Variables of a desktop session.
const DESKTOPS: [&str; 2] = ["WAYLAND_DISPLAY", "DISPLAY"];

/// The program and the page that it is to open: `None` without a desktop or a program, and for a page that no login has.
///
/// The address comes from the server. It is one argument of a program, never of a shell.
pub(super) fn opener(page: &str, env: &Env) -> Option<(PathBuf, Url)> {
    DESKTOPS.iter().find_map(|name| env.get(name))?;
    let page = Url::parse(page).ok().filter(is_login_page)?;
    let directories = std::env::split_paths(env.get("PATH")?).collect::<Vec<_>>();
    let program = OPENERS.iter().find_map(|name| find(name, &directories))?;
    Some((program, page))
}

/// Opens a page, if there is a desktop. The browser outlives this program.
pub(super) fn open(page: &str, env: &Env) {
    let Some((program, page)) = opener(page, env) else { return };
    let opened = Command::new(&program)
        .arg(page.as_str())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    if let Err(error) = opened {
        tracing::debug!(%error, program = %program.display(), "no browser could be opened");
    }
}

/// Passwords are typed there: the page is encrypted, or on this machine.
fn is_login_page(page: &Url) -> bool {
    let is_here = || match page.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => IpAddr::from(address).is_loopback(),
        Some(Host::Ipv6(address)) => IpAddr::from(address).is_loopback(),
        None => false,
    };
    match page.scheme() {
        "https" => page.host().is_some(),
        "http" => is_here(),
        _ => false,
    }
}

/// A program in absolute directories: what lies in the working directory is not run.
fn find(name: &str, directories: &[PathBuf]) -> Option<PathBuf> {
    let absolute = directories.iter().filter(|directory| directory.is_absolute());
    absolute.map(|directory| directory.join(name)).find(|program| is_executable(program))
}

fn is_executable(program: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    program.metadata().is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn env(pairs: &[(&str, &str)]) -> Env {
        Env::new(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
    }

    #[test]
    fn a_page_is_opened_on_a_desktop_by_a_program_of_an_absolute_directory() {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("xdg-open");
        fs::write(&program, "").unwrap();
        let path = directory.path().display().to_string();
        let desktop = |path: &str| env(&[("PATH", path), ("DISPLAY", ":0")]);
        let page = "https://login.example.com/?a=b&c=$(id)";
        assert_eq!(opener(page, &desktop(&path)), None, "it is no program");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let (found, address) = opener(page, &desktop(&path)).unwrap();
        assert_eq!(found, program);
        assert_eq!(address.as_str(), page);
        let wayland = env(&[("PATH", path.as_str()), ("WAYLAND_DISPLAY", "wayland-0")]);
        assert!(opener(page, &wayland).is_some());
        assert_eq!(opener(page, &env(&[("PATH", path.as_str())])), None, "there is no desktop");
        assert_eq!(opener(page, &desktop("relative:/no/such/directory")), None);
    }

    #[test]
    fn only_pages_that_a_login_can_have_are_opened() {
        for (page, expected) in [
            ("https://login.example.com/authorize", true),
            ("http://localhost:8080/authorize", true),
            ("http://127.0.0.1/authorize", true),
            ("http://[::1]:80/authorize", true),
            ("http://login.example.com/authorize", false),
            ("http://localhost.example.com/", false),
            ("file:///etc/passwd", false),
            ("javascript:alert(1)", false),
            ("ssh://example.com", false),
        ] {
            assert_eq!(is_login_page(&Url::parse(page).unwrap()), expected, "{page}");
        }
        assert!(Url::parse("--help").is_err(), "an option is no address");
    }
}
