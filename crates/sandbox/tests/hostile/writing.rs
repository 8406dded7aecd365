//! Attempts to change files that do not belong to the command.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};

use centurion_sandbox::Gap;

use crate::cell::Cell;

/// Each tries to change something outside. Without a sandbox, each would.
const CHANGES: [&str; 20] = [
    "echo x > ../outside/file",
    "echo x >> \"$PWD/../outside/file\"",
    "echo x > ../outside/new",
    "mkdir ../outside/new",
    "rm ../outside/file",
    "rm -rf ../outside",
    "mv ../outside/file stolen",
    "mv ../outside stolen",
    "mv ../outside/sub ../outside/moved",
    "cp /dev/null ../outside/new",
    "ln -s ../outside/file link && echo x > link",
    "ln -s ../outside link && echo x > link/new",
    "ln -s x ../outside/new",
    "ln file ../outside/new 2>/dev/null || { echo y > own && ln own ../outside/new; }",
    "mkfifo ../outside/new",
    "cd .. && mv project elsewhere",
    "echo x > /proc/self/cwd/../outside/file",
    "echo x > \"/proc/self/root$(cd ../outside && pwd)/file\"",
    "echo x > \"/proc/$$/root$(cd ../outside && pwd)/new\"",
    "exec 5<../outside && echo x > /proc/self/fd/5/new",
];

/// The same without changing any content.
const ATTRIBUTES: [&str; 5] = [
    "chmod 700 ../outside/file",
    "chmod 700 ../outside",
    "touch -d 2001-01-01 ../outside/file",
    "touch -h -d 2001-01-01 ../outside/sub",
    "perl -e 'utime 1, 1, \"../outside\" or exit 1'",
];

#[test]
fn nothing_outside_can_be_changed() {
    for cell in Cell::all(|_| ()) {
        for attack in CHANGES {
            let said = cell.run(attack);
            assert!(!said.ok, "{attack}: {said:?} {:?}", cell.plan.method);
            cell.assert_untouched(attack);
        }
    }
}

/// A control: an attack that would not work anyway would prove nothing.
#[test]
fn the_attacks_work_where_there_is_no_sandbox() {
    for attack in CHANGES.iter().chain(&ATTRIBUTES) {
        let said = Cell::any().run_free(attack);
        assert!(said.ok, "{attack}: {said:?}");
    }
}

#[test]
fn permissions_and_times_outside_stay_as_they_are() {
    for cell in Cell::all(|_| ()) {
        for attack in ATTRIBUTES {
            let said = cell.run(attack);
            if cell.guarantees(Gap::Attributes) {
                assert!(!said.ok, "{attack}: {said:?} {:?}", cell.plan.method);
                cell.assert_untouched(attack);
            } else {
                assert!(!cell.has_namespaces(), "namespaces have no such gap");
            }
        }
    }
}

#[test]
fn files_are_not_emptied_without_opening_them() {
    for cell in Cell::all(|_| ()) {
        let attack = "perl -e 'truncate \"../outside/file\", 0 or exit 1'";
        let said = cell.run(attack);
        assert!(!said.ok || !cell.guarantees(Gap::Truncation), "{said:?}");
        if cell.guarantees(Gap::Truncation) {
            cell.assert_untouched(attack);
        }
    }
}

/// A hard link to a file outside is the one way to reach it under another name.
#[test]
fn no_hard_link_leads_outside() {
    for cell in Cell::all(|_| ()) {
        let said = cell.run("ln ../outside/file inside; echo x > inside; true");
        assert!(said.ok, "{said:?}");
        cell.assert_untouched("hard link");
        assert_eq!(cell.read("inside").as_deref(), Some("x\n"), "it is a file of its own");
    }
}

#[test]
fn another_view_of_the_files_cannot_be_had() {
    for cell in Cell::all(|_| ()) {
        for attack in [
            "mount --bind ../outside .keep",
            "mount -t tmpfs none ../outside",
            "mount -o remount,bind,rw /",
            "mount -o remount,rw /",
            "umount -l ../outside",
            "umount -l .",
            "unshare -Urm true",
            "unshare -m true",
            "unshare -n true",
            "unshare -p -f true",
            "nsenter -t 1 -m true",
            "nsenter -t $PPID -m -U true",
            "chroot / true",
        ] {
            let said = cell.run(attack);
            assert!(!said.ok, "{attack}: {said:?} {:?}", cell.plan.method);
            cell.assert_untouched(attack);
        }
    }
}

/// Descriptors that the parent left open would bypass everything.
#[test]
fn open_files_do_not_come_along() {
    for cell in Cell::all(|_| ()) {
        let attack = "echo x >&7; echo x > /proc/self/fd/8/new; cat <&9";
        let line = format!(
            "exec 7<>../outside/file 8<../outside 9<../private/key; exec {} bash -c '{attack}'",
            cell.line()
        );
        let said = cell.run_free(&line);
        assert!(said.text.contains("Bad file descriptor"), "{said:?}");
        assert!(!said.text.contains(crate::cell::SECRET), "{said:?}");
        cell.assert_untouched(attack);
    }
}

#[test]
fn a_hook_of_git_is_confined_like_any_other_program() {
    for cell in Cell::all(|_| ()) {
        let said = cell.run(
            "git init -q repo && cd repo && git config user.email a@b && git config user.name a && \
             printf '#!/bin/sh\\necho ran > ../ran\\necho x > ../../outside/file\\n' \
             > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit && \
             echo a > a && git add a && git commit -qm a",
        );
        assert_eq!(cell.read("ran").as_deref(), Some("ran\n"), "{said:?}");
        cell.assert_untouched("hook");
    }
}

