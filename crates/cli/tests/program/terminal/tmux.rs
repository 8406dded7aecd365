//! A real tmux: a team is started, asked about, focused; the client goes away, the window changes, the program is killed.

use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::json;

use crate::program::eventually;
use crate::stage::{Stage, agent, bash};

/// A server of tmux with one window, which has a shell.
struct Tmux {
    name: String,
}

impl Tmux {
    fn start(stage: &Stage) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let tmux = Self { name: format!("centurion-terminal-{}-{number}", std::process::id()) };
        let project = stage.program.scratch.project();
        let place = project.to_str().unwrap();
        let home = format!("HOME={}", stage.program.scratch.home().display());
        tmux.run(&[
            "new-session",
            "-d",
            "-s",
            "it",
            "-x",
            "80",
            "-y",
            "24",
            "-c",
            place,
            "-e",
            &home,
            "-e",
            "LANG=C.UTF-8",
            // One with a line editor, which gives the terminal settings of its own before it prompts.
            "bash",
            "--norc",
        ]);
        tmux
    }

    fn output(&self, args: &[&str]) -> Output {
        let mut command = Command::new("tmux");
        command.args(["-u", "-L", &self.name, "-f", "/dev/null"]).args(args).env_remove("TMUX");
        command.output().unwrap()
    }

    fn run(&self, args: &[&str]) -> String {
        let output = self.output(args);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn types(&self, text: &str) {
        self.run(&["send-keys", "-t", "it", "-l", text]);
    }

    fn key(&self, key: &str) {
        self.run(&["send-keys", "-t", "it", key]);
    }

    fn screen(&self) -> String {
        self.run(&["capture-pane", "-p", "-t", "it"])
    }

    /// Rows and columns, as programs in the pane are told.
    fn size_of_terminal(&self) -> String {
        let tty = self.run(&["display-message", "-p", "-t", "it", "#{pane_tty}"]);
        let told = Command::new("stty").args(["-F", tty.trim(), "size"]).output().unwrap();
        String::from_utf8_lossy(&told.stdout).trim().to_owned()
    }

    #[track_caller]
    fn see(&self, words: &str) -> String {
        eventually(words, || Some(self.screen()).filter(|screen| screen.contains(words)))
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.output(&["kill-server"]);
    }
}

