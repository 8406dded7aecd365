//! Members of a team in panes of a real tmux.

use std::cell::RefCell;
use std::path::PathBuf;
use std::process::{Child, Command, Output};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::members::{TEAMS, member, members_in, says, spawned, told_lead};
use crate::program::{ended, eventually, signal};
use crate::stage::{Stage, Told, bash};

const LEADS: [&str; 6] = ["--settings", TEAMS, "--teammate-mode", "tmux", "--allowedTools", "Bash"];

/// Waits until the only member's run is seen to be over.
const ENDED: &str = "until grep -qs '\"isActive\": false' \"$HOME\"/.centurion/teams/*/config.json; do sleep 0.02; done";

/// A server of tmux with one session, for the length of a test.
struct Tmux {
    name: String,
    /// The process of the server, while it stands still.
    stopped: RefCell<String>,
}

impl Tmux {
    fn start(stage: &Stage, name: &str) -> Self {
        let name = format!("centurion-test-{name}-{}", std::process::id());
        let tmux = Self { name, stopped: RefCell::default() };
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

    /// The pane beside that of the lead.
    fn members_pane(&self) -> String {
        self.panes().get(1).expect("a pane of a member").clone()
    }

    /// Has the server stand still, or continue.
    fn signal(&self, signal: &str) {
        let pid = match signal {
            "-STOP" => self.run(&["display-message", "-p", "#{pid}"]),
            _ => self.stopped.borrow().clone(),
        };
        self.stopped.replace(pid.clone());
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let stopped = self.stopped.borrow().clone();
        if !stopped.is_empty() {
            drop(Command::new("kill").args(["-CONT", &stopped]).status());
        }
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
    let killed = Instant::now();
    eventually("the end of the panes", || (tmux.panes().len() == 1).then_some(()));
    // They waited for five seconds for an end of their own that could not come.
    assert!(killed.elapsed() < Duration::from_secs(4), "{:?}", killed.elapsed());
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

/// A lead in the first pane of a server, whose one member works until a file `go` is there.
struct Beside {
    stage: Stage,
    tmux: Tmux,
}

impl Beside {
    fn new(name: &str, work: &Value, more: &Value) -> Self {
        let mut steps = vec![json!([bash("touch begun; until [ -e go ]; do sleep 0.02; done")])];
        steps.extend(work.as_array().unwrap().iter().cloned());
        let mut scripts = json!({
            "lead": [[member("w1", "@@work")], "waiting", "done"],
            "work": steps,
        });
        scripts.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let stage = Stage::new(&scripts);
        let tmux = Tmux::start(&stage, name);
        Self { stage, tmux }
    }

    /// Starts the lead, and waits for the member's work.
    fn start(&self) -> Child {
        let mut command = self.stage.command("@@lead", &LEADS);
        self.tmux.surround(&mut command);
        let child = command.spawn().unwrap();
        eventually("the member's work", || self.project().join("begun").exists().then_some(()));
        child
    }

    fn project(&self) -> PathBuf {
        self.stage.program.scratch.project()
    }

    fn go(&self) {
        std::fs::write(self.project().join("go"), "").unwrap();
    }
}

fn end(child: Child) -> Told {
    let told = Told::new(ended(child.wait_with_output().unwrap()));
    told.assert_code(0);
    told
}

#[test]
fn keys_that_are_typed_into_a_pane_do_nothing_to_its_member() {
    // S-352; report 19: a pane only shows. `C-\\` ended the member, `C-z` and `C-s` had it stand still for ever
    let work = json!([[bash("echo on")], [says("team-lead", "untouched")], "resting"]);
    let beside = Beside::new("keys", &work, &json!({}));
    let child = beside.start();
    let pane = beside.tmux.members_pane();
    for keys in ["C-c", "C-\\", "C-z", "C-s", "exit", "Enter", "C-d", "q"] {
        beside.tmux.run(&["send-keys", "-t", &pane, keys]);
    }
    beside.go();
    end(child);
    assert!(told_lead(&beside.stage).contains("untouched"));
    assert!(!told_lead(&beside.stage).contains("its pane was closed"));
}

#[test]
fn a_pane_shows_what_its_member_says_and_does() {
    // A pane showed who its member is, and nothing of its work
    let work = json!([
        ["I look around.", bash("echo a word that is printed")],
        [bash("until [ -e seen ]; do sleep 0.02; done")],
        [says("team-lead", "ready")],
        "resting",
    ]);
    let beside = Beside::new("shows", &work, &json!({}));
    let child = beside.start();
    let pane = beside.tmux.members_pane();
    beside.go();
    let shown = || beside.tmux.run(&["capture-pane", "-p", "-t", &pane]);
    eventually("what the member prints", || {
        shown().contains("a word that is printed").then_some(())
    });
    let text = shown();
    for part in ["w1@", "general-purpose", "Bash", "I look around."] {
        assert!(text.contains(part), "{part}: {text}");
    }
    std::fs::write(beside.project().join("seen"), "").unwrap();
    end(child);
}

#[test]
fn a_tmux_that_hangs_holds_no_member_up() {
    // Report 19; what a member shows filled the terminal of its pane, and the member waited for tmux to read it
    let long = "a line that the pane shows, and another word\n".repeat(4_000);
    let work = json!([[long, bash("true")], [says("team-lead", "not held up")], "resting"]);
    let beside = Beside::new("hangs", &work, &json!({}));
    let child = beside.start();
    beside.tmux.signal("-STOP");
    beside.go();
    end(child);
    assert!(told_lead(&beside.stage).contains("not held up"));
    assert!(members_in(&beside.stage.program).is_empty());
    beside.tmux.signal("-CONT");
    eventually("the end of the pane", || (beside.tmux.panes().len() == 1).then_some(()));
}

#[test]
fn a_tmux_that_hangs_when_a_member_is_to_start_fails_the_start_and_leaves_no_pane() {
    // teams.md 10.10
    let stage = Stage::new(&json!({
        "lead": [[member("w1", "@@work")], "done"],
        "work": [[bash("touch ran")], "resting"],
    }));
    let tmux = Tmux::start(&stage, "stuck");
    let mut command = stage.command("@@lead", &LEADS);
    tmux.surround(&mut command);
    tmux.signal("-STOP");
    let told = end(command.spawn().unwrap());
    assert!(told.ended.stdout.contains("tmux did not answer in time"), "{}", told.ended.stdout);
    tmux.signal("-CONT");
    eventually("the end of a late pane", || (tmux.panes().len() == 1).then_some(()));
    assert!(members_in(&stage.program).is_empty());
    assert!(!stage.program.scratch.project().join("ran").exists());
}

#[test]
fn a_pane_goes_with_its_member_also_where_people_keep_dead_panes() {
    // Report 8: panes pile up
    let beside = Beside::new("kept", &json!([[says("team-lead", "ready")], "resting"]), &json!({}));
    beside.tmux.run(&["set-option", "-g", "remain-on-exit", "on"]);
    let child = beside.start();
    beside.go();
    end(child);
    eventually("the end of the pane", || (beside.tmux.panes().len() == 1).then_some(()));
}

#[test]
fn the_pane_that_is_named_is_the_one_that_there_is_after_an_earlier_one_was_killed() {
    // Report 19: stale ids of panes
    let named = "until grep -qs \"\\\"tmuxPaneId\\\": \\\"$(cat pane)\\\"\" \"$HOME\"/.centurion/teams/*/config.json; do sleep 0.02; done";
    let more = json!({
        "lead": [
            [member("w1", "@@work")],
            // Mail to a member whose end is not known yet waits for another message.
            [bash(ENDED)],
            [says("w1", "@@again")],
            [bash("until [ -e pane ]; do sleep 0.02; done")],
            [bash(named)],
            [bash("touch named")],
            "waiting", "done", "done",
        ],
        "again": [[bash("until [ -e named ]; do sleep 0.02; done")], [says("team-lead", "in a new pane")], "resting"],
    });
    let beside = Beside::new("stale", &json!([]), &more);
    let child = beside.start();
    let first = beside.tmux.members_pane();
    beside.tmux.run(&["kill-pane", "-t", &first]);
    let is_new = || beside.tmux.panes().into_iter().nth(1).filter(|pane| *pane != first);
    let second = eventually("a new pane", is_new);
    std::fs::write(beside.project().join("pane"), &second).unwrap();
    end(child);
    assert!(told_lead(&beside.stage).contains("in a new pane"));
}

#[test]
fn a_program_that_takes_the_place_of_a_member_in_its_pane_is_no_member_and_is_left_alone() {
    // teams.md 10.9, 11.19: a pane is still there, and its member is not
    let more = json!({
        "lead": [
            [member("w1", "@@work")],
            [bash(ENDED)],
            [says("w1", "@@again")],
            "waiting", "done", "done",
        ],
        "again": [[says("team-lead", "in a pane of its own")], "resting"],
    });
    let beside = Beside::new("replaced", &json!([]), &more);
    let child = beside.start();
    let pane = beside.tmux.members_pane();
    beside.tmux.run(&["respawn-pane", "-k", "-t", &pane, "exec sleep 3600"]);
    end(child);
    let told = told_lead(&beside.stage);
    assert!(told.contains("its pane was closed, or the process in it ended"), "{told}");
    assert!(told.contains("in a pane of its own"), "{told}");
    let running =
        beside.tmux.run(&["list-panes", "-a", "-F", "#{pane_id} #{pane_current_command}"]);
    assert!(running.lines().any(|line| line == format!("{pane} sleep")), "{running}");
}

#[test]
fn a_member_whose_server_of_tmux_is_killed_comes_back_with_the_next_message() {
    // teams.md 10.9
    let stage = Stage::new(&json!({
        "lead": [
            [member("w1", "@@work")],
            // Mail to a member whose end is not known yet waits for another message.
            [bash(ENDED)],
            [says("w1", "@@again")],
            "waiting", "done", "done",
        ],
        "work": [[bash("touch begun; sleep 600")], "never said"],
        "again": [[says("team-lead", "here again")], "resting"],
    }));
    let child = stage.command("@@lead", &LEADS).spawn().unwrap();
    let server = format!("centurion-{}", child.id());
    let begun = stage.program.scratch.project().join("begun");
    eventually("the member's work", || begun.exists().then_some(()));
    let killed = Command::new("tmux").args(["-L", &server, "kill-server"]).output().unwrap();
    assert!(killed.status.success());
    end(child);
    assert!(told_lead(&stage).contains("here again"), "{}", told_lead(&stage));
    eventually("the end of the members", || members_in(&stage.program).is_empty().then_some(()));
}

#[test]
fn auto_puts_a_member_beside_a_lead_that_is_in_a_pane() {
    // S-357
    let stage = Stage::new(&json!({
        "lead": [[member("w1", "@@work")], "waiting", "done"],
        "work": [[says("team-lead", "from a pane")], "resting"],
    }));
    let tmux = Tmux::start(&stage, "auto");
    let mut command = stage.command("@@lead", &["--settings", TEAMS, "--teammate-mode", "auto"]);
    tmux.surround(&mut command);
    let told = end(command.spawn().unwrap());
    assert_eq!(spawned(&told)["tmux_session_name"], "people");
    assert!(told_lead(&stage).contains("from a pane"));
}
