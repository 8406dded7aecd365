//! The rules for names of agents: a word or a few by which others speak to it, and nothing else.
//!
//! A name stands in the conversations of other agents and in what people see. It cannot hold markup, a path
//! or a second line, and cannot pass for another agent's id.

use centurion_config::agents::{NameError, check_characters};
use centurion_team::LEAD;
use thiserror::Error;

use crate::agent::delegation::Delegation;

/// The longest name, in characters.
const LONGEST: usize = 64;
/// The names by which other agents mean the main agent.
const MAIN: [&str; 2] = ["main", LEAD];

/// The reason why no agent can have a name.
#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum NameFault {
    /// Characters that would make it a path on any system, or another name to the eye.
    #[error("it {0}")]
    Characters(#[from] NameError),
    #[error("it begins with a letter or a digit and has only those, `-`, `_`, `.` and spaces")]
    Shape,
    #[error("it has at most {LONGEST} characters")]
    TooLong,
    #[error("this one means the agent that the user speaks to")]
    MainAgent,
    #[error("it looks like the id of an agent")]
    AgentId,
    #[error("a member of the team has it")]
    OfMember,
}

/// Checks the name of an agent that joins no team.
pub(super) fn check_beside_team(delegation: &Delegation, name: &str) -> Result<(), NameFault> {
    check(name)?;
    // Messages for the member would reach another agent.
    let is_taken = delegation.team.as_ref().is_some_and(|team| team.has_name(name));
    if is_taken { Err(NameFault::OfMember) } else { Ok(()) }
}

/// Checks the name that a call gives an agent.
pub(super) fn check(name: &str) -> Result<(), NameFault> {
    check_path(name)?;
    let is_fit = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.' | ' ');
    if !name.starts_with(char::is_alphanumeric) || !name.chars().all(is_fit) {
        return Err(NameFault::Shape);
    }
    if name.chars().count() > LONGEST {
        return Err(NameFault::TooLong);
    }
    if MAIN.iter().any(|main| main.eq_ignore_ascii_case(name)) {
        return Err(NameFault::MainAgent);
    }
    if is_id(name) { Err(NameFault::AgentId) } else { Ok(()) }
}

/// Checks for characters that no name of an agent has, in definitions, calls and messages.
pub(crate) fn check_path(name: &str) -> Result<(), NameFault> {
    Ok(check_characters(name)?)
}

/// Tells whether a text could be the id of an agent: `a` and sixteen hex digits.
fn is_id(text: &str) -> bool {
    let digits = text.strip_prefix('a').filter(|digits| digits.len() == 16);
    digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words_and_nothing_else() {
        // S-122, D-60, I-9
        for name in ["bob", "Bob the 2nd", "scout-1", "auth_review.v2", "Zoë", "a0123456789abcde"]
        {
            assert_eq!(check(name), Ok(()), "{name}");
        }
        for name in [
            "../../etc/x",
            "..",
            "a/b",
            "*",
            "uds:x",
            "bob\n<system-reminder>",
            "bob\0",
            "<b>",
            "-v",
            "main",
            "Main",
            "team-lead",
            "Team-Lead",
            "a0123456789abcdef",
        ] {
            assert!(check(name).is_err(), "{name:?}");
        }
        for (name, reason) in [
            ("a/b", "contains `/`"),
            ("a\\b", "contains `\\`"),
            ("a..b", "contains `..`"),
            ("a\tb", "a control character"),
        ] {
            let fault = check(name).unwrap_err();
            assert!(fault.to_string().contains(reason), "{name:?}: {fault}");
        }
        assert_eq!(check(&"é".repeat(64)), Ok(()));
        assert_eq!(check(&"é".repeat(65)), Err(NameFault::TooLong));
    }
}
