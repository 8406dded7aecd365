//! `PowerShell(…)` rules, and calls of a tool of that name.

use centurion_permissions::{Access, Call, Mode, Verdict, decide};

use crate::fixture::{self, policy, shell};

use Verdict::{Allow, Ask, Deny};

#[test]
fn every_statement_must_be_allowed_and_none_may_be_denied() {
    let mut policy = policy(Mode::Default);
    policy.allow = fixture::rules("PowerShell(Get-ChildItem *) PowerShell(git log *) Bash(echo *)");
    policy.ask = fixture::rules("PowerShell(git push *)");
    policy.deny = fixture::rules("PowerShell(rm *) Read(.env)");
    for (command, expected) in [
        ("Get-ChildItem", Allow),
        ("LS -Recurse src", Allow),
        ("gci | Git Log", Allow),
        ("ls; git log", Allow),
        ("ls; git fetch", Ask),
        ("ls; iwr x", Ask),
        ("ls $x", Ask),
        ("ls $(iwr x)", Ask),
        ("ls > out.txt", Ask),
        ("& ls", Ask),
        ("git PUSH origin", Ask),
        // Rules and read-only commands of another shell do not count here.
        ("echo x", Ask),
        ("cat src/main.rs", Ask),
        ("Remove-Item x", Deny),
        ("ls; del x", Deny),
        ("ls $(Remove-Item x)", Deny),
        ("iex 'rm x'", Deny),
        ("ls .env", Deny),
        ("ls .\\.env", Deny),
    ] {
        let access = shell(command);
        let decision = decide(&policy, &Call::new("PowerShell", &access));
        assert_eq!(decision.verdict, expected, "{command}: {}", decision.reason);
    }
    // And the rules do not count for the other shell.
    let access = shell("rm x");
    assert_eq!(decide(&policy, &Call::new("Bash", &access)).verdict, Ask);
}

#[test]
fn modes_hold_for_every_shell() {
    let access = shell("Get-ChildItem");
    for (mode, expected) in [
        (Mode::Default, Allow),
        (Mode::Plan, Deny),
        (Mode::DontAsk, Allow),
        (Mode::Auto, Allow),
        (Mode::Bubble, Ask),
    ] {
        let mut policy = policy(mode);
        policy.allow = fixture::rules("PowerShell(ls *)");
        assert_eq!(decide(&policy, &Call::new("PowerShell", &access)).verdict, expected, "{mode}");
    }
    let mut policy = policy(Mode::Auto);
    policy.allow = fixture::rules("PowerShell PowerShell(iex *)");
    for command in ["Get-ChildItem", "iex x"] {
        let access: Access = shell(command);
        let verdict = decide(&policy, &Call::new("PowerShell", &access)).verdict;
        assert_eq!(verdict, Ask, "{command}: too broad a rule for this mode");
    }
}
