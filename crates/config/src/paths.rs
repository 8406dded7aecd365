//! Places: the directories of the user's definitions, of the program's state, and of the repository. Pure functions
//! of their inputs, but for the search for a repository.

use std::path::{Path, PathBuf};

use centurion_protocol::{Env, SessionId};
use thiserror::Error;

use crate::repository::GitDirs;

/// The longest name of a project's directory before it is cut.
const LONGEST_SLUG: usize = 200;

/// The user's directories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dirs {
    config: Vec<PathBuf>,
    state: PathBuf,
    state_files: Vec<PathBuf>,
    /// The places of sessions, by project: new ones go to the first.
    sessions: Vec<PathBuf>,
}

/// The file beside the user's definitions that keeps what programs note for themselves: servers, choices
/// about projects.
const STATE_FILE: &str = ".claude.json";

/// The variable that moves the directory of definitions and sessions that SDKs know.
const CLAUDE_DIR: &str = "CLAUDE_CONFIG_DIR";

/// The variable by which SDKs and adapters say that they have started the program.
const ENTRYPOINT: &str = "CLAUDE_CODE_ENTRYPOINT";

/// The directory of sessions, by project.
const PROJECTS: &str = "projects";

/// The reason why the user's directories are unknown.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum DirsError {
    #[error("there is no home directory to keep state in; help: set CENTURION_CONFIG_DIR")]
    NoHome,
    #[error(
        "{variable} is `{path}`, which is no absolute path: state would be kept in another place for \
         each working directory; help: write the path from the root of the file system"
    )]
    Relative { variable: &'static str, path: String },
}

impl Dirs {
    /// Definitions are read from `~/.claude` and `~/.centurion`, state is kept in `~/.centurion`.
    /// `CENTURION_CONFIG_DIR`, or else `CLAUDE_CONFIG_DIR`, moves all of it to one place. A relative
    /// path is refused: it would mean another place in each working directory.
    ///
    /// Sessions that an SDK or adapter starts go below `CLAUDE_CONFIG_DIR`, or else `~/.claude`, where its helpers look
    /// for them.
    pub fn new(env: &Env, home: Option<&Path>) -> Result<Self, DirsError> {
        let home = home.filter(|home| !home.as_os_str().is_empty());
        let helpers = env.get(CLAUDE_DIR).map(PathBuf::from);
        let helpers = helpers.or_else(|| home.map(|home| home.join(".claude")));
        let dirs = Self::without_helpers(env, home)?;
        let is_sdk = env.get(ENTRYPOINT).is_some_and(|name| name.starts_with("sdk-"));
        let Some(helpers) = helpers.filter(|place| is_sdk || place.is_absolute()) else {
            return Ok(dirs);
        };
        let (ours, theirs) =
            (dirs.state.join(PROJECTS), absolute(CLAUDE_DIR, &helpers)?.join(PROJECTS));
        let mut sessions = if is_sdk { vec![theirs, ours] } else { vec![ours, theirs] };
        sessions.dedup();
        Ok(Self { sessions, ..dirs })
    }

    fn without_helpers(env: &Env, home: Option<&Path>) -> Result<Self, DirsError> {
        for variable in ["CENTURION_CONFIG_DIR", CLAUDE_DIR] {
            let Some(place) = env.get(variable) else { continue };
            let state = absolute(variable, Path::new(place))?.to_owned();
            let state_files = vec![state.join(STATE_FILE)];
            let sessions = vec![state.join(PROJECTS)];
            return Ok(Self { config: vec![state.clone()], state, state_files, sessions });
        }
        let home = absolute("HOME", home.ok_or(DirsError::NoHome)?)?;
        let state = home.join(".centurion");
        let state_files = vec![home.join(STATE_FILE), state.join(STATE_FILE)];
        let sessions = vec![state.join(PROJECTS)];
        let config = vec![home.join(".claude"), state.clone()];
        Ok(Self { config, state, state_files, sessions })
    }

    /// The directories from which the user's definitions are read; the later directory wins.
    pub fn config_dirs(&self) -> &[PathBuf] {
        &self.config
    }

    /// The files that hold the user's servers and choices about projects. The later one wins and is
    /// ours; another before it is read and never written.
    pub fn state_files(&self) -> &[PathBuf] {
        &self.state_files
    }

    /// The file with what MCP servers gave when the user logged in to them.
    pub fn mcp_credentials(&self) -> PathBuf {
        self.state.join("mcp-credentials.json")
    }

    /// The file that says which folders are trusted.
    pub fn trust_file(&self) -> PathBuf {
        self.state.join("trust.json")
    }

    /// The directory of what the program would otherwise have to find out at every start.
    pub fn skill_index_dir(&self) -> PathBuf {
        self.state.join("cache/skills")
    }

