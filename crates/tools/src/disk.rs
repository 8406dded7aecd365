//! Files on disk for the file tools: opened at the judged path, without ever blocking, read within bounds, replaced as
//! a whole. Errors are sentences for the model.

use std::fs::{self, File, FileType, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use centurion_files::{Location, OpenError, ReplaceError, is_link_refusal};
use rustix::fs::OFlags;

use crate::ToolError;
use crate::paths::similar_names;

pub(crate) use centurion_files::Existing;

/// The largest file that is edited, or held in memory for any other reason.
pub(crate) const MAX_IN_MEMORY: u64 = 32 * 1024 * 1024;

/// Work on at most this many bytes runs on the caller's thread; more goes to another thread.
const INLINE_BYTES: u64 = 256 * 1024;

/// Does file work that may take long without delaying other agents.
pub(crate) async fn run_sized<T: Send + 'static>(
    bytes: u64,
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    if bytes <= INLINE_BYTES {
        return work();
    }
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(ToolError::failed(format!("the work broke off: {error}"))),
    }
}

/// A size for people: `12 KB`, `3.4 MB`.
pub(crate) fn human_size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..1_048_576 => format!("{} KB", bytes.div_ceil(1024)),
        _ => format!("{:.1} MB", bytes as f64 / 1_048_576.0),
    }
}

/// The size of a file, or zero when there is none: a hint for [`run_sized`].
pub(crate) fn size_hint(path: &Path) -> u64 {
    fs::symlink_metadata(path).map_or(0, |metadata| metadata.len())
}

/// Opens a regular file, by its resolved path, for reading. Refuses pipes, devices and directories instead of waiting
/// for them, and also a link that has appeared on the way. Errors use the name that the caller gave.
pub(crate) fn open(path: &Path, named: &Path) -> Result<(File, Metadata), ToolError> {
    centurion_files::open_regular(path).map_err(|error| explain_open(path, named, &error))
}

/// Opens one of the program's own files for reading, without waiting and without following a link: a command may have
/// put a pipe or a link there.
pub(crate) fn open_own(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW;
    OpenOptions::new().read(true).custom_flags(open_flags(flags)).open(path)
}

/// Flags as the standard library takes them.
pub(crate) fn open_flags(flags: OFlags) -> i32 {
    i32::try_from(flags.bits()).unwrap_or_default()
}

/// Explains why a file could not be opened, with suggestions.
fn explain_open(path: &Path, named: &Path, error: &OpenError) -> ToolError {
    match error {
        OpenError::NotRegular(kind) => explain_irregular(named, *kind),
        OpenError::Io(error) if error.kind() == io::ErrorKind::NotFound => {
            explain_missing(path, named)
        }
        OpenError::Io(error) => explain("read", named, error),
    }
}

fn explain_irregular(named: &Path, kind: FileType) -> ToolError {
    let path = named.display();
    let what = if kind.is_dir() {
        return ToolError::failed(format!(
            "{path} is a directory; list it with Glob, or with `ls` in Bash"
        ));
    } else if kind.is_fifo() {
        "a named pipe"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    };
    ToolError::failed(format!("{path} is {what}, not a file"))
}

/// Suggests existing names for a path at which there is nothing.
pub(crate) fn explain_missing(path: &Path, named: &Path) -> ToolError {
    let shown = named.display();
    if path != named
        && let Ok(target) = fs::read_link(named)
    {
        return ToolError::failed(format!(
            "{shown} is a link to {}, which does not exist",
            target.display()
        ));
    }
    let missing = path.ancestors().skip(1).take_while(|parent| !parent.exists()).last();
    if let Some(missing) = missing.filter(|missing| !missing.as_os_str().is_empty()) {
        return ToolError::failed(format!(
            "{shown} does not exist: there is no directory {}",
            missing.display()
        ));
    }
    let similar = similar_names(path);
    if similar.is_empty() {
        return ToolError::failed(format!("{shown} does not exist; find it with Glob"));
    }
    ToolError::failed(format!("{shown} does not exist; similar there: {}", similar.join(", ")))
}

/// Describes a failure: the verb, the file, the reason.
pub(crate) fn explain(verb: &str, path: &Path, error: &io::Error) -> ToolError {
    let path = path.display();
    if is_link_refusal(error) {
        return ToolError::failed(format!(
            "cannot {verb} {path}: a link on the way goes in a circle, or has come up since the call was \
             allowed; look where it leads and call again"
        ));
    }
    ToolError::failed(match error.kind() {
        io::ErrorKind::PermissionDenied => format!("no permission to {verb} {path}"),
        io::ErrorKind::ReadOnlyFilesystem => {
            format!("cannot {verb} {path}: it is on a read-only file system")
        }
        io::ErrorKind::StorageFull => format!("cannot {verb} {path}: the disk is full"),
        _ => format!("cannot {verb} {path}: {error}"),
    })
}

