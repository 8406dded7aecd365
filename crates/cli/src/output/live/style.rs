//! The look of a line: its colours, its length, and the words for amounts.

use centurion_protocol::ToolUse;
use centurion_protocol::sdk::TaskUsage;
use serde_json::Value;

use super::window::cut;
use crate::output::{printable, visible};

/// The most columns of a line that a person is shown.
const WIDTH: usize = 100;

pub(super) const RED: &str = "31";
pub(super) const GREEN: &str = "32";
pub(super) const YELLOW: &str = "33";
pub(super) const CYAN: &str = "36";
pub(super) const DIM: &str = "2";
pub(super) const BOLD: &str = "1";

#[derive(Clone, Copy, Debug)]
pub(super) struct Style {
    /// Whether there are colours.
    pub(super) paint: bool,
}

impl Style {
    pub(super) fn painted(self, code: &str, text: &str) -> String {
        if self.paint && !text.is_empty() {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

/// Every code of ours, and the one that ends them.
const CODES: [&str; 11] = [BOLD, DIM, RED, GREEN, YELLOW, CYAN, "34", "35", "93", "95", "0"];

/// A line with our colours, in which nothing else commands the terminal and nothing is hidden.
pub(super) fn with_colours(line: &str) -> String {
    let mut pieces = line.split("\x1b[");
    let mut shown = visible(pieces.next().unwrap_or_default());
    for piece in pieces {
        match piece.split_once('m').filter(|(code, _)| CODES.contains(code)) {
            Some((code, text)) => {
                shown.extend(["\x1b[", code, "m", &visible(text)]);
            }
            None => shown.push_str(&visible(&format!("\x1b[{piece}"))),
        }
    }
    shown
}

/// The code of an agent's colour. Two of the eight have no name among the ANSI colours and are bright ones.
pub(super) fn colour(name: Option<&str>) -> &'static str {
    match name.unwrap_or_default() {
        "red" => RED,
        "green" => GREEN,
        "yellow" => YELLOW,
        "blue" => "34",
        "purple" => "35",
        "orange" => "93",
        "pink" => "95",
        _ => CYAN,
    }
}

/// The one thing about a call that tells a person what it does.
pub(super) fn subject(call: &ToolUse) -> String {
    let input: Value = serde_json::from_str(call.input.get()).unwrap_or_default();
    let text = |key: &str| input.get(key).and_then(Value::as_str);
    if let Some(to) = text("to") {
        let said = text("summary").or(text("message")).unwrap_or_default();
        return brief(&format!("{to}: {said}"));
    }
    if let Some(action) = text("action") {
        return brief(&format!("{action} {}", text("name").unwrap_or_default()));
    }
    let keys = [
        "command",
        "file_path",
        "notebook_path",
        "pattern",
        "url",
        "task_id",
        "plan",
        "query",
        "skill",
        "name",
        "description",
    ];
    keys.iter().find_map(|key| text(key)).map(brief).unwrap_or_default()
}

/// The words for what has been used: calls, tokens and time.
pub(super) fn amounts(usage: &TaskUsage) -> String {
    let calls = match usage.tool_uses {
        1 => "1 call".to_owned(),
        calls => format!("{calls} calls"),
    };
    format!("{calls} · {} · {}", tokens(usage.total_tokens), time(usage.duration_ms))
}

pub(super) fn tokens(count: u64) -> String {
    match count {
        1 => "1 token".to_owned(),
        0 | 2..1_000 => format!("{count} tokens"),
        1_000..1_000_000 => format!("{}.{}k tokens", count / 1_000, count % 1_000 / 100),
        _ => format!("{}.{}M tokens", count / 1_000_000, count % 1_000_000 / 100_000),
    }
}

fn time(millis: u64) -> String {
    let seconds = millis / 1_000;
    match seconds {
        0..60 => format!("{seconds}.{} s", millis % 1_000 / 100),
        60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}

/// The first line of a text, cut to what fits, without control characters.
pub(super) fn brief(text: &str) -> String {
    cut(&printable(text.trim_start().lines().next().unwrap_or("")), WIDTH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_colours_stay_and_other_sequences_are_shown_by_number() {
        let style = Style { paint: true };
        let line = style.painted(colour(Some("orange")), "● a");
        assert_eq!(with_colours(&line), line);
        assert_eq!(with_colours("\x1b[8mhidden\x1b[2J"), "\\u{1b}[8mhidden\\u{1b}[2J");
        assert_eq!(with_colours("a\u{202e}b"), "a\\u{202e}b");
    }

    fn usage(total_tokens: u64, duration_ms: u64) -> TaskUsage {
        TaskUsage { total_tokens, tool_uses: 2, duration_ms }
    }

    #[test]
    fn amounts_are_short_at_any_size() {
        assert_eq!(amounts(&usage(999, 420)), "2 calls · 999 tokens · 0.4 s");
        assert_eq!(amounts(&usage(15_387, 61_000)), "2 calls · 15.3k tokens · 1 min 1 s");
        assert_eq!(amounts(&usage(2_450_000, 7_260_000)), "2 calls · 2.4M tokens · 2 h 1 min");
    }

    #[test]
    fn a_long_line_is_cut_between_characters_and_commands_no_terminal() {
        assert_eq!(brief(&"é".repeat(101)), format!("{}…", "é".repeat(99)));
        assert_eq!(brief(&"日".repeat(51)), format!("{}…", "日".repeat(49)));
        assert_eq!(brief("\n a\x1b[31mb\tc\nd"), "a[31mb c");
    }

    #[test]
    fn every_colour_of_an_agent_has_a_code_of_its_own() {
        let mut codes: Vec<&str> =
            centurion_config::agents::Color::ALL.map(|it| colour(Some(it.as_str()))).into();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), centurion_config::agents::Color::ALL.len());
    }
}
