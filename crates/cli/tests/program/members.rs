//! Members of a team in processes of their own, over private sockets, with real processes that die.

use std::process::Command;

use centurion_testkit::{Lack, skip};
use serde_json::{Value, json};

use crate::host::Host;
use crate::members_rules::until_said;
use crate::program::{Program, ended, eventually, signal};
use crate::sandboxes::can_confine_completely;
use crate::stage::{Stage, Told, agent, bash};
use crate::worktrees::{self, Repository};

/// A call that starts a member.
pub(crate) fn member(name: &str, prompt: &str) -> Value {
    agent(prompt, &json!({"name": name, "subagent_type": "general-purpose"}))
}

/// A call that says something to a member or the lead.
pub(crate) fn says(to: &str, text: &str) -> Value {
    json!({"tool": "SendMessage", "input": {"to": to, "message": text, "summary": text}})
}

pub(crate) const TEAMS: &str = r#"{"subagents": {"teams": true}}"#;

/// The flags of a lead whose members have processes of their own.
const LEADS: [&str; 4] = ["--settings", TEAMS, "--teammate-mode", "process"];

/// The processes of members of a project, by their numbers: the directory tells one test's from another's.
pub(crate) fn members_in(program: &Program) -> Vec<u32> {
    let project = program.scratch.project().canonicalize().unwrap();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let is_member = line.split(|byte| *byte == 0).nth(1) == Some(b"--agent-id");
        let stands = std::fs::read_link(entry.path().join("cwd"));
        if is_member && stands.is_ok_and(|cwd| cwd == project) {
            found.push(pid);
        }
    }
    found
}

pub(crate) fn kill(pid: u32) {
    assert!(Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap().success());
}

/// The texts that the lead was told in its transcript.
pub(crate) fn told_lead(stage: &Stage) -> String {
    let transcripts = stage.program.transcripts();
    let [path] = transcripts.as_slice() else { panic!("{transcripts:?}") };
    std::fs::read_to_string(path).unwrap()
}

pub(crate) fn spawned(told: &Told) -> Value {
    let data = told.data().into_iter().find(|data| data["status"] == "teammate_spawned");
    data.unwrap_or_else(|| panic!("{}\n{}", told.ended.stdout, told.ended.stderr)).clone()
}

#[test]
fn a_member_in_a_process_of_its_own_reports_rests_and_wakes() {
    // S-183, S-344, S-349, S-357
    let stage = Stage::new(&json!({
        "lead": [
            [member("w1", "@@work")],
            "waiting",
            // A message that came before would be read in the member's first run.
            [until_said("resting")],
            [says("w1", "once more")],
            "waiting again",
            "thank you",
        ],
        "work": [
            [bash("echo $PPID > first; echo shown; env | grep TICKET || echo no tick''et")],
            [says("team-lead", "the first report")],
            "resting",
            [says("team-lead", "the second report")],
            "resting again",
        ],
    }));
    let told = stage.run("@@lead", &[&LEADS[..], &["--allowedTools", "Bash"]].concat());
    told.assert_code(0);
    let data = spawned(&told);
    assert_eq!((&data["tmux_pane_id"], &data["is_splitpane"]), (&json!("process"), &json!(false)));
    let lead = told_lead(&stage);
    for report in ["the first report", "the second report"] {
        assert!(lead.contains(report), "{lead}");
    }
    let [of_member] = &stage.agent_transcripts()[..] else {
        panic!("{:?}", stage.agent_transcripts())
    };
    for line in ["shown", "no ticket", "once more", "\"subtype\":\"agent_end\""] {
        assert!(of_member.contains(line), "{line}: {of_member}");
    }
    assert!(members_in(&stage.program).is_empty(), "no member outlives its lead");
}

/// A host that answers questions of a lead.
fn host_of(stage: &Stage) -> Host {
    let more = ["--permission-prompt-tool", "stdio", "--model", stage.model()];
    Host::start(&stage.program, &[&LEADS[..], &more].concat())
}

