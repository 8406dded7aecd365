//! Descriptions of sessions that cannot be opened, each refused with its reason.
#![expect(clippy::unused_async, reason = "a tool may wait, and these need not")]

use centurion_embed::{Agent, ErrorKind, Mode, Model, Session, SessionBuilder, Tool, ToolError};

fn plain() -> SessionBuilder {
    Session::builder(Model::script("default: Hello."))
}

async fn refused(builder: SessionBuilder, kind: ErrorKind, words: &str) {
    let Err(error) = builder.open().await else { panic!("it opened: {words}") };
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.to_string().contains(words), "{error}");
}

/// Has the name of a built-in tool.
#[derive(Tool)]
#[tool(name = "Edit")]
struct Taken;

impl Taken {
    async fn run(self) -> Result<String, ToolError> {
        Ok(String::new())
    }
}

/// A tool of its own.
#[derive(Tool)]
struct Own;

impl Own {
    async fn run(self) -> Result<String, ToolError> {
        Ok(String::new())
    }
}

#[tokio::test]
async fn what_cannot_be_in_force_is_an_error() {
    use ErrorKind::{Configuration, Model as NoModel, Storage};
    refused(plain().deny("Bash("), Configuration, "rule").await;
    refused(plain().tool::<Taken>(), Configuration, "`Edit`: the name is taken").await;
    refused(plain().tool::<Own>().tool::<Own>(), Configuration, "two tools").await;
    refused(plain().directory("/no/such/place"), Configuration, "/no/such/place").await;
    let twins = plain().agent(Agent::new("a", "a", "b")).agent(Agent::new("a", "a", "b"));
    refused(twins, Configuration, "two agents").await;
    refused(Session::builder(Model::script("default: [")), NoModel, "script").await;
    refused(Session::builder(Model::named("sonnet")), NoModel, "").await;
    refused(plain().resume("0d9f0c1e-0000-4000-8000-000000000000"), Configuration, "where").await;
    let kept = tempfile::tempdir().unwrap();
    let other = || plain().transcripts(kept.path());
    refused(other().resume("../../etc/passwd"), Configuration, "no id").await;
    let unknown = other().resume("0d9f0c1e-0000-4000-8000-000000000000");
    refused(unknown, Storage, "no session").await;
}

#[tokio::test]
async fn a_session_has_the_tools_that_were_chosen_and_those_of_the_program() {
    use centurion_embed::Event;

    for (builder, expected, missing) in [
        (plain(), &["Read", "Edit"][..], &["Bash", "CronCreate", "AskUserQuestion", "Task"][..]),
        (plain().tool::<Own>().built_in_tools(["Read"]), &["Own", "Read"], &["Edit", "Grep"]),
        (plain().built_in_agents(), &["Task"], &["Bash"]),
        (plain().mode(Mode::AcceptEdits).deny("Edit"), &["Write"], &["Edit"]),
    ] {
        let mut session = builder.open().await.unwrap();
        let mut turn = session.send("hello");
        let Some(Event::Started { tools, .. }) = turn.next().await else { panic!("no start") };
        for name in expected {
            assert!(tools.iter().any(|tool| tool == name), "{name} in {tools:?}");
        }
        for name in missing {
            assert!(tools.iter().all(|tool| tool != name), "{name} in {tools:?}");
        }
    }
}

#[tokio::test]
async fn a_session_without_a_directory_works_in_an_empty_one_that_goes_with_it() {
    let script = "default: [{tool: Glob, input: {pattern: '*'}}, 'Seen: ${re:(.*)}']";
    let mut session = Session::builder(Model::script(script)).open().await.unwrap();
    let answer = session.ask("look").await.unwrap();
    assert!(answer.text.contains("No files match"), "{answer:?}");
}

#[tokio::test]
async fn a_copy_of_a_session_continues_by_itself() {
    let kept = tempfile::tempdir().unwrap();
    let builder = || {
        let script = "default: [one, two, three]";
        Session::builder(Model::script(script)).transcripts(kept.path())
    };
    let mut first = builder().open().await.unwrap();
    assert_eq!(first.ask("a").await.unwrap().text, "one");
    let id = first.id();
    first.close().await;
    let mut copy = builder().fork(&id).open().await.unwrap();
    assert_ne!(copy.id(), id);
    assert_eq!(copy.ask("b").await.unwrap().text, "two");
    copy.close().await;
    let mut first = builder().resume(&id).open().await.unwrap();
    assert_eq!(first.id(), id);
    assert_eq!(first.ask("c").await.unwrap().text, "two");
}