#[test]
fn a_daemon_takes_its_confinement_along() {
    for cell in Cell::all(|_| ()) {
        // It outlives the shell, where it may, and reports that it has tried.
        let said = cell.run(
            "mkfifo gone; (trap '' HUP; setsid sh -c 'read line < gone; echo x > ../outside/file; \
             echo tried > done' >/dev/null 2>&1 &) ; echo go > gone; \
             until [ -s done ]; do :; done",
        );
        assert!(said.ok, "{said:?}");
        assert_eq!(cell.read("done").as_deref(), Some("tried\n"));
        cell.assert_untouched("daemon");
    }
}

#[test]
fn shared_memory_is_the_commands_own() {
    for cell in Cell::all(|_| ()) {
        let name = format!("/dev/shm/{}", cell.root.file_name().unwrap().display());
        let said = cell.run(&format!("echo x > {name} && cat {name}"));
        assert_eq!(said.ok, cell.has_namespaces(), "{said:?}");
        assert!(!fs::exists(&name).unwrap(), "{name}");
    }
}

/// The kept paths within a writable directory.
const KEPT: [&str; 13] = [
    "echo x > .keep/config",
    "rm -f .keep/config",
    "rm -rf .keep",
    "mv .keep/config moved",
    "mv .keep moved && mkdir .keep && echo x > .keep/config",
    "echo x > other; mv -f other .keep/config",
    "echo x > other; ln -f other .keep/config",
    "ln -sf ../other .keep/config",
    "ln .keep/config alias && echo x > alias",
    "chmod 777 .keep/config",
    "echo x > .new/config",
    "rm -rf .new; mkdir -p .new && echo x > .new/config",
    "mv .new moved; mkdir -p .new && echo x > .new/config",
];

#[test]
fn what_is_denied_within_the_project_stays() {
    for cell in Cell::all(|_| ()) {
        if !cell.guarantees(Gap::DeniedWrites) {
            assert!(!cell.has_namespaces(), "namespaces have no such gap");
            continue;
        }
        let held = cell.hold();
        for attack in KEPT {
            let said = cell.run(attack);
            assert!(!said.ok, "{attack}: {said:?} {:?}", cell.plan.method);
            assert_eq!(cell.read(".keep/config").as_deref(), Some("original"), "{attack}");
            assert_eq!(cell.read(".new/config"), None, "{attack}");
        }
        // Beside them, work continues, and git does not see the placeholder of the missing one.
        let said = cell.run(
            "echo x > .keep/other && git init -q && git add -A && git status --short | grep -v keep/other",
        );
        assert!(!said.text.contains(".new"), "{said:?}");
        assert_eq!(cell.read(".keep/other").as_deref(), Some("x\n"), "{said:?}");
        drop(held);
        assert!(!cell.project.join(".new").exists());
    }
}

/// The directory around the project does not change, whether that directory or all files may be written.
#[test]
fn a_place_within_what_is_kept_is_all_that_can_be_changed() {
    for is_open in [false, true] {
        for cell in Cell::all(|sandbox| {
            let project = sandbox.write[0].clone();
            let around = project.parent().unwrap().to_owned();
            sandbox.write = vec![if is_open { "/".into() } else { around.clone() }];
            sandbox.deny_write.push(around);
            sandbox.write_within = vec![project];
        }) {
            if !cell.guarantees(Gap::DeniedWrites) {
                assert!(!cell.has_namespaces(), "namespaces have no such gap");
                continue;
            }
            let held = cell.hold();
            let moves = ["mv \"${PWD%/*}\" \"${PWD%/*}-moved\"", "cd .. && rm -rf project"];
            for attack in CHANGES.iter().chain(&KEPT).chain(&moves) {
                let said = cell.run(attack);
                assert!(!said.ok, "{attack}: {said:?} {:?}", cell.plan.method);
                cell.assert_untouched(attack);
                assert_eq!(cell.read(".keep/config").as_deref(), Some("original"), "{attack}");
                assert_eq!(cell.read(".new/config"), None, "{attack}");
            }
            let said = cell.run("mkdir own && echo x > own/file && mv own/file moved-here");
            assert!(said.ok, "{said:?}");
            let free = tempfile::tempdir().unwrap();
            fs::set_permissions(free.path(), Permissions::from_mode(0o777)).unwrap();
            let said = cell.run(&format!("echo x > {}/free", free.path().display()));
            assert_eq!(said.ok, is_open, "{said:?}");
            drop(held);
            assert!(!cell.project.join(".new").exists());
        }
    }
}

#[test]
fn a_link_to_what_is_denied_cannot_be_replaced() {
    for cell in Cell::all(|sandbox| {
        let link = sandbox.write[0].join("settings");
        sandbox.deny_write.push(link.join("config"));
    }) {
        symlink(".keep", cell.project.join("settings")).unwrap();
        if !cell.guarantees(Gap::Links) || !cell.guarantees(Gap::DeniedWrites) {
            continue;
        }
        for attack in [
            "rm settings",
            "rm settings; mkdir settings; echo x > settings/config",
            "mv settings moved",
            "echo x > settings/config",
            "mkdir other; ln -sfn other settings; echo x > settings/config",
        ] {
            let said = cell.run(attack);
            assert!(!said.ok, "{attack}: {said:?} {:?}", cell.plan.method);
            assert_eq!(cell.read("settings/config").as_deref(), Some("original"), "{attack}");
        }
    }
}
