//! The contents of a folder now beside those that were accepted.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::AcceptedItem;

/// Everything that differs, in the order of files and items.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    pub changes: Vec<ItemChange>,
}

/// An item that was added, changed or removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemChange {
    /// From the top of the folder.
    pub file: PathBuf,
    pub item: String,
    /// The accepted text; `None` if the item is new.
    pub before: Option<String>,
    /// The present text; `None` if the item is gone.
    pub after: Option<String>,
}

impl Difference {
    pub(super) fn new(accepted: &[AcceptedItem], mut present: Vec<AcceptedItem>) -> Self {
        present.sort();
        present.dedup();
        let mut slots: BTreeMap<(PathBuf, String), (Vec<String>, Vec<String>)> = BTreeMap::new();
        let is_same = |one: &AcceptedItem, other: &AcceptedItem| {
            (&one.file, &one.item, &one.digest) == (&other.file, &other.item, &other.digest)
        };
        for item in accepted.iter().filter(|it| !present.iter().any(|other| is_same(it, other))) {
            let slot = slots.entry((item.file.clone(), item.item.clone())).or_default();
            slot.0.push(item.text.clone());
        }
        for item in present.iter().filter(|it| !accepted.iter().any(|other| is_same(it, other))) {
            let slot = slots.entry((item.file.clone(), item.item.clone())).or_default();
            slot.1.push(item.text.clone());
        }
        let mut changes = Vec::new();
        for ((file, item), (before, after)) in slots {
            let (mut before, mut after) = (before.into_iter(), after.into_iter());
            loop {
                let (before, after) = (before.next(), after.next());
                if before.is_none() && after.is_none() {
                    break;
                }
                changes.push(ItemChange { file: file.clone(), item: item.clone(), before, after });
            }
        }
        Self { changes }
    }

    /// Whether something is there that was not accepted.
    pub fn has_unaccepted(&self) -> bool {
        self.changes.iter().any(|change| change.after.is_some())
    }
}
