//! Attempts to read denied files.

use centurion_sandbox::Gap;

use crate::cell::{Cell, SECRET};

const READS: [&str; 18] = [
    "cat ../private/key",
    "cat ../private-file",
    "cat deep/secret/key",
    "cat ../project/../private/./key",
    "ln -s ../private link; cat link/key",
    "ln -s ../private-file link; cat link",
    "ln ../private-file hard; cat hard",
    "cp -r ../private copy; cat copy/*",
    "mv ../private moved; cat moved/key",
    "mv deep moved; cat moved/secret/key",
    "mv deep/secret moved; cat moved/key",
    "rm -rf deep; cat deep/secret/key",
    "cat \"/proc/self/root$(cd .. && pwd)/private/key\"",
    "cat /proc/self/cwd/../private/key",
    "for p in /proc/[0-9]*; do cat \"$p/root$(cd .. && pwd)/private/key\"; done",
    "tar -cf - ../private ../private-file 2>/dev/null",
    "grep -r . ../private ../private-file deep",
    "git diff --no-index /dev/null ../private-file",
];

#[test]
fn denied_files_cannot_be_read() {
    for cell in Cell::all(|_| ()) {
        for attack in READS {
            let said = cell.run(attack);
            let leaked = said.text.contains(SECRET);
            assert!(!leaked || !cell.guarantees(Gap::DeniedReads), "{attack}: {said:?}");
        }
        if cell.guarantees(Gap::DeniedReads) {
            // The reason is clear, and differs from that of a missing file.
            let said = cell.run("cat ../private-file");
            assert!(said.text.contains("Permission denied"), "{said:?}");
            let said = cell.run("ls ../private");
            assert!(!said.text.contains("key"), "{said:?}");
        } else {
            assert!(!cell.has_namespaces(), "namespaces have no such gap");
        }
    }
}

#[test]
fn the_attacks_work_where_there_is_no_sandbox() {
    for attack in READS {
        let said = Cell::any().run_free(attack);
        let is_destructive = attack.starts_with("rm ");
        assert_eq!(said.text.contains(SECRET), !is_destructive, "{attack}: {said:?}");
    }
}

#[test]
fn what_is_allowed_within_the_denied_can_be_read_and_nothing_beside_it() {
    for cell in Cell::all(|sandbox| {
        let root = sandbox.write[0].parent().unwrap().to_owned();
        sandbox.deny_read = vec![root.clone()];
        sandbox.allow_read = vec![root.join("outside/sub"), root.join("sandboxed")];
    }) {
        if !cell.guarantees(Gap::DeniedReads) {
            continue;
        }
        let said = cell.run("cat ../outside/sub/file && echo x > own && cat own");
        assert_eq!(said.text, "originalx\n", "{said:?}");
        for attack in ["cat ../outside/file", "cat ../private-file", "cat ../private/key"] {
            let said = cell.run(attack);
            assert!(!said.ok && !said.text.contains(SECRET), "{attack}: {said:?}");
        }
        let said =
            cell.run("echo x > ../outside/sub/file; echo x > ../outside/new; echo x > ../new");
        cell.assert_untouched(&said.text);
    }
}

/// A program that can read a disk needs no permission to read a file.
#[test]
fn there_are_no_disks() {
    for cell in Cell::all(|_| ()).iter().filter(|cell| cell.has_namespaces()) {
        let said = cell.run("find /dev -type b | wc -l; ls /dev/mem /dev/kmsg /dev/vsock");
        assert!(said.text.starts_with("0\n") && !said.ok, "{said:?}");
        let said = cell.run("mknod disk b 254 0");
        assert!(!said.ok, "{said:?}");
    }
}
