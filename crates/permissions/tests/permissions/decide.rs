//! Whole decisions: mode, rules and access in, verdict and reason out.

use crate::fixture::{self, call, network, policy, read, shell, write};
use centurion_permissions::{Access, Call, Mode, Reason, RuleKind, Verdict, decide};

use Verdict::{Allow, Ask, Deny};

const MODES: [Mode; 5] =
    [Mode::Default, Mode::AcceptEdits, Mode::Plan, Mode::DontAsk, Mode::BypassPermissions];

/// A row: the access of the call, and the verdict in default, acceptEdits, plan, dontAsk and bypass.
type Row = (Access, [Verdict; 5]);

#[track_caller]
fn assert_rows(rows: impl IntoIterator<Item = Row>) {
    for (access, expected) in rows {
        for (mode, expected) in MODES.into_iter().zip(expected) {
            let decision = decide(&policy(mode), &call(&access));
            assert_eq!(decision.verdict, expected, "{mode}: {access:?}: {}", decision.reason);
        }
    }
}

#[test]
fn without_rules_the_mode_decides() {
    assert_rows([
        (Access::Session, [Allow, Allow, Allow, Allow, Allow]),
        (read("/home/ada/project/src/main.rs"), [Allow, Allow, Allow, Allow, Allow]),
        (read("/added/notes.md"), [Allow, Allow, Allow, Allow, Allow]),
        (read("/etc/passwd"), [Ask, Ask, Ask, Deny, Allow]),
        (read("/home/ada/project/../.ssh/id"), [Ask, Ask, Ask, Deny, Allow]),
        (write("/home/ada/project/src/main.rs"), [Ask, Allow, Deny, Deny, Allow]),
        (write("/added/notes.md"), [Ask, Allow, Deny, Deny, Allow]),
        (write("/etc/passwd"), [Ask, Ask, Deny, Deny, Allow]),
        (write("/home/ada/project/../x"), [Ask, Ask, Deny, Deny, Allow]),
        (write("/home/ada/project/.git/hooks/pre-commit"), [Ask, Ask, Deny, Deny, Allow]),
        (write("/home/ada/project/.mcp.json"), [Ask, Ask, Deny, Deny, Allow]),
        (network("https://example.com/"), [Ask, Ask, Ask, Deny, Allow]),
    ]);
}

#[test]
fn read_only_commands_run_in_every_mode() {
    let always = [Allow, Allow, Allow, Allow, Allow];
    assert_rows(
        [
            "ls",
            "ls -la src",
            "pwd",
            "cat src/main.rs /added/notes.md",
            "head -n 5 'a b.txt'",
            "tail -n +3 x",
            "wc -l src/main.rs",
            "echo /etc/passwd",
            "which cargo",
            "stat x",
            "file x",
            "du -sh .",
            "df -h",
            "date",
            "date -u +%Y",
            "date -d yesterday +%F",
            "[[ -f src/main.rs ]] && echo there",
            "whoami",
            "uname -a",
            "grep -rn 'fn main' src",
            "rg -n -g x y src",
            "diff -u a b",
            "basename /a/b",
            "dirname /a/b",
            "realpath src",
            "tree -L 2",
            "true",
            "time ls",
            "timeout 5 ls",
            "git log --oneline | head -n 3",
            "ls 2>/dev/null && pwd; wc -l < x",
            "test -f x",
            "find . -name x -type f",
            "git status",
            "git --no-pager log --oneline -5",
            "git log --format='%h %s' HEAD~3..HEAD",
            "git diff --cached src/main.rs",
            "git diff origin/main...HEAD",
            "git show HEAD^",
            "git branch",
            "git branch -vv",
            "git branch --list 'feature/x'",
            "git branch --contains abc",
            "git branch --show-current",
            "git rev-parse HEAD",
            "git ls-files",
            "git blame -L 1,5 src/main.rs",
            "git describe --tags",
            "git remote",
            "git remote -v",
            "git tag",
            "git tag --list v1",
            "git stash list",
            "git tag -l 'v1' -n3",
            "git status -sb -uno",
            "git status --porcelain=v2",
            "git log -n 5 --since=yesterday -p -- src",
            "git diff --stat HEAD~1",
            "grep -n /api/v1 src/main.rs",
            "grep -e '^/' -C 3 src/main.rs",
            "cut -d/ -f2 a",
            "sort -t/ -k2,2n a",
            "ls | head -5",
            "printf '%s %d%%\\n' a 1",
            "jq -r '.scripts | keys[]' package.json",
            "tree -a -L 2 -I target src",
        ]
        .map(|command| (shell(command), always)),
    );
}

