//! This program as a member of a team, in a process of its own.

use std::io::{self, IsTerminal as _};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use centurion_engine::{LeadHearing, LeadLink, LeadView, LinkEnd, Session, Start, Storage, View};
use centurion_protocol::{SessionId, SystemWorld, World};
use tokio::signal::unix::{SignalKind, signal};

use super::pane_output::PaneLines;
use super::{TICKET, flags};
use crate::args::RunArgs;
use crate::configuration::Configuration;
use crate::log::start_logging;
use crate::output::{LiveView, divert, note, visible};
use crate::setup::{self, Lasting, SessionIo};
use crate::surroundings::Surroundings;

/// Works for the lead until that is gone or has no more use for this process.
pub(crate) async fn run(args: RunArgs) -> anyhow::Result<ExitCode> {
    start_logging(args.log_filter(), args.debug_file.as_deref())?;
    let mut surroundings = Surroundings::observe()?;
    let session = args.member.lead_session()?;
    // It is for this process alone, and no command of the member sees it.
    let ticket = surroundings.take_variable(TICKET).context(
        "this process was not started by the lead of a team\nhelp: the flags --agent-id and those beside it are for \
         members that a lead starts",
    )?;
    // An interrupt is for the lead, which ends its members.
    let _interrupts = signal(SignalKind::interrupt())?;
    let (link, hearing) =
        LeadLink::connect(&surroundings.dirs.members_dir(), session, &ticket).await?;
    match open(surroundings, &link, session).await {
        Ok((session, lasting, _surroundings)) => {
            serve(session, lasting, hearing).await;
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            hearing.refuse(format!("{error:#}")).await;
            Err(error)
        }
    }
}

async fn serve(session: Session, lasting: Lasting, hearing: LeadHearing) {
    if session.serve_lead(hearing).await == LinkEnd::Dismissed {
        lasting.pool.shutdown().await;
    }
}

async fn open(
    surroundings: Surroundings,
    link: &Arc<LeadLink>,
    session: SessionId,
) -> anyhow::Result<(Session, Lasting, Surroundings)> {
    let mut args = flags::joined(link.inherited())?;
    args.session.session_id = Some(session);
    let surroundings = surroundings.configured_by(args.project_config_root.as_deref())?;
    let pane = if io::stderr().is_terminal() { Some(PaneLines::begin()?) } else { None };
    let own = pane.map(|pane| {
        let lines = pane.clone();
        divert(Some(Box::new(move |line| lines.show(&visible(line)))));
        note(&args.member.headline());
        Arc::new(LiveView::to(surroundings.paints(), move |line| pane.show(line))) as Arc<dyn View>
    });
    let view: Arc<dyn View> = Arc::new(LeadView::new(Arc::clone(link), own));
    let world: Arc<dyn World> = Arc::new(SystemWorld);
    let configuration = Configuration::load(&surroundings, &args.settings)?;
    let io = SessionIo { world, view, host: None, mirror: None, answerer: None };
    let (mut options, lasting) = setup::options(&args, &surroundings, configuration, io).await?;
    options.start = Start::New(session);
    options.storage = Storage {
        transcript: Some(link.transcript().to_owned()),
        redaction: options.storage.redaction,
        ..Storage::without_transcript(link.output_dir().to_owned())
    };
    let agents = &mut options.agents;
    agents.lead = Some(Arc::clone(link));
    // The lead alone is what its flags and settings say, and hears others.
    (agents.main, agents.peers, agents.begins_in) = (None, None, None);
    let session = Session::open(options).await?;
    Ok((session, lasting, surroundings))
}
