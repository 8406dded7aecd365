//! `/rewind`: back to a prompt, with the files, the conversation, or both.
//!
//! Nothing is deleted: the transcript keeps what was said since on a branch of its own, and what others made of the
//! files is set aside.

use std::path::Path;

use centurion_journal::{JournalError, MOST_TRANSCRIPT};
use centurion_protocol::bounded;
use centurion_tools::{FileHistory, Prompt, Rewind, RewindError};

use super::CommandEnd;
use super::show::first_line;
use crate::message::titles::title;
use crate::session::Session;
use crate::session::rewind::rewind_between_turns;
use crate::turn::driver::Run;

/// The way to say what goes back.
const USAGE: &str = "say /rewind, or /rewind NUMBER with files, conversation or both (which is meant without a word), \
    and --dry-run to see what it would do";

/// The things that go back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Files,
    Conversation,
    Both,
}

/// A request to go back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RewindWish<'w> {
    /// The number of the prompt as it was typed.
    number: &'w str,
    part: Part,
    is_trial: bool,
}

impl<'w> RewindWish<'w> {
    /// Reads a number, what goes back, and whether it is only tried; `None` for other words.
    fn read(words: &'w str) -> Option<Self> {
        let mut words = words.split_whitespace();
        let number = words.next()?;
        let (mut part, mut is_trial) = (None, false);
        for word in words {
            match word {
                "files" if part.is_none() => part = Some(Part::Files),
                "conversation" if part.is_none() => part = Some(Part::Conversation),
                "both" if part.is_none() => part = Some(Part::Both),
                "--dry-run" | "dry-run" if !is_trial => is_trial = true,
                _ => return None,
            }
        }
        Some(Self { number, part: part.unwrap_or(Part::Both), is_trial })
    }
}

impl Session {
    /// Lists the prompts of the conversation, or goes back to one of them.
    pub(super) fn rewind(&mut self, run: &Run, words: &str) -> Result<CommandEnd, JournalError> {
        let failed = |reason: &str| Ok(CommandEnd::Failed(reason.to_owned()));
        let transcript = self.shared.delegation.builder.files.place.transcript();
        let Ok(text) = bounded::read_file(&transcript, MOST_TRANSCRIPT) else {
            return failed("this session keeps no transcript");
        };
        let history = FileHistory::read(&text);
        let prompts: Vec<&Prompt> =
            history.prompts.iter().filter(|it| it.is_current && !it.is_rewind).collect();
        if words.is_empty() {
            return Ok(CommandEnd::Said(list(&history, &prompts)));
        }
        let Some(wish) = RewindWish::read(words) else { return failed(USAGE) };
        let place = wish.number.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let Some((place, prompt)) = place.and_then(|it| Some((it, *prompts.get(it)?))) else {
            let number = wish.number;
            return failed(&format!("there is no prompt {number}; /rewind lists them"));
        };
        let rewind = match self.rewind_part(prompt, wish) {
            Ok(rewind) => rewind,
            Err(RewindError::NotEnabled) if wish.part == Part::Both => {
                return failed(&format!(
                    "{} /rewind {} conversation takes back what was said.",
                    RewindError::NotEnabled,
                    wish.number
                ));
            }
            Err(error) => return failed(&error.to_string()),
        };
        let mut lines = told(&rewind, wish.is_trial);
        if !rewind.failed.is_empty() {
            if wish.part == Part::Both {
                let number = wish.number;
                lines.push(format!(
                    "The conversation is as it was: /rewind {number} conversation takes it back all the same."
                ));
            }
            return Ok(CommandEnd::Failed(lines.join("\n")));
        }
        if wish.part != Part::Conversation && lines.is_empty() {
            lines.push("No file has to be brought back.".to_owned());
        }
        if wish.part != Part::Files {
            if !wish.is_trial {
                self.driver.go_back(run, prompt.parent)?;
            }
            lines.push(told_conversation(&prompts[place..], wish.is_trial));
        }
        Ok(CommandEnd::Said(lines.join("\n")))
    }

    /// Brings the files back, or says what that would do. Going back in the conversation waits for agents as well.
    fn rewind_part(&self, prompt: &Prompt, wish: RewindWish<'_>) -> Result<Rewind, RewindError> {
        if wish.part != Part::Conversation {
            return rewind_between_turns(&self.shared, prompt.record, wish.is_trial);
        }
        if self.shared.delegation.has_running() {
            return Err(RewindError::AtWork);
        }
        Ok(Rewind::default())
    }
}

/// The prompts by their numbers, with the changes of files since.
fn list(history: &FileHistory, prompts: &[&Prompt]) -> String {
    let line = |(index, prompt): (usize, &&Prompt)| {
        let files = match history.changed_since(prompt) {
            1 => "1 file changed since".to_owned(),
            files => format!("{files} files changed since"),
        };
        format!("{}. {} ({files})", index + 1, shown(prompt))
    };
    if prompts.is_empty() {
        return "There is no prompt to go back to.".to_owned();
    }
    let lines: Vec<String> = prompts.iter().enumerate().map(line).collect();
    format!(
        "{}\n\n/rewind NUMBER takes one back with all that came of it; behind the number: files, conversation, --dry-run",
        lines.join("\n")
    )
}

fn shown(prompt: &Prompt) -> String {
    title(first_line(&prompt.text))
}

/// The effects on files, a line each: items of a list, because terminals show Markdown.
fn told(rewind: &Rewind, is_trial: bool) -> Vec<String> {
    let would = if is_trial { "would be " } else { "" };
    let line = |what: &str, path: &Path| format!("- {what}: {}", path.display());
    let back = rewind.files.iter().map(|file| {
        let (more, less) = (file.insertions, file.deletions);
        let by_whom = file.by_whom();
        format!("{} (+{more} -{less}){by_whom}", line(&format!("{would}back"), &file.path))
    });
    let aside = rewind.set_aside.iter().map(|it| line(&format!("{would}set aside"), &it.path));
    let skipped = rewind.skipped_links.iter().map(|path| line("left alone, a link", path));
    let failed = rewind.failed.iter();
    let failed = failed.map(|(path, why)| format!("{}: {why}", line("failed", path)));
    back.chain(aside).chain(skipped).chain(failed).collect()
}

/// The prompts that are taken back.
fn told_conversation(prompts: &[&Prompt], is_trial: bool) -> String {
    let said = prompts.iter().map(|prompt| shown(prompt)).collect::<Vec<_>>().join(" · ");
    if is_trial {
        return format!("- would be taken back: {said}");
    }
    format!("- taken back: {said}\n\nThe transcript keeps what was said since.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_back_is_said_behind_the_number() {
        let wish = |number, part, is_trial| Some(RewindWish { number, part, is_trial });
        for (words, expected) in [
            ("2", wish("2", Part::Both, false)),
            ("2 both", wish("2", Part::Both, false)),
            (" 2  files ", wish("2", Part::Files, false)),
            ("2 conversation --dry-run", wish("2", Part::Conversation, true)),
            ("2 --dry-run files", wish("2", Part::Files, true)),
            ("2 dry-run", wish("2", Part::Both, true)),
            ("2 files conversation", None),
            ("2 --dry-run --dry-run", None),
            ("2 everything", None),
        ] {
            assert_eq!(RewindWish::read(words), expected, "{words}");
        }
    }
}
