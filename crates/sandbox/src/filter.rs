//! The system calls that a command cannot make: those that would undo its confinement, or bypass it.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;

use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter, sock_filter,
};

use crate::{UnixSockets, system};

/// The permitted use of sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sockets {
    /// The network, as far as there is one.
    Network,
    /// Not even that: there is no namespace without a network.
    Nothing,
}

/// The objects of other processes that a command could name in a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SharedObjects {
    /// None: its processes and its shared memory are its own.
    Own,
    /// Processes.
    Processes,
    /// Processes, and shared memory, queues and semaphores.
    All,
}

type Result<T> = std::result::Result<T, seccompiler::Error>;

/// Filters the calls of this process and its descendants.
pub(crate) fn install(
    sockets: Sockets,
    unix_sockets: &UnixSockets,
    company: SharedObjects,
) -> Result<()> {
    apply_filter(&program(sockets, unix_sockets, company)?)
}

/// The filter of a program that only reads: it starts no program and no process, and has no sockets.
///
/// `execveat` stays: a process becomes the program by it after the filter is in force, and no C library uses it to
/// start another.
pub(crate) fn reader() -> Result<BpfProgram> {
    let mut rules: BTreeMap<c_long, Vec<SeccompRule>> =
        REFUSED.into_iter().chain(STARTING).map(|call| (call, Vec::new())).collect();
    rules.insert(libc::SYS_socket, Vec::new());
    rules.insert(libc::SYS_socketpair, Vec::new());
    // Any number other than a thread of this process means another process.
    rules.insert(
        libc::SYS_clone,
        vec![rule([masked(0, libc::CLONE_THREAD.cast_unsigned().into(), 0)?])?],
    );
    let refuse = SeccompAction::Errno(libc::EPERM.cast_unsigned());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, architecture()?)?;
    let filter: BpfProgram = filter.try_into()?;
    Ok(absent().into_iter().chain(filter).collect())
}

/// Calls that start a program, or a process to start one in.
#[cfg(target_arch = "x86_64")]
const STARTING: [c_long; 3] = [libc::SYS_execve, libc::SYS_fork, libc::SYS_vfork];
#[cfg(not(target_arch = "x86_64"))]
const STARTING: [c_long; 1] = [libc::SYS_execve];

/// Passes the connections of this process and its descendants to the holder of the returned descriptor. Must be called
/// after [`install`].
pub(crate) fn give_connections_away() -> io::Result<OwnedFd> {
    let connect = u32::try_from(libc::SYS_connect).map_err(io::Error::other)?;
    let give_away = sock_filter { code: RETURN, jt: 0, jf: 0, k: libc::SECCOMP_RET_USER_NOTIF };
    let allow = sock_filter { code: RETURN, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW };
    // The first filter already refuses calls of another numbering.
    let program =
        [load_call(), sock_filter { code: IF_EQUAL, jt: 0, jf: 1, k: connect }, give_away, allow];
    system::filter_and_listen(&program)
}

/// A call that is newer than the libraries' names.
const OPEN_TREE_ATTR: c_long = 467;

/// Refused with any arguments.
const REFUSED: [c_long; 43] = [
    // Another view of the file system.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    OPEN_TREE_ATTR,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_unshare,
    libc::SYS_setns,
    // Files without a path.
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    // Keys of the user.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // The kernel itself.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_quotactl,
    libc::SYS_acct,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_syslog,
    libc::SYS_clock_settime,
];

/// Calls that change another process if their first argument is its number. Threads use the same numbers, so these
/// calls are refused only where other processes can be named.
const OF_PROCESS: [c_long; 4] = [
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setattr,
];

