//! Retention of sessions: those that have not changed for longer are removed, a little at a time.
//!
//! Only what this program itself puts below its state directory is ever removed, by its name: the
//! transcript of a session, and what stands beside it. A session that is open anywhere stays, links stay
//! and are not followed, and whatever cannot be removed stays, too: nothing here can fail a run.

use std::ffi::OsStr;
use std::fs::{self, DirEntry, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use centurion_config::paths::Dirs;
use centurion_config::settings::Settings;
use centurion_engine::FILE_HISTORY;
use centurion_protocol::SessionId;
use centurion_team::{TaskList, TeamFiles};

const DAY: Duration = Duration::from_hours(24);

/// The directories of a session beside its transcript.
const PARTS: [&str; 3] = ["subagents", "tool-results", FILE_HISTORY];

/// A removal that is due.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Sweep {
    /// The directory of sessions, by project.
    projects: PathBuf,
    /// The directory of the task lists that agents share.
    task_lists: PathBuf,
    /// The directory of the files by which other programs see teams.
    teams: PathBuf,
    /// Sessions last changed before this time are removed.
    before: SystemTime,
}

impl Sweep {
    /// The sweep that the settings ask for; `None` if they are not clear.
    pub(crate) fn new(settings: &Settings, dirs: &Dirs, now: SystemTime) -> Option<Self> {
        let days = settings.cleanup_period_days()?;
        let before = now.checked_sub(DAY.checked_mul(days)?)?;
        let (projects, task_lists) = (dirs.own_projects_dir(), dirs.task_lists_dir());
        Some(Self { projects, task_lists, teams: dirs.teams_dir(), before })
    }

    /// Removes what is too old. May be cut off at any moment: what is left is found again.
    pub(crate) fn run(&self) {
        self.sweep_task_lists();
        if is_directory(&self.teams) {
            TeamFiles::remove_unchanged(&self.teams, &self.task_lists, self.before);
        }
        // The directory itself may be a link that leads to another program's files.
        if !is_directory(&self.projects) {
            return;
        }
        for project in entries(&self.projects).filter(is_directory_entry) {
            for entry in entries(&project.path()) {
                if let Some(session) = Session::of(&entry)
                    && let Err(error) = self.sweep(&session)
                {
                    let transcript = session.transcript.display();
                    tracing::debug!(%transcript, %error, "an old session could not be removed");
                }
            }
        }
    }

    fn sweep_task_lists(&self) {
        if !is_directory(&self.task_lists) {
            return;
        }
        for list in TaskList::names(&self.task_lists) {
            if let Err(error) = TaskList::remove_unchanged(&self.task_lists, &list, self.before) {
                tracing::debug!(%list, %error, "an old task list could not be removed");
            }
        }
    }

    fn sweep(&self, session: &Session) -> io::Result<()> {
        // One look tells of a recent change, which is all that most sessions cost.
        if !session.is_older(self.before)? {
            return Ok(());
        }
        // Held until all of it is gone, so that no process resumes half of a session.
        let lock = session.lock()?;
        if matches!(lock, Lock::Taken) {
            return Ok(());
        }
        // The transcript last: as long as it is there, an interrupted removal is resumed.
        for part in PARTS.map(|part| session.directory.join(part)) {
            if is_directory(&part) {
                fs::remove_dir_all(part)?;
            }
        }
        if is_directory(&session.directory) {
            // Stays where another program has put something else.
            let _ = fs::remove_dir(&session.directory);
        }
        if let Lock::Held(_) = lock {
            fs::remove_file(&session.transcript)?;
        }
        Ok(())
    }
}

/// The right to remove a session.
#[derive(Debug)]
enum Lock {
    /// No process can resume the session as long as this is open.
    Held(#[expect(dead_code, reason = "is held by being open")] File),
    /// Another process holds it.
    Taken,
    /// There is no transcript, and so nothing to resume.
    Missing,
}

/// The places of one session.
#[derive(Debug)]
struct Session {
    transcript: PathBuf,
    directory: PathBuf,
}

impl Session {
    /// The session that an entry of a project's directory belongs to. One that has a transcript is found
    /// by that alone.
    fn of(entry: &DirEntry) -> Option<Self> {
        let path = entry.path();
        let kind = entry.file_type().ok()?;
        if kind.is_file() && path.extension() == Some(OsStr::new("jsonl")) {
            let directory = path.with_extension("");
            return is_id(&directory).then_some(Self { transcript: path, directory });
        }
        let transcript = path.with_extension("jsonl");
        let is_left_over = kind.is_dir()
            && is_id(&path)
            && transcript.symlink_metadata().is_err_and(|error| is_absent(&error));
        is_left_over.then_some(Self { transcript, directory: path })
    }

    /// Whether nothing of it has been changed since then.
    fn is_older(&self, before: SystemTime) -> io::Result<bool> {
        match self.transcript.symlink_metadata() {
            Ok(transcript) if transcript.modified()? >= before => return Ok(false),
            Ok(_) => {}
            Err(error) if is_absent(&error) => {}
            Err(error) => return Err(error),
        }
        if !is_directory(&self.directory) {
            return Ok(true);
        }
        all_older(&self.directory, before)
    }