#[test]
fn what_a_member_asks_is_put_to_the_host_with_its_name_and_settles() {
    // S-171, S-172, D-28; report 12: a question that never reaches anyone
    let stage = Stage::new(&json!({
        "lead": [[member("w1", "@@work")], "waiting", "done"],
        "work": [
            [bash("touch allowed")],
            [bash("touch denied")],
            [says("team-lead", "asked twice")],
            "resting",
        ],
    }));
    let mut host = host_of(&stage);
    host.say("@@lead");
    for (file, answer) in [
        ("allowed", json!({"behavior": "allow", "updatedInput": {"command": "touch changed"}})),
        ("denied", json!({"behavior": "deny", "message": "not that one"})),
    ] {
        let ask = host.until(|event| event["type"] == "control_request").pop().unwrap();
        assert_eq!(ask["request"]["input"]["command"], format!("touch {file}"), "{ask}");
        assert!(ask["request"]["agent_id"].is_string(), "{ask}");
        let agent = &ask["request"]["agent"];
        assert_eq!(agent["id"], ask["request"]["agent_id"]);
        assert_eq!((&agent["name"], &agent["type"]), (&json!("w1"), &json!("general-purpose")));
        assert_eq!(agent["path"], json!(["w1"]));
        assert!(agent["team"].is_string() && agent["color"].is_string(), "{agent}");
        let response =
            json!({"subtype": "success", "request_id": ask["request_id"], "response": answer});
        host.send(&json!({"type": "control_response", "response": response}));
    }
    host.until(|event| event["type"] == "result" && event["result"] == "done");
    assert_eq!(host.finish(), 0);
    let project = stage.program.scratch.project();
    let made = ["changed", "allowed", "denied"].map(|name| project.join(name).exists());
    assert_eq!(made, [true, false, false]);
    assert!(stage.agent_transcripts()[0].contains("not that one"));
}

#[test]
fn a_rule_of_the_lead_binds_a_member_in_another_process() {
    let stage = Stage::new(&json!({
        "lead": [[member("w1", "@@work")], "waiting", "done"],
        "work": [[bash("touch forbidden")], [says("team-lead", "tried")], "resting"],
    }));
    let rules = json!({"subagents": {"teams": true}, "permissions": {"deny": ["Bash(touch *)"], "allow": ["Bash"]}});
    let rules = rules.to_string();
    stage.run("@@lead", &["--settings", &rules, "--teammate-mode", "process"]).assert_code(0);
    assert!(!stage.program.scratch.project().join("forbidden").exists());
    assert!(stage.agent_transcripts()[0].contains("This call was not allowed"));
}

#[test]
fn a_member_whose_process_is_killed_has_failed_and_comes_back_with_the_next_message() {
    // S-355; report 17: dead and idle look alike
    let stage = Stage::new(&json!({
        "lead": [
            [member("w1", "@@work")],
            [bash("until [ -e begun ]; do sleep 0.02; done; touch seen")],
            "waiting",
            [says("w1", "@@again")],
            "waiting again",
            "thank you",
        ],
        "work": [[bash("touch begun; sleep 600")], "never said"],
        "again": [[says("team-lead", "here again")], "resting"],
    }));
    let begun = stage.program.scratch.project().join("seen");
    let mut command = stage.command("@@lead", &[&LEADS[..], &["--allowedTools", "Bash"]].concat());
    let child = command.spawn().unwrap();
    eventually("the member's work", || begun.exists().then_some(()));
    let pid = members_in(&stage.program)[0];
    kill(pid);
    let told = Told::new(ended(child.wait_with_output().unwrap()));
    told.assert_code(0);
    let lead = told_lead(&stage);
    assert!(lead.contains("its process has ended"), "{lead}");
    assert!(lead.contains("here again"), "{lead}");
    let of_member = stage.agent_transcripts().concat();
    assert!(!of_member.contains("never said"), "{of_member}");
}

#[test]
fn members_end_with_a_lead_that_is_killed_and_a_later_lead_finds_them() {
    // S-355; 10.9: no teammate outlives its lead, and each is told of once
    let stage = Stage::new(&json!({
        "lead": [[member("w1", "@@work"), member("w2", "@@other")], "waiting"],
        "work": [[bash("touch begun; sleep 600")], "never said"],
        "other": [[bash("touch other; sleep 600")], "never said"],
        "next": [[says("w1", "@@again")], "waiting", "thank you"],
        "again": [[says("team-lead", "here again")], "resting"],
    }));
    let id = "7b5e1e6e-8d6c-4c54-9d0c-6a2b0f0b8f11";
    let flags = [&LEADS[..], &["--allowedTools", "Bash"]].concat();
    let mut lead =
        stage.command("@@lead", &[&flags[..], &["--session-id", id]].concat()).spawn().unwrap();
    let begun = ["begun", "other"].map(|file| stage.program.scratch.project().join(file));
    eventually("the members' work", || begun.iter().all(|file| file.exists()).then_some(()));
    assert_eq!(members_in(&stage.program).len(), 2);
    signal(&lead, "-9");
    lead.wait().unwrap();
    eventually("the end of the members", || members_in(&stage.program).is_empty().then_some(()));
    let told = stage.run("@@next", &[&flags[..], &["--resume", id]].concat());
    told.assert_code(0);
    let lead = told_lead(&stage);
    assert!(lead.contains("here again"), "{lead}");
    let interrupted = lead
        .lines()
        .filter(|line| line.contains("\"type\":\"user\"") && line.contains("interrupted"));
    assert_eq!(interrupted.count(), 2, "each once: {lead}");
    // Observers of the later lead know w1 from its beginning there, and hear nothing of w2, which did nothing.
    let started = told.of("task_started");
    let [begun] = &started[..] else { panic!("{started:?}") };
    assert_eq!(begun["name"], "w1");
    for kind in ["task_updated", "task_notification"] {
        let foreign = told.of(kind).into_iter().find(|it| it["task_id"] != begun["task_id"]);
        assert_eq!(foreign, None, "{kind} is about w1");
    }
}

