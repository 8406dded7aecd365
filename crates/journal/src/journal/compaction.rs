//! The records of a compaction: they are there whole, or not at all.

use centurion_protocol::RecordId;
use centurion_protocol::transcript::{
    Body, Boundary, BoundaryData, PreservedMessages, PreservedSegment,
};

use super::{Journal, WriteResult};
use crate::round::Round;
use crate::transcript_file::JournalError;

/// A conversation that continues without its earlier part.
pub struct Compaction<'a> {
    /// The size of the part that was left out.
    pub data: BoundaryData,
    /// The replacement. The kept records follow its last line.
    pub lines: Vec<Body<'a>>,
    /// Earlier records that are still sent, before the newest round.
    pub kept: Vec<RecordId>,
    pub round: KeptRound<'a>,
}

/// The treatment of the newest round.
pub enum KeptRound<'a> {
    /// It is sent as it is.
    Whole,
    /// The answer is, and these stand in the place of what came behind it.
    Cut(Vec<Body<'a>>),
    /// It is left out like the rest.
    Dropped,
}

/// The records of a compaction.
#[derive(Debug)]
pub struct Compacted {
    pub boundary: RecordId,
    pub data: BoundaryData,
    /// The ids of its lines.
    pub lines: Vec<RecordId>,
    /// The ids of the records behind the newest answer, if that was cut.
    pub rest: Vec<RecordId>,
}

impl Journal {
    /// Appends that the conversation continues without its earlier part: all of it with one write, so that it is there
    /// whole or not at all.
    pub fn compact(&self, compaction: Compaction<'_>) -> Result<Compacted, JournalError> {
        let mut state = self.state.lock();
        let state = &mut *state;
        let Compaction { mut data, lines, mut kept, round: kept_round } = compaction;
        let ids = |bodies: &[Body<'_>]| -> Vec<RecordId> {
            bodies.iter().map(|_| self.world.record_id()).collect()
        };
        let boundary = self.world.record_id();
        let round = match &kept_round {
            KeptRound::Whole => state.round.clone(),
            KeptRound::Cut(rest) => state.round.followed_by(&ids(rest)),
            KeptRound::Dropped => Round::default(),
        };
        let (rest, rest_ids) = match kept_round {
            KeptRound::Cut(rest) => (rest, round.rest().to_vec()),
            KeptRound::Whole | KeptRound::Dropped => (Vec::new(), Vec::new()),
        };
        let line_ids = ids(&lines);
        let anchor = line_ids.last().copied().unwrap_or(boundary);
        let is_rest = |record: &RecordId| rest_ids.contains(record);
        let sent: Vec<RecordId> =
            round.records().iter().filter(|it| !is_rest(it)).copied().collect();
        data.preserved_segment = sent.first().zip(sent.last()).map(|(head, tail)| {
            PreservedSegment { head_uuid: *head, anchor_uuid: anchor, tail_uuid: *tail }
        });
        kept.retain(|record| !sent.contains(record));
        kept.extend(sent);
        data.preserved_messages =
            Some(PreservedMessages { anchor_uuid: anchor, all_uuids: kept.clone(), uuids: kept });
        data.last_uuid = Some(rest_ids.last().copied().unwrap_or(anchor));
        let session = state.session;
        let body = Body::Boundary(Boundary::new(state.last, &data));
        let mut all = vec![self.line(session, None, boundary, body)];
        let mut parent = boundary;
        let bodies = lines.into_iter().chain(rest);
        for (id, body) in line_ids.iter().chain(&rest_ids).zip(bodies) {
            all.push(self.line(session, Some(parent), *id, body));
            parent = *id;
        }
        let written = self.write(state, &all)?;
        drop(all);
        if written == WriteResult::Kept {
            state.last = data.last_uuid;
        }
        state.round = round;
        Ok(Compacted { boundary, data, lines: line_ids, rest: rest_ids })
    }
}
