//! Commands of an agent in a worktree of its own, with real git: whatever they try, the checkout, repository and
//! configuration around it do not change.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use centurion_protocol::Env;
use centurion_sandbox::{Bubblewrap, Namespaces, Sandbox, Support};
use centurion_testkit::{Lack, skip};
use centurion_tools::{
    DeniedFiles, Guarantee, IsolatedPlaces, SandboxPolicy, SandboxSettings, WorktreePaths,
};
use serde_json::json;

use crate::sandbox::{no_support, supports};
use crate::support::{Session, eventually, text};

/// Makes a repository `top` with a worktree and git data of its own, a home and a configuration for all users.
const SETUP: &str = r#"
set -e
mkdir -p home/.config/git tmp
printf '[user]\n\tname = A\n\temail = a@example.org\n' > home/.gitconfig
: > home/.config/git/config; : > system
git init -q -b main top
cd top
mkdir sub
echo one > file; echo deep > sub/deep; echo '#!/bin/sh' > run.sh; chmod +x run.sh; ln -s file link
printf '.claude/\n' > .gitignore
git add -A; git commit -qm first
git branch feature
echo two > file; git commit -qam second
git tag -m release v1
echo three > sub/deep; git commit -qam third
printf '#!/bin/sh\nexit 0\n' > .git/hooks/pre-push; chmod +x .git/hooks/pre-push
echo staged > staged; git add staged; echo unstaged >> run.sh
git worktree add -q --detach "$W"
mkdir -p "$G/objects/info" "$G/objects/pack" "$G/refs"
echo "$TOP/.git/objects" > "$G/objects/info/alternates"
printf '[include]\n\tpath = %s\n[core]\n\tbare = false\n\tworktree = %s\n' "$TOP/.git/config" "$W" > "$G/config"
echo '# pack-refs with: peeled fully-peeled sorted' > "$G/packed-refs"
git for-each-ref --format='%(objectname) %(refname)' >> "$G/packed-refs"
mkdir -p "$G/refs/heads"; git rev-parse HEAD > "$G/refs/heads/agent"
echo 'ref: refs/heads/agent' > "$G/HEAD"
mv .git/worktrees/w/index "$G/index"
rm -rf .git/worktrees
echo "gitdir: $G" > "$W/.git"
git worktree add -q --detach .claude/worktrees/sibling
git -C "$W" status --short
"#;

