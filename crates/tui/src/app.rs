//! The loop: what comes from the terminal first, then effects, then a frame. It sleeps while nothing happens.

mod link;
mod status;

pub(crate) use self::link::earlier_in;
pub use self::link::page_lines;

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use centurion_protocol::{SessionId, World};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;

use crate::attachment::Attachment;
use crate::effect::Effect;
use crate::fold::{Fact, Happening};
use crate::frame::Size;
use crate::front::TerminalFront;
use crate::input::{Input, TerminalReply};
use crate::look::Theme;
use crate::model::Moment;
use crate::model::prompts::PromptNumber;
use crate::model::table::FileLine;
use crate::notify::Notifier;
use crate::surface::{MouseEffect, Surface, Surfaces, Tui};
use crate::terminal::Terminal;
use crate::view::view;

/// The shortest time between two frames that no key has asked for.
const FRAME: Duration = Duration::from_millis(16);
/// The longest wait for what is still being written when a person leaves.
const LAST_PATIENCE: Duration = Duration::from_millis(500);
/// The shortest time between two looks at files that the terminal follows.
const FILES: Duration = Duration::from_secs(1);
/// The shortest time between two rests that the program is told of.
const RESTS: Duration = Duration::from_mins(5);
/// The longest wait for an answer of the terminal.
const REPLY_PATIENCE: Duration = Duration::from_millis(200);

pub type DeskFuture = Pin<Box<dyn Future<Output = Vec<Fact>>>>;

/// The program around the terminal: files, other programs, other sessions.
pub trait Desk {
    /// Does what the session cannot do. Other work continues meanwhile.
    fn carry_out(&self, effect: Effect) -> DeskFuture;

    /// Learns that nothing is under way any more: what only that needed can go.
    fn rests(&self) {}

    /// Has a person change a text in an editor, which has the terminal until then.
    fn edit(&self, text: &str) -> io::Result<String>;

    /// Has a person change their keys in the editor; whether it ended well.
    fn edit_keys(&self) -> io::Result<bool>;

    /// Has a person change a file in the editor, from one of its lines on; whether it ended well.
    fn edit_file(&self, file: &FileLine) -> io::Result<bool>;
}

/// The way in which a person left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitChoice {
    /// To the shell.
    Shell,
    /// To another session.
    Session(SessionId),
    /// To a copy of a session.
    Branch(SessionId),
    /// To the demo.
    Demo,
}

/// The last looks at the state of the session that no event tells.
#[derive(Clone, Copy, Debug, Default)]
struct LastLook {
    at: Option<Moment>,
    /// True if something moved then.
    was_moving: bool,
    /// The moment at which the program was told of a rest.
    rest: Option<Moment>,
}

/// The terminal at work.
pub struct App {
    front: Arc<TerminalFront>,
    terminal: Terminal,
    surface: Box<dyn Surface>,
    surfaces: Surfaces,
    tui: Tui,
    desk: Arc<dyn Desk>,
    world: Arc<dyn World>,
    /// The images of prompts that follow.
    attached: HashMap<PromptNumber, Vec<Attachment>>,
    /// Effects that wait for the session to open.
    early: Vec<Effect>,
    running: FuturesUnordered<DeskFuture>,
    size: Size,
    last_frame: Option<Moment>,
    /// True if something has changed since then.
    is_changed: bool,
    /// The moment at which the terminal was asked for the place of its cursor.
    asked_terminal: Option<Moment>,
    last_look: LastLook,
    last_files: Option<Moment>,
    is_thinking_off: bool,
    status: status::StatusWatch,
    /// The way in which the terminal notifies, as far as it has told its name.
    notifier: Notifier,
    out: Vec<u8>,
}

