//! `centurion` on a terminal: the surface is there at once, the session opens behind it.

mod desk;
mod diffs;
mod files;
mod images;
mod key_files;
mod lists;
mod own_shell;
mod tables;

use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use centurion_config::Problem;
use centurion_engine::{
    Answerer, BUILT_IN_COMMANDS, COMMAND_ALIASES, Handle, Options, Session, View,
};
use centurion_protocol::{Env, SystemWorld, World};
use centurion_tools::guard;
use centurion_tui::{
    App, AskKind, AskNumber, Asked, Capabilities, CommandHint, Effect, ExitChoice, Fact, FileLine,
    Happening, Input, KEEPER_ARGUMENT, KeeperProgram, Key, KeyCode, Look, Model, Surfaces,
    Terminal, TerminalFront, TerminalOptions,
};

use self::desk::ProgramDesk;
use self::files::TerminalFiles;
use crate::absent_model::ABSENT;
use crate::args::{InputFormat, NamedSession, OutputFormat, RunArgs};
use crate::configuration::Configuration;
use crate::demo::{self, DemoArgs};
use crate::output;
use crate::sessions;
use crate::setup::{self, Lasting, SessionIo};
use crate::signals::Signals;
use crate::surroundings::Surroundings;
use crate::trust::TrustQuestion;

/// The longest wait for a terminal that takes nothing, at the end.
const LEAVING: Duration = Duration::from_secs(3);

/// The time in which the terminal begins with what it is asked for.
const SOON: Duration = Duration::from_millis(50);

/// The exit code of a program that Ctrl+C ends.
const INTERRUPTED: u8 = 130;

/// Shown where no model can be reached; the reason stands above it.
const NO_MODEL: &str = "No model answers yet. Set `ANTHROPIC_API_KEY` (or `OPENAI_API_KEY`), or start a model server on this machine \
    such as Ollama, and start again.\n\nTo see agents at work without a key or a network: `centurion demo --interactive`";

/// Tells whether a person sits before this run.
pub(crate) fn is_wanted(args: &RunArgs) -> bool {
    let is_text = args.format.output_format == OutputFormat::Text
        && args.format.input_format == InputFormat::Text;
    !args.print
        && !args.session.init_only
        && !args.format.verbose
        && is_text
        && io::stdin().is_terminal()
        && io::stdout().is_terminal()
}

/// Takes the terminal, which is put back as it was however this process ends.
fn enter(is_plain: bool) -> anyhow::Result<Terminal> {
    let args = vec![guard::ARGUMENT.into(), KEEPER_ARGUMENT.into()];
    let keeper = KeeperProgram { program: std::env::current_exe()?, args };
    let terminal = Terminal::enter(TerminalOptions { is_plain, keeper: Some(keeper) })?;
    if let Some(keeper) = terminal.keeper_id() {
        guard::spare(keeper);
    }
    Ok(terminal)
}

/// The way in which a session in the terminal ended.
enum End {
    Left(ExitChoice),
    /// A signal ended it, with this exit code.
    Signal(u8),
}

/// Tells whether the value of a variable switches something on.
fn is_true(value: &str) -> bool {
    !matches!(value, "" | "0" | "false")
}

/// Tells whether a screen reader reads along, or the terminal can do nothing but show lines.
fn is_plain(is_asked_for: bool, env: &Env) -> bool {
    let is_set = |name: &str| env.get(name).is_some_and(is_true);
    is_asked_for
        || ["ACCESSIBLE", "CLAUDE_AX_SCREEN_READER"].into_iter().any(is_set)
        || env.get("TERM") == Some("dumb")
}

/// Runs sessions until the person leaves.
pub(crate) async fn run(mut args: RunArgs) -> anyhow::Result<ExitCode> {
    let is_plain = is_plain(args.format.ax_screen_reader, &Surroundings::observe()?.env);
    args.format.ax_screen_reader = is_plain;
    let mut terminal = enter(is_plain)?;
    args.format.include_partial_messages = true;
    args.delegation.forward_subagent_text = true;
    // Without a model a person is told what to set.
    args.model.is_optional = true;
    let mut first = args.prompt.take();
    let mut lists = args.session.resume == Some(None);
    if lists {
        args.session.resume = None;
    }
    loop {
        let (left, back) =
            Box::pin(one_session(&args, terminal, first.take(), std::mem::take(&mut lists)))
                .await?;
        terminal = back;
        match left {
            End::Left(ExitChoice::Shell) => return Ok(ExitCode::SUCCESS),
            End::Signal(code) => return Ok(ExitCode::from(code)),
            End::Left(ExitChoice::Demo) => {
                // The demo takes the terminal anew.
                drop(terminal);
                return Box::pin(demo::run(DemoArgs::interactive())).await;
            }
            End::Left(ref left @ (ExitChoice::Session(id) | ExitChoice::Branch(id))) => {
                args.session.continue_last = false;
                args.session.session_id = None;
                args.session.fork_session = matches!(left, ExitChoice::Branch(_));
                args.session.resume = Some(Some(NamedSession::Id(id)));
            }
        }
    }
}

