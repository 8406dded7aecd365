//! The files of a session: transcripts, written record by record and read back whatever their state,
//! and the output files of agents, for people to read.
//!
//! Knows nothing of agents at work.

mod glance;
mod journal;
mod mirror;
mod output_file;
mod page;
mod round;
pub mod transcript;
mod transcript_file;

pub use glance::Glance;
pub use journal::{Compacted, Compaction, Journal, KeptRound, Recording, Redaction, Stamp};
pub use mirror::Mirror;
pub use output_file::OutputFile;
pub use page::{Page, PageEntry, Speaker};
pub use round::Round;
pub use transcript_file::{JournalError, MOST_TRANSCRIPT, TranscriptFile};