/// Shared memory, semaphores and queues that processes find by a number or a name.
const SHARED: [c_long; 13] = [
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

/// Reported as missing. Programs then use the older call, whose arguments the filter can check.
const ABSENT: [c_long; 4] = [
    libc::SYS_clone3,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];

const NAMESPACES: [i32; 7] = [
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWUTS,
];

/// Typing into a terminal, pasting into a console.
const TERMINAL_INPUT: [i32; 2] = [0x5412, 0x541c];

/// An old name of packet sockets: a type that is not one.
const SOCK_PACKET: i32 = 10;

const IF_EQUAL: u16 = 0x15;
const RETURN: u16 = 0x06;

/// The part of a socket's type that is not a flag.
const TYPE: u64 = 0xf;

/// All types of sockets that fit into the field, except these.
fn types_but(allowed: &[i32]) -> impl Iterator<Item = i32> {
    (0..=0xf).filter(|kind| !allowed.contains(kind))
}

fn program(
    sockets: Sockets,
    unix_sockets: &UnixSockets,
    company: SharedObjects,
) -> Result<BpfProgram> {
    let mut rules: Rules = REFUSED.into_iter().map(|call| (call, Vec::new())).collect();
    let namespaces = NAMESPACES.map(|flag| rule([has(0, flag)?]));
    rules.insert(libc::SYS_clone, namespaces.into_iter().collect::<Result<_>>()?);
    let input = TERMINAL_INPUT.map(|request| rule([is(1, request)?]));
    rules.insert(libc::SYS_ioctl, input.into_iter().collect::<Result<_>>()?);
    rules.extend(of_others(company)?);
    rules.extend(of_sockets(sockets, unix_sockets)?);

    let refuse = SeccompAction::Errno(libc::EPERM.cast_unsigned());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, architecture()?)?;
    let filter: BpfProgram = filter.try_into()?;
    Ok(absent().into_iter().chain(filter).collect())
}

type Rules = BTreeMap<c_long, Vec<SeccompRule>>;

/// The rules against changes of other processes.
fn of_others(company: SharedObjects) -> Result<Rules> {
    /// The value with which `setpriority` and `ioprio_set` mean all processes of a user.
    const PRIORITY_OF_USER: i32 = 2;
    const IO_PRIORITY_OF_USER: i32 = 3;

    // Limits can kill: by processor time, or by the open files that a guard needs. No program changes those of another
    // one in its ordinary work.
    let mut rules = Rules::from([(libc::SYS_prlimit64, vec![rule([is_not(0, 0)?])?])]);
    if company == SharedObjects::Own {
        return Ok(rules);
    }
    for call in OF_PROCESS {
        rules.insert(call, vec![rule([is_not(0, 0)?])?]);
    }
    for (call, user) in
        [(libc::SYS_setpriority, PRIORITY_OF_USER), (libc::SYS_ioprio_set, IO_PRIORITY_OF_USER)]
    {
        rules.insert(call, vec![rule([is(0, user)?])?, rule([is_not(1, 0)?])?]);
    }
    if company == SharedObjects::All {
        rules.extend(SHARED.map(|call| (call, Vec::new())));
    }
    Ok(rules)
}

/// The rules about new sockets.
fn of_sockets(sockets: Sockets, unix_sockets: &UnixSockets) -> Result<Rules> {
    let mut rules = Rules::new();
    let mut families: Vec<i32> = Vec::new();
    if *unix_sockets != UnixSockets::Denied {
        families.push(libc::AF_UNIX);
    }
    if sockets == Sockets::Network {
        families.extend([libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK]);
    }
    let others =
        families.into_iter().map(|family| is_not(0, family)).collect::<Result<Vec<_>>>()?;
    let mut refused = Vec::new();
    if others.is_empty() {
        // A rule without conditions cannot stand beside others, and need not.
        rules.insert(libc::SYS_socket, refused);
    } else {
        refused.push(SeccompRule::new(others)?);
        // Of the kernel's own sockets, only the one for network interfaces.
        refused.push(rule([is(0, libc::AF_NETLINK)?, is_not(2, libc::NETLINK_ROUTE)?])?);
        refused.push(rule([masked(1, TYPE, SOCK_PACKET)?])?);
        if matches!(unix_sockets, UnixSockets::Listed { .. }) {
            // The others reach a peer without connecting first, or differ from the sockets that the proxy inserts.
            for kind in types_but(&[libc::SOCK_STREAM]) {
                refused.push(rule([is(0, libc::AF_UNIX)?, masked(1, TYPE, kind)?])?);
            }
        }
        rules.insert(libc::SYS_socket, refused);
    }
    let mut pairs = vec![rule([is_not(0, libc::AF_UNIX)?])?];
    if *unix_sockets != UnixSockets::Allowed {
        // One of the others could be connected to another peer later: the kernel makes datagram sockets of more types
        // than that of datagrams.
        for kind in types_but(&[libc::SOCK_STREAM, libc::SOCK_SEQPACKET]) {
            pairs.push(rule([masked(1, TYPE, kind)?])?);
        }
    }
    rules.insert(libc::SYS_socketpair, pairs);
    Ok(rules)
}

