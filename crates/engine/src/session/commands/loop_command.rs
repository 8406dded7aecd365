//! `/loop`: a prompt that comes again and again while the session is open.

use std::path::Path;
use std::time::Duration;

use centurion_journal::JournalError;
use centurion_protocol::{Block, bounded};
use tokio_util::sync::CancellationToken;

use super::CommandEnd;
use crate::message::manner::Manner;
use crate::message::queue::{Item, Origin, Priority};
use crate::message::titles::title;
use crate::schedule::{ScheduleRequest, Schedules};
use crate::session::Session;
use crate::turn::driver::Run;

/// The interval where a person names none.
const USUAL: Duration = Duration::from_mins(10);
/// The file of the project whose text is the prompt where a person says none.
const PROMPT_FILE: &str = ".claude/loop.md";
/// The largest file that is read for that.
const LARGEST: u64 = 64 * 1024;
/// The minutes that divide an hour, and the hours that divide a day.
const MINUTES: [u64; 11] = [1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30];
const HOURS: [u64; 8] = [1, 2, 3, 4, 6, 8, 12, 24];

/// A wish behind `/loop`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LoopWish<'w> {
    List,
    /// Ends one, by its id, or all.
    Stop(&'w str),
    Begin {
        interval: Duration,
        prompt: &'w str,
    },
}

impl<'w> LoopWish<'w> {
    fn read(words: &'w str) -> Self {
        let (first, rest) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
        match (first, interval(first)) {
            ("", _) => Self::List,
            ("stop", _) if !rest.trim().contains(char::is_whitespace) => Self::Stop(rest.trim()),
            (_, Some(interval)) => Self::Begin { interval, prompt: rest.trim() },
            (_, None) => Self::Begin { interval: USUAL, prompt: words },
        }
    }
}

/// The time that a word such as `5m` or `2h` means.
fn interval(word: &str) -> Option<Duration> {
    let unit = word.chars().last().filter(char::is_ascii_alphabetic)?;
    let count: u64 = word.strip_suffix(unit)?.parse().ok().filter(|count| *count > 0)?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => return None,
    };
    count.checked_mul(seconds).map(Duration::from_secs)
}

/// The schedule that comes in such intervals, or in the next longer ones that fit into an hour or a day, with words for it;
/// `None` for one of more than a day.
fn schedule(interval: Duration) -> Option<(String, String)> {
    let minutes = interval.as_secs().div_ceil(60);
    let hours = minutes.div_ceil(60);
    let every = |count: u64, unit: &str| match count {
        1 => format!("every {unit}"),
        count => format!("every {count} {unit}s"),
    };
    if let Some(count) = MINUTES.iter().find(|count| **count >= minutes) {
        return Some((format!("*/{count} * * * *"), every(*count, "minute")));
    }
    let count = HOURS.iter().find(|count| **count >= hours)?;
    // Not at the full hour, when everybody's come.
    let hour = if *count == 24 { "9".to_owned() } else { format!("*/{count}") };
    Some((format!("7 {hour} * * *"), every(*count, "hour")))
}

impl Session {
    /// The rule that denies reading a file, by its name or by its real path.
    fn rule_against(&self, file: &Path) -> Option<String> {
        let permissions = &self.driver.dispatch.agent.permissions;
        let real = file.canonicalize().ok();
        let denial = real.and_then(|real| permissions.read_denial(&real));
        denial.or_else(|| permissions.read_denial(file))
    }

