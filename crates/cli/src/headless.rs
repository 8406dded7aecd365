//! One headless run: from the command line to an exit code.

use std::io::IsTerminal;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;

use anyhow::bail;
use centurion_engine::{Session, View};
use centurion_protocol::{Block, Outcome, SystemWorld, World};

use crate::args::{InputFormat, OutputFormat, RunArgs};
use crate::configuration::Configuration;
use crate::control::Control;
use crate::input::Input;
use crate::models::ModelLimits;
use crate::output::{JsonView, LiveView, Nowhere, Output, StreamView, TextView, note};
use crate::retention::Sweep;
use crate::setup;
use crate::signals::Signals;
use crate::stdin;
use crate::surroundings::Surroundings;

pub(crate) async fn run(args: RunArgs) -> anyhow::Result<ExitCode> {
    setup::start_logging(args.debug.as_deref())?;
    let streams_input = args.format.input_format == InputFormat::StreamJson;
    let prompt = if streams_input { None } else { Some(prompt(&args)?) };
    let world: Arc<dyn World> = Arc::new(SystemWorld);
    let surroundings = Surroundings::observe()?;
    let output = Arc::new(Output::default());
    let control = Arc::new(Control::new(Arc::clone(&output), Arc::clone(&world)));
    let configuration = Configuration::load(&surroundings, &args.settings)?;
    configuration.warn();
    let limits = ModelLimits::new(&configuration.settings);
    if let Some(origin) = configuration.settings.plugin_only().hooks {
        control.refuse_hooks(origin.to_string());
    }
    let sweep = Sweep::new(&configuration.settings, &surroundings.dirs, SystemTime::now());
    let view = view(&args, &output, &surroundings);
    let (options, lasting) =
        setup::options(&args, &surroundings, configuration, Arc::clone(&world), view, &control)
            .await?;
    control.use_pool(Arc::clone(&lasting.pool));
    control.limit_models(limits, options.model.clone());
    let mut session = Session::open(options).await?;
    if surroundings.env.is_on("CLAUDE_CODE_SDK_READS_SESSION_STATE") {
        control.report_state(session.id());
    }
    if session.broken_lines() > 0 {
        let count = session.broken_lines();
        note(&format!(
            "warning: {count} lines of the session's transcript could not be read and are left out"
        ));
    }
    if !streams_input {
        session.hold_results();
    }
    let handle = session.handle();
    let input = Input {
        handle: handle.clone(),
        control,
        output: Arc::clone(&output),
        world: Arc::clone(&world),
        session: session.id(),
        replay: args.format.replay_user_messages,
        has_garbage: AtomicBool::new(false),
    };
    if let Some(prompt) = prompt {
        handle.submit(world.record_id(), vec![Block::Text(prompt)]);
        handle.close();
    }
    if let Some(sweep) = sweep {
        // Beside the run, which does not wait for it: what is not reached today is reached another day.
        tokio::task::spawn_blocking(move || sweep.run());
    }
    let code = drive(&mut session, streams_input.then_some(&input), &output).await?;
    let has_garbage = input.has_garbage();
    // Ends the views, which may have something left to print.
    drop((session, handle, input));
    lasting.pool.shutdown().await;
    Ok(match code {
        // What came in was not understood.
        Ended::Well if has_garbage => ExitCode::FAILURE,
        Ended::Well => ExitCode::SUCCESS,
        Ended::Badly => ExitCode::FAILURE,
        Ended::BySignal(code) => ExitCode::from(code),
    })
}

/// Runs the session beside its input, until it ends or a signal or a closed pipe ends it.
async fn drive(
    session: &mut Session,
    input: Option<&Input>,
    output: &Output,
) -> anyhow::Result<Ended> {
    let handle = session.handle();
    let mut signals = Signals::new()?;
    let mut forced = None;
    let mut pumping = pin!(async {
        match input {
            Some(input) => {
                input.pump().await;
                input.control.disconnect();
            }
            None => std::future::pending().await,
        }
    });
    let mut is_pumping = true;
    let outcome = {
        let mut running = pin!(session.run());
        loop {
            tokio::select! {
                outcome = &mut running => break outcome,
                () = &mut pumping, if is_pumping => is_pumping = false,
                code = signals.next() => {
                    if matches!(forced, Some(Ended::BySignal(_))) {
                        return Ok(Ended::BySignal(code));
                    }
                    forced = Some(Ended::BySignal(code));
                    output.end_soon();
                    handle.stop();
                }
                () = output.closed(), if forced.is_none() => {
                    forced = Some(Ended::Badly);
                    handle.stop();
                }
            }
        }
    };
    Ok(match (forced, outcome) {
        (Some(ended), _) => ended,
        // Work that was cut short is no success, whatever the last answer says.
        _ if !session.unfinished().is_empty() => Ended::Badly,
        (None, Some(Outcome::Completed | Outcome::Deferred) | None) => Ended::Well,
        (None, Some(_)) => Ended::Badly,
    })
}

/// How a run ended.
enum Ended {
    Well,
    Badly,
    /// With the exit code of the signal.
    BySignal(u8),
}

/// The prompt: the argument, piped input, or both.
fn prompt(args: &RunArgs) -> anyhow::Result<String> {
    if !args.print && std::io::stdin().is_terminal() && std::io::stdout().is_terminal() {
        bail!(
            "there is no interactive terminal in this version\n\
             help: centurion -p \"what to do\"\n\
             help: centurion demo"
        );
    }
    let argument = args.prompt.as_deref().unwrap_or("").trim();
    let piped = stdin::read_piped(!argument.is_empty())?;
    let prompt = match (argument, piped.trim()) {
        ("", "") => bail!(
            "there is no prompt: give one as an argument or on standard input\n\
             help: centurion -p \"what to do\" (flags that take lists, such as --allowedTools, go after it)"
        ),
        (argument, "") => argument.to_owned(),
        ("", piped) => piped.to_owned(),
        (argument, piped) => format!("{argument}\n\n{piped}"),
    };
    Ok(prompt)
}

fn view(args: &RunArgs, output: &Arc<Output>, surroundings: &Surroundings) -> Arc<dyn View> {
    let output = Arc::clone(output);
    match args.format.output_format {
        OutputFormat::StreamJson => Arc::new(StreamView(output)),
        OutputFormat::Json => Arc::new(JsonView::new(output, args.format.verbose)),
        // On a terminal the answer has been seen already when the run ends.
        OutputFormat::Text if args.format.verbose && std::io::stdout().is_terminal() => {
            Arc::new(LiveView::new(Nowhere, surroundings.paints()))
        }
        OutputFormat::Text if args.format.verbose => {
            Arc::new(LiveView::new(TextView::beside_lines(output), surroundings.paints()))
        }
        OutputFormat::Text => Arc::new(TextView::new(output)),
    }
}
