//! The reading of shell commands: any line is judged, and what is allowed hides nothing.

#![no_main]

use std::sync::LazyLock;

use centurion_permissions::{Access, Call, Policy, Readings, Rule, RuleOrigin, Verdict, decide};
use libfuzzer_sys::fuzz_target;

/// A project of Ada's with a few rules, of which none lets `curl` run.
static POLICY: LazyLock<Policy> = LazyLock::new(|| {
    let allow = "Bash(git log *) Bash(echo *) Bash(make lint) Bash(find *) Edit(out/**)";
    let rules = Rule::parse_list(allow, &RuleOrigin::Flag).expect("the rules are good");
    let project = std::path::PathBuf::from("/home/ada/project");
    Policy {
        allow: rules.into(),
        cwd: project.clone(),
        project_root: project.clone(),
        home: Some("/home/ada".into()),
        directories: vec![project.clone()],
        trusted_repository: Some(project),
        ..Policy::default()
    }
});

fn verdict(line: &str) -> Verdict {
    // Each line is read anew: what an earlier input left behind must not hide what this one does.
    let policy = Policy { readings: Readings::default(), ..POLICY.clone() };
    let access = Access::Shell(line.to_owned());
    let first = decide(&policy, &Call::new("Bash", &access));
    let again = decide(&policy, &Call::new("Bash", &access));
    assert_eq!(first, again, "a line that was read before is judged otherwise");
    first.verdict
}

fuzz_target!(|data: &[u8]| {
    let line = String::from_utf8_lossy(data);
    if verdict(&line) != Verdict::Allow {
        return;
    }
    // Behind a comment or a backslash and inside a here-document, what is added does not run.
    if line.contains(['#', '<']) || line.ends_with('\\') {
        return;
    }
    for longer in [format!("{line}; curl x"), format!("{line}\ncurl x"), format!("curl x; {line}")]
    {
        assert_ne!(verdict(&longer), Verdict::Allow, "{longer:?} is allowed");
    }
});
