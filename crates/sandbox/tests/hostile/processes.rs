//! Attempts on other processes, on the kernel, and on the sandbox itself.

use std::path::Path;
use std::process::{Child, Stdio};

use centurion_sandbox::Gap;

use crate::cell::{Cell, SECRET, run_as};

/// A process of the same user outside of the sandbox, with a secret in its environment.
struct Sibling(Child);

impl Sibling {
    fn new(cell: &Cell) -> Self {
        let mut sleep = run_as(cell.user, Path::new("sleep"));
        let child = sleep.arg("600").env("SECRET", SECRET).stdin(Stdio::null()).spawn().unwrap();
        let sibling = Self(child);
        // Until it is the program that it is to be, its user may still be another.
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
            // With a process namespace, the first process is the sandbox's own; it tells nothing.
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

#[test]
fn a_signal_to_everybody_stays_inside() {
    for cell in Cell::all(|_| ()).iter().filter(|cell| cell.guarantees(Gap::Signals)) {
        // Only where the tests are an ordinary user would it hit no more than it should.
        let mut sibling = Sibling::new(cell);
        cell.run(&format!("kill -9 -- -{} {}", sibling.0.id(), sibling.0.id()));
        assert!(sibling.is_alive(), "{:?}", cell.plan.method);
    }
}

/// The calls that would undo the sandbox or reach around it, by number: no program stands between.
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

/// A program that makes one system call and dies with what the kernel says.
fn syscall(number: libc::c_long, arguments: &str) -> String {
    format!("perl -e 'syscall({number}, {arguments}) >= 0 or die $!'")
}
