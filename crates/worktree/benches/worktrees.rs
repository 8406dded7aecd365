//! The cost of worktrees in a repository of 20,000 files, held to targets.
//!
//! `cargo bench -p centurion-worktree` makes the repository and prints: how long making a worktree takes beside `git worktree
//! add` alone, in turn; how long it takes to decide that one in which nothing was done can go, by how many processes of
//! git; and fifty worktrees at once, half of them worked in, made, ended and removed or kept. Of each time the least and
//! the median are printed; the least is held to the target, because other programs run, too. It exits with 1 above a
//! target. `TMPDIR=/dev/shm` takes the disk out of it.
#![expect(clippy::print_stdout, reason = "a benchmark prints")]

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use centurion_protocol::Env;
use centurion_worktree::{
    Contents, Direct, Finished, Git, Owner, Program, RunProgram, Running, Settled, Slug, Wish,
    Worktrees,
};

/// Where programs are.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

const DIRECTORIES: usize = 200;
const FILES: usize = 100;
const ROUNDS: usize = 7;
const AT_ONCE: usize = 50;

/// Counts the processes.
#[derive(Default)]
struct Counting(AtomicUsize);

impl RunProgram for Counting {
    fn run(&self, program: Program) -> Running<'_> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Direct.run(program)
    }
}

