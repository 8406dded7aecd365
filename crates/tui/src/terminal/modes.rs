//! The modes of a terminal: what they were, what we set, and how they are undone.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};

use crate::surface::ERASE_FROM_TOP;

/// Sets our modes: the title is saved, pastes are bracketed, the focus is told, keys are told apart (kitty keys with the
/// letters of other layouts, else modifyOtherKeys).
const ENTER: &[u8] = b"\x1b[22;2t\x1b[?2004h\x1b[?1004h\x1b[>4;2m\x1b[>5u";

/// Asks what the terminal is and can do. Every terminal answers the last question.
const QUESTIONS: &[u8] = b"\x1b[>q\x1b[?2026$p\x1b[?2004$p\x1b[?u\x1b[c";

/// Leaves the other screen. The cursor goes to where it was on the first one: some terminals move it there also if the
/// first one is shown already, and so this is sent only if it is not.
const FIRST_SCREEN: &[u8] = b"\x18\x1b[?2026l\x1b7\x1b[?1049l";

/// Undoes every other mode that may be set, also those of a frame that was cut off in its middle. The cursor is saved first:
/// ending a scroll region moves it.
const RESTORE: &[u8] = b"\x18\x1b[?2026l\x1b7\x1b[r\x1b8\x1b[?7h\x1b[?25h\
    \x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1004l\x1b[?1005l\x1b[?1006l\x1b[?2004l\x1b[?2031l\
    \x1b[<u\x1b[>4m\x1b[m\x1b[23;2t";

/// The time for which a terminal that takes nothing is waited for: by the program, and by the keeper, which has nothing else
/// to do.
const PATIENCE: Duration = Duration::from_millis(500);
const PATIENCE_OF_KEEPER: Duration = Duration::from_hours(1);

/// Special characters of a terminal, in the order in which they are told to the keeper.
const SPECIAL: [SpecialCodeIndex; 16] = [
    SpecialCodeIndex::VINTR,
    SpecialCodeIndex::VQUIT,
    SpecialCodeIndex::VERASE,
    SpecialCodeIndex::VKILL,
    SpecialCodeIndex::VEOF,
    SpecialCodeIndex::VTIME,
    SpecialCodeIndex::VMIN,
    SpecialCodeIndex::VSTART,
    SpecialCodeIndex::VSTOP,
    SpecialCodeIndex::VSUSP,
    SpecialCodeIndex::VEOL,
    SpecialCodeIndex::VREPRINT,
    SpecialCodeIndex::VDISCARD,
    SpecialCodeIndex::VWERASE,
    SpecialCodeIndex::VLNEXT,
    SpecialCodeIndex::VEOL2,
];

/// The terminal whose modes are set now, for a panic.
static ACTIVE: Mutex<Option<(OwnedFd, SavedModes)>> = Mutex::new(None);

/// True while the terminal shows its other screen.
static IS_OTHER: AtomicBool = AtomicBool::new(false);

/// The settings of a terminal before they were ours.
#[derive(Clone, Debug)]
pub(crate) struct SavedModes(Termios);

impl SavedModes {
    pub(crate) fn of(tty: BorrowedFd<'_>) -> io::Result<Self> {
        Ok(Self(tcgetattr(tty)?))
    }

    /// The settings in numbers, on one line.
    pub(crate) fn to_line(&self) -> String {
        let Self(it) = self;
        let modes = [
            u64::from(it.input_modes.bits()),
            u64::from(it.output_modes.bits()),
            u64::from(it.control_modes.bits()),
            u64::from(it.local_modes.bits()),
        ];
        let special = SPECIAL.iter().map(|index| u64::from(it.special_codes[*index]));
        let numbers: Vec<String> =
            modes.into_iter().chain(special).map(|it| it.to_string()).collect();
        numbers.join(" ")
    }

    /// The settings of a line, with what it leaves out as the terminal has it.
    pub(crate) fn from_line(line: &str, tty: BorrowedFd<'_>) -> Option<Self> {
        let numbers: Vec<u32> = line.split(' ').map(str::parse).collect::<Result<_, _>>().ok()?;
        let (modes, special) = numbers.split_first_chunk::<4>()?;
        let mut termios = tcgetattr(tty).ok()?;
        termios.input_modes = rustix::termios::InputModes::from_bits_retain(modes[0]);
        termios.output_modes = rustix::termios::OutputModes::from_bits_retain(modes[1]);
        termios.control_modes = rustix::termios::ControlModes::from_bits_retain(modes[2]);
        termios.local_modes = rustix::termios::LocalModes::from_bits_retain(modes[3]);
        for (index, code) in SPECIAL.iter().zip(special) {
            termios.special_codes[*index] = u8::try_from(*code).ok()?;
        }
        Some(Self(termios))
    }