    /// The directory of the task lists that agents share.
    pub fn task_lists_dir(&self) -> PathBuf {
        self.state.join("tasks")
    }

    /// The directory of the files by which other programs see teams.
    pub fn teams_dir(&self) -> PathBuf {
        self.state.join("teams")
    }

    /// The directory of the sockets by which other sessions reach a session.
    pub fn peers_dir(&self) -> PathBuf {
        self.state.join("peers")
    }

    /// The directory of the sockets by which members in other processes reach their session.
    pub fn members_dir(&self) -> PathBuf {
        self.state.join("members")
    }

    /// The program's own place of sessions, by project. It alone is tidied up.
    pub fn own_projects_dir(&self) -> PathBuf {
        self.state.join(PROJECTS)
    }

    /// All places of sessions, by project; new sessions go to the first.
    pub fn projects_dirs(&self) -> &[PathBuf] {
        &self.sessions
    }

    /// The places of the sessions of a directory; new sessions go to the first.
    pub fn project_dirs(&self, cwd: &Path) -> Vec<PathBuf> {
        let slug = project_slug(cwd);
        self.sessions.iter().map(|place| place.join(&slug)).collect()
    }

    /// The file for the transcript of a new session.
    pub fn transcript(&self, cwd: &Path, session: SessionId) -> PathBuf {
        let place = self.sessions.first().unwrap_or(&self.state);
        place.join(project_slug(cwd)).join(format!("{session}.jsonl"))
    }

    /// The directory of a new session for all but its transcript.
    pub fn session_dir(&self, cwd: &Path, session: SessionId) -> PathBuf {
        self.transcript(cwd, session).with_extension("")
    }
}

fn absolute<'p>(variable: &'static str, path: &'p Path) -> Result<&'p Path, DirsError> {
    if path.is_absolute() {
        return Ok(path);
    }
    Err(DirsError::Relative { variable, path: path.display().to_string() })
}

/// A directory's path as one name: what is no ASCII letter or digit becomes `-`. A name that would be
/// too long for a file system is cut and told apart by a hash.
pub fn project_slug(cwd: &Path) -> String {
    let path = cwd.to_string_lossy();
    let slug: String =
        path.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    match slug.get(..LONGEST_SLUG) {
        Some(start) if slug.len() > LONGEST_SLUG => {
            let hash = blake3::hash(path.as_bytes()).to_hex();
            format!("{start}-{}", hash.chars().take(16).collect::<String>())
        }
        _ => slug,
    }
}

/// The nearest directory from `start` upward that has a `.git`: a directory in a checkout, a file in
/// a worktree or submodule.
pub fn repo_root(start: &Path) -> Option<PathBuf> {
    start
        .ancestors()
        .find(|directory| directory.join(".git").symlink_metadata().is_ok())
        .map(Path::to_owned)
}

