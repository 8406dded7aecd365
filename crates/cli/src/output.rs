//! The output of the program, and its forms.

mod live;
mod reader_watch;
mod stdout;
mod text;

use std::io::{self, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use centurion_config::paths::Dirs;
use centurion_host::OutputQueue;
use centurion_protocol::{end_json_line, is_hidden, is_invisible};
use parking_lot::Mutex;

use self::stdout::Stdout;
pub(crate) use live::LiveView;
pub(crate) use reader_watch::{ReaderWatch, lost_reader};
pub(crate) use text::TextView;

/// Standard output of a session, whose agents continue while its reader does not read.
pub(crate) fn queue(dirs: &Dirs) -> OutputQueue {
    // On the disk of the transcripts; `/tmp` is memory on many machines.
    let place = dirs.own_projects_dir();
    let open = move || tempfile::tempfile_in(&place).or_else(|_| tempfile::tempfile());
    OutputQueue::new(Stdout::default(), Box::new(open))
}

/// Standard output of a command that only prints: written at once, and waited for.
#[derive(Default)]
pub(crate) struct Output(Mutex<Stdout>);

impl Output {
    pub(crate) fn write(&self, bytes: &[u8]) {
        if !has_failed()
            && let Err(error) = self.0.lock().write_all(bytes)
        {
            fail(&error);
        }
    }

    /// Text for people, which may come from files of others.
    pub(crate) fn write_text(&self, text: &str) {
        self.write(visible(text).as_bytes());
    }

    /// One JSON object on a line of its own.
    pub(crate) fn json_line(&self, value: &impl serde::Serialize) {
        match serde_json::to_vec(value) {
            Ok(mut line) => {
                end_json_line(&mut line);
                self.write(&line);
            }
            Err(error) => tracing::error!(%error, "a line could not be written"),
        }
    }
}

static HAS_FAILED: AtomicBool = AtomicBool::new(false);

/// Tells that standard output takes nothing any more: whatever is done, the program has not succeeded.
pub(crate) fn fail(error: &io::Error) {
    HAS_FAILED.store(true, Ordering::Relaxed);
    if error.kind() == io::ErrorKind::BrokenPipe {
        note("error: standard output was closed before the end");
    } else {
        note(&format!("error: standard output cannot be written: {error}"));
    }
}

/// Whether something could not be written to standard output.
pub(crate) fn has_failed() -> bool {
    HAS_FAILED.load(Ordering::Relaxed)
}

/// A text in which nothing commands a terminal and nothing is hidden: such characters are shown by their numbers.
/// Lines stay lines.
pub(crate) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' => shown.push('\n'),
            '\t' => shown.push(' '),
            _ if letter.is_control() || is_invisible(letter) || ends_line(letter) => {
                shown.extend(letter.escape_unicode());
            }
            _ => shown.push(letter),
        }
    }
    shown
}

/// A text for a terminal, in which nothing commands it. Unlike [`visible`], it keeps what joins letters and pictures.
pub(crate) fn without_commands(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' | '\t' => shown.push(letter),
            _ if letter.is_control() || is_direction(letter) => {
                shown.extend(letter.escape_unicode());
            }
            _ => shown.push(letter),
        }
    }
    shown
}

/// Whether a character reverses the text after it, so that a reader sees another text than there is.
fn is_direction(letter: char) -> bool {
    matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Tells whether some programs take a letter for the end of a line, and others do not.
fn ends_line(letter: char) -> bool {
    matches!(letter, '\u{2028}' | '\u{2029}')
}

/// A line without characters that would command a terminal, or turn the order of those that are read.
pub(crate) fn printable(line: &str) -> String {
    let plain = line.chars().map(|c| if c == '\t' { ' ' } else { c });
    plain.filter(|c| !(c.is_control() || is_hidden(*c))).collect()
}

/// Tells a person on standard error what failed and why. Lines that begin with `help:` stand as they are.
pub(crate) fn complain(error: &anyhow::Error) {
    let mut causes = error.chain().map(ToString::to_string);
    let mut text = causes.next().unwrap_or_default();
    for cause in causes {
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    note(&format!("error: {text}"));
}

/// Writes a line to standard error. If that fails, there is no other channel. Much of what is told comes from files
/// of others.
pub(crate) fn note(line: &str) {
    if let Some(teller) = &*DIVERTED.lock() {
        return teller(line);
    }
    note_as_is(&visible(line));
}

/// Takes a line that a person is told.
type Teller = Box<dyn Fn(&str) + Send>;

/// The place of lines while the terminal has a surface.
static DIVERTED: Mutex<Option<Teller>> = Mutex::new(None);

/// From now on lines go to a surface, or to standard error again.
pub(crate) fn divert(teller: Option<Teller>) {
    *DIVERTED.lock() = teller;
}

/// The same for a line in which nothing is hidden. A program that is to end gives up a reader that does not read.
fn note_as_is(line: &str) {
    if !IS_ENDING.load(Ordering::Relaxed) || stdout::standard_error_takes_line() {
        drop(writeln!(io::stderr().lock(), "{line}"));
    }
}

static IS_ENDING: AtomicBool = AtomicBool::new(false);

/// Takes note that the program is to end.
pub(crate) fn end_soon() {
    IS_ENDING.store(true, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::{visible, without_commands};

    #[test]
    fn nothing_commands_the_terminal_and_nothing_hides() {
        assert_eq!(visible("a\n\tb é 漢 \u{1f600}"), "a\n b é 漢 \u{1f600}");
        assert_eq!(visible("\u{1b}[31m\r\u{7}"), "\\u{1b}[31m\\u{d}\\u{7}");
        assert_eq!(visible("a\u{202e}b\u{200b}\u{2066}"), "a\\u{202e}b\\u{200b}\\u{2066}");
        assert_eq!(visible("\u{9b}2J\u{e0041}"), "\\u{9b}2J\\u{e0041}");
    }

    #[test]
    fn an_answer_does_not_command_the_terminal() {
        let family = "a\n\tb \u{1f468}\u{200d}\u{1f469} é";
        assert_eq!(without_commands(family), family);
        let evil = "\u{1b}]52;c;eA==\u{7}\r\u{9b}2J\u{202e}";
        assert_eq!(without_commands(evil), "\\u{1b}]52;c;eA==\\u{7}\\u{d}\\u{9b}2J\\u{202e}");
    }
}
