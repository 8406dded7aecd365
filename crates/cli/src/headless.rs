//! One headless run: from the command line to an exit code.

use std::io::{self, IsTerminal};
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;

use anyhow::bail;
use centurion_engine::{Handle, Manner, Mirror, Priority, Remembering, Session, View};
use centurion_host::{
    Control, Declarations, Front, Fronts, HostChannel, JsonView, OutputQueue, OwnFileNames,
    PluginSource, StreamView, TranscriptMirror,
};
use centurion_model::Model;
use centurion_protocol::{Block, Outcome, SystemWorld, Thinking, World};
use centurion_tools::NameSearch;

use crate::args::{InputFormat, OutputFormat, RunArgs};
use crate::configuration::Configuration;
use crate::input::{HostLines, Input};
use crate::interactive;
use crate::log::start_logging;
use crate::output::{self, LiveView, ReaderWatch, TextView, end_soon, lost_reader, note};
use crate::own_commands::OwnNames;
use crate::refused_resume;
use crate::retention::Sweep;
use crate::setup::{self, Lasting, SessionIo};
use crate::signals::Signals;
use crate::slow_servers;
use crate::stdin;
use crate::surroundings::{self, Surroundings};

pub(crate) async fn run(args: RunArgs) -> anyhow::Result<ExitCode> {
    let mut args = args.settle(&surroundings::environment());
    start_logging(args.log_filter(), args.debug_file.as_deref())?;
    if interactive::is_wanted(&args) {
        return Box::pin(interactive::run(args)).await;
    }
    for warning in args.foreign.warnings() {
        note(&format!("warning: {warning}"));
    }
    let streams_input = args.format.input_format == InputFormat::StreamJson;
    let asks = !streams_input && !args.session.init_only;
    let prompt = asks.then(|| prompt(&args)).transpose()?;
    let mut lines = match (streams_input, args.format.await_initialize) {
        (false, _) => None,
        (true, false) => Some(HostLines::open().await),
        (true, true) => Some(HostLines::open_with_request().await?),
    };
    let mut declarations = Declarations::default();
    if let Some(opening) = lines.as_ref().and_then(HostLines::opening) {
        declarations = opening.declarations(&args);
        opening.lay_under(&mut args);
    }
    let surroundings = Surroundings::observe()?;
    let surroundings = surroundings.configured_by(args.project_config_root.as_deref())?;
    let output = Arc::new(output::queue(&surroundings.dirs));
    let front = front(&args, &output, &surroundings);
    let mut signals = None;
    let said = UserInput { prompt, lines: &mut lines, declarations };
    let running = run_session(&args, &surroundings, said, &front, &output, &mut signals);
    let ended = Box::pin(running).await;
    if let Err(error) = &ended
        && args.format.output_format == OutputFormat::StreamJson
    {
        refused_resume::tell(&*front, error, args.session.resumed_id());
    }
    let OutputEnd { written, signal, was_told } = finish(&*front, &output, &mut signals).await;
    if let Err(error) = &written {
        output::fail(error);
    }
    let (ended, lasting, remembering) = ended?;
    lasting.pool.shutdown().await;
    if let Some(remembering) = remembering.filter(|_| written.is_ok() && !was_told) {
        remember(remembering, &mut signals).await;
    }
    Ok(match (ended, signal) {
        (RunEnd::BySignal(code), _) | (_, Some(code)) => ExitCode::from(code),
        (RunEnd::Badly, None) => ExitCode::FAILURE,
        // An answer that its reader did not get is none.
        (RunEnd::Well, None) if written.is_err() => ExitCode::FAILURE,
        (RunEnd::Well, None) => ExitCode::SUCCESS,
    })
}

/// The words of the user: one prompt, or the lines of a host.
struct UserInput<'a> {
    prompt: Option<HeadlessPrompt>,
    lines: &'a mut Option<HostLines>,
    declarations: Declarations,
}