/// Asserts that these commands ask a person in every mode that asks.
#[track_caller]
fn assert_guarded(commands: &[&str]) {
    assert_rows(commands.iter().map(|command| (shell(command), [Ask, Ask, Deny, Deny, Allow])));
}

#[test]
fn an_option_that_no_table_lists_is_asked_about() {
    assert_guarded(&[
        // Programs that print the environment, which contains credentials.
        "ps e",
        "set",
        "export -p",
        "declare -p",
        "history",
        "jq -n '$ENV'",
        "cat /proc/self/environ",
        "echo $ANTHROPIC_API_KEY",
        // Options that write, run something or read other files, whole and shortened.
        "sort --outp=x a",
        "sort -ro x a",
        "sort --compress-prog=x a",
        "grep --file=/etc/passwd x",
        "grep -f/etc/passwd x",
        "grep --exclude-from=/etc/passwd x a",
        "grep -d recurse x",
        "tail -F a",
        "tail --follow=name a",
        "od --files0-from=a",
        "file -p a",
        "date --fil=a",
        "hostname evil",
        "tree -Po a b",
        "find . -newerXY /etc/passwd",
        "find . -fprintf a b",
        "find . -D exec",
        "diff -l a b",
        "diff a",
        "diff --from-file=a b",
        "diff a-dir b-dir",
        "diff a b-dir",
        "diff -N . x",
        "uniq a -c",
        "realpath --relative-to=/etc a",
        "touch --version",
        // A variable that is set, and that a later command obeys.
        "printf 'abc%n' PATH; ls",
        "printf '%-5ln' PATH",
        "printf -- '%s%n' a PATH",
    ]);
}

#[test]
fn git_commands_that_write_or_start_or_read_elsewhere_are_asked_about() {
    assert_guarded(&[
        // Git that writes, starts programs, or reads other files.
        "git status -uno --pathspec-from-file=/etc/passwd",
        "git diff --no-index a b",
        "git diff --outp=x",
        "git diff -O/etc/passwd",
        "git diff /etc/passwd a",
        "git log --show-signature",
        "git log '--format=%h %G?'",
        "git log '--pretty=%+GS'",
        "git log --stdin",
        "git branch '--format=%(signature:grade)'",
        "git branch -v new",
        "git branch --list --edit-description new",
        "git tag -v v1",
        "git tag -a v1",
        "git tag --contains HEAD -d v1",
        "git stash list -p",
        "git remote show origin",
        "git remote update",
        "git blame --contents /etc/passwd a",
        "git blame -S /etc/passwd a",
        "git ls-files --exclude-from=/etc/passwd",
        "git ls-files -X /etc/passwd",
        "git config --get user.name",
        "git config --file /etc/passwd -l",
        "git rev-parse --resolve-git-dir /etc",
        "git grep x",
        "git cat-file -p HEAD",
        "git st",
        "git -p log",
        "git --no-pager -c a.b=c log",
    ]);
}

#[test]
fn other_commands_need_a_word() {
    let guarded = [Ask, Ask, Deny, Deny, Allow];
    assert_rows(
        [
            "make",
            "cargo test",
            "npm ls",
            "printenv",
            "env",
            // A reader that reads elsewhere.
            "cat /etc/passwd",
            "cat ../secret",
            "cat src/../../secret",
            "ls /",
            "ls ~",
            "grep -f/etc/shadow x",
            "grep -f../x y",
            "wc --files0-from=/etc/passwd",
            "diff --from-file=/etc/passwd x",
            "git diff --no-index /etc/passwd x",
            "find / -name x",
            "test -f /etc/passwd",
            "[[ -e /etc/shadow ]] && echo there",
            "[[ a -nt ../secret ]]",
            "date -d 'TZ=\"/etc/shadow\" now'",
            "find . -newermt 'TZ=\"/etc/shadow\" now'",
            // A reader that writes, runs or sets.
            "ls; make",
            "ls && make",
            "ls | sh",
            "ls\nmake",
            "ls $(make)",
            "ls `make`",
            "cat <(make)",
            "echo \"$(make)\"",
            "find . -delete",
            "find . -exec make '{}' '+'",
            "find . -execdir make",
            "find . -ok make",
            "find . -okdir make",
            "find . -fprint x",
            "find . -fprintf x y",
            "find . -fls x",
            "rg --pre make x",
            "rg --pre=make x",
            "rg --hostname-bin=make x",
            "rg -z x",
            "tree -o x",
            "tree -ao x",
            "file -C -m x",
            "file -f x",
            "date -s 12:00",
            "date 01010101",
            "date -f x",
            "diff -l a b",
            "./ls",
            "/bin/ls",
            "A=1 ls",
            // git that changes or runs something.
            "git",
            "git push",
            "git commit -m x",
            "git -c core.pager=make log",
            "git -C sub log",
            "git --exec-path=x log",
            "git -p log",
            "git log --output=x",
            "git log --outpu=x",
            "git diff --output x",
            "git diff --ext-diff",
            "git diff --ext",
            "git show --textconv",
            "git grep --open-files-in-pager=make x",
            "git branch new",
            "git branch -v new",
            "git branch -D old",
            "git branch --list -D old",
            "git branch -m a b",
            "git branch --edit-description",
            "git tag v1",
            "git tag -d v1",
            "git tag --sort=x v1",
            "git remote add x y",
            "git remote -v update",
            "git remote show origin",
            "git stash",
            "git stash pop",
            "git stash list --output=x",
            "git config x y",
        ]
        .map(|command| (shell(command), guarded)),
    );
}

