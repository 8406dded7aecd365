//! Contents of Git LFS that the commits of an agent name.
//!
//! The filter of Git LFS puts the content of a file beside git's objects, as `lfs/objects/<2>/<2>/<SHA-256>` of the
//! repository that it runs in, and a pointer with that name into the commit. A fetch brings the pointer home and not the
//! content, so the contents are copied. Each is checked against its name, as git checks its objects.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write};
use std::path::{Path, PathBuf};

use ring::digest::{Context, SHA256};

use crate::files::remove_if_there;

/// The directory of contents in a git directory.
const CONTENTS: &str = "lfs/objects";

/// The most contents that are brought home at once.
const MOST_CONTENTS: usize = 100_000;

/// A larger one stays where it is.
const LARGEST_CONTENT: u64 = 16 * 1024 * 1024 * 1024;

/// Size of one read.
const PIECE: usize = 1 << 16;

/// The contents that did not come home.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LeftContents {
    /// Contents that are not what their names say.
    pub(crate) forged: usize,
    /// Contents beyond the bound.
    pub(crate) surplus: usize,
}

impl LeftContents {
    /// The sentence for the report of a worktree; `None` where nothing was left.
    pub(crate) fn note(&self) -> Option<String> {
        if *self == Self::default() {
            return None;
        }
        let Self { forged, surplus } = self;
        Some(format!(
            "contents of Git LFS stay in its private repository: {forged} with a wrong name, {surplus} too many"
        ))
    }
}

/// Copies the contents of a private repository that the repository `common` does not have. Can be called again where it
/// was broken off. An error leaves the contents where they are.
pub(crate) async fn bring(own: &Path, common: &Path) -> io::Result<LeftContents> {
    let (from, to) = (own.join(CONTENTS), common.join(CONTENTS));
    if !from.is_dir() {
        return Ok(LeftContents::default());
    }
    // Contents may be large.
    let copying = tokio::task::spawn_blocking(move || copy_all(&from, &to));
    copying.await.map_err(io::Error::other)?
}

fn copy_all(from: &Path, to: &Path) -> io::Result<LeftContents> {
    let mut left = LeftContents::default();
    for (number, below) in contents(from)?.into_iter().enumerate() {
        let target = to.join(&below);
        if target.exists() {
            continue;
        }
        if number >= MOST_CONTENTS {
            left.surplus += 1;
        } else if !copy(&from.join(&below), &target)? {
            left.forged += 1;
        }
    }
    Ok(left)
}

/// The files below a directory of contents that have the name of one, relative to it.
fn contents(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for first in names(directory, 2)? {
        for second in names(&directory.join(&first), 2)? {
            let below = Path::new(&first).join(&second);
            let prefix = format!("{first}{second}");
            let files = names(&directory.join(&below), 64)?;
            let files = files.into_iter().filter(|name| name.starts_with(&prefix));
            found.extend(files.map(|name| below.join(name)));
        }
    }
    Ok(found)
}

/// The names in a directory that are so many hexadecimal digits. What is no directory has none.
fn names(directory: &Path, length: usize) -> io::Result<Vec<String>> {
    if !fs::symlink_metadata(directory).is_ok_and(|it| it.is_dir()) {
        return Ok(Vec::new());
    }
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        if let Ok(name) = entry?.file_name().into_string()
            && name.len() == length
            && name.bytes().all(is_digit)
        {
            found.push(name);
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// Copies one content in one step; `false` where it is not what its name says.
fn copy(from: &Path, to: &Path) -> io::Result<bool> {
    let Ok((mut content, metadata)) = centurion_files::open_regular(from) else { return Ok(false) };
    let is_it = |digest: &str| to.file_name().is_some_and(|wanted| *wanted == *digest);
    // First looked at: a file with nothing in it but its length takes no room until it is copied.
    if metadata.len() > LARGEST_CONTENT || !is_it(&pass(&mut content, &mut io::sink())?) {
        return Ok(false);
    }
    if let Some(directory) = to.parent() {
        fs::create_dir_all(directory)?;
    }
    let new = to.with_extension("centurion");
    remove_if_there(&new)?;
    let mut file = File::create_new(&new)?;
    let written = pass(&mut content, &mut file).and_then(|digest| {
        file.sync_all()?;
        Ok(is_it(&digest))
    });
    if !matches!(written, Ok(true)) {
        remove_if_there(&new)?;
        return written;
    }
    fs::rename(&new, to).map(|()| true)
}

/// Passes a content on, from its beginning; the name that it has.
fn pass(content: &mut File, to: &mut impl Write) -> io::Result<String> {
    content.seek(SeekFrom::Start(0))?;
    let mut digest = Context::new(&SHA256);
    let mut piece = vec![0; PIECE];
    loop {
        match content.read(&mut piece) {
            Ok(0) => return Ok(hex(digest.finish().as_ref())),
            Ok(count) => {
                let piece = piece.get(..count).unwrap_or_default();
                digest.update(piece);
                to.write_all(piece)?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Writes bytes as hexadecimal digits.
fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
