//! `centurion demo` does what it shows.

use std::process::Command;

use crate::program::Program;

#[test]
fn the_demo_needs_nothing_and_really_fixes_its_test() {
    let program = Program::alone();
    let ended = program.run(&["demo"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    for step in ["● Read sum.sh", "FAILED", "● Edit sum.sh", "ok: 1 + 2 + 3 = 6", "centurion -p"]
    {
        assert!(ended.stderr.contains(step), "{step} is missing: {}", ended.stderr);
    }
    let line = ended.stderr.lines().next().unwrap();
    let project = line.rsplit(' ').next().unwrap();
    let test = Command::new("./test.sh").current_dir(project).output().unwrap();
    assert!(test.status.success());
    assert!(program.transcripts().is_empty(), "the user's own sessions are left alone");
    std::fs::remove_dir_all(std::path::Path::new(project).parent().unwrap()).unwrap();
}
