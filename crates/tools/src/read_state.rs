//! placeholder
pub struct ReadState;
