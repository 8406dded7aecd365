//! The other repositories that the index of a work tree lists: git looks into them, with the configuration that they
//! have.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use centurion_files::open_followed;
use centurion_protocol::bounded;

/// The largest index that is read: about two million files.
const LARGEST: u64 = 256 * 1024 * 1024;

/// The part of an entry's flags with the length of its name; all ones for that long and longer.
const LONGEST_TOLD: u16 = 0xfff;

/// The mode of an entry that is a commit of another repository.
const GITLINK: u32 = 0o160_000;

/// The paths of entries that stand for other repositories, from the top of the work tree. `None` if the index of this
/// directory of git cannot be read.
pub(crate) fn gitlinks(git: &Path) -> Option<Vec<PathBuf>> {
    let file = git.join("index");
    if file.symlink_metadata().is_err() {
        return Some(Vec::new());
    }
    let index = read(&file)?;
    // The index does not tell the length of names of objects; the entries do, unless both lengths would fit.
    let mut readings =
        [20, 32].into_iter().filter_map(|hash| GitIndex { bytes: &index, hash }.read());
    let mut found = readings.next()?;
    if index_count(&index) > 0 && readings.next().is_some() {
        return None;
    }
    if let Some(shared) = found.shared.take() {
        let index = read(&git.join(format!("sharedindex.{shared}")))?;
        let hash = shared.len() / 2;
        found.links.extend(GitIndex { bytes: &index, hash }.read()?.links);
    }
    Some(found.links)
}

fn index_count(index: &[u8]) -> u32 {
    GitIndex { bytes: index, hash: 20 }.number(8).unwrap_or_default()
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn read(file: &Path) -> Option<Vec<u8>> {
    let (file, _) = open_followed(file).ok()?;
    bounded::read_all(file, LARGEST).ok()
}

#[derive(Default)]
struct IndexLinks {
    links: Vec<PathBuf>,
    /// The name of the index that this one adds to.
    shared: Option<String>,
}

struct GitIndex<'a> {
    bytes: &'a [u8],
    /// The length of the names of objects.
    hash: usize,
}

impl GitIndex<'_> {
    fn read(&self) -> Option<IndexLinks> {
        let mut found = IndexLinks::default();
        let version = self.number(4)?;
        let count = self.number(8)?;
        if self.bytes.get(..4)? != b"DIRC" || !(2..=4).contains(&version) {
            return None;
        }
        let mut at = 12;
        let mut name: Vec<u8> = Vec::new();
        for _ in 0..count {
            let begin = at;
            let mode = self.number(at + 24)?;
            at += 40 + self.hash;
            let flags = self.bytes.get(at..at + 2)?;
            at += if flags.first()? & 0x40 != 0 { 4 } else { 2 };
            if version == 4 {
                let (removed, next) = self.variable(at)?;
                name.truncate(name.len().checked_sub(removed)?);
                at = next;
            } else {
                name.clear();
            }
            let length = self.bytes.get(at..)?.iter().position(|byte| *byte == 0)?;
            name.extend_from_slice(self.bytes.get(at..at + length)?);
            // Git believes the length that is told, if it is one that can be.
            let flags = u16::from_be_bytes(flags.try_into().ok()?);
            let told = usize::from(flags & LONGEST_TOLD);
            if told < usize::from(LONGEST_TOLD) && told != name.len() {
                return None;
            }
            at += length + 1;
            if version != 4 {
                // Entries end at a multiple of eight, with at least one zero.
                at = begin + (at - begin).next_multiple_of(8);
            }
            if !matches!(mode & 0o170_000, 0o100_000 | 0o120_000 | 0o040_000 | GITLINK) {
                return None;
            }
            if mode & 0o170_000 == GITLINK {
                found.links.push(PathBuf::from(OsStr::from_bytes(&name)));
            }
        }
        // The part behind the entries ends with the sum of all.
        let end = self.bytes.len().checked_sub(self.hash).filter(|end| at <= *end)?;
        while at < end {
            let size = usize::try_from(self.number(at + 4)?).ok()?;
            let data = self.bytes.get(at + 8..at.checked_add(8)?.checked_add(size)?)?;
            if self.bytes.get(at..at + 4)? == b"link" {
                let base = data.get(..self.hash)?;
                found.shared = base.iter().any(|byte| *byte != 0).then(|| hexadecimal(base));
            }
            at += 8 + size;
        }
        (at == end).then_some(found)
    }

    fn number(&self, at: usize) -> Option<u32> {
        let bytes = self.bytes.get(at..at.checked_add(4)?)?;
        Some(u32::from_be_bytes(bytes.try_into().ok()?))
    }

    /// A number of as many bytes as it needs, and what is behind it.
    fn variable(&self, mut at: usize) -> Option<(usize, usize)> {
        let mut byte = *self.bytes.get(at)?;
        at += 1;
        let mut value = usize::from(byte & 0x7f);
        while byte & 0x80 != 0 {
            byte = *self.bytes.get(at)?;
            at += 1;
            value = value.checked_add(1)?.checked_shl(7)?.checked_add(usize::from(byte & 0x7f))?;
        }
        Some((value, at))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    fn git(directory: &Path, arguments: &[&str]) {
        let mut git = Command::new("git");
        git.args(arguments).current_dir(directory).env("GIT_CONFIG_NOSYSTEM", "1");
        git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("HOME", directory);
        let output = git.output().unwrap();
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        /// What git lists is what is found, whatever the form of the index.
        #[test]
        fn the_other_repositories_of_an_index_are_those_that_git_lists(
            names in prop::collection::btree_set("[a-c]{1,3}(/[a-z]{1,9}){0,2}", 1..12),
            version in 2..5_u8,
            splits in any::<bool>(),
            format in prop::sample::select(vec!["sha1", "sha256"]),
        ) {
            let scratch = tempfile::tempdir().unwrap();
            let root = scratch.path();
            git(root, &["init", "-q", &format!("--object-format={format}"), "."]);
            let commit = if format == "sha1" { "1".repeat(40) } else { "1".repeat(64) };
            let mut links = Vec::new();
            for (number, name) in names.iter().enumerate() {
                // A name that another one is below cannot be added.
                if names.iter().any(|other| other.starts_with(&format!("{name}/"))) {
                    continue;
                }
                if number % 2 == 0 {
                    git(root, &["update-index", "--add", "--cacheinfo", &format!("160000,{commit},{name}")]);
                    links.push(PathBuf::from(name));
                } else {
                    fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
                    fs::write(root.join(name), "x").unwrap();
                    git(root, &["update-index", "--add", name]);
                }
            }
            git(root, &["update-index", "--index-version", &version.to_string()]);
            if splits {
                git(root, &["update-index", "--split-index"]);
            }
            let mut found = gitlinks(&root.join(".git")).unwrap();
            found.sort();
            found.dedup();
            links.sort();
            prop_assert_eq!(found, links);
        }

        /// Broken ones are refused and break nothing.
        #[test]
        fn no_index_is_too_odd(bytes in prop::collection::vec(any::<u8>(), 0..200), version in 2..5_u8) {
            let scratch = tempfile::tempdir().unwrap();
            let head = [b"DIRC".as_slice(), &[0, 0, 0, version, 0, 0, 0, 9], &bytes].concat();
            fs::write(scratch.path().join("index"), head).unwrap();
            gitlinks(scratch.path());
        }
    }
}