/// Each would change something around the worktree without the isolation.
const ATTACKS: [&str; 54] = [
    // Paths.
    "echo x > \"$TOP/file\"",
    "echo x > ../../../file",
    "echo x > \"$TOP/new\"",
    "mkdir -p \"$TOP/.claude/worktrees/other\"; echo x > \"$TOP/.claude/new\"",
    "rm -rf \"$TOP/sub\"",
    "chmod 600 \"$TOP/file\"",
    "touch -h \"$TOP/link\"; ln -sfn elsewhere \"$TOP/link\"",
    "echo x > \"/proc/self/root$TOP/file\"",
    "echo x > \"/proc/$$/cwd/../../../file\"",
    "ln -s \"$TOP\" up; echo x > up/file",
    "ln \"$TOP/file\" hard && echo x > hard",
    "ln \"$TOP/file\" \"$HOME/../tmp/hard\" && echo x > \"$HOME/../tmp/hard\"",
    "exec 5< \"$TOP\"; echo x > /proc/self/fd/5/file",
    "perl -e 'truncate(\"$ENV{TOP}/file\", 0)'",
    "tar -C \"$TOP\" -xf <(tar -C \"$HOME\" -cf - .gitconfig)",
    "mv \"$TOP\" \"$TOP-moved\"",
    "mv \"${TOP%/*}\" \"${TOP%/*}-moved\"",
    // Git in the other checkout.
    "cd \"$TOP\" && git commit -qam x",
    "git -C \"$TOP\" commit -qam x",
    "git -C \"$TOP\" reset -q --hard HEAD~1",
    "git -C \"$TOP\" checkout -q feature -f",
    "git -C \"$TOP\" stash",
    "git -C \"$TOP\" add -A",
    "git --git-dir=\"$TOP/.git\" --work-tree=\"$TOP\" commit -qam x",
    "GIT_DIR=\"$TOP/.git\" GIT_WORK_TREE=\"$TOP\" git commit -qam x",
    "GIT_DIR=\"$TOP/.git\" git update-ref refs/heads/main HEAD~1",
    "GIT_INDEX_FILE=\"$TOP/.git/index\" git read-tree --empty",
    "GIT_OBJECT_DIRECTORY=\"$TOP/.git/objects\" git hash-object -w --stdin <<< new",
    "git push -q \"$TOP\" HEAD~1:refs/heads/feature --force",
    "git push -q \"$TOP\" HEAD:refs/heads/new",
    // Worktrees.
    "git -C \"$TOP\" worktree add -q \"$HOME/../tmp/other\"",
    "git -C \"$TOP\" worktree add -q --detach \"$W/other\"",
    "mkdir \"$TOP/.git/worktrees\" \"$TOP/.git/centurion/new\"",
    "git -C \"$TOP\" worktree remove --force .claude/worktrees/sibling",
    "git -C \"$TOP\" worktree move .claude/worktrees/sibling \"$HOME/../tmp/sibling\"",
    "git -C \"$TOP\" worktree lock .claude/worktrees/sibling",
    "mv \"$TOP/.claude/worktrees/sibling\" \"$HOME/../tmp/s\"; git -C \"$TOP\" worktree repair \"$HOME/../tmp/s\"",
    "echo x > ../sibling/file; echo \"gitdir: $G\" > ../sibling/.git",
    "echo \"gitdir: $TOP/.git\" > .git; git commit -qam x --allow-empty",
    "rm -f .git; echo \"gitdir: $TOP/.git\" > .git; git commit -qm x --allow-empty",
    // Programs that git runs.
    "echo x > \"$TOP/.git/hooks/post-commit\"",
    "git -C \"$TOP\" config core.hooksPath /tmp",
    "git -C \"$TOP\" config core.fsmonitor /tmp/x",
    "git config --global core.hooksPath /tmp",
    "git config --system core.fsmonitor /tmp/x",
    "git config --file \"$HOME/.config/git/config\" core.hooksPath /tmp",
    "mv \"$HOME/.config\" \"$HOME/other\"; mkdir -p \"$HOME/.config/git\"",
    "mv \"$HOME\" \"$HOME-moved\"",
    // Objects.
    "echo \"$HOME\" >> \"$TOP/.git/objects/info/alternates\"",
    "rm -rf \"$TOP/.git/objects\"",
    "chmod -R u+w \"$TOP/.git/objects\"; find \"$TOP/.git/objects\" -type f -exec truncate -s 0 {} +",
    "git -C \"$TOP\" gc -q --prune=now",
    // Repositories within the worktree that name another.
    "mkdir s; echo \"gitdir: $TOP/.git\" > s/.git; git -C s commit -qm x --allow-empty",
    "git -c protocol.file.allow=always submodule add -q \"$TOP\" m; git -C m commit -qm x --allow-empty; \
     git -C m push -q origin HEAD:refs/heads/stolen",
];

/// Each also destroys the agent's own data.
const WRECKING: [&str; 5] = [
    "rm -rf \"$TOP/.git/centurion\"",
    "mv \"$TOP/.git\" \"$HOME/../tmp/git\"",
    "cp -r \"$W\" \"$HOME/../tmp/copy\"; rm -rf \"$W\"; ln -s \"$TOP\" \"$W\"",
    "mv \"$W\" \"$HOME/../tmp/moved\"",
    "rm -rf \"$TOP\" \"$HOME\"",
];

/// These stay in the worktree and its git data by themselves, or change a kept path in there.
const INSIDE: [&str; 15] = [
    "GIT_DIR=\"$G\" GIT_COMMON_DIR=\"$TOP/.git\" git branch stolen",
    "git update-ref refs/heads/main HEAD~1",
    "git branch -f feature HEAD",
    "git tag -d v1",
    "git fetch -q \"$TOP\"",
    "git worktree add -q --detach \"$HOME/../tmp/nested\" && git worktree remove --force \"$HOME/../tmp/nested\"",
    "git worktree move . \"$HOME/../tmp/moved\"",
    "git worktree remove --force .",
    "git worktree repair \"$TOP\"",
    "git worktree prune",
    "git config --local core.hooksPath /tmp",
    "git config --worktree core.fsmonitor /tmp/x",
    "echo \"$HOME\" > \"$G/objects/info/alternates\"",
    "mv \"$G/objects\" \"$G/other\"; mkdir -p \"$G/objects/info\"",
    "mkdir -p \"$G/hooks\"; echo x > \"$G/hooks/pre-commit\"; echo x > \"$G/commondir\"; echo x > \"$G/info/attributes\"",
];