/// Runs one session with its terminal, which comes back.
async fn one_session(
    args: &RunArgs,
    terminal: Terminal,
    first: Option<String>,
    lists: bool,
) -> anyhow::Result<(End, Terminal)> {
    let surroundings = Surroundings::observe()?;
    let surroundings = surroundings.configured_by(args.project_config_root.as_deref())?;
    let kept = TerminalFiles::new(&surroundings);
    let mut model = Model::default();
    model.set_commands(with_aliases(BUILT_IN_COMMANDS.iter().map(hint).chain(own_commands())));
    model.set_history(kept.history());
    if args.format.ax_screen_reader {
        model.set_plain();
    } else {
        model.restore_drafts(kept.drafts());
    }
    let front = TerminalFront::new(model);
    let desk = Arc::new(ProgramDesk::new(&surroundings, kept, &front));
    desk.read_keys();
    if lists {
        desk.list_sessions();
    }
    // It is there to be read while the session opens.
    if let Some(transcript) = resumed(args, &surroundings) {
        front.resumes(transcript);
    }
    let session = play(args, &surroundings, &front, &desk, first);
    Box::pin(show(terminal, &surroundings, &front, Arc::clone(&desk), session)).await
}

/// Plays a session that is made elsewhere, such as the demo's, with a prompt of its own.
pub(crate) async fn perform<F>(
    surroundings: &Surroundings,
    prompt: &str,
    options: F,
) -> anyhow::Result<()>
where
    F: AsyncFnOnce(Arc<dyn View>) -> anyhow::Result<Options>,
{
    let is_plain = is_plain(false, &surroundings.env);
    let terminal = enter(is_plain)?;
    let mut model = Model::default();
    if is_plain {
        model.set_plain();
    }
    let front = TerminalFront::new(model);
    let desk = Arc::new(ProgramDesk::new(surroundings, TerminalFiles::new(surroundings), &front));
    let session = async {
        let view = Arc::clone(&front) as Arc<dyn View>;
        let mut options = options(view).await?;
        options.settings.partial_messages = true;
        let mut session = Box::pin(open(options, surroundings, &front)).await?;
        front.happens(Happening::Fact(Fact::Prompt(prompt.to_owned())));
        session.run().await;
        Ok(())
    };
    show(terminal, surroundings, &front, desk, session).await.map(drop)
}

/// Shows a session until the person leaves; the terminal comes back.
async fn show(
    terminal: Terminal,
    surroundings: &Surroundings,
    front: &Arc<TerminalFront>,
    desk: Arc<ProgramDesk>,
    session: impl Future<Output = anyhow::Result<()>>,
) -> anyhow::Result<(End, Terminal)> {
    let told = Arc::clone(front);
    output::divert(Some(Box::new(move |line| {
        told.happens(Happening::Fact(Fact::Said(line.to_owned())));
    })));
    let look = Look::from_environment(|name| surroundings.env.get(name).map(str::to_owned));
    let is_plain = terminal.is_plain();
    let has_mouse = surroundings.env.get("CLAUDE_CODE_DISABLE_MOUSE").is_none_or(|it| !is_true(it));
    let can = Capabilities::from_environment(|name| surroundings.env.get(name).map(str::to_owned));
    let surfaces = Surfaces { look, is_plain, has_mouse, can };
    let mut app = App::new(Arc::clone(front), terminal, surfaces, desk as _, Arc::new(SystemWorld));
    let mut signals = Signals::with_hangup()?;
    let mut session = pin!(session);
    let (left, has_ended) = tokio::select! {
        biased;
        left = app.run() => (left.map(End::Left).map_err(anyhow::Error::from), false),
        ended = &mut session => (ended.map(|()| End::Left(ExitChoice::Shell)), true),
        code = told_to_end(&mut signals, is_plain.then_some(&**front)) => {
            (Ok(End::Signal(code)), false)
        }
    };
    if let Some(handle) = front.session().filter(|_| !has_ended) {
        handle.stop();
        // A second signal does not wait for the end of what runs.
        tokio::select! {
            _ = &mut session => {}
            _ = signals.next() => {}
        }
    }
    output::divert(None);
    // A terminal that takes nothing keeps no one from leaving; what it is owed comes from the keeper.
    if let Ok(written) = tokio::time::timeout(LEAVING, app.leave()).await {
        written?;
    }
    let terminal = app.into_terminal();
    Ok((left?, terminal))
}

