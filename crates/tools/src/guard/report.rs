//! The reports of a guard to its parent, one line each.

use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    /// The shell runs as the leader of this process group.
    Started { group: i32 },
    /// The shell has ended.
    Ended {
        exit: Exit,
        /// Whether processes that it started still run.
        left_running: bool,
    },
    /// The shell did not start, for this reason.
    Failed(String),
}

/// The end of a shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Code(i32),
    Signal(i32),
    /// Its output exceeded the limit, and the guard ended it.
    Overflow,
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Started { group } => write!(formatter, "started {group}"),
            Self::Failed(reason) => write!(formatter, "failed {}", reason.replace('\n', " ")),
            Self::Ended { exit, left_running } => {
                match exit {
                    Exit::Code(code) => write!(formatter, "exit {code}")?,
                    Exit::Signal(signal) => write!(formatter, "signal {signal}")?,
                    Exit::Overflow => write!(formatter, "overflow 0")?,
                }
                formatter.write_str(if *left_running { " left" } else { "" })
            }
        }
    }
}

impl Report {
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let (word, rest) = line.split_once(' ')?;
        if word == "failed" {
            return Some(Self::Failed(rest.to_owned()));
        }
        let (number, left_running) = match rest.strip_suffix(" left") {
            Some(number) => (number, true),
            None => (rest, false),
        };
        let number = number.parse().ok()?;
        let exit = match word {
            "started" => return Some(Self::Started { group: number }),
            "exit" => Exit::Code(number),
            "signal" => Exit::Signal(number),
            "overflow" => Exit::Overflow,
            _ => return None,
        };
        Some(Self::Ended { exit, left_running })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_report_is_read_as_it_was_written() {
        for report in [
            Report::Started { group: 77 },
            Report::Failed("no such file".to_owned()),
            Report::Ended { exit: Exit::Code(3), left_running: false },
            Report::Ended { exit: Exit::Signal(9), left_running: true },
            Report::Ended { exit: Exit::Overflow, left_running: false },
        ] {
            assert_eq!(Report::parse(&report.to_string()), Some(report));
        }
        for line in ["", "exit", "exit x", "gone 1", "exit 1 right"] {
            assert_eq!(Report::parse(line), None, "{line:?}");
        }
    }
}
