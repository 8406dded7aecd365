//! Ordinary scripts of coding agents: they do not ask a user who allows `Bash` and denies nothing.

use centurion_permissions::{Mode, Policy, Verdict, decide};

use crate::fixture::{self, call, policy, shell};

const TABLE: &str = include_str!("../scripts.txt");

fn scripts() -> impl Iterator<Item = &'static str> {
    TABLE.split("---\n").map(|script| script.trim_end_matches('\n'))
}

#[test]
fn ordinary_scripts_are_read_and_run_where_bash_is_allowed() {
    let mut policy = policy(Mode::Default);
    policy.allow = fixture::rules("Bash");
    let asked: Vec<String> = scripts()
        .filter_map(|script| {
            let decision = decide(&policy, &call(&shell(script)));
            (decision.verdict != Verdict::Allow)
                .then(|| format!("{script}\n=> {}", decision.reason))
        })
        .collect();
    assert!(scripts().count() >= 100, "only {} scripts", scripts().count());
    assert!(asked.is_empty(), "{} are asked about:\n{}", asked.len(), asked.join("\n\n"));
    // Nor in one long script. Those that end the shell are left out.
    let long: Vec<&str> = scripts().filter(|script| !script.contains("exit")).collect();
    let long = [long.join("\n"), long.join("\n"), long.join("\n")].join("\n");
    assert!(long.len() > 15_000);
    assert_eq!(decide(&policy, &call(&shell(&long))).verdict, Verdict::Allow);
}

/// Bash parses every one of them, too.
#[test]
fn ordinary_scripts_are_scripts() {
    for script in scripts() {
        let output =
            std::process::Command::new("bash").args(["-n", "-c", script]).output().unwrap();
        assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

/// With rules to guard, most of them still run unasked.
#[test]
fn rules_that_mean_something_else_seldom_ask_about_ordinary_scripts() {
    for (deny, most) in [("Bash(shutdown *)", 40), ("Read(.env)", 40), ("Edit(locked/**)", 45)] {
        let policy = Policy {
            allow: fixture::rules("Bash"),
            deny: fixture::rules(deny),
            ..policy(Mode::Default)
        };
        let asked: Vec<String> = scripts()
            .filter_map(|script| {
                let decision = decide(&policy, &call(&shell(script)));
                (decision.verdict != Verdict::Allow)
                    .then(|| format!("{script}\n=> {}", decision.reason))
            })
            .collect();
        assert!(
            asked.len() <= most,
            "{deny}: {} are asked about:\n{}",
            asked.len(),
            asked.join("\n\n")
        );
    }
}

/// Everyday commands that must not ask because of a rule about something else.
#[test]
fn rules_that_mean_something_else_do_not_ask_about_everyday_commands() {
    let asked = |deny: &str, command: &str| {
        let policy = Policy {
            allow: fixture::rules("Bash"),
            deny: fixture::rules(deny),
            ..policy(Mode::Default)
        };
        let decision = decide(&policy, &call(&shell(command)));
        (decision.verdict != Verdict::Allow)
            .then(|| format!("{deny}: {command} => {}", decision.reason))
    };
    let mut wrong = Vec::new();
    for command in [
        "git commit -m \"$(cat <<'EOF'\nFix the .env of it\n\nBody with 'quotes' and $dollars.\nEOF\n)\"",
        "git commit -m \"Fix $x\"",
        "git commit -am \"Fix $x\"",
        "git tag -a v1 --message=\"Version $x\"",
        "gh pr create --title \"$title\" --body \"$(cat <<'EOF'\nSummary\nEOF\n)\"",
        "gh pr create --title x --body \"$(git log -1 --format=%B)\"",
        "curl -s -H \"Authorization: Bearer $TOKEN\" https://example.com/x",
        "curl --header \"X: $TOKEN\" -d \"a=$b\" https://example.com/x",
        "make -j$(nproc)",
        "make -j \"$(nproc)\" test",
        "cargo test -j$(nproc)",
        "i=0; while [ $i -lt 3 ]; do i=$((i+1)); done",
        "for i in 1 2; do [ $i -lt 3 ] && echo $i; done",
        "echo \"$x\" | head -n $n_lines_are_words 2>/dev/null; true || echo $?",
        "f() { cat src/main.rs; }; f",
        "pushd src && cat main.rs && popd",
        "cd src && make && cd - && cat README.md",
        "cd \"$(git rev-parse --show-toplevel)\" && git status",
        "[ \"$x\" = y ] && echo yes",
        "[ -f \"$HOME/.config\" ] || echo no",
        "printf \"$GREEN done\\n\"",
        "printf '%s\\n' \"$x\"",
        "read -rp \"Continue? \" answer < /dev/null; echo \"$answer\"",
        "bash -eo pipefail -c 'make test'",
        "git push -u origin main",
        "git clone --recursive https://example.com/x.git",
    ] {
        // The unknown word may be a number of lines or a file.
        if !command.contains("n_lines") {
            wrong.extend(asked("Read(.env)", command));
        }
        wrong.extend(asked("Bash(shutdown *)", command));
    }
    for command in [
        "python3 -m pytest",
        "python3 -m pytest -x tests/test_a.py",
        "python3 -m venv v",
        "python -m pip install -r requirements.txt",
        "python3 -m http.server 8000",
        "docker run -v $PWD:/x image",
        "docker run --rm -v \"$PWD\":/x -w /x image make test",
        "export CC=clang; make",
        "CC=gcc-12 CFLAGS='-O2 -g -Wall' make",
        "RUSTFLAGS='-D warnings' cargo test",
        "JAVA_OPTS=-Xmx2g ./run.sh",
        "FOO=1 npm test",
        "RUST_BACKTRACE=1 cargo test",
        "CI=true npm test",
        "DEBUG=* node x.js",
        "PORT=3000 npm start",
        "NODE_ENV=test npm test",
        "DATABASE_URL=postgres://a:b@localhost/x npm test",
        "SETTINGS='{\"a\": [1, \"it\"]}' node x.js",
        "PATTERN='^a.*$'; grep \"$PATTERN\" x",
        "SRC=src; RC=$?; FLAGS=--release; cargo build $FLAGS; exit $RC",
        "git config user.name a && git config user.email a@b && git commit -m x",
        "git -C sub status",
        "for d in a b; do git -C $d status; done",
        "awk '$3 > 5 { print $1 }' data.txt; bash run.sh",
        "sed -n '/start/,/end/p' file.txt",
        "sed -i -e 's/a/b/' -e 's/c/d/' src/*.rs",
        "awk -v n=\"$n\" '{ print n, $1 }' data.txt",
        "xargs -I{} cp {} out < list.txt",
        "find . -name '*.o' | xargs rm -f",
        "for f in src/*.rs; do rustfmt \"$f\"; done",
        "python3 build.py --out \"$OUT\"",
        "node scripts/build.js \"$1\"",
        "tar xzf x.tar.gz && ./configure",
        "echo done > log.txt; ./run.sh",
        "local_dir=$(mktemp -d); cp -r src \"$local_dir\"",
    ] {
        wrong.extend(asked("Bash(shutdown *)", command));
    }
    assert!(wrong.is_empty(), "{} are asked about:\n{}", wrong.len(), wrong.join("\n"));
}