/// Waits for a signal that ends the program; its exit code. Where the terminal edits lines, Ctrl+C is a signal too: a key
/// for the session.
async fn told_to_end(signals: &mut Signals, front: Option<&TerminalFront>) -> u8 {
    loop {
        match (signals.next().await, front) {
            (INTERRUPTED, Some(front)) => {
                let key = Key::plain(KeyCode::Char('c')).ctrl();
                front.happens(Happening::Input(&Input::Key(key)));
            }
            (code, _) => return code,
        }
    }
}

/// Opens a session and runs it to its end.
async fn play(
    args: &RunArgs,
    surroundings: &Surroundings,
    front: &Arc<TerminalFront>,
    desk: &ProgramDesk,
    first: Option<String>,
) -> anyhow::Result<()> {
    let mut configuration = readable_configuration(args, surroundings, front).await?;
    if let Some(brought) = asks_for_trust(&configuration, surroundings, front).await? {
        brought.grant(surroundings)?;
        configuration = Configuration::load(surroundings, &args.settings)?;
    }
    configuration.warn();
    let world: Arc<dyn World> = Arc::new(SystemWorld);
    let view = Arc::clone(front) as Arc<dyn View>;
    let answerer = Some(Arc::clone(front) as Arc<dyn Answerer>);
    let io = SessionIo { world: Arc::clone(&world), view, host: None, mirror: None, answerer };
    let (options, lasting) = setup::options(args, surroundings, configuration, io).await?;
    desk.configure(lasting.settings.clone());
    let is_without_model = options.model.name() == ABSENT;
    let mut session = Box::pin(open(options, surroundings, front)).await?;
    if let Some(name) = &args.session.name {
        session.handle().rename(name);
    }
    if let Some(text) = first {
        front.happens(Happening::Fact(Fact::Prompt(text)));
    }
    tokio::select! {
        _ = session.run() => {}
        () = offer_demo(is_without_model, front) => {}
    }
    let Lasting { pool, .. } = &lasting;
    pool.shutdown().await;
    Ok(())
}

/// The transcript of the session that is resumed, if one is and it can be found.
fn resumed(args: &RunArgs, surroundings: &Surroundings) -> Option<PathBuf> {
    let (dirs, cwd) = (&surroundings.dirs, &surroundings.cwd);
    match &args.session.resume {
        Some(Some(named)) => sessions::named(dirs, cwd, named).ok().map(|(_, path)| path),
        _ if args.session.continue_last => sessions::newest(dirs, cwd).map(|(_, path)| path),
        _ => None,
    }
}

/// Opens a session, and lets the terminal reach it.
async fn open(
    options: Options,
    surroundings: &Surroundings,
    front: &Arc<TerminalFront>,
) -> anyhow::Result<Session> {
    let model = options.model.name().to_owned();
    let window = options.model.info(&model).context_window;
    let session = Session::open(options).await?;
    let handle = session.handle();
    front.happens(Happening::Fact(Fact::Opened {
        session: session.id(),
        model,
        mode: handle.mode().name().to_owned(),
        cwd: surroundings.cwd.display().to_string(),
        window,
    }));
    front.happens(Happening::Fact(Fact::Commands(commands(&handle))));
    front.attach(handle);
    Ok(session)
}

fn hint(command: &centurion_engine::BuiltInCommand) -> CommandHint {
    CommandHint {
        name: command.name.to_owned(),
        about: command.about.to_owned(),
        arguments: command.argument_hint.to_owned(),
    }
}

/// The commands that the terminal carries out itself.
fn own_commands() -> impl Iterator<Item = CommandHint> {
    [
        ("background", "", "Let calls that are waited for continue in the background"),
        ("branch", "", "Continue in a copy of this session"),
        ("config", "[word]", "Search the settings: what counts, and who set it"),
        ("copy", "[n]", "Copy the last answer, or an earlier one"),
        ("diff", "", "Show what has changed in the checkout since its last commit, by agent"),
        ("doctor", "", "Show settings, their problems, and what this machine can do"),
        ("effort", "[level]", "Choose how much the model works on an answer"),
        ("exit", "", "Leave"),
        ("fork", "", "The same as /branch"),
        ("keybindings", "", "Change your keys in your editor"),
        ("list-agents", "", "List the agents of this session: view, focus, stop"),
        ("plan", "[what]", "Plan first: nothing changes until you approve"),
        ("plugin", "", "List the plugins"),
        ("sandbox", "", "Show what this machine can confine"),
        ("statusline", "[what]", "Have an agent set up your status line"),
        ("theme", "[name]", "Choose the colours"),
        ("team", "", "Show the team: members, tasks and mail; message, ask to end, stop"),
        ("trust", "", "Show whether this folder is trusted, and what of it"),
        ("stop", "[agent]", "Stop an agent, or all in the background"),
        (
            "tui",
            "[default|fullscreen]",
            "Choose the screen: the terminal's own scrollback, or the whole window",
        ),
    ]
    .into_iter()
    .map(|(name, arguments, about)| CommandHint {
        name: name.to_owned(),
        about: about.to_owned(),
        arguments: arguments.to_owned(),
    })
}