impl App {
    pub fn new(
        front: Arc<TerminalFront>,
        terminal: Terminal,
        surfaces: Surfaces,
        desk: Arc<dyn Desk>,
        world: Arc<dyn World>,
    ) -> Self {
        let size = terminal.size();
        let tui = Tui::default();
        Self {
            front,
            terminal,
            surface: surfaces.make(tui, size, surfaces.can),
            surfaces,
            tui,
            desk,
            world,
            attached: HashMap::new(),
            early: Vec::new(),
            running: FuturesUnordered::new(),
            size,
            last_frame: None,
            is_changed: false,
            asked_terminal: None,
            last_look: LastLook::default(),
            last_files: None,
            is_thinking_off: false,
            status: status::StatusWatch::default(),
            notifier: Notifier::default(),
            out: Vec::new(),
        }
    }

    /// Shows the first frame, and then runs until the person leaves.
    pub async fn run(&mut self) -> io::Result<ExitChoice> {
        self.front.happens(Happening::Input(&Input::Resized(self.size)));
        self.draw().await?;
        loop {
            let mut is_urgent = false;
            let next = self.next_moment();
            let front = Arc::clone(&self.front);
            tokio::select! {
                biased;
                inputs = self.terminal.next() => {
                    for input in inputs? {
                        self.take_input(&input).await?;
                    }
                    is_urgent = true;
                }
                Some(facts) = self.running.next(), if !self.running.is_empty() => {
                    for fact in facts {
                        self.front.happens(Happening::Fact(fact));
                    }
                }
                () = front.changed() => {}
                () = sleep_until(next, &front), if next.is_some() => {}
            }
            self.is_changed = true;
            self.pass_time().await?;
            self.look();
            self.watch_status();
            if let Some(left) = self.carry_out().await? {
                return Ok(left);
            }
            if is_urgent || self.is_frame_due() {
                self.draw().await?;
            }
            self.tell_rest();
        }
    }

    /// Tells the program around that nothing moves or waits, once in a while.
    fn tell_rest(&mut self) {
        let is_open = self.front.session().is_some() && self.running.is_empty();
        let now = self.front.now();
        let is_due = self.last_look.rest.is_none_or(|last| now.saturating_sub(last) >= RESTS);
        if is_due && is_open && !self.is_changed && self.next_moment().is_none() {
            self.last_look.rest = Some(now);
            self.desk.rests();
        }
    }

    /// The live region goes, and the terminal is ready for what comes after us.
    pub async fn leave(&mut self) -> io::Result<()> {
        // Drafts and the history are on disk before we go.
        self.front.happens(Happening::Leaving);
        let saves = self.front.take_effects().into_iter();
        for save in saves.filter(|it| matches!(it, Effect::SaveDraft { .. } | Effect::Remember(_)))
        {
            self.running.push(self.desk.carry_out(save));
        }
        let finishing = async { while self.running.next().await.is_some() {} };
        let _ = tokio::time::timeout(LAST_PATIENCE, finishing).await;
        self.draw().await?;
        self.out.clear();
        self.surface.leave(&mut self.out);
        self.flush().await
    }

    pub fn into_terminal(self) -> Terminal {
        self.terminal
    }

    async fn take_input(&mut self, input: &Input) -> io::Result<()> {
        self.out.clear();
        match input {
            Input::Resized(size) => {
                self.resized(*size);
            }
            Input::Reply(reply) => {
                if let TerminalReply::Version(version) = reply {
                    self.notifier = Notifier::of_terminal(version);
                }
                self.surface.reply(Some(reply), &mut self.out);
                self.asked_terminal = self.asked_terminal.filter(|_| self.surface.is_waiting());
            }
            Input::Mouse(mouse) => match self.surface.mouse(mouse) {
                MouseEffect::None => {}
                MouseEffect::Live(mouse) => {
                    self.front.happens(Happening::Input(&Input::Mouse(mouse)));
                }
                MouseEffect::Copied(text) => {
                    copy(&text, &mut self.out);
                    let lines = text.lines().count();
                    self.says(Fact::Notice(format!("copied {lines} lines")));
                }
            },
            _ => {
                self.look_at_files();
                self.front.happens(Happening::Input(input));
            }
        }
        self.flush().await
    }

