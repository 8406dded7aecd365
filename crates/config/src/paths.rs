//! Where things are: the directories of the user's definitions, of the program's state, and of the
//! repository. Pure functions of their inputs, but for the search for a repository.

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
}

/// The file beside the user's definitions that keeps what programs note for themselves: servers, choices
/// about projects.
const STATE_FILE: &str = ".claude.json";

/// Why the user's directories cannot be told.
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
    pub fn new(env: &Env, home: Option<&Path>) -> Result<Self, DirsError> {
        for variable in ["CENTURION_CONFIG_DIR", "CLAUDE_CONFIG_DIR"] {
            let Some(place) = env.get(variable) else { continue };
            let place = absolute(variable, Path::new(place))?.to_owned();
            let state_files = vec![place.join(STATE_FILE)];
            return Ok(Self { config: vec![place.clone()], state: place, state_files });
        }
        let home = home.filter(|home| !home.as_os_str().is_empty()).ok_or(DirsError::NoHome)?;
        let home = absolute("HOME", home)?;
        let state = home.join(".centurion");
        let state_files = vec![home.join(STATE_FILE), state.join(STATE_FILE)];
        Ok(Self { config: vec![home.join(".claude"), state.clone()], state, state_files })
    }

    /// Where the user's definitions are read from; the later directory wins.
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

    /// Where the program keeps what it would otherwise have to find out at every start.
    pub fn skill_index_dir(&self) -> PathBuf {
        self.state.join("cache/skills")
    }

    /// Where the task lists are that agents share.
    pub fn task_lists_dir(&self) -> PathBuf {
        self.state.join("tasks")
    }

    /// Where the sockets of sessions are by which others reach them.
    pub fn peers_dir(&self) -> PathBuf {
        self.state.join("peers")
    }

    /// Where sessions are kept, by project; nothing is written outside of it.
    pub fn projects_dir(&self) -> PathBuf {
        self.state.join("projects")
    }

    pub fn project_dir(&self, cwd: &Path) -> PathBuf {
        self.projects_dir().join(project_slug(cwd))
    }

    pub fn transcript(&self, cwd: &Path, session: SessionId) -> PathBuf {
        self.project_dir(cwd).join(format!("{session}.jsonl"))
    }

    /// What belongs to one session besides its transcript.
    pub fn session_dir(&self, cwd: &Path, session: SessionId) -> PathBuf {
        self.project_dir(cwd).join(session.to_string())
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
        assert_eq!(dirs.projects_dir(), Path::new("/home/ann/.centurion/projects"));
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
            (dirs.config_dirs(), dirs.projects_dir()),
            (&[PathBuf::from("/x")][..], PathBuf::from("/x/projects"))
        );
        assert_eq!(dirs.state_files(), [PathBuf::from("/x/.claude.json")]);
        let env = Env::from([("CLAUDE_CONFIG_DIR", "/c"), ("CENTURION_CONFIG_DIR", "")]);
        assert_eq!(Dirs::new(&env, None).unwrap().projects_dir(), Path::new("/c/projects"));
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
