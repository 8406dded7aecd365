//! Which names agents may have, and which names mean the same agent.

use thiserror::Error;

/// Longer than anybody types; it becomes a directory's name.
const LONGEST: usize = 128;

/// Why a name cannot be an agent's.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum NameError {
    #[error("is empty")]
    Empty,
    #[error("is longer than {LONGEST} bytes")]
    TooLong,
    #[error("begins with `{0}`")]
    BadStart(char),
    #[error("contains `:`, which is kept for the agents of plugins")]
    Colon,
    #[error("would lead to another directory")]
    Path,
    #[error("contains a control character")]
    Control,
}

/// Refuses names that would be taken for something else: for an option, for a plugin's agent, or for a
/// way out of the directory that an agent's memory is kept in.
pub fn check_name(name: &str) -> Result<(), NameError> {
    let first = name.chars().next().ok_or(NameError::Empty)?;
    if name.len() > LONGEST {
        return Err(NameError::TooLong);
    }
    if matches!(first, '-' | '.') {
        return Err(NameError::BadStart(first));
    }
    if name.contains(':') {
        return Err(NameError::Colon);
    }
    if name.chars().any(char::is_control) {
        return Err(NameError::Control);
    }
    if name.split(['/', '\\']).any(|part| matches!(part.trim(), "" | "." | "..")) {
        return Err(NameError::Path);
    }
    Ok(())
}

/// The name of an agent's own directory: one part of a path, whatever the agent is called.
pub fn directory_name(name: &str) -> String {
    let safe = |it: char| if matches!(it, '/' | '\\' | ':') { '-' } else { it };
    name.trim_start_matches('.').chars().map(safe).filter(|it| !it.is_control()).collect()
}

/// A name without what people write differently: case, and what joins words.
pub fn folded(name: &str) -> String {
    name.chars()
        .map(|it| if matches!(it, '_' | ' ') { '-' } else { it })
        .flat_map(char::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_real_agents_are_good() {
        for name in [
            "code-reviewer",
            "4.1-Beast",
            "Bookkeeper & Controller",
            "検査",
            "a..b",
            "Spatial/Metal",
        ] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        let cases = [
            ("", NameError::Empty),
            ("-x", NameError::BadStart('-')),
            ("..", NameError::BadStart('.')),
            (".hidden", NameError::BadStart('.')),
            ("a:b", NameError::Colon),
            ("../../etc", NameError::BadStart('.')),
            ("a/../b", NameError::Path),
            ("/etc", NameError::Path),
            ("a/", NameError::Path),
            ("a\\..\\b", NameError::Path),
            ("a\0b", NameError::Control),
            ("a\u{1b}[31m", NameError::Control),
        ];
        for (name, error) in cases {
            assert_eq!(check_name(name), Err(error), "{name:?}");
        }
        assert_eq!(check_name(&"a".repeat(129)), Err(NameError::TooLong));
    }

    #[test]
    fn a_directory_is_one_part_of_a_path() {
        assert_eq!(directory_name("code-reviewer"), "code-reviewer");
        assert_eq!(directory_name("plugin:sub:Spatial/Metal"), "plugin-sub-Spatial-Metal");
        assert_eq!(directory_name("../x"), "-x");
    }

    #[test]
    fn case_and_joints_do_not_matter() {
        // D-20
        assert_eq!(folded("Code_Reviewer"), folded("code-reviewer"));
        assert_eq!(folded("Code Reviewer"), "code-reviewer");
    }
}
