//! A conversation of several prompts that continues in another process: here, in a second session.
#![expect(clippy::print_stdout, reason = "an example prints")]

use centurion_embed::{Event, Model, Session, SessionBuilder};

/// Counts the answers so far: it answers from the conversation, which a resumed session has.
const SCRIPT: &str = "default: [The first answer., The second answer., The third answer.]";

fn builder(transcripts: &std::path::Path) -> SessionBuilder {
    Session::builder(Model::script(SCRIPT)).transcripts(transcripts).streams_text()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let mut session = builder(directory.path()).open().await?;
    let id = session.id();
    for prompt in ["begin", "go on"] {
        let mut turn = session.send(prompt);
        while let Some(event) = turn.next().await {
            match event {
                Event::TextDelta { text, .. } => print!("{text}"),
                Event::Text { .. } => println!(),
                _ => {}
            }
        }
    }
    session.close().await;

    let mut session = builder(directory.path()).resume(id).open().await?;
    println!("{}", session.ask("and once more").await?.text);
    session.close().await;
    Ok(())
}