/// Opens a session and runs it to its end. `front` may have something left to show.
async fn run_session(
    args: &RunArgs,
    surroundings: &Surroundings,
    UserInput { prompt, lines, declarations }: UserInput<'_>,
    front: &Arc<dyn Front>,
    output: &Arc<OutputQueue>,
    signals: &mut Option<Signals>,
) -> anyhow::Result<(RunEnd, Lasting, Option<Remembering>)> {
    let streams_input = args.format.input_format == InputFormat::StreamJson;
    let world: Arc<dyn World> = Arc::new(SystemWorld);
    let configuration = Configuration::load(surroundings, &args.settings)?;
    configuration.warn();
    let sweep = Sweep::new(&configuration.settings, &surroundings.dirs, SystemTime::now());
    let io = session_io(args, &world, front, output);
    let (options, lasting) = setup::options(args, surroundings, configuration, io).await?;
    let (model, thinking) = (options.model.clone(), options.settings.thinking);
    let mut telling = pin!(slow_servers::tell(options.extensions.servers.clone()));
    let mut session = tokio::select! {
        biased;
        opened = Session::open(options) => opened?,
        never = &mut telling => match never {},
    };
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
    if let Some(name) = &args.session.name {
        handle.rename(name);
    }
    let input = lasting.host.as_ref().map(|host| Input {
        control: control(host, &lasting, &handle, (model, thinking), declarations, surroundings),
        output: Arc::clone(output),
        world: Arc::clone(&world),
        replay: args.format.replay_user_messages,
        has_garbage: AtomicBool::new(false),
    });
    if let Some(HeadlessPrompt { content, manner }) = prompt {
        handle.submit_in(world.record_id(), content, Priority::Next, manner);
        handle.close();
    }
    // Beside the run, which does not wait for it: what is not reached today is reached another day.
    let sweeping = sweep.map(|sweep| tokio::task::spawn_blocking(move || sweep.run()));
    let signals = signals.insert(Signals::new()?);
    let working = async {
        if args.session.init_only {
            return begin_only(&mut session, signals).await;
        }
        drive(&mut session, input.as_ref().zip(lines.as_mut()), output, signals).await
    };
    let ended = tokio::select! {
        biased;
        ended = working => ended,
        never = &mut telling => match never {},
    };
    // Input that was not understood makes the run end badly.
    let has_garbage = input.as_ref().is_some_and(Input::has_garbage);
    let remembering = session.remembering().filter(|_| !matches!(ended, RunEnd::BySignal(_)));
    drop((session, handle, input));
    if let Some(sweeping) = sweeping.filter(|it| !it.is_finished()) {
        tracing::debug!("the removal of old sessions is cut off here");
        sweeping.abort();
    }
    let ended = if has_garbage && matches!(ended, RunEnd::Well) { RunEnd::Badly } else { ended };
    Ok((ended, lasting, remembering))
}

/// The control of a host over a session that began with this model and thinking.
fn control(
    host: &Arc<HostChannel>,
    lasting: &Lasting,
    handle: &Handle,
    (model, thinking): (Model, Thinking),
    declarations: Declarations,
    surroundings: &Surroundings,
) -> Control {
    host.follow(handle.current_session());
    Control {
        channel: Arc::clone(host),
        handle: handle.clone(),
        limits: lasting.limits.clone(),
        model,
        thinking,
        display: lasting.display.clone(),
        pool: Arc::clone(&lasting.pool),
        plugins: Arc::clone(&lasting.plugins) as Arc<dyn PluginSource>,
        settings: Arc::new(lasting.settings.clone()),
        hook_policy: lasting.hook_policy.clone(),
        warn: note,
        declarations,
        names: NameSearch::default(),
        own_names: OwnNames::new(surroundings, &lasting.settings) as Arc<dyn OwnFileNames>,
    }
}

/// Runs the hooks of a beginning, and nothing else.
async fn begin_only(session: &mut Session, signals: &mut Signals) -> RunEnd {
    tokio::select! {
        biased;
        code = signals.next() => RunEnd::BySignal(code),
        began = session.begin_only() => match began {
            None => RunEnd::Well,
            Some(reason) => {
                note(&format!("error: a hook ended the beginning: {reason}"));
                RunEnd::Badly
            }
        },
    }
}

/// The places that a session tells of itself.
fn session_io(
    args: &RunArgs,
    world: &Arc<dyn World>,
    front: &Arc<dyn Front>,
    output: &Arc<OutputQueue>,
) -> SessionIo {
    let has_host = args.format.input_format == InputFormat::StreamJson;
    let mirror = args.format.session_mirror.then(|| TranscriptMirror(Arc::clone(output)));
    SessionIo {
        world: Arc::clone(world),
        view: Arc::clone(front) as Arc<dyn View>,
        host: has_host.then(|| Arc::clone(output)),
        mirror: mirror.map(|mirror| Arc::new(mirror) as Arc<dyn Mirror>),
        answerer: None,
    }
}

/// Makes of the session what the settings want, now that its reader has everything. A signal ends that, and nothing else.
async fn remember(remembering: Remembering, signals: &mut Option<Signals>) {
    tokio::select! {
        biased;
        failures = remembering.carry_out() => {
            for failure in failures {
                note(&format!("warning: {failure}"));
            }
        }
        _ = next_signal(signals) => {}
    }
}

/// The exit code of the next signal; without signals there is none.
async fn next_signal(signals: &mut Option<Signals>) -> u8 {
    match signals {
        Some(signals) => signals.next().await,
        None => std::future::pending().await,
    }
}

/// The end of the wait for the reader.
struct OutputEnd {
    written: io::Result<()>,
    /// The exit code of the signal that ended the wait, if one did.
    signal: Option<u8>,
    /// Whether a signal came at all.
    was_told: bool,
}

