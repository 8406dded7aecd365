//! Commands of Bash in a sandbox.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;

use centurion_permissions::{Policy, Rule, RuleOrigin};
use centurion_sandbox::{Bubblewrap, Gap, Namespaces, Sandbox, Support};
use centurion_testkit::{Lack, skip};
use centurion_tools::{
    DeniedFiles, DeniedSearch, SandboxPolicy, SandboxSettings, ShellsConfig, ToolError,
    builtin_under,
};
use serde_json::{Value, json};

use crate::support::{Session, eventually, line_in, text};

/// Nothing that could confine a command.
pub(crate) fn no_support() -> Support {
    Support {
        landlock: None,
        seccomp: true,
        process_namespace: false,
        namespaces: Namespaces::Missing("not here".to_owned()),
        bubblewrap: Bubblewrap::Missing,
    }
}

/// Each method of this machine as if it were the best. A capability that they lack together is reported as a skip.
pub(crate) fn supports() -> Vec<Support> {
    let found = Support::detect();
    let none = || Namespaces::Missing("left out".to_owned());
    let all = [
        Support { bubblewrap: Bubblewrap::Missing, ..found.clone() },
        Support { bubblewrap: Bubblewrap::Missing, process_namespace: false, ..found.clone() },
        Support { namespaces: none(), ..found.clone() },
        Support { namespaces: none(), bubblewrap: Bubblewrap::Missing, ..found.clone() },
    ];
    let usable = |support: &Support| SandboxPolicy::new(Sandbox::default(), support, settings());
    let all: Vec<Support> =
        all.into_iter().filter(|support| usable(support).unavailable().is_none()).collect();
    if all.is_empty() {
        skip(Lack::Sandbox);
    } else if !all.iter().any(|support| usable(support).gaps().is_empty()) {
        skip(Lack::CompleteSandbox);
    }
    all
}

fn settings() -> SandboxSettings {
    SandboxSettings::default()
}

/// A session whose commands may write only to `project` below its root.
fn session(support: &Support, settings: SandboxSettings) -> Session {
    let mut session = Session::with(&[], ShellsConfig::DEFAULT_MAX_OUTPUT);
    let project = session.path("project");
    fs::create_dir(&project).unwrap();
    fs::write(session.path("private"), "secret words").unwrap();
    let sandbox = Sandbox {
        write: vec![project.clone()],
        deny_write: vec![project.join(".new/settings.json")],
        deny_read: vec![session.path("private")],
        ..Sandbox::default()
    };
    let policy = SandboxPolicy::new(sandbox, support, settings);
    let workspace = Arc::get_mut(&mut session.context.workspace).unwrap();
    *workspace.cwd.lock() = project;
    workspace.sandbox = Some(Arc::new(policy));
    session
}

fn policy(session: &Session) -> &SandboxPolicy {
    session.context.workspace.sandbox.as_deref().unwrap()
}

#[tokio::test]
async fn a_command_is_confined_and_the_model_learns_why_it_failed() {
    for support in supports() {
        let session = session(&support, settings());
        assert_eq!(session.bash("echo a > file && cat file").await, "a");
        assert_eq!(session.bash("echo a > /dev/stdout").await, "a");
        let failed = session.bash_fails("echo x > ../outside").await;
        let project = session.path("project");
        let hint = format!(
            "The sandbox may be the reason: commands write only to {} and have no network.",
            project.display()
        );
        assert!(failed.contains(&hint), "{failed}");
        assert!(!session.path("outside").exists());
        // No hint is added to a failure of another kind.
        assert_eq!(session.bash_fails("false").await, "Exit code 1");
        let gaps = policy(&session).gaps();
        let read = session.call("Bash", json!({ "command": "cat ../private" })).await;
        assert_eq!(read.is_ok(), gaps.contains(&Gap::DeniedReads), "{gaps:?}");
    }
}

