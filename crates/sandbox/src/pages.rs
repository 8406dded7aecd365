//! Pages of the program's own file that only its beginning needed.
//!
//! A start runs through much code that is not run again. Its pages stay mapped, and count as memory of the process, until the
//! machine runs short. What is forgotten here comes back from the file as soon as it is used.

use std::ops::Range;
use std::path::Path;

use centurion_protocol::bounded;

use crate::system;

/// The longest text about mappings that is read.
const LARGEST: u64 = 16 * 1024 * 1024;

/// A mapping of this process.
#[derive(Debug, Default, PartialEq, Eq)]
struct Mapping<'a> {
    addresses: Range<usize>,
    /// True if it is private and cannot be written to.
    is_fixed: bool,
    path: &'a str,
    /// In kilobytes: what is in memory, and what is no longer as the file has it.
    resident: u64,
    anonymous: u64,
}

/// Has the kernel forget the pages of this program's file that are in memory and as the file has them. Returns how many
/// kilobytes they had.
pub fn forget_used_pages() -> u64 {
    let maps = Path::new("/proc/self/smaps");
    let (Ok(own), Ok(text)) =
        (std::fs::read_link("/proc/self/exe"), bounded::read_text_file(maps, LARGEST))
    else {
        return 0;
    };
    let all = mappings(&text);
    let forgotten = all.iter().filter(|it| it.is_of(&own) && system::forget(it.addresses.clone()));
    forgotten.map(|it| it.resident).sum()
}

impl Mapping<'_> {
    /// Tells whether the mapping is of a file and all that is in memory of it is as the file has it. What the loader has
    /// changed is not, although it cannot be written to any more.
    fn is_of(&self, file: &Path) -> bool {
        self.is_fixed && self.anonymous == 0 && self.resident > 0 && Path::new(self.path) == file
    }
}

/// The mappings in the text that the kernel makes about them.
fn mappings(text: &str) -> Vec<Mapping<'_>> {
    let mut all: Vec<Mapping<'_>> = Vec::new();
    for line in text.lines() {
        if let Some(mapping) = head(line) {
            all.push(mapping);
        } else if let Some(last) = all.last_mut() {
            let amount = |name: &str| -> Option<u64> {
                line.strip_prefix(name)?.trim().strip_suffix(" kB")?.trim().parse().ok()
            };
            last.resident = amount("Rss:").unwrap_or(last.resident);
            last.anonymous = amount("Anonymous:").unwrap_or(last.anonymous);
        }
    }
    all
}

/// The first line about a mapping: addresses, rights, offset, device, number and path.
fn head(line: &str) -> Option<Mapping<'_>> {
    let (addresses, rest) = line.split_once(' ')?;
    let (first, last) = addresses.split_once('-')?;
    let address = |digits| usize::from_str_radix(digits, 16).ok();
    let addresses = address(first)?..address(last)?;
    let (rights, mut rest) = rest.split_once(' ')?;
    for _ in 0..3 {
        rest = rest.split_once(' ').map_or("", |(_, rest)| rest);
    }
    let is_fixed = rights.ends_with('p') && !rights.contains('w');
    Some(Mapping { addresses, is_fixed, path: rest.trim_start(), ..Mapping::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
55d000000000-55d000200000 r--p 00000000 08:01 1234567                    /usr/bin/my program
Size:               2048 kB
Rss:                 512 kB
Anonymous:             0 kB
55d000200000-55d000900000 r-xp 00200000 08:01 1234567                    /usr/bin/my program
Rss:                4096 kB
Anonymous:             0 kB
55d000900000-55d000a00000 r--p 00900000 08:01 1234567                    /usr/bin/my program
Rss:                1024 kB
Anonymous:          1024 kB
55d000a00000-55d000a10000 rw-p 00a00000 08:01 1234567                    /usr/bin/my program
Rss:                  64 kB
Anonymous:             0 kB
7f0000000000-7f0000100000 r-xp 00000000 08:01 7654321                    /usr/lib/other.so
Rss:                 100 kB
Anonymous:             0 kB
7f0000100000-7f0000200000 r--s 00000000 08:01 1234567                    /usr/bin/my program
Rss:                 100 kB
Anonymous:             0 kB
7ffc00000000-7ffc00100000 rw-p 00000000 00:00 0                          [stack]
Rss:                  12 kB
7ffc00200000-7ffc00300000 r-xp 00000000 00:00 0
Rss:                  12 kB
";

    #[test]
    fn only_pages_that_are_as_the_programs_file_has_them_are_forgotten() {
        let all = mappings(MAPS);
        assert_eq!(all.len(), 8);
        let own: Vec<u64> = all
            .iter()
            .filter(|it| it.is_of(Path::new("/usr/bin/my program")))
            .map(|it| it.resident)
            .collect();
        assert_eq!(own, [512, 4096]);
        assert_eq!(all[1].addresses, 0x55d0_0020_0000..0x55d0_0090_0000);
    }

    #[test]
    fn the_program_goes_on_with_less_of_its_file_in_memory() {
        let resident = || -> u64 {
            let text = std::fs::read_to_string("/proc/self/status").unwrap();
            let line = text.lines().find_map(|line| line.strip_prefix("RssFile:")).unwrap();
            line.trim().strip_suffix(" kB").unwrap().parse().unwrap()
        };
        let before = resident();
        let forgotten = forget_used_pages();
        let after = resident();
        assert!(forgotten > 0 && after < before, "{forgotten} kB: {before} kB, {after} kB");
        // All that was forgotten is there when it is used.
        assert_eq!(mappings(MAPS).len(), 8);
        assert_eq!(
            format!("{:?}", serde_json::json!({"a": [1, 2.5, "x"]})),
            "Object {\"a\": Array [Number(1), Number(2.5), String(\"x\")]}"
        );
    }
}
