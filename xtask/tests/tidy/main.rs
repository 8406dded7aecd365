//! Tidiness that no compiler checks: how files look, which crate knows which, and that the documents
//! are in step with the tests.

mod code;
mod dependencies;
mod documents;
mod errors;
mod folders;
mod layers;
mod modules;
mod names;
mod promises;
mod reads;
mod requirements;
mod sizes;
mod skips;
mod sources;
mod surface;
mod tree;
mod words;
mod writes;
