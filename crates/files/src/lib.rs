//! Opens files and directories by paths whose links have been resolved, and follows no link on the way.
//!
//! A path is judged first and used later. Between the two, another process can put a link in the place of a
//! directory. So the judged path is opened as it was judged, or not at all, and everything that follows
//! goes through the opened file or directory. Nothing here knows of tools, rules or agents.

mod directory;
mod in_place;
mod location;
mod open;
pub mod private;
mod regular;
mod replace;
mod temporary;

pub use directory::{Directory, Kind, Listed};
pub use location::Location;
pub use open::{exists_without_links, is_link_refusal};
pub use regular::{OpenError, open_followed, open_regular};
pub use replace::{Existing, ReplaceError, create, create_with_mode, replace, replace_alone};
pub use rustix::fs::Stat;
