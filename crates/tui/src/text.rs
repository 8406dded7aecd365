//! Text as lines: foreign text made safe, Markdown block by block, code and diffs.

mod diff;
mod foreign;
mod highlight;
mod markdown;
mod sgr;
mod width;
mod wrap;

pub use diff::diff;
pub(crate) use diff::diff_beginning;
pub use foreign::{foreign, foreign_text};
pub use highlight::highlighted;
pub use markdown::MarkdownStream;
pub(crate) use sgr::coloured;
pub(crate) use width::{graphemes, text_width};
pub use wrap::{PROSE_COLUMNS, wrapped};
