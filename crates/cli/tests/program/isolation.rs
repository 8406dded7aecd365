//! Hostile agents below an agent apart, and commands that outlive one: the caller's checkout stays as it is, and the
//! worktree is settled rightly.

use centurion_testkit::{Lack, skip};
use serde_json::{Value, json};

use crate::program::ended;
use crate::sandboxes::can_confine_completely;
use crate::stage::{Told, agent, bash};
use crate::worktrees::{Repository, apart, git_in, write};

/// Commands each of which would change a checkout at `$AT`, or its repository.
const ATTACKS: [&str; 12] = [
    "echo bad > $AT/a.txt",
    "rm -rf $AT/a.txt",
    "mv $AT/a.txt $AT/b.txt",
    "ln -s $AT up; echo bad > up/a.txt; rm up",
    "ln $AT/a.txt hard; echo bad > hard; rm hard",
    "cd $AT && git commit -q --allow-empty -m bad",
    "git -C $AT reset -q --hard HEAD~1",
    "git -C $AT branch bad",
    "GIT_DIR=$(git -C $AT rev-parse --absolute-git-dir) git config core.hooksPath /tmp",
    "GIT_DIR=$(git -C $AT rev-parse --absolute-git-dir) git update-ref refs/heads/main HEAD~1",
    "git push -q -f $AT HEAD:refs/heads/bad",
    "echo bad > $AT/.git/hooks/post-commit",
];

/// One command that tries all attacks on the checkouts that a word of the shell expands to, and leaves a mark.
fn attack(places: &str, mark: &str) -> Value {
    let all: Vec<String> = ATTACKS.iter().map(|it| format!("( {it} ) 2> /dev/null")).collect();
    bash(&format!("for AT in {places}; do {}; done; touch {mark}", all.join("; ")))
}

/// Runs the scripts without a question: only what confines commands is in their way.
fn run(repository: &Repository) {
    let mut command = repository.stage.command("@@lead", &["--dangerously-skip-permissions"]);
    Told::new(ended(command.env("IS_SANDBOX", "1").output().unwrap())).assert_code(0);
}

fn repository() -> Repository {
    let repository = Repository::new(&json!({}));
    repository.git("commit -q --allow-empty -m second");
    repository
}

#[test]
fn no_agent_below_one_apart_reaches_a_checkout_above_it() {
    // I-6
    if !can_confine_completely() {
        return skip(Lack::Sandbox);
    }
    let repository = repository();
    let top = repository.top.display().to_string();
    let edit = json!({"tool": "Edit", "input": {"file_path": format!("{top}/a.txt"), "old_string": "one", "new_string": "bad"}});
    let up = "../".repeat(3);
    // All checkouts but its own: the caller's, and the worktree of the agent that started it.
    let others = format!("{top} $(ls -d {top}/.claude/worktrees/agent-* | grep -vxF \"$PWD\")");
    repository.play(&json!({
        "lead": [[apart("@@outer", &json!({}))], "done"],
        "outer": [
            [bash("git commit -q --allow-empty -m outer; pwd > where.txt")],
            [agent("@@inside", &json!({})), apart("@@own", &json!({}))],
            "both",
        ],
        "inside": [
            [attack(&top, "inside.txt"), write(&format!("{top}/a.txt"), "bad\n"), write(&format!("{up}up.txt"), "bad\n"), edit],
            [agent("@@deep", &json!({}))],
            "tried",
        ],
        "deep": [[attack(&top, "deep.txt"), write(&format!("{top}/.git/hooks/pre-commit"), "bad\n")], "tried"],
        "own": [[attack(&others, "own.txt"), write(&format!("{top}/a.txt"), "bad\n")], "tried"],
    }));
    let before = repository.state();
    run(&repository);
    assert_eq!(repository.state(), before);
    assert_eq!(std::fs::read_to_string(repository.top.join("a.txt")).unwrap(), "one\n");
    for made in ["up.txt", "b.txt", ".git/hooks/post-commit", ".git/hooks/pre-commit"] {
        assert!(!repository.top.join(made).exists(), "{made}");
    }
    let worktrees = repository.worktrees();
    let with = |name: &str| worktrees.iter().find(|it| it.join(name).exists()).unwrap();
    // The agents that share the worktree of the one apart work there, and the third in its own.
    let outer = with("where.txt");
    assert_eq!((with("inside.txt"), with("deep.txt"), worktrees.len()), (outer, outer, 2));
    assert_ne!(with("own.txt"), outer);
    assert_eq!(std::fs::read_to_string(outer.join("a.txt")).unwrap(), "one\n");
    assert_eq!(git_in(outer, "log --format=%s"), "outer\nsecond\nfirst");
}