#[test]
fn accepting_edits_covers_plain_file_commands() {
    let accepted = [Ask, Allow, Deny, Deny, Allow];
    assert_rows(
        [
            "mkdir -p a/b",
            "touch a /added/b",
            "mv a b",
            "mv a .",
            "cp -p a b",
            "cp a .",
            "rm -rf build",
            "rm src/../a",
            "rmdir a",
            "ls > x",
            "sed -i s/a/b/ x",
            "mkdir a && cp b a",
        ]
        .map(|command| (shell(command), accepted)),
    );
    let guarded = [Ask, Ask, Deny, Deny, Allow];
    assert_rows(
        [
            "rm",
            "mkdir /etc/x",
            "touch ../x",
            "cp /etc/passwd x",
            "cp x /etc/passwd",
            "cp x -t/etc",
            "cp x --target-directory=/etc",
            "cp x -t.git/hooks",
            "cp x .git/hooks/pre-commit",
            "cp x --target-directory=.git/hooks",
            "mv .git x",
            "mv x .bashrc",
            "mv . x",
            "rm -rf .git",
            "rm -- -x/../../../y",
            "cp a b; make",
            "rm *.log",
            "mkdir $(make)",
            "ln -s /etc x",
            "chmod +x a",
        ]
        .map(|command| (shell(command), guarded)),
    );
}

#[test]
fn removing_precious_directories_is_asked_in_every_mode() {
    for command in [
        "rm -rf /",
        "rm -rf /*",
        "rm -rf /etc",
        "rm -rf /home/ada",
        "rm -rf ~",
        "rm -rf ~/",
        "rm -rf ~bob",
        "rm -rf $HOME",
        "rm -rf \"${HOME}/\"",
        "rm -rf .",
        "rm -rf ..",
        "rm -rf *",
        "rm -rf ./*",
        "rm -rf .*",
        "rm -rf /added/*",
        "rm -rf src/..",
        "rm -rf $UNSET/*",
        "rm -rf \"$UNSET\"/",
        "rm -rf /home/ada/project",
        "true && rm -rf /",
        "sudo rm -rf /",
        "bash -c 'rm -rf /'",
        "echo $(rm -rf ~)",
        "echo `rm -rf .`",
        "/bin/rm -rf /",
        "rmdir /home",
        "{rm,-rf,/}",
        "rm${IFS}-rf${IFS}/",
    ] {
        let access = shell(command);
        for mode in [Mode::Default, Mode::AcceptEdits, Mode::BypassPermissions] {
            let mut policy = policy(mode);
            policy.allow = fixture::rules("Bash Bash(rm *)");
            let decision = decide(&policy, &call(&access));
            assert_eq!(decision.verdict, Ask, "{mode}: {command}: {}", decision.reason);
            assert!(matches!(decision.reason, Reason::CriticalRemoval(_)), "{command}");
        }
        assert_eq!(decide(&policy(Mode::DontAsk), &call(&access)).verdict, Deny, "{command}");
        assert_eq!(decide(&policy(Mode::Plan), &call(&access)).verdict, Deny, "{command}");
    }
    for command in ["rm -rf build", "rm $file", "rm -rf build/*", "rm -rf ${HOME}/a/b", "rm /a/b/c"]
    {
        let decision = decide(&policy(Mode::BypassPermissions), &call(&shell(command)));
        assert_eq!(decision.verdict, Allow, "{command}: {}", decision.reason);
    }
}

/// A row: allow, ask and deny rules, the tool, its access, the verdict in mode default.
type RuleRow = (&'static str, &'static str, &'static str, &'static str, Access, Verdict);

