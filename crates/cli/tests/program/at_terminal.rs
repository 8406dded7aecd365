//! The program in a terminal, with a person who types and reads.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use centurion_testkit::{Recorded, Reply};
use parking_lot::Mutex;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::{Value, json};

use crate::processes::processes;
use crate::program::{Program, call, eventually, signal};

/// The time after which a dialog hears keys for certain.
const HEARS: Duration = Duration::from_millis(600);

/// A person at a terminal in which the program runs.
struct Person {
    child: Child,
    keys: File,
    seen: Arc<Mutex<Vec<u8>>>,
    /// The bytes that were looked through already.
    passed: usize,
}

impl Person {
    fn starts(program: &Program, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&screen).unwrap();
        unlockpt(&screen).unwrap();
        let size = Winsize { ws_row: 40, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&screen, size).unwrap();
        let path = ptsname(&screen, Vec::new()).unwrap().into_string().unwrap();
        let line = OpenOptions::new().read(true).write(true).open(path).unwrap();
        let end = || Stdio::from(line.try_clone().unwrap());
        let mut command = program.command(arguments);
        command.env("LANG", "C.UTF-8").env("TERM", "xterm").envs(variables.iter().copied());
        let child = command.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        let keys = File::from(screen);
        let mut screen = keys.try_clone().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&seen);
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            // The terminal of a program that has ended gives an error.
            while let Ok(count @ 1..) = screen.read(&mut buffer) {
                sink.lock().extend_from_slice(&buffer[..count]);
            }
        });
        Self { child, keys, seen, passed: 0 }
    }

    fn types(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// All that was written since what was waited for last.
    fn rest(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock()[self.passed..]).into_owned()
    }

    /// Waits for a text; gives everything up to it.
    fn reads(&mut self, text: &str) -> String {
        let up_to = eventually(text, || {
            let rest = self.rest();
            rest.find(text).map(|at| rest[..at + text.len()].to_owned())
        });
        self.passed += up_to.len();
        up_to
    }

    /// Everything that was written.
    fn all(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock()).into_owned()
    }

    fn leaves(&mut self) {
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Replies that ask for a command first, and then say something.
fn asks_then_says() -> Program {
    Program::answering([
        call("t1", "Bash", json!({"command": "touch made", "description": "make it"})),
        Reply::text("It is *made*."),
    ])
}

#[test]
fn a_screen_reader_hears_lines_in_words_and_answers_by_number() {
    // Failure 18: screen readers.
    for (arguments, variables) in [
        (&["--ax-screen-reader"][..], &[][..]),
        (&[], &[("ACCESSIBLE", "1")]),
        (&[], &[("TERM", "dumb")]),
    ] {
        let program = asks_then_says();
        let mut person = Person::starts(&program, arguments, variables);
        person.reads("ready for a prompt");
        person.types("make it\n");
        person.reads("you: make it");
        let said = person.reads("type a number and enter");
        assert!(said.contains("question 1 of 1 · Bash · main"), "{said}");
        assert!(said.contains("touch made") && said.contains("because: "), "{said}");
        assert!(said.contains("\n1 y once") && said.contains("\n3 n no"), "{said}");
        assert!(program.scratch.project().join("made").metadata().is_err());
        // An answer that came before the question could be read is asked for again.
        person.types("1\n");
        let early = eventually("an answer", || {
            let rest = person.rest();
            (rest.contains("answer again") || rest.contains("It is made.")).then_some(rest)
        });
        if early.contains("answer again") {
            person.types("1\n");
        }
        person.reads("It is made.");
        person.reads("ready for a prompt");
        assert!(program.scratch.project().join("made").metadata().is_ok());
        person.types("/exit\n");
        person.leaves();
        let all = person.all();
        assert!(!all.contains('\u{1b}'), "nothing moves the cursor or has a colour: {all:?}");
        assert!(all.matches("working").count() <= 2, "one statement a change of state: {all}");
    }
}

#[test]
fn ctrl_c_at_a_screen_reader_stops_the_turn_and_twice_leaves() {
    let program = Program::with_handler(|_| Reply::text("done"));
    let mut person = Person::starts(&program, &["--ax-screen-reader"], &[]);
    person.reads("ready for a prompt");
    signal(&person.child, "-INT");
    person.reads("ctrl+c again to leave");
    signal(&person.child, "-INT");
    person.leaves();
}

#[test]
fn keys_of_a_file_count_and_its_mistakes_are_told() {
    let program = Program::with_handler(|_| Reply::text("done"));
    let keys = json!({"bindings": [{"context": "Chat", "bindings": {
        "ctrl+e": "app:exit", "alt+m": "chat:dance"}}]});
    program.scratch.write_home(".claude/keybindings.json", keys.to_string());
    let mut person = Person::starts(&program, &[], &[]);
    person.reads("chat:dance");
    person.types("\u{5}");
    person.leaves();
}

/// The last request that the model got.
fn asked(program: &Program) -> Value {
    eventually("a request", || program.server().requests().last().map(Recorded::json))
}

#[test]
fn a_prompt_reaches_the_model() {
    let program = Program::with_handler(|_| Reply::text("fine, thanks"));
    let mut person = Person::starts(&program, &[], &[]);
    person.reads("? keys");
    person.types("how are you");
    person.reads("how are you");
    person.types("\r");
    person.reads("fine, thanks");
    assert!(asked(&program)["messages"].to_string().contains("how are you"));
    person.types("\u{4}");
    person.leaves();
}

#[test]
fn an_image_whose_path_is_dragged_goes_to_the_model() {
    let program = Program::with_handler(|_| Reply::text("a red square"));
    let image = program.scratch.write("my shot.png", b"\x89PNG\r\n\x1a\nrest");
    let dragged = image.to_str().unwrap().replace(' ', "\\ ");
    let mut person = Person::starts(&program, &[], &[]);
    person.reads("? keys");
    person.types(&format!("\u{1b}[200~{dragged}\u{1b}[201~"));
    person.reads("[image 1]");
    person.types(" what is it\r");
    person.reads("a red square");
    let request = asked(&program)["messages"].to_string();
    assert!(request.contains("\"media_type\":\"image/png\""), "{request}");
    assert!(request.contains("what is it"), "{request}");
    person.types("\u{4}");
    person.leaves();
}

#[test]
fn the_persons_status_line_is_told_the_state_and_a_repositorys_waits_for_trust() {
    let command = "printf 'mine: '; grep -o '\"hook_event_name\":\"Status\"'";
    let line = json!({"statusLine": {"type": "command", "command": command}});
    let program = Program::with_handler(|_| Reply::text("done"));
    program.scratch.write_home(".claude/settings.json", line.to_string());
    let mut person = Person::starts(&program, &[], &[]);
    person.reads("mine: \"hook_event_name\":\"Status\"");
    person.types("\u{4}");
    person.leaves();

    let theirs = json!({"statusLine": {"type": "command", "command": "touch ran; echo theirs"}});
    let program = Program::with_handler(|_| Reply::text("done"));
    program.scratch.write(".claude/settings.json", theirs.to_string());
    let mut person = Person::starts(&program, &["hello"], &[]);
    let is_asked = eventually("a question or an answer", || {
        let rest = person.rest();
        (rest.contains("Trust this folder?") || rest.contains("done")).then_some(rest)
    });
    if is_asked.contains("Trust this folder?") {
        // A dialog hears no key before it can have been read.
        let seen = Instant::now();
        eventually("the dialog to hear", || (seen.elapsed() > HEARS).then_some(()));
        person.types("1");
    }
    person.reads("done");
    assert!(!program.scratch.project().join("ran").exists(), "it ran without trust");
}

/// Status lines once outlived the terminal.
#[test]
fn what_a_status_line_started_ends_with_the_terminal() {
    // I-13
    for is_killed in [false, true] {
        let line = json!({"statusLine": {
            "type": "command",
            "command": "sleep 98791 & setsid sleep 98792 & touch asked; sleep 98793",
        }});
        let program = Program::with_handler(|_| Reply::text("done"));
        program.scratch.write_home(".claude/settings.json", line.to_string());
        let mut person = Person::starts(&program, &[], &[]);
        let asked = program.scratch.project().join("asked");
        eventually("a status line is made", || asked.exists().then_some(()));
        eventually("all are running", || (processes("sleep 9879").len() >= 3).then_some(()));
        if is_killed {
            person.child.kill().unwrap();
            person.child.wait().unwrap();
        } else {
            person.types("\u{4}");
            person.leaves();
        }
        eventually("every process ended", || processes("sleep 9879").is_empty().then_some(()));
    }
}
