//! A file that is on its way to its place: beside it, under a name of its own, gone unless it arrives.

use std::collections::hash_map::RandomState;
use std::ffi::OsString;
use std::fs::File;
use std::hash::{BuildHasher as _, Hasher as _};
use std::io;
use std::path::PathBuf;

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, openat, renameat, renameat_with, unlinkat};
use rustix::io::Errno;

use crate::Location;

/// The number of names that are tried.
const ATTEMPTS: usize = 16;

/// A new file in the directory of a location.
pub(crate) struct Temporary<'l> {
    beside: &'l Location,
    name: OsString,
    pub(crate) file: File,
    is_settled: bool,
}

impl<'l> Temporary<'l> {
    pub(crate) fn create(beside: &'l Location, mode: Mode) -> io::Result<Self> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        for _ in 0..ATTEMPTS {
            // The hasher has random keys: names that another process cannot take before.
            let random = RandomState::new().build_hasher().finish();
            let name = OsString::from(format!(".centurion-{random:016x}"));
            match openat(beside.directory(), &name, flags, mode) {
                Ok(file) => return Ok(Self { beside, name, file: file.into(), is_settled: false }),
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Takes the place of what is at the location.
    pub(crate) fn replace(mut self) -> io::Result<()> {
        let directory = self.beside.directory();
        renameat(directory, &self.name, directory, self.beside.name())?;
        self.is_settled = true;
        Ok(())
    }

    /// Takes the place at the location, at which there must be nothing.
    pub(crate) fn settle(mut self) -> io::Result<()> {
        let directory = self.beside.directory();
        let name = self.beside.name();
        match renameat_with(directory, &self.name, directory, name, RenameFlags::NOREPLACE) {
            // Some file systems cannot.
            Err(Errno::INVAL | Errno::NOSYS) => match self.beside.stat() {
                Ok(_) => return Err(io::ErrorKind::AlreadyExists.into()),
                Err(_) => renameat(directory, &self.name, directory, name)?,
            },
            renamed => renamed?,
        }
        self.is_settled = true;
        Ok(())
    }

    /// Leaves the file where it is; where that is.
    pub(crate) fn keep(mut self) -> PathBuf {
        self.is_settled = true;
        self.beside.path().with_file_name(&self.name)
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if !self.is_settled {
            // The error that matters is the one that came before.
            let _ = unlinkat(self.beside.directory(), &self.name, AtFlags::empty());
        }
    }
}
