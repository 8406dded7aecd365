//! The system calls that a command cannot make: those that would undo its confinement, or reach around it.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;

use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter, sock_filter,
};

use crate::{UnixSockets, system};

/// What sockets may be for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sockets {
    /// The network, whatever of it there is.
    Network,
    /// Not even that: there is no namespace without a network.
    Nothing,
}

type Result<T> = std::result::Result<T, seccompiler::Error>;

/// Filters the calls of this process and of all that come after it.
pub(crate) fn install(sockets: Sockets, unix_sockets: &UnixSockets) -> Result<()> {
    apply_filter(&program(sockets, unix_sockets)?)
}

/// From now on somebody else makes the connections of this process and of all that come after it:
/// whoever holds the descriptor. To be called after [`install`].
pub(crate) fn give_connections_away() -> io::Result<OwnedFd> {
    let connect = u32::try_from(libc::SYS_connect).map_err(io::Error::other)?;
    let give_away = sock_filter { code: RETURN, jt: 0, jf: 0, k: libc::SECCOMP_RET_USER_NOTIF };
    let allow = sock_filter { code: RETURN, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW };
    // Calls of another numbering do not get past the filter that is there already.
    let program =
        [load_call(), sock_filter { code: IF_EQUAL, jt: 0, jf: 1, k: connect }, give_away, allow];
    system::filter_and_listen(&program)
}

/// New in kernels newer than the names of calls that libraries have.
const OPEN_TREE_ATTR: c_long = 467;

/// Refused whatever their arguments are.
const REFUSED: [c_long; 38] = [
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
    // Keys of the user.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // The kernel itself.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_kexec_load,
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

/// Said not to exist. Programs then take the older call, whose arguments can be looked at.
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

fn program(sockets: Sockets, unix_sockets: &UnixSockets) -> Result<BpfProgram> {
    let mut rules: BTreeMap<c_long, Vec<SeccompRule>> =
        REFUSED.into_iter().map(|call| (call, Vec::new())).collect();
    let namespaces = NAMESPACES.map(|flag| rule([has(0, flag)?]));
    rules.insert(libc::SYS_clone, namespaces.into_iter().collect::<Result<_>>()?);
    let input = TERMINAL_INPUT.map(|request| rule([is(1, request)?]));
    rules.insert(libc::SYS_ioctl, input.into_iter().collect::<Result<_>>()?);

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
        // Of the kernel's own sockets, only the one that tells about network interfaces.
        refused.push(rule([is(0, libc::AF_NETLINK)?, is_not(2, libc::NETLINK_ROUTE)?])?);
        refused.push(rule([masked(1, TYPE, SOCK_PACKET)?])?);
        if matches!(unix_sockets, UnixSockets::Listed { .. }) {
            // The others reach somebody without connecting first, or differ from what is handed in.
            for kind in [libc::SOCK_DGRAM, libc::SOCK_RAW, libc::SOCK_RDM, libc::SOCK_SEQPACKET] {
                refused.push(rule([is(0, libc::AF_UNIX)?, masked(1, TYPE, kind)?])?);
            }
        }
        rules.insert(libc::SYS_socket, refused);
    }
    let mut pairs = vec![rule([is_not(0, libc::AF_UNIX)?])?];
    if *unix_sockets != UnixSockets::Allowed {
        // One of these could be connected to somebody else later.
        pairs.push(rule([masked(1, TYPE, libc::SOCK_DGRAM)?])?);
    }
    rules.insert(libc::SYS_socketpair, pairs);

    let refuse = SeccompAction::Errno(libc::EPERM.cast_unsigned());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, architecture()?)?;
    let filter: BpfProgram = filter.try_into()?;
    Ok(absent().into_iter().chain(filter).collect())
}

/// The machine's own, if filters can be made for it.
pub(crate) fn architecture() -> Result<TargetArch> {
    Ok(std::env::consts::ARCH.try_into()?)
}

/// The beginning of the program: answers for the calls that are said not to exist.
fn absent() -> BpfProgram {
    const IF_AT_LEAST: u16 = 0x35;
    /// Calls of 32-bit programs under a 64-bit kernel carry this; they would pass every other rule.
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

/// The number of the call is the first field of what the kernel hands over.
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

/// These arguments are 32 bits wide; the kernel does not look at the rest, and neither may the filter.
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
                let program = program(sockets, &unix_sockets).unwrap();
                assert!(program.len() < LARGEST, "{}", program.len());
            }
        }
    }
}
