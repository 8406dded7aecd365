//! Old sessions go while a run continues.

use std::fs::{File, FileTimes};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use centurion_testkit::Reply;
use serde_json::json;

use crate::program::{Program, eventually};

const OLD: &str = "11111111-1111-4111-8111-111111111111";
const YOUNG: &str = "22222222-2222-4222-8222-222222222222";

/// A transcript of another project, last written this many days ago.
fn transcript(program: &Program, id: &str, days: u64) -> PathBuf {
    let path = format!(".centurion/projects/-elsewhere/{id}.jsonl");
    program.scratch.write_home(&path, "{}\n");
    let path = program.scratch.home().join(path);
    age(&path, days);
    path
}

/// Has a file look as if it was last written this many days ago.
fn age(path: &Path, days: u64) {
    let then = SystemTime::now() - Duration::from_secs(days * 24 * 60 * 60);
    File::open(path).unwrap().set_times(FileTimes::new().set_modified(then)).unwrap();
}

#[test]
fn a_session_that_is_too_old_goes_while_the_first_request_is_answered() {
    // The model answers when the old session is gone: a run does not wait for that by itself.
    let (send, receive) = std::sync::mpsc::channel::<PathBuf>();
    let receive = parking_lot::Mutex::new(receive);
    let program = Program::with_handler(move |_| {
        let old = receive.lock().recv().unwrap();
        eventually("the old session goes", || (!old.exists()).then_some(()));
        Reply::text("done")
    });
    let settings = json!({"cleanupPeriodDays": 5});
    program.scratch.write_home(".claude/settings.json", settings.to_string());
    let (old, young) = (transcript(&program, OLD, 6), transcript(&program, YOUNG, 4));
    let lists = program.scratch.home().join(".centurion/tasks");
    for (name, days) in [("old", 6), ("young", 4)] {
        program.scratch.write_home(format!(".centurion/tasks/{name}/log.jsonl"), "");
        age(&lists.join(name).join("log.jsonl"), days);
    }
    send.send(old.clone()).unwrap();
    let ended = program.run(&["-p", "hi"]);
    assert_eq!((ended.code, ended.stdout.trim()), (Some(0), "done"), "{}", ended.stderr);
    assert!(!old.exists() && young.exists());
    let has = ["old", "young"].map(|name| lists.join(name).exists());
    assert_eq!(has, [false, true], "task lists go with them");
}
