//! The pattern in `Bash(…)`.

use super::shape::Shape;
use crate::wildcard::Wildcard;

/// A command with `*` for any run of characters. A trailing ` *` or `:*` means "with any arguments or none": `ls *`
/// matches `ls` and `ls -l`, not `lsof`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommandPattern {
    whole: Wildcard,
    /// The pattern without its trailing ` *`, if it has one.
    without_arguments: Option<Wildcard>,
}

impl CommandPattern {
    pub(crate) fn parse(text: &str) -> Self {
        let text = match text.strip_suffix(":*") {
            Some(prefix) => format!("{prefix} *"),
            None => text.to_owned(),
        };
        let without_arguments = text.strip_suffix(" *").map(Wildcard::parse);
        Self { whole: Wildcard::parse(&text), without_arguments }
    }

    /// Whether the pattern matches exactly one text.
    pub(crate) fn is_exact(&self) -> bool {
        !self.whole.has_stars()
    }

    /// The text that the pattern matches, if it is only one.
    pub(crate) fn exact(&self) -> Option<&str> {
        self.is_exact().then(|| self.whole.start())
    }

    /// The first word, if every matching command begins with exactly that.
    pub(crate) fn program(&self) -> Option<&str> {
        let start = self.whole.start();
        match start.split_once(' ') {
            Some((program, _)) => Some(program),
            None if self.is_exact() => Some(start),
            None => None,
        }
    }

    /// The text with which every matching command begins.
    pub(crate) fn beginning(&self) -> &str {
        self.without_arguments.as_ref().unwrap_or(&self.whole).start()
    }

    /// Whether some command of the shape matches.
    pub(crate) fn may_fit(&self, command: &Shape) -> bool {
        // Most differ at the start, which is quick to see.
        let begins = |pattern: &Wildcard| {
            command.start().zip(pattern.start().chars()).all(|(one, two)| one == two)
        };
        if !begins(&self.whole) && !self.without_arguments.as_ref().is_some_and(begins) {
            return false;
        }
        self.whole.to_shape().intersects(command)
            || self
                .without_arguments
                .as_ref()
                .is_some_and(|pattern| pattern.to_shape().intersects(command))
    }

    pub(crate) fn fits(&self, command: &str) -> bool {
        self.whole.fits(command)
            || self.without_arguments.as_ref().is_some_and(|pattern| pattern.fits(command))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_what_they_say() {
        for (pattern, command, expected) in [
            ("ls", "ls", true),
            ("ls", "ls -l", false),
            ("ls *", "ls", true),
            ("ls *", "ls -l", true),
            ("ls *", "lsof", false),
            ("ls*", "lsof", true),
            ("ls:*", "ls -l", true),
            ("ls:*", "ls", true),
            ("ls:*", "lsof", false),
            ("git * main", "git checkout main", true),
            ("git * main", "git push origin main", true),
            ("git * main", "git checkout dev", false),
            ("* --version", "cargo --version", true),
            ("npm run test:*", "npm run test", true),
            ("npm run test:*", "npm run test -- a", true),
            ("npm run test:*", "npm run test:unit", false),
            ("echo a:* b", "echo a:x b", true),
            (r"echo \*", "echo '*'", false),
            ("\"rm\" *", "rm x", false),
        ] {
            assert_eq!(
                CommandPattern::parse(pattern).fits(command),
                expected,
                "{pattern} on {command}"
            );
        }
    }

    #[test]
    fn the_program_is_known_where_the_first_word_is_whole() {
        for (pattern, program) in [
            ("ls", Some("ls")),
            ("ls *", Some("ls")),
            ("git log *", Some("git")),
            ("ls*", None),
            ("* --version", None),
            (r"\* x", Some("*")),
        ] {
            assert_eq!(CommandPattern::parse(pattern).program(), program, "{pattern}");
        }
    }
}