#[test]
fn what_a_member_spends_in_its_process_is_counted_and_limited_by_its_lead() {
    let stage = Stage::new(&json!({
        "lead": [[member("w1", "@@work")], "waiting", "done"],
        "work": [[bash("true")], [bash("true")], [says("team-lead", "spent")], "resting"],
    }));
    let limited = json!({"subagents": {"teams": true, "limits": {"tokens": 10}}}).to_string();
    let told = stage.run("@@lead", &["--settings", &limited, "--teammate-mode", "process"]);
    told.assert_code(0);
    let lead = told_lead(&stage);
    assert!(lead.contains("does not pay for another request"), "{lead}");
}

#[test]
fn a_process_without_the_ticket_of_a_member_learns_nothing() {
    let program = Program::alone();
    let flags = [
        "--agent-id",
        "w1@alpha",
        "--agent-name",
        "w1",
        "--team-name",
        "alpha",
        "--parent-session-id",
        "7b5e1e6e-8d6c-4c54-9d0c-6a2b0f0b8f11",
    ];
    let ended = program.run(&flags);
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("not started by the lead of a team"), "{}", ended.stderr);
}

/// The texts of a transcript's messages that a member read, in their order.
fn read_by(transcript: &str, from: &str) -> Vec<String> {
    let opening = format!("<teammate-message teammate_id=\"{from}\"");
    let lines = transcript.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let read = lines.filter(|line| line["type"] == "user" && line["queueItem"].is_string());
    let texts = read.filter_map(|line| line["message"]["content"].as_str().map(str::to_owned));
    let its = texts.filter(|text| text.starts_with(&opening));
    its.map(|text| text.lines().nth(1).unwrap().to_owned()).collect()
}

#[test]
fn mail_between_members_in_processes_is_read_once_and_in_order() {
    // 10.1, 10.2; S-357
    const MESSAGES: usize = 20;
    let burst = |to: &str, from: &str| -> Vec<Value> {
        (0..MESSAGES).map(|number| says(to, &format!("{from}-{number}"))).collect()
    };
    let stage = Stage::new(&json!({
        "lead": [
            [member("w1", "@@one"), member("w2", "@@two")],
            [says("w1", "@@first"), says("w2", "@@second")],
            "waiting", "waiting", "waiting", "waiting", "waiting", "waiting",
        ],
        "one": ["resting", "read", "read", "read", "read"],
        "two": ["resting", "read", "read", "read", "read"],
        "first": [burst("w2", "w1"), "sent", "read", "read", "read", "read"],
        "second": [burst("w1", "w2"), "sent", "read", "read", "read", "read"],
    }));
    stage.run("@@lead", &LEADS).assert_code(0);
    let transcripts = stage.agent_transcripts();
    for (from, prompt) in [("w1", "@@two"), ("w2", "@@one")] {
        let begins = |text: &&String| text.lines().next().unwrap().contains(prompt);
        let transcript = transcripts.iter().find(begins).unwrap();
        let expected: Vec<String> =
            (0..MESSAGES).map(|number| format!("{from}-{number}")).collect();
        assert_eq!(read_by(transcript, from), expected, "{transcript}");
    }
}

#[test]
fn agents_below_a_member_in_its_process_work_and_are_counted_by_the_lead() {
    let scripts = json!({
        "lead": [[member("w1", "@@work")], "waiting", "done"],
        "work": [
            [agent("@@below", &json!({}))],
            [agent("@@below", &json!({}))],
            [says("team-lead", "both tried")],
            "resting",
        ],
        "below": [[bash("echo x >> ran")], "ended"],
    });
    let stage = Stage::new(&scripts);
    let limited = json!({"subagents": {"teams": true, "limits": {"spawns": 2}}, "permissions": {"allow": ["Bash"]}});
    let limited = limited.to_string();
    stage.run("@@lead", &["--settings", &limited, "--teammate-mode", "process"]).assert_code(0);
    assert_eq!(stage.program.scratch.read("ran"), "x\n", "one of two was one too many");
    let transcripts = stage.agent_transcripts().concat();
    assert!(transcripts.contains("no more agents may be started in this session"), "{transcripts}");
    assert!(told_lead(&stage).contains("both tried"));
}

