//! A hostile command replaces a directory, or a file, by a link that leads outside, again and again while file tools
//! work there: no tool ever reads, lists or writes anything outside.
//!
//! The policy judges each call first, and the call runs only when it is allowed, as in the dispatch.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use centurion_permissions::{Access, Call, Mode, Policy, Verdict, decide};
use parking_lot::Mutex;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use seccompiler::{SeccompAction, SeccompFilter, apply_filter};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::paths::resolve;
use crate::read_state::View;
use crate::testing::{context, text};
use crate::{
    DiskLinks, DynTool, Edit, Glob, Grep, NotebookEdit, Read, Tool, ToolContext, ToolError,
    ToolOutput, Write, erase,
};

/// The calls of each tool that run in each race, unless `CENTURION_RACE_CALLS` gives another number. With eleven races
/// and two ways to open, these are ten thousand calls. Denied calls do not count.
const CALLS: usize = 455;

/// The longest time for a race to meet the exchange: a race that never meets it proves nothing.
const PATIENCE: Duration = Duration::from_mins(1);

/// The number of `openat2`, the same on all machines.
const OPENAT2: i64 = 437;

const SECRET: &str = "what lies outside";

const NOTEBOOK: &str = r#"{"cells": [{"cell_type": "markdown", "id": "a", "metadata": {}, "source": "one"}],
"metadata": {}, "nbformat": 4, "nbformat_minor": 5}"#;

/// The agent's knowledge of each of these files inside would also fit the one outside.
const FILES: [(&str, &str); 2] = [("file", "one"), ("note.ipynb", NOTEBOOK)];

/// A working directory, the files outside of it, and the two names in it that are exchanged.
struct Scene {
    _scratch: tempfile::TempDir,
    trick: Trick,
    /// The target of the link.
    lure: PathBuf,
    /// Held while the names are exchanged, or while the scene is reset.
    turn: Mutex<()>,
    /// Whether the scene is about to be reset.
    is_wanted: AtomicBool,
    outside: PathBuf,
    /// The files outside, before and after.
    precious: BTreeMap<PathBuf, String>,
    exchanged: [PathBuf; 2],
    context: ToolContext,
    policy: Policy,
}

/// The kind of name that is exchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trick {
    Directory,
    File,
}

#[derive(Debug, Default)]
struct Tally {
    done: usize,
    /// Denied by the policy, which saw the link.
    denied: usize,
    /// Refused after the judgement: the race that matters.
    refused: usize,
    /// Failed for another reason.
    failed: usize,
}

impl Tally {
    fn ran(&self) -> usize {
        self.done + self.refused + self.failed
    }
}