/// All commands of the session and of the terminal.
fn commands(handle: &Handle) -> Vec<CommandHint> {
    let of_session = handle.commands().into_iter().map(|command| CommandHint {
        name: command.name,
        about: command.description,
        arguments: command.argument_hint,
    });
    with_aliases(of_session.chain(own_commands()))
}

/// Commands, and the other names that people know some of them by, where no command has such a name itself.
fn with_aliases(commands: impl Iterator<Item = CommandHint>) -> Vec<CommandHint> {
    let mut commands: Vec<CommandHint> = commands.collect();
    for (name, meant) in COMMAND_ALIASES {
        if commands.iter().all(|it| it.name != name) {
            let about = format!("The same as /{meant}");
            commands.push(CommandHint { name: name.to_owned(), about, arguments: String::new() });
        }
    }
    commands
}

/// Offers the demo where no model can be reached; never ends.
async fn offer_demo(is_without_model: bool, front: &TerminalFront) {
    if is_without_model {
        let choices = ["continue without a model", "play the demo: no key and no network"];
        let kind = AskKind::Choice {
            title: "No model answers yet".to_owned(),
            lines: NO_MODEL.lines().map(str::to_owned).collect(),
            choices: choices.map(str::to_owned).into(),
        };
        let asked = Asked { number: AskNumber(0), call: None, agent: None, path: Vec::new(), kind };
        if front.ask(asked).await.is_some_and(|answer| answer["chosen"] == 1) {
            front.wants(Effect::PlayDemo);
        }
    }
    std::future::pending::<()>().await;
}

/// Reads the settings. Where a file cannot be read nothing runs, for rules that deny something may be in it: a person may mend
/// it first. If they do not, the error is that of every run.
async fn readable_configuration(
    args: &RunArgs,
    surroundings: &Surroundings,
    front: &Arc<TerminalFront>,
) -> anyhow::Result<Configuration> {
    loop {
        let configuration = Configuration::load(surroundings, &args.settings)?;
        let unread: Vec<&Problem> = configuration.settings.unread_files().collect();
        let Some(first) = unread.first() else { return Ok(configuration) };
        let (path, line) = (first.path.display().to_string(), first.line.unwrap_or(1));
        let why = "Nothing runs: rules that deny something may be in a file that cannot be read.";
        let mut lines = vec![why.to_owned()];
        lines.extend(unread.iter().map(ToString::to_string));
        let choices =
            ["leave".to_owned(), format!("open {path} in your editor"), "read it again".to_owned()];
        let title = "Settings that cannot be read".to_owned();
        let kind = AskKind::Choice { title, lines, choices: choices.into() };
        let asked = Asked { number: AskNumber(0), call: None, agent: None, path: Vec::new(), kind };
        let answer = front.ask(asked).await;
        match answer.and_then(|answer| answer["chosen"].as_u64()) {
            Some(1) => {
                front.wants(Effect::OpenFile(FileLine { path, line }));
                // The editor has the terminal, and this thread, until it ends.
                tokio::time::sleep(SOON).await;
            }
            Some(2) => {}
            _ => return Ok(configuration),
        }
    }
}

/// Asks whether to trust a folder that brings something that loosens or runs; what it brings, if a person said yes.
async fn asks_for_trust(
    configuration: &Configuration,
    surroundings: &Surroundings,
    front: &Arc<TerminalFront>,
) -> anyhow::Result<Option<TrustQuestion>> {
    use centurion_config::trust::TrustState;
    if matches!(configuration.trust_state(), TrustState::Trusted(_)) {
        return Ok(None);
    }
    let Some(brought) = TrustQuestion::look(&configuration.trust, surroundings)? else {
        return Ok(None);
    };
    let mut lines =
        vec![format!("{} brings what loosens rules or runs programs:", surroundings.cwd.display())];
    lines.extend(brought.lines.iter().cloned());
    let choices =
        ["continue without it", "trust it: all of the above counts, later changes do not"];
    let kind = AskKind::Choice {
        title: "Trust this folder?".to_owned(),
        lines,
        choices: choices.map(str::to_owned).into(),
    };
    let asked = Asked { number: AskNumber(0), call: None, agent: None, path: Vec::new(), kind };
    let answer = front.ask(asked).await;
    Ok(answer.is_some_and(|answer| answer["chosen"] == 1).then_some(brought))
}