#[test]
fn a_day_in_tmux_ends_with_the_shell_as_it_was() {
    let stage = Stage::new(&json!({
        "lead": [
            [agent("@@scout", &json!({"run_in_background": true, "name": "scout"}))],
            [bash("echo asked > made")],
            "all done here",
        ],
        "scout": [[bash("until [ -e go ]; do sleep 0.05; done")], "found it"],
    }));
    let tmux = Tmux::start(&stage);
    // A shell has a prompt of its own choice; what is typed is not what it shows.
    tmux.types("PS1='she''ll> '");
    tmux.key("Enter");
    tmux.see("shell>");
    tmux.types("stty -a > before");
    tmux.key("Enter");
    let program = env!("CARGO_BIN_EXE_centurion");
    let rules = "Bash(until *)";
    tmux.types(&format!("{program} --model '{}' --allowedTools '{rules}'", stage.model()));
    tmux.key("Enter");
    tmux.see("manual · script:");
    tmux.types("go @@lead");
    tmux.key("Enter");
    let screen = tmux.see("1 y once");
    assert!(screen.contains("Bash · main") && screen.contains("echo asked > made"), "{screen}");
    // The dialog hears a key only some time after it was shown.
    tmux.run(&["run-shell", "sleep 1"]);
    let made = stage.program.scratch.project().join("made");
    tmux.key("y");
    tmux.see("all done here");
    assert!(made.exists());
    // A client comes and goes, and the window changes.
    for (width, height) in [("100", "30"), ("60", "20"), ("80", "24")] {
        tmux.run(&["resize-window", "-t", "it", "-x", width, "-y", height]);
        // It tells the terminal some time later, and not of each size.
        let size = format!("{height} {width}");
        eventually(&size, || (tmux.size_of_terminal() == size).then_some(()));
    }
    let lines: Vec<String> = (0..500).map(|number| format!("pasted line {number}")).collect();
    let file = stage.program.scratch.project().join("pasted");
    std::fs::write(&file, lines.join("\n")).unwrap();
    tmux.run(&["load-buffer", file.to_str().unwrap()]);
    tmux.run(&["paste-buffer", "-p", "-t", "it"]);
    tmux.see("[paste 1 · 500 lines");
    tmux.key("C-x");
    tmux.key("Down");
    tmux.see("enter focus");
    tmux.key("Enter");
    tmux.see("main ▸ scout");
    tmux.key("Escape");
    tmux.see("[paste 1 · 500 lines");
    let everything = tmux.run(&["capture-pane", "-p", "-S", "-", "-t", "it"]);
    assert_eq!(everything.matches("all done here").count(), 1, "{everything}");
    let pane = tmux.run(&["display-message", "-p", "-t", "it", "#{pane_pid}"]);
    let status =
        Command::new("pkill").args(["-KILL", "-P", pane.trim(), "-f", "--", "--model"]).status();
    assert!(status.unwrap().success());
    let is_prompted = |screen: &String| screen.trim_end().lines().last() == Some("shell>");
    let screen = eventually("the shell", || Some(tmux.screen()).filter(is_prompted));
    assert!(!screen.contains("manual ·"), "the live region is gone: {screen}");
    tmux.types("stty -a > after");
    tmux.key("Enter");
    let settings = |name| std::fs::read_to_string(stage.program.scratch.project().join(name)).ok();
    let after = eventually("the settings", || settings("after").filter(|it| it.ends_with('\n')));
    assert_eq!(Some(after), settings("before"));
}

#[test]
fn a_shell_that_prompts_before_the_terminal_is_restored_has_nothing_below_its_prompt() {
    let stage = Stage::new(&json!({}));
    let tmux = Tmux::start(&stage);
    tmux.types("PS1='she''ll> '");
    tmux.key("Enter");
    tmux.see("shell>");
    let program = env!("CARGO_BIN_EXE_centurion");
    tmux.types(&format!("{program} --model '{}'", stage.model()));
    tmux.key("Enter");
    tmux.see("manual · script:");
    // A list stands below the prompt.
    tmux.types("/");
    tmux.see("/agents");
    let found = |args: &[&str]| {
        let told = Command::new("pgrep").args(args).output().unwrap();
        String::from_utf8_lossy(&told.stdout).trim().to_owned()
    };
    let signal = |name: &str, process: &str| {
        assert!(Command::new("kill").args([name, process]).status().unwrap().success());
    };
    let pane = tmux.run(&["display-message", "-p", "-t", "it", "#{pane_pid}"]);
    let process = found(&["-P", pane.trim(), "-f", "--", "--model"]);
    let keeper = found(&["-P", &process, "-f", "terminal$"]);
    signal("-STOP", &keeper);
    signal("-KILL", &process);
    eventually("the prompt", || {
        let position = tmux.run(&["display-message", "-p", "-t", "it", "#{cursor_x}"]);
        (position.trim() == "7" && tmux.screen().contains("shell> ")).then_some(())
    });
    signal("-CONT", &keeper);
    let is_prompted = |screen: &String| screen.trim_end().lines().last() == Some("shell>");
    eventually("an end below the prompt", || Some(tmux.screen()).filter(is_prompted));
}

