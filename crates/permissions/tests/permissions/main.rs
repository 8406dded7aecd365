//! Permission from outside the crate: whole decisions, properties, and the shell itself as a judge.

mod against_bash;
mod commands;
mod decide;
mod fixture;
mod layers;
mod links;
mod places;
mod properties;
mod suggestions;
