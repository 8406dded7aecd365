//! The keeper: a process that restores the terminal if we are killed and cannot.
//!
//! It knows the settings of before, and holds the read end of a pipe whose write end only we have. One byte on the pipe
//! says that there is nothing to restore, or that there is again; others say where the live region begins, so that it can
//! be erased. If the pipe closes while there is something to restore, we are dead.

use std::cell::Cell;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::terminal::{SavedModes, restore_termios};

/// The argument after that of a guard that makes the program a keeper: it calls [`run`].
pub const KEEPER_ARGUMENT: &str = "terminal";

const PAUSED: u8 = b'p';
const RESUMED: u8 = b'r';
/// Three bytes follow: the rows of the live region above the cursor, and whether they are known ([`HAS_ROWS`]) and the other
/// screen is shown ([`IS_OTHER`]).
const LIVE: u8 = b'l';
const HAS_ROWS: u8 = 1;
const IS_OTHER: u8 = 2;

/// The longest line of settings.
const LONGEST_LINE: u64 = 1024;

/// The command line that starts a keeper.
#[derive(Clone, Debug)]
pub struct KeeperProgram {
    /// An executable that calls [`run`].
    pub program: PathBuf,
    /// Arguments that make the program call [`run`].
    pub args: Vec<OsString>,
}

/// A keeper that runs. It restores the terminal when this is gone without having been [dismissed](Keeper::dismiss).
#[derive(Debug)]
pub(crate) struct Keeper {
    child: Child,
    pipe: ChildStdin,
}

impl Keeper {
    pub(crate) fn start(
        program: &KeeperProgram,
        tty: BorrowedFd<'_>,
        kept: &SavedModes,
    ) -> io::Result<Self> {
        let mut child = Command::new(&program.program)
            .args(&program.args)
            .stdin(Stdio::piped())
            .stdout(tty.try_clone_to_owned()?)
            .stderr(Stdio::null())
            .spawn()?;
        let mut pipe = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let shell = Shell::to_line();
        let told = format!("{}\n{shell}\n{}", kept.to_line(), char::from(RESUMED));
        pipe.write_all(told.as_bytes())?;
        Ok(Self { child, pipe })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// There is nothing to restore for a while. A keeper that is gone cannot be told, and need not be.
    pub(crate) fn pause(&mut self) {
        let _ = self.pipe.write_all(&[PAUSED]);
    }

    pub(crate) fn resume(&mut self) {
        let _ = self.pipe.write_all(&[RESUMED]);
    }

    /// The live region has so many rows above the cursor, if there is one; and whether the other screen is shown.
    pub(crate) fn live(&mut self, rows: Option<u16>, is_other: bool) {
        let [first, second] = rows.unwrap_or_default().to_le_bytes();
        let known = if rows.is_some() { HAS_ROWS } else { 0 };
        let screen = if is_other { IS_OTHER } else { 0 };
        let _ = self.pipe.write_all(&[LIVE, first, second, known | screen]);
    }

    /// Ends the keeper: the terminal is as it was.
    pub(crate) fn dismiss(mut self) {
        self.pause();
        drop(self.pipe);
        let _ = self.child.wait();
    }
}

/// The shell that waits while this program has the terminal.
#[derive(Debug)]
struct Shell {
    process: Pid,
    /// The numbers of the process and its state, as the kernel tells them.
    numbers: File,
    state: File,
    /// All bytes that it has written.
    written: u64,
}

impl Shell {
    /// The shell as a line: its process, and what it has written so far. Empty where the system does not tell, and where the
    /// process that started this one has another terminal.
    fn to_line() -> String {
        let parent = rustix::process::getppid().map_or(0, |it| it.as_raw_nonzero().get());
        let terminal = |process: &str| {
            let fields = fields(&File::open(format!("/proc/{process}/stat")).ok()?)?;
            Some((fields.get(3)?.clone(), fields.get(4)?.clone()))
        };
        let own = terminal("self");
        let is_shared = own.is_some() && own == terminal(&parent.to_string());
        let written = Self::open(parent, 0).filter(|_| is_shared).and_then(|it| it.told());
        written.map(|written| format!("{parent} {written}")).unwrap_or_default()
    }

