//! Tests of the behaviour that all file tools share.

mod odd_paths;
mod races;
