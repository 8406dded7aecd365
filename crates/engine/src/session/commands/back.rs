//! `/rewind`: files as they were before a prompt.

use centurion_journal::MOST_TRANSCRIPT;
use centurion_protocol::bounded;
use centurion_tools::{FileHistory, Prompt};

use super::CommandEnd;
use super::show::first_line;
use crate::agent::shared::Shared;
use crate::message::titles::title;
use crate::session::rewind::rewind_between_turns;

/// Lists the prompts, or brings files back to what they were before one of them.
pub(super) fn rewind(shared: &Shared, number: &str) -> CommandEnd {
    let transcript = &shared.delegation.builder.files.transcript;
    let Ok(text) = bounded::read_file(transcript, MOST_TRANSCRIPT) else {
        return CommandEnd::Failed("this session keeps no transcript".to_owned());
    };
    let history = FileHistory::read(&text);
    let prompts: Vec<&Prompt> = history.prompts.iter().filter(|it| !it.is_rewind).collect();
    if number.is_empty() {
        let line = |(index, prompt): (usize, &&Prompt)| {
            let files = history.changed_since(prompt);
            format!(
                "{}  {}  ({files} files changed since)",
                index + 1,
                title(first_line(&prompt.text))
            )
        };
        let lines: Vec<String> = prompts.iter().enumerate().map(line).collect();
        let none = || "There is no prompt to go back to.".to_owned();
        return CommandEnd::Said(if lines.is_empty() { none() } else { lines.join("\n") });
    }
    let chosen = number.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    let Some(prompt) = chosen.and_then(|index| prompts.get(index)) else {
        return CommandEnd::Failed(format!("there is no prompt {number}; /rewind lists them"));
    };
    match rewind_between_turns(shared, prompt.record, false) {
        Ok(rewind) => {
            let back = rewind.files.iter().map(|file| format!("back: {}", file.path.display()));
            let aside =
                rewind.set_aside.iter().map(|it| format!("set aside: {}", it.path.display()));
            let skipped = rewind.skipped_links.iter();
            let skipped = skipped.map(|path| format!("left alone, a link: {}", path.display()));
            let failed = rewind.failed.iter();
            let failed = failed.map(|(path, why)| format!("failed: {}: {why}", path.display()));
            let lines: Vec<String> = back.chain(aside).chain(skipped).chain(failed).collect();
            match (lines.is_empty(), rewind.failed.is_empty()) {
                (true, _) => CommandEnd::Said("No file has to be brought back.".to_owned()),
                (false, true) => CommandEnd::Said(lines.join("\n")),
                (false, false) => CommandEnd::Failed(lines.join("\n")),
            }
        }
        Err(error) => CommandEnd::Failed(error.to_string()),
    }
}