    /// Takes the lock that the writer of the session holds.
    fn lock(&self) -> io::Result<Lock> {
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
            .open(&self.transcript);
        match opened {
            Ok(file) if file.try_lock().is_ok() => Ok(Lock::Held(file)),
            Ok(_) => Ok(Lock::Taken),
            Err(error) if is_absent(&error) => Ok(Lock::Missing),
            Err(error) => Err(error),
        }
    }
}

/// Whether the name is one that a session could have.
fn is_id(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str);
    // Other spellings of the same number are not names that this program gives.
    name.is_some_and(|name| name.parse().is_ok_and(|id: SessionId| id.to_string() == name))
}

/// Whether a directory and everything in it was last changed before.
fn all_older(directory: &Path, before: SystemTime) -> io::Result<bool> {
    if directory.symlink_metadata()?.modified()? >= before {
        return Ok(false);
    }
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let is_older = if entry.file_type()?.is_dir() {
            all_older(&entry.path(), before)?
        } else {
            entry.metadata()?.modified()? < before
        };
        if !is_older {
            return Ok(false);
        }
    }
    Ok(true)
}

fn entries(directory: &Path) -> impl Iterator<Item = DirEntry> {
    fs::read_dir(directory).into_iter().flatten().flatten()
}

fn is_directory(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir())
}

fn is_directory_entry(entry: &DirEntry) -> bool {
    entry.file_type().is_ok_and(|kind| kind.is_dir())
}