#[test]
fn a_window_of_tmux_that_shrinks_and_grows_keeps_no_row_of_the_live_region() {
    // Failure 4: resize doubles text.
    let stage = Stage::new(&json!({
        "lead": [
            [agent("@@scout", &json!({"run_in_background": true, "name": "scout"}))],
            [agent("@@scout", &json!({"run_in_background": true, "name": "linter"}))],
            "both are at work",
        ],
        "scout": [[bash("until [ -e go ]; do sleep 0.05; done")], "found it"],
    }));
    let tmux = Tmux::start(&stage);
    let program = env!("CARGO_BIN_EXE_centurion");
    tmux.types(&format!(
        "clear; {program} --model '{}' --allowedTools 'Bash(until *)'",
        stage.model()
    ));
    tmux.key("Enter");
    tmux.see("manual · script:");
    tmux.types("go @@lead");
    tmux.key("Enter");
    tmux.see("both are at work");
    tmux.see("2 agents ·");
    // The screen is full: what the smaller window has no room for goes into the scrollback.
    tmux.types("!seq 40");
    tmux.key("Enter");
    eventually("the printed lines", || {
        let screen = tmux.screen();
        let is_printed = screen.contains("  38\n") && screen.contains("  40\n");
        (is_printed && !screen.contains("esc stops it")).then_some(())
    });
    for (width, height) in
        [("40", "20"), ("80", "24"), ("30", "12"), ("80", "24"), ("200", "60"), ("80", "24")]
    {
        tmux.run(&["resize-window", "-t", "it", "-x", width, "-y", height]);
        let size = format!("{height} {width}");
        eventually(&size, || (tmux.size_of_terminal() == size).then_some(()));
        // It is drawn anew for this size some time later: nothing is left of the one before.
        let columns: usize = width.parse().unwrap();
        eventually("the new size", || {
            let screen = tmux.screen();
            let status = screen.trim_end().lines().last()?.contains(" manual ·");
            let fits = screen.lines().filter(|line| line.contains("── ") || line.contains("─ 2"));
            (status && fits.clone().all(|line| line.trim_end().chars().count() == columns))
                .then_some(())
        });
    }
    let everything = tmux.run(&["capture-pane", "-p", "-S", "-", "-t", "it"]);
    assert_eq!(everything.matches("2 agents ·").count(), 1, "{everything}");
    assert_eq!(everything.matches("both are at work").count(), 1, "{everything}");
    for number in 1..=40 {
        let row = format!("  {number}");
        assert_eq!(everything.lines().filter(|line| **line == row).count(), 1, "{everything}");
    }
}

#[test]
fn what_was_shown_on_the_other_screen_leaves_the_shell_below_what_was_printed() {
    let stage = Stage::new(&json!({"lead": ["a first answer"], "other": ["a second answer"]}));
    let tmux = Tmux::start(&stage);
    let program = env!("CARGO_BIN_EXE_centurion");
    tmux.types(&format!("PS1='she''ll> '; clear; {program} --model '{}'", stage.model()));
    tmux.key("Enter");
    tmux.see("manual · script:");
    // The transcript is read on the other screen, and left.
    tmux.key("C-o");
    tmux.see("q closes");
    tmux.key("q");
    tmux.see("manual · script:");
    tmux.types("@@lead");
    tmux.key("Enter");
    tmux.see("a first answer");
    tmux.types("/tui fullscreen");
    tmux.key("Enter");
    eventually("the other screen", || {
        let shown = tmux.run(&["display-message", "-p", "-t", "it", "#{alternate_on}"]);
        (shown.trim() == "1").then_some(())
    });
    tmux.types("@@other");
    tmux.key("Enter");
    tmux.see("a second answer");
    tmux.see("manual · script:");
    tmux.key("C-d");
    let is_prompted = |screen: &String| screen.trim_end().lines().last() == Some("shell>");
    let screen = eventually("the shell", || Some(tmux.screen()).filter(is_prompted));
    let place = |words: &str| screen.find(words).unwrap_or_else(|| panic!("no {words}: {screen}"));
    assert!(place("a first answer") < place("a second answer"), "{screen}");
    assert!(!screen.contains("manual"), "{screen}");
}
