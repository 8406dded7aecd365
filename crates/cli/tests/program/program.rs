//! Running the binary in a scratch home and project, with nothing of this machine's environment.

use std::ffi::OsStr;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use centurion_testkit::{Recorded, Reply, Scratch, Server, sse};
use serde_json::Value;

use crate::declared;

pub(crate) struct Program {
    pub(crate) scratch: Scratch,
    pub(crate) server: Option<Server>,
}

/// The output and the exit code of a finished program.
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Program {
    /// A program whose model gives these replies, one a request.
    pub(crate) fn answering(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self { scratch: Scratch::new(), server: Some(Server::start(replies)) }
    }

    pub(crate) fn with_handler(
        handler: impl Fn(&Recorded) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self { scratch: Scratch::new(), server: Some(Server::start_with(handler)) }
    }

    /// The same for more requests than a test can hold: none is remembered.
    pub(crate) fn with_forgetful_handler(
        handler: impl Fn(&Recorded) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self { scratch: Scratch::new(), server: Some(Server::start_forgetful(handler)) }
    }

    /// A program without a model server.
    pub(crate) fn alone() -> Self {
        Self { scratch: Scratch::new(), server: None }
    }

    pub(crate) fn server(&self) -> &Server {
        self.server.as_ref().unwrap()
    }

    pub(crate) fn command(
        &self,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_centurion"));
        command
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.scratch.home())
            .current_dir(self.scratch.project())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(server) = &self.server {
            command.env("ANTHROPIC_BASE_URL", server.url()).env("ANTHROPIC_API_KEY", "test-key");
        }
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        ended(self.command(arguments).output().unwrap())
    }

    /// A run that may use Bash, and tells what becomes of it event by event.
    pub(crate) fn run_with_bash(&self) -> Ended {
        let stream = ["--output-format", "stream-json", "--verbose"];
        self.run(&[&["-p", "go", "--allowedTools", "Bash"][..], &stream].concat())
    }

    pub(crate) fn run_with_input(&self, arguments: &[&str], input: &str) -> Ended {
        let mut child = self.command(arguments).stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        ended(child.wait_with_output().unwrap())
    }

    /// All transcripts of the scratch home.
    pub(crate) fn transcripts(&self) -> Vec<PathBuf> {
        let projects = self.scratch.home().join(".centurion/projects");
        let dirs = std::fs::read_dir(projects).into_iter().flatten().flatten();
        let files =
            dirs.flat_map(|dir| std::fs::read_dir(dir.path()).into_iter().flatten().flatten());
        files
            .map(|file| file.path())
            .filter(|path| path.extension() == Some(OsStr::new("jsonl")))
            .collect()
    }
}

pub(crate) fn ended(output: Output) -> Ended {
    Ended {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

impl Ended {
    pub(crate) fn events(&self) -> Vec<Value> {
        let events = self.stdout.lines().map(|line| serde_json::from_str(line).unwrap());
        events.inspect(declared::check).collect()
    }

    pub(crate) fn result(&self) -> Value {
        self.events().into_iter().rfind(|event| event["type"] == "result").unwrap()
    }
}

/// A reply that calls a tool.
pub(crate) fn call(id: &str, tool: &str, input: Value) -> Reply {
    Reply::blocks([sse::tool_use(id, tool, input)])
}

/// Waits until a condition holds; fails the test when it does not within half a minute.
pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what} did not happen");
        std::thread::yield_now();
    }
}

pub(crate) fn signal(child: &Child, signal: &str) {
    let status = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}
