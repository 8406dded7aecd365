//! Programs of others that tests work with: where `cargo xtask needs` has put them.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use centurion_testkit::closed_port;
use serde_json::{Value, json};

/// A file among the components.
///
/// # Panics
/// If it is not there: a test that skips itself proves nothing.
fn component(path: &str) -> PathBuf {
    let beside_what_was_built = || Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("needs");
    let needs = std::env::var_os("CENTURION_TEST_NEEDS");
    let file = needs.map_or_else(beside_what_was_built, PathBuf::from).join(path);
    assert!(file.exists(), "{} is missing: `cargo xtask needs` installs it", file.display());
    file
}

pub(crate) fn node() -> PathBuf {
    component("node")
}

pub(crate) fn python() -> PathBuf {
    component("python/bin/python")
}

/// The conformance suite of the protocol, for node.
pub(crate) fn conformance() -> PathBuf {
    component("npm/node_modules/@modelcontextprotocol/conformance/dist/index.js")
}

/// The last version of the suite before those that know the newer revision of the protocol, for node.
pub(crate) fn older_conformance() -> PathBuf {
    component("npm/node_modules/conformance-older/dist/index.js")
}

/// The Inspector of the protocol in its mode without a page, for node.
pub(crate) fn inspector() -> PathBuf {
    component("npm/node_modules/@modelcontextprotocol/inspector/clients/cli/build/index.js")
}

/// A server that shows all of the protocol, for node.
pub(crate) fn everything() -> PathBuf {
    component("npm/node_modules/@modelcontextprotocol/server-everything/dist/index.js")
}

/// The directory of the clients that drive the program.
pub(crate) fn clients() -> PathBuf {
    component("clients/node_modules")
}

/// A file of one of these clients.
pub(crate) fn client(path: &str) -> PathBuf {
    component(&format!("clients/node_modules/{path}"))
}

/// A script of these tests, for Python or node.
pub(crate) fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts").join(name)
}

/// The definition of the server that shows all of the protocol, as a program.
pub(crate) fn everything_server() -> Value {
    json!({"command": node(), "args": [everything(), "stdio"]})
}

/// The definition of the server of these tests, as a program. Its files are beside where it starts.
pub(crate) fn python_server() -> Value {
    json!({"command": python(), "args": [script("server.py"), "stdio"]})
}

/// The definition of a server that says what is in this file wherever it can.
pub(crate) fn forger(file: &Path) -> Value {
    json!({"command": python(), "args": [script("forger.py"), file]})
}

/// A server that runs on its own, until this is dropped.
pub(crate) struct Remote {
    child: Child,
    /// Kept open: a server that cannot write its log ends.
    _log: BufReader<Box<dyn Read>>,
    pub(crate) url: String,
}

impl Remote {
    /// The server of these tests. It finds a port by itself and says which.
    pub(crate) fn python() -> Self {
        let mut command = Command::new(python());
        command.arg(script("server.py")).arg("http");
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let stdout: Box<dyn Read> = Box::new(child.stdout.take().unwrap());
        let mut log = BufReader::new(stdout);
        let mut url = String::new();
        log.read_line(&mut url).unwrap();
        Self { child, _log: log, url: url.trim().to_owned() }
    }

    /// The server that shows all of the protocol, over `streamableHttp` or `sse`.
    pub(crate) fn everything(transport: &str) -> Self {
        // It must be given a port. Another program may take it first; then another one is tried.
        (0..5).find_map(|_| Self::everything_at(transport, closed_port())).unwrap()
    }

    fn everything_at(transport: &str, port: u16) -> Option<Self> {
        let mut command = Command::new(node());
        command.arg(everything()).arg(transport).env("PORT", port.to_string());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let stderr: Box<dyn Read> = Box::new(child.stderr.take().unwrap());
        let mut log = BufReader::new(stderr);
        let mut line = String::new();
        let path = if transport == "sse" { "sse" } else { "mcp" };
        while log.read_line(&mut line).unwrap() > 0 {
            if line.contains(&format!("on port {port}")) {
                let url = format!("http://127.0.0.1:{port}/{path}");
                return Some(Self { child, _log: log, url });
            }
            line.clear();
        }
        child.wait().unwrap();
        None
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
