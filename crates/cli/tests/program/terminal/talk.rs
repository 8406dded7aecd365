//! Talking, deciding, steering: what a person does with a session in the terminal.

use std::time::Duration;

use serde_json::{Value, json};

use super::tty::Tty;
use crate::program::{eventually, signal};
use crate::stage::{Stage, agent, bash};

/// Starts a session with a scripted model.
pub(super) fn open(stage: &Stage, more: &[&str]) -> Tty {
    let model = ["--model", stage.model()];
    let tty = Tty::start(&stage.program.command([&model[..], more].concat()));
    // The model is named once the session is open.
    tty.see("script:");
    assert!(tty.is_raw());
    tty
}

/// The texts of the person in the transcripts of the scratch home.
pub(super) fn said(stage: &Stage) -> Vec<String> {
    let mut said = Vec::new();
    for path in stage.program.transcripts() {
        for line in std::fs::read_to_string(path).unwrap().lines() {
            let record: Value = serde_json::from_str(line).unwrap_or_default();
            let content = &record["message"]["content"];
            if record["type"] != "user" {
                continue;
            }
            said.extend(content.as_str().map(str::to_owned));
            let texts = content.as_array().into_iter().flatten();
            said.extend(texts.filter_map(|block| Some(block["text"].as_str()?.to_owned())));
        }
    }
    said
}

#[test]
fn a_question_at_twenty_four_rows_says_who_and_what_and_a_prompt_stands_before_its_answer() {
    let stage = Stage::new(&json!({
        "lead": [[bash("echo it ran > made")], "The answer **stands** here."],
    }));
    let made = stage.program.scratch.project().join("made");
    let mut tty = open(&stage, &[]);
    tty.send("please @@lead\r");
    let screen = tty.see("1 y once");
    assert!(screen.contains("1 of 1 · Bash · main"), "{screen}");
    assert!(screen.contains("echo it ran > made") && screen.contains("because:"), "{screen}");
    assert!(!made.exists());
    tty.read_dialog();
    tty.send("y");
    tty.see("stands here.");
    assert!(made.exists());
    let all = tty.everything();
    let order = ["› please @@lead", "● Bash echo it ran", "The answer stands here."];
    let places: Vec<usize> = order
        .iter()
        .map(|words| all.find(words).unwrap_or_else(|| panic!("{words} is missing:\n{all}")))
        .collect();
    assert!(places.is_sorted(), "{all}");
    tty.send("\x04");
    assert_eq!(tty.assert_restored(), Some(0));
}

#[test]
fn the_rule_that_always_shows_is_written_and_covers_the_next_call() {
    // Failure 15: "don't ask again" asks again.
    let stage = Stage::new(&json!({
        "lead": [[bash("touch one")], [bash("touch one")], "done with both"],
    }));
    let mut tty = open(&stage, &[]);
    tty.send("go @@lead\r");
    let screen = tty.see("2 a always: ");
    let line = screen.lines().find(|line| line.contains("2 a always: ")).unwrap();
    let (_, shown) = line.split_once("always: ").unwrap();
    let (rule, file) = shown.trim_end_matches(['│', ' ']).split_once(" → ").unwrap();
    tty.read_dialog();
    tty.send("a");
    tty.see("done with both");
    let written = std::fs::read_to_string(stage.program.scratch.project().join(file)).unwrap();
    let settings: Value = serde_json::from_str(&written).unwrap();
    assert_eq!(settings["permissions"]["allow"], json!([rule]), "{written}");
}

#[test]
fn five_hundred_pasted_lines_are_a_chip_and_arrive_as_they_were() {
    // Failure 12: pastes cut.
    let stage = Stage::new(&json!({"lead": ["got it"]}));
    let mut tty = open(&stage, &[]);
    let pasted: String = (0..500)
        .map(|number| format!("line {number}\twith é, 日本 and \\ in it\n"))
        .collect::<Vec<_>>()
        .concat();
    tty.send("@@lead ");
    tty.send(&format!("\x1b[200~{}\x1b[201~", pasted.replace('\n', "\r")));
    let screen = tty.see("[paste 1 · 501 lines");
    assert!(!screen.contains("line 499"), "{screen}");
    tty.send(" end\r");
    tty.see("got it");
    let expected = format!("@@lead {pasted} end");
    assert!(said(&stage).contains(&expected), "{} texts", said(&stage).len());
}

#[test]
fn an_agent_in_focus_is_told_something_and_ctrl_d_there_ends_nothing() {
    let stage = Stage::new(&json!({
        "lead": [[agent("@@scout", &json!({"run_in_background": true, "name": "scout"}))], "carrying on", "heard"],
        "scout": [[bash("touch begun; until [ -e go ]; do sleep 0.02; done")], "found it"],
    }));
    let mut tty = open(&stage, &["--allowedTools", "Bash"]);
    tty.send("go @@lead\r");
    tty.see("carrying on");
    eventually("the agent", || {
        stage.program.scratch.project().join("begun").exists().then_some(())
    });
    tty.send("half a prompt");
    tty.see("❯ half a prompt");
    tty.send("\x18\x1b[B");
    tty.see("enter focus");
    tty.send("\r");
    tty.see("main ▸ scout");
    tty.send("look at é too\r");
    tty.see("next: look at é too");
    tty.send("\x04");
    tty.see("❯ half a prompt");
    assert!(tty.child.try_wait().unwrap().is_none(), "the session goes on");
    std::fs::write(stage.program.scratch.project().join("go"), "").unwrap();
    tty.see("✓ scout");
    let told = stage.agent_transcripts();
    assert!(told[0].contains("look at é too"), "{}", told[0]);
}

