//! Rewind: files become again what they were at a prompt, whichever agent changed them.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use centurion_config::memory::{Memory, MemorySources};
use centurion_engine::{ContextRules, Handle};
use centurion_protocol::{Block, RecordId, SeededWorld, World as _};
use centurion_tools::{Rewind, RewindError};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::agent_stage::{starts, waits};
use crate::bench::{Bench, Told};

/// A bench that keeps what files were. The model does what prompts name: `@@lead`, `@@next`, …
fn keeping(scripts: &Value) -> Bench {
    let mut bench = Bench::cast(scripts);
    let directory = bench.dir.path().join("history");
    bench.also(move |options| options.storage.file_history = Some(directory.clone()));
    bench
}

fn write(file: &str, content: &str) -> Value {
    json!({"tool": "Write", "input": {"file_path": file, "content": content}})
}

fn read(file: &str) -> Value {
    json!({"tool": "Read", "input": {"file_path": file}})
}

fn edit(file: &str, old: &str, new: &str) -> Value {
    json!({"tool": "Edit", "input": {"file_path": file, "old_string": old, "new_string": new}})
}

fn prompt(n: u64) -> RecordId {
    SeededWorld::new(9_000 + n).record_id()
}

/// Says the prompts one after another, waits for each, then goes back as told.
async fn play(
    bench: &Bench,
    prompts: &[&str],
    act: impl Fn(&Handle) -> Result<Rewind, RewindError>,
) -> (Told, Result<Rewind, RewindError>) {
    let done = Arc::new(Mutex::new(None));
    let kept = Arc::clone(&done);
    let told = bench
        .live("@@begin", |handle, watcher| async move {
            let ended = |count: usize| {
                let watcher = Arc::clone(&watcher);
                async move {
                    watcher
                        .until(|events, _| {
                            events.iter().filter(|it| it["type"] == "result").count() >= count
                        })
                        .await;
                }
            };
            ended(1).await;
            for (n, text) in prompts.iter().enumerate() {
                handle.submit(prompt(n as u64), vec![Block::text(*text)]);
                ended(n + 2).await;
            }
            // The last run is over when its result is there.
            tokio::task::yield_now().await;
            *kept.lock() = Some(act(&handle));
        })
        .await;
    let rewound = done.lock().take().unwrap();
    (told, rewound)
}

fn content(path: &Path) -> Option<Vec<u8>> {
    std::fs::read(path).ok()
}

#[tokio::test(start_paused = true)]
async fn files_become_again_what_they_were_at_a_prompt_bytes_modes_and_all() {
    // D-56
    let bench = keeping(&json!({
        "begin": ["ready"],
        "one": [
            [read("a.txt"), read("crlf.txt"), read("wide.txt")],
            [edit("a.txt", "alpha", "beta"), edit("crlf.txt", "x", "y"), write("new/n.txt", "n\n"), write("wide.txt", "b\n")],
            "done",
        ],
        "two": [[edit("a.txt", "beta", "gamma"), write("new/n.txt", "m\n")], "done"],
    }));
    let (a, crlf) = (bench.file("a.txt", "alpha\n"), bench.file("crlf.txt", "x\r\n\u{feff}é\r\n"));
    std::fs::set_permissions(&a, std::fs::Permissions::from_mode(0o750)).unwrap();
    let new = bench.project().join("new/n.txt");
    // Not UTF-8: what is kept are bytes, not texts.
    let wide = bench.project().join("wide.txt");
    std::fs::write(&wide, b"\xff\xfea\0\xe9\0\n\0").unwrap();
    let before = (content(&a), content(&crlf), content(&wide));
    let trial = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&trial);
    let (_, rewound) = play(&bench, &["@@one", "@@two"], move |handle| {
        seen.lock().push(handle.rewind_files(prompt(0), true).unwrap());
        let back = handle.rewind_files(prompt(1), false).unwrap();
        assert_eq!(back.files.len(), 2, "{back:?}");
        seen.lock().push(back);
        handle.rewind_files(prompt(0), false)
    })
    .await;
    let plan = trial.lock()[0].clone();
    assert_eq!((plan.files.len(), plan.set_aside.len(), plan.failed.len()), (4, 0, 0), "{plan:?}");
    assert!(plan.files.iter().any(|it| it.path == a && (it.insertions, it.deletions) == (1, 1)));
    assert!(plan.files.iter().all(|it| it.agents.is_empty()), "the main agent needs no name");
    let rewound = rewound.unwrap();
    assert!(rewound.set_aside.is_empty() && rewound.failed.is_empty(), "{rewound:?}");
    assert_eq!((content(&a), content(&crlf), content(&wide)), before);
    assert_eq!(std::fs::metadata(&a).unwrap().permissions().mode() & 0o7777, 0o750);
    assert!(!new.exists(), "what was made is gone");
}

