//! The index of a checkout, read without a git process.

use std::path::Path;

use crate::files::{LONG, read};

/// The bit of the third form of an index: an entry has more flags.
const HAS_MORE_FLAGS: u16 = 0x4000;

/// Git is not to look at the file: `assume-unchanged`, and, among the further flags, `skip-worktree`.
const ASSUMED: u16 = 0x8000;
const SKIPPED: u16 = 0x4000;

/// An entry of an index.
pub(crate) struct IndexEntry<'a> {
    /// Seconds and nanoseconds.
    pub(crate) changed: (u32, u32),
    pub(crate) written: (u32, u32),
    pub(crate) inode: u32,
    pub(crate) mode: u32,
    pub(crate) size: u32,
    pub(crate) flags: u16,
    more_flags: u16,
    pub(crate) path: &'a [u8],
}

impl IndexEntry<'_> {
    /// The upper part of the mode: a file, a link, or a repository.
    pub(crate) fn kind(&self) -> u32 {
        self.mode >> 12
    }

    /// Set for a file that git is told not to look at.
    pub(crate) fn is_marked(&self) -> bool {
        self.flags & ASSUMED != 0 || self.more_flags & SKIPPED != 0
    }

    fn is_repository(&self) -> bool {
        self.kind() == 0o16
    }
}

/// The entries of an index; `None` if it is of a form that is not known here, or leaves out entries. Ids have 20 bytes.
pub(crate) fn entries(index: &[u8]) -> Option<Vec<IndexEntry<'_>>> {
    let mut rest = index;
    if take(&mut rest, 4)? != b"DIRC" || !matches!(number(&mut rest)?, 2 | 3) {
        return None;
    }
    let count = usize::try_from(number(&mut rest)?).ok()?;
    // An entry has more than 60 bytes.
    let mut all = Vec::with_capacity(count.min(index.len() / 60));
    for _ in 0..count {
        all.push(entry(&mut rest)?);
    }
    // Each extension begins with a letter that says whether it can be passed over.
    let mut rest = rest.get(..rest.len().checked_sub(20)?)?;
    while !rest.is_empty() {
        let name = take(&mut rest, 4)?;
        let length = usize::try_from(number(&mut rest)?).ok()?;
        take(&mut rest, length)?;
        if !name.first()?.is_ascii_uppercase() || name == b"FSMN" {
            return None;
        }
    }
    Some(all)
}

/// Checks that the index of a checkout may name repositories within it. `commit` is any commit there.
pub(crate) fn may_have_repositories(index: &Path, commit: &str) -> bool {
    // Longer ids have another form.
    let Some(index) = read(index, LONG).ok().filter(|_| commit.len() == 40) else { return true };
    entries(&index).is_none_or(|entries| entries.iter().any(IndexEntry::is_repository))
}

fn entry<'a>(rest: &mut &'a [u8]) -> Option<IndexEntry<'a>> {
    let start = rest.len();
    let changed = (number(rest)?, number(rest)?);
    let written = (number(rest)?, number(rest)?);
    let (_, inode, mode) = (number(rest)?, number(rest)?, number(rest)?);
    let (_, _, size) = (number(rest)?, number(rest)?, number(rest)?);
    take(rest, 20)?;
    let flags = short(rest)?;
    let more_flags = if flags & HAS_MORE_FLAGS == 0 { 0 } else { short(rest)? };
    let end = rest.iter().position(|byte| *byte == 0)?;
    let path = take(rest, end)?;
    let padded = (start - rest.len() + 8) & !7;
    take(rest, padded - (start - rest.len()))?;
    Some(IndexEntry { changed, written, inode, mode, size, flags, more_flags, path })
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(taken)
}

fn short(rest: &mut &[u8]) -> Option<u16> {
    Some(u16::from_be_bytes(take(rest, 2)?.try_into().ok()?))
}

fn number(rest: &mut &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(take(rest, 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;

    fn git(top: &Path, args: &str) -> String {
        let output = Command::new("git").args(args.split(' ')).current_dir(top).output().unwrap();
        assert!(output.status.success(), "{args}: {output:?}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    #[test]
    fn a_repository_within_one_is_found_in_every_form_of_an_index() {
        let scratch = tempfile::tempdir().unwrap();
        let top = scratch.path();
        git(top, "init -q .");
        for name in ["a", "b/c/d", "zz"] {
            fs::create_dir_all(top.join(name).parent().unwrap()).unwrap();
            fs::write(top.join(name), name).unwrap();
        }
        git(top, "add -A");
        let (index, commit) = (top.join(".git/index"), "0".repeat(40));
        for form in ["2", "3", "4"] {
            git(top, &format!("update-index --index-version {form} --force-write-index"));
            let said = may_have_repositories(&index, &commit);
            assert!(!said || form == "4", "{form}");
        }
        // Entries with more flags.
        git(top, "update-index --index-version 3 --force-write-index");
        git(top, "update-index --skip-worktree b/c/d");
        assert!(!may_have_repositories(&index, &commit));
        let paths = |index: &[u8]| {
            let all = entries(index).unwrap();
            all.iter().map(|it| String::from_utf8_lossy(it.path).into_owned()).collect::<Vec<_>>()
        };
        assert_eq!(paths(&fs::read(&index).unwrap()).join("\n"), git(top, "ls-files"));
        git(top, &format!("update-index --add --cacheinfo 160000,{},m/inner", "1".repeat(40)));
        for form in ["2", "3", "4"] {
            git(top, &format!("update-index --index-version {form} --force-write-index"));
            assert!(may_have_repositories(&index, &commit), "{form}");
        }
        // Ids of another length, entries in another file, and no index at all.
        git(top, "update-index --index-version 2 --force-remove m/inner");
        assert!(!may_have_repositories(&index, &commit));
        assert!(may_have_repositories(&index, &"0".repeat(64)));
        git(top, "update-index --split-index");
        assert!(may_have_repositories(&index, &commit));
        fs::remove_file(&index).unwrap();
        assert!(may_have_repositories(&index, &commit));
    }
}