    fn from_line(line: &str) -> Option<Self> {
        let (process, written) = line.split_once(' ')?;
        Self::open(process.parse().ok()?, written.parse().ok()?)
    }

    fn open(process: i32, written: u64) -> Option<Self> {
        let file = |name: &str| File::open(format!("/proc/{process}/{name}")).ok();
        let process = Pid::from_raw(process)?;
        Some(Self { process, numbers: file("io")?, state: file("stat")?, written })
    }

    /// The bytes that it has written by now.
    fn told(&self) -> Option<u64> {
        let told = read(&self.numbers)?;
        told.lines().find_map(|line| line.strip_prefix("wchar: "))?.parse().ok()
    }

    /// Looks whether it prompts: it has written something, and waits. A shell without a line editor keeps the settings of the
    /// terminal, and nothing else says so.
    fn look(&self) -> ShellLook {
        let written = self.told();
        let has_written = written.is_some_and(|now| now != self.written);
        let waits = || fields(&self.state).is_some_and(|fields| fields[0] == "S");
        ShellLook { written, is_prompted: has_written && waits() }
    }

    /// Has it prompt again if it has written since it was looked at: its prompt may have been erased, because it came between
    /// the look and our write. Only a shell that waits in the foreground of its terminal is told, as by Ctrl+C.
    fn prompt_again(&self, look: ShellLook) {
        let has_written = !look.is_prompted && self.told() != look.written;
        let is_at_prompt = || {
            let fields = fields(&self.state)?;
            let (group, foreground) = (fields.get(2)?, fields.get(5)?);
            Some(fields[0] == "S" && group == foreground)
        };
        if has_written && is_at_prompt() == Some(true) {
            // A shell that has gone meanwhile prompts no more.
            let _ = kill_process(self.process, Signal::INT);
        }
    }
}

/// The state of the shell at a moment.
#[derive(Clone, Copy, Debug)]
struct ShellLook {
    /// All bytes that it had written.
    written: Option<u64>,
    is_prompted: bool,
}

/// The text of a small file that the kernel makes.
fn read(file: &File) -> Option<String> {
    let mut buffer = [0; 1024];
    let count = file.read_at(&mut buffer, 0).ok()?;
    Some(String::from_utf8_lossy(&buffer[..count]).into_owned())
}

/// The fields of a process behind its name, which may hold blanks and brackets: the first one is its state.
fn fields(stat: &File) -> Option<Vec<String>> {
    let text = read(stat)?;
    let (_, fields) = text.rsplit_once(") ")?;
    Some(fields.split(' ').map(str::to_owned).collect())
}

/// Runs as the keeper, with the terminal as standard output and the pipe as standard input. `rests` is called before it waits.
pub fn run(rests: impl FnOnce()) -> ExitCode {
    // A session of its own: the signals of the terminal do not reach it, and it may write from the background.
    let _ = rustix::process::setsid();
    let tty = rustix::stdio::stdout();
    let mut pipe = BufReader::new(rustix::stdio::stdin().try_clone_to_owned().map_or_else(
        |_| Box::new(io::empty()) as Box<dyn io::Read>,
        |fd| Box::new(File::from(fd)),
    ));
    let mut line = String::new();
    if pipe.by_ref().take(LONGEST_LINE).read_line(&mut line).is_err() {
        return ExitCode::FAILURE;
    }
    let Some(kept) = SavedModes::from_line(line.trim_end(), tty.as_fd()) else {
        return ExitCode::FAILURE;
    };
    line.clear();
    if pipe.by_ref().take(LONGEST_LINE).read_line(&mut line).is_err() {
        return ExitCode::FAILURE;
    }
    let shell = Shell::from_line(line.trim_end());
    let (mut is_needed, mut rows_above, mut is_other) = (false, None, false);
    let (mut byte, mut told) = ([0], [0; 3]);
    rests();
    loop {
        match pipe.read(&mut byte) {
            Ok(0) => break,
            Ok(_) if byte[0] == LIVE => {
                if pipe.read_exact(&mut told).is_err() {
                    break;
                }
                let [first, second, what] = told;
                let rows = u16::from_le_bytes([first, second]);
                (rows_above, is_other) =
                    ((what & HAS_ROWS != 0).then_some(rows), what & IS_OTHER != 0);
            }
            // An editor or a shell had the screen meanwhile.
            Ok(_) => (is_needed, rows_above, is_other) = (byte[0] == RESUMED, None, false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    if !is_needed {
        return ExitCode::SUCCESS;
    }
    let look = Cell::new(None);
    let prompts = || {
        look.set(shell.as_ref().map(Shell::look));
        look.get().is_some_and(|look| look.is_prompted)
    };
    let restored = restore_termios(tty.as_fd(), &kept, rows_above, is_other, prompts);
    if let Some((shell, look)) = shell.as_ref().zip(look.get()) {
        shell.prompt_again(look);
    }
    if restored.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_has_written_and_waits_prompts() {
        let mut child = Command::new("sh")
            .args(["-c", "read one; echo words; read another"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let process = i32::try_from(child.id()).unwrap();
        let before = Shell::open(process, 0).unwrap().told().unwrap();
        let shell = Shell::from_line(&format!("{process} {before}")).unwrap();
        assert!(!shell.look().is_prompted);
        child.stdin.as_mut().unwrap().write_all(b"go on\n").unwrap();
        let mut words = [0; 6];
        child.stdout.as_mut().unwrap().read_exact(&mut words).unwrap();
        // It waits for the other line very soon.
        while !shell.look().is_prompted {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!shell.look().is_prompted, "one that is gone does not");
        assert!(Shell::from_line("").is_none(), "where the system does not tell");
    }

    /// A shell without a line editor in a terminal of its own, with what it has written so far.
    struct Prompting {
        child: Child,
        master: File,
        seen: String,
    }

    impl Prompting {
        fn start() -> Self {
            use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
            let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
            let master = openpt(flags).unwrap();
            grantpt(&master).unwrap();
            unlockpt(&master).unwrap();
            let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
            let slave = || File::options().read(true).write(true).open(&name).unwrap();
            let child = Command::new("setsid")
                .args(["--ctty", "sh", "-i"])
                .env("PS1", "shell> ")
                .stdin(slave())
                .stdout(slave())
                .stderr(slave())
                .spawn()
                .unwrap();
            let mut shell = Self { child, master: master.into(), seen: String::new() };
            shell.wait_for(1);
            shell
        }

        /// Reads until so many prompts came.
        fn wait_for(&mut self, prompts: usize) {
            let mut buffer = [0; 4096];
            while self.seen.matches("shell> ").count() < prompts {
                let count = self.master.read(&mut buffer).unwrap();
                self.seen.push_str(&String::from_utf8_lossy(&buffer[..count]));
            }
        }

        /// The shell as the keeper knows it. `setsid` has become the shell.
        fn known(&self) -> Shell {
            let process = i32::try_from(self.child.id()).unwrap();
            Shell::open(process, 0).unwrap()
        }
    }

    impl Drop for Prompting {
        fn drop(&mut self) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }

    #[test]
    fn a_shell_whose_prompt_came_between_the_look_and_the_write_prompts_again() {
        let mut shell = Prompting::start();
        let known = shell.known();
        // It is looked at while it has yet to prompt.
        let look = ShellLook { is_prompted: false, ..known.look() };
        known.prompt_again(look);
        shell.master.write_all(b"true\n").unwrap();
        shell.wait_for(2);
        while known.look().written == look.written || fields(&known.state).unwrap()[0] != "S" {
            std::thread::yield_now();
        }
        known.prompt_again(look);
        shell.wait_for(3);
        // One that has prompted when it was looked at is left alone, and so is one that has something to do.
        known.prompt_again(ShellLook { is_prompted: true, ..look });
        shell.master.write_all(b"sleep 0.3; echo done\n").unwrap();
        let is_busy = || {
            let fields = fields(&known.state).unwrap();
            fields[2] != fields[5]
        };
        while !is_busy() {
            std::thread::yield_now();
        }
        known.prompt_again(look);
        shell.wait_for(4);
        assert!(shell.seen.contains("\ndone\r\n"), "nothing was interrupted: {:?}", shell.seen);
        assert_eq!(shell.seen.matches("shell> ").count(), 4, "{:?}", shell.seen);
    }
}