    fn restyle(&mut self, theme: Theme) {
        self.surfaces.look.theme = theme;
        self.surface.restyle(theme);
    }

    /// Uses another screen of the terminal from now on.
    async fn use_screen(&mut self, tui: Tui) -> io::Result<()> {
        if tui == self.tui || self.surfaces.is_plain {
            return Ok(());
        }
        self.out.clear();
        self.surface.leave(&mut self.out);
        self.flush().await?;
        let can = self.surface.capabilities();
        self.surface = self.surfaces.make(tui, self.size, can);
        self.tui = tui;
        if let Some(Fact::Earlier(lines)) = self.front.earlier() {
            self.surface.recall(&lines);
        }
        Ok(())
    }

    /// Has the program look at files that the terminal follows: not by a timer, but when the person comes back and types.
    fn look_at_files(&mut self) {
        let now = self.front.now();
        if self.last_files.is_none_or(|last| now.saturating_sub(last) >= FILES) {
            self.last_files = Some(now);
            self.running.push(self.desk.carry_out(Effect::LookAtFiles));
        }
    }

    /// Writes what a surface made.
    async fn flush(&mut self) -> io::Result<()> {
        let surface = &self.surface;
        self.terminal.keep_rows(surface.rows_above_cursor(), surface.is_on_other_screen());
        if self.out.is_empty() {
            return Ok(());
        }
        self.terminal.write(&self.out).await
    }

    fn next_moment(&self) -> Option<Moment> {
        let model = self.front.model();
        let frame = self.is_changed.then(|| self.last_frame.map_or(Moment::ZERO, |it| it + FRAME));
        let reply = self.asked_terminal.map(|at| at + REPLY_PATIENCE);
        [model.next_tick(), frame, reply, self.status.due].into_iter().flatten().min()
    }

    fn is_frame_due(&self) -> bool {
        self.last_frame.is_none_or(|last| self.front.now().saturating_sub(last) >= FRAME)
    }

    /// Does what is due by now.
    async fn pass_time(&mut self) -> io::Result<()> {
        let now = self.front.now();
        let is_due = |due: Moment| due <= now + Duration::from_millis(1);
        let tick = self.front.model().next_tick();
        if tick.is_some_and(is_due) {
            self.front.tick();
        }
        if self.asked_terminal.is_some_and(|at| now.saturating_sub(at) >= REPLY_PATIENCE) {
            self.asked_terminal = None;
            self.out.clear();
            self.surface.reply(None, &mut self.out);
            self.asked_terminal = self.surface.is_waiting().then_some(now);
            self.flush().await?;
        }
        Ok(())
    }

    async fn draw(&mut self) -> io::Result<()> {
        // The window has changed, and its signal is on its way: a frame for the old one would be torn.
        self.last_frame = Some(self.front.now());
        if self.terminal.size() != self.size {
            self.terminal.expect_size();
            return Ok(());
        }
        self.is_changed = false;
        let frame = {
            let mut model = self.front.model();
            let frame = view(&model, self.size);
            model.printed();
            frame
        };
        self.out.clear();
        self.surface.draw(&frame, self.size, &mut self.out);
        self.flush().await
    }

