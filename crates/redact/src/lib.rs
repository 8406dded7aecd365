//! Credentials of known shapes, taken out of text before it reaches a file.
//!
//! [`redact`] works on whole pieces of text: a record, a result, a line of a log. [`Stream`] works on text
//! that arrives piece by piece. [`keep`] writes what a session keeps beside its transcript. All read plain text and JSON alike, JSON inside JSON strings included.
//!
//! One pass looks for the hints with which a credential may begin. Only where a hint stands is anything
//! else read.

mod hint;
mod kept_file;
mod keyed;
mod pem;
mod replace;
mod scan;
mod shapes;
mod stream;
mod url;

pub use kept_file::{keep, keep_over};
pub use replace::{redact, redact_text};
pub use stream::Stream;

use std::ops::Range;

use scan::Scan;

/// A credential that was found: what it is, and the bytes that are taken out.
#[derive(Debug, PartialEq, Eq)]
struct FoundSecret {
    kind: &'static str,
    range: Range<usize>,
}

/// Looks for a credential at a hint, which begins at the index; nothing if ordinary text stands there.
type Reader = fn(&mut Scan, usize) -> Option<FoundSecret>;
