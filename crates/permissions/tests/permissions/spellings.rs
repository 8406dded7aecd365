//! A deny rule finds every spelling: with `Bash` allowed and `Bash(touch *)` denied, no way to run `touch marker` is
//! allowed. Each way runs in the real shell first, to show that it is one.

use std::process::Stdio;

use centurion_permissions::{Mode, Policy, Reason, RuleSet, Verdict, decide};

use crate::fixture::{self, call, policy, shell};
use crate::isolated::isolated_command;

const TABLE: &str = include_str!("../spellings.txt");

/// Spellings of the word `touch`.
const WORDS: [&str; 16] = [
    "touch",
    "\\touch",
    "'touch'",
    "\"touch\"",
    "t''ouch",
    "to\"uc\"h",
    "tou\\ch",
    "$'touch'",
    "$'\\x74ouch'",
    "$'\\164ouch'",
    "$'\\u0074ouch'",
    "t$'o'uch",
    "${x:-touch}",
    "$(echo touch)",
    "/bin/touch",
    "/usr/bin/../bin/touch",
];

/// Positions of a command; `@` is the command.
const PLACES: [&str; 24] = [
    "@",
    " \t@",
    "\n@",
    "true; @",
    "true && @",
    "false || @",
    "true | @",
    "(@)",
    "{ @; }",
    "if @; then :; fi",
    "for i in 1; do @; done",
    "case a in a) @;; esac",
    "f() { @; }; f",
    "echo $(@)",
    "echo \"$(@)\"",
    "cat <(@) >/dev/null",
    "cat <<X\n$(@)\nX",
    "x=$(@)",
    "nice @",
    "env A=1 timeout 5 @",
    "! @",
    "A=1 @",
    "@ 2>/dev/null",
    ">/dev/null @",
];

/// Shells that run their input.
const SHELLS: [&str; 7] =
    ["bash", "sh", "bash -s x", "sh /dev/stdin", "nice bash", "env -i /bin/sh", "bash //dev/fd/0"];

/// Ways to give `touch marker` to a shell, `@`.
const FEEDS: [&str; 20] = [
    "echo touch marker | @",
    "@ <<< 'touch marker'",
    "@ <<X\ntouch marker\nX",
    "echo touch marker > f; @ < f",
    "@ < <(echo touch marker)",
    "echo touch marker > >(@); wait $!",
    "echo touch marker | tee >(@) > /dev/null; sleep 0",
    "exec 3> >(@); echo touch marker >&3; exec 3>&-; wait $!",
    "{ @; } <<< 'touch marker'",
    "(@) <<< 'touch marker'",
    "{ echo $(@); } <<< 'touch marker'",
    "{ x=`@`; } <<< 'touch marker'",
    "echo touch marker | echo \"$(@)\"",
    "f() { @; }; f <<< 'touch marker'",
    "if @; then :; fi <<< 'touch marker'",
    "for i in 1; do @; done <<< 'touch marker'",
    "eval '@' <<< 'touch marker'",
    "bash -c '@' <<< 'touch marker'",
    "find . -maxdepth 0 -exec @ \\; <<< 'touch marker'",
    "exec <<< 'touch marker'; @",
];

/// Programs that some machines lack: a row that names one is not run there.
const OPTIONAL: [&str; 24] = [
    "awk", "choom", "ed", "ex", "flock", "gcc", "gdb", "git", "make", "man", "node", "perl",
    "prlimit", "python3", "script", "setpriv", "sqlite3", "ssh", "strace", "taskset", "tclsh",
    "unshare", "vim", "zip",
];

/// Whether a row names a program that this machine lacks.
fn lacks_program(text: &str) -> bool {
    let named = |program: &str| {
        text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).any(|word| word == program)
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = |program: &str| {
        std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
    };
    OPTIONAL.iter().any(|program| named(program) && !is_there(program))
}

/// Every spelling, and whether every machine can run it.
fn spellings() -> Vec<(String, bool)> {
    let rows = TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with("# "));
    let mut found: Vec<(String, bool)> = rows
        .map(|row| match row.strip_prefix("? ") {
            Some(text) => (decode(text), false),
            None => (decode(row), true),
        })
        .collect();
    for word in WORDS {
        let command = format!("{word} marker");
        found.extend(PLACES.map(|place| (place.replace('@', &command), true)));
        // Beyond a former length limit.
        found.push((format!(": {}\n{command}", "x".repeat(12_000)), true));
        found.push((format!("# {}\n{command}", "x".repeat(300_000)), true));
    }
    for shell in SHELLS {
        found.extend(FEEDS.map(|feed| (feed.replace('@', shell), true)));
    }
    found
}

fn decode(text: &str) -> String {
    let mut decoded = text.replace('␤', "\n").replace('␉', "\t");
    while let Some((before, rest)) = decoded.split_once("<U+") {
        let (code, after) = rest.split_once('>').expect("<U+…> is closed");
        let code = u32::from_str_radix(code, 16).expect("a number");
        let character = char::from_u32(code).expect("a character");
        decoded = format!("{before}{character}{after}");
    }
    decoded
}

