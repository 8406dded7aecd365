//! One process of a session on a virtual clock, and how it ends.

use std::time::Duration;

use centurion_engine::{Handle, Options, Session};
use centurion_protocol::{Block, Outcome, World};

/// A session that is not over by then never will be.
const DEADLINE: Duration = Duration::from_hours(24 * 30);

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The session was over.
    Over(Option<Outcome>),
    /// The process was gone in the middle of it.
    Died,
    /// No task could continue.
    Stuck,
}

/// Runs a session until it is over, or until something else comes first: then all of it is gone in that moment.
pub(crate) fn run(
    options: Options,
    world: &dyn World,
    prompt: Option<&str>,
    meanwhile: impl AsyncFnOnce(Handle) -> Ended,
) -> Ended {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .max_blocking_threads(1)
        .build()
        .unwrap();
    let ended = runtime.block_on(async {
        let mut session = Session::open(options).await.unwrap();
        let handle = session.handle();
        if let Some(prompt) = prompt {
            handle.submit(world.record_id(), vec![Block::text(prompt)]);
        }
        handle.close();
        tokio::select! {
            biased;
            outcome = session.run() => Ended::Over(outcome),
            ended = meanwhile(handle) => ended,
            () = tokio::time::sleep(DEADLINE) => Ended::Stuck,
        }
    });
    // Whatever still runs is gone now, and nothing is tidied up.
    drop(runtime);
    ended
}