/// The machine's architecture, if filters can be made for it.
pub(crate) fn architecture() -> Result<TargetArch> {
    Ok(std::env::consts::ARCH.try_into()?)
}

/// The beginning of the program: answers the calls that are reported as missing.
fn absent() -> BpfProgram {
    const IF_AT_LEAST: u16 = 0x35;
    /// The mark of 32-bit calls under a 64-bit kernel; they would pass every other rule.
    const OTHER_NUMBERING: u32 = 0x4000_0000;

    let missing = u32::from(SeccompAction::Errno(libc::ENOSYS.cast_unsigned()));
    // Each test jumps over the answer when it does not apply.
    let test = |code, k| sock_filter { code, jt: 0, jf: 1, k };
    let answer = sock_filter { code: RETURN, jt: 0, jf: 0, k: missing };
    let mut program = vec![load_call()];
    let calls = ABSENT.into_iter().filter_map(|call| u32::try_from(call).ok());
    for number in calls {
        program.extend([test(IF_EQUAL, number), answer.clone()]);
    }
    program.extend([test(IF_AT_LEAST, OTHER_NUMBERING), answer]);
    program
}

/// The number of the call is the first field of the kernel's data.
fn load_call() -> sock_filter {
    const LOAD: u16 = 0x20;
    sock_filter { code: LOAD, jt: 0, jf: 0, k: 0 }
}

fn rule<const N: usize>(conditions: [SeccompCondition; N]) -> Result<SeccompRule> {
    Ok(SeccompRule::new(conditions.into())?)
}

fn is(argument: u8, value: i32) -> Result<SeccompCondition> {
    condition(argument, SeccompCmpOp::Eq, value)
}

fn is_not(argument: u8, value: i32) -> Result<SeccompCondition> {
    condition(argument, SeccompCmpOp::Ne, value)
}

fn has(argument: u8, flag: i32) -> Result<SeccompCondition> {
    masked(argument, flag.cast_unsigned().into(), flag)
}

fn masked(argument: u8, mask: u64, value: i32) -> Result<SeccompCondition> {
    condition(argument, SeccompCmpOp::MaskedEq(mask), value)
}

/// These arguments are 32 bits wide; the kernel ignores the rest, and the filter must, too.
fn condition(argument: u8, operator: SeccompCmpOp, value: i32) -> Result<SeccompCondition> {
    let value = value.cast_unsigned().into();
    Ok(SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combination_makes_a_program_that_the_kernel_takes() {
        const LARGEST: usize = 4096;
        for sockets in [Sockets::Network, Sockets::Nothing] {
            let listed = UnixSockets::Listed { socket: "/s".into() };
            for unix_sockets in [UnixSockets::Denied, listed, UnixSockets::Allowed] {
                for company in [SharedObjects::Own, SharedObjects::Processes, SharedObjects::All] {
                    let program = program(sockets, &unix_sockets, company).unwrap();
                    assert!(program.len() < LARGEST, "{}", program.len());
                }
            }
        }
        assert!(reader().unwrap().len() < LARGEST);
    }
}