/// An agent's work with git on its own branches. Each must succeed.
const WORK: [&str; 12] = [
    "git reset -q --hard && git clean -qfd",
    "echo mine > mine && git add mine && git commit -qm mine && git status --short",
    "echo more >> mine && git stash push -q && git stash pop -q && git commit -qam more",
    "git switch -qc topic && echo t > t && git add t && git commit -qm topic",
    "git rebase -q feature && git log --oneline -3",
    "git tag mine-1 && git tag -m annotated mine-2",
    "git bisect start HEAD HEAD~3 && git bisect run true && git bisect reset",
    "git switch -q agent && git merge -q -m merged topic",
    "git merge -q main",
    "git cherry-pick -n HEAD~1 || true; git reset -q --hard",
    "git branch -q spare && git branch -q -D spare && git pack-refs --all",
    "git gc -q && git fsck --no-dangling",
];

/// A repository with an isolated agent in it.
struct Isolated {
    session: Session,
    places: IsolatedPlaces,
    top: PathBuf,
}

impl Isolated {
    /// Without a policy, the commands are those of an agent that is not isolated.
    fn new(policy: impl FnOnce(&IsolatedPlaces) -> Option<SandboxPolicy>) -> Self {
        let mut session = Session::new();
        let at = |name: &str| session.root.join(name);
        let (top, home) = (at("top"), at("home"));
        let (root, git_dir) =
            (top.join(".claude/worktrees/w"), top.join(".git/centurion/worktrees/w/git"));
        let path = std::env::var("PATH").unwrap();
        let system = at("system");
        let variables = [
            ("PATH", Path::new(&path)),
            ("TOP", &top),
            ("W", &root),
            ("G", &git_dir),
            ("HOME", &home),
            ("GIT_CONFIG_SYSTEM", &system),
        ];
        let made = Command::new("bash")
            .args(["-c", SETUP])
            .current_dir(&session.root)
            .env_clear()
            .envs(variables)
            .output()
            .unwrap();
        assert!(made.status.success() && made.stdout.is_empty(), "{made:?}");
        let variables =
            variables.map(|(name, value)| (name.to_owned(), value.to_str().unwrap().to_owned()));
        let env = Env::new(variables);
        let common_dir = top.join(".git");
        let paths = WorktreePaths {
            root: &root,
            checkout: &top,
            git_dir: &git_dir,
            common_dir: &common_dir,
        };
        let places = IsolatedPlaces::of_worktree(&paths, &env).unwrap();
        let policy = policy(&places);
        let workspace = Arc::get_mut(&mut session.context.workspace).unwrap();
        workspace.isolation = policy.is_some().then(|| Arc::new(places.clone()));
        workspace.sandbox = policy.map(Arc::new);
        workspace.env = Arc::new(env);
        workspace.move_to(&root);
        Self { session, places, top }
    }

    /// The setup of a user without a sandbox.
    fn with(support: &Support) -> Self {
        Self::new(|places| {
            Some(SandboxPolicy::isolated(None, places, Guarantee::Required, support))
        })
    }

    async fn run(&self, command: &str) -> Result<String, String> {
        let result = self.session.call("Bash", json!({ "command": command })).await;
        result.map(|output| text(&output)).map_err(|error| error.to_string())
    }

    /// All files around the worktree, and the kept ones within its own places, with content and mode.
    fn around(&self) -> BTreeMap<PathBuf, String> {
        let mut files = BTreeMap::new();
        let git_dir = self.places.git_dir.as_deref().unwrap();
        let own = [self.places.root.as_path(), git_dir];
        for name in ["top", "home", "system"] {
            describe(&self.session.root.join(name), &own, &mut files);
        }
        let pointer = self.places.root.join(".git");
        for kept in [pointer, git_dir.join("config"), git_dir.join("objects/info/alternates")] {
            describe(&kept, &[], &mut files);
        }
        files
    }

    /// The same, and git's view of the repository around it.
    fn repository(&self) -> BTreeMap<PathBuf, String> {
        let mut files = self.around();
        for arguments in [&["rev-parse", "HEAD"][..], &["for-each-ref"], &["fsck", "--no-dangling"]]
        {
            let git = Command::new("git").arg("-C").arg(&self.top).args(arguments).output();
            let said = git.unwrap();
            let said = format!("{} {}", said.status, String::from_utf8_lossy(&said.stdout));
            files.insert(arguments.join(" ").into(), said);
        }
        files
    }

