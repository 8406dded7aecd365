//! Limits on the resources of a command.
//!
//! A [control group](super::cgroup) limits the memory and the processes of the whole command where one can be made.
//! Elsewhere, and for files, the kernel limits each process, and its children inherit the limits.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The limits of a command or a hook; `None` leaves Centurion's own limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommandLimits {
    /// Bytes of memory: of all its processes together, or of the writable memory of each.
    pub memory: Option<u64>,
    /// Processes and threads: of the command, or of the user.
    pub processes: Option<u64>,
    /// The largest size of one file, in bytes.
    pub file: Option<u64>,
}

/// The prefix of the word that tells a guard its limits.
const WORD: &str = "limits=";

impl CommandLimits {
    /// The word for a guard, if there are limits.
    pub(super) fn to_word(self) -> Option<String> {
        let number = |limit: Option<u64>| limit.map_or(String::new(), |limit| limit.to_string());
        let Self { memory, processes, file } = self;
        (self != Self::default())
            .then(|| format!("{WORD}{},{},{}", number(memory), number(processes), number(file)))
    }

    /// Whether a word tells limits.
    pub(super) fn is_word(word: &str) -> bool {
        word.starts_with(WORD)
    }

    /// Parses such a word.
    pub(super) fn from_word(word: &str) -> Option<Self> {
        let number = |text: &str| match text {
            "" => Some(None),
            number => number.parse().ok().map(Some),
        };
        let mut numbers = word.strip_prefix(WORD)?.split(',').map(number);
        let (memory, processes) = (numbers.next()??, numbers.next()??);
        Some(Self { memory, processes, file: numbers.next()?? })
    }

    /// Lowers the limits of this process.
    pub(super) fn apply(self) -> rustix::io::Result<()> {
        for (resource, limit) in [
            (Resource::Data, self.memory),
            (Resource::Nproc, self.processes),
            (Resource::Fsize, self.file),
        ] {
            let Some(limit) = limit else { continue };
            let now = getrlimit(resource);
            let lower = |other: Option<u64>| Some(other.map_or(limit, |other| other.min(limit)));
            setrlimit(
                resource,
                Rlimit { current: lower(now.current), maximum: lower(now.maximum) },
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_survive_the_command_line() {
        let some = CommandLimits { memory: Some(1 << 40), processes: None, file: Some(0) };
        let word = some.to_word().unwrap();
        assert_eq!(CommandLimits::from_word(&word), Some(some));
        assert_eq!(CommandLimits::default().to_word(), None);
        assert!(CommandLimits::is_word(&word) && !CommandLimits::is_word("watch"));
        for broken in ["limits=", "limits=1,2", "limits=x,,", "limits=-1,,"] {
            assert_eq!(CommandLimits::from_word(broken), None, "{broken}");
        }
    }
}
