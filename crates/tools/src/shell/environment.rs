//! The environment of commands: the user's own, and variables that keep programs from waiting for a person.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use super::{Keys, ShellRequest, ShellsConfig};
use crate::guard::quoted;
use crate::sandbox::IsolatedPlaces;

/// Set unless the user has set them: no user is there to use an editor, a pager or a prompt.
const UNATTENDED: [(&str, &str); 4] =
    [("GIT_EDITOR", "true"), ("GIT_PAGER", "cat"), ("GIT_TERMINAL_PROMPT", "0"), ("PAGER", "cat")];

/// With one of these, bash reads a command differently than the permission decision did: another directory for `cd`,
/// other files for a pattern, another grammar.
const READ_OTHERWISE: [&str; 6] =
    ["BASHOPTS", "BASH_COMPAT", "CDPATH", "GLOBIGNORE", "POSIXLY_CORRECT", "SHELLOPTS"];

/// Variables that name a repository, a part of one, or settings for one alone: with them, git would work outside of an
/// isolated agent's worktree.
const NAMES_REPOSITORY: [&str; 20] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_ATTR_SOURCE",
    "GIT_CEILING_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_DIR",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_QUARANTINE_PATH",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
];

/// The same with a number at the end.
const NUMBERED: [&str; 2] = ["GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_"];

pub(super) fn of_commands(
    config: &ShellsConfig,
    request: &ShellRequest<'_>,
) -> BTreeMap<String, String> {
    let env = request.env;
    let unattended = UNATTENDED.into_iter().filter(|(name, _)| env.get(name).is_none());
    let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let mut variables: BTreeMap<String, String> = match request.keys {
        Keys::Withheld => env.of_confined_programs().map(owned).collect(),
        Keys::Given => env.of_programs().map(owned).collect(),
    };
    if let Some(places) = request.isolation {
        stay_in_worktree(&mut variables, places);
    }
    variables.retain(|name, _| !READ_OTHERWISE.contains(&name.as_str()));
    variables.extend(unattended.map(owned));
    let mut set = |name: &str, value: String| variables.insert(name.to_owned(), value);
    set("CENTURION", "1".to_owned());
    set("CLAUDECODE", "1".to_owned());
    set("CLAUDE_CODE_SESSION_ID", config.session.id().to_string());
    set("CLAUDE_PROJECT_DIR", config.project_dir.to_string_lossy().into_owned());
    set_git_configuration(&mut variables);
    variables
}

/// Lets git find the repository of the worktree, and none above it.
fn stay_in_worktree(variables: &mut BTreeMap<String, String>, places: &IsolatedPlaces) {
    variables.retain(|name, _| {
        let is_numbered = NUMBERED.iter().any(|numbered| name.starts_with(numbered));
        !is_numbered && !NAMES_REPOSITORY.contains(&name.as_str())
    });
    if let Some(above) = places.root.parent().and_then(|above| above.to_str()) {
        variables.insert("GIT_CEILING_DIRECTORIES".to_owned(), above.to_owned());
    }
}

/// A script that reads the existing files, on the first line of the command: its lines keep their numbers.
pub(super) fn prelude(files: &[PathBuf]) -> Vec<u8> {
    let mut prelude = Vec::new();
    for file in files.iter().filter(|file| file.is_file()) {
        prelude.extend_from_slice(b". ");
        prelude.extend_from_slice(&quoted(file.as_os_str().as_bytes()));
        prelude.extend_from_slice(b"; ");
    }
    prelude
}

/// Git settings that hold for every command, over those of a repository.
const GIT_CONFIGURATION: [(&str, &str); 1] = [
    // Files of a project can look like a bare repository, with programs in its configuration. Git ignores a bare
    // repository that it finds unless it is named.
    ("safe.bareRepository", "explicit"),
];

