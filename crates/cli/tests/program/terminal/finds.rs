//! Finding things: what a person looks up, tries and changes in the tables of the terminal, with the real binary.

use serde_json::{Value, json};

use super::talk::{open, said};
use super::tty::Tty;
use crate::members::{TEAMS, member, says};
use crate::program::eventually;
use crate::stage::{Stage, agent, bash};

/// A file of the project, once it holds some text.
fn holds(stage: &Stage, file: &str, text: &str) -> String {
    let path = stage.program.scratch.project().join(file);
    eventually(&format!("{text} in {file}"), || {
        std::fs::read_to_string(&path).ok().filter(|it| it.contains(text))
    })
}

#[test]
fn people_may_use_the_other_names_of_commands() {
    let stage = Stage::new(&json!({"lead": ["never"]}));
    let mut tty = open(&stage, &[]);
    tty.send("/bashes\r");
    tty.see("there are no tasks");
    // A longer name that begins with it is not taken instead.
    tty.send("/new\r");
    tty.see("› /new");
    assert!(!tty.everything().contains("there is no command"), "{}", tty.everything());
}

#[test]
fn a_session_is_found_by_what_was_said_in_it_with_its_end_and_who_was_interrupted() {
    // Failure 21: sessions missing.
    let stage = Stage::new(&json!({
        "lead": [[agent("@@scout", &json!({"name": "scout"}))], "the answer is 42"],
        "scout": ["nothing found"],
        "other": ["something else"],
    }));
    for prompt in ["@@lead what is it", "@@other and this"] {
        stage.run(prompt, &[]).assert_code(0);
    }
    // The agent's process was killed before it could end, as far as its transcript knows.
    let transcripts = stage.program.transcripts();
    let agents = transcripts.iter().flat_map(|path| {
        std::fs::read_dir(path.with_extension("").join("subagents")).into_iter().flatten().flatten()
    });
    for path in
        agents.map(|it| it.path()).filter(|it| it.extension().is_some_and(|it| it == "jsonl"))
    {
        let text = std::fs::read_to_string(&path).unwrap();
        let kept: Vec<&str> = text.lines().filter(|line| !line.contains("\"agent_end\"")).collect();
        assert!(kept.len() < text.lines().count(), "{text}");
        std::fs::write(&path, kept.join("\n") + "\n").unwrap();
    }
    let mut tty = Tty::start(&stage.program.command(["--model", stage.model(), "--resume"]));
    let screen = tty.see("Resume · 2 here");
    assert!(screen.contains("what is it") && screen.contains("and this"), "{screen}");
    assert!(screen.contains("1 agent interrupted: scout"), "{screen}");
    tty.see("something else");
    tty.send("answer is");
    // The place at which it was said, and the end of the session.
    let screen = tty.see("… the answer is 42 …");
    assert!(screen.contains("1 of 2") && !screen.contains("and this"), "{screen}");
    tty.send("\r");
    tty.see("script:");
    tty.send("again @@lead\r");
    eventually("the prompt", || said(&stage).iter().any(|it| it == "again @@lead").then_some(()));
}

#[test]
fn a_session_is_named_from_the_list_of_another_one() {
    let stage = Stage::new(&json!({"lead": ["first"]}));
    stage.run("@@lead a long beginning", &[]).assert_code(0);
    let mut tty = open(&stage, &[]);
    tty.send("/resume\r");
    tty.see("a long beginning");
    // Ctrl+R asks for its name.
    tty.send("\x12");
    tty.see("name of the session:");
    tty.send("\x15short\r");
    tty.see("it is called short from now on");
    tty.wait("the name", |screen| screen.contains("❯ short"));
}

#[test]
fn a_person_goes_back_from_a_list_that_says_before_what_would_change() {
    let write = json!({"tool": "Write", "input": {"file_path": "a.txt", "content": "new\n"}});
    let stage = Stage::new(&json!({
        "lead": [[{"tool": "Read", "input": {"file_path": "a.txt"}}], [write], "WRITTEN"],
    }));
    stage.program.scratch.write("a.txt", "original\n");
    let mut tty = open(&stage, &["--permission-mode", "acceptEdits"]);
    tty.send("please @@lead\r");
    tty.see("WRITTEN");
    tty.wait("rest", |screen| !screen.contains("esc stops"));
    tty.send("\x1b");
    tty.see("esc again to go back");
    tty.send("\x1b");
    let screen = tty.see("would be as it was:");
    assert!(screen.contains("1 file since") && screen.contains("(+1 -1)"), "{screen}");
    tty.send("\r");
    holds(&stage, "a.txt", "original");
    // The prompt is there to be said otherwise.
    tty.see("❯ please @@lead");
}

