//! `centurion demo` does what it shows.

use std::process::Command;

use crate::program::Program;

#[test]
fn the_demo_needs_nothing_and_shows_agents_that_really_fix_its_test() {
    // S-369
    let program = Program::alone();
    let ended = program.run(&["demo"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    for step in [
        "  ▶ writer  Document sum.sh [general-purpose] (in the background)",
        "  ● scout  Bash git log --oneline",
        "● Edit sum.sh",
        "Queued: writer reads it before its next step",
        "  ▶ checker  continues (in the background)",
        "✓ five agents worked for the lead: checker, counter, multiplier, scout, writer",
        "✓ two worked apart, on branches of their own: counter, multiplier",
        "✓ what those two wrote is merged, and what was not committed is as it was",
        "✓ one continued after its report, with all it knew: checker",
        "✓ the test passes, and README.md has an example that is true",
        "  ▶ ada  ada: You are the first checker",
        "✓ three members worked on one task list: ada, bob, cyd",
        "✓ of two that wanted one task one got it, and the other was told who",
        "✓ the last task could not be started before the two that it waits for",
        "✓ each task was done by the member that had claimed it",
        "✓ CHECKS.md holds what members told each other",
        "✓ all members ended when the lead asked them to",
        "centurion -p",
    ] {
        assert!(ended.stderr.contains(step), "{step} is missing: {}", ended.stderr);
    }
    assert!(!ended.stderr.contains("NOT SEEN"), "{}", ended.stderr);
    let line = ended.stderr.lines().next().unwrap();
    let project = std::path::Path::new(line.rsplit(' ').next().unwrap());
    let test = Command::new("./test.sh").current_dir(project).output().unwrap();
    assert!(test.status.success());
    let after = |label: &str| {
        let line = ended.stderr.lines().find_map(|line| line.trim().strip_prefix(label));
        line.unwrap_or_else(|| panic!("{label} is missing")).trim().to_owned()
    };
    let agents = std::fs::read_dir(after("Those of its agents:")).unwrap().flatten();
    let is_transcript = |path: &std::path::Path| path.extension().is_some_and(|it| it == "jsonl");
    assert_eq!(agents.filter(|entry| is_transcript(&entry.path())).count(), 5);
    assert!(std::fs::exists(after("Transcript of the lead:")).unwrap());
    assert!(program.transcripts().is_empty(), "the user's own sessions are left alone");
    std::fs::remove_dir_all(project.parent().unwrap()).unwrap();
}