/// The checkout around a directory; for a worktree, the main checkout that it belongs to.
pub fn main_checkout(start: &Path) -> Option<PathBuf> {
    let root = repo_root(start)?;
    let dirs = GitDirs::of(&root);
    Some(dirs.as_ref().and_then(GitDirs::main_checkout).map_or(root, Path::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOME: &str = "/home/ann";

    #[test]
    fn definitions_come_from_both_places_and_state_goes_to_ours() {
        // D-51
        let dirs = Dirs::new(&Env::default(), Some(Path::new(HOME))).unwrap();
        assert_eq!(
            dirs.config_dirs(),
            [PathBuf::from("/home/ann/.claude"), PathBuf::from("/home/ann/.centurion")]
        );
        assert_eq!(dirs.own_projects_dir(), Path::new("/home/ann/.centurion/projects"));
        assert_eq!(
            dirs.state_files(),
            [
                PathBuf::from("/home/ann/.claude.json"),
                PathBuf::from("/home/ann/.centurion/.claude.json")
            ]
        );
    }

    #[test]
    fn one_variable_moves_everything() {
        let env = Env::from([("CLAUDE_CONFIG_DIR", "/c"), ("CENTURION_CONFIG_DIR", "/x")]);
        let dirs = Dirs::new(&env, Some(Path::new(HOME))).unwrap();
        assert_eq!(
            (dirs.config_dirs(), dirs.own_projects_dir()),
            (&[PathBuf::from("/x")][..], PathBuf::from("/x/projects"))
        );
        assert_eq!(dirs.state_files(), [PathBuf::from("/x/.claude.json")]);
        let env = Env::from([("CLAUDE_CONFIG_DIR", "/c"), ("CENTURION_CONFIG_DIR", "")]);
        assert_eq!(Dirs::new(&env, None).unwrap().projects_dirs(), [PathBuf::from("/c/projects")]);
        assert_eq!(Dirs::new(&Env::default(), None), Err(DirsError::NoHome));
        assert_eq!(Dirs::new(&Env::default(), Some(Path::new(""))), Err(DirsError::NoHome));
    }

    #[test]
    fn a_relative_place_is_refused_by_name() {
        let refused = |env: &Env, home: &str| {
            let error = Dirs::new(env, Some(Path::new(home))).unwrap_err().to_string();
            error.split_once(", which is no absolute path").unwrap().0.to_owned()
        };
        assert_eq!(refused(&Env::default(), "ann"), "HOME is `ann`");
        let env = Env::from([("CENTURION_CONFIG_DIR", "./x"), ("CLAUDE_CONFIG_DIR", "/c")]);
        assert_eq!(refused(&env, HOME), "CENTURION_CONFIG_DIR is `./x`");
        let env = Env::from([("CLAUDE_CONFIG_DIR", "~/c")]);
        assert_eq!(refused(&env, HOME), "CLAUDE_CONFIG_DIR is `~/c`");
        // A home that is not needed is not checked.
        let env = Env::from([("CLAUDE_CONFIG_DIR", "/c")]);
        assert!(Dirs::new(&env, Some(Path::new("ann"))).is_ok());
    }

    #[test]
    fn a_session_has_its_places() {
        let dirs = Dirs::new(&Env::default(), Some(Path::new(HOME))).unwrap();
        let session: SessionId = "6f1c5d52-7d0c-4d1b-9d5a-2a3a4f1d2f10".parse().unwrap();
        assert_eq!(dirs.mcp_credentials(), Path::new("/home/ann/.centurion/mcp-credentials.json"));
        let project = "/home/ann/.centurion/projects/-srv-my-app";
        let cwd = Path::new("/srv/my_app");
        assert_eq!(
            dirs.transcript(cwd, session),
            PathBuf::from(format!("{project}/{session}.jsonl"))
        );
        assert_eq!(dirs.session_dir(cwd, session), PathBuf::from(format!("{project}/{session}")));
    }

    #[test]
    fn sessions_of_sdks_go_where_their_helpers_look_and_all_places_are_read() {
        // D-72
        let places = |variables: &[(&str, &str)]| {
            let pairs =
                variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            let dirs = Dirs::new(&Env::new(pairs), Some(Path::new(HOME))).unwrap();
            let places = dirs.projects_dirs().iter().map(|place| place.display().to_string());
            places.collect::<Vec<_>>()
        };
        let (ours, theirs) = ("/home/ann/.centurion/projects", "/home/ann/.claude/projects");
        let sdk = (ENTRYPOINT, "sdk-py");
        assert_eq!(places(&[]), [ours, theirs]);
        assert_eq!(places(&[(ENTRYPOINT, "cli")]), [ours, theirs]);
        assert_eq!(places(&[sdk]), [theirs, ours]);
        assert_eq!(places(&[sdk, (CLAUDE_DIR, "/c")]), ["/c/projects"]);
        assert_eq!(
            places(&[sdk, (CLAUDE_DIR, "/c"), ("CENTURION_CONFIG_DIR", "/x")]),
            ["/c/projects", "/x/projects"]
        );
        assert_eq!(places(&[("CENTURION_CONFIG_DIR", "/x")]), ["/x/projects", theirs]);
        let env = Env::from([sdk, (CLAUDE_DIR, "c"), ("CENTURION_CONFIG_DIR", "/x")]);
        assert!(matches!(Dirs::new(&env, None), Err(DirsError::Relative { .. })));
    }

    #[test]
    fn a_slug_is_one_safe_name() {
        assert_eq!(project_slug(Path::new("/home/ann/a b.c_d")), "-home-ann-a-b-c-d");
        assert_eq!(project_slug(Path::new("/ä/日")), "----");
        let long = "/".to_owned() + &"a".repeat(300);
        let other = long.clone() + "b";
        let (one, two) = (project_slug(Path::new(&long)), project_slug(Path::new(&other)));
        assert_eq!(one.len(), LONGEST_SLUG + 17);
        assert_ne!(one, two);
        assert_eq!(project_slug(Path::new(&"a".repeat(200))).len(), 200);
    }

    #[test]
    fn a_repository_is_found_from_below_whatever_its_git_is() {
        let root = tempfile::tempdir().unwrap();
        let deep = root.path().join("a/b");
        std::fs::create_dir_all(&deep).unwrap();
        std::fs::create_dir(root.path().join(".git")).unwrap();
        assert_eq!(repo_root(&deep).as_deref(), Some(root.path()));
        std::fs::write(root.path().join("a/.git"), "gitdir: elsewhere").unwrap();
        assert_eq!(repo_root(&deep), Some(root.path().join("a")));
    }
}