#[test]
fn a_setting_says_who_set_it_and_is_set_where_a_person_wants_it() {
    let stage = Stage::new(&json!({}));
    let home = stage.program.scratch.home();
    std::fs::create_dir_all(home.join(".claude")).unwrap();
    std::fs::write(home.join(".claude/settings.json"), "{\n  \"cleanupPeriodDays\": 12\n}\n")
        .unwrap();
    let mut tty = open(&stage, &[]);
    tty.send("/config cleanup\r");
    let screen = tty.see("cleanupPeriodDays");
    assert!(screen.contains("12") && screen.contains("settings.json:2"), "{screen}");
    tty.send("\r");
    tty.see("cleanupPeriodDays for you");
    tty.send("\x15many\r");
    tty.see("must be a whole number");
    tty.send("\r");
    tty.see("cleanupPeriodDays for you");
    tty.send("\x1520\r");
    tty.see("cleanupPeriodDays is 20");
    let own = home.join(".centurion/settings.json");
    let text = std::fs::read_to_string(&own).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["cleanupPeriodDays"], 20);
    let kept = std::fs::read_to_string(home.join(".claude/settings.json")).unwrap();
    assert!(kept.contains("12"), "another program's file stays as it is: {kept}");
}

#[test]
fn an_agent_is_written_changed_tried_and_switched_off() {
    let stage = Stage::new(&json!({}));
    stage.program.scratch.write(".claude/agents/old-bot.md", "---\nname: old-bot\n---\nOld.\n");
    let mut tty = open(&stage, &[]);
    tty.wait("the session or a question", |screen| screen.contains("manual"));
    tty.send("/agents\r");
    let screen = tty.see("1 broken");
    assert!(screen.contains("old-bot") && screen.contains("description"), "{screen}");
    tty.send("n");
    tty.see("name of the new agent:");
    tty.send("checker\r");
    tty.see("wrote ");
    let file = ".claude/agents/checker.md";
    holds(&stage, file, "name: checker");
    tty.send("/checker");
    tty.see("1 of ");
    // The first Enter keeps the row that was found, the second one opens its fields.
    tty.send("\r\r");
    tty.see("disallowedTools");
    tty.send("/model");
    tty.see("❯ model");
    tty.send("\r\r");
    tty.see("model:");
    tty.send("haiku\r");
    tty.see("model is written");
    holds(&stage, file, "model: haiku");
    // Esc lets the search go, and then goes back to the agents.
    tty.send("\x1b");
    tty.see("disallowedTools");
    tty.send("\x1b");
    tty.see("1 broken");
    tty.send("/checker");
    tty.see("1 of ");
    tty.send("\rx");
    tty.see("checker is off: deny Agent(checker)");
    holds(&stage, ".claude/settings.local.json", "Agent(checker)");
    tty.send("x");
    tty.see("checker is on again");
    tty.send("q");
    tty.wait("the prompt", |screen| !screen.contains("1 broken"));
}

#[test]
fn a_call_is_tried_in_the_list_of_rules() {
    let stage = Stage::new(&json!({}));
    let mut tty = open(&stage, &["--allowedTools", "Bash(make *)"]);
    tty.send("/permissions\r");
    let screen = tty.see("Allow");
    assert!(screen.contains("❯ Bash(make *)") && screen.contains("the command line"), "{screen}");
    tty.send("t");
    tty.see("what would happen to:");
    tty.send("\x15Bash(make check)\r");
    tty.see("Bash(make check): allowed");
    tty.send("t\x15Bash(rm -rf x)\r");
    tty.see("Bash(rm -rf x): asked about");
}