    /// Carries out what folds want; `Some` if the person leaves.
    async fn carry_out(&mut self) -> io::Result<Option<ExitChoice>> {
        let is_open = self.front.session().is_some();
        let mut effects = if is_open { std::mem::take(&mut self.early) } else { Vec::new() };
        effects.extend(self.front.take_effects());
        for effect in effects {
            match effect {
                Effect::Exit => return Ok(Some(ExitChoice::Shell)),
                Effect::Resume(session) => return Ok(Some(ExitChoice::Session(session))),
                Effect::Branch => match self.front.session().map(|handle| handle.id()) {
                    Some(session) => return Ok(Some(ExitChoice::Branch(session))),
                    None => self.says(Fact::Notice("the session is not open yet".to_owned())),
                },
                Effect::EditKeys => {
                    let edited = self.suspended(|desk| desk.edit_keys().map(drop)).await;
                    self.told_of_editor(edited.err());
                    self.last_files = None;
                    self.look_at_files();
                }
                Effect::PlayDemo => return Ok(Some(ExitChoice::Demo)),
                Effect::Fork(session) => return Ok(Some(ExitChoice::Branch(session))),
                Effect::OpenFile(file) => self.open_file(&file).await,
                Effect::Redraw => self.surface.forget(),
                Effect::Attach { number, images } => drop(self.attached.insert(number, images)),
                Effect::Restyle(theme) => self.restyle(theme),
                Effect::Use(tui) => self.use_screen(tui).await?,
                Effect::Scroll(scroll) => self.surface.scroll(scroll),
                Effect::Suspend => self.stop().await?,
                Effect::ReadInEditor(text) => {
                    let read = self.suspended(|desk| desk.edit(&text)).await;
                    self.told_of_editor(read.err());
                }
                Effect::Editor(text) => match self.suspended(|desk| desk.edit(&text)).await {
                    Ok(text) => self.says(Fact::Edited(text)),
                    Err(error) => self.told_of_editor(Some(error)),
                },
                Effect::EditPlan { number, text } => {
                    match self.suspended(|desk| desk.edit(&text)).await {
                        Ok(text) => self.says(Fact::PlanEdited { number, text }),
                        Err(error) => self.told_of_editor(Some(error)),
                    }
                }
                Effect::Copy(text) => {
                    self.out.clear();
                    copy(&text, &mut self.out);
                    self.flush().await?;
                }
                Effect::Notify(text) => {
                    self.terminal.write(&self.notifier.bytes(&text)).await?;
                }
                Effect::Answer { number, answer } => self.front.settle(number, answer),
                effect => self.hand_over(effect),
            }
        }
        Ok(None)
    }

    /// Has a person change a file in the editor.
    async fn open_file(&mut self, file: &FileLine) {
        let edited = self.suspended(|desk| desk.edit_file(file).map(drop)).await;
        self.told_of_editor(edited.err());
    }

    fn told_of_editor(&self, error: Option<io::Error>) {
        if let Some(error) = error {
            self.says(Fact::Notice(format!("the editor: {error}")));
        }
    }

    /// Gives the terminal to something else for a while.
    async fn suspended<R>(
        &mut self,
        act: impl FnOnce(&dyn Desk) -> io::Result<R>,
    ) -> io::Result<R> {
        self.out.clear();
        self.surface.lend(&mut self.out);
        self.flush().await?;
        self.terminal.suspend()?;
        let done = act(&*self.desk);
        self.terminal.resume()?;
        self.came_back().await?;
        done
    }

    /// The terminal is ours again. Its window may have changed meanwhile.
    async fn came_back(&mut self) -> io::Result<()> {
        self.surface.forget();
        let size = self.terminal.size();
        if size == self.size {
            return Ok(());
        }
        self.out.clear();
        self.resized(size);
        self.flush().await
    }

    fn resized(&mut self, size: Size) {
        self.size = size;
        self.front.happens(Happening::Input(&Input::Resized(size)));
        self.surface.resized(size, &mut self.out);
        self.asked_terminal = self.surface.is_waiting().then(|| self.front.now());
    }

    /// Stops the program until the shell continues it.
    async fn stop(&mut self) -> io::Result<()> {
        self.out.clear();
        self.surface.lend(&mut self.out);
        self.flush().await?;
        self.terminal.stop_process()?;
        self.came_back().await
    }
}

/// Has the terminal put a text into the clipboard of the person before it.
fn copy(text: &str, out: &mut Vec<u8>) {
    let encoded = BASE64_STANDARD.encode(text.as_bytes());
    out.extend_from_slice(format!("\x1b]52;c;{encoded}\x07").as_bytes());
}

async fn sleep_until(moment: Option<Moment>, front: &TerminalFront) {
    match moment {
        Some(moment) => tokio::time::sleep(moment.saturating_sub(front.now())).await,
        None => std::future::pending().await,
    }
}