#[test]
fn a_member_that_works_apart_leaves_the_checkout_alone_in_either_kind_of_process() {
    // I-6, S-125
    if !can_confine_completely() {
        return skip(Lack::Sandbox);
    }
    for mode in ["in-process", "process"] {
        let repository = Repository::new(&json!({}));
        let top = repository.top.display().to_string();
        let mut starts = member("w1", "@@work");
        starts["input"]["isolation"] = json!("worktree");
        repository.play(&json!({
            "lead": [[starts], "waiting", "done"],
            "work": [
                [bash(&format!("echo n > n.txt; git add -A; git commit -q -m mine; echo bad > {top}/a.txt; git -C {top} branch bad; true"))],
                [worktrees::write(&format!("{top}/new.txt"), "bad\n")],
                [says("team-lead", "it is done")],
                "resting",
            ],
        }));
        let before = repository.state();
        let told = repository.run(&["--settings", TEAMS, "--teammate-mode", mode]);
        told.assert_code(0);
        assert_eq!(repository.state(), before, "{mode}: {}", told.ended.stdout);
        let [path] = &repository.worktrees()[..] else { panic!("{mode}: {}", told.ended.stdout) };
        assert_eq!(worktrees::git_in(path, "log --format=%s -1"), "mine", "{mode}");
        let branch = worktrees::git_in(path, "branch --show-current");
        assert_eq!(repository.git(&format!("log --format=%s -1 {branch}")), "mine", "{mode}");
        let cards = repository.stage.agent_cards();
        let [meta] = &cards[..] else { panic!("{mode}: {cards:?}") };
        assert_eq!(meta["spawnedWithWorktree"], json!(true), "{mode}");
        assert_eq!(meta["worktreePath"], path.to_str().unwrap(), "{mode}");
        assert_eq!(meta["worktreeBranch"], json!(branch), "{mode}");
    }
}

#[test]
fn what_a_member_changes_in_its_process_is_brought_back_with_the_prompt() {
    // D-56
    let write = |file: &str, text: &str| json!({"tool": "Write", "input": {"file_path": file, "content": text}});
    let read = |file: &str| json!({"tool": "Read", "input": {"file_path": file}});
    let stage = Stage::new(&json!({
        "first": [[read("a.txt")], [write("a.txt", "of the lead\n")], "changed"],
        "lead": [[member("w1", "@@work")], "waiting", "done"],
        "work": [
            [read("a.txt")],
            [write("a.txt", "of the member\n"), write("new.txt", "made")],
            [says("team-lead", "changed")],
            "resting",
        ],
    }));
    stage.program.scratch.write("a.txt", "original\n");
    let run = |prompt: &str, more: &[&str]| {
        let flags = ["-p", prompt, "--model", stage.model(), "--permission-mode", "acceptEdits"];
        let mut command = stage.program.command([&flags, &LEADS[..], more].concat());
        command.env("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING", "1");
        let ended = ended(command.output().unwrap());
        assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    };
    run("@@first", &[]);
    run("@@lead", &["--continue"]);
    let content = |file: &str| std::fs::read_to_string(stage.program.scratch.project().join(file));
    assert_eq!(
        (content("a.txt").unwrap(), content("new.txt").unwrap()),
        ("of the member\n".to_owned(), "made".to_owned())
    );
    let transcripts = stage.program.transcripts();
    let id = transcripts[0].file_stem().unwrap().to_str().unwrap();
    let listed = stage.program.run(&["sessions", "rewind", id, "--json"]).stdout;
    let prompts: Vec<Value> = serde_json::from_str(&listed).unwrap();
    let back = |prompt: &Value| {
        let to = prompt["id"].as_str().unwrap();
        let ended = stage.program.run(&["sessions", "rewind", id, "--to", to, "--files"]);
        assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
        assert!(!ended.stdout.contains("set aside"), "all of it was ours: {}", ended.stdout);
    };
    let second = prompts.iter().find(|it| it["text"].as_str().unwrap().contains("@@lead")).unwrap();
    assert_eq!(second["filesChanged"], 2, "{listed}");
    back(second);
    assert_eq!(content("a.txt").unwrap(), "of the lead\n");
    assert!(content("new.txt").is_err());
    back(&prompts[0]);
    assert_eq!(content("a.txt").unwrap(), "original\n");
}
