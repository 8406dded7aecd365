//! Members of a team in panes of a real tmux.

use std::process::{Command, Output};

use serde_json::json;

use crate::members::{TEAMS, member, members_in, says, spawned, told_lead};
use crate::program::{ended, eventually, signal};
use crate::stage::{Stage, Told, bash};

const LEADS: [&str; 6] = ["--settings", TEAMS, "--teammate-mode", "tmux", "--allowedTools", "Bash"];

/// A server of tmux with one session, for the length of a test.
struct Tmux {
    name: String,
}

impl Tmux {
    fn start(stage: &Stage, name: &str) -> Self {
        let tmux = Self { name: format!("centurion-test-{name}-{}", std::process::id()) };
        let project = stage.program.scratch.project();
        tmux.run(&[
            "new-session",
            "-d",
            "-s",
            "people",
            "-x",
            "120",
            "-y",
            "40",
            "-c",
            project.to_str().unwrap(),
            "cat",
        ]);
        tmux
    }

    fn run(&self, args: &[&str]) -> String {
        let output = self.output(args);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    fn output(&self, args: &[&str]) -> Output {
        let mut command = Command::new("tmux");
        command.args(["-L", &self.name, "-f", "/dev/null"]).args(args).env_remove("TMUX");
        command.output().unwrap()
    }

    /// The surroundings of a program in the first pane.
    fn surround(&self, command: &mut Command) {
        let socket =
            self.run(&["display-message", "-p", "-t", "people", "#{socket_path},#{pid},0"]);
        let pane = self.run(&["display-message", "-p", "-t", "people", "#{pane_id}"]);
        command.env("TMUX", socket).env("TMUX_PANE", pane);
    }

    fn panes(&self) -> Vec<String> {
        let listed = self.run(&["list-panes", "-a", "-F", "#{pane_id}"]);
        listed.lines().map(str::to_owned).collect()
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.output(&["kill-server"]);
    }
}

#[test]
fn outside_of_tmux_a_member_has_a_pane_on_a_server_of_its_own() {
    // S-352, S-357; report 19: panes without the key
    let stage = Stage::new(&json!({
        "lead": [[member("w1", "@@work")], "waiting", "done"],
        "work": [[bash("tty; echo key=$THE_KEY")], [says("team-lead", "from a pane")], "resting"],
    }));
    let mut command = stage.command("@@lead", &LEADS);
    command.env("THE_KEY", "of a user");
    let told = Told::new(ended(command.output().unwrap()));
    told.assert_code(0);
    let data = spawned(&told);
    assert_eq!((&data["tmux_session_name"], &data["is_splitpane"]), (&json!("team"), &json!(true)));
    assert!(data["tmux_pane_id"].as_str().unwrap().starts_with('%'), "{data}");
    assert!(told_lead(&stage).contains("from a pane"));
    assert!(stage.agent_transcripts()[0].contains("key=of a user"));
    eventually("the end of the pane", || members_in(&stage.program).is_empty().then_some(()));
}

#[test]
fn inside_of_tmux_a_member_has_a_pane_beside_its_lead_that_survives_resizing() {
    // S-352, S-357
    let stage = Stage::new(&json!({
        "lead": [
            [member("w1", "@@work")],
            [bash("touch spawned; until [ -e resized ]; do sleep 0.02; done")],
            "waiting",
            "done",
        ],
        "work": [
            [bash("until [ -e resized ]; do sleep 0.02; done")],
            [says("team-lead", "from a pane")],
            "resting",
        ],
    }));
    let tmux = Tmux::start(&stage, "inside");
    let mut command = stage.command("@@lead", &LEADS);
    tmux.surround(&mut command);
    let child = command.spawn().unwrap();
    let project = stage.program.scratch.project();
    eventually("the member", || project.join("spawned").exists().then_some(()));
    assert_eq!(tmux.panes().len(), 2);
    for (width, height) in [("40", "10"), ("200", "60")] {
        tmux.run(&["resize-window", "-t", "people", "-x", width, "-y", height]);
    }
    std::fs::write(project.join("resized"), "").unwrap();
    let told = Told::new(ended(child.wait_with_output().unwrap()));
    told.assert_code(0);
    assert_eq!(spawned(&told)["tmux_session_name"], "people");
    assert!(told_lead(&stage).contains("from a pane"));
    eventually("the end of the pane", || (tmux.panes().len() == 1).then_some(()));
}

#[test]
fn a_pane_that_is_killed_is_told_of_and_one_of_a_killed_lead_is_gone() {
    // 10.9; report 8: panes pile up
    let stage = Stage::new(&json!({
        "lead": [
            [member("w1", "@@work"), member("w2", "@@other")],
            [bash("until [ -e told ]; do sleep 0.02; done")],
            "waiting",
            "waiting on",
        ],
        "work": [[bash("touch one; sleep 600")], "never said"],
        "other": [[bash("touch two; sleep 600")], "never said"],
    }));
    let tmux = Tmux::start(&stage, "killed");
    let mut command = stage.command("@@lead", &LEADS);
    tmux.surround(&mut command);
    let mut child = command.spawn().unwrap();
    let project = stage.program.scratch.project();
    for name in ["one", "two"] {
        eventually("the members' work", || project.join(name).exists().then_some(()));
    }
    let panes = tmux.panes();
    assert_eq!(panes.len(), 3);
    tmux.run(&["kill-pane", "-t", &panes[1]]);
    std::fs::write(project.join("told"), "").unwrap();
    eventually("the notice", || told_lead(&stage).contains("its pane was closed").then_some(()));
    signal(&child, "-9");
    child.wait().unwrap();
    eventually("the end of the panes", || (tmux.panes().len() == 1).then_some(()));
    eventually("the end of the members", || members_in(&stage.program).is_empty().then_some(()));
}

#[test]
fn names_of_directories_mean_nothing_to_tmux_and_shells() {
    // S-350; report 19: what is typed into a pane
    let stage = Stage::new(&json!({
        "lead": [[member("w1", "@@work")], "waiting", "done"],
        "work": [[bash("pwd > here")], [says("team-lead", "from a pane")], "resting"],
    }));
    let project = stage.program.scratch.project();
    let odd = project.join("it's a \"test\" #{pane_id} $HOME \u{fc}\u{1f600} `id`;");
    std::fs::create_dir(&odd).unwrap();
    let mut command = stage.command("@@lead", &LEADS);
    let told = Told::new(ended(command.current_dir(&odd).output().unwrap()));
    told.assert_code(0);
    assert!(told_lead(&stage).contains("from a pane"));
    let stood = std::fs::read_to_string(odd.join("here")).unwrap();
    assert_eq!(stood.trim_end(), odd.canonicalize().unwrap().to_str().unwrap());
}

#[test]
fn where_no_pane_can_be_made_the_member_is_not_started_and_the_call_says_why() {
    // 10.10: requested properties hold or the spawn fails
    let stage = Stage::new(&json!({
        "lead": [[member("w1", "@@work")], "done"],
        "work": [[bash("touch ran")], "resting"],
    }));
    let told = {
        let mut command = stage.command("@@lead", &LEADS);
        command.env("TMUX", "/nowhere/socket,1,0").env("TMUX_PANE", "%0");
        Told::new(ended(command.output().unwrap()))
    };
    told.assert_code(0);
    assert!(
        told.ended.stdout.contains("could not be started where members run: tmux says"),
        "{}",
        told.ended.stdout
    );
    assert!(stage.agent_transcripts().is_empty(), "nothing of it is left");
    assert!(!stage.program.scratch.project().join("ran").exists());
}
