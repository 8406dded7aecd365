//! Git of worktrees as a child of this process that does not outlive it.

use centurion_tools::guard::GuardProgram;
use centurion_tools::{Bound, PipedProgram};
use centurion_worktree::{Program, ProgramOutput, RunProgram, Running, read};
use tokio::io::AsyncWriteExt as _;

/// Runs git bound to this process: it ends with it, and so does whatever it starts.
pub struct GuardedGit(GuardProgram);

impl GuardedGit {
    pub fn new(guard: GuardProgram) -> Self {
        Self(guard)
    }
}

impl RunProgram for GuardedGit {
    fn run(&self, program: Program) -> Running<'_> {
        Box::pin(async move {
            let started = PipedProgram {
                program: program.program.into(),
                args: program.args,
                environment: program.environment,
                cwd: program.cwd,
            };
            let mut git = Bound::start(&self.0, &started)?;
            let (stdin, stdout, stderr) = (git.stdin.take(), git.stdout.take(), git.stderr.take());
            let feed = async {
                if let Some(mut stdin) = stdin {
                    // One that ends before it has read everything says why.
                    let _ = stdin.write_all(&program.input).await;
                }
            };
            let (stdout, stderr, ()) = tokio::join!(read(stdout), read(stderr), feed);
            let (stdout, stderr) = (stdout?, stderr?);
            Ok(ProgramOutput { code: git.wait().await?, stdout, stderr })
        })
    }
}
