//! Names of agents: which are allowed, and which mean the same agent.

use centurion_protocol::is_hidden;
use thiserror::Error;

/// Longer than any name that is typed; it becomes a directory's name.
const LONGEST: usize = 128;

/// The reason why a name cannot be an agent's.
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
    #[error("contains `{0}`, and a name is no path")]
    Separator(char),
    #[error("contains `..`, and a name is no path")]
    Dots,
    #[error("would lead to another directory")]
    Path,
    #[error("contains a control character")]
    Control,
}

/// Refuses names of definitions that would be taken for something else: for an option, for a plugin's agent, for
/// a path that leads elsewhere, or for another name that looks the same. Authors do write `/` in a name; no
/// file is ever called by the name alone.
pub fn check_name(name: &str) -> Result<(), NameError> {
    check_skill_name(name)?;
    if name.contains('\\') {
        return Err(NameError::Separator('\\'));
    }
    if name.contains("..") { Err(NameError::Dots) } else { Ok(()) }
}

/// The same for skills, whose names may have parts with `/` between them.
pub fn check_skill_name(name: &str) -> Result<(), NameError> {
    check_shape(name)?;
    if name.chars().any(|it| it.is_control() || is_deceptive(it)) || joins_nothing(name) {
        return Err(NameError::Control);
    }
    let leads_elsewhere = |part: &str| matches!(part.trim(), "" | "." | "..");
    if name.split(['/', '\\']).any(leads_elsewhere) { Err(NameError::Path) } else { Ok(()) }
}

fn check_shape(name: &str) -> Result<(), NameError> {
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
    Ok(())
}

/// Refuses what no name of an agent has, wherever it comes from: path separators of any system, `..`, and
/// characters that control how text is shown. Blanks are good.
pub fn check_characters(name: &str) -> Result<(), NameError> {
    if name.chars().any(|it| it.is_control() || is_deceptive(it)) || joins_nothing(name) {
        return Err(NameError::Control);
    }
    if let Some(separator) = name.chars().find(|it| matches!(it, '/' | '\\')) {
        return Err(NameError::Separator(separator));
    }
    if name.contains("..") { Err(NameError::Dots) } else { Ok(()) }
}

/// Characters that show nothing, end a line, or pass for a path separator.
fn is_deceptive(it: char) -> bool {
    matches!(it, '\u{2028}'..='\u{2029}' | '\u{2800}')
        || matches!(
            it,
            '\u{2044}' | '\u{2215}'
                ..='\u{2216}' | '\u{29f5}' | '\u{29f8}' | '\u{ff0f}' | '\u{ff3c}'
        )
        || is_hidden(it)
}

/// Whether something stands at an end of the name that only joins letters.
fn joins_nothing(name: &str) -> bool {
    const JOINERS: [char; 2] = ['\u{200c}', '\u{200d}'];
    name.starts_with(JOINERS) || name.ends_with(JOINERS)
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

/// The names of the built-in agents that change nothing, folded. A project's agent that takes the place of one has to be
/// accepted before it may change something.
pub const READ_ONLY_NAMES: [&str; 4] = ["explore", "plan", "centurion-guide", "claude-code-guide"];

/// Whether this is a name of such an agent.
pub fn is_read_only_name(name: &str) -> bool {
    READ_ONLY_NAMES.contains(&folded(name).as_str())
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
            "a.b",
            "Spatial/Metal",
        ] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        // D-60
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
            ("a\\b", NameError::Separator('\\')),
            ("a..b", NameError::Dots),
            ("a\u{202e}b", NameError::Control),
            ("a\u{200b}", NameError::Control),
            ("a\0b", NameError::Control),
            ("a\u{3164}", NameError::Control),
            ("a\u{115f}b", NameError::Control),
            ("a\u{e0041}", NameError::Control),
            ("a\u{2800}", NameError::Control),
            ("a\u{ff0f}b", NameError::Control),
            ("a\u{200d}", NameError::Control),
            ("a\u{1b}[31m", NameError::Control),
        ];
        for (name, error) in cases {
            assert_eq!(check_name(name), Err(error), "{name:?}");
        }
        assert_eq!(check_name(&"a".repeat(129)), Err(NameError::TooLong));
    }

    #[test]
    fn skills_may_have_parts_in_their_names() {
        assert_eq!(check_skill_name("web/lint"), Ok(()));
        for name in ["web/../lint", "web//lint", "web/", "a\\..\\b"] {
            assert_eq!(check_skill_name(name), Err(NameError::Path), "{name}");
        }
        assert_eq!(check_skill_name("a\nb"), Err(NameError::Control));
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
