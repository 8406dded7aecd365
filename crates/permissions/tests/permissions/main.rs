//! Permission from outside the crate: whole decisions, properties, and the shell itself as a judge.

mod against_bash;
mod commands;
mod confinement;
mod decide;
mod entry;
mod fixture;
mod layers;
mod links;
mod places;
mod powershell;
mod properties;
mod suggestions;
