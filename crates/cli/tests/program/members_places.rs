//! The choice of the place where members run, and what stays of it.

use std::process::Command;

use serde_json::{Value, json};

use crate::members::{TEAMS, member, members_in, says, spawned, told_lead};
use crate::program::{ended, eventually};
use crate::stage::{Stage, Told, bash};

fn stage() -> Stage {
    Stage::new(&json!({
        "lead": [[member("w1", "@@work")], "waiting", "done"],
        "work": [[says("team-lead", "the report")], "resting"],
    }))
}

/// The place that the data of a start names.
fn place(told: &Told) -> Value {
    told.assert_code(0);
    spawned(told)["tmux_pane_id"].clone()
}

#[test]
fn the_settings_choose_the_place_and_a_flag_overrides_them() {
    let settings = json!({"subagents": {"teams": true}, "teammateMode": "process"}).to_string();
    let told = stage().run("@@lead", &["--settings", &settings]);
    assert_eq!(place(&told), "process");
    let told = stage().run("@@lead", &["--settings", &settings, "--teammate-mode", "in-process"]);
    assert_eq!(place(&told), "in-process");
    let told = stage().run("@@lead", &["--settings", TEAMS, "--teammate-mode", "auto"]);
    assert_eq!(place(&told), "in-process", "outside of tmux");
}

#[test]
fn a_switch_of_the_environment_goes_before_the_settings() {
    let stage = stage();
    let mut command = stage.command("@@lead", &["--settings", TEAMS]);
    command.env("CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS", "0");
    let told = Told::new(ended(command.output().unwrap()));
    let init = &told.of("init")[0]["tools"];
    assert!(!init.as_array().unwrap().contains(&json!("TeamCreate")), "{init}");
    assert!(told.data().iter().all(|data| data["status"] != "teammate_spawned"));
}

#[test]
fn without_transcripts_members_stay_in_the_process_and_a_warning_says_so() {
    let flags = ["--settings", TEAMS, "--teammate-mode", "process", "--no-session-persistence"];
    let told = stage().run("@@lead", &flags);
    assert_eq!(place(&told), "in-process");
    assert!(told.ended.stderr.contains("members of a team stay in this process"));
}

#[test]
fn a_member_that_does_not_answer_is_ended_when_the_time_for_that_is_over() {
    // D-64; CLAUDE_CODE_TEAM_TEARDOWN_PARK_TIMEOUT_MS
    for place in ["in-process", "process"] {
        let ask = json!({"to": "w1", "message": {"type": "shutdown_request"}});
        let stage = Stage::new(&json!({
            "lead": [
                [member("w1", "@@work")],
                [bash("until [ -e begun ]; do sleep 0.02; done")],
                [json!({"tool": "SendMessage", "input": ask})],
                "waiting",
                "done",
            ],
            "work": [[bash("touch begun; sleep 600")], "never said"],
        }));
        let flags = ["--settings", TEAMS, "--teammate-mode", place, "--allowedTools", "Bash"];
        let mut command = stage.command("@@lead", &flags);
        command.env("CLAUDE_CODE_TEAM_TEARDOWN_PARK_TIMEOUT_MS", "300");
        Told::new(ended(command.output().unwrap())).assert_code(0);
        assert!(told_lead(&stage).contains("w1 has left the team"), "{place}");
        assert!(!stage.agent_transcripts().concat().contains("never said"), "{place}");
    }
}

#[test]
fn the_server_of_two_members_outside_of_tmux_goes_with_their_lead() {
    // S-352; report 8: panes pile up
    let stage = Stage::new(&json!({
        "lead": [
            [member("w1", "@@work"), member("w2", "@@work")],
            "waiting", "waiting", "done", "done",
        ],
        "work": [[says("team-lead", "from a pane")], "resting"],
    }));
    let child =
        stage.command("@@lead", &["--settings", TEAMS, "--teammate-mode", "tmux"]).spawn().unwrap();
    let server = format!("centurion-{}", child.id());
    let told = Told::new(ended(child.wait_with_output().unwrap()));
    told.assert_code(0);
    let panes: Vec<&Value> = told
        .data()
        .into_iter()
        .map(|data| &data["tmux_pane_id"])
        .filter(|id| id.is_string())
        .collect();
    assert_eq!(panes.len(), 2, "{panes:?}");
    assert_ne!(panes[0], panes[1]);
    eventually("the end of the members", || members_in(&stage.program).is_empty().then_some(()));
    eventually("the end of the server", || {
        let listed = Command::new("tmux").args(["-L", &server, "list-sessions"]).output().unwrap();
        (!listed.status.success()).then_some(())
    });
    let left = |directory: std::fs::DirEntry| directory.path().join(&server).exists();
    let directories = std::fs::read_dir("/tmp").unwrap().flatten();
    let is_tmuxs = |it: &std::fs::DirEntry| it.file_name().to_string_lossy().starts_with("tmux-");
    assert!(!directories.filter(is_tmuxs).any(left), "its socket goes with it");
}

/// Callers at the socket of a lead that say nothing, nonsense, more than a frame may have, or one letter at a time, from many
/// processes, until a file `over` is there.
const FLOOD: &str = r"
import os, socket, stat, time
project = os.getcwd()
os.chdir(os.path.expanduser('~/.centurion/members'))
name = next(name for name in os.listdir('.') if stat.S_ISSOCK(os.stat(name).st_mode))
begins = [b'', b'\n' * 10, b'\xff' * 4096, b'{\x22Hello\x22:{\x22ticket\x22:\x22']
for number in range(24):
    if os.fork() == 0:
        callers = []
        for begin in begins * 3:
            try:
                caller = socket.socket(socket.AF_UNIX)
                caller.settimeout(1)
                caller.connect(name)
                callers.append(caller)
                caller.send(begin)
            except OSError:
                pass
        open(project + f'/caller{number}', 'w').close()
        while not os.path.exists(project + '/over'):
            for caller in callers:
                try:
                    caller.send(b'x')
                except OSError:
                    pass
            time.sleep(0.05)
        os._exit(0)
while not all(os.path.exists(project + f'/caller{number}') for number in range(24)):
    time.sleep(0.02)
open(project + '/flooded', 'w').close()
";

#[test]
fn callers_that_flood_the_socket_of_a_lead_keep_no_member_out() {
    // Strange processes of the same user: half open, slow, garbage, too many
    let stage = Stage::new(&json!({
        "lead": [
            [member("w1", "@@work")],
            [bash("python3 flood.py & until [ -e flooded ]; do sleep 0.02; done")],
            [member("w2", "@@other")],
            "waiting", "heard", "heard",
        ],
        "work": [[bash("until [ -e over ]; do sleep 0.02; done")], [says("team-lead", "from the first")], "resting"],
        "other": [[bash("touch over")], [says("team-lead", "from the second")], "resting"],
    }));
    stage.program.scratch.write("flood.py", FLOOD);
    let flags = ["--settings", TEAMS, "--teammate-mode", "process", "--allowedTools", "Bash"];
    stage.run("@@lead", &flags).assert_code(0);
    let lead = told_lead(&stage);
    for report in ["from the first", "from the second"] {
        assert!(lead.contains(report), "{lead}");
    }
    eventually("the end of the members", || members_in(&stage.program).is_empty().then_some(()));
}
