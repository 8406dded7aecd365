//! The files of one command: its script, its output, its last directory.
//!
//! Only their owner can read them. Never writes to an existing file, and follows no link.

use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use centurion_files::private;
use centurion_protocol::TaskId;
use centurion_sandbox::{CommandPlace, Plan};
use rustix::fs::OFlags;

use super::ShellError;
use crate::disk;
use crate::guard::Confinement;

/// The bytes that are read of a path: no path is longer on any system.
const LONGEST_PATH: u64 = 64 * 1024;

/// The files of a command, removed when this is dropped, except for an output to keep.
pub(super) struct Files {
    output: PathBuf,
    script: PathBuf,
    last_directory: PathBuf,
    confinement: PathBuf,
    keep_output: AtomicBool,
}

impl Files {
    pub(super) fn create(
        output_dir: &Path,
        id: &TaskId,
        command: &[u8],
    ) -> Result<Self, ShellError> {
        let tasks = output_dir.join("tasks");
        let in_tasks = |source| ShellError::Files { path: tasks.clone(), source };
        for directory in [output_dir, &tasks] {
            private_directory(directory)
                .map_err(|source| ShellError::Files { path: directory.to_owned(), source })?;
        }
        // The guard and the command run in other directories: relative paths would mislead them.
        let tasks = tasks.canonicalize().map_err(in_tasks)?;
        let output = tasks.join(format!("{id}.output"));
        // Before any value exists that would remove it again: an existing file belongs to another command.
        private::create(&output).map_err(in_tasks)?;
        let files = Self {
            output,
            script: tasks.join(format!("{id}.command")),
            last_directory: tasks.join(format!("{id}.directory")),
            confinement: tasks.join(format!("{id}.sandbox")),
            keep_output: AtomicBool::new(false),
        };
        // The shell would make it readable to others.
        private::create(&files.last_directory).map_err(in_tasks)?;
        private::create(&files.script)
            .and_then(|mut script| script.write_all(command))
            .map_err(in_tasks)?;
        Ok(files)
    }

    pub(super) fn output(&self) -> &Path {
        &self.output
    }

    pub(super) fn script(&self) -> &Path {
        &self.script
    }

    pub(super) fn last_directory(&self) -> &Path {
        &self.last_directory
    }

    /// Writes the confinement of the command to a file; returns its path.
    pub(super) fn confine(
        &self,
        plan: &Plan,
        id: &TaskId,
        cwd: &Path,
    ) -> Result<&Path, ShellError> {
        let place = CommandPlace {
            id: id.to_string(),
            cwd: cwd.to_owned(),
            read: vec![self.script.clone(), self.confinement.clone()],
            write: vec![self.output.clone(), self.last_directory.clone()],
        };
        let confinement = Confinement { plan: plan.clone(), place };
        confinement
            .to_bytes()
            .and_then(|bytes| private::create(&self.confinement)?.write_all(&bytes))
            .map_err(|source| ShellError::Files { path: self.confinement.clone(), source })?;
        Ok(&self.confinement)
    }

    /// Keeps the output file.
    pub(super) fn keep_output(&self) -> PathBuf {
        self.keep_output.store(true, Ordering::Relaxed);
        self.output.clone()
    }

    /// The directory in which the command's shell ended, if it still exists.
    pub(super) fn cwd_after(&self) -> Option<PathBuf> {
        // The command could have put anything there.
        let (file, metadata) = disk::open(&self.last_directory, &self.last_directory).ok()?;
        let mut bytes = disk::read_within(file, LONGEST_PATH, metadata.len()).ok()??;
        bytes.pop_if(|byte| *byte == b'\n');
        let directory = PathBuf::from(OsString::from_vec(bytes));
        (directory.is_absolute() && directory.is_dir()).then_some(directory)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let output = (!self.keep_output.load(Ordering::Relaxed)).then_some(&self.output);
        let own = [&self.script, &self.last_directory, &self.confinement];
        for path in own.into_iter().chain(output) {
            if let Err(error) = fs::remove_file(path)
                && error.kind() != io::ErrorKind::NotFound
            {
                tracing::debug!(path = %path.display(), %error, "cannot remove a command's file");
            }
        }
    }
}