/// The attacks are real: an agent that is not apart does all that with them.
#[test]
fn the_same_attacks_work_below_an_agent_that_is_not_apart() {
    let repository = repository();
    let top = repository.top.display().to_string();
    repository.play(&json!({
        "lead": [[agent("@@outer", &json!({}))], "done"],
        "outer": [[agent("@@inside", &json!({}))], "tried"],
        "inside": [[attack(&top, "/dev/null")], "tried"],
    }));
    let before = repository.state();
    run(&repository);
    assert_ne!(repository.state(), before);
    assert!(repository.git("branch --list bad").contains("bad"));
    assert_ne!(repository.git("rev-parse main"), before.lines().last().unwrap());
}

#[test]
fn no_way_to_start_or_resume_an_agent_apart_lets_it_reach_the_checkout() {
    // I-6, S-125, S-275
    if !can_confine_completely() {
        return skip(Lack::Sandbox);
    }
    let repository = repository();
    let top = repository.top.display().to_string();
    let definition = "---\nname: lone\ndescription: d\nisolation: worktree\n---\nWork alone.\n";
    repository.stage.program.scratch.write_home(".claude/agents/lone.md", definition);
    let message =
        |text: &str| json!({"tool": "SendMessage", "input": {"to": "worker", "message": text}});
    let tries = |mark: &str| {
        json!([[attack(&top, mark), write(&format!("{top}/a.txt"), "bad\n")], "Scope: tried"])
    };
    repository.play(&json!({
        "lead": [[apart("@@first", &json!({"name": "worker"}))], [message("@@second")], "waiting", "heard"],
        "later": [[message("@@third")], "waiting", "heard"],
        "forks": [[apart("@@forked", &json!({"subagent_type": "fork"}))], "waiting", "heard"],
        "defined": [[agent("@@lone", &json!({"subagent_type": "lone"}))], "done"],
        "first": tries("first.txt"),
        "second": tries("second.txt"),
        "third": tries("third.txt"),
        "forked": tries("forked.txt"),
        "lone": tries("lone.txt"),
    }));
    let before = repository.state();
    for (prompt, flags, marks) in [
        ("@@lead", &[][..], &["first.txt", "second.txt"][..]),
        ("@@later", &["--continue"], &["third.txt"]),
        ("@@forks", &["--settings", r#"{"subagents": {"fork": "always"}}"#], &["forked.txt"]),
        ("@@defined", &[], &["lone.txt"]),
    ] {
        let flags = [&["--dangerously-skip-permissions"], flags].concat();
        let mut command = repository.stage.command(prompt, &flags);
        let told = Told::new(ended(command.env("IS_SANDBOX", "1").output().unwrap()));
        told.assert_code(0);
        assert_eq!(repository.state(), before, "{prompt}");
        for mark in marks {
            let is_there = repository.worktrees().iter().any(|it| it.join(mark).exists());
            assert!(is_there, "{mark}: {}", told.ended.stdout);
        }
    }
}

/// Places that the file tools of an agent apart must leave alone: in the caller's checkout and repository, around them, and
/// of its own repository, to which it has made the link `own`, what git obeys.
const KEPT: [&str; 22] = [
    "$TOP/a.txt",
    "../../../a.txt",
    "up/a.txt",
    "hard.txt",
    "$TOP/new.txt",
    "$TOP/.git/config",
    "$TOP/.git/HEAD",
    "$TOP/.git/index",
    "$TOP/.git/refs/heads/main",
    "$TOP/.git/hooks/pre-commit",
    "$TOP/.git/info/attributes",
    "$TOP/.git/objects/info/alternates",
    "$TOP/.git/worktrees/linked/gitdir",
    "$TOP/.git/worktrees/linked/commondir",
    "$TOP/.git/modules/lib/config",
    "$TOP/.claude/worktrees/other/a.txt",
    "$HOME/.gitconfig",
    "$HOME/.config/git/config",
    ".git",
    "own/config",
    "own/hooks/pre-commit",
    "own/objects/info/alternates",
];

#[test]
fn no_file_tool_of_an_agent_apart_changes_what_is_kept_from_it() {
    // I-6
    let repository = repository();
    let root = repository.stage.program.scratch.root().canonicalize().unwrap();
    repository.git(&format!("worktree add -q -b linked {}", root.join("linked").display()));
    let (top, home) = (&repository.top, repository.stage.program.scratch.home());
    for file in [".claude/worktrees/other/a.txt", ".git/modules/lib/config"] {
        std::fs::create_dir_all(top.join(file).parent().unwrap()).unwrap();
        std::fs::write(top.join(file), "theirs\n").unwrap();
    }
    std::fs::write(top.join(".claude/worktrees/.gitignore"), "*\n").unwrap();
    let (top_text, home_text) = (top.display().to_string(), home.display().to_string());
    let expanded = KEPT.map(|it| it.replace("$TOP", &top_text).replace("$HOME", &home_text));
    let calls = |path: &String| {
        let edit = json!({"file_path": path, "old_string": "one", "new_string": "bad"});
        let cell = json!({"notebook_path": path, "edit_mode": "insert", "cell_type": "code", "new_source": "bad"});
        [
            json!({"tool": "Read", "input": {"file_path": path}}),
            write(path, "bad\n"),
            json!({"tool": "Edit", "input": edit}),
            json!({"tool": "NotebookEdit", "input": cell}),
        ]
    };
    let calls: Vec<Value> = expanded.iter().flat_map(calls).collect();
    let links = format!(
        "ln -s {top_text} up; ln {top_text}/a.txt hard.txt; ln -s $(git rev-parse --absolute-git-dir) own; true"
    );
    let inside = [write("mine.txt", "mine\n"), write("own/COMMIT_EDITMSG", "mine\n")];
    repository.play(&json!({
        "lead": [[apart("@@child", &json!({}))], "done"],
        "child": [[bash(&links)], calls, inside, "tried"],
    }));
    let of_git = |name: &str| std::fs::read(top.join(".git").join(name)).ok();
    let parts = ["index", "HEAD", "packed-refs", "refs/heads/main", "objects/info/alternates"];
    let others = ["worktrees/linked/gitdir", "worktrees/linked/commondir", "modules/lib/config"];
    let all = || {
        let parts = parts.iter().chain(&others).map(|name| of_git(name));
        let homes =
            [".gitconfig", ".config/git/config"].map(|it| std::fs::read(home.join(it)).ok());
        (repository.state(), parts.collect::<Vec<_>>(), homes)
    };
    let before = all();
    run(&repository);
    assert_eq!(all(), before);
    let theirs = std::fs::read_to_string(top.join(".claude/worktrees/other/a.txt")).unwrap();
    assert_eq!(theirs, "theirs\n");
    let worktrees = repository.worktrees();
    let [path] = &worktrees[..] else { panic!("{worktrees:?}") };
    // The agent had its tools, and they work where they may.
    assert_eq!(std::fs::read_to_string(path.join("mine.txt")).unwrap(), "mine\n");
    // A second name of a file is parted from the first.
    assert_eq!(std::fs::read_to_string(path.join("hard.txt")).unwrap(), "bad\n");
    let name = path.file_name().unwrap();
    let own = top.join(".git/centurion/worktrees").join(name).join("git");
    let config = std::fs::read_to_string(own.join("config")).unwrap();
    assert!(config.contains("[core]") && !config.contains("bad"), "{config}");
    assert!(!own.join("hooks/pre-commit").exists());
}

/// Commands of agents that are not apart, in the user's sandbox: what we keep of the others decides what our own git does
/// without a sandbox.
#[test]
fn a_sandboxed_command_changes_nothing_that_is_kept_of_agents_apart() {
    if !can_confine_completely() {
        return skip(Lack::Sandbox);
    }
    let repository = repository();
    let settings = json!({"sandbox": {"enabled": true, "autoAllowBashIfSandboxed": true}});
    repository.stage.program.scratch.write_home(".claude/settings.json", settings.to_string());
    let kept = repository.top.join(".git/centurion");
    // No analysis of a command sees what these do, before there is anything, and when there is something.
    repository.write(
        "forge.sh",
        "mkdir -p .git/centurion/worktrees/x/git; echo bad > .git/centurion/worktrees/x/record.json
        mv .git/centurion .git/c; rm -rf .git/centurion; ln -s /tmp .git/centurion; touch forged.txt",
    );
    repository.write(
        "change.sh",
        "for d in .git/centurion/worktrees/*; do
        for f in git/config record.json git/hooks/post-checkout merging.json lease; do echo bad >> $d/$f; done; done
        touch changed.txt",
    );
    let script = |name: &str| bash(&format!("sh ./{name}"));
    repository.play(&json!({
        "lead": [
            [script("forge.sh")],
            [apart("@@child", &json!({}))],
            [script("change.sh"), script("forge.sh")],
            "done",
        ],
        "child": [[write("new.txt", "new\n")], "did"],
    }));
    let told = repository.run(&[]);
    told.assert_code(0);
    for tried in ["forged.txt", "changed.txt"] {
        assert!(repository.top.join(tried).exists(), "{}", told.ended.stdout);
    }
    assert!(!kept.join("worktrees/x").exists() && !repository.top.join(".git/c").exists());
    let bad = std::process::Command::new("grep").args(["-rl", "bad"]).arg(&kept).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&bad.stdout), "");
    let listed = repository.stage.program.run(&["worktrees"]);
    assert!(listed.stdout.contains("kept"), "{}", listed.stdout);
}