    /// Runs commands; after each, everything around must be unchanged.
    async fn attack(&self, attacks: impl IntoIterator<Item = &'static str>) {
        let before = self.around();
        for attack in attacks {
            let said = self.run(attack).await;
            let changes = changes(&before, &self.around());
            assert!(changes.is_empty(), "{attack}: {said:?} {changes:?}");
        }
    }
}

/// The differences between two states around a worktree.
fn changes(before: &BTreeMap<PathBuf, String>, after: &BTreeMap<PathBuf, String>) -> Vec<String> {
    let all = before.keys().chain(after.keys().filter(|path| !before.contains_key(*path)));
    let changed = all.filter(|path| before.get(*path) != after.get(*path));
    changed.map(|path| format!("{}: {:?}", path.display(), after.get(path))).collect()
}

fn describe(path: &Path, own: &[&Path], files: &mut BTreeMap<PathBuf, String>) {
    if own.contains(&path) {
        return;
    }
    // A process that still runs may have removed it meanwhile.
    if let Ok(metadata) = path.symlink_metadata() {
        let content = if metadata.is_symlink() {
            format!("{:?}", fs::read_link(path))
        } else if metadata.is_dir() {
            for entry in fs::read_dir(path).into_iter().flatten().flatten() {
                describe(&entry.path(), own, files);
            }
            String::new()
        } else {
            format!("{:?}", fs::read(path).map(|bytes| blake3::hash(&bytes)))
        };
        files.insert(path.to_owned(), format!("{:o} {content}", metadata.mode()));
    }
}

/// The methods of this machine that guarantee isolation.
fn complete_supports() -> Vec<Support> {
    let is_complete = |support: &Support| {
        support.namespaces == Namespaces::Available
            || matches!(support.bubblewrap, Bubblewrap::Works(_))
    };
    let found: Vec<Support> = supports().into_iter().filter(is_complete).collect();
    if found.is_empty() {
        skip(Lack::CompleteSandbox);
    }
    found
}

/// A user's sandbox in which commands write in the project, and the model may ask to leave it.
fn users_policy(places: &IsolatedPlaces, support: &Support) -> SandboxPolicy {
    let sandbox = Sandbox {
        write: vec![places.checkout.clone()],
        // As if there were no worktrees when the session started.
        deny_write: vec![places.checkout.join(".claude/"), places.checkout.join(".mcp.json")],
        ..Sandbox::default()
    };
    let settings = SandboxSettings {
        allow_unsandboxed_commands: true,
        excluded_commands: vec!["git".to_owned(), "touch".to_owned()],
        ..SandboxSettings::default()
    };
    SandboxPolicy::new(sandbox, support, settings)
}

#[tokio::test]
async fn no_command_changes_anything_around_the_worktree() {
    for support in complete_supports() {
        let agent = Isolated::with(&support);
        let before = agent.repository();
        agent.attack(ATTACKS.into_iter().chain(INSIDE)).await;
        agent.session.nothing_is_left().await;
        for missing in ["commondir", "config.worktree", "hooks", "info/attributes"] {
            let place = agent.places.git_dir.as_ref().unwrap().join(missing);
            assert!(!place.exists(), "{missing}");
        }
        for work in WORK {
            let said = agent.run(work).await;
            assert!(said.is_ok(), "{work}: {said:?} {support:?}");
        }
        assert_eq!(changes(&before, &agent.repository()), Vec::<String>::new());
        agent.attack(WRECKING).await;
        assert_eq!(changes(&before, &agent.repository()), Vec::<String>::new());
    }
}

/// A control: an attack that would not work anyway would prove nothing.
#[tokio::test]
async fn the_attacks_work_where_an_agent_is_not_isolated() {
    for attack in ATTACKS {
        let agent = Isolated::new(|_| None);
        let before = agent.around();
        let said = agent.run(attack).await;
        assert!(!changes(&before, &agent.around()).is_empty(), "{attack}: {said:?}");
    }
}

#[tokio::test]
async fn git_gets_no_configuration_for_the_user_that_was_not_there() {
    for support in complete_supports() {
        let agent = Isolated::with(&support);
        let home = agent.session.path("home");
        fs::remove_dir_all(&home).unwrap();
        fs::create_dir(&home).unwrap();
        for attack in [
            "git config --global core.hooksPath /tmp",
            "mkdir -p ~/.config/git; echo '[core] hooksPath = /tmp' > ~/.config/git/config",
            "rm -rf ~/.config; mkdir ~/.config && mkdir ~/.config/git && touch ~/.config/git/config",
        ] {
            let said = agent.run(attack).await;
            assert!(said.is_err(), "{attack}: {said:?}");
        }
        // It does not disturb git, nor anything else in the home directory.
        agent.run("git status && git log -1 && touch ~/other").await.unwrap();
        agent.session.nothing_is_left().await;
        let left: Vec<_> =
            fs::read_dir(&home).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["other"]);
    }
}