#[test]
fn rules_are_read_deny_first_then_ask_then_allow() {
    let source = "/home/ada/project/src/main.rs";
    let rows: [RuleRow; 45] = [
        ("Bash(make *)", "", "", "Bash", shell("make all"), Allow),
        ("Bash(make *)", "Bash(make all)", "", "Bash", shell("make all"), Ask),
        ("Bash(make *)", "Bash(make all)", "Bash(make *)", "Bash", shell("make all"), Deny),
        ("Bash", "", "Bash(rm *)", "Bash", shell("ls && rm x"), Deny),
        ("Bash", "", "Bash(rm *)", "Bash", shell("ls && cp x y"), Allow),
        ("Bash(make)", "", "", "Bash", shell("make && x"), Ask),
        ("", "Bash(ls *)", "", "Bash", shell("ls src"), Ask),
        ("", "Bash", "", "Bash", shell("ls src"), Ask),
        ("", "", "Bash", "Bash", shell("ls src"), Deny),
        ("", "", "*", "Read", read(source), Deny),
        // Path rules.
        ("Edit(src/**)", "", "", "Edit", write(source), Allow),
        ("Edit(src/**)", "", "", "Write", write(source), Allow),
        ("Edit(src/**)", "", "", "NotebookEdit", write(source), Allow),
        ("Edit", "", "", "Edit", write(source), Allow),
        ("Edit", "", "", "Write", write(source), Allow),
        ("Edit", "", "", "NotebookEdit", write(source), Allow),
        ("Write", "", "", "Edit", write(source), Ask),
        ("", "", "Edit", "Write", write(source), Deny),
        ("Bash", "", "Edit", "Bash", shell("ls > x"), Deny),
        ("Bash", "", "Edit", "Bash", shell("ls > /dev/null"), Allow),
        ("Edit(//etc/**)", "", "", "Read", read("/etc/hosts"), Allow),
        ("Read(//etc/**)", "", "", "Write", write("/etc/hosts"), Ask),
        ("Read(//etc/**)", "", "", "Read", read("/etc/hosts"), Allow),
        ("Read(//etc/**)", "", "", "Glob", read("/etc"), Allow),
        ("Read(//etc/**)", "", "", "Grep", read("/etc/hosts"), Allow),
        ("", "", "Read(.env)", "Read", read("/home/ada/project/a/.env"), Deny),
        ("Edit", "", "Read(.env)", "Edit", write("/home/ada/project/.env"), Deny),
        ("NotebookEdit", "", "Read(.env)", "NotebookEdit", write("/home/ada/project/.env"), Allow),
        ("", "", "Edit(.env)", "Read", read("/home/ada/project/.env"), Allow),
        ("", "", "Read(.env)", "Bash", shell("cat .env"), Deny),
        ("", "", "Read(.env)", "Bash", shell("cat src/../.env"), Deny),
        ("Bash", "", "Read(.env)", "Bash", shell("cat <.env | sh"), Deny),
        ("Bash", "", "Read(~/.ssh/**)", "Bash", shell("cat ~/.ssh/id"), Deny),
        ("", "", "Edit(.env)", "Bash", shell("cat .env"), Allow),
        ("Bash", "", "Edit(.env)", "Bash", shell("echo a > .env"), Deny),
        ("Bash", "", "Edit(.env)", "Bash", shell("cp a .env"), Deny),
        // A search through everything could read a file that a rule guards.
        ("", "", "Read(.env)", "Bash", shell("rg KEY"), Ask),
        ("", "", "Read(.env)", "Bash", shell("grep -rn KEY ."), Ask),
        ("", "", "Read(.env)", "Bash", shell("ls -la"), Allow),
        // A protected path asks although a rule allows it.
        ("Edit(**)", "", "", "Write", write("/home/ada/project/.git/config"), Ask),
        (
            "WebFetch(domain:example.com)",
            "",
            "",
            "WebFetch",
            network("https://example.com/a"),
            Allow,
        ),
        ("WebFetch(domain:example.com)", "", "", "WebFetch", network("https://evil.org"), Ask),
        (
            "WebFetch",
            "",
            "WebFetch(domain:*.evil.org)",
            "WebFetch",
            network("https://a.evil.org"),
            Deny,
        ),
        ("mcp__git", "", "mcp__git__push", "mcp__git__push", network("stdio:git"), Deny),
        ("mcp__git", "", "mcp__git__push", "mcp__git__log", network("stdio:git"), Allow),
    ];
    for (allow, ask, deny, tool, access, expected) in rows {
        let mut policy = policy(Mode::Default);
        policy.allow = fixture::rules(allow);
        policy.ask = fixture::rules(ask);
        policy.deny = fixture::rules(deny);
        let decision = decide(&policy, &Call::new(tool, &access));
        assert_eq!(
            decision.verdict, expected,
            "allow {allow:?} ask {ask:?} deny {deny:?}: {tool} {access:?}: {}",
            decision.reason
        );
    }
}

