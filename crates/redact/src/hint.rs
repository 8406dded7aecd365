//! Hints: places where a credential may begin.
//!
//! Every hint is known by its first four bytes. Tables that the compiler fills tell for each of them which
//! groups of hints have it in that place: four looks for each byte of the text, no branch, and nothing to
//! build at start.

use crate::scan::{Scan, work};
use crate::shapes::{self, SHAPES};
use crate::{FoundSecret, Reader, keyed, pem, url};

/// Hints whose credentials are read by a function of their own.
static SPECIAL: &[(&str, Reader)] = &[
    ("eyJ", shapes::web_token),
    (":AA", shapes::telegram),
    ("0Q~", shapes::azure_client),
    ("1Q~", shapes::azure_client),
    ("2Q~", shapes::azure_client),
    ("3Q~", shapes::azure_client),
    ("4Q~", shapes::azure_client),
    ("5Q~", shapes::azure_client),
    ("6Q~", shapes::azure_client),
    ("7Q~", shapes::azure_client),
    ("8Q~", shapes::azure_client),
    ("9Q~", shapes::azure_client),
    ("://", url::password),
    ("oracle:thin:", url::oracle),
    ("PRIVATE KEY", pem::block),
    ("LS0tLS1CRUdJTi", pem::encoded_block),
    ("assword", keyed::password),
    ("ASSWORD", keyed::password),
    ("asswd", keyed::password),
    ("ASSWD", keyed::password),
    ("_PWD", keyed::password),
    (";Pwd=", keyed::connection_password),
    (" Pwd=", keyed::connection_password),
    ("_password", keyed::password),
    ("assphrase", keyed::password),
    ("ASSPHRASE", keyed::password),
    ("_PASS=", keyed::password),
    ("_pass=", keyed::password),
    ("_auth", keyed::secret),
    ("ecret", keyed::secret),
    ("ECRET", keyed::secret),
    ("TOKEN", keyed::secret),
    ("_token", keyed::secret),
    ("authToken", keyed::secret),
    ("ccessToken", keyed::secret),
    ("ccess_key", keyed::secret),
    ("ccessKey", keyed::secret),
    ("ACCESS_KEY", keyed::secret),
    ("API_KEY", keyed::secret),
    ("APIKEY", keyed::secret),
    ("api_key", keyed::secret),
    ("apiKey", keyed::secret),
    ("apikey", keyed::secret),
    ("PRIVATE_KEY", keyed::secret),
    ("rivateKey", keyed::secret),
    ("rivate_key", keyed::secret),
    ("essionToken", keyed::secret),
    ("efreshToken", keyed::secret),
    ("ENCRYPTION_KEY", keyed::secret),
    ("login ", keyed::netrc),
    ("--password ", keyed::flag),
    ("--token ", keyed::flag),
    ("--api-key ", keyed::flag),
    ("--secret ", keyed::flag),
    (" -u ", keyed::user_flag),
    ("--user ", keyed::user_flag),
    ("ookie: ", keyed::cookie),
    ("auth\"", keyed::pair),
    ("auth\\\"", keyed::pair),
    ("auth\\\\\\\"", keyed::pair),
    ("earer ", keyed::bearer),
    ("EARER ", keyed::bearer),
    ("asic ", keyed::basic),
    ("ASIC ", keyed::basic),
    ("uthorization", keyed::header),
    ("UTHORIZATION", keyed::header),
    ("-api-key", keyed::header),
    ("-Api-Key", keyed::header),
    ("-API-Key", keyed::header),
    ("-API-KEY", keyed::header),
    ("-auth-token", keyed::header),
    ("-Auth-Token", keyed::header),
    ("ubscription-Key", keyed::header),
    ("ubscription-key", keyed::header),
    ("rivate-token", keyed::header),
    ("RIVATE-TOKEN", keyed::header),
    ("rivate-Token", keyed::header),
    ("AccountKey=", keyed::azure),
    ("SharedAccessKey=", keyed::azure),
    ("&sig=", keyed::azure),
    ("?sig=", keyed::azure),
    ("\\u0026sig=", keyed::azure),
];

/// The number of hints.
const COUNT: usize = SHAPES.len() + SPECIAL.len();

