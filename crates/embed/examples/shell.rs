//! An agent that runs shell commands: they run below a guard, which is this program again.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example prints")]

use std::process::ExitCode;

use centurion_embed::{Error, Guard, Model, Session};

const SCRIPT: &str = r"
default:
  - {tool: Bash, input: {command: 'echo $((20 + 22))'}}
  - 'The shell said ${re:(\d+)}.'
";

fn main() -> ExitCode {
    let guard = match Guard::enter(std::env::args_os()) {
        Ok(guard) => guard,
        Err(code) => return code,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime.map(|runtime| runtime.block_on(run(guard))) {
        Ok(Ok(text)) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        failed => {
            eprintln!("{failed:?}");
            ExitCode::FAILURE
        }
    }
}

async fn run(guard: Guard) -> Result<String, Error> {
    let model = Model::script(SCRIPT);
    let mut session = Session::builder(model).guard(guard).allow("Bash(echo *)").open().await?;
    let answer = session.ask("add the numbers").await?;
    session.close().await;
    answer.into_text()
}
