//! The guard of shell commands. The example `shell` is a program that is one.

use centurion_embed::{Guard, Model, Session};

const SCRIPT: &str = "
default:
  - {tool: Bash, input: {command: 'echo $((20 + 22))'}}
  - 'It said: ${re:(\\d+)}'
";

#[test]
fn a_program_that_was_not_started_as_a_guard_continues() {
    for arguments in [vec![], vec!["program"], vec!["program", "--flag", "__guard"]] {
        let arguments = arguments.into_iter().map(Into::into);
        assert!(Guard::enter(arguments.collect::<Vec<_>>()).is_ok());
    }
    // What is no task of a guard is refused.
    assert!(Guard::enter(["program".into(), "__guard".into(), "nonsense".into()]).is_err());
}

#[tokio::test]
async fn without_a_guard_there_is_no_shell_whatever_allows_it() {
    let builder = Session::builder(Model::script(SCRIPT)).allow("Bash");
    let mut session = builder.open().await.unwrap();
    let answer = session.ask("add").await.unwrap();
    assert!(!answer.text.contains("42"), "{answer:?}");
}
