//! A host lays things down when it starts the program: limits, an output style, and that it wants to be heard first.

use centurion_testkit::Reply;
use serde_json::{Value, json};

use crate::host::{Host, control};
use crate::program::{Program, call};

const STREAM: [&str; 5] = ["-p", "go", "--output-format", "stream-json", "--verbose"];

#[test]
fn limits_of_a_host_hold_and_loosen_nothing() {
    let program = Program::answering([
        call("toolu_1", "Read", json!({"file_path": "a.txt"})),
        Reply::text("done"),
    ]);
    program.scratch.write("a.txt", "alpha\n");
    let limits =
        json!({"permissions": {"deny": ["Read(a.txt)"], "allow": ["Bash"]}, "model": "haiku"});
    let ended = program.run(&[&STREAM[..], &["--managed-settings", &limits.to_string()]].concat());
    assert_eq!(ended.result()["permission_denials"][0]["tool_name"], "Read", "{}", ended.stderr);
    assert!(ended.stderr.contains("left out: permissions.allow, model"), "{}", ended.stderr);
    assert!(!ended.events()[0]["model"].as_str().unwrap().contains("haiku"));
    let broken = program.run(&["-p", "go", "--managed-settings", "{"]);
    assert_eq!(broken.code, Some(1));
    assert!(broken.stderr.contains("--managed-settings"), "{}", broken.stderr);
}

#[test]
fn a_flag_that_is_given_twice_counts_as_it_was_given_last() {
    let program = Program::answering([Reply::text("one")]);
    let twice = [
        "--verbose",
        "--max-turns",
        "7",
        "--max-turns",
        "9",
        "--effort",
        "low",
        "--effort",
        "high",
    ];
    let ended = program.run(&[&STREAM[..], &twice].concat());
    assert_eq!(ended.result()["result"], "one", "{}", ended.stderr);
    assert_eq!(program.server().requests()[0].json()["output_config"]["effort"], "high");
}

#[test]
fn a_host_that_wants_to_be_heard_first_is() {
    let program = Program::answering([Reply::text("squawk")]);
    let mut host = Host::start(&program, &["--await-initialize"]);
    let wishes = json!({"subtype": "initialize", "systemPrompt": ["You are a parrot."]});
    assert_eq!(host.ask(&wishes)["subtype"], "success");
    host.say("speak");
    host.result();
    let system = program.server().requests()[0].json()["system"].to_string();
    assert!(system.contains("You are a parrot."), "{system}");
    assert_eq!(host.finish(), 0);
    let late = json!({"type": "user", "message": {"role": "user", "content": "hi"}}).to_string();
    let stream = ["--input-format", "stream-json", "--output-format", "stream-json", "--verbose"];
    let ended = program.run_with_input(&[&stream[..], &["--await-initialize"]].concat(), &late);
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("not `initialize`"), "{}", ended.stderr);
}

#[test]
fn the_output_style_of_the_settings_is_in_force() {
    let program = Program::with_handler(|_| Reply::text("aye"));
    program.scratch.write(
        ".claude/output-styles/pirate.md",
        "---\nname: Pirate\ndescription: Arr\n---\nSpeak like a pirate.\n",
    );
    let system = |n: usize| program.server().requests()[n].json()["system"].to_string();
    let style = json!({"outputStyle": "Pirate"}).to_string();
    let ended = program.run(&[&STREAM[..], &["--settings", &style]].concat());
    assert_eq!(ended.events()[0]["output_style"], "Pirate");
    assert!(system(0).contains("Speak like a pirate.") && !system(0).contains("# Working"));
    assert!(system(0).contains("# Text you are given"), "what foreign text is stays said");
    let style = json!({"outputStyle": "Explanatory"}).to_string();
    program.run(&[&STREAM[..], &["--settings", &style]].concat());
    assert!(system(1).contains("# Explaining") && system(1).contains("# Working"));
    let ended = program.run(&STREAM);
    assert_eq!(ended.events()[0]["output_style"], "default");
    assert!(system(2).contains("# Working") && !system(2).contains("# Explaining"));
}

#[test]
fn a_host_is_told_the_output_styles_that_there_are_now() {
    let program = Program::answering([]);
    let mut host = Host::start(&program, &["--settings", r#"{"outputStyle": "learning"}"#]);
    let answer = host.ask(&json!({"subtype": "initialize"}));
    assert_eq!(answer["response"]["output_style"], "Learning");
    let names = |answer: &Value| answer["response"]["available_output_styles"].clone();
    assert_eq!(names(&answer), json!(["default", "Explanatory", "Learning"]));
    program.scratch.write_home(".claude/output-styles/new.md", "Be new.\n");
    host.send(&control("again", &json!({"subtype": "reload_output_styles"})));
    let seen = host.until(|event| event["response"]["request_id"] == "again");
    assert!(names(&seen.last().unwrap()["response"]).to_string().contains("new"));
    assert_eq!(host.finish(), 0);
}

#[test]
fn a_doctor_finds_no_fault_in_hooks_that_wait_for_trust() {
    let program = Program::alone();
    let hooks = json!({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}});
    program.scratch.write(".claude/settings.json", hooks.to_string());
    let doctor = program.run(&["doctor"]);
    assert_eq!(doctor.code, Some(0), "{}", doctor.stdout);
    let off = doctor.stdout.split("Hooks that are kept off:").nth(1).unwrap();
    assert!(off.split("\n\n").next().unwrap().contains("not trusted"), "{}", doctor.stdout);
}

#[test]
fn hosts_list_skills_without_commands_and_those_that_only_people_invoke() {
    let program = Program::answering([Reply::text("one")]);
    let skill = |name: &str, front: &str| {
        let text = format!("---\ndescription: about {name}\n{front}---\nDo it.\n");
        program.scratch.write(format!(".claude/skills/{name}/SKILL.md"), text);
    };
    skill("usual", "");
    skill("manual", "disable-model-invocation: true\n");
    program.scratch.write(".claude/commands/typed.md", "Type it.\n");
    let init = program.run(&STREAM).events()[0].clone();
    let has =
        |list: &str, name: &str| init[list].as_array().unwrap().iter().any(|listed| listed == name);
    assert!(has("skills", "usual") && has("skills", "manual") && !has("skills", "typed"), "{init}");
    assert!(["usual", "manual", "typed"].iter().all(|name| has("slash_commands", name)), "{init}");
}
