//! Tells whether a program certainly waits for input and does nothing else, by what the kernel shows of it.
//!
//! A program that has read all of its input may still start, or work on it, or have handed it on: to a process that it
//! has started, or over a socket to one that this machine does not show, as the clients of containers do. So a program
//! rests only if each thread of each of its processes waits without a time limit, and no socket of theirs leads to
//! another process. What cannot be seen counts as work.

mod family;
mod sockets;

use std::fs;
use std::path::Path;

use centurion_protocol::bounded;

/// The most bytes of a line about a system call.
const LONGEST: u64 = 4096;

/// The ways in which a thread waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// For bytes of a file, or for an event of many.
    Input,
    /// For another thread or process.
    Other,
}

/// Whether the programs that have a pipe as standard input certainly wait for input, with all that they have started.
/// False where the kernel does not tell, and where no process has the pipe.
pub(super) fn rests(pipe: u64) -> bool {
    let family = family::of_readers(pipe);
    let mut waits_for_input = false;
    for process in &family {
        match wait_of(process) {
            Some(Wait::Input) => waits_for_input = true,
            Some(Wait::Other) => {}
            None => return false,
        }
    }
    waits_for_input && sockets::stay_within(&family)
}

/// The wait of a process; `None` if one of its threads works, or waits for a time, or cannot be seen.
fn wait_of(process: &Path) -> Option<Wait> {
    let mut found = Wait::Other;
    for thread in fs::read_dir(process.join("task")).ok()? {
        let thread = thread.ok()?.path();
        if !sleeps(&thread) {
            return None;
        }
        match bounded::read_text_file(&thread.join("syscall"), LONGEST) {
            Ok(line) => {
                if calls::wait_in(&line)? == Wait::Input {
                    found = Wait::Input;
                }
            }
            // A thread that has ended does nothing.
            Err(_) if !thread.exists() => {}
            Err(_) => return None,
        }
    }
    Some(found)
}

/// Whether a thread sleeps, and not for a disk, or has ended.
fn sleeps(thread: &Path) -> bool {
    let stat = bounded::read_text_file(&thread.join("stat"), LONGEST);
    // The name, in brackets, may contain anything.
    stat.map_or(true, |stat| stat.rsplit_once(')').is_some_and(|(_, rest)| rest.starts_with(" S")))
}

/// The system calls that wait. The numbers differ by architecture.
mod calls {
    use super::Wait;

    /// The argument that limits the time of a call.
    #[derive(Clone, Copy)]
    enum Limit {
        None,
        /// A pointer to a time; null means that there is no limit.
        Pointer(usize),
        /// Milliseconds; a negative number means that there is no limit.
        Millis(usize),
    }

    use Limit::{Millis, Pointer};

    type Call = (u64, Limit, Wait);

    #[cfg(target_arch = "x86_64")]
    const CALLS: &[Call] = &[
        // read, readv, recvfrom, recvmsg, accept, accept4
        (0, Limit::None, Wait::Input),
        (19, Limit::None, Wait::Input),
        (45, Limit::None, Wait::Input),
        (47, Limit::None, Wait::Input),
        (43, Limit::None, Wait::Input),
        (288, Limit::None, Wait::Input),
        // poll, select, epoll_wait, pselect6, ppoll, epoll_pwait, epoll_pwait2
        (7, Millis(2), Wait::Input),
        (23, Pointer(4), Wait::Input),
        (232, Millis(3), Wait::Input),
        (270, Pointer(4), Wait::Input),
        (271, Pointer(2), Wait::Input),
        (281, Millis(3), Wait::Input),
        (441, Pointer(3), Wait::Input),
        // futex, futex_waitv, wait4, waitid, pause, rt_sigsuspend, rt_sigtimedwait
        (202, Pointer(3), Wait::Other),
        (449, Pointer(3), Wait::Other),
        (61, Limit::None, Wait::Other),
        (247, Limit::None, Wait::Other),
        (34, Limit::None, Wait::Other),
        (130, Limit::None, Wait::Other),
        (128, Pointer(2), Wait::Other),
    ];
    #[cfg(target_arch = "aarch64")]
    const CALLS: &[Call] = &[
        // read, readv, recvfrom, recvmsg, accept, accept4
        (63, Limit::None, Wait::Input),
        (65, Limit::None, Wait::Input),
        (207, Limit::None, Wait::Input),
        (212, Limit::None, Wait::Input),
        (202, Limit::None, Wait::Input),
        (242, Limit::None, Wait::Input),
        // epoll_pwait, pselect6, ppoll, epoll_pwait2
        (22, Millis(3), Wait::Input),
        (72, Pointer(4), Wait::Input),
        (73, Pointer(2), Wait::Input),
        (441, Pointer(3), Wait::Input),
        // futex, futex_waitv, wait4, waitid, rt_sigsuspend, rt_sigtimedwait
        (98, Pointer(3), Wait::Other),
        (449, Pointer(3), Wait::Other),
        (260, Limit::None, Wait::Other),
        (95, Limit::None, Wait::Other),
        (133, Limit::None, Wait::Other),
        (137, Pointer(2), Wait::Other),
    ];
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    const CALLS: &[Call] = &[];

    /// The wait that a line of the kernel tells of: the number of the call, then its arguments. `None` if the thread
    /// runs, or waits for a time, or in another call.
    pub(super) fn wait_in(line: &str) -> Option<Wait> {
        let mut words = line.split_whitespace();
        let number: u64 = words.next()?.parse().ok()?;
        let (_, limit, wait) = CALLS.iter().find(|(call, ..)| *call == number)?;
        let mut argument = |index: usize| {
            let word = words.nth(index)?.strip_prefix("0x")?;
            u64::from_str_radix(word, 16).ok()
        };
        let is_unlimited = match *limit {
            Limit::None => true,
            Pointer(index) => argument(index)? == 0,
            // The kernel reads the lower half of the register.
            Millis(index) => argument(index)? & 0x8000_0000 != 0,
        };
        is_unlimited.then_some(*wait)
    }
}

#[cfg(test)]
mod tests;