#[tokio::test]
async fn what_outlives_its_command_is_held_back_as_well() {
    for support in complete_supports() {
        let agent = Isolated::with(&support);
        let before = agent.repository();
        let started = "mkfifo go; setsid sh -c 'read line < go; echo x > \"$TOP/file\"; \
                       git -C \"$TOP\" commit -qam x; echo tried > done' > /dev/null 2>&1 &";
        let said = agent.run(started).await.unwrap();
        if !said.contains("still run") {
            // Bubblewrap ends with its command, and all below it.
            assert_eq!(support.bubblewrap, Support::detect().bubblewrap, "{said}");
            agent.session.nothing_is_left().await;
            continue;
        }
        agent.run("echo now > go").await.unwrap();
        let done = agent.places.root.join("done");
        eventually("the process has tried", || done.exists()).await;
        assert_eq!(changes(&before, &agent.repository()), Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_directory_that_is_exchanged_while_it_is_written_to_leads_nowhere_else() {
    for support in complete_supports() {
        let agent = Isolated::with(&support);
        let before = agent.repository();
        let race = "mkdir real; ln -s \"$TOP\" link; mv -T real place
            for round in $(seq 100); do mv -T --exchange place link 2>/dev/null \
                || { mv -T place away; mv -T link place; mv -T away link; }; done &
            for round in $(seq 100); do echo x > place/file; echo x > place/new; done 2>/dev/null
            wait";
        agent.run(race).await.unwrap();
        assert_eq!(changes(&before, &agent.repository()), Vec::<String>::new());
    }
}

/// An agent that leaves its worktree by `cd` is back in it with the next command.
#[tokio::test]
async fn every_command_starts_in_the_worktree() {
    let Some(support) = complete_supports().into_iter().next() else {
        return skip(Lack::CompleteSandbox);
    };
    let agent = Isolated::with(&support);
    let root = agent.places.root.display().to_string();
    let said = agent.run("cd \"$TOP\" && pwd").await.unwrap();
    let top = agent.top.display();
    let note = format!("{top} is outside of your worktree: commands start in {root}.");
    assert_eq!(said, format!("{note}\n{top}"));
    assert_eq!(agent.run("pwd").await.unwrap(), root);
    // Below the worktree it stays, but not behind a link that leads out.
    assert_eq!(agent.run("cd sub && pwd").await.unwrap(), format!("{root}/sub"));
    assert_eq!(agent.run("pwd").await.unwrap(), format!("{root}/sub"));
    let said = agent.run("ln -s \"$TOP\" up && cd up").await.unwrap();
    assert!(said.contains("outside of your worktree"), "{said}");
    // A directory that is exchanged between two commands.
    agent.run("cd sub").await.unwrap();
    fs::remove_dir_all(agent.places.root.join("sub")).unwrap();
    std::os::unix::fs::symlink(&agent.top, agent.places.root.join("sub")).unwrap();
    let said = agent.run("pwd -P").await.unwrap();
    assert!(said.contains("outside of your worktree") && said.ends_with(&root), "{said}");
}

/// Another process has deleted the worktree.
#[tokio::test]
async fn no_command_runs_elsewhere_when_the_worktree_is_gone() {
    let Some(support) = complete_supports().into_iter().next() else {
        return skip(Lack::CompleteSandbox);
    };
    for is_background in [false, true] {
        let agent = Isolated::with(&support);
        let root = &agent.places.root;
        let marker = agent.session.path("tmp/ran");
        let command = json!({
            "command": format!("touch {}", marker.display()), "run_in_background": is_background,
        });
        let prepare: [&dyn Fn(); 3] = [
            &|| fs::remove_file(root.join(".git")).unwrap(),
            &|| fs::remove_dir_all(root).unwrap(),
            &|| std::os::unix::fs::symlink(&agent.top, root).unwrap(),
        ];
        for change in prepare {
            change();
            let said = agent.session.call("Bash", command.clone()).await.unwrap_err().to_string();
            assert!(said.starts_with("nothing was run: "), "{said}");
            assert!(!marker.exists());
        }
    }
}

#[tokio::test]
async fn git_obeys_no_variable_of_ours_that_names_another_repository() {
    let Some(support) = complete_supports().into_iter().next() else {
        return skip(Lack::CompleteSandbox);
    };
    let mut agent = Isolated::with(&support);
    let workspace = Arc::get_mut(&mut agent.session.context.workspace).unwrap();
    let elsewhere = agent.top.join(".git").display().to_string();
    let more = ["GIT_DIR", "GIT_COMMON_DIR"].map(|name| (name.to_owned(), elsewhere.clone()));
    let own: Vec<_> =
        workspace.env.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    workspace.env = Arc::new(Env::new(own.into_iter().chain(more)));
    let git_dir = agent.places.git_dir.as_ref().unwrap().display().to_string();
    assert_eq!(agent.run("git rev-parse --absolute-git-dir").await.unwrap(), git_dir);
}

/// Outside of the user's sandbox, isolation holds alone.
#[tokio::test]
async fn the_users_sandbox_and_isolation_hold_together() {
    for support in complete_supports() {
        let agent = Isolated::new(|places| {
            let users = users_policy(places, &support);
            Some(SandboxPolicy::isolated(Some(&users), places, Guarantee::Required, &support))
        });
        let before = agent.repository();
        let outside = agent.session.path("tmp/outside");
        let write_outside = format!("sh -c 'echo x > {}'", outside.display());
        let said = agent.run(&write_outside).await.unwrap_err();
        assert!(said.contains("The sandbox may be the reason"), "{said}");
        assert!(!outside.exists());
        agent.run("sh -c 'echo x > mine && git add mine && git commit -qm mine'").await.unwrap();
        let leave =
            |command: &str| json!({ "command": command, "dangerouslyDisableSandbox": true });
        agent.session.call("Bash", leave(&write_outside)).await.unwrap();
        assert!(outside.exists(), "only the user's sandbox held it back");
        // These are excluded from the user's sandbox.
        agent.attack(["git -C \"$TOP\" commit -qam x", "touch \"$TOP/new\""]).await;
        let files = agent.around();
        for attack in ATTACKS {
            let said = agent.session.call("Bash", leave(attack)).await;
            let changes = changes(&files, &agent.around());
            assert!(changes.is_empty(), "{attack}: {said:?} {changes:?}");
        }
        assert_eq!(changes(&before, &agent.repository()), Vec::<String>::new());
    }
}

#[test]
fn isolation_alone_frees_no_command_from_a_question() {
    let Some(support) = complete_supports().into_iter().next() else {
        return skip(Lack::CompleteSandbox);
    };
    let agent = Isolated::with(&support);
    let confines = |policy: &SandboxPolicy, is_disabled| {
        policy.confines("true", is_disabled, &DeniedFiles::nothing())
    };
    let policy = agent.session.context.workspace.sandbox.as_deref().unwrap();
    assert!(!confines(policy, false) && !confines(policy, true));
    assert_eq!((policy.gaps(), policy.unavailable()), (&[][..], None));
    let users = users_policy(&agent.places, &support);
    let both = SandboxPolicy::isolated(Some(&users), &agent.places, Guarantee::Required, &support);
    assert!(confines(&both, false) && !confines(&both, true));
}

#[tokio::test]
async fn what_cannot_be_guaranteed_is_said_once_or_refused() {
    let landlock = Support { landlock: Some(7), ..no_support() };
    for (support, expected) in
        [(no_support(), "this user may not have namespaces"), (landlock, "must not be changed")]
    {
        let agent = |guarantee| {
            Isolated::new(|places| Some(SandboxPolicy::isolated(None, places, guarantee, &support)))
        };
        let strict = agent(Guarantee::Required);
        let said = strict.run("touch ran").await.unwrap_err();
        assert!(said.contains("isolated agent") && said.contains(expected), "{said}");
        assert!(!strict.places.root.join("ran").exists());
        let policy = strict.session.context.workspace.sandbox.as_deref().unwrap();
        assert!(policy.isolation_fault().unwrap().contains(expected));
        if Support::detect().landlock.is_none() && support.landlock.is_some() {
            skip(Lack::Sandbox);
            continue;
        }
        let lenient = agent(Guarantee::Wanted);
        let said = lenient.run("echo ran").await.unwrap();
        assert!(said.starts_with("This machine cannot keep ") && said.ends_with("\nran"), "{said}");
        assert_eq!(lenient.run("echo ran").await.unwrap(), "ran");
    }
}