    fn raw(&self) -> Termios {
        let mut raw = self.0.clone();
        raw.make_raw();
        raw
    }
}

/// Sets our modes on a terminal, and undoes them should the process panic.
pub(super) fn set(tty: BorrowedFd<'_>, kept: SavedModes) -> io::Result<()> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let earlier = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let active = ACTIVE.try_lock().and_then(|mut active| active.take());
            if let Some((tty, kept)) = active {
                let _ = restore(tty.as_fd(), &kept);
            }
            earlier(panic);
        }));
    });
    let raw = kept.raw();
    *ACTIVE.lock() = Some((tty.try_clone_to_owned()?, kept));
    tcsetattr(tty, OptionalActions::Now, &raw)?;
    write(tty, ENTER)?;
    write(tty, QUESTIONS)
}

/// Undoes our modes. After a panic they are undone already.
pub(super) fn undo(tty: BorrowedFd<'_>) -> io::Result<()> {
    let active = ACTIVE.lock().take();
    active.map_or(Ok(()), |(_, kept)| restore(tty, &kept))
}

fn restore(tty: BorrowedFd<'_>, kept: &SavedModes) -> io::Result<()> {
    let left =
        if IS_OTHER.swap(false, Ordering::Relaxed) { write(tty, FIRST_SCREEN) } else { Ok(()) };
    let written = write(tty, RESTORE);
    tcsetattr(tty, OptionalActions::Now, &kept.0)?;
    left.and(written)
}

/// Takes note of the screen that the terminal shows.
pub(super) fn shows_other_screen(is_so: bool) {
    IS_OTHER.store(is_so, Ordering::Relaxed);
}

/// Restores the settings of a terminal unless another program has set its own since. Erases the live region: a shell that
/// prompts already with a line editor has set its own settings, and its prompt stays. Where `prompts` says that
/// one does so without a line editor, only the rows below the cursor are known to be ours.
pub(crate) fn restore_termios(
    tty: BorrowedFd<'_>,
    kept: &SavedModes,
    live: Option<u16>,
    is_other: bool,
    prompts: impl FnOnce() -> bool,
) -> io::Result<()> {
    let (now, raw) = (tcgetattr(tty)?, kept.raw());
    let is_ours = now.local_modes == raw.local_modes && now.input_modes == raw.input_modes;
    // The settings come first: they are there also where the terminal takes nothing that is written.
    if is_ours {
        tcsetattr(tty, OptionalActions::Now, &kept.0)?;
    }
    // The live region is on the first screen, also while a transcript is read on the other one.
    let left = if is_other { write(tty, FIRST_SCREEN) } else { Ok(()) };
    // A terminal that takes bytes again much later may show another program by then.
    if let Some(rows) = live.filter(|_| left.is_ok()) {
        let first = "\x18\x1b[?2026l\x1b[m";
        let up = if rows > 0 { format!("\x1b[{rows}A") } else { String::new() };
        let all = [format!("{first}\r{up}").as_bytes(), ERASE_FROM_TOP].concat();
        let below = format!("{first}\x1b[J").into_bytes();
        // A shell with a line editor takes the terminal before it prompts; then only what is below the prompt goes. Nothing
        // comes between the look and the write: the shell may be about to write.
        let is_prompted = !is_ours || prompts();
        let _ = write(tty, if is_prompted { &below } else { &all });
    }
    if left.is_err() {
        write_within(tty, FIRST_SCREEN, PATIENCE_OF_KEEPER)?;
    }
    write_within(tty, RESTORE, PATIENCE_OF_KEEPER)
}

/// Reads what comes from a terminal within a time; nothing is zero bytes.
pub(super) fn read_within(
    tty: BorrowedFd<'_>,
    buffer: &mut [u8],
    time: Duration,
) -> io::Result<usize> {
    let time = Timespec::try_from(time).map_err(io::Error::other)?;
    if poll(&mut [PollFd::new(&tty, PollFlags::IN)], Some(&time))? == 0 {
        return Ok(0);
    }
    Ok(rustix::io::read(tty, buffer)?)
}

/// Writes to a terminal that may not block, and gives up on one that takes nothing.
fn write(tty: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<()> {
    write_within(tty, bytes, PATIENCE)
}

fn write_within(tty: BorrowedFd<'_>, mut bytes: &[u8], patience: Duration) -> io::Result<()> {
    let patience = Timespec::try_from(patience).map_err(io::Error::other)?;
    while !bytes.is_empty() {
        match rustix::io::write(tty, bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::AGAIN) => {
                if poll(&mut [PollFd::new(&tty, PollFlags::OUT)], Some(&patience))? == 0 {
                    return Err(io::ErrorKind::TimedOut.into());
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
