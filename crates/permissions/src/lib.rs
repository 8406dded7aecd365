//! May this call run? `decide(policy, call)` is a pure function of rules, mode and what the call
//! would touch. No I/O: paths arrive resolved.

mod access;

pub use access::Access;