#[tokio::test(start_paused = true)]
async fn a_mode_comes_back_also_where_the_content_did_by_itself() {
    let bench = keeping(&json!({
        "begin": ["ready"],
        "one": [[read("a.sh")], [edit("a.sh", "alpha", "beta")], [edit("a.sh", "beta", "alpha")], "done"],
    }));
    let script = bench.file("a.sh", "alpha\n");
    let set = |mode: u32| {
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    set(0o750);
    let (_, rewound) = play(&bench, &["@@one"], |handle| {
        set(0o600);
        handle.rewind_files(prompt(0), false)
    })
    .await;
    let rewound = rewound.unwrap();
    assert_eq!((rewound.files.len(), rewound.set_aside.len()), (1, 0), "{rewound:?}");
    let mode = std::fs::metadata(&script).unwrap().permissions().mode();
    assert_eq!((mode & 0o7777, content(&script).unwrap()), (0o750, b"alpha\n".to_vec()));
}

#[tokio::test(start_paused = true)]
async fn the_special_bits_of_a_mode_stay() {
    let bench = keeping(&json!({
        "begin": ["ready"], "one": [[read("a.sh")], [edit("a.sh", "alpha", "beta")], "done"],
    }));
    let script = bench.file("a.sh", "alpha\n");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o2750)).unwrap();
    let (_, rewound) =
        play(&bench, &["@@one"], |handle| handle.rewind_files(prompt(0), false)).await;
    assert_eq!((rewound.unwrap().files.len(), content(&script).unwrap()), (1, b"alpha\n".to_vec()));
    assert_eq!(std::fs::metadata(&script).unwrap().permissions().mode() & 0o7777, 0o2750);
}

#[tokio::test(start_paused = true)]
async fn what_sub_agents_changed_is_brought_back_too() {
    // D-56
    let bench = keeping(&json!({
        "begin": ["ready"],
        "one": [[waits("@@child")], "done"],
        "child": [[read("a.txt")], [edit("a.txt", "alpha", "beta"), write("n.txt", "n")], "reported"],
    }));
    let a = bench.file("a.txt", "alpha\n");
    let (_, rewound) =
        play(&bench, &["@@one"], |handle| handle.rewind_files(prompt(0), false)).await;
    let files = rewound.unwrap().files;
    assert_eq!(files.len(), 2);
    assert!(files.iter().all(|file| file.agents == ["general-purpose"]), "{files:?}");
    assert_eq!(content(&a).unwrap(), b"alpha\n");
    assert!(!bench.project().join("n.txt").exists());
}

#[tokio::test(start_paused = true)]
async fn what_others_changed_is_named_and_set_aside_and_other_files_are_left_alone() {
    // context.md 8, 20: google-gemini/gemini-cli#13331, anthropics/claude-code#34368, D-56
    let bench = keeping(&json!({
        "begin": ["ready"],
        "one": [[read("a.txt"), read("gone.txt"), read("link.txt")],
                [edit("a.txt", "alpha", "beta"), write("made.txt", "ours"), edit("gone.txt", "g", "h"), edit("link.txt", "l", "m")], "done"],
    }));
    let a = bench.file("a.txt", "alpha\n");
    let (gone, link) = (bench.file("gone.txt", "g\n"), bench.file("link.txt", "l\n"));
    let (made, other) = (bench.project().join("made.txt"), bench.file("other.txt", "untouched"));
    let paths = (a.clone(), made.clone(), gone.clone(), link.clone(), other.clone());
    let (_, rewound) = play(&bench, &["@@one"], move |handle| {
        let (a, made, gone, link, other) = &paths;
        std::fs::write(a, "THEIRS").unwrap();
        std::fs::write(made, "THEIRS TOO").unwrap();
        std::fs::write(other, "theirs alone").unwrap();
        std::fs::remove_file(gone).unwrap();
        std::fs::remove_file(link).unwrap();
        symlink("/etc/hostname", link).unwrap();
        handle.rewind_files(prompt(0), false)
    })
    .await;
    let rewound = rewound.unwrap();
    assert_eq!(content(&a).unwrap(), b"alpha\n");
    assert_eq!(content(&gone).unwrap(), b"g\n", "what was deleted is there again");
    assert!(!made.exists());
    assert_eq!(content(&other).unwrap(), b"theirs alone");
    assert_eq!(rewound.skipped_links, std::slice::from_ref(&link));
    assert!(link.is_symlink());
    let mut aside: Vec<(PathBuf, Vec<u8>)> =
        rewound.set_aside.iter().map(|it| (it.path.clone(), content(&it.copy).unwrap())).collect();
    aside.sort();
    assert_eq!(aside, [(a, b"THEIRS".to_vec()), (made, b"THEIRS TOO".to_vec())]);
}

