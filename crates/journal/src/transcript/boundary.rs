//! Boundaries: places where a conversation went on without its earlier part.
//!
//! A boundary is written together with what stands for that part, and names the earlier records that are still sent. It
//! counts only if all that was written with it is there.

use std::collections::HashSet;

use centurion_protocol::RecordId;
use centurion_protocol::transcript::{Boundary, LineView};

use super::{last_place, line_around, parse};

/// Where the last boundary of a transcript begins, if it counts.
pub(super) fn last(text: &[u8], is_side: bool) -> Option<usize> {
    // Text inside a record has its quotes escaped, so that only a boundary looks like this.
    let mark = format!("\"subtype\":\"{}\"", Boundary::SUBTYPE);
    let at = last_place(text, mark.as_bytes())?;
    let start = memchr::memrchr(b'\n', &text[..at]).map_or(0, |end| end + 1);
    let view = parse(line_around(text, at))?;
    let counts = view.is_sidechain == is_side && view.parent_uuid.is_none();
    let is_whole = |last: RecordId| find(&text[start..], last).is_some();
    let data = view.boundary().filter(|_| counts)?;
    data.last_uuid.is_none_or(is_whole).then_some(start)
}

/// The line of a record.
pub(super) fn find(text: &[u8], record: RecordId) -> Option<&[u8]> {
    place(text, record).map(|at| line_around(text, at))
}

/// Where a record says who it is.
pub(super) fn place(text: &[u8], record: RecordId) -> Option<usize> {
    last_place(text, format!("\"uuid\":\"{record}\"").as_bytes())
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
