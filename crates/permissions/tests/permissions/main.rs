//! Permission from outside the crate: whole decisions, properties, and comparisons with the shell itself.

mod against_bash;
mod commands;
mod confinement;
mod decide;
mod disk;
mod entry;
mod fixture;
mod freedom;
mod isolated;
mod layers;
mod leaks;
mod links;
mod places;
mod powershell;
mod properties;
mod scripts;
mod secrets;
mod sharing;
mod spellings;
mod suggestions;
mod told;