    /// Sets up a prompt that comes again, and works on it at once; lists or ends those that there are.
    pub(super) async fn set_loop(
        &mut self,
        run: &mut Run,
        words: &str,
        cancel: &CancellationToken,
    ) -> Result<CommandEnd, JournalError> {
        let failed = |reason: String| Ok(CommandEnd::Failed(reason));
        let Some(schedules) = &self.shared.schedules else {
            return failed("nothing can be scheduled in this session".to_owned());
        };
        let (interval, prompt) = match LoopWish::read(words) {
            LoopWish::List => return Ok(CommandEnd::Said(self.listed_loops(schedules))),
            LoopWish::Stop(id) => return Ok(self.stop_loops(schedules, id)),
            LoopWish::Begin { interval, prompt } => (interval, prompt),
        };
        let Some((cron, every)) = schedule(interval) else {
            return failed("the longest interval is a day".to_owned());
        };
        let root = self.driver.dispatch.agent.workspace.root();
        let prompt = match prompt {
            "" => {
                let file = root.join(PROMPT_FILE);
                if let Some(rule) = self.rule_against(&file) {
                    return failed(format!(
                        "{} is left out: {rule} denies reading it",
                        file.display()
                    ));
                }
                bounded::read_text_file(&file, LARGEST).unwrap_or_default()
            }
            prompt => prompt.to_owned(),
        };
        if prompt.trim().is_empty() {
            return failed(format!(
                "say what is to be done each time: /loop 5m PROMPT, or write it to {PROMPT_FILE}"
            ));
        }
        let wish =
            ScheduleRequest { cron, prompt: prompt.clone(), recurring: true, durable: false };
        let id = match schedules.create(&self.shared.queue, wish) {
            Ok(entry) => entry.schedule.id,
            Err(error) => return failed(error.to_string()),
        };
        let told = format!("{every} while this session is open · /loop stop {id} ends it");
        self.driver.dispatch.agent.inform("info", told);
        let item = Item {
            id: self.shared.world.record_id(),
            priority: Priority::Next,
            addressee: None,
            content: vec![Block::Text(prompt)],
            origin: Origin::Person,
            manner: Manner::default(),
        };
        self.driver.run(run, &[item], cancel).await?;
        Ok(CommandEnd::Ran)
    }

    fn listed_loops(&self, schedules: &Schedules) -> String {
        let line = |entry: crate::schedule::ScheduleEntry| {
            let schedule = entry.schedule;
            let (id, cron) = (&schedule.id, schedule.cron.as_str());
            format!("{id}  {cron}  {}", title(&schedule.prompt))
        };
        let lines: Vec<String> = schedules.list(&self.shared.queue).into_iter().map(line).collect();
        if lines.is_empty() {
            return "Nothing is scheduled. /loop 5m PROMPT begins.".to_owned();
        }
        lines.join("\n")
    }

    /// Ends one, or all.
    fn stop_loops(&self, schedules: &Schedules, id: &str) -> CommandEnd {
        let queue = &self.shared.queue;
        let ids: Vec<String> = match id {
            "" => schedules.list(queue).into_iter().map(|entry| entry.schedule.id).collect(),
            id => vec![id.to_owned()],
        };
        for id in &ids {
            if let Err(error) = schedules.delete(queue, id) {
                return CommandEnd::Failed(error.to_string());
            }
        }
        CommandEnd::Said(match ids.len() {
            0 => "Nothing was scheduled.".to_owned(),
            1 => "It does not come again.".to_owned(),
            count => format!("{count} do not come again."),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wanted_is_read_from_the_first_word() {
        let minutes = Duration::from_mins;
        for (words, expected) in [
            ("", LoopWish::List),
            ("stop", LoopWish::Stop("")),
            ("stop ab12", LoopWish::Stop("ab12")),
            (
                "stop the world now",
                LoopWish::Begin { interval: USUAL, prompt: "stop the world now" },
            ),
            ("5m check it", LoopWish::Begin { interval: minutes(5), prompt: "check it" }),
            ("90s x", LoopWish::Begin { interval: Duration::from_secs(90), prompt: "x" }),
            ("2h", LoopWish::Begin { interval: minutes(120), prompt: "" }),
            ("0m x", LoopWish::Begin { interval: USUAL, prompt: "0m x" }),
            ("5mm x", LoopWish::Begin { interval: USUAL, prompt: "5mm x" }),
            (
                "99999999999999999999h x",
                LoopWish::Begin { interval: USUAL, prompt: "99999999999999999999h x" },
            ),
            ("über x", LoopWish::Begin { interval: USUAL, prompt: "über x" }),
        ] {
            assert_eq!(LoopWish::read(words), expected, "{words}");
        }
    }

    #[test]
    fn an_interval_becomes_the_next_longer_one_that_fits() {
        let of = |seconds| schedule(Duration::from_secs(seconds));
        for (seconds, cron, words) in [
            (1, "*/1 * * * *", "every minute"),
            (300, "*/5 * * * *", "every 5 minutes"),
            (420, "*/10 * * * *", "every 10 minutes"),
            (1_860, "7 */1 * * *", "every hour"),
            (5 * 3_600, "7 */6 * * *", "every 6 hours"),
            (86_400, "7 9 * * *", "every 24 hours"),
        ] {
            assert_eq!(of(seconds), Some((cron.to_owned(), words.to_owned())), "{seconds}");
        }
        assert_eq!(of(86_401), None);
    }
}
