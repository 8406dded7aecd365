//! Boundaries: places where a conversation continued without its earlier part.
//!
//! A boundary is written together with what stands for that part, and names the earlier records that are still sent. It
//! counts only if all that was written with it is there.

use std::collections::HashSet;

use centurion_protocol::RecordId;
use centurion_protocol::transcript::{Boundary, LineView};

use super::{line_around, parse, places};

/// The offset of the last boundary of a transcript, if it counts.
pub(super) fn last(text: &[u8], is_side: bool) -> Option<usize> {
    let mark = format!("\"subtype\":\"{}\"", Boundary::SUBTYPE);
    let counts = |at: &usize| {
        let Some(view) = parse(line_around(text, *at)) else { return false };
        let is_whole = |last: RecordId| find(&text[*at..], last).is_some();
        view.is_sidechain == is_side
            && view.parent_uuid.is_none()
            && view.boundary().is_some_and(|data| data.last_uuid.is_none_or(is_whole))
    };
    let at = places(text, mark.as_bytes()).into_iter().rev().find(counts)?;
    Some(memchr::memrchr(b'\n', &text[..at]).map_or(0, |end| end + 1))
}

/// The line of a record, if it can be read.
pub(super) fn find(text: &[u8], record: RecordId) -> Option<LineView<'_>> {
    place(text, record).and_then(|at| parse(line_around(text, at)))
}

/// The offset at which a record names its id. Input of a tool may look the same.
pub(super) fn place(text: &[u8], record: RecordId) -> Option<usize> {
    let is_it =
        |at: &usize| parse(line_around(text, *at)).is_some_and(|view| view.uuid == Some(record));
    let mark = format!("\"uuid\":\"{record}\"");
    places(text, mark.as_bytes()).into_iter().rev().find(is_it)
}

/// The records without boundaries that do not count, and without what was written with those.
pub(super) fn without_torn(records: Vec<LineView<'_>>) -> Vec<LineView<'_>> {
    if !records.iter().any(LineView::is_boundary) {
        return records;
    }
    let there: HashSet<RecordId> = records.iter().filter_map(|view| view.uuid).collect();
    let mut torn = HashSet::new();
    let mut whole = Vec::with_capacity(records.len());
    for view in records {
        let last = view.boundary().and_then(|data| data.last_uuid);
        let is_torn = last.is_some_and(|last| !there.contains(&last))
            || view.parent_uuid.is_some_and(|parent| torn.contains(&parent));
        if is_torn {
            torn.extend(view.uuid);
        } else {
            whole.push(view);
        }
    }
    whole
}