fn is_absent(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

#[cfg(test)]
mod tests {
    use std::fs::FileTimes;
    use std::os::unix::fs::symlink;

    use centurion_config::settings::{RepositoryTrust, SettingsSources};
    use centurion_protocol::{Env, SeededWorld, World as _};

    use super::*;

    /// A state directory with sessions of different ages.
    struct State {
        root: tempfile::TempDir,
        world: SeededWorld,
    }

    impl State {
        fn new() -> Self {
            let state = Self { root: tempfile::tempdir().unwrap(), world: SeededWorld::new(7) };
            fs::create_dir_all(state.project()).unwrap();
            state
        }

        fn projects(&self) -> PathBuf {
            self.root.path().join("projects")
        }

        fn project(&self) -> PathBuf {
            self.projects().join("-srv-app")
        }

        /// Removes what is older than thirty days.
        fn sweep(&self) {
            let before = SystemTime::now() - 30 * DAY;
            let task_lists = self.projects().with_file_name("tasks");
            let teams = self.projects().with_file_name("teams");
            Sweep { projects: self.projects(), task_lists, teams, before }.run();
        }

        /// A session with all its parts, everything as old as that.
        fn session(&self, days: u32) -> Session {
            let directory = self.project().join(self.world.session_id().to_string());
            for file in [
                "subagents/agent-a1.jsonl",
                "tool-results/x.txt",
                "tool-results/tasks/b1",
                "file-history/0123456789abcdef@v1",
                "file-history/set-aside/0123456789abcdef@v1",
            ] {
                write(&directory.join(file), days);
            }
            for part in [
                "subagents",
                "tool-results/tasks",
                "tool-results",
                "file-history/set-aside",
                "file-history",
                "",
            ] {
                age(&directory.join(part), days);
            }
            let transcript = directory.with_extension("jsonl");
            write(&transcript, days);
            Session { transcript, directory }
        }
    }

    impl Session {
        fn is_whole(&self) -> bool {
            self.transcript.is_file()
                && self.directory.join("subagents/agent-a1.jsonl").is_file()
                && self.directory.join("tool-results/tasks/b1").is_file()
        }

        fn is_gone(&self) -> bool {
            !self.transcript.exists() && !self.directory.exists()
        }
    }

    fn write(path: &Path, days: u32) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "{}\n").unwrap();
        age(path, days);
    }

    fn age(path: &Path, days: u32) {
        let then = SystemTime::now() - days * DAY;
        File::open(path).unwrap().set_times(FileTimes::new().set_modified(then)).unwrap();
    }

    #[test]
    fn old_sessions_go_with_all_their_parts_and_young_ones_stay() {
        let state = State::new();
        let (old, young) = (state.session(31), state.session(29));
        state.sweep();
        assert!(old.is_gone());
        assert!(young.is_whole());
        assert!(state.project().is_dir(), "another session may be about to start here");
    }

    #[test]
    fn a_session_that_is_open_stays() {
        let state = State::new();
        let open = state.session(31);
        let held = File::open(&open.transcript).unwrap();
        held.try_lock().unwrap();
        state.sweep();
        assert!(open.is_whole());
        drop(held);
        state.sweep();
        assert!(open.is_gone());
    }

    #[test]
    fn a_session_is_as_young_as_its_youngest_part() {
        let state = State::new();
        let session = state.session(31);
        age(&session.directory.join("tool-results/tasks/b1"), 1);
        state.sweep();
        assert!(session.is_whole());
    }

    #[test]
    fn what_an_interrupted_removal_left_is_removed_by_the_next() {
        let state = State::new();
        let (half, left_over) = (state.session(31), state.session(31));
        fs::remove_dir_all(half.directory.join("subagents")).unwrap();
        age(&half.directory, 31);
        fs::remove_file(&left_over.transcript).unwrap();
        state.sweep();
        assert!(half.is_gone() && left_over.is_gone());
    }

    #[test]
    fn what_is_not_ours_by_name_stays() {
        let state = State::new();
        let session = state.session(31);
        let beside = session.directory.join("notes.txt");
        write(&beside, 31);
        age(&session.directory, 31);
        let id = state.world.session_id().to_string();
        let foreign = [
            state.projects().join("settings.json"),
            state.project().join("notes.md"),
            state.project().join("history.jsonl"),
            state.project().join("memory/MEMORY.md"),
            state.project().join(format!("{}.jsonl", id.to_uppercase())),
            state.project().join(format!("{}.jsonl", id.replace('-', ""))),
            state.project().join(format!("{id}.jsonl.bak")),
            state.project().join(format!("deep/{id}.jsonl")),
            state.root.path().join(format!("{id}.jsonl")),
        ];
        for path in &foreign {
            write(path, 400);
        }
        age(&state.project().join("memory"), 400);
        state.sweep();
        for path in &foreign {
            assert!(path.exists(), "{}", path.display());
        }
        assert!(!session.transcript.exists());
        assert!(beside.exists() && !session.directory.join("tool-results").exists());
    }

    #[test]
    fn links_are_not_followed() {
        let state = State::new();
        let elsewhere = state.root.path().join("elsewhere");
        let id = || state.world.session_id().to_string();
        // A whole project, a transcript, a session's directory, a part of one, a file in a part.
        let project = state.root.path().join("other-project");
        let kept = [
            project.join(format!("{}.jsonl", id())),
            elsewhere.join("transcript"),
            elsewhere.join("directory/tool-results/x.txt"),
            elsewhere.join("part/x.txt"),
            elsewhere.join("file"),
        ];
        for path in &kept {
            write(path, 400);
        }
        symlink(&project, state.projects().join("-linked")).unwrap();
        symlink(&kept[1], state.project().join(format!("{}.jsonl", id()))).unwrap();
        symlink(elsewhere.join("directory"), state.project().join(id())).unwrap();
        let linked_part = state.session(31);
        fs::remove_dir_all(linked_part.directory.join("tool-results")).unwrap();
        symlink(elsewhere.join("part"), linked_part.directory.join("tool-results")).unwrap();
        age(&linked_part.directory, 31);
        let linked_file = state.session(31);
        symlink(&kept[4], linked_file.directory.join("tool-results/link")).unwrap();
        age(&linked_file.directory.join("tool-results"), 31);
        // The links themselves are as new as this test.
        let later = SystemTime::now() + DAY;
        let task_lists = state.projects().with_file_name("tasks");
        let teams = state.projects().with_file_name("teams");
        Sweep { projects: state.projects(), task_lists, teams, before: later }.run();
        for path in &kept {
            assert!(path.is_file(), "{}", path.display());
        }
        assert!(linked_file.is_gone(), "a link within a part goes, what it leads to stays");
    }

    #[test]
    fn sessions_in_a_linked_directory_stay() {
        let state = State::new();
        let session = state.session(400);
        let moved = state.root.path().join("moved");
        fs::rename(state.projects(), &moved).unwrap();
        symlink(&moved, state.projects()).unwrap();
        state.sweep();
        assert!(session.is_whole());
    }

    #[test]
    fn the_settings_say_how_old_is_too_old_and_nothing_goes_while_they_are_unclear() {
        let state = State::new();
        let config = state.root.path().join("config");
        let env = Env::from([("CENTURION_CONFIG_DIR", config.to_str().unwrap())]);
        let dirs = Dirs::new(&env, None).unwrap();
        let now = SystemTime::now();
        let sweep = |text: &str| {
            fs::create_dir_all(&config).unwrap();
            fs::write(config.join("settings.json"), text).unwrap();
            let sources =
                SettingsSources { config_dirs: vec![config.clone()], ..SettingsSources::default() };
            Sweep::new(&Settings::load(sources, RepositoryTrust::Untrusted), &dirs, now)
        };
        let expected = |days: u32| {
            let (projects, task_lists) = (config.join("projects"), config.join("tasks"));
            let teams = config.join("teams");
            Some(Sweep { projects, task_lists, teams, before: now - days * DAY })
        };
        assert_eq!(sweep("{}"), expected(30));
        assert_eq!(sweep("{\"cleanupPeriodDays\": 3}"), expected(3));
        assert_eq!(sweep("{\"cleanupPeriodDays\": 0}"), None);
        assert_eq!(sweep("{\"cleanupPeriodDays\": 3"), None);
    }
}