/// The hint of a number: those of the shapes come first.
const fn hint(number: usize) -> &'static str {
    if number < SHAPES.len() { SHAPES[number].prefix } else { SPECIAL[number - SHAPES.len()].0 }
}

/// All hints.
#[cfg(test)]
pub(crate) fn all() -> impl Iterator<Item = &'static str> {
    (0..COUNT).map(hint)
}

/// The numbers of all hints, similar ones side by side, and of those that begin alike the first first.
const ORDER: [usize; COUNT] = {
    let mut order = [0; COUNT];
    let mut number = 0;
    while number < COUNT {
        let mut place = number;
        while place > 0 && opening(order[place - 1]) > opening(number) {
            order[place] = order[place - 1];
            place -= 1;
        }
        order[place] = number;
        number += 1;
    }
    order
};

/// The first three bytes of a hint as a number.
const fn opening(number: usize) -> u32 {
    let hint = hint(number).as_bytes();
    (hint[0] as u32) << 16 | (hint[1] as u32) << 8 | (hint[2] as u32)
}

/// The number of bytes of a hint that are compared. Any bytes may follow a shorter hint.
const OPENING: usize = 4;

/// Groups of similar hints, one for each bit of an entry of the tables.
const GROUPS: usize = 64;
/// Hints of one group, at most.
const GROUP: usize = COUNT.div_ceil(GROUPS);

/// For each of the first bytes of a hint: the groups that have a hint with that byte there.
static TABLES: [[u64; 256]; OPENING] = {
    let mut tables = [[0; 256]; OPENING];
    let mut place = 0;
    while place < COUNT {
        let hint = hint(ORDER[place]).as_bytes();
        let mut index = 0;
        while index < OPENING {
            let (mut byte, last) =
                if index < hint.len() { (hint[index], hint[index]) } else { (0, u8::MAX) };
            loop {
                tables[index][byte as usize] |= 1 << (place / GROUP);
                if byte == last {
                    break;
                }
                byte += 1;
            }
            index += 1;
        }
        place += 1;
    }
    tables
};

/// Places that are looked at together.
const STEP: usize = 8;

/// The first credential at or behind an index.
pub(crate) fn find(scan: &mut Scan, from: usize) -> Option<FoundSecret> {
    let text = scan.text;
    let mut at = from;
    while let Some(bytes) = text.get(at..).and_then(<[u8]>::first_chunk::<{ STEP + OPENING - 1 }>) {
        let groups: [u64; STEP] = std::array::from_fn(|offset| groups_at(&bytes[offset..]));
        if groups.iter().fold(0, |all, groups| all | groups) != 0 {
            let mut begun = groups.iter().enumerate().filter(|(_, groups)| **groups != 0);
            let found = begun.find_map(|(offset, groups)| read_groups(scan, at + offset, *groups));
            if found.is_some() {
                return found;
            }
        }
        at += STEP;
    }
    (at..text.len().saturating_sub(OPENING - 1)).find_map(|at| read(scan, at))
}

/// The groups of which a hint may begin here.
#[inline]
fn groups_at(bytes: &[u8]) -> u64 {
    (0..OPENING).fold(u64::MAX, |groups, index| groups & TABLES[index][usize::from(bytes[index])])
}

/// Reads the credential whose hint begins at the index.
fn read(scan: &mut Scan, at: usize) -> Option<FoundSecret> {
    read_groups(scan, at, groups_at(&scan.text[at..]))
}

/// Reads the credential whose hint, which is in one of the groups, begins at the index.
fn read_groups(scan: &mut Scan, at: usize, mut groups: u64) -> Option<FoundSecret> {
    let rest = &scan.text[at..];
    work::count(1);
    while groups != 0 {
        let group = groups.trailing_zeros() as usize;
        groups &= groups - 1;
        let hints = ORDER.iter().skip(group * GROUP).take(GROUP);
        let mut hints = hints.filter(|number| rest.starts_with(hint(**number).as_bytes()));
        let found = hints.find_map(|number| match number.checked_sub(SHAPES.len()) {
            None => shapes::read(&SHAPES[*number], scan, at),
            Some(special) => SPECIAL[special].1(scan, at),
        });
        if found.is_some() {
            return found;
        }
    }
    None
}
