//! placeholder
pub struct Shells;
