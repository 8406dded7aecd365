//! A member as a process below a guard: it ends with its lead, whatever it does.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use centurion_protocol::Env;
use centurion_team::{
    BackEnd, BackEndError, BackEndFuture, MemberCommand, MemberPlace, MemberProcess,
};
use centurion_tools::guard::GuardProgram;
use centurion_tools::{PipedProcess, PipedProgram};
use parking_lot::Mutex;

use super::TICKET;
use super::flags::{Start, member_args};

/// The most bytes of what a process said last that are kept.
const MOST_SAID: usize = 4 * 1024;

/// Starts members as processes without a terminal.
pub(crate) struct ProcessBackEnd {
    start: Start,
    env: Arc<Env>,
}

impl ProcessBackEnd {
    pub(crate) fn new(start: Start, env: &Arc<Env>) -> Self {
        Self { start, env: Arc::clone(env) }
    }

    fn run(&self, member: &MemberCommand) -> io::Result<OwnProcess> {
        let variables = self.env.iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut environment: BTreeMap<String, String> = variables.collect();
        environment.insert(TICKET.to_owned(), member.ticket.clone());
        let program = PipedProgram {
            program: self.start.program.clone().into_os_string(),
            args: member_args(member),
            environment,
            cwd: member.cwd.clone(),
        };
        tracing::debug!(command = self.start.shown(member), "a member's process is started");
        let mut piped =
            PipedProcess::start(&GuardProgram::new(self.start.program.clone()), &program)?;
        piped.stdout = None;
        let said = Arc::<Mutex<String>>::default();
        if let Some(stderr) = piped.stderr.take() {
            hear(stderr.into_owned_fd()?, Arc::clone(&said))?;
        }
        Ok(OwnProcess { piped, said })
    }
}

/// Keeps what a process said last, until it says nothing more.
fn hear(from: OwnedFd, said: Arc<Mutex<String>>) -> io::Result<()> {
    rustix::io::ioctl_fionbio(&from, false)?;
    let mut from = File::from(from);
    let hearing = move || {
        let mut piece = [0; 1024];
        while let Ok(count @ 1..) = from.read(&mut piece) {
            let mut said = said.lock();
            said.push_str(&String::from_utf8_lossy(&piece[..count]));
            let surplus = said.len().saturating_sub(MOST_SAID);
            let surplus = said.ceil_char_boundary(surplus);
            said.drain(..surplus);
        }
    };
    std::thread::Builder::new().name("member".to_owned()).stack_size(64 * 1024).spawn(hearing)?;
    Ok(())
}

impl BackEnd for ProcessBackEnd {
    fn start<'a>(
        &'a self,
        member: &'a MemberCommand,
    ) -> BackEndFuture<'a, Result<Box<dyn MemberProcess>, BackEndError>> {
        Box::pin(async move {
            let program = self.start.program.display().to_string();
            let process = self.run(member);
            let process = process.map_err(|source| BackEndError::Start { program, source })?;
            Ok(Box::new(process) as Box<dyn MemberProcess>)
        })
    }
}

/// A running member. Dropping it ends it.
struct OwnProcess {
    piped: PipedProcess,
    said: Arc<Mutex<String>>,
}

impl MemberProcess for OwnProcess {
    fn place(&self) -> MemberPlace {
        MemberPlace { back_end: "process", pane: None }
    }

    fn ended(&mut self) -> BackEndFuture<'_, String> {
        Box::pin(async move {
            let end = self.piped.wait().await;
            let how = match end.code {
                Some(code) => format!("it left with code {code}"),
                None => "a signal ended it".to_owned(),
            };
            let said = self.said.lock();
            match said.trim() {
                "" => how,
                said => format!("{how}, and said: {said}"),
            }
        })
    }

    fn stop(&mut self) -> BackEndFuture<'_, ()> {
        Box::pin(self.piped.stop())
    }
}