/// Puts our settings after those that the user passes to git in the same way.
fn set_git_configuration(variables: &mut BTreeMap<String, String>) {
    const COUNT: &str = "GIT_CONFIG_COUNT";
    let count = variables.get(COUNT).filter(|count| !count.is_empty());
    let Ok(count) = count.map_or(Ok(0), |count| count.parse::<usize>()) else {
        // Git refuses to run with an invalid count: the user should see that.
        return;
    };
    for (place, (key, value)) in (count..).zip(GIT_CONFIGURATION) {
        variables.insert(format!("GIT_CONFIG_KEY_{place}"), key.to_owned());
        variables.insert(format!("GIT_CONFIG_VALUE_{place}"), value.to_owned());
    }
    variables.insert(COUNT.to_owned(), (count + GIT_CONFIGURATION.len()).to_string());
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use centurion_protocol::{Env, SeededWorld, TaskId, World as _};

    use super::*;
    use crate::guard::GuardProgram;

    fn variables(env: &Env, isolation: Option<&IsolatedPlaces>) -> BTreeMap<String, String> {
        let session = SeededWorld::new(1).session_id();
        let config = ShellsConfig::new(GuardProgram::new("/guard"), session, "/project".into());
        let request = ShellRequest {
            id: &TaskId::new("b1"),
            command: "true",
            cwd: Path::new("/project"),
            env,
            output_dir: Path::new("/output"),
            timeout: None,
            sandbox: None,
            keys: Keys::Given,
            isolation,
        };
        of_commands(&config, &request)
    }

    #[test]
    fn the_user_wins_where_only_comfort_is_at_stake() {
        let session = SeededWorld::new(1).session_id();
        let env = Env::from([
            ("PAGER", "less"),
            ("GIT_EDITOR", ""),
            ("ANTHROPIC_API_KEY", "key"),
            ("CLAUDECODE", "0"),
        ]);
        let variables = variables(&env, None);
        let get = |name: &str| variables.get(name).map(String::as_str);
        assert_eq!(get("PAGER"), Some("less"));
        assert_eq!(get("GIT_EDITOR"), Some("true"));
        assert_eq!(get("GIT_TERMINAL_PROMPT"), Some("0"));
        assert_eq!(get("ANTHROPIC_API_KEY"), Some("key"));
        assert_eq!(get("CLAUDECODE"), Some("1"));
        assert_eq!(get("CLAUDE_PROJECT_DIR"), Some("/project"));
        assert_eq!(get("CLAUDE_CODE_SESSION_ID"), Some(session.to_string().as_str()));
    }

    #[test]
    fn nothing_makes_bash_read_a_command_otherwise_than_it_was_judged() {
        let env = Env::from([
            ("CDPATH", "/elsewhere"),
            ("BASHOPTS", "dotglob:nocaseglob"),
            ("GLOBIGNORE", "x"),
            ("PATH", "/bin"),
        ]);
        let variables = variables(&env, None);
        assert!(READ_OTHERWISE.iter().all(|name| !variables.contains_key(*name)));
        assert_eq!(variables["PATH"], "/bin");
    }

    #[test]
    fn git_of_an_isolated_agent_works_in_its_worktree() {
        let env = Env::from([
            ("GIT_DIR", "/elsewhere/.git"),
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_CONFIG_KEY_0", "core.worktree"),
            ("GIT_CONFIG_VALUE_0", "/elsewhere"),
            ("GIT_CONFIG_GLOBAL", "/home/user/git"),
            ("GIT_AUTHOR_NAME", "A"),
        ]);
        let places = IsolatedPlaces {
            root: "/top/worktrees/w".into(),
            checkout: "/top".into(),
            git_dir: None,
            own: Vec::new(),
            kept: Vec::new(),
        };
        let inside = variables(&env, Some(&places));
        let git = inside.iter().filter(|(name, _)| name.starts_with("GIT_"));
        let git: Vec<_> = git.map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let expected = [
            ("GIT_AUTHOR_NAME", "A"),
            ("GIT_CEILING_DIRECTORIES", "/top/worktrees"),
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_CONFIG_GLOBAL", "/home/user/git"),
            ("GIT_CONFIG_KEY_0", "safe.bareRepository"),
            ("GIT_CONFIG_VALUE_0", "explicit"),
            ("GIT_EDITOR", "true"),
            ("GIT_PAGER", "cat"),
            ("GIT_TERMINAL_PROMPT", "0"),
        ];
        assert_eq!(git, expected);
        assert_eq!(variables(&env, None)["GIT_DIR"], "/elsewhere/.git");
    }

    #[test]
    fn git_gets_our_settings_after_the_users() {
        let after = |count: &str| {
            let mut variables = BTreeMap::from([("GIT_CONFIG_COUNT".to_owned(), count.to_owned())]);
            set_git_configuration(&mut variables);
            variables
        };
        for (count, place, expected) in [("", 0, "1"), ("0", 0, "1"), ("2", 2, "3")] {
            let variables = after(count);
            assert_eq!(variables["GIT_CONFIG_COUNT"], expected, "{count:?}");
            assert_eq!(variables[&format!("GIT_CONFIG_KEY_{place}")], "safe.bareRepository");
            assert_eq!(variables[&format!("GIT_CONFIG_VALUE_{place}")], "explicit");
        }
        assert_eq!(after("many")["GIT_CONFIG_COUNT"], "many");
        assert_eq!(after("many").len(), 1);
    }
}