#[tokio::test(start_paused = true)]
async fn checkpoints_survive_compaction_and_restart() {
    // D-56
    let mut bench = keeping(&json!({
        "begin": ["ready"],
        "one": [[read("a.txt"), read("long.txt")], [edit("a.txt", "alpha", "beta")], "done"],
        "two": [[write("b.txt", "b")], "done"],
    }));
    bench.scenario["rules"] = json!([
        {"match": {"last_user": "about to leave its window"}, "respond": "<summary>It did.</summary>"},
    ]);
    bench.also(|options| options.context = ContextRules::default());
    let a = bench.file("a.txt", "alpha\n");
    bench.file("long.txt", &"0123456789\n".repeat(400));
    let (told, _) = play(&bench, &["@@one", "/compact", "@@two"], |handle| {
        handle.rewind_files(prompt(9), true)
    })
    .await;
    assert_eq!(told.of("system", Some("compact_boundary")).len(), 1, "{:?}", told.result());
    assert_eq!(content(&a).unwrap(), b"beta\n");
    // In a later process.
    let watcher = Arc::new(crate::bench::Watcher::default());
    let start = centurion_engine::Start::Resume(told.session);
    let session = bench.open(start, Some(told.transcript.clone()), &watcher).await;
    let rewound = session.handle().rewind_files(prompt(0), false).unwrap();
    assert_eq!(rewound.files.len(), 2, "{rewound:?}");
    assert_eq!(content(&a).unwrap(), b"alpha\n");
    assert!(!bench.project().join("b.txt").exists());
}

/// The results of a session, one for each prompt and command.
fn results(told: &Told) -> Vec<String> {
    let text = |event: &Value| match event["result"].as_str() {
        Some(text) => text.to_owned(),
        None => event["errors"].to_string(),
    };
    told.events.iter().filter(|it| it["type"] == "result").map(text).collect()
}

#[tokio::test(start_paused = true)]
async fn a_prompt_is_taken_back_while_the_session_continues() {
    // D-56, context.md 6
    let todos = json!([{"content": "LISTED", "status": "pending", "activeForm": "Listing"}]);
    let bench = keeping(&json!({
        "begin": ["ready"],
        "one": [[read("a.txt")], [edit("a.txt", "alpha", "beta")], "ONE-DONE"],
        "two": [
            [edit("a.txt", "beta", "gamma"), write("n.txt", "n"), {"tool": "TodoWrite", "input": {"todos": todos}}],
            "TWO-DONE",
        ],
        "three": [[edit("a.txt", "beta", "delta")], "THREE-DONE"],
        "four": [[{"tool": "TodoWrite", "input": {"todos": todos}}], "FOUR-DONE"],
    }));
    let a = bench.file("a.txt", "alpha\n");
    let prompts = [
        "@@one",
        "@@two",
        "/rewind",
        "/rewind 3 --dry-run",
        "/rewind 3",
        "/rewind 9",
        "/rewind 1 all",
        "/rewind",
        "@@three",
        "/rewind 3 conversation",
        "@@four",
    ];
    let (told, _) = play(&bench, &prompts, |handle| handle.rewind_files(prompt(99), true)).await;
    let said = results(&told);
    assert!(said[3].contains("3. @@two (2 files changed since)"), "{}", said[3]);
    for words in ["would be back: ", "a.txt (+1 -1)", "n.txt (+0 -1)", "would be taken back: @@two"]
    {
        assert!(said[4].contains(words), "{words}: {}", said[4]);
    }
    assert!(said[5].contains("taken back: @@two") && said[5].contains("back: "), "{}", said[5]);
    assert!(said[6].contains("there is no prompt 9"), "{}", said[6]);
    assert!(said[7].contains("say /rewind"), "{}", said[7]);
    // Only what the conversation has now is there to go back to.
    assert!(said[8].contains("2. @@one") && !said[8].contains("@@two"), "{}", said[8]);
    // The files are those of that conversation, and so is what the agent knows of them.
    let refused = told.results().into_iter().rfind(|(text, _)| text.contains("a.txt")).unwrap();
    assert!(!refused.1, "{refused:?}");
    assert_eq!(content(&a).unwrap(), b"delta\n", "a conversation alone leaves the files");
    assert!(!bench.project().join("n.txt").exists());
    let last = told.requests.last().unwrap().to_string();
    for (text, is_sent) in [
        ("@@one", true),
        ("ONE-DONE", true),
        ("@@four", true),
        ("@@two", false),
        ("TWO-DONE", false),
        ("@@three", false),
        ("THREE-DONE", false),
        ("/rewind", false),
    ] {
        assert_eq!(last.contains(text), is_sent, "{text}: {last}");
    }
    // A later process reads the same, and the transcript has all of it.
    let record = std::fs::read_to_string(&told.transcript).unwrap();
    assert!(record.contains("TWO-DONE") && record.contains("THREE-DONE"));
    let later = Bench { seed: 61, ..bench };
    let next = later.resume(&told, "@@four").await;
    assert!(!next.requests.last().unwrap().to_string().contains("TWO-DONE"));
    // The list of things to do is that of this branch, here and there.
    let lines = next.lines();
    let lists = lines.iter().filter_map(|line| line["toolUseResult"].get("oldTodos"));
    let before: Vec<&Value> = lists.collect();
    assert_eq!(before, [&json!([]), &json!([]), &todos]);
}

