//! The session of a benchmark, and the numbers that the kernel has about its process.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use centurion_config::agents::AgentSources;
use centurion_config::skills::SkillSources;
use centurion_engine::builtin::{self, Switches};
use centurion_engine::{AgentOptions, Base, Definitions, Options, Storage};
use centurion_model::{Model, Provider, ProviderKind, RetryPolicy};
use centurion_protocol::{Env, SystemWorld};
use centurion_tools::guard::GuardProgram;
use rustix::time::{ClockId, clock_gettime};
use tempfile::TempDir;

/// A scratch directory, in memory where that is possible: the time that a disk needs for a new file is not ours to
/// measure.
pub(crate) fn scratch() -> TempDir {
    let memory = Path::new("/dev/shm");
    let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    dir.expect("a scratch directory")
}

/// The options of a session with the built-in agents, whose files are in this directory.
pub(crate) fn options(dir: &Path, provider: Arc<dyn Provider>) -> Options {
    let retries = RetryPolicy::new(&Env::default());
    let world = Arc::new(SystemWorld);
    let model =
        Model::with_provider(provider, ProviderKind::Script, "script", retries, world.clone());
    let built_in = builtin::agents(&Switches::default());
    let sources = AgentSources { built_in, ..AgentSources::default() };
    let definitions = Definitions::new(sources, SkillSources::default(), world);
    let base = Base::new(dir.to_owned(), GuardProgram::new("/nonexistent/guard"));
    let storage = Storage {
        resumed_at: None,
        transcript: Some(dir.join("session.jsonl")),
        ..Storage::without_transcript(dir.join("output"))
    };
    Options { agents: AgentOptions::new(definitions), ..Options::new(model, base, storage) }
}

/// The time that this thread has computed. Other programs run, too, and do not count.
pub(crate) fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).expect("a time after the beginning")
}

/// The bytes of memory that this process has (`VmRSS:`), or had at most (`VmHWM:`).
pub(crate) fn resident(which: &str) -> usize {
    let text = std::fs::read_to_string("/proc/self/status").expect("a kernel that counts");
    let line = text.lines().find_map(|line| line.strip_prefix(which));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<usize>().ok());
    kilobytes.expect("a number") * 1024
}
