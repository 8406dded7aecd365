//! Attempts on other processes, on the kernel, and on the sandbox itself.

use std::path::Path;
use std::process::{Child, Stdio};

use centurion_sandbox::{Gap, Method};
use centurion_testkit::{Lack, skip};

use crate::cell::{Cell, SECRET, run_as};

/// A process of the same user outside of the sandbox, with a secret in its environment.
struct Sibling(Child);

impl Sibling {
    fn new(cell: &Cell) -> Self {
        let mut sleep = run_as(cell.user, Path::new("sleep"));
        let child = sleep.arg("600").env("SECRET", SECRET).stdin(Stdio::null()).spawn().unwrap();
        let sibling = Self(child);
        // Until it has become its program, its user may still be another.
        while !std::fs::read_to_string(format!("/proc/{}/comm", sibling.0.id()))
            .is_ok_and(|name| name.trim() == "sleep")
        {}
        sibling
    }

    fn is_alive(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Sibling {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn other_processes_are_out_of_reach() {
    for cell in Cell::all(|_| ()) {
        let mut sibling = Sibling::new(&cell);
        let pid = sibling.0.id();
        for attack in [
            format!("cat /proc/{pid}/environ"),
            format!("cat /proc/{pid}/root/etc/passwd"),
            format!("ls /proc/{pid}/cwd/"),
            format!("ls -l /proc/{pid}/fd"),
            format!("cat /proc/{pid}/maps"),
            format!("head -c 1 /proc/{pid}/mem"),
            format!("echo 1 > /proc/{pid}/oom_score_adj"),
            // 16 attaches.
            syscall(libc::SYS_ptrace, &format!("16, {pid}, 0, 0")),
            "ls /proc/1/root/".to_owned(),
            "cat /proc/1/environ".to_owned(),
        ] {
            // With a process namespace, the first process is the sandbox's own; it reveals nothing.
            let said = cell.run(&attack);
            assert!(!said.ok, "{attack}: {said:?} {:?}", cell.plan.method);
            assert!(!said.text.contains(SECRET), "{attack}: {said:?}");
        }
        let said = cell.run(&format!("kill -9 {pid}"));
        if cell.guarantees(Gap::Signals) {
            assert!(!said.ok && sibling.is_alive(), "{said:?} {:?}", cell.plan.method);
        }
    }
}

/// Every attribute of a process that another one can change, and whether the change works without a sandbox.
#[test]
fn nothing_of_other_processes_can_be_changed() {
    for cell in Cell::all(|_| ()) {
        let mut sibling = Sibling::new(&cell);
        let pid = sibling.0.id();
        let before = State::of(pid);
        let twice = "pack(\"QQ\", 0, 0)";
        let attribute = "pack(\"LLQlLQQQ\", 48, 3, 0, 0, 0, 0, 0, 0)";
        for attack in [
            format!("prlimit --pid {pid} --nofile=0:0"),
            format!("prlimit --pid {pid} --cpu=0:0"),
            // 7 is the number of open files.
            syscall(libc::SYS_prlimit64, &format!("{pid}, 7, my $a = {twice}, 0")),
            syscall(libc::SYS_prlimit64, &format!("{pid}, 0, my $a = {twice}, 0")),
            syscall(libc::SYS_prlimit64, &format!("{pid} + (1 << 32), 7, my $a = {twice}, 0")),
            format!("renice -n 19 -p {pid}"),
            // Of all processes of the user.
            syscall(libc::SYS_setpriority, "2, 0, 19"),
            syscall(libc::SYS_setpriority, &format!("0, {pid}, 19")),
            format!("ionice -c 3 -p {pid}"),
            syscall(libc::SYS_ioprio_set, "3, 0, 3 << 13"),
            syscall(libc::SYS_ioprio_set, &format!("1, {pid}, 3 << 13")),
            format!("taskset -p 1 {pid}"),
            syscall(libc::SYS_sched_setaffinity, &format!("{pid}, 8, my $a = pack(\"Q\", 1)")),
            format!("chrt -i -p 0 {pid}"),
            format!("chrt -b -p 0 {pid}"),
            syscall(libc::SYS_sched_setscheduler, &format!("{pid}, 3, my $a = pack(\"l\", 0)")),
            syscall(libc::SYS_sched_setattr, &format!("{pid}, my $a = {attribute}, 0")),
            syscall(libc::SYS_move_pages, &format!("{pid}, 0, 0, 0, 0, 2")),
            syscall(libc::SYS_migrate_pages, &format!("{pid}, 64, my $a = pack(\"Q\", 1), $a")),
            syscall(libc::SYS_kcmp, &format!("$$, {pid}, 0, 0, 0")),
            syscall(libc::SYS_process_vm_writev, &format!("{pid}, 0, 0, 0, 0, 0")),
            format!("echo 1000 > /proc/{pid}/oom_score_adj"),
            format!("echo 0 > /proc/{pid}/autogroup"),
            format!("echo x > /proc/{pid}/comm"),
        ] {
            cell.run(&attack);
            assert!(sibling.is_alive(), "{attack} {:?}", cell.plan.method);
            assert_eq!(State::of(pid), before, "{attack} {:?} {:?}", cell.plan, cell.user);
        }
    }
}

/// The attributes of a process that others could have changed.
#[derive(Debug, PartialEq, Eq)]
struct State {
    limits: String,
    priority: Vec<String>,
    io_priority: String,
    affinity: String,
    score: String,
    name: String,
}

impl State {
    fn of(pid: u32) -> Self {
        let read = |name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap();
        let stat = read("stat");
        let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        let asked = std::process::Command::new("ionice").args(["-p", &pid.to_string()]).output();
        let affinity = read("status");
        let affinity = affinity.lines().find(|line| line.starts_with("Cpus_allowed:"));
        Self {
            limits: read("limits"),
            // The priority, the niceness, the real-time priority and the policy.
            priority: [15, 16, 37, 38]
                .iter()
                .map(|at| fields.clone().nth(*at))
                .map(|field| field.unwrap_or_default().to_owned())
                .collect(),
            io_priority: String::from_utf8(asked.unwrap().stdout).unwrap(),
            affinity: affinity.unwrap_or_default().to_owned(),
            score: read("oom_score_adj"),
            name: read("comm"),
        }
    }
}

/// With processes of its own, a command ends as it would without a sandbox, and its remaining processes end with it.
#[test]
fn a_command_ends_as_it_would_outside() {
    for cell in Cell::all(|_| ()) {
        for command in
            ["exit 0", "exit 7", "exit 255", "kill -9 $$", "kill -TERM $$", "kill -SEGV $$"]
        {
            let status = |mut process: std::process::Command| {
                let status = process.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
                (status.code(), std::os::unix::process::ExitStatusExt::signal(&status))
            };
            let mut free = run_as(cell.user, Path::new("bash"));
            free.args(["-c", command]);
            let expected = match (status(free), &cell.plan.method) {
                // Bubblewrap reports a signal as shells do.
                ((None, Some(signal)), Method::Bubblewrap(_)) => (Some(128 + signal), None),
                (free, _) => free,
            };
            assert_eq!(status(cell.command(command)), expected, "{command} {:?}", cell.plan);
        }
    }
}

#[test]
fn the_first_process_of_a_namespace_cannot_be_ended_from_inside() {
    for cell in Cell::all(|_| ()).iter().filter(|cell| cell.plan.own_processes) {
        let said = cell.run(
            "for signal in KILL STOP TERM HUP SEGV; do kill -$signal 1; kill -$signal -- -1; done \
             2>/dev/null; ps -e -o pid= | wc -l; echo still here",
        );
        // The shell's own signals to all processes hit it; the remaining ones see only themselves.
        let seen = cell.run("ps -e -o comm= | sort -u | tr '\\n' ' '; kill -9 1; echo after");
        assert!(seen.ok, "{said:?} {seen:?}");
        assert!(!seen.text.contains("sandboxed"), "{seen:?}");
        assert!(seen.text.contains("after\n"), "{seen:?}");
    }
}

#[test]
fn a_command_can_still_limit_and_slow_down_itself() {
    for cell in Cell::all(|_| ()) {
        let said = cell.run(
            "ulimit -n 64 && ulimit -n && echo $(($(nice -n 2 nice) - $(nice))) && ionice -c 3 ionice && taskset 1 true",
        );
        assert!(said.ok && said.text.starts_with("64\n2\n"), "{said:?} {:?}", cell.plan);
    }
}

/// Objects that processes share by a number or a name.
#[test]
fn shared_memory_queues_and_semaphores_are_the_commands_own() {
    for cell in Cell::all(|_| ()) {
        let free = cell.run_free("ipcmk -M 4096 -p 0666; ipcs -m");
        let id = free.text.lines().find_map(|line| line.strip_prefix("Shared memory id: "));
        let id = id.expect("shared memory was made").to_owned();
        let said = cell
            .run(&format!("ipcs -m; ipcrm -m {id}; perl -e 'shmread({id}, $x, 0, 1) or die $!'"));
        let still = cell.run_free(&format!("ipcrm -m {id}"));
        assert!(!said.ok && still.ok, "{said:?} {still:?} {:?}", cell.plan.method);
        assert!(!said.text.contains(" 4096 ") || !cell.has_namespaces(), "{said:?}");
    }
}

/// The call numbers of 32-bit programs mean other calls: all of them are refused.
#[test]
#[cfg(target_arch = "x86_64")]
fn a_32_bit_call_ends_its_program() {
    use std::os::unix::fs::PermissionsExt as _;

    for cell in Cell::all(|_| ()) {
        // mov eax, 20 (getpid); int 0x80; mov eax, 60 (exit); xor edi, edi; syscall
        let code = [0xb8, 20, 0, 0, 0, 0xcd, 0x80, 0xb8, 60, 0, 0, 0, 0x31, 0xff, 0x0f, 0x05];
        let path = cell.project.join("thirty-two");
        std::fs::write(&path, program_of(&code)).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let said = cell.run_free("./thirty-two");
        if !said.ok {
            skip(Lack::Calls32);
            continue;
        }
        let said = cell.run("./thirty-two; echo \"ended $?\"");
        assert!(said.text.contains("ended 159"), "{said:?} {:?}", cell.plan.method);
    }
}

/// The smallest program with this code.
#[cfg(target_arch = "x86_64")]
fn program_of(code: &[u8]) -> Vec<u8> {
    const BASE: u64 = 0x40_0000;
    const HEADERS: u64 = 64 + 56;
    let size = HEADERS + code.len() as u64;
    let mut bytes = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x3e\0\x01\0\0\0".to_vec();
    for number in [BASE + HEADERS, 64, 0] {
        bytes.extend(u64::to_le_bytes(number));
    }
    bytes.extend([0; 4]);
    for number in [64_u16, 56, 1, 0, 0, 0] {
        bytes.extend(number.to_le_bytes());
    }
    // One part, to be loaded and run.
    bytes.extend([1, 0, 0, 0, 5, 0, 0, 0]);
    for number in [0, BASE, BASE, size, size, 0x1000] {
        bytes.extend(u64::to_le_bytes(number));
    }
    bytes.extend(code);
    bytes
}

#[test]
fn a_signal_to_all_processes_stays_inside() {
    for cell in Cell::all(|_| ()).iter().filter(|cell| cell.guarantees(Gap::Signals)) {
        // Only for an ordinary user would it hit no more than it should.
        let mut sibling = Sibling::new(cell);
        cell.run(&format!("kill -9 -- -{} {}", sibling.0.id(), sibling.0.id()));
        assert!(sibling.is_alive(), "{:?}", cell.plan.method);
    }
}

/// The calls that would undo or bypass the sandbox, by number: no program stands between.
#[test]
fn the_calls_that_would_undo_it_are_refused() {
    for cell in Cell::all(|_| ()) {
        for (name, number, arguments) in [
            ("mount", libc::SYS_mount, "my $a = \"x\", $a, $a, 0, 0"),
            ("umount2", libc::SYS_umount2, "my $a = \"/dev\", 2"),
            ("pivot_root", libc::SYS_pivot_root, "my $a = \".\", $a"),
            ("chroot", libc::SYS_chroot, "my $a = \"/\""),
            ("open_tree", libc::SYS_open_tree, "-100, my $a = \"/\", 1"),
            ("move_mount", libc::SYS_move_mount, "0, my $a = \"\", 0, $a, 4"),
            ("fsopen", libc::SYS_fsopen, "my $a = \"tmpfs\", 0"),
            ("mount_setattr", libc::SYS_mount_setattr, "-100, my $a = \"/\", 0, $a, 32"),
            ("open_tree_attr", 467, "-100, my $a = \"/\", 1, $a, 32"),
            ("unshare, user", libc::SYS_unshare, "0x10000000"),
            ("unshare, mounts", libc::SYS_unshare, "0x20000"),
            ("setns", libc::SYS_setns, "0, 0"),
            ("clone, user", libc::SYS_clone, "0x10000011, 0, 0, 0, 0"),
            ("clone, network", libc::SYS_clone, "0x40000011, 0, 0, 0, 0"),
            ("ptrace", libc::SYS_ptrace, "0, 0, 0, 0"),
            ("process_vm_readv", libc::SYS_process_vm_readv, "$$, 0, 0, 0, 0, 0"),
            ("pidfd_getfd", libc::SYS_pidfd_getfd, "0, 0, 0"),
            ("open_by_handle_at", libc::SYS_open_by_handle_at, "-100, my $a = \"x\" x 64, 0"),
            ("bpf", libc::SYS_bpf, "0, my $a = \"\\0\" x 128, 128"),
            ("keyctl", libc::SYS_keyctl, "0, -4, 0"),
            ("add_key", libc::SYS_add_key, "my $a = \"user\", $a, $a, 1, -4"),
            ("perf_event_open", libc::SYS_perf_event_open, "my $a = \"\\0\" x 128, 0, -1, -1, 0"),
            ("userfaultfd", libc::SYS_userfaultfd, "1"),
            ("process_madvise", libc::SYS_process_madvise, "0, 0, 0, 0, 0"),
            ("process_mrelease", libc::SYS_process_mrelease, "0, 0"),
            ("process_vm_writev", libc::SYS_process_vm_writev, "$$, 0, 0, 0, 0, 0"),
            ("kcmp", libc::SYS_kcmp, "$$, $$, 0, 0, 0"),
            ("request_key", libc::SYS_request_key, "my $a = \"user\", $a, $a, -4"),
            ("fanotify_init", libc::SYS_fanotify_init, "0, 0"),
            ("fspick", libc::SYS_fspick, "-100, my $a = \"/\", 0"),
            ("fsmount", libc::SYS_fsmount, "0, 0, 0"),
            ("fsconfig", libc::SYS_fsconfig, "0, 6, 0, 0, 0"),
            ("kexec_file_load", libc::SYS_kexec_file_load, "0, 0, 0, 0, 0"),
            ("kexec_load", libc::SYS_kexec_load, "0, 0, 0, 0"),
            ("init_module", libc::SYS_init_module, "0, 0, my $a = \"\""),
            ("io_uring_setup", libc::SYS_io_uring_setup, "4, my $a = \"\\0\" x 256"),
            ("clone3", libc::SYS_clone3, "my $a = \"\\0\" x 88, 88"),
            ("mount, other numbering", 0x4000_0000 + libc::SYS_mount, "0, 0, 0, 0, 0"),
        ] {
            let said = cell.run(&syscall(number, arguments));
            let expected = match name {
                "io_uring_setup" | "clone3" | "mount, other numbering" => "not implemented",
                _ => "not permitted",
            };
            assert!(said.text.contains(expected), "{name}: {said:?} {:?}", cell.plan.method);
        }
    }
}

#[test]
fn nothing_can_be_typed_into_a_terminal() {
    for cell in Cell::all(|_| ()) {
        let said = cell.run("perl -e 'my $a = \"x\"; ioctl(STDIN, 0x5412, $a) or die $!'");
        assert!(said.text.contains("not permitted"), "{said:?}");
    }
}

#[test]
fn no_privilege_is_left_and_none_can_be_gained() {
    for cell in Cell::all(|_| ()) {
        let said = cell.run("grep -E '^(Cap(Prm|Eff|Amb)|NoNewPrivs|Seccomp):' /proc/self/status");
        let values: Vec<_> =
            said.text.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
        let none = "0000000000000000";
        assert_eq!(values, [none, none, none, "1", "2"], "{said:?} {:?}", cell.plan.method);
    }
}

#[test]
fn the_kernels_settings_stay_as_they_are() {
    for cell in Cell::all(|_| ()) {
        for attack in [
            "echo x > /proc/sys/kernel/core_pattern",
            "echo 1 > /proc/sys/kernel/printk",
            "echo 0 > /proc/self/uid_map",
            "mkdir /sys/fs/cgroup/new",
            "echo b > /proc/sysrq-trigger",
        ] {
            let said = cell.run(attack);
            assert!(!said.ok, "{attack}: {said:?} {:?}", cell.plan.method);
        }
    }
}

/// A program that makes one system call and dies with the kernel's error.
fn syscall(number: libc::c_long, arguments: &str) -> String {
    format!("perl -e 'syscall({number}, {arguments}) >= 0 or die $!'")
}
