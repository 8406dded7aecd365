//! Permission from outside the crate: whole decisions, properties, and the shell itself as a judge.

mod against_bash;
mod decide;
mod fixture;
mod places;
mod properties;