impl Scene {
    fn new(trick: Trick, calls: &Calls) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        let (work, outside) = (root.join("work"), root.join("outside"));
        for directory in [work.join("a/dir"), outside.clone()] {
            fs::create_dir_all(directory.join("deep")).unwrap();
            for (name, content) in FILES {
                fs::write(directory.join(name), content).unwrap();
                fs::write(directory.join("deep").join(name), content).unwrap();
            }
        }
        for directory in [&outside, &outside.join("deep")] {
            for name in ["secret-name", "other"] {
                fs::write(directory.join(name), SECRET).unwrap();
            }
        }
        let directory = work.join("a/dir");
        let (exchanged, lure) = match trick {
            Trick::Directory => ([directory, work.join("a/link")], outside.clone()),
            Trick::File => {
                ([directory.join(calls.file), directory.join("link")], outside.join(calls.lure))
            }
        };
        symlink(&lure, &exchanged[1]).unwrap();
        let policy = Policy {
            mode: Mode::AcceptEdits,
            cwd: work.clone(),
            project_root: work.clone(),
            directories: vec![work.clone()],
            ..Policy::default()
        };
        let precious = Self::contents(&outside);
        let scene = Self {
            trick,
            lure,
            turn: Mutex::default(),
            is_wanted: AtomicBool::new(false),
            context: context(&work),
            precious,
            outside,
            exchanged,
            policy,
            _scratch: scratch,
        };
        scene.restore();
        scene
    }

    /// Restores the files inside, and the agent's knowledge of them: then a call that is led outside finds the content
    /// that it expects.
    fn restore(&self) {
        self.is_wanted.store(true, Ordering::Relaxed);
        let turn = self.turn.lock();
        let [one, two] = &self.exchanged;
        let is_link = |path: &Path| fs::symlink_metadata(path).unwrap().is_symlink();
        if !is_link(one) && !is_link(two) {
            // A tool may have replaced the link by a file.
            fs::remove_file(two).unwrap();
            symlink(&self.lure, two).unwrap();
        }
        if is_link(one) {
            self.exchange();
        }
        for (name, content) in FILES {
            let path = self.path("a/dir").join(name);
            fs::write(&path, content).unwrap();
            let hash = blake3::hash(content.as_bytes());
            self.context.workspace.read_state.record(&path, hash, View::Whole);
        }
        drop(turn);
        self.is_wanted.store(false, Ordering::Relaxed);
    }

    /// Exchanges the two names until `stop` is set.
    fn exchange_until(&self, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            if self.is_wanted.load(Ordering::Relaxed) {
                std::thread::yield_now();
                continue;
            }
            let _turn = self.turn.lock();
            self.exchange();
        }
    }

    fn contents(directory: &Path) -> BTreeMap<PathBuf, String> {
        let mut contents = BTreeMap::new();
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                contents.extend(Self::contents(&path));
            } else {
                contents.insert(path.clone(), fs::read_to_string(&path).unwrap());
            }
        }
        contents
    }

    fn path(&self, relative: &str) -> PathBuf {
        self.context.workspace.root().join(relative)
    }

    /// Exchanges the link with the other name.
    fn exchange(&self) {
        let [one, two] = &self.exchanged;
        renameat_with(CWD, one, CWD, two, RenameFlags::EXCHANGE).unwrap();
    }

    /// Judges a call and runs it if it is allowed; `None` otherwise.
    async fn call(
        &self,
        tool: &dyn DynTool,
        input: &Value,
        between: impl FnOnce(&Self),
    ) -> Option<Result<ToolOutput, ToolError>> {
        let raw: Box<RawValue> = serde_json::value::to_raw_value(input).unwrap();
        let prepared = tool.prepare(&raw).unwrap();
        let mut context = ToolContext {
            workspace: Arc::clone(&self.context.workspace),
            call: self.context.call.clone(),
            cancel: self.context.cancel.clone(),
            decided: None,
            is_approved: false,
            moves_agent: true,
        };
        let access = prepared.access(&context);
        let (Access::Read(path) | Access::Write(path)) = &access else { panic!("{access:?}") };
        let named = Some(path.as_path());
        let call = Call {
            tool: tool.name(),
            access: &access,
            named,
            input: Some(&raw),
            links: &DiskLinks,
            meant: &[],
        };
        if decide(&self.policy, &call).verdict != Verdict::Allow {
            return None;
        }
        context.decided = Some(access);
        between(self);
        Some(prepared.run(&context).await)
    }

    fn assert_untouched(&self, what: &str) {
        assert_eq!(Self::contents(&self.outside), self.precious, "{what}");
    }
}

fn assert_nothing_told(what: &str, result: &Result<ToolOutput, ToolError>) {
    let told = match result {
        Ok(output) => format!("{} {}", text(output), output.data),
        Err(error) => error.to_string(),
    };
    assert!(!told.contains(SECRET) && !told.contains("secret-name"), "{what}: {told}");
}

/// The calls of one tool: each differs a little from the one before.
struct Calls {
    tool: Arc<dyn DynTool>,
    /// The file that is exchanged, and the target of the link outside.
    file: &'static str,
    lure: &'static str,
    input: fn(&Scene, usize) -> Value,
}