/// Waits until the reader has everything.
async fn finish(
    front: &dyn Front,
    output: &OutputQueue,
    signals: &mut Option<Signals>,
) -> OutputEnd {
    let mut finishing = pin!(front.finish());
    let mut told = None;
    loop {
        tokio::select! {
            biased;
            written = &mut finishing => {
                let signal = told.filter(|_| written.is_err());
                return OutputEnd { written, signal, was_told: told.is_some() };
            }
            code = next_signal(signals) => {
                if told.replace(code).is_some() {
                    let error = io::Error::new(io::ErrorKind::TimedOut, "its reader does not read");
                    return OutputEnd { written: Err(error), signal: told, was_told: true };
                }
                output.end_soon();
                end_soon();
            }
        }
    }
}

/// Runs the session beside its input, until it ends or a signal or a closed pipe ends it.
async fn drive(
    session: &mut Session,
    input: Option<(&Input, &mut HostLines)>,
    output: &OutputQueue,
    signals: &mut Signals,
) -> RunEnd {
    let handle = session.handle();
    let mut forced = None;
    let mut pumping = pin!(async {
        match input {
            Some((input, lines)) => {
                input.pump(lines).await;
            }
            None => std::future::pending().await,
        }
    });
    // The restrictions of the host's first request are in force before anything runs.
    let mut is_pumping = futures_util::poll!(&mut pumping).is_pending();
    let outcome = {
        let mut running = pin!(session.run());
        loop {
            tokio::select! {
                outcome = &mut running => break outcome,
                () = &mut pumping, if is_pumping => is_pumping = false,
                code = signals.next() => {
                    if matches!(forced, Some(RunEnd::BySignal(_))) {
                        return RunEnd::BySignal(code);
                    }
                    forced = Some(RunEnd::BySignal(code));
                    output.end_soon();
                    end_soon();
                    handle.stop();
                }
                // A host that has died reads no more, and no event may come that would show it.
                () = lost_reader(), if !is_pumping && forced.is_none() => {
                    output.fail(&io::ErrorKind::BrokenPipe.into());
                }
                () = output.failed(), if forced.is_none() => {
                    forced = Some(RunEnd::Badly);
                    handle.stop();
                }
            }
        }
    };
    match (forced, outcome) {
        (Some(ended), _) => ended,
        // Work that was cut short is no success, whatever the last answer says.
        _ if !session.unfinished().is_empty() => RunEnd::Badly,
        (None, Some(Outcome::Completed | Outcome::Deferred) | None) => RunEnd::Well,
        (None, Some(_)) => RunEnd::Badly,
    }
}

/// The end of a run.
enum RunEnd {
    Well,
    Badly,
    /// With the exit code of the signal.
    BySignal(u8),
}

/// The prompt of a run without a host, with its handling.
struct HeadlessPrompt {
    content: Vec<Block>,
    manner: Manner,
}

/// The prompt: the argument, or piped input. Where there are both, what is piped is data: nothing in it is a command or
/// mentions a file.
fn prompt(args: &RunArgs) -> anyhow::Result<HeadlessPrompt> {
    let argument = args.prompt.as_deref().unwrap_or("").trim();
    let piped = stdin::read_piped(!argument.is_empty())?;
    let text = |text: &str| Block::Text(text.to_owned());
    let (content, manner) = match (argument, piped.trim()) {
        ("", "") => bail!(
            "there is no prompt: give one as an argument or on standard input\n\
             help: centurion -p \"what to do\" (flags that take lists, such as --allowedTools, go after it)"
        ),
        (prompt, "") | ("", prompt) => (vec![text(prompt)], Manner::default()),
        (argument, piped) => (vec![text(argument), text(piped)], Manner::piped()),
    };
    Ok(HeadlessPrompt { content, manner })
}

fn front(args: &RunArgs, output: &Arc<OutputQueue>, surroundings: &Surroundings) -> Arc<dyn Front> {
    let queue = || Arc::clone(output);
    let live = || Arc::new(LiveView::new(surroundings.paints()));
    let watched = |front: Arc<dyn Front>| [Arc::new(ReaderWatch(queue())) as Arc<dyn Front>, front];
    match args.format.output_format {
        OutputFormat::StreamJson if args.format.include_wait_events => {
            Arc::new(StreamView::with_waits(queue()))
        }
        OutputFormat::StreamJson => Arc::new(StreamView::new(queue())),
        OutputFormat::Json if args.format.verbose => Arc::new(JsonView::all(queue())),
        OutputFormat::Json => Arc::new(Fronts::new(watched(Arc::new(JsonView::last(queue()))))),
        // On a terminal the answer has been seen already when the run ends.
        OutputFormat::Text if args.format.verbose && io::stdout().is_terminal() => live(),
        OutputFormat::Text if args.format.verbose => {
            let text = watched(Arc::new(TextView::beside_lines(queue())));
            let live: Arc<dyn Front> = live();
            Arc::new(Fronts::new([live].into_iter().chain(text)))
        }
        OutputFormat::Text => Arc::new(Fronts::new(watched(Arc::new(TextView::new(queue()))))),
    }
}