#[tokio::test(start_paused = true)]
async fn the_first_prompt_can_be_taken_back_and_instructions_are_told_once() {
    let mut bench = keeping(&json!({"begin": ["FIRST-DONE"], "one": ["ONE-DONE"]}));
    let memory = bench.file("CLAUDE.md", "INSTRUCTED");
    let project = memory.parent().unwrap().to_owned();
    bench.also(move |options| {
        options.memory =
            Some(Memory::load(MemorySources { cwd: project.clone(), ..Default::default() }));
    });
    let (told, _) =
        play(&bench, &["/rewind 1", "@@one"], |handle| handle.rewind_files(prompt(99), true)).await;
    assert!(results(&told)[1].contains("taken back: @@begin"), "{:?}", results(&told));
    let last = told.requests.last().unwrap().to_string();
    assert!(!last.contains("@@begin") && !last.contains("FIRST-DONE"), "{last}");
    assert_eq!(last.matches("INSTRUCTED").count(), 1, "{last}");
}

#[tokio::test(start_paused = true)]
async fn a_conversation_does_not_go_back_under_agents_at_work_or_without_a_word_about_files() {
    let bench = keeping(&json!({
        "begin": [[starts("@@child")], "ready"],
        "child": [{"blocks": ["reported"], "latency_ms": 900_000}],
    }));
    let refuse = |handle: &Handle| handle.rewind_files(prompt(99), true);
    let (told, _) = play(&bench, &["/rewind 1 conversation", "/rewind 1"], refuse).await;
    for said in &results(&told)[1..3] {
        assert!(said.contains("agents are at work"), "{said}");
    }
    // Where no copies are kept, it is said that files stay.
    let bench = Bench::cast(&json!({"begin": ["ready"], "one": ["ONE-DONE"]}));
    let prompts = ["/rewind 1", "/rewind 1 conversation", "@@one"];
    let (told, _) = play(&bench, &prompts, refuse).await;
    let said = results(&told);
    assert!(
        said[1].contains("not enabled") && said[1].contains("/rewind 1 conversation"),
        "{}",
        said[1]
    );
    assert!(said[2].contains("taken back: @@begin"), "{}", said[2]);
    assert!(!told.requests.last().unwrap().to_string().contains("@@begin"));
}

#[tokio::test(start_paused = true)]
async fn going_back_is_refused_with_a_reason() {
    let bench = Bench::cast(&json!({"begin": ["ready"], "one": [[write("n.txt", "n")], "done"]}));
    let (_, rewound) =
        play(&bench, &["@@one"], |handle| handle.rewind_files(prompt(0), false)).await;
    assert_eq!(rewound.unwrap_err().to_string(), "File rewinding is not enabled.");
    let bench = keeping(&json!({"begin": ["ready"], "one": [[write("n.txt", "n")], "done"]}));
    let (_, rewound) =
        play(&bench, &["@@one"], |handle| handle.rewind_files(prompt(7), false)).await;
    assert!(matches!(rewound.unwrap_err(), RewindError::NoSuchPrompt(_)));
    assert!(bench.project().join("n.txt").exists());
}