/// Whether bash can make the file by running the text. Waits for processes that the text leaves running. Some programs
/// lose output on a busy machine (`script`): one success in three tries proves the way.
fn makes_marker(text: &str) -> bool {
    (0..3).any(|_| {
        let place = tempfile::tempdir().expect("a directory");
        let work = place.path().join("work");
        std::fs::create_dir(&work).expect("it is new");
        std::fs::write(place.path().join("script"), text).expect("it is written");
        // The descriptor is open as long as a process of the text lives.
        let shell = "exec 9>&1 >/dev/null; eval \"$(<\"$0\")\"";
        let output = isolated_command("bash", place.path(), &work)
            .args(["--norc", "--noprofile", "-c", shell])
            .arg(place.path().join("script"))
            .stderr(Stdio::null())
            .output();
        output.expect("bash runs");
        work.join("marker").exists()
    })
}

fn guarded() -> Policy {
    let mut policy = policy(Mode::Default);
    policy.allow = fixture::rules("Bash");
    policy.deny = fixture::rules("Bash(touch *)");
    policy
}

#[test]
fn a_deny_rule_finds_every_spelling() {
    let policy = guarded();
    let spellings = spellings();
    assert!(spellings.len() >= 600, "only {} spellings", spellings.len());
    let missed: Vec<String> = spellings
        .iter()
        .filter(|(text, _)| decide(&policy, &call(&shell(text))).verdict == Verdict::Allow)
        .map(|(text, _)| format!("{:?}", text.chars().take(200).collect::<String>()))
        .collect();
    assert!(missed.is_empty(), "{} missed:\n{}", missed.len(), missed.join("\n"));
    // An ask rule matches the same texts as a deny rule, and both hold where permissions are skipped.
    for mode in [Mode::AcceptEdits, Mode::BypassPermissions, Mode::DontAsk, Mode::Plan] {
        for (ask, deny) in [("", "Bash(touch *)"), ("Bash(touch *)", "")] {
            let set = |rules: &str| {
                if rules.is_empty() { RuleSet::default() } else { fixture::rules(rules) }
            };
            let policy = Policy { mode, ask: set(ask), deny: set(deny), ..policy.clone() };
            for (text, _) in &spellings {
                let verdict = decide(&policy, &call(&shell(text))).verdict;
                assert_ne!(verdict, Verdict::Allow, "{mode}: {text:.200}");
                let settled = matches!(mode, Mode::DontAsk | Mode::Plan);
                assert!(!settled || verdict == Verdict::Deny, "{mode}: {text:.200}");
            }
        }
    }
}

#[test]
fn every_spelling_runs_in_bash() {
    // A program that this machine lacks proves nothing.
    let texts: Vec<String> = spellings()
        .into_iter()
        .filter(|(text, is_portable)| *is_portable && !lacks_program(text))
        .map(|(text, _)| text)
        .collect();
    assert!(texts.len() >= 600, "only {} can run here", texts.len());
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let parts: Vec<_> = texts
            .chunks(texts.len().div_ceil(threads))
            .map(|part| {
                scope.spawn(|| part.iter().filter(|text| !makes_marker(text)).collect::<Vec<_>>())
            })
            .collect();
        let wrong = parts.into_iter().flat_map(|part| part.join().expect("no panic"));
        wrong.map(|text| format!("{:?}", text.chars().take(200).collect::<String>())).collect()
    });
    assert!(wrong.is_empty(), "these did not run:\n{}", wrong.join("\n"));
}

#[test]
fn text_that_cannot_be_read_is_asked_about_before_any_rule_allows_it() {
    let texts = [
        "\r#; touch marker",
        "\u{b}#; touch marker",
        "\u{c}#; touch marker",
        "\u{85}#; touch marker",
        "\u{a0}#; touch marker",
        "\u{2028}#; touch marker",
        "\u{3000}#; touch marker",
        "\u{feff}#; touch marker",
        "ls >/dev/null\r",
        "ls\r",
        "ls\0",
        "ls \0; touch marker",
        "to\0uch marker",
        "ls\u{7f}",
        "ls \u{1b}[2K",
        "ls 'a\u{1}'",
        "cat <<X\n\r\nX",
        "echo \"open",
        "ls \u{202e}x",
        "if true",
        "ls $(",
        "ls )",
        "ls ;; ls",
    ];
    let allow = ["", "Bash", "Bash(*)", "Bash(ls *)", "Bash(ls*)"];
    for text in texts {
        for allowed in allow {
            for mode in Mode::ALL {
                let mut policy = policy(mode);
                if !allowed.is_empty() {
                    policy.allow = fixture::rules(allowed);
                }
                let decision = decide(&policy, &call(&shell(text)));
                let free = mode == Mode::BypassPermissions;
                assert!(
                    free || decision.verdict != Verdict::Allow,
                    "{text:?} in {mode} with {allowed:?}"
                );
                let settled = matches!(mode, Mode::Plan | Mode::DontAsk);
                assert!(!settled || decision.verdict == Verdict::Deny, "{text:?} in {mode}");
                // Skipping permissions does not bypass a rule.
                for guard in ["Bash(touch *)", "Bash(rm *)", "Read(.env)"] {
                    let guarded = Policy { deny: fixture::rules(guard), ..policy.clone() };
                    let verdict = decide(&guarded, &call(&shell(text))).verdict;
                    assert_ne!(verdict, Verdict::Allow, "{text:?} in {mode} past {guard}");
                }
            }
        }
    }
    // Not even a rule for exactly this text.
    let mut exact = policy(Mode::Default);
    exact.allow = fixture::rules("Bash(ls 'a)");
    let decision = decide(&exact, &call(&shell("ls 'a")));
    assert!(matches!(decision.reason, Reason::Unreadable { .. }), "{decision:?}");
}
