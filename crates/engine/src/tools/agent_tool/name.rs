//! What an agent may be called: a word or a few by which others speak to it, and nothing else.
//!
//! A name stands in the conversations of other agents and in what people see. It cannot hold markup, a path
//! or a second line, and cannot pass for another agent's id.

use centurion_config::agents::check_characters;
use centurion_team::LEAD;

use crate::agent::delegation::Delegation;

/// The longest name, in characters.
const LONGEST: usize = 64;
/// The names by which other agents mean the main agent.
const MAIN: [&str; 2] = ["main", LEAD];

/// What is wrong with a name for an agent that joins no team, if something is.
pub(super) fn fault_beside_team(delegation: &Delegation, name: &str) -> Option<String> {
    let is_taken = delegation.team.as_ref().is_some_and(|team| team.has_name(name));
    // What is meant for the member would reach another agent.
    let taken = is_taken.then(|| "a member of the team has it".to_owned());
    fault(name).or(taken)
}

/// What is wrong with a name, if something is.
pub(super) fn fault(name: &str) -> Option<String> {
    if let Some(fault) = path_fault(name) {
        return Some(fault);
    }
    shape_fault(name).map(str::to_owned)
}

/// What no name of an agent has, in definitions, calls and messages: what would make it a path on any system,
/// or another name to the eye.
pub(crate) fn path_fault(name: &str) -> Option<String> {
    check_characters(name).err().map(|reason| format!("it {reason}"))
}

fn shape_fault(name: &str) -> Option<&'static str> {
    let is_fit = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.' | ' ');
    if !name.starts_with(char::is_alphanumeric) || !name.chars().all(is_fit) {
        return Some(
            "it begins with a letter or a digit and has only those, `-`, `_`, `.` and spaces",
        );
    }
    if name.chars().count() > LONGEST {
        return Some("it has at most 64 characters");
    }
    if MAIN.iter().any(|main| main.eq_ignore_ascii_case(name)) {
        return Some("this one means the agent that the user speaks to");
    }
    is_id(name).then_some("it looks like the id of an agent")
}

/// Whether a text could be the id of an agent: `a` and sixteen hex digits.
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
            assert_eq!(fault(name), None, "{name}");
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
            assert!(fault(name).is_some(), "{name:?}");
        }
        for (name, reason) in [
            ("a/b", "contains `/`"),
            ("a\\b", "contains `\\`"),
            ("a..b", "contains `..`"),
            ("a\tb", "a control character"),
        ] {
            assert!(fault(name).unwrap().contains(reason), "{name:?}: {:?}", fault(name));
        }
        assert_eq!(fault(&"é".repeat(64)), None);
        assert!(fault(&"é".repeat(65)).is_some());
    }
}