/// The whole content, or `None` when it is larger than `limit`.
///
/// The size that the system states is a hint only: some files state none, others grow.
pub(crate) fn read_within(file: impl Read, limit: u64, hint: u64) -> io::Result<Option<Vec<u8>>> {
    read_after(Vec::new(), file, limit, hint)
}

/// The same for content whose beginning was read already.
pub(crate) fn read_after(
    start: Vec<u8>,
    rest: impl Read,
    limit: u64,
    hint: u64,
) -> io::Result<Option<Vec<u8>>> {
    if hint > limit {
        return Ok(None);
    }
    let read = start.len() as u64;
    let mut bytes = start;
    bytes.reserve(usize::try_from(hint.saturating_sub(read).saturating_add(1)).unwrap_or_default());
    rest.take(limit.saturating_add(1).saturating_sub(read)).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= limit).then_some(bytes))
}

/// The reason that a file was not loaded for a change.
pub(crate) enum LoadError {
    Open(OpenError),
    Read(io::Error),
    TooLarge,
}

/// Loads the file at a resolved path to change it; `None` when there is none yet.
pub(crate) fn load(path: &Path, named: &Path) -> Result<Option<Existing>, ToolError> {
    load_existing(path).map_err(|error| match error {
        LoadError::Open(error) => explain_open(path, named, &error),
        LoadError::Read(error) => explain("read", named, &error),
        LoadError::TooLarge => ToolError::failed(format!(
            "{} is larger than {} MB; change it with a command in Bash",
            named.display(),
            MAX_IN_MEMORY / 1024 / 1024
        )),
    })
}

/// The same, with the error itself.
pub(crate) fn load_existing(path: &Path) -> Result<Option<Existing>, LoadError> {
    let opened = Location::open(path).map_err(OpenError::Io).and_then(|location| {
        let file = location.open_regular()?;
        let metadata = file.metadata()?;
        Ok((location, file, metadata))
    });
    let (location, file, metadata) = match opened {
        Ok(opened) => opened,
        Err(OpenError::Io(error)) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(LoadError::Open(error)),
    };
    let bytes = read_within(&file, MAX_IN_MEMORY, metadata.len()).map_err(LoadError::Read)?;
    let bytes = bytes.ok_or(LoadError::TooLarge)?;
    Ok(Some(Existing { location, file, metadata, bytes }))
}

/// The treatment of other hard links to a changed file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OtherNames {
    /// They get the new content as well.
    Follow,
    /// They keep the old content.
    StayBehind,
}

/// Replaces the content that was read, or creates the file.
pub(crate) fn replace(
    path: &Path,
    named: &Path,
    bytes: &[u8],
    existing: Option<&Existing>,
    other_names: OtherNames,
) -> Result<(), ToolError> {
    let written = match (existing, other_names) {
        (Some(existing), OtherNames::Follow) => centurion_files::replace(existing, bytes),
        (Some(existing), OtherNames::StayBehind) => centurion_files::replace_alone(existing, bytes),
        (None, _) => centurion_files::create(path, bytes),
    };
    written.map_err(|error| {
        let shown = named.display();
        match error {
            ReplaceError::Io(error) => explain("write", named, &error),
            ReplaceError::Changed => ToolError::failed(format!(
                "{shown} was changed by another program while it was being written, so nothing was \
                 done: Read it again, then redo the change"
            )),
            ReplaceError::Appeared => ToolError::failed(format!(
                "{shown} exists by now and was left alone: Read it first"
            )),
            ReplaceError::Torn { source, saved } => {
                let place = saved.map_or_else(
                    || "it may be damaged".to_owned(),
                    |saved| format!("its old content is in {}", saved.display()),
                );
                ToolError::failed(format!("writing {shown} broke off: {source}; {place}"))
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_grows_past_its_stated_size_is_not_slurped() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        fs::write(&path, "12345").unwrap();
        assert_eq!(read_within(File::open(&path).unwrap(), 4, 0).unwrap(), None);
        assert_eq!(read_within(File::open(&path).unwrap(), 5, 0).unwrap().unwrap(), b"12345");
    }

    #[test]
    fn a_file_too_large_for_memory_is_refused_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sparse");
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        let path = path.canonicalize().unwrap();
        let error = load(&path, &path).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("Bash"), "{error}");
    }

    #[test]
    fn a_missing_directory_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let path = root.join("no/such/file");
        let error = open(&path, &path).unwrap_err().to_string();
        let missing = root.join("no");
        assert!(error.ends_with(&format!("no directory {}", missing.display())), "{error}");
    }
}