#[tokio::test(start_paused = true)]
async fn a_record_that_names_another_file_as_its_checkpoint_leads_nowhere() {
    let bench = keeping(
        &json!({"begin": ["ready"], "one": [[read("a.txt")], [edit("a.txt", "alpha", "beta")], "done"]}),
    );
    let a = bench.file("a.txt", "alpha\n");
    let (told, _) = play(&bench, &["@@one"], |handle| handle.rewind_files(prompt(0), true)).await;
    let record = std::fs::read_to_string(&told.transcript).unwrap();
    // A real copy, of another file.
    std::fs::write(bench.dir.path().join("history/fedcba9876543210@v1"), "theirs").unwrap();
    for (n, name) in
        ["../../../etc/hostname", "/etc/hostname", "0123456789abcdef@v1", "fedcba9876543210@v1"]
            .iter()
            .enumerate()
    {
        let forged: String = record
            .lines()
            .map(|line| match line.split_once("\"backupFileName\":\"") {
                Some((before, after)) => {
                    let (_, rest) = after.split_once('"').unwrap();
                    format!("{before}\"backupFileName\":\"{name}\"{rest}\n")
                }
                None => format!("{line}\n"),
            })
            .collect();
        std::fs::write(&told.transcript, forged).unwrap();
        let watcher = Arc::new(crate::bench::Watcher::default());
        let start = centurion_engine::Start::Resume(told.session);
        let session = bench.open(start, Some(told.transcript.clone()), &watcher).await;
        let rewound = session.handle().rewind_files(prompt(0), false).unwrap();
        assert_eq!((rewound.files.len(), rewound.failed.len()), (0, 1), "{n}: {rewound:?}");
        assert_eq!(content(&a).unwrap(), b"beta\n");
    }
}

#[tokio::test(start_paused = true)]
async fn what_others_made_of_a_file_between_two_of_our_changes_is_named_and_kept() {
    // D-56
    let bench = keeping(&json!({
        "begin": ["ready"],
        "one": [[read("a.txt")], [edit("a.txt", "alpha", "beta")], [{"tool": "Bash", "input": {"command": "true"}}], "done"],
        "two": [[read("a.txt")], [edit("a.txt", "USER", "gamma")], [edit("a.txt", "gamma", "delta")], "done"],
    }));
    let a = bench.file("a.txt", "alpha\n");
    let path = a.clone();
    let (told, _) = play(&bench, &["@@one"], move |handle| {
        std::fs::write(&path, "USER\n").unwrap();
        handle.rewind_files(prompt(9), true)
    })
    .await;
    let mut later = Bench { dir: bench.dir, ..keeping(&json!({})) };
    later.scenario = json!({"scripts": {"two": [[read("a.txt")], [edit("a.txt", "USER", "gamma")], [edit("a.txt", "gamma", "delta")], "done"]}});
    let directory = later.dir.path().join("history");
    later.also(move |options| options.storage.file_history = Some(directory.clone()));
    later.seed = 77;
    let next = later.resume(&told, "@@two").await;
    assert_eq!(content(&a).unwrap(), b"delta\n", "{}", next.result());
    let watcher = Arc::new(crate::bench::Watcher::default());
    let start = centurion_engine::Start::Resume(told.session);
    let session = later.open(start, Some(told.transcript.clone()), &watcher).await;
    let rewound = session.handle().rewind_files(prompt(0), false).unwrap();
    assert_eq!(content(&a).unwrap(), b"alpha\n");
    let [aside] = &rewound.set_aside[..] else { panic!("{rewound:?}") };
    assert_eq!(content(&aside.copy).unwrap(), b"USER\n");
}

#[tokio::test(start_paused = true)]
async fn a_rewind_can_be_taken_back() {
    let bench = keeping(&json!({
        "begin": ["ready"],
        "one": [[read("a.txt")], [edit("a.txt", "alpha", "beta"), write("n.txt", "n")], "done"],
    }));
    let a = bench.file("a.txt", "alpha\n");
    let (told, rewound) =
        play(&bench, &["@@one"], |handle| handle.rewind_files(prompt(0), false)).await;
    assert_eq!(rewound.unwrap().files.len(), 2);
    let record = std::fs::read(&told.transcript).unwrap();
    let history = centurion_tools::FileHistory::read(&record);
    let point = history.prompts.iter().find(|it| it.is_rewind).unwrap().record;
    let watcher = Arc::new(crate::bench::Watcher::default());
    let start = centurion_engine::Start::Resume(told.session);
    let session = bench.open(start, Some(told.transcript.clone()), &watcher).await;
    session.handle().rewind_files(point, false).unwrap();
    assert_eq!(content(&a).unwrap(), b"beta\n");
    assert_eq!(content(&bench.project().join("n.txt")).unwrap(), b"n");
}

