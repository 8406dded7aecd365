//! One prompt and its answer: `cargo run -p centurion-embed --example one_shot -- "say something"`.
#![expect(clippy::print_stdout, reason = "an example prints")]

use centurion_embed::{Error, Model, Session};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let prompt = std::env::args().nth(1).unwrap_or_else(|| "hello".to_owned());
    // `Model::usual()` with `.environment(std::env::vars())` asks the provider that there is a key for.
    let model = Model::script("default: You said ${re:(.+)}.");
    let mut session = Session::builder(model).open().await?;
    let answer = session.ask(prompt).await?;
    println!("{}", answer.into_text()?);
    session.close().await;
    Ok(())
}
