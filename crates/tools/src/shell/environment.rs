//! The environment that commands get: the user's own, who runs them, and what keeps programs from
//! waiting for a person.

use std::collections::BTreeMap;

use centurion_protocol::Env;

use super::ShellsConfig;

/// Set unless the user has set them: nobody is there to use an editor, a pager or a prompt.
const UNATTENDED: [(&str, &str); 4] =
    [("GIT_EDITOR", "true"), ("GIT_PAGER", "cat"), ("GIT_TERMINAL_PROMPT", "0"), ("PAGER", "cat")];

pub(super) fn of_commands(config: &ShellsConfig, env: &Env) -> BTreeMap<String, String> {
    let unattended = UNATTENDED.into_iter().filter(|(name, _)| env.get(name).is_none());
    let users = env.iter();
    let mut variables: BTreeMap<String, String> =
        users.chain(unattended).map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let mut set = |name: &str, value: String| variables.insert(name.to_owned(), value);
    set("CENTURION", "1".to_owned());
    set("CLAUDECODE", "1".to_owned());
    set("CLAUDE_CODE_SESSION_ID", config.session.to_string());
    set("CLAUDE_PROJECT_DIR", config.project_dir.to_string_lossy().into_owned());
    variables
}

#[cfg(test)]
mod tests {
    use centurion_protocol::{SeededWorld, World as _};

    use super::*;
    use crate::guard::GuardProgram;

    #[test]
    fn the_user_wins_where_only_comfort_is_at_stake() {
        let session = SeededWorld::new(1).session_id();
        let config = ShellsConfig::new(GuardProgram::new("/guard"), session, "/project".into());
        let env = Env::from([
            ("PAGER", "less"),
            ("GIT_EDITOR", ""),
            ("ANTHROPIC_API_KEY", "key"),
            ("CLAUDECODE", "0"),
        ]);
        let variables = of_commands(&config, &env);
        let get = |name: &str| variables.get(name).map(String::as_str);
        assert_eq!(get("PAGER"), Some("less"));
        assert_eq!(get("GIT_EDITOR"), Some("true"));
        assert_eq!(get("GIT_TERMINAL_PROMPT"), Some("0"));
        assert_eq!(get("ANTHROPIC_API_KEY"), Some("key"));
        assert_eq!(get("CLAUDECODE"), Some("1"));
        assert_eq!(get("CLAUDE_PROJECT_DIR"), Some("/project"));
        assert_eq!(get("CLAUDE_CODE_SESSION_ID"), Some(session.to_string().as_str()));
    }
}