fn calls() -> Vec<Calls> {
    vec![
        Calls {
            tool: erase(Write),
            file: "file",
            lure: "file",
            input: |scene, n| {
                let name = match (scene.trick, n % 3) {
                    (Trick::Directory, 0) => format!("a/dir/deep/new{n}"),
                    (Trick::Directory, 1) => format!("a/dir/made/here/new{n}"),
                    _ => "a/dir/file".to_owned(),
                };
                json!({"file_path": scene.path(&name), "content": "two"})
            },
        },
        Calls {
            tool: erase(Read),
            file: "file",
            lure: "other",
            input: |scene, n| {
                let name = match (scene.trick, n % 3) {
                    (Trick::Directory, 0) => "a/dir/other",
                    (Trick::Directory, 1) => "a/dir/secret-nam",
                    _ => "a/dir/file",
                };
                json!({"file_path": scene.path(name)})
            },
        },
        Calls {
            tool: erase(Edit),
            file: "file",
            lure: "file",
            input: |scene, _| json!({"file_path": scene.path("a/dir/file"), "old_string": "one", "new_string": "two"}),
        },
        Calls {
            tool: erase(NotebookEdit),
            file: "note.ipynb",
            lure: "note.ipynb",
            input: |scene, _| json!({"notebook_path": scene.path("a/dir/note.ipynb"), "cell_id": "a", "new_source": "two"}),
        },
        Calls {
            tool: erase(Grep),
            file: "file",
            lure: "other",
            input: |scene, n| match n % 3 {
                0 => json!({"pattern": ".", "output_mode": "content"}),
                1 => json!({"pattern": "outside", "path": scene.path("a/dir")}),
                _ => json!({"pattern": "outside", "path": scene.path("a/dir/file"),
                    "output_mode": "content"}),
            },
        },
        Calls {
            tool: erase(Glob),
            file: "file",
            lure: "other",
            input: |scene, n| match n % 3 {
                0 => json!({"pattern": "**"}),
                1 => json!({"pattern": "a/dir/**"}),
                _ => json!({"pattern": "deep/*", "path": scene.path("a/dir")}),
            },
        },
    ]
}

/// Every tool with every exchange that it can meet: the list of a directory does not depend on one file of it.
fn races(trick: Trick) -> impl Iterator<Item = Calls> {
    let is_met = move |calls: &Calls| trick == Trick::Directory || calls.tool.name() != "Glob";
    calls().into_iter().filter(is_met)
}

/// Makes calls while the names are exchanged, until there were enough.
fn play(scene: &Scene, calls: &Calls, is_enough: impl Fn(&Tally, Duration) -> bool) -> Tally {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let stop = AtomicBool::new(false);
    let mut tally = Tally::default();
    let began = Instant::now();
    std::thread::scope(|scope| {
        let _stopped = StopOnDrop(&stop);
        scope.spawn(|| scene.exchange_until(&stop));
        for n in 0.. {
            if is_enough(&tally, began.elapsed()) {
                break;
            }
            scene.restore();
            let input = (calls.input)(scene, n);
            match runtime.block_on(scene.call(&*calls.tool, &input, |_| ())) {
                None => tally.denied += 1,
                Some(result) => {
                    assert_nothing_told(calls.tool.name(), &result);
                    match result {
                        Ok(_) => tally.done += 1,
                        Err(error) if is_refusal(&error) => tally.refused += 1,
                        Err(_) => tally.failed += 1,
                    }
                }
            }
        }
    });
    tally
}

/// Races the calls of one tool against the exchange.
fn race(trick: Trick, calls: &Calls) -> Tally {
    let scene = Scene::new(trick, calls);
    let what = format!("{} against an exchanged {trick:?}", calls.tool.name());
    let wanted = std::env::var("CENTURION_RACE_CALLS").ok().and_then(|calls| calls.parse().ok());
    let most = wanted.unwrap_or(CALLS);
    let tally = play(&scene, calls, |tally, elapsed| {
        tally.ran() >= most && (tally.refused > 0 || elapsed > PATIENCE)
    });
    scene.assert_untouched(&what);
    assert!(tally.done > 0, "{what}: {tally:?}");
    assert!(tally.refused > 0, "{what}: the race was never met: {tally:?}");
    tally
}