#[tokio::test(start_paused = true)]
async fn a_copy_of_a_session_goes_back_to_what_files_really_were() {
    let bench = keeping(&json!({
        "begin": ["ready"],
        "one": [[read("a.txt")], [edit("a.txt", "alpha", "beta")], "done"],
        "two": [[read("a.txt")], [edit("a.txt", "beta", "gamma")], "done"],
    }));
    let a = bench.file("a.txt", "alpha\n");
    let (told, _) = play(&bench, &["@@one"], |handle| handle.rewind_files(prompt(9), true)).await;
    let id = SeededWorld::new(55).session_id();
    // The directory of the first session is beside its transcript.
    let from = told.transcript.with_extension("").join("file-history");
    std::fs::create_dir_all(from.parent().unwrap()).unwrap();
    std::fs::rename(bench.dir.path().join("history"), &from).unwrap();
    let mut bench = bench;
    let own = bench.dir.path().join("other-history");
    let kept = own.clone();
    bench.also(move |options| options.storage.file_history = Some(kept.clone()));
    bench.seed = 78;
    let start = centurion_engine::Start::Fork { from: told.session, id };
    let forked = bench.start(start, Some(told.transcript.clone()), "@@two").await;
    assert_eq!(content(&a).unwrap(), b"gamma\n", "{}", forked.result());
    let watcher = Arc::new(crate::bench::Watcher::default());
    let start = centurion_engine::Start::Resume(id);
    let session = bench.open(start, Some(forked.transcript.clone()), &watcher).await;
    let rewound = session.handle().rewind_files(prompt(0), false).unwrap();
    assert!(rewound.failed.is_empty(), "{rewound:?}");
    assert_eq!(content(&a).unwrap(), b"alpha\n");
}

#[tokio::test(start_paused = true)]
async fn a_directory_behind_a_link_and_half_a_history_do_no_harm() {
    let scripts = json!({
        "begin": ["ready"],
        "one": [[read("a.txt")], [edit("a.txt", "alpha", "beta"), write("n.txt", "n")], "done"],
    });
    let bench = keeping(&scripts);
    let real = bench.dir.path().join("real");
    std::fs::create_dir(&real).unwrap();
    symlink(&real, bench.dir.path().join("history")).unwrap();
    let a = bench.file("a.txt", "alpha\n");
    std::fs::set_permissions(&a, std::fs::Permissions::from_mode(0o600)).unwrap();
    let path = a.clone();
    let (_, rewound) = play(&bench, &["@@one"], move |handle| {
        std::fs::remove_file(&path).unwrap();
        handle.rewind_files(prompt(0), false)
    })
    .await;
    assert!(rewound.unwrap().failed.is_empty());
    assert_eq!(content(&a).unwrap(), b"alpha\n");
    assert_eq!(std::fs::metadata(&a).unwrap().permissions().mode() & 0o777, 0o600);
    // Where one copy is damaged, nothing is deleted.
    let bench = keeping(&scripts);
    let a = bench.file("a.txt", "alpha\n");
    let history = bench.dir.path().join("history");
    let (_, rewound) = play(&bench, &["@@one"], move |handle| {
        for copy in std::fs::read_dir(&history).unwrap() {
            let copy = copy.unwrap().path();
            if !content(&copy).unwrap().is_empty() {
                std::fs::write(copy, "damaged").unwrap();
            }
        }
        handle.rewind_files(prompt(0), false)
    })
    .await;
    let rewound = rewound.unwrap();
    assert_eq!((rewound.files.len(), rewound.failed.len()), (0, 2), "{rewound:?}");
    assert_eq!(content(&a).unwrap(), b"beta\n");
    assert!(bench.project().join("n.txt").exists());
}

