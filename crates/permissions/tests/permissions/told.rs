//! Words that stand for several texts are expanded where all of them are known: from the text, from the shell, or from
//! the disk. A command is free if every expansion is.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use centurion_permissions::{Call, Mode, Policy, Verdict, decide};

use crate::disk::Disk;
use crate::fixture::{self, policy, shell};

fn verdict(project: &Path, text: &str) -> Verdict {
    let policy = Policy {
        cwd: project.to_owned(),
        project_root: project.to_owned(),
        home: project.parent().map(Path::to_owned),
        directories: vec![project.to_owned()],
        trusted_repository: None,
        ..policy(Mode::Default)
    };
    let access = shell(text);
    decide(&policy, &Call { links: &Disk, ..fixture::call(&access) }).verdict
}

#[test]
fn what_is_told_in_every_reading_is_free() {
    let place = tempfile::tempdir().unwrap();
    let home = place.path().canonicalize().unwrap();
    let project = home.join("project");
    fs::create_dir_all(project.join("src")).unwrap();
    fs::create_dir(project.join("odd")).unwrap();
    for name in ["a.c", "b.c", "src/c.c", "../outside", "odd/-R", "odd/x"] {
        fs::write(project.join(name), "x").unwrap();
    }
    symlink("/etc", project.join("out")).unwrap();
    symlink("../outside", project.join("leaf.txt")).unwrap();
    for text in [
        "ls *.c",
        "ls *.h",
        "cat a* src/*",
        "wc -l [ab].c",
        "head -n 1 src/?.c | sort",
        "echo $?",
        "ls; echo \"exit: $?\"",
        "echo $HOME",
        "echo \"$HOME\"",
        "echo $((1 + 2))",
        "test $? -eq 0 && echo ok",
        "cat \"$HOME/project/a.c\"",
        "command -v python3",
        "command -V ls cat",
        "for f in a b; do cat \"$f\"; done",
        "for f in a.c b.c; do echo \"== $f\"; head -n 3 $f; done",
        "for a in x y; do for b in 1 2; do echo $a$b; done; done",
        "for f in a.c b.c; do test -f \"$f\" && cat \"$f\"; done",
    ] {
        assert_eq!(verdict(&project, text), Verdict::Allow, "{text}");
    }
    for text in [
        // Outside of the working directory, or a link that leads there.
        "ls *",
        "cat o*",
        "cat *.txt",
        "ls out/*",
        "ls ../*",
        "ls .*",
        "ls ..*",
        "ls /etc/*",
        "ls {.../}*",
        "ls $HOME",
        "cat $HOME/outside",
        "for f in a ../outside; do cat \"$f\"; done",
        "for f in a out/passwd; do cat \"$f\"; done",
        "for f in *.txt; do cat \"$f\"; done",
        "for f in a; do f=../outside; cat $f; done",
        "for f in a; do cat < ../$f; done",
        "for f in src; do cd $f; cat ../../outside; done",
        // Unknown, or from the environment.
        "echo $PATH",
        "echo $SECRET",
        "echo $x",
        "echo $_ $@ $!",
        "for f in $(ls); do cat \"$f\"; done",
        "for f in a; do :; done; cat \"$f\"",
        "cat \"$f\"; for f in a; do :; done",
        "for _ in a; do ls ../outside; cat $_; done",
        "for f in a; do read f; cat \"$f\"; done",
        "for f in a; do printf -v f ../outside; cat \"$f\"; done",
        "for f in a; do cat \"${f%a}../outside\"; done",
        // A value, or its absence, makes the command another one.
        "for f in p 'w z'; do sed \"$f\" a; done",
        "select f in p; do sed $f 'w z' a; break; done",
        "for f in -o; do sort a $f z; done",
        "for f in -oz; do sort a \"$f\"; done",
        "for f in -v; do [ $f 'a[$(touch z)]' ]; done",
        "for f in '%n'; do printf \"$f\" x; done",
        "for f in touch; do $f z; done",
        "sort *.c",
        "uniq *.c",
        "sed p *.c",
        "ls -*",
        "head -$((1 - 5)) a",
        "command -p touch x",
        "command -v -p touch x",
        "command touch x",
    ] {
        assert_ne!(verdict(&project, text), Verdict::Allow, "{text}");
    }
}
