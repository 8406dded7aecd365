//! A session in another program: `cargo run -p centurion-engine --example embed -- "say something"`.
//!
//! The model is a script, so that it needs no key and no network; `Model::open(None, …)` would take what the
//! environment gives access to.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::process::ExitCode;
use std::sync::Arc;

use centurion_engine::{Base, Options, Session, Storage, View};
use centurion_model::{Model, ProviderKind, RetryPolicy, script};
use centurion_protocol::sdk::{Event, EventBody};
use centurion_protocol::{Block, Env, Outcome, SystemWorld, World as _};
use centurion_tools::guard::{self, GuardProgram};

/// Prints every result.
struct Printer;

impl View for Printer {
    fn show(&self, event: &Event) {
        if let EventBody::Result(result) = &event.body {
            println!("{}", result.result);
        }
    }
}

fn main() -> ExitCode {
    // Shell commands run below a guard, which is this program again.
    let mut arguments = std::env::args_os().skip(1);
    let prompt = arguments.next().unwrap_or_else(|| "hello".into());
    if prompt == guard::ARGUMENT {
        return guard::run(arguments);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let outcome = runtime
        .map_err(Into::into)
        .and_then(|runtime| runtime.block_on(run(prompt.to_string_lossy().into_owned())));
    match outcome {
        Ok(Some(Outcome::Completed)) => ExitCode::SUCCESS,
        Ok(outcome) => {
            println!("the run did not complete: {outcome:?}");
            ExitCode::FAILURE
        }
        Err(error) => {
            println!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(prompt: String) -> Result<Option<Outcome>, Box<dyn std::error::Error>> {
    let script = script::parse(r#"{"default": "You said: ${re:(.+)}"}"#, "scenario.json")?;
    let model = Model::with_provider(
        Arc::new(script),
        ProviderKind::Script,
        "script",
        RetryPolicy::new(&Env::default()),
        Arc::new(SystemWorld),
    );
    let base = Base::new(std::env::current_dir()?, GuardProgram::new(std::env::current_exe()?));
    let storage = Storage::without_transcript(std::env::temp_dir().join("centurion-embed"));
    let options = Options { view: Arc::new(Printer), ..Options::new(model, base, storage) };

    let mut session = Session::open(options).await?;
    let handle = session.handle();
    handle.submit(SystemWorld.record_id(), vec![Block::Text(prompt)]);
    handle.close();
    Ok(session.run().await)
}
