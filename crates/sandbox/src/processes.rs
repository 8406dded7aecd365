//! Processes of the command's own: a process namespace.
//!
//! One process becomes three. The relay stays outside as the child of the process that started it, and ends as the
//! command ends. The init is the first process inside: the kernel kills the whole namespace with it, and no process
//! inside can kill or stop it. The third becomes the command.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    DumpableBehavior, Pid, WaitOptions, WaitStatus, set_dumpable_behavior, setsid, wait, waitpid,
};
use rustix::thread::set_name;

use crate::namespaces::OwnMounts;
use crate::system;

/// The process name of the helpers: `killall` with the program's name must not hit them.
const NAME: &std::ffi::CStr = c"command-guard";

/// Forks this process, which must have one thread, and whose children will be in a new process namespace. Returns in
/// the process that becomes the command.
///
/// The namespace lives until the other end of `lifeline` is closed; without one, until the relay ends.
pub(crate) fn divide(lifeline: Option<OwnedFd>) -> io::Result<()> {
    let (told, tell) = pipe_with(PipeFlags::CLOEXEC)?;
    if let Some(init) = system::fork_alone()? {
        drop((tell, lifeline));
        relay(init, told);
    }
    drop(told);
    if let Some(command) = system::fork_alone()? {
        watch_over(command, lifeline, tell);
    }
    // Process groups have numbers in here only if they begin in here.
    setsid()?;
    Ok(())
}

/// Mounts a `/proc` with only the processes of this namespace.
pub(crate) fn mount_own(_: &OwnMounts) -> rustix::io::Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount(c"proc", c"/proc", c"proc", flags, None)
}

/// Waits for the command, and ends in the same way.
fn relay(init: Pid, told: OwnedFd) -> ! {
    system::ignore_signals();
    let _ = set_name(NAME);
    let mut end = [0; End::LENGTH];
    let end = match File::from(told).read_exact(&mut end) {
        Ok(()) => End::from_bytes(end),
        // The command never started, or all of it was killed.
        Err(_) => loop {
            match waitpid(Some(init), WaitOptions::empty()) {
                Ok(Some((_, status))) => break End::of(status),
                Ok(None) | Err(Errno::INTR) => {}
                Err(_) => break End::Signal(libc::SIGKILL),
            }
        },
    };
    match end {
        End::Code(code) => system::exit(code),
        End::Signal(signal) => system::die_by(signal),
    }
}

/// Runs as the first process of the namespace until the last other one has ended, or the lifeline is cut.
fn watch_over(command: Pid, lifeline: Option<OwnedFd>, tell: OwnedFd) -> ! {
    let _ = set_name(NAME);
    // The processes inside must not reach the resources of this process.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let mut tell = Some(File::from(tell));
    let pipe = match lifeline {
        Some(lifeline) => Ok(lifeline),
        // A pipe without a reader.
        None => tell
            .as_ref()
            .map_or(Err(io::ErrorKind::NotFound.into()), |tell| tell.try_clone().map(Into::into)),
    };
    let watcher = pipe.and_then(|pipe| {
        std::thread::Builder::new().stack_size(64 * 1024).spawn(move || {
            wait_for_cut(&pipe);
            system::exit(0)
        })
    });
    if watcher.is_err() {
        // No process may run that would outlive its guard.
        system::exit(1);
    }
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == command => {
                if let Some(mut tell) = tell.take() {
                    let _ = tell.write_all(&End::of(status).to_bytes());
                }
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => system::exit(0),
        }
    }
}

/// Returns when the other end of a pipe is closed.
fn wait_for_cut(pipe: &OwnedFd) {
    let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
    loop {
        let mut polled = [PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::empty())];
        match poll(&mut polled, None) {
            Ok(_) if polled.iter().any(|it| it.revents().intersects(gone)) => return,
            Ok(_) | Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => return,
        }
    }
}

/// The end of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Code(i32),
    Signal(i32),
}

impl End {
    const LENGTH: usize = 5;

    fn of(status: WaitStatus) -> Self {
        match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Self::Code(code),
            (None, signal) => Self::Signal(signal.unwrap_or(libc::SIGKILL)),
        }
    }

    fn to_bytes(self) -> [u8; Self::LENGTH] {
        let (kind, [a, b, c, d]) = match self {
            Self::Code(code) => (0, code.to_ne_bytes()),
            Self::Signal(signal) => (1, signal.to_ne_bytes()),
        };
        [kind, a, b, c, d]
    }

    fn from_bytes([kind, number @ ..]: [u8; Self::LENGTH]) -> Self {
        let number = i32::from_ne_bytes(number);
        if kind == 0 { Self::Code(number) } else { Self::Signal(number) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_read_as_it_was_told() {
        for end in [End::Code(0), End::Code(255), End::Signal(9), End::Signal(64)] {
            assert_eq!(End::from_bytes(end.to_bytes()), end);
        }
    }
}
