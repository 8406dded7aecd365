//! The newest round of a conversation: the last answer, and all that came behind it.

use centurion_protocol::RecordId;

/// The records of the last answer, and all behind it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// The provider's id of the answer.
    answer: String,
    /// The number of records that belong to the answer itself.
    own: usize,
    records: Vec<RecordId>,
}

impl Round {
    /// Takes the next record of the conversation: a part of an answer, or something else.
    pub(crate) fn add(&mut self, record: RecordId, answer: Option<&str>) {
        if let Some(id) = answer {
            if id != self.answer || self.own < self.records.len() {
                self.answer.clear();
                self.answer.push_str(id);
                self.records.clear();
                self.own = 0;
            }
            self.own += 1;
        } else if self.own == 0 {
            // Nothing was answered yet.
            return;
        }
        self.records.push(record);
    }

    /// Begins with an answer of which these are the records.
    pub(crate) fn begin(&mut self, answer: &str, records: &[RecordId]) {
        self.answer.clear();
        self.answer.push_str(answer);
        self.own = records.len();
        self.records.clear();
        self.records.extend(records);
    }

    /// Takes what came behind the answer, if there is one.
    pub(crate) fn extend(&mut self, records: &[RecordId]) {
        if self.own > 0 {
            self.records.extend(records);
        }
    }

    /// The records behind the answer.
    pub(crate) fn rest(&self) -> &[RecordId] {
        &self.records[self.own..]
    }

    pub(crate) fn records(&self) -> &[RecordId] {
        &self.records
    }

    /// The same answer with other records behind it.
    pub(crate) fn followed_by(&self, rest: &[RecordId]) -> Self {
        let records = self.records[..self.own].iter().chain(rest).copied().collect();
        Self { answer: self.answer.clone(), own: self.own, records }
    }
}
