//! The examples, run as a reader would run them.

use std::path::PathBuf;
use std::process::Command;

/// The output of an example, which must succeed.
fn run(name: &str, arguments: &[&str]) -> String {
    let test = std::env::current_exe().expect("this test has a path");
    let target = test.ancestors().nth(2).expect("this test lies in a target directory");
    let built: PathBuf = target.join("examples").join(name);
    assert!(built.is_file(), "{} is not built: run all targets of this package", built.display());
    let output = Command::new(built).args(arguments).env_clear().output().expect("it starts");
    let (out, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{errors}");
    out.into_owned()
}

#[test]
fn one_shot_answers_the_prompt_of_its_command_line() {
    assert_eq!(run("one_shot", &["good morning"]), "You said good morning.\n");
}

#[test]
fn a_conversation_continues_in_another_session() {
    assert_eq!(
        run("conversation", &[]),
        "The first answer.\nThe second answer.\nThe third answer.\n"
    );
}

#[test]
fn a_program_is_its_own_guard() {
    assert_eq!(run("shell", &[]), "The shell said 42.\n");
}

#[test]
fn own_tools_share_their_state() {
    assert_eq!(run("own_tool", &[]), "In stock: pencils: 12\n");
}

#[test]
fn the_callback_and_the_hook_each_keep_one_call_back() {
    let output = run("permission", &[]);
    let lines: Vec<&str> = output.lines().collect();
    let [denied, rest @ ..] = lines.as_slice() else { panic!("{output}") };
    assert!(denied.starts_with("denied: Write (") && denied.contains("secret.txt"), "{output}");
    assert_eq!(
        rest,
        [
            "blocked: a log",
            "I wrote what I could. (2 calls were denied)",
            "notes.txt: true",
            "secret.txt: false",
            "build.log: false",
        ]
    );
}

#[test]
fn a_team_reports_to_its_lead_before_the_turn_is_over() {
    let output = run("team", &[]);
    for line in [
        "begins: scout (Look around)",
        "begins: critic (Judge)",
        "lead: Two agents begin.",
        "lead: They said: There are 2 files. It is good work.",
    ] {
        assert!(output.lines().any(|it| it == line), "{line} is missing in\n{output}");
    }
}

#[test]
fn a_program_is_tested_with_scripts() {
    assert_eq!(run("scripted_test", &[]), "3 passed\n");
}
