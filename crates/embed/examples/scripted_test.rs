//! A test of a program with agents: the model is a script, which also fails on demand.
#![expect(clippy::print_stdout, reason = "an example prints")]

use centurion_embed::{Error, Event, Model, Outcome, Session};

/// The part of the program that is tested: it takes its model as a value.
async fn summarise(model: Model, text: &str) -> Result<String, Error> {
    let mut session = Session::builder(model).max_turns(3).open().await?;
    session.ask(format!("Summarise in one line: {text}")).await?.into_text()
}

async fn an_answer_is_given() -> Result<(), Error> {
    let summary = summarise(Model::script("default: All is well."), "a long text").await?;
    assert_eq!(summary, "All is well.");
    Ok(())
}

async fn a_provider_that_is_busy_is_asked_again() -> Result<(), Error> {
    let script = "
default:
  error: {status: 429, type: rate_limit_error, headers: {retry-after-ms: '1'}, times: 1}
  text: All is well.
";
    let mut session = Session::builder(Model::script(script)).open().await?;
    let mut turn = session.send("hello");
    let mut retries = 0;
    while let Some(event) = turn.next().await {
        match event {
            Event::Retry { .. } => retries += 1,
            Event::Answered(answer) => assert_eq!(answer.outcome, Outcome::Completed),
            _ => {}
        }
    }
    assert_eq!(retries, 1);
    Ok(())
}

async fn a_refusal_is_no_answer() -> Result<(), Error> {
    let script = "default: {text: No., stop_reason: refusal}";
    let mut session = Session::builder(Model::script(script)).open().await?;
    let answer = session.ask("hello").await?;
    assert_eq!(answer.outcome, Outcome::Refused);
    assert!(answer.into_text().is_err());
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    an_answer_is_given().await?;
    a_provider_that_is_busy_is_asked_again().await?;
    a_refusal_is_no_answer().await?;
    println!("3 passed");
    Ok(())
}