#[test]
fn a_command_of_ones_own_shows_its_output_and_dies_with_its_tree() {
    let stage = Stage::new(&json!({}));
    let mut tty = open(&stage, &[]);
    let project = stage.program.scratch.project();
    tty.send("!echo first; (sleep 7654 & echo $! > child; wait) ; echo nev''er\r");
    tty.see("  first");
    tty.see("esc stops it");
    let child = eventually("the child", || {
        std::fs::read_to_string(project.join("child")).ok().filter(|it| it.ends_with('\n'))
    });
    tty.send("\x1b");
    let screen = tty.see("(stopped)");
    assert!(!screen.contains("never"), "{screen}");
    let place = format!("/proc/{}", child.trim());
    eventually("the end of the tree", || (!std::path::Path::new(&place).exists()).then_some(()));
    tty.send("!seq 3; echo '*as* it is'; false\r");
    tty.see("*as* it is");
    // The keeper of the terminal is still there: it was started by this process, too.
    tty.signal("-KILL");
    tty.assert_restored();
}

#[test]
fn a_call_is_explained_with_the_flags_of_this_session() {
    let stage = Stage::new(&json!({}));
    let mut tty = open(&stage, &["--allowedTools", "Bash(make *)"]);
    tty.send("/permissions Bash(make check)\r");
    let screen = tty.see("Bash(make check): allowed");
    assert!(screen.contains("rule: Bash(make *)"), "{screen}");
    tty.send("\x1b");
    tty.wait("the prompt", |screen| !screen.contains("Bash(make check): allowed"));
    tty.send("/permissions Bash(rm -rf x)\r");
    tty.see("Bash(rm -rf x): asked about");
}

#[test]
fn a_terminal_at_rest_writes_nothing_and_wakes_nothing() {
    // Failure 5: CPU at rest.
    let stage = Stage::new(&json!({"lead": ["hello"]}));
    let mut tty = open(&stage, &[]);
    tty.send("@@lead\r");
    tty.see("hello");
    tty.pass(Duration::from_secs(3));
    let wakes = || {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", tty.child.id())).unwrap().flatten();
        let count = |task: std::fs::DirEntry| {
            let status = std::fs::read_to_string(task.path().join("status")).unwrap_or_default();
            let lines = status.lines().filter(|line| line.contains("ctxt_switches"));
            lines
                .filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok())
                .sum::<u64>()
        };
        tasks.map(count).sum::<u64>()
    };
    let (before, written) = (wakes(), tty.written());
    tty.pass(Duration::from_secs(4));
    assert_eq!(tty.written(), written, "a terminal at rest is written to");
    assert!(wakes() - before <= 2, "{} wake-ups in 4 s at rest", wakes() - before);
}

#[test]
fn news_of_an_agent_begins_a_turn_beside_what_a_person_writes() {
    // S-209
    let stage = Stage::new(&json!({
        "lead": [[agent("@@scout", &json!({"run_in_background": true}))], "it looks", "heard of it"],
        "scout": [[bash("until [ -e go ]; do sleep 0.05; done")], "found"],
    }));
    let mut tty = open(&stage, &["--allowedTools", "Bash(until *)"]);
    tty.send("go @@lead\r");
    tty.see("it looks");
    tty.wait("rest", |screen| !screen.contains("esc stops"));
    // The draft stays as it is.
    tty.send("half a thou");
    std::fs::write(stage.program.scratch.project().join("go"), "").unwrap();
    let screen = tty.see("heard of it");
    assert!(screen.contains("❯ half a thou"), "{screen}");
}

#[test]
fn a_window_that_changes_while_an_answer_streams_doubles_no_line() {
    // Failure 4: resize doubles text.
    let lines =
        (0..60).map(|number| format!("line <{number}> of it\n\n")).collect::<Vec<_>>().concat();
    let stage = Stage::new(&json!({
        "lead": [{"blocks": [lines], "chunk_chars": 40, "chunk_delay_ms": 30}],
    }));
    let mut tty = open(&stage, &[]);
    tty.send("@@lead\r");
    for (number, (rows, columns)) in [(30, 100), (18, 60), (40, 90), (24, 80)].iter().enumerate() {
        let some = format!("<{}>", number * 10 + 5);
        eventually("some lines", || tty.everything().contains(&some).then_some(()));
        tty.resize(*rows, *columns);
    }
    tty.see("<59>");
    tty.wait("the end", |screen| !screen.contains("esc stops"));
    let all = tty.everything();
    for number in 0..60 {
        assert_eq!(all.matches(&format!("<{number}>")).count(), 1, "{number}:\n{all}");
    }
    signal(&tty.child, "-TERM");
    tty.assert_restored();
}