/// A process that continues by itself: it writes to the caller's checkout, and `$1` to say that it runs.
const LATE: &str =
    "sh -c 'while :; do echo bad > $AT/a.txt; echo late >> $1; sleep 0.02; done' late-mark";

#[test]
fn what_outlives_an_agent_apart_writes_nowhere_and_its_worktree_is_settled() {
    // I-6, I-7, I-13
    if !can_confine_completely() {
        return skip(Lack::Sandbox);
    }
    let repository = repository();
    let root = repository.stage.program.scratch.root().canonicalize().unwrap();
    let (top, alive) = (repository.top.display().to_string(), root.join("alive"));
    let in_background = |command: &str| json!({"tool": "Bash", "input": {"command": command, "run_in_background": true}});
    let until = |file: &str| format!("until [ -s {file} ]; do sleep 0.01; done");
    let shell = format!("AT={top}; export AT; {LATE} one.txt");
    let daemon = format!(
        "AT={top}; export AT; setsid {LATE} two.txt > /dev/null 2>&1 & {}",
        until("two.txt")
    );
    // Processes that are alive when the caller continues; the pattern is not in its own line.
    let look =
        format!("grep -lzs 'late-[m]ark' /proc/[0-9]*/cmdline | wc -l > {}", alive.display());
    let idle = format!("AT={top}; export AT; {LATE} /dev/null");
    repository.play(&json!({
        "lead": [
            [apart("@@child", &json!({}))],
            [bash(&look)],
            [apart("@@idle", &json!({}))],
            [bash(&look.replace("> ", ">> "))],
            "done",
        ],
        "child": [[in_background(&shell)], [bash(&daemon)], [bash(&until("one.txt"))], "left them running"],
        "idle": [[in_background(&idle)], "left it running"],
    }));
    let before = repository.state();
    run(&repository);
    assert_eq!(repository.state(), before);
    assert_eq!(std::fs::read_to_string(repository.top.join("a.txt")).unwrap(), "one\n");
    let alive = std::fs::read_to_string(alive).unwrap();
    assert_eq!(
        alive.split_whitespace().collect::<Vec<_>>(),
        ["0", "0"],
        "what ran after its agent"
    );
    // Of the first, all that was written is kept; of the second, which wrote nothing there, nothing is left.
    let [path] = &repository.worktrees()[..] else { panic!("{:?}", repository.worktrees()) };
    let kept = repository.git("for-each-ref --format=%(refname) refs/centurion/agents");
    let kept = kept.lines().find(|it| it.ends_with("/uncommitted")).unwrap();
    for file in ["one.txt", "two.txt"] {
        let written = std::fs::read_to_string(path.join(file)).unwrap();
        assert_eq!(repository.git(&format!("show {kept}:{file}")), written.trim(), "{file}");
    }
    let listed = repository.stage.program.run(&["worktrees"]);
    assert!(listed.stdout.contains("kept"), "{}", listed.stdout);
}