/// Deny rules about files hold inside the sandbox, and a rule that cannot hold there makes commands ask.
#[tokio::test]
async fn rules_about_files_are_in_force_in_the_sandbox() {
    for support in supports() {
        let mut session = session(&support, settings());
        let project = session.path("project");
        fs::create_dir(project.join("keys")).unwrap();
        for name in [".env", "keys/key", "kept"] {
            fs::write(project.join(name), "secret words").unwrap();
        }
        let denied = DeniedFiles {
            read: vec![project.join(".env"), project.join("keys")],
            write: vec![project.join("kept"), project.join("new")],
            is_complete: true,
        };
        let found = denied.clone();
        let workspace = Arc::get_mut(&mut session.context.workspace).unwrap();
        workspace.find_denied = Arc::new(move || found.clone());
        let is_held = !policy(&session).gaps().contains(&Gap::Attributes);
        assert_eq!(policy(&session).confines("cat .env", false, &denied), is_held);
        let partial = DeniedFiles { is_complete: false, ..denied };
        assert!(!policy(&session).confines("true", false, &partial));
        if !is_held {
            continue;
        }
        for attack in [
            "cat .env",
            "cat .e*",
            "mv .env free && cat free",
            "ln .env free && cat free",
            "cp -r . /tmp/copy-$$ 2>/dev/null; cat /tmp/copy-$$/.env",
            "cat keys/key",
            "mv keys free && cat free/key",
            "tar cf - . 2>/dev/null | grep -a 'secret words.*secret words'",
            "echo x > kept",
            "mv kept away",
            "rm -f kept",
            "echo x > new",
            "echo x > .env",
        ] {
            let said = session.bash_fails(attack).await;
            assert!(!said.contains("secret words"), "{attack}: {said}");
        }
        for name in [".env", "keys/key", "kept"] {
            assert_eq!(fs::read_to_string(project.join(name)).unwrap(), "secret words", "{name}");
        }
        assert!(!project.join("new").exists());
        assert_eq!(session.bash("cat kept").await, "secret words");
    }
}

/// The files that the rules of a policy deny, as a search finds them.
fn denied_by(session: &Session, deny: &[&str]) -> DeniedFiles {
    let project = session.path("project");
    let rule = |text: &&str| Rule::parse(text, RuleOrigin::Session).unwrap();
    let policy = Policy {
        deny: deny.iter().map(rule).collect(),
        project_root: project.clone(),
        directories: vec![project],
        ..Policy::default()
    };
    DeniedSearch::default().find(&policy, 1)
}

#[tokio::test]
async fn patterns_mean_files_behind_links_to_directories() {
    for support in supports() {
        for (rule, place) in [
            ("Read(**/*.pem)", "linked/k.pem"),
            ("Read(linked/*.pem)", "linked/k.pem"),
            ("Read(inner/*)", "inner/k.pem"),
            ("Read(.env)", "linked/.env"),
            ("Read(linked/around/linked/.e*)", "linked/.env"),
        ] {
            let mut session = session(&support, settings());
            if policy(&session).gaps().contains(&Gap::DeniedReads) {
                continue;
            }
            let project = session.path("project");
            fs::create_dir_all(project.join("a/b")).unwrap();
            fs::create_dir(session.path("beside")).unwrap();
            for file in ["beside/k.pem", "beside/.env", "project/a/b/k.pem"] {
                fs::write(session.path(file), "secret words").unwrap();
            }
            for (link, target) in [
                ("project/linked", "../beside"),
                ("project/inner", "a/b"),
                ("beside/around", "../project"),
            ] {
                symlink(target, session.path(link)).unwrap();
            }
            let denied = denied_by(&session, &[rule]);
            assert!(policy(&session).confines("true", false, &denied), "{denied:?}");
            let workspace = Arc::get_mut(&mut session.context.workspace).unwrap();
            workspace.find_denied = Arc::new(move || denied.clone());
            let (directory, name) = place.split_once('/').unwrap();
            let real = project.join(place).canonicalize().unwrap();
            for attack in [
                format!("cat {place}"),
                format!("cat {}", real.display()),
                format!("cat linked/around/{place}"),
                format!("mv {directory} free; cat free/{name}"),
            ] {
                let said = session.call("Bash", json!({ "command": attack })).await;
                let said = said.map_or_else(|error| error.to_string(), |said| text(&said));
                assert!(!said.contains("secret words"), "{rule}: {attack}: {said}");
            }
        }
    }
}

