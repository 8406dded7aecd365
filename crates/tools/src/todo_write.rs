//! placeholder
pub struct Todo;
