//! `cargo xtask storm`: the storm of mail among members of a team at its full size, which takes too long for the tests.
//! Members and their lead are killed at random; it fails if one message that was acknowledged is lost, read twice or out of
//! order.

use anyhow::{Context, Result, bail};

use crate::run::{cargo, run};

/// The test that does the same with few messages, and the variable that says how many each member writes.
const TEST: &str = "test(=member_deaths::sixteen_writers_in_processes_lose_and_double_nothing_though_processes_are_killed)";
const MESSAGES: &str = "CENTURION_STORM";

/// Reads how many messages each member writes.
pub(crate) fn messages(words: &[&str]) -> Result<u64> {
    match words {
        [] => Ok(10_000),
        ["--messages", number] => {
            number.parse().with_context(|| format!("`{number}` is no number of messages"))
        }
        [word, ..] => bail!("unknown option `{word}`"),
    }
}

pub(crate) fn storm(messages: u64) -> Result<()> {
    let mut storm = cargo(&["nextest", "run", "-p", "centurion", "--profile", "storm"]);
    storm.args(["--no-capture", "-E", TEST]);
    run(storm.env(MESSAGES, messages.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_the_storm_can_be_said() {
        assert_eq!(messages(&[]).unwrap(), 10_000);
        assert_eq!(messages(&["--messages", "50"]).unwrap(), 50);
        for words in [&["--messages"][..], &["--messages", "x"], &["50"]] {
            assert!(messages(words).is_err(), "{words:?}");
        }
    }
}
