//! A lead with two agents that work side by side: a scout and a critic.
#![expect(clippy::print_stdout, reason = "an example prints")]

use centurion_embed::{Agent, Event, Model, Session};

const SCRIPT: &str = r#"
scripts:
  lead:
    - - Two agents begin.
      - {tool: Agent, input: {description: Look around, prompt: "@@scout", subagent_type: scout}}
      - {tool: Agent, input: {description: Judge, prompt: "@@judge", subagent_type: critic}}
    - "They said: ${re:(There are \\d+ files)}. ${re:(It is [a-z]+ work)}."
  scout:
    - {tool: Glob, input: {pattern: "*.txt"}}
    - There are 2 files.
  judge:
    - It is good work.
"#;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let project = tempfile::tempdir()?;
    for name in ["one.txt", "two.txt"] {
        std::fs::write(project.path().join(name), name)?;
    }
    let mut session = Session::builder(Model::script(SCRIPT))
        .directory(project.path())
        .agent(Agent::new("scout", "Looks around", "You look around.").tools(["Glob", "Read"]))
        .agent(Agent::new("critic", "Judges work", "You judge work.").tools(["Read"]))
        .open()
        .await?;
    let mut turn = session.send("@@lead what is here, and is it any good?");
    while let Some(event) = turn.next().await {
        match event {
            Event::AgentStarted { kind, name, task, .. } => {
                println!("begins: {} ({task})", name.unwrap_or(kind));
            }
            Event::Text { agent: None, text } => println!("lead: {text}"),
            _ => {}
        }
    }
    drop(turn);
    session.close().await;
    Ok(())
}
