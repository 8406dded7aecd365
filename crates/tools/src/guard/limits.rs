//! Limits on what a command may use.
//!
//! A [control group](super::cgroup) bounds memory and processes of the whole command where one can be made. Elsewhere,
//! and for files, the limits are those of the kernel for each process, inherited by all that come after it.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What a command or a hook may use at most; `None` is what Centurion itself may.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommandLimits {
    /// Bytes of memory: of all its processes, or that each of them may write to.
    pub memory: Option<u64>,
    /// Processes and threads: its own, or all of the user.
    pub processes: Option<u64>,
    /// Bytes that one file may grow to.
    pub file: Option<u64>,
}

/// What the word begins with by which a guard is told of limits.
const WORD: &str = "limits=";

impl CommandLimits {
    /// The word for a guard, if there is anything to tell.
    pub(super) fn to_word(self) -> Option<String> {
        let number = |limit: Option<u64>| limit.map_or(String::new(), |limit| limit.to_string());
        let Self { memory, processes, file } = self;
        (self != Self::default())
            .then(|| format!("{WORD}{},{},{}", number(memory), number(processes), number(file)))
    }

    /// Whether a word tells of limits.
    pub(super) fn is_word(word: &str) -> bool {
        word.starts_with(WORD)
    }

    /// Reads such a word.
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
