//! Comparison of the shell parser with the real bash.
//!
//! Texts are generated from numbers and run. Everything that bash ran, wrote or read must be within the decision: an
//! allowed text runs nothing that is not allowed, and a text that runs a denied program is not allowed.
//! `CENTURION_SHELL_TEXTS` sets the number of texts, `CENTURION_SHELL_SEED` the first.
#![expect(clippy::print_stderr, reason = "a long search says how far it is")]
#![expect(clippy::unwrap_used, reason = "a search that cannot run has failed")]

mod bash;
#[path = "../permissions/disk.rs"]
mod disk;
mod texts;

use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bash::{Bash, Deeds};
use centurion_permissions::{
    Access, Call, Policy, Reason, Rule, RuleOrigin, RuleSet, Verdict, decide,
};
use landlock::{
    ABI, AccessFs, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, path_beneath_rules,
};

/// At least this many texts, and as many as fit in a minute.
const TEXTS: u64 = 15_000;
const TIME: Duration = Duration::from_mins(1);
const SEED: u64 = 1;

/// Of ten thousand texts, this many may never end: their effects are not judged.
const MOST_HUNG: u64 = 20;

/// Links, two to a guarded file and one to a directory.
const LINKS: [(&str, &str); 3] = [("l1", "secret"), ("d/l2", "../secret"), ("dl", "d")];

const FILES: [(&str, &str); 7] = [
    ("f1", "bb x\n"),
    ("secret", "topsecret\n"),
    (".hidden", "x\n"),
    ("d/f2", "y\n"),
    ("d/secret", "topsecret\n"),
    ("ok/keep", "x\n"),
    ("no", "x\n"),
];

/// Programs that only read, as permission knows them. Some arise when a text is mutated.
const READERS: [&str; 24] = [
    "arch", "cat", "cmp", "column", "comm", "cut", "date", "df", "dirname", "expand", "fold",
    "head", "id", "join", "ls", "nl", "od", "paste", "rev", "seq", "stat", "tac", "tail", "tr",
];

struct Judge {
    /// No rule at all.
    bare: Policy,
    /// Allows some programs and one directory.
    some: Policy,
    /// Allows everything but one program.
    all_but_program: Policy,
    /// Allows everything but reading one name.
    all_but_file: Policy,
    /// Allows everything but writing one name.
    all_but_writing: Policy,
    everything: Policy,
}

fn rules(text: &str) -> RuleSet {
    Rule::parse_list(text, &RuleOrigin::Flag).expect("a good rule").into()
}

impl Judge {
    fn new(work: &Path, home: &Path) -> Self {
        let bare = Policy {
            cwd: work.to_owned(),
            project_root: work.to_owned(),
            home: Some(home.to_owned()),
            directories: vec![work.to_owned()],
            ..Policy::default()
        };
        let with = |allow: &str, deny: &str| {
            let deny = if deny.is_empty() { RuleSet::default() } else { rules(deny) };
            Policy { allow: rules(allow), deny, ..bare.clone() }
        };
        Self {
            some: with("Bash(aa *) Bash(bb x *) Edit(ok/**)", ""),
            all_but_program: with("Bash", "Bash(bb *)"),
            all_but_file: with("Bash", "Read(secret)"),
            all_but_writing: with("Bash", "Edit(secret)"),
            everything: with("Bash", ""),
            bare,
        }
    }

    /// Whether any policy lets the text run, so that it is worth running.
    fn is_worth_running(&self, text: &str) -> bool {
        stays_inside(text) && allows(&self.everything, text)
    }