fn git(top: &Path, args: &[&str]) {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=T", "-c", "user.email=t@localhost"]).args(args);
    let output = command.current_dir(top).output().expect("git is there");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn repository(top: &Path) {
    fs::create_dir(top).expect("a new directory");
    git(top, &["init", "--quiet", "--initial-branch=main"]);
    for directory in 0..DIRECTORIES {
        let path = top.join(format!("d{directory}"));
        fs::create_dir(&path).expect("a new directory");
        for file in 0..FILES {
            let text = format!("{directory} {file}\n").repeat(10);
            fs::write(path.join(format!("f{file}.txt")), text).expect("room");
        }
    }
    git(top, &["add", "."]);
    git(top, &["commit", "--quiet", "--message", "all"]);
}

fn wish(name: &str) -> Wish {
    Wish {
        slug: Slug::parse(name).expect("a good name"),
        owner: Owner { agent: Some(name.to_owned()), ..Owner::default() },
        is_private: true,
        is_fresh: false,
        contents: Contents::default(),
    }
}

/// The least and the median of some times.
#[derive(Clone, Copy)]
struct Times {
    least: Duration,
    median: Duration,
}

impl Times {
    fn of(mut times: Vec<Duration>) -> Self {
        times.sort();
        Self { least: times[0], median: times[times.len() / 2] }
    }
}

/// The most time that making a worktree may take, as a multiple of `git worktree add`.
const MOST_OF_GIT: f64 = 1.10;

/// The most time and the most processes that the decision may take.
const MOST_DECIDING: (Duration, usize) = (Duration::from_millis(20), 2);

async fn remove(worktrees: &Worktrees, worktree: centurion_worktree::Worktree) {
    match worktrees.settle(worktree, None).await.expect("settled") {
        Settled::Removed(trash) => trash.delete(),
        Settled::Kept(report) => panic!("kept: {report:?}"),
    }
}

/// What one worktree costs.
struct One {
    alone: Times,
    ours: Times,
    decided: Times,
    /// The processes of making one, and of deciding.
    making: usize,
    deciding: usize,
}

/// Makes and ends one worktree after the other, in turn with git alone.
async fn measure_one(top: &Path, worktrees: &Worktrees, counting: &Counting) -> One {
    let (mut alone, mut ours, mut decided) = (Vec::new(), Vec::new(), Vec::new());
    let (mut making, mut deciding) = (0, 0);
    for round in 0..ROUNDS {
        let other = top.join(".git/other");
        let began = Instant::now();
        let path = other.display().to_string();
        git(top, &["worktree", "add", "--quiet", "-b", &format!("b{round}"), &path]);
        alone.push(began.elapsed());
        git(top, &["worktree", "remove", "--force", &path]);
        let before = counting.0.load(Ordering::Relaxed);
        let began = Instant::now();
        let made = worktrees.create(top, &wish(&format!("one{round}"))).await;
        let mut made = made.expect("made");
        ours.push(began.elapsed());
        making = counting.0.load(Ordering::Relaxed) - before;
        let before = counting.0.load(Ordering::Relaxed);
        let began = Instant::now();
        let finished = worktrees.finish(&mut made, None).await.expect("looked at");
        decided.push(began.elapsed());
        deciding = counting.0.load(Ordering::Relaxed) - before;
        assert_eq!(finished, Finished::Untouched);
        remove(worktrees, made).await;
    }
    let (alone, ours, decided) = (Times::of(alone), Times::of(ours), Times::of(decided));
    One { alone, ours, decided, making, deciding }
}

impl One {
    fn ratio(&self) -> f64 {
        self.ours.least.as_secs_f64() / self.alone.least.as_secs_f64()
    }

    fn print(&self) {
        let line = |name: &str, times: Times, more: &str| {
            let Times { least, median } = times;
            println!("{name:<28}{least:>10.1?}{median:>10.1?}  {more}");
        };
        line("git worktree add alone", self.alone, "");
        let ratio = self.ratio();
        let making = format!("{} processes, {ratio:.2} of git alone", self.making);
        line("a worktree of ours", self.ours, &making);
        line("deciding that it can go", self.decided, &format!("{} processes", self.deciding));
    }

    fn is_within_targets(&self) -> bool {
        let (time, processes) = MOST_DECIDING;
        let is_decided = self.decided.least <= time && self.deciding <= processes;
        self.ratio() <= MOST_OF_GIT && is_decided
    }
}

/// Makes, ends, keeps and removes many at once.
async fn measure_many(top: &Path, worktrees: &Worktrees) -> Duration {
    let began = Instant::now();
    let makes = (0..AT_ONCE).map(|n| {
        let (worktrees, top) = (worktrees.clone(), top.to_owned());
        tokio::spawn(async move {
            let name = format!("many{n}");
            let mut made = worktrees.create(&top, &wish(&name)).await.expect("made");
            let is_worked_in = n % 2 == 0;
            if is_worked_in {
                fs::write(made.record.path.join("d0/f0.txt"), name).expect("room");
            }
            match worktrees.finish(&mut made, Some(&top)).await.expect("finished") {
                Finished::Kept(report) => {
                    assert!(is_worked_in && report.uncommitted == 1, "{report:?}");
                }
                Finished::Untouched => {
                    assert!(!is_worked_in);
                    remove(&worktrees, made).await;
                }
            }
        })
    });
    let all: Vec<_> = makes.collect();
    for made in all {
        made.await.expect("no agent fails");
    }
    let took = began.elapsed();
    let left = worktrees.list(top).await.expect("listed").len();
    assert_eq!(left, AT_ONCE / 2, "half of them were worked in");
    took
}

#[tokio::main]
async fn main() -> ExitCode {
    let scratch = tempfile::tempdir().expect("a directory");
    let top = scratch.path().canonicalize().expect("a directory").join("repository");
    repository(&top);
    let counting = Arc::new(Counting::default());
    let env = Env::from([("PATH", PATH), ("HOME", "/nonexistent")]);
    let program = PATH.split(':').map(|it| Path::new(it).join("git")).find(|it| it.is_file());
    let git_program = Git::new(program.expect("git is there"), &env, counting.clone());
    let worktrees = Worktrees::new(git_program);
    let one = measure_one(&top, &worktrees, &counting).await;
    one.print();
    println!("{AT_ONCE} at once {:>28.1?}", measure_many(&top, &worktrees).await);
    if one.is_within_targets() {
        return ExitCode::SUCCESS;
    }
    let (time, processes) = MOST_DECIDING;
    println!(
        "above the targets: {MOST_OF_GIT} of git alone, {time:?} and {processes} processes to decide"
    );
    ExitCode::FAILURE
}