#[test]
fn plan_mode_holds_against_allow_rules() {
    let mut policy = policy(Mode::Plan);
    policy.allow = fixture::rules("Edit Write Bash WebFetch");
    for access in [write("/home/ada/project/a"), shell("make")] {
        assert_eq!(decide(&policy, &call(&access)).verdict, Deny, "{access:?}");
    }
    assert_eq!(decide(&policy, &call(&network("https://example.com"))).verdict, Allow);
}

#[test]
fn bypassing_stops_at_deny_and_ask_rules() {
    let mut policy = policy(Mode::BypassPermissions);
    policy.deny = fixture::rules("Bash(git push *)");
    policy.ask = fixture::rules("Edit(/docs/**)");
    assert_eq!(decide(&policy, &call(&shell("git push origin"))).verdict, Deny);
    assert_eq!(decide(&policy, &call(&write("/home/ada/project/docs/a.md"))).verdict, Ask);
    assert_eq!(decide(&policy, &call(&write("/etc/hosts"))).verdict, Allow);
}

#[test]
fn the_mode_of_a_server_takes_from_bypassing_and_gives_nothing() {
    let external = Access::External { only_reads: false };
    let of = |tool: &'static str| Call::new(tool, &external);
    let mut policy = policy(Mode::BypassPermissions);
    policy.server_modes.insert("mcp__mail__".to_owned(), Mode::Default);
    assert_eq!(decide(&policy, &of("mcp__mail__send")).verdict, Ask);
    assert_eq!(decide(&policy, &of("mcp__mailbox__send")).verdict, Allow, "it is another server");
    policy.allow = fixture::rules("mcp__mail__send");
    assert_eq!(decide(&policy, &of("mcp__mail__send")).verdict, Allow, "a rule allows it");
    policy.allow = fixture::rules("Read");
    for mode in [Mode::Default, Mode::Plan, Mode::DontAsk] {
        policy.mode = mode;
        let with = decide(&policy, &of("mcp__mail__send")).verdict;
        let without = decide(&policy, &of("mcp__mailbox__send")).verdict;
        assert_eq!(with, without, "{mode}");
    }
}

#[test]
fn a_command_in_a_foreign_directory_is_not_read_only() {
    let mut policy = policy(Mode::Default);
    policy.cwd = "/srv".into();
    assert_eq!(decide(&policy, &call(&shell("ls"))).verdict, Ask);
    assert_eq!(decide(&policy, &call(&shell("pwd"))).verdict, Allow);
    policy.mode = Mode::AcceptEdits;
    assert_eq!(decide(&policy, &call(&shell("touch a"))).verdict, Ask);
    assert_eq!(decide(&policy, &call(&shell("touch /home/ada/project/a"))).verdict, Allow);
}

#[test]
fn a_tool_denied_by_name_is_not_offered() {
    let mut policy = policy(Mode::Default);
    policy.deny = fixture::rules("Bash Task Read(.env) mcp__git WebFetch(domain:*) Edit(*)");
    for (tool, offered) in [
        ("Bash", false),
        ("Agent", false),
        ("WebFetch", false),
        ("Edit", false),
        ("mcp__git__log", false),
        ("mcp__github__log", true),
        ("Read", true),
        ("Write", true),
    ] {
        assert_eq!(policy.is_offered(tool), offered, "{tool}");
    }
    let decision = decide(&policy, &call(&shell("ls")));
    assert!(
        decision.reason.to_string().starts_with("the tool is not offered"),
        "{}",
        decision.reason
    );
}

#[test]
fn the_reason_names_what_decided() {
    let mut policy = policy(Mode::DontAsk);
    policy.ask = fixture::rules("Bash(make *)");
    let decision = decide(&policy, &call(&shell("make")));
    let Reason::NotAsked(inner) = decision.reason else { panic!("{:?}", decision.reason) };
    let Reason::Rule { kind, source } = *inner else { panic!("{inner:?}") };
    assert_eq!((kind, source.text.as_str()), (RuleKind::Ask, "Bash(make *)"));

    policy.mode = Mode::BypassPermissions;
    let decision = decide(&policy, &call(&write("/etc/hosts")));
    assert_eq!(decision.reason, Reason::Mode(Mode::BypassPermissions));
}