/// Makes a directory that only its owner enters. Refuses a link, wherever it leads.
fn private_directory(path: &Path) -> io::Result<()> {
    private::create_directory(path)?;
    let flags = disk::open_flags(OFlags::NOFOLLOW | OFlags::DIRECTORY);
    let directory = File::options().read(true).custom_flags(flags).open(path)?;
    if directory.metadata()?.permissions().mode() & 0o077 != 0 {
        directory.set_permissions(Permissions::from_mode(0o700))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
    }

    fn create(output_dir: &Path) -> Result<Files, ShellError> {
        Files::create(output_dir, &TaskId::new("b1"), b"true")
    }

    #[test]
    fn everything_is_private_to_its_owner() {
        let scratch = tempfile::tempdir().unwrap();
        let output_dir = scratch.path().join("state/session/output");
        let files = create(&output_dir).unwrap();
        for directory in ["state", "state/session", "state/session/output"] {
            assert_eq!(mode(&scratch.path().join(directory)), 0o700, "{directory}");
        }
        assert_eq!(mode(&output_dir.join("tasks")), 0o700);
        for path in [files.output(), files.script(), files.last_directory()] {
            assert_eq!(mode(path), 0o600, "{}", path.display());
        }
        assert_eq!(files.cwd_after(), None);
    }

    #[test]
    fn directories_that_were_open_to_others_are_closed() {
        let scratch = tempfile::tempdir().unwrap();
        let tasks = scratch.path().join("output/tasks");
        fs::create_dir_all(&tasks).unwrap();
        for directory in [tasks.as_path(), &scratch.path().join("output")] {
            fs::set_permissions(directory, Permissions::from_mode(0o755)).unwrap();
        }
        create(&scratch.path().join("output")).unwrap();
        assert_eq!(mode(&tasks), 0o700);
        assert_eq!(mode(&scratch.path().join("output")), 0o700);
    }

    #[test]
    fn a_link_in_the_way_is_not_followed() {
        for place in ["output", "output/tasks"] {
            let scratch = tempfile::tempdir().unwrap();
            let elsewhere = scratch.path().join("elsewhere");
            fs::create_dir(&elsewhere).unwrap();
            let link = scratch.path().join(place);
            fs::create_dir_all(link.parent().unwrap()).unwrap();
            symlink(&elsewhere, &link).unwrap();
            assert!(create(&scratch.path().join("output")).is_err(), "{place}");
            assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0, "{place}");
        }
        for name in ["b1.output", "b1.command", "b1.directory"] {
            let scratch = tempfile::tempdir().unwrap();
            let precious = scratch.path().join("precious");
            fs::write(&precious, "kept").unwrap();
            let tasks = scratch.path().join("tasks");
            fs::create_dir(&tasks).unwrap();
            symlink(&precious, tasks.join(name)).unwrap();
            let error = create(scratch.path()).err().expect(name).to_string();
            assert!(error.contains("cannot keep the files of a command"), "{error}");
            assert_eq!(fs::read_to_string(&precious).unwrap(), "kept", "{name}");
        }
    }

    #[test]
    fn an_output_that_exists_is_left_alone() {
        let scratch = tempfile::tempdir().unwrap();
        let kept = create(scratch.path()).unwrap().keep_output();
        fs::write(&kept, "kept").unwrap();
        assert!(create(scratch.path()).is_err());
        assert_eq!(fs::read_to_string(&kept).unwrap(), "kept");
    }

    #[test]
    fn only_a_plain_path_counts_as_where_a_command_stood() {
        let scratch = tempfile::tempdir().unwrap();
        let files = create(&scratch.path().join("output")).unwrap();
        let place = scratch.path().display();
        fs::write(files.last_directory(), format!("{place}\n")).unwrap();
        assert_eq!(files.cwd_after().as_deref(), Some(scratch.path()));

        let noted = scratch.path().join("noted");
        fs::rename(files.last_directory(), &noted).unwrap();
        symlink(&noted, files.last_directory()).unwrap();
        assert_eq!(files.cwd_after(), None, "a link is not followed");
        fs::remove_file(files.last_directory()).unwrap();
        let owner = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, files.last_directory(), owner).unwrap();
        assert_eq!(files.cwd_after(), None, "a pipe is not waited for");
    }
}