#[tokio::test(start_paused = true)]
async fn what_stands_in_the_place_of_a_file_is_named_and_never_removed() {
    let files = ["directory.txt", "huge.txt", "linked/a.txt", "empty.txt", "filled.txt"];
    let mut writes: Vec<Value> = files.iter().map(|file| read(file)).collect();
    writes.push(write("new.txt", "n"));
    let bench = keeping(&json!({
        "begin": ["ready"],
        "one": [writes, files.map(|file| write(file, "ours\n")), "done"],
    }));
    std::fs::create_dir(bench.project().join("linked")).unwrap();
    for file in files {
        bench.file(file, if file == "empty.txt" { "" } else { "alpha\n" });
    }
    let project = bench.project();
    let elsewhere = project.with_file_name("elsewhere");
    let made = (project.clone(), elsewhere.clone());
    let (told, rewound) = play(&bench, &["@@one"], move |handle| {
        let (project, elsewhere) = &made;
        std::fs::remove_file(project.join("directory.txt")).unwrap();
        std::fs::create_dir(project.join("directory.txt")).unwrap();
        std::fs::write(project.join("directory.txt/inside"), "theirs").unwrap();
        std::fs::File::create(project.join("huge.txt")).unwrap().set_len(100 << 20).unwrap();
        std::fs::rename(project.join("linked"), elsewhere).unwrap();
        symlink(elsewhere, project.join("linked")).unwrap();
        std::fs::write(project.join("filled.txt"), "").unwrap();
        let plan = handle.rewind_files(prompt(0), true).unwrap();
        let done = handle.rewind_files(prompt(0), false)?;
        let names = |rewind: &Rewind| {
            let failed = rewind.failed.iter().map(|(path, _)| path.clone());
            failed.chain(rewind.skipped_links.clone()).collect::<Vec<_>>()
        };
        assert_eq!(names(&plan), names(&done), "{plan:?} {done:?}");
        Ok(done)
    })
    .await;
    let rewound = rewound.unwrap();
    let named = format!("{:?} {:?}", rewound.failed, rewound.skipped_links);
    for file in ["directory.txt", "huge.txt", "linked/a.txt"] {
        assert!(named.contains(file), "{file}: {rewound:?} {:?}", told.results());
    }
    assert_eq!(content(&project.join("directory.txt/inside")).unwrap(), b"theirs");
    assert_eq!(std::fs::metadata(project.join("huge.txt")).unwrap().len(), 100 << 20);
    assert_eq!(content(&elsewhere.join("a.txt")).unwrap(), b"ours\n");
    assert_eq!(content(&project.join("empty.txt")).unwrap(), b"");
    assert_eq!(content(&project.join("filled.txt")).unwrap(), b"alpha\n");
    assert_eq!(content(&project.join("new.txt")), None);
    // What others made of a file is kept, also where that is nothing at all.
    let [aside] = &rewound.set_aside[..] else { panic!("{rewound:?}") };
    assert_eq!(
        (aside.path.as_path(), content(&aside.copy)),
        (project.join("filled.txt").as_path(), Some(Vec::new()))
    );
}

#[tokio::test(start_paused = true)]
async fn a_file_whose_name_a_record_cannot_hold_is_named_and_left_alone() {
    // A name that looks like a credential is not written to a transcript.
    let name = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOP.txt";
    let bench = keeping(&json!({
        "begin": ["ready"], "one": [[write(name, "made"), write("n.txt", "n")], "done"],
    }));
    let (told, rewound) =
        play(&bench, &["@@one"], |handle| handle.rewind_files(prompt(0), false)).await;
    assert!(!std::fs::read_to_string(&told.transcript).unwrap().contains("sk-ant-api03"));
    let rewound = rewound.unwrap();
    assert!(rewound.files.is_empty() && rewound.failed.len() == 2, "{rewound:?}");
    assert!(
        rewound.failed.iter().any(|(_, why)| why.contains("does not have its path")),
        "{rewound:?}"
    );
    assert_eq!(content(&bench.project().join(name)).unwrap(), b"made");
    let made: Vec<_> = std::fs::read_dir(bench.project()).unwrap().collect();
    assert_eq!(made.len(), 2, "nothing is made under another name: {made:?}");
}