/// Ends the exchange with the calls, also when one of them fails the test.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn is_refusal(error: &ToolError) -> bool {
    let told = error.to_string();
    ["link on the way", "when the call was allowed", "changed by another program"]
        .iter()
        .any(|reason| told.contains(reason))
}

fn race_all(trick: Trick) {
    let mut ran = 0;
    for calls in races(trick) {
        let tally = race(trick, &calls);
        eprintln!("{} {trick:?}: {tally:?}", calls.tool.name());
        ran += tally.ran();
    }
    eprintln!("{ran} calls ran");
}

/// A tool that trusts the judged path.
struct Believer;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct BelieverInput {
    file_path: PathBuf,
}

impl Tool for Believer {
    type Input = BelieverInput;

    const NAME: &'static str = "Believer";

    fn is_read_only(&self, _: &BelieverInput) -> bool {
        false
    }

    fn access(&self, input: &BelieverInput, _: &ToolContext) -> Access {
        Access::Write(resolve(&input.file_path))
    }

    async fn run(&self, input: BelieverInput, _: &ToolContext) -> Result<ToolOutput, ToolError> {
        fs::write(&input.file_path, "two").unwrap();
        Ok(ToolOutput::text("written"))
    }
}

/// A control: the races below would find a leak if there were one.
#[test]
fn a_tool_that_believes_its_paths_is_led_outside() {
    for trick in [Trick::Directory, Trick::File] {
        let calls = Calls {
            tool: erase(Believer),
            file: "file",
            lure: "file",
            input: |scene, _| json!({"file_path": scene.path("a/dir/file")}),
        };
        let scene = Scene::new(trick, &calls);
        let is_led = || Scene::contents(&scene.outside) != scene.precious;
        let tally = play(&scene, &calls, |_, elapsed| is_led() || elapsed > PATIENCE);
        assert!(is_led(), "{trick:?}: {tally:?}");
    }
}

/// Removes `openat2` from this thread and the threads that it starts.
fn forget_openat2(errno: u32) {
    let rules = [(OPENAT2, Vec::new())].into_iter().collect();
    let arch = std::env::consts::ARCH.try_into().unwrap();
    let filter =
        SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(errno), arch).unwrap();
    let program: seccompiler::BpfProgram = filter.try_into().unwrap();
    apply_filter(&program).unwrap();
}

#[test]
fn a_directory_exchanged_for_a_link_in_a_loop_leads_no_tool_outside() {
    race_all(Trick::Directory);
}

#[test]
fn a_file_exchanged_for_a_link_in_a_loop_leads_no_tool_outside() {
    race_all(Trick::File);
}

#[test]
fn an_exchanged_directory_leads_no_tool_outside_where_the_kernel_lacks_openat2() {
    forget_openat2(rustix::io::Errno::NOSYS.raw_os_error().unsigned_abs());
    race_all(Trick::Directory);
}

#[test]
fn an_exchanged_file_leads_no_tool_outside_where_the_kernel_lacks_openat2() {
    forget_openat2(rustix::io::Errno::NOSYS.raw_os_error().unsigned_abs());
    race_all(Trick::File);
}

#[test]
fn a_container_that_forbids_openat2_changes_nothing() {
    forget_openat2(rustix::io::Errno::PERM.raw_os_error().unsigned_abs());
    exchange_between_judgement_and_use();
}

#[test]
fn an_exchange_between_judgement_and_use_is_refused() {
    exchange_between_judgement_and_use();
}

/// The same without luck: the exchange comes right after the judgement, and stays.
fn exchange_between_judgement_and_use() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let all = [Trick::Directory, Trick::File];
    for (trick, calls) in all.into_iter().flat_map(|it| races(it).map(move |calls| (it, calls))) {
        for n in 0..6 {
            let scene = Scene::new(trick, &calls);
            let what = format!("{} {trick:?} {n}", calls.tool.name());
            let input = (calls.input)(&scene, n);
            let result = runtime.block_on(scene.call(&*calls.tool, &input, Scene::exchange));
            assert_nothing_told(&what, &result.unwrap());
            scene.assert_untouched(&what);
        }
    }
}