    /// The fault of the decision, if there is one.
    fn fault(&self, text: &str, deeds: &Deeds) -> Option<String> {
        let programs = || deeds.ran.iter().filter_map(|words| words.first()).map(String::as_str);
        let reads = |program: &str| READERS.contains(&program);
        if allows(&self.bare, text) {
            // `time` is a program where it does not begin a pipeline.
            let inner = deeds.ran.iter().filter_map(|words| match words.as_slice() {
                [time, program, ..] if time == "time" && !program.starts_with('-') => Some(program),
                words => words.first(),
            });
            let mut inner = inner.map(String::as_str);
            if let Some(program) =
                inner.find(|program| !reads(program) && !["echo", "time", "true"].contains(program))
            {
                return Some(format!("without rules it ran {program}"));
            }
            if let Some(file) = deeds.changed.first() {
                return Some(format!("without rules it wrote {file}"));
            }
        }
        if allows(&self.some, text) {
            let given = |words: &&Vec<String>| match words.first().map(String::as_str) {
                // Where it does not begin a pipeline, it is a program.
                Some("time") => words.get(1).is_none_or(|word| word != "bb" && word != "cc"),
                Some("aa") | None => true,
                Some("bb") => words.get(1).is_some_and(|word| word == "x"),
                Some(program) => reads(program),
            };
            if let Some(words) = deeds.ran.iter().find(|words| !given(words)) {
                return Some(format!("with some rules it ran {words:?}"));
            }
            if let Some(file) = deeds.changed.iter().find(|file| !file.starts_with("ok/")) {
                return Some(format!("with some rules it wrote {file}"));
            }
        }
        if programs().any(|program| program == "bb") && allows(&self.all_but_program, text) {
            return Some("it ran bb past Bash(bb *)".to_owned());
        }
        let work = &self.bare.cwd;
        // The rule is about the project, not about files of that name elsewhere.
        let names = |place: &Path, path: &str| {
            let mut clean = PathBuf::new();
            for part in place.join(path).components() {
                if part == Component::ParentDir {
                    clean.pop();
                } else {
                    clean.push(part);
                }
            }
            clean.strip_prefix(work).is_ok_and(|path| path.iter().any(|name| name == "secret"))
        };
        let shows = |place: &Path, word: &String| {
            let value = word.split_once('=').map(|(_, value)| value);
            word.contains("topsecret")
                || names(place, word)
                || value.is_some_and(|value| names(place, value))
        };
        // A program that only prints the name opens no file.
        let speaks = |words: &Vec<String>| words.first().is_some_and(|word| word == "time");
        let leads = |place: &Path, word: &String| {
            let value = word.split_once('=').map_or(word.as_str(), |(_, value)| value);
            let leads = |path: &str| {
                let real = place.join(path).canonicalize();
                real.is_ok_and(|path| path.starts_with(work) && path.ends_with("secret"))
            };
            leads(word) || leads(value)
        };
        let mut opening = deeds.ran.iter().zip(&deeds.places).filter(|(words, _)| !speaks(words));
        let reads_secret = opening.any(|(words, place)| {
            words.iter().skip(1).any(|word| shows(place, word) || leads(place, word))
        });
        if reads_secret && allows(&self.all_but_file, text) {
            return Some("it named or read the secret past Read(secret)".to_owned());
        }
        let wrote = deeds.changed.iter().any(|file| file.rsplit('/').next() == Some("secret"));
        if wrote && allows(&self.all_but_writing, text) {
            return Some("it wrote the secret past Edit(secret)".to_owned());
        }
        deeds.ran.iter().find_map(|words| self.unseen(text, words))
    }

    /// A command that ran although a rule denies exactly that command and did not match.
    fn unseen(&self, text: &str, words: &[String]) -> Option<String> {
        let line = words.join(" ");
        let plain = |c: char| c.is_ascii_graphic() || c == ' ';
        let exact = line.chars().all(plain) && !line.ends_with(" *") && !line.ends_with(":*");
        // Spaces around a rule are not a part of it, and a colon may make it one about a parameter.
        if !exact
            || line.trim() != line
            || line.is_empty()
            || line.contains([':', '*', '\\', '(', ')', ','])
        {
            return None;
        }
        let rule = Rule::parse(&format!("Bash({line})"), RuleOrigin::Flag).ok()?;
        let policy = Policy { deny: vec![rule].into(), ..self.everything.clone() };
        allows(&policy, text).then(|| format!("it ran {line:?} past a rule that denies just that"))
    }
}

/// Whether every slash follows a plain name: nothing at the root of this machine is written to.
fn stays_inside(text: &str) -> bool {
    // In a loop, `..` leads to the root.
    if text.contains("..") && (text.contains("do ") || text.contains("()")) {
        return false;
    }
    let text = text.replace("/dev/null", "");
    text.match_indices('/').all(|(at, _)| {
        let before = text.get(..at).unwrap_or_default();
        let is_name = |c: char| c.is_ascii_alphanumeric() || "._*?]~+".contains(c);
        let start = before.trim_end_matches(is_name);
        start.len() < before.len() && !start.ends_with(['$', '{', '!', '#', '@', '[', '%'])
    })
}

fn allows(policy: &Policy, text: &str) -> bool {
    let access = Access::Shell(text.to_owned());
    let call = Call { links: &disk::Disk, ..Call::new("Bash", &access) };
    decide(policy, &call).verdict == Verdict::Allow
}

/// The text without all parts that the fault does not need.
fn shrink(text: &str, bash: &mut Bash, judge: &Judge) -> String {
    let mut small = text.to_owned();
    let mut size = small.chars().count() / 2;
    while size > 0 {
        let mut at = 0;
        while at < small.chars().count() {
            let shorter: String = small
                .chars()
                .enumerate()
                .filter(|(index, _)| *index < at || *index >= at + size)
                .map(|(_, character)| character)
                .collect();
            let fails = judge.is_worth_running(&shorter)
                && bash.run(&shorter).is_some_and(|deeds| judge.fault(&shorter, &deeds).is_some());
            if fails {
                small = shorter;
            } else {
                at += size;
            }
        }
        size /= 2;
    }
    small
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().expect("a number"))
}