/// A process that dies at any write of a rewind leaves files that the next one brings back, and nothing is lost.
#[tokio::test(start_paused = true)]
async fn a_rewind_that_dies_at_any_write_is_finished_by_the_next_one() {
    let scripts = json!({
        "begin": ["ready"],
        "one": [
            [read("a.txt"), read("b.txt"), read("gone.txt")],
            [edit("a.txt", "alpha", "ALPHA"), edit("b.txt", "beta", "BETA"), write("new.txt", "n"), edit("gone.txt", "g", "G")],
            "done",
        ],
    });
    let names = ["a.txt", "b.txt", "gone.txt", "new.txt"];
    let bench = keeping(&scripts);
    for (name, text) in [("a.txt", "alpha\n"), ("b.txt", "beta\n"), ("gone.txt", "g\n")] {
        bench.file(name, text);
    }
    let files = || names.map(|name| content(&bench.project().join(name)));
    let original = files();
    let (told, _) = play(&bench, &["@@one"], |handle| handle.rewind_files(prompt(9), true)).await;
    let (changed, before) = (files(), std::fs::read(&told.transcript).unwrap());
    let rewind = async || {
        let watcher = Arc::new(crate::bench::Watcher::default());
        let start = centurion_engine::Start::Resume(told.session);
        let session = bench.open(start, Some(told.transcript.clone()), &watcher).await;
        session.handle().rewind_files(prompt(0), false).unwrap()
    };
    assert_eq!(rewind().await.files.len(), 4);
    assert_eq!(files(), original);
    let after = std::fs::read(&told.transcript).unwrap();
    // Each record of the rewind was written before its file was changed.
    let ends = memchr::memchr_iter(b'\n', &after).map(|end| end + 1);
    let ends: Vec<usize> = ends.filter(|end| *end > before.len()).collect();
    let about = |line: &[u8]| {
        let is_named =
            |name: &&str| memchr::memmem::find(line, format!("/{name}\"").as_bytes()).is_some();
        names.iter().position(is_named)
    };
    let records = after[before.len()..].split(|it| *it == b'\n');
    let order: Vec<usize> = records.filter_map(about).collect();
    assert_eq!(
        (order.len(), ends.len()),
        (4, 4),
        "{}",
        String::from_utf8_lossy(&after[before.len()..])
    );
    for (count, end) in ends.iter().enumerate() {
        // The last record is whole or torn, and the file that it is about is changed or not.
        for (torn, done) in [(0, count + 1), (0, count), (9, count)] {
            std::fs::write(&told.transcript, &after[..end - torn]).unwrap();
            for (at, name) in names.iter().enumerate() {
                let path = bench.project().join(name);
                let state = if order[..done].contains(&at) { &original } else { &changed };
                match &state[at] {
                    Some(bytes) => std::fs::write(path, bytes).unwrap(),
                    None => drop(std::fs::remove_file(path)),
                }
            }
            let rewound = rewind().await;
            assert!(rewound.failed.is_empty(), "{count} {torn} {done}: {rewound:?}");
            assert_eq!(files(), original, "{count} {torn} {done}");
        }
    }
}

/// A process that dies at any write of the way back, or in the middle of one, leaves a conversation that is as it was or
/// gone back, and nothing in between.
#[tokio::test(start_paused = true)]
async fn a_conversation_that_dies_on_its_way_back_is_whole_or_taken_back() {
    let scripts = json!({
        "begin": ["BEGIN-DONE"], "one": ["ONE-DONE"], "two": ["TWO-DONE"], "three": ["THREE-DONE"],
    });
    let mut bench = keeping(&scripts);
    let prompts = ["@@one", "/rewind 2 conversation", "@@two"];
    let (told, _) = play(&bench, &prompts, |handle| handle.rewind_files(prompt(99), true)).await;
    assert!(results(&told)[2].contains("taken back: @@one"), "{:?}", results(&told));
    let whole = std::fs::read(&told.transcript).unwrap();
    let find = |text: &str| memchr::memmem::find(&whole, text.as_bytes()).unwrap();
    let line_end = |at: usize| at + memchr::memchr(b'\n', &whole[at..]).unwrap() + 1;
    let (answered, branched) = (line_end(find("ONE-DONE")), line_end(find("\"type\":\"rewind\"")));
    let asked_again = find("@@two");
    let mut ends: Vec<usize> = memchr::memchr_iter(b'\n', &whole).map(|end| end + 1).collect();
    ends.extend((answered..whole.len()).step_by(61));
    ends.retain(|end| *end >= answered);
    let (mut as_before, mut gone_back) = (0, 0);
    for (n, end) in ends.into_iter().enumerate() {
        std::fs::write(&told.transcript, &whole[..end]).unwrap();
        bench.seed = 100 + n as u64;
        let later = bench.resume(&told, "@@three").await;
        let sent = later.requests.last().unwrap().to_string();
        assert!(sent.contains("BEGIN-DONE") && sent.contains("@@three"), "{end}: {sent}");
        let has_it = sent.contains("ONE-DONE");
        assert_eq!(has_it, sent.contains("@@one"), "{end}: {sent}");
        assert_eq!(has_it, end + 1 < branched, "{end}, {branched}: {sent}");
        assert!(end >= asked_again || !sent.contains("@@two"), "{end}: {sent}");
        *(if has_it { &mut as_before } else { &mut gone_back }) += 1;
    }
    assert!(as_before > 3 && gone_back > 3, "{as_before} {gone_back}");
}
