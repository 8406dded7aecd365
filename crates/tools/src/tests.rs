//! Tests of what all file tools have in common.

mod odd_paths;
mod races;