#[test]
fn the_team_is_seen_with_what_each_does_its_tasks_and_its_mail() {
    let create = |subject: &str| json!({"tool": "TaskCreate", "input": {"subject": subject, "description": "all of it"}});
    let stage = Stage::new(&json!({
        "lead": [
            [create("Read it"), create("Fix it")],
            [{"tool": "TaskUpdate", "input": {"taskId": "2", "addBlockedBy": ["1"]}}],
            [member("parser", "@@work")],
            "they are at it",
            "heard",
            "heard",
        ],
        "work": [
            [{"tool": "TaskUpdate", "input": {"taskId": "1", "owner": "parser", "status": "in_progress"}}],
            [says("team-lead", "I have begun")],
            [bash("until [ -e go ]; do sleep 0.05; done")],
            "done",
            "heard you",
        ],
    }));
    let flags = ["--settings", TEAMS, "--allowedTools", "Bash,TaskCreate,TaskUpdate"];
    let mut tty = open(&stage, &flags);
    tty.send("go @@lead\r");
    tty.see("they are at it");
    tty.send("/team\r");
    let screen = tty.wait("the member at work", |screen| {
        screen.contains("Members · lead main · 1") && screen.contains("until [ -e go ]")
    });
    assert!(screen.contains("◼ #1 Read it") && screen.contains("parser"), "{screen}");
    assert!(screen.contains("◻ #2 Fix it") && screen.contains("after #1"), "{screen}");
    tty.see("parser→team-lead");
    tty.send("m");
    tty.see("to parser:");
    tty.send("be quick\r");
    std::fs::write(stage.program.scratch.project().join("go"), "").unwrap();
    let told = || {
        let all = stage.agent_transcripts().concat();
        all.contains("be quick").then_some(())
    };
    eventually("the words for the member", told);
    tty.wait("its rest", |screen| screen.contains("◌ idle"));
}

#[test]
fn costs_and_windows_are_shown_for_each_agent() {
    let stage = Stage::new(&json!({
        "lead": [[agent("@@scout", &json!({"name": "scout"}))], "all done"],
        "scout": [[agent("@@deep", &json!({"name": "deep"}))], "found"],
        "deep": ["deeper"],
    }));
    let mut tty = open(&stage, &[]);
    tty.send("go @@lead\r");
    tty.see("all done");
    tty.send("/cost\r");
    let screen = tty.see("Cost $");
    let rows = || screen.lines().skip_while(|it| !it.contains("Cost $"));
    let row = |name: &str| rows().find(|it| it.contains(name)).map(str::to_owned);
    let indent = |row: &str| row.chars().take_while(|it| !it.is_alphabetic()).count();
    let (main, scout, deep) = (row("main  "), row("scout"), row("deep"));
    let (main, scout, deep) = (main.unwrap(), scout.unwrap(), deep.unwrap());
    assert!(indent(&main) < indent(&scout) && indent(&scout) < indent(&deep), "{screen}");
    assert!(scout.contains("own $"), "{screen}");
    tty.send("\x1b");
    tty.wait("the prompt", |screen| !screen.contains("Cost $"));
    tty.send("/context\r");
    let screen = tty.see("Context · ");
    assert!(
        screen.contains("scout") && screen.contains("deep") && screen.contains(" %"),
        "{screen}"
    );
    assert!(screen.contains("System prompt"), "{screen}");
    tty.send("\x1b");
    tty.wait("the prompt", |screen| !screen.contains("System prompt"));
    tty.send("\x04");
    assert_eq!(tty.assert_restored(), Some(0));
}

#[test]
fn a_conversation_that_a_person_cleared_is_a_session_in_the_list() {
    // context.md 6
    let stage = Stage::new(&json!({
        "lead": ["the answer is 42"],
        "other": ["something else"],
    }));
    let mut tty = open(&stage, &[]);
    tty.send("FIRST-WORDS @@lead\r");
    tty.see("the answer is 42");
    tty.wait("rest", |screen| !screen.contains("esc stops"));
    tty.send("/clear\r");
    tty.see("a new conversation");
    tty.send("MORE-WORDS @@other\r");
    tty.see("something else");
    tty.wait("rest", |screen| !screen.contains("esc stops"));
    let with = |text: &str| -> usize {
        let paths = stage.program.transcripts();
        let texts = paths.iter().map(|path| std::fs::read_to_string(path).unwrap());
        texts.filter(|it| it.contains(text)).count()
    };
    assert_eq!((with("FIRST-WORDS"), with("MORE-WORDS")), (1, 1));
    assert_eq!(stage.program.transcripts().len(), 2);
    tty.send("/resume\r");
    let screen = tty.see("Resume · ");
    assert!(screen.contains("FIRST-WORDS") && screen.contains("MORE-WORDS"), "{screen}");
}