/// A rule without a path means every file.
#[tokio::test]
async fn rules_that_name_a_whole_tool_are_in_force_in_the_sandbox() {
    for support in supports() {
        let mut session = session(&support, settings());
        let denied = denied_by(&session, &["Read"]);
        assert!(!policy(&session).confines("cat file", false, &denied), "reading is asked about");

        for rules in [&["Edit"][..], &["Edit", "Write"]] {
            let denied = denied_by(&session, rules);
            let is_held = !policy(&session).gaps().contains(&Gap::DeniedReads);
            assert_eq!(policy(&session).confines("touch file", false, &denied), is_held);
            let workspace = Arc::get_mut(&mut session.context.workspace).unwrap();
            workspace.find_denied = Arc::new(move || denied.clone());
            if is_held {
                session.bash_fails("echo x > file").await;
                assert!(!session.path("project/file").exists());
                assert_eq!(session.bash("echo a | cat").await, "a");
            }
        }
    }
}

#[tokio::test]
async fn the_working_directory_stays_between_confined_commands() {
    for support in supports() {
        let session = session(&support, settings());
        session.bash("mkdir sub && cd sub").await;
        assert_eq!(session.bash("basename \"$(pwd)\"").await, "sub");
        assert_eq!(fs::read_dir(session.path("output/tasks")).unwrap().count(), 0);
    }
}

#[tokio::test]
async fn what_is_denied_cannot_be_created_and_leaves_no_trace() {
    for support in supports() {
        let session = session(&support, settings());
        if policy(&session).gaps().contains(&Gap::DeniedWrites) {
            continue;
        }
        session.bash_fails("mkdir -p .new && echo x > .new/settings.json").await;
        let task = session.start("until [ -e stop ]; do sleep 0.01; done").await;
        eventually("it runs", || session.path("project/.new").exists()).await;
        session.bash_fails("rm -rf .new && mkdir .new && echo x > .new/settings.json").await;
        // The background command still holds the place.
        assert!(session.path("project/.new").exists());
        session.call("TaskStop", json!({ "task_id": task })).await.unwrap();
        session.nothing_is_left().await;
        eventually("the place is free", || !session.path("project/.new").exists()).await;
    }
}

#[tokio::test]
async fn confined_processes_end_with_the_session() {
    for support in supports() {
        let session = session(&support, settings());
        session.start("(setsid sleep 600 &) ; echo up > up; sleep 600").await;
        line_in(&session.path("project/up")).await;
        session.shells().shutdown().await;
        session.nothing_is_left().await;
    }
}

#[tokio::test]
async fn a_killed_guard_takes_its_confined_shell_along() {
    for support in supports() {
        let session = session(&support, settings());
        session.start("echo up > up; sleep 600").await;
        line_in(&session.path("project/up")).await;
        let is_guard = |pid: &str| {
            let read = |name| fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
            let environ = read("environ");
            let has_mark = |mark: &[u8]| environ.windows(mark.len()).any(|window| window == mark);
            read("comm") == b"command-guard\n" && has_mark(session.mark.as_bytes())
        };
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let mut names = processes.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let guard = names.find(|name| is_guard(name)).expect("a guard");
        let guard = rustix::process::Pid::from_raw(guard.parse().unwrap()).unwrap();
        rustix::process::kill_process(guard, rustix::process::Signal::KILL).unwrap();
        session.nothing_is_left().await;
        // The next guard removes what the first could not.
        session.bash("true").await;
        assert!(!session.path("project/.new").exists());
    }
}

#[tokio::test]
async fn a_timeout_ends_everything_in_the_sandbox() {
    for support in supports() {
        let session = session(&support, settings());
        let input = json!({ "command": "(setsid sleep 600 &); sleep 600", "timeout": 300 });
        let error = session.call("Bash", input).await.unwrap_err().to_string();
        assert!(error.starts_with("Timed out"), "{error}");
        session.nothing_is_left().await;
    }
}

