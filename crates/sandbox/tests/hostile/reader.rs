//! A program that only reads, here a shell that tries everything else.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use centurion_sandbox::Reader;

struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        for (name, text) in [("in/file", "inside"), ("out/secret", "outside")] {
            std::fs::create_dir_all(home.path(name).parent().unwrap()).unwrap();
            std::fs::write(home.path(name), text).unwrap();
        }
        std::os::unix::fs::symlink(home.path("out"), home.path("in/link")).unwrap();
        home
    }

    fn path(&self, relative: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(relative)
    }

    fn shell(&self, script: &str) -> Output {
        let program = ["/bin/bash", "/usr/bin/bash"].into_iter().find(|it| Path::new(it).exists());
        let reader = Reader {
            program: PathBuf::from(program.unwrap()).canonicalize().unwrap(),
            args: vec!["-c".into(), script.into()],
            environment: BTreeMap::from([(
                "OUT".to_owned(),
                self.path("out").display().to_string(),
            )]),
            cwd: self.path("in"),
            readable: vec![self.path("in")],
        };
        let mut command = reader.into_command().unwrap();
        command.stdin(Stdio::null()).output().unwrap()
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
fn a_reader_reads_what_it_is_given() {
    let home = Home::new();
    assert_eq!(said(&home.shell("read x < file; echo $x")), "inside");
    assert_eq!(said(&home.shell("for f in *; do echo $f; done")), "file\nlink");
}

#[test]
fn a_reader_reads_nothing_else() {
    let home = Home::new();
    for script in [
        "read x < $OUT/secret; echo $x",
        "read x < link/secret; echo $x",
        "read x < ../out/secret; echo $x",
    ] {
        assert_eq!(said(&home.shell(script)), "", "{script}");
    }
    assert_eq!(said(&home.shell("set -- $OUT/*; echo \"${1##*/}\"")), "*");
}

#[test]
fn a_reader_starts_no_program() {
    let home = Home::new();
    for script in [
        "exec /bin/echo started",
        "/bin/echo started",
        "echo $(/bin/echo started)",
        "(echo started)",
        "echo started | cat",
        "exec -c /bin/sh -c 'echo started'",
        "exec /lib64/ld-linux-x86-64.so.2 /bin/echo started",
        "command -p echo started & wait",
    ] {
        let output = home.shell(script);
        assert!(!said(&output).contains("started"), "{script}: {output:?}");
    }
}

#[test]
fn a_reader_writes_nothing_and_reaches_no_host() {
    let home = Home::new();
    home.shell(
        "echo x > new; echo x > file; echo x >> $OUT/secret; echo x > /dev/null && echo y > ../y",
    );
    assert_eq!(std::fs::read_to_string(home.path("in/file")).unwrap(), "inside");
    assert_eq!(std::fs::read_to_string(home.path("out/secret")).unwrap(), "outside");
    assert!(!home.path("in/new").exists() && !home.path("y").exists());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let connect = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected");
    assert_eq!(said(&home.shell(&connect)), "");
    assert_eq!(said(&home.shell("kill -0 $PPID && echo reached")), "");
}
