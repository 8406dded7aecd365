//! The files of one command: what to run, what it wrote, where it stood at the end.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use centurion_protocol::TaskId;

use super::ShellError;

/// Removes the files when dropped, but for an output that somebody wants to keep.
pub(super) struct Files {
    output: PathBuf,
    script: PathBuf,
    last_directory: PathBuf,
    keep_output: AtomicBool,
}

impl Files {
    pub(super) fn create(
        output_dir: &Path,
        id: &TaskId,
        command: &str,
    ) -> Result<Self, ShellError> {
        let tasks = output_dir.join("tasks");
        let in_tasks = |source| ShellError::Files { path: tasks.clone(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(&tasks).map_err(in_tasks)?;
        // The guard and the command stand elsewhere: relative paths would mislead them.
        let tasks = tasks.canonicalize().map_err(in_tasks)?;
        let files = Self {
            output: tasks.join(format!("{id}.output")),
            script: tasks.join(format!("{id}.command")),
            last_directory: tasks.join(format!("{id}.directory")),
            keep_output: AtomicBool::new(false),
        };
        private(&files.output).map_err(in_tasks)?;
        private(&files.script)
            .and_then(|mut script| script.write_all(command.as_bytes()))
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

    /// Leaves the output where it is.
    pub(super) fn keep_output(&self) -> PathBuf {
        self.keep_output.store(true, Ordering::Relaxed);
        self.output.clone()
    }

    /// Where the command stood when its shell ended, if that is still a directory.
    pub(super) fn cwd_after(&self) -> Option<PathBuf> {
        let mut bytes = fs::read(&self.last_directory).ok()?;
        bytes.pop_if(|byte| *byte == b'\n');
        let directory = PathBuf::from(OsString::from_vec(bytes));
        (directory.is_absolute() && directory.is_dir()).then_some(directory)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let output = (!self.keep_output.load(Ordering::Relaxed)).then_some(&self.output);
        for path in [&self.script, &self.last_directory].into_iter().chain(output) {
            if let Err(error) = fs::remove_file(path)
                && error.kind() != io::ErrorKind::NotFound
            {
                tracing::debug!(path = %path.display(), %error, "cannot remove a command's file");
            }
        }
    }
}

/// A new file that only its owner reads.
fn private(path: &Path) -> io::Result<File> {
    File::options().write(true).create_new(true).mode(0o600).open(path)
}