#[tokio::test]
async fn without_a_sandbox_the_model_is_told_or_nothing_runs() {
    let session_without = session(&no_support(), settings());
    let said = session_without.bash("echo a > ../outside && echo done").await;
    assert!(said.starts_with("This ran without a sandbox"), "{said}");
    assert!(said.contains("not here") && said.ends_with("done"), "{said}");

    let strict = SandboxSettings { fail_if_unavailable: true, ..settings() };
    let session_strict = session(&no_support(), strict.clone());
    let said = session_strict.bash_fails("echo a > ../outside").await;
    assert!(said.contains("only in a sandbox") && said.contains("not here"), "{said}");
    assert!(!session_strict.path("outside").exists());

    // A sandbox with gaps is not the one that was asked for.
    let partial = Support { landlock: Some(2), ..no_support() };
    let said = session(&partial, strict).bash_fails("true").await;
    assert!(said.contains("complete sandbox") && said.contains("signals"), "{said}");
}

#[tokio::test]
async fn the_way_out_is_open_only_where_a_person_says_so() {
    let Some(support) = supports().into_iter().next() else { return skip(Lack::Sandbox) };
    let out = json!({ "command": "echo a > ../outside", "dangerouslyDisableSandbox": true });
    let closed = session(&support, settings());
    let refused = closed.call("Bash", out.clone()).await.unwrap_err();
    assert!(
        matches!(&refused, ToolError::Failed(why) if why.contains("switched off")),
        "{refused}"
    );
    assert!(!closed.path("outside").exists());

    let open =
        session(&support, SandboxSettings { allow_unsandboxed_commands: true, ..settings() });
    let failed = open.bash_fails("echo x > ../outside").await;
    assert!(failed.contains("set dangerouslyDisableSandbox"), "{failed}");
    assert_eq!(text(&open.call("Bash", out).await.unwrap()), "(no output)");
    assert!(open.path("outside").exists());
    let confines =
        |is_disabled| policy(&open).confines("true", is_disabled, &DeniedFiles::nothing());
    assert!(!confines(true) && confines(false));
}

#[test]
fn the_way_out_is_offered_only_where_it_is_open() {
    let offers = |policy: Option<&SandboxPolicy>| {
        let bash =
            builtin_under(policy, None).into_iter().find(|tool| tool.name() == "Bash").unwrap();
        let schema: Value = serde_json::from_str(bash.spec().input_schema.get()).unwrap();
        schema["properties"].get("dangerouslyDisableSandbox").is_some()
    };
    let policy = |allow_unsandboxed_commands| {
        let settings = SandboxSettings { allow_unsandboxed_commands, ..settings() };
        SandboxPolicy::new(Sandbox::default(), &no_support(), settings)
    };
    assert!(!offers(None));
    assert!(!offers(Some(&policy(false))));
    assert!(offers(Some(&policy(true))));
}

#[tokio::test]
async fn a_command_that_is_excluded_runs_outside_but_nothing_joined_to_it() {
    let Some(support) = supports().into_iter().next() else { return skip(Lack::Sandbox) };
    let excluded = vec!["touch".to_owned(), "git fetch *".to_owned()];
    let session = session(&support, SandboxSettings { excluded_commands: excluded, ..settings() });
    session.bash("touch ../free").await;
    assert!(session.path("free").exists());
    for (command, is_confined) in [
        ("touch a", false),
        ("  git   fetch origin", false),
        ("git push", true),
        ("touchy a", true),
        ("touch a; rm b", true),
        ("touch $(rm b)", true),
        ("touch a\nrm b", true),
        ("touch a > ../b", true),
        ("FOO=1 touch a", true),
    ] {
        let confines = policy(&session).confines(command, false, &DeniedFiles::nothing());
        assert_eq!(confines, is_confined, "{command}");
    }
    session.bash_fails("touch ../one; touch ../two").await;
    assert!(!session.path("one").exists());
}