/// Puts a link in the place of every worktree as soon as it is seen, and writes down how often.
const EXCHANGE: &str = "while [ ! -e stop ]; do for w in .claude/worktrees/agent-????????; do
    if [ -d $w ] && [ ! -L $w ] && mv -T $w $w.was && ln -s $VICTIM $w; then echo $w >> exchanged; fi
    done; done";

#[test]
fn a_command_that_puts_links_in_the_place_of_worktrees_has_nothing_outside_written() {
    // I-6, I-7
    if !can_confine_completely() {
        return skip(Lack::Sandbox);
    }
    let repository = repository();
    let settings = json!({"sandbox": {"enabled": true, "autoAllowBashIfSandboxed": true}});
    repository.stage.program.scratch.write_home(".claude/settings.json", settings.to_string());
    repository.write(".bashrc", "echo bad\n");
    // The sandbox keeps all of the place of missing ones.
    repository.write(".claude/settings.json", "{}");
    repository.write(".claude/worktrees/.gitignore", "*\n");
    repository.git("add -f .bashrc .claude/settings.json");
    repository.git("commit -q -m bad");
    // No sandboxed command can write there.
    let victim = repository.stage.program.scratch.root().canonicalize().unwrap().join("victim");
    std::fs::create_dir(&victim).unwrap();
    std::fs::write(victim.join("a.txt"), "precious\n").unwrap();
    let command = format!("VICTIM={}; {EXCHANGE}", victim.display());
    let exchange =
        json!({"tool": "Bash", "input": {"command": command, "run_in_background": true}});
    let starts: Vec<Value> = (0..6).map(|_| apart("@@child", &json!({}))).collect();
    repository.play(&json!({
        "lead": [[exchange], starts, starts, [bash("touch stop")], "done"],
        "child": [[bash("echo bad > a.txt; echo bad > new.txt"), write("new.txt", "bad\n")], "tried"],
    }));
    let before = repository.git("rev-parse HEAD");
    // Only the sandbox and the place of a file say what may be done.
    let told = repository.stage.run("@@lead", &["--permission-mode", "acceptEdits"]);
    told.assert_code(0);
    assert!(repository.top.join("exchanged").exists(), "{}", told.ended.stdout);
    repository.stage.program.run(&["worktrees", "clean"]);
    let found: Vec<_> = std::fs::read_dir(&victim).unwrap().map(|it| it.unwrap().path()).collect();
    assert_eq!(found, [victim.join("a.txt")], "{}", told.ended.stdout);
    assert_eq!(std::fs::read_to_string(victim.join("a.txt")).unwrap(), "precious\n");
    assert_eq!(repository.git("rev-parse HEAD"), before);
}
