//! Files on disk as the file tools need them: opened without ever blocking, read within bounds,
//! replaced as a whole.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{Access, OFlags, access};

use crate::ToolError;
use crate::paths::similar_names;

/// The largest file that is edited, or held in memory for any other reason.
pub(crate) const MAX_IN_MEMORY: u64 = 32 * 1024 * 1024;

/// Work on at most this many bytes is done where it is asked for; more goes to another thread.
const INLINE_BYTES: u64 = 256 * 1024;

/// Does file work that may take long without holding up other agents.
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

/// The size of a file, or nothing when there is none: a hint for [`run_sized`].
pub(crate) fn size_hint(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// Opens a regular file for reading. Pipes, devices and directories are refused, not waited for.
pub(crate) fn open(path: &Path) -> Result<(File, Metadata), ToolError> {
    open_as(path, path)
}

/// The same, for a resolved path that errors call by the name it was given.
pub(crate) fn open_as(path: &Path, named: &Path) -> Result<(File, Metadata), ToolError> {
    let metadata = fs::metadata(path).map_err(|error| explain_missing(named, &error))?;
    refuse_irregular(named, &metadata)?;
    let file = open_now(path).map_err(|error| explain_missing(named, &error))?;
    let metadata = file.metadata().map_err(|error| explain("read", named, &error))?;
    refuse_irregular(named, &metadata)?;
    Ok((file, metadata))
}

/// Opens for reading whatever is at a resolved path, without waiting and without following a link: a file
/// may have become a pipe or a link meanwhile.
pub(crate) fn open_now(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW;
    OpenOptions::new().read(true).custom_flags(open_flags(flags)).open(path)
}

/// Flags as the standard library takes them.
pub(crate) fn open_flags(flags: OFlags) -> i32 {
    i32::try_from(flags.bits()).unwrap_or_default()
}

fn refuse_irregular(path: &Path, metadata: &Metadata) -> Result<(), ToolError> {
    let kind = metadata.file_type();
    if kind.is_file() {
        return Ok(());
    }
    let path = path.display();
    let what = if kind.is_dir() {
        return Err(ToolError::failed(format!(
            "{path} is a directory; list it with Glob, or with `ls` in Bash"
        )));
    } else if kind.is_fifo() {
        "a named pipe"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    };
    Err(ToolError::failed(format!("{path} is {what}, not a file")))
}

/// Why a file could not be opened, with what may have been meant.
fn explain_missing(path: &Path, error: &io::Error) -> ToolError {
    if error.kind() != io::ErrorKind::NotFound {
        return explain("read", path, error);
    }
    let shown = path.display();
    if let Ok(target) = fs::read_link(path) {
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

/// What failed on which file, in words.
pub(crate) fn explain(verb: &str, path: &Path, error: &io::Error) -> ToolError {
    let path = path.display();
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

/// The same where the content begins with what was read already.
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

/// A file that is about to be changed: its content and what must stay.
pub(crate) struct Existing {
    pub(crate) bytes: Vec<u8>,
    metadata: Metadata,
}

/// Loads the file at `path`; `None` when there is none yet.
pub(crate) fn load(path: &Path) -> Result<Option<Existing>, ToolError> {
    if let Err(error) = fs::metadata(path)
        && error.kind() == io::ErrorKind::NotFound
    {
        return Ok(None);
    }
    let (file, metadata) = open(path)?;
    let bytes = read_within(file, MAX_IN_MEMORY, metadata.len())
        .map_err(|error| explain("read", path, &error))?
        .ok_or_else(|| {
            ToolError::failed(format!(
                "{} is larger than {} MB; change it with a command in Bash",
                path.display(),
                MAX_IN_MEMORY / 1024 / 1024
            ))
        })?;
    Ok(Some(Existing { bytes, metadata }))
}

/// Puts `bytes` at `path`, which is resolved: readers see the old content or the new, never a part.
///
/// A file with several names is the exception: a new file in its place would part them, so it is written
/// where it is.
///
/// Not synced to the platter: a crash of the machine may lose the change, as with any editor's save, but
/// a sync for each edit costs more than all the rest of a call.
pub(crate) fn replace(
    path: &Path,
    bytes: &[u8],
    existing: Option<&Existing>,
) -> Result<(), ToolError> {
    let failed = |error: io::Error| explain("write", path, &error);
    let directory = path.parent().unwrap_or(Path::new("/"));
    match existing {
        // A rename asks the directory for permission, not the file: ask the file.
        Some(_) => access(path, Access::WRITE_OK).map_err(|error| failed(error.into()))?,
        None => fs::create_dir_all(directory).map_err(failed)?,
    }
    if existing.is_some_and(|existing| existing.metadata.nlink() > 1) {
        return write_in_place(path, bytes).map_err(failed);
    }
    match replace_by_rename(path, directory, bytes, existing) {
        Err(error) if existing.is_some() && must_write_in_place(&error) => {
            write_in_place(path, bytes).map_err(failed)
        }
        result => result.map_err(failed),
    }
}

fn replace_by_rename(
    path: &Path,
    directory: &Path,
    bytes: &[u8],
    existing: Option<&Existing>,
) -> io::Result<()> {
    let mut temporary = tempfile::Builder::new()
        .prefix(".centurion-")
        .permissions(Permissions::from_mode(0o644))
        .tempfile_in(directory)?;
    temporary.write_all(bytes)?;
    if let Some(Existing { metadata, .. }) = existing {
        let own = temporary.as_file().metadata()?;
        if (own.uid(), own.gid()) != (metadata.uid(), metadata.gid()) {
            // Only root can give files away; for others the new file is simply theirs.
            let _ = std::os::unix::fs::fchown(
                temporary.as_file(),
                Some(metadata.uid()),
                Some(metadata.gid()),
            );
        }
        temporary.as_file().set_permissions(metadata.permissions())?;
    }
    temporary.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// The directory lets nothing be created or moved, as around a single mounted file.
fn must_write_in_place(error: &io::Error) -> bool {
    use io::ErrorKind::{CrossesDevices, PermissionDenied, ResourceBusy};
    matches!(error.kind(), PermissionDenied | ResourceBusy | CrossesDevices)
}

fn write_in_place(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let flags = open_flags(OFlags::NOFOLLOW);
    let mut file = OpenOptions::new().write(true).truncate(true).custom_flags(flags).open(path)?;
    file.write_all(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn replacing_keeps_the_mode_and_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.sh");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o750)).unwrap();
        let existing = load(&path).unwrap();
        replace(&path, b"new", existing.as_ref()).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(mode(&path), 0o750);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_with_two_names_keeps_both() {
        let dir = tempfile::tempdir().unwrap();
        let (path, other) = (dir.path().join("one"), dir.path().join("two"));
        fs::write(&path, "old and longer").unwrap();
        fs::hard_link(&path, &other).unwrap();
        let existing = load(&path).unwrap();
        replace(&path, b"new", existing.as_ref()).unwrap();
        assert_eq!(fs::read(&other).unwrap(), b"new");
        assert_eq!(fs::metadata(&path).unwrap().nlink(), 2);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_new_file_gets_its_directories_and_an_ordinary_mode() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b/c.txt");
        replace(&path, b"x", None).unwrap();
        assert_eq!(mode(&path) & !0o644, 0);
        assert_eq!(mode(&path) & 0o600, 0o600);
    }

    #[test]
    fn a_file_can_change_in_a_directory_that_cannot() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        fs::write(&path, "old and longer").unwrap();
        fs::set_permissions(dir.path(), Permissions::from_mode(0o555)).unwrap();
        let existing = load(&path).unwrap();
        let changed = replace(&path, b"new", existing.as_ref());
        let created = replace(&dir.path().join("g"), b"new", None);
        fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
        changed.unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        if !rustix::process::geteuid().is_root() {
            assert!(created.unwrap_err().to_string().starts_with("no permission to write"));
        }
    }

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
        let error = load(&path).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("Bash"), "{error}");
    }

    #[test]
    fn a_missing_directory_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let error = open(&dir.path().join("no/such/file")).unwrap_err().to_string();
        let missing = dir.path().join("no");
        assert!(error.ends_with(&format!("no directory {}", missing.display())), "{error}");
    }
}