#[derive(Default)]
struct Counts {
    made: AtomicU64,
    run: AtomicU64,
    hung: AtomicU64,
}

/// Confines this thread, and everything that it starts, to writes below a directory, where the kernel can do that.
fn confine(root: &Path) {
    let writing = AccessFs::from_write(ABI::V3);
    let rules = path_beneath_rules([root, Path::new("/dev/null")], writing);
    let ruleset = Ruleset::default().handle_access(writing).unwrap().create().unwrap();
    ruleset.add_rules(rules).unwrap().restrict_self().unwrap();
}

fn search(
    seeds: impl Iterator<Item = u64>,
    may_stop: impl Fn(u64) -> bool,
    counts: &Counts,
    faults: &parking_lot::Mutex<Vec<String>>,
) {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().canonicalize().unwrap();
    confine(&root);
    let mut bash = Bash::new(&root, &FILES, &LINKS);
    let judge = Judge::new(bash.work(), &root);
    for seed in seeds {
        if may_stop(seed) {
            break;
        }
        let made = counts.made.fetch_add(1, Ordering::Relaxed) + 1;
        if made.is_multiple_of(50_000) {
            eprintln!("{made} texts so far");
        }
        let text = texts::text(seed);
        if !judge.is_worth_running(&text) {
            continue;
        }
        counts.run.fetch_add(1, Ordering::Relaxed);
        let Some(deeds) = bash.run(&text) else {
            counts.hung.fetch_add(1, Ordering::Relaxed);
            continue;
        };
        if judge.fault(&text, &deeds).is_none() {
            continue;
        }
        // Alone and once more: a process of an earlier text proves nothing.
        let confirmed = bash.run(&text).and_then(|deeds| judge.fault(&text, &deeds));
        if let Some(fault) = confirmed {
            let small = shrink(&text, &mut bash, &judge);
            let deeds = bash.run(&small);
            let said =
                format!("seed {seed}: {fault}\n  text  {text:?}\n  short {small:?} did {deeds:?}");
            eprintln!("{said}");
            let mut faults = faults.lock();
            faults.push(said);
            if faults.len() >= 20 {
                return;
            }
        }
    }
}

#[test]
fn bash_does_nothing_that_permission_did_not_say() {
    let seed = number("CENTURION_SHELL_SEED", SEED);
    let count = number("CENTURION_SHELL_TEXTS", TEXTS);
    let time =
        if std::env::var_os("CENTURION_SHELL_TEXTS").is_some() { Duration::ZERO } else { TIME };
    let threads = std::thread::available_parallelism().map_or(2, usize::from).min(8) as u64;
    let counts = Counts::default();
    let faults = parking_lot::Mutex::new(Vec::new());
    let started = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let seeds = (seed..).filter(move |seed| seed % threads == thread);
            let may_stop = move |at: u64| at >= seed + count && started.elapsed() >= time;
            let (counts, faults) = (&counts, &faults);
            scope.spawn(move || search(seeds, may_stop, counts, faults));
        }
    });
    let (run, hung) = (counts.run.into_inner(), counts.hung.into_inner());
    let count = counts.made.into_inner();
    eprintln!(
        "{count} texts from seed {seed}: {run} were read and run, {hung} hung, {:.0} s",
        started.elapsed().as_secs_f64()
    );
    let faults = faults.into_inner();
    assert!(faults.is_empty(), "{} texts did more:\n{}", faults.len(), faults.join("\n"));
    assert!(run * 8 > count, "only {run} of {count} texts were read: the test proves little");
    assert!(hung * 10_000 <= count * MOST_HUNG, "{hung} texts hung");
}

/// A control: with the parser switched off, the search finds a denied program.
#[test]
fn the_search_finds_a_program_that_runs_unseen() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().canonicalize().unwrap();
    let mut bash = Bash::new(&root, &FILES, &LINKS);
    let judge = Judge::new(bash.work(), &root);
    let deeds = bash.run("aa x; $(gen); echo y > out; bb secret &").unwrap();
    let mut programs: Vec<&str> = deeds.ran.iter().map(|words| words[0].as_str()).collect();
    programs.sort_unstable();
    assert_eq!(programs, ["aa", "bb", "bb", "gen"]);
    assert_eq!(deeds.changed, ["out"]);
    assert!(judge.fault("aa x", &deeds).is_some(), "what ran is not what was judged");
    let sourced = bash.run("echo bb > n1; . ./n1; . ./f1").unwrap();
    assert_eq!(sourced.ran, [["bb"]], "a file that was there is only named");
    let access = Access::Shell("aa\rx".to_owned());
    let decision = decide(&judge.everything, &Call::new("Bash", &access));
    assert!(matches!(decision.reason, Reason::Unreadable { .. }));
}
