//! Both providers against servers that misbehave, over real sockets.

mod faults;
mod limits;
mod support;
