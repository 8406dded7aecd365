//! Members of a team in processes of their own: where they run, and this program as one of them.

pub(crate) mod flags;
mod member;
mod pane;
mod pane_output;
mod process;
mod tmux;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use centurion_config::settings::TeammateMode;
use centurion_engine::MemberProcessOptions;
use centurion_protocol::Env;
use centurion_team::BackEnd;

pub(crate) use self::member::run as run_member;
pub(crate) use self::pane::{ARGUMENT as PANE_ARGUMENT, become_member};
use self::process::ProcessBackEnd;
use self::tmux::TmuxBackEnd;
use crate::args::RunArgs;
use crate::delegation::has_team;
use crate::live_settings::LiveSettings;
use crate::output::note;
use crate::surroundings::Surroundings;

/// The time after which a member's process at work that says nothing counts as one that hangs. It says every quarter of
/// this that it is there; a machine under load is late with that.
const SILENCE: Duration = Duration::from_mins(2);

/// The variable with the word by which a member's process is known at its lead's socket.
const TICKET: &str = "CENTURION_MEMBER_TICKET";

/// The back end for the members of a run: `None` keeps them in this process, or there are none.
pub(crate) fn back_end(
    args: &RunArgs,
    settings: &LiveSettings,
    env: &Env,
    surroundings: &Surroundings,
) -> anyhow::Result<Option<MemberProcessOptions>> {
    let has_team = settings.with(|state| has_team(&state.settings, env));
    if args.member.is_member() || !has_team {
        return Ok(None);
    }
    let by_settings = || settings.with(|state| state.settings.teammate_mode());
    let asked = args.delegation.teammate_mode.or_else(by_settings);
    let mode = match asked.unwrap_or(TeammateMode::InProcess) {
        TeammateMode::Auto if env.get("TMUX").is_some() => TeammateMode::Tmux,
        TeammateMode::Auto => TeammateMode::InProcess,
        mode => mode,
    };
    if mode != TeammateMode::InProcess
        && (args.session.no_session_persistence || args.format.session_mirror)
    {
        // Another process finds no transcript there, and its lines reach no mirror.
        note(
            "warning: the members of a team stay in this process: with --no-session-persistence \
             and --session-mirror no other process writes transcripts",
        );
        return Ok(None);
    }
    let program = std::env::current_exe().context("this program's own file cannot be found")?;
    let start = flags::Start { program };
    let back_end: Arc<dyn BackEnd> = match mode {
        TeammateMode::InProcess | TeammateMode::Auto => return Ok(None),
        TeammateMode::Process => Arc::new(ProcessBackEnd::new(start, &surroundings.env)),
        TeammateMode::Tmux => Arc::new(TmuxBackEnd::new(
            start,
            env.get("TMUX_PANE").filter(|_| is_inside(env)),
            surroundings.dirs.members_dir(),
        )),
    };
    let directory = surroundings.dirs.members_dir();
    let (args, settings) = (args.clone(), settings.clone());
    let inherited = move || {
        settings.with(|state| flags::inherited(&args, state.settings.sources().flag.as_ref()))
    };
    let inherited = Arc::new(inherited);
    Ok(Some(MemberProcessOptions { back_end, directory, inherited, silence: SILENCE }))
}

/// Tells whether this process runs in a pane of tmux.
fn is_inside(env: &Env) -> bool {
    env.get("TMUX").is_some()
}
