//! Worktrees in real repositories, by the real git.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod broken_merges;
mod collisions;
mod counting;
mod crashes;
mod creating;
mod crowds;
mod exchanged;
mod few_processes;
mod forgeries;
mod hooked;
mod keeping;
mod kinds;
mod lfs;
mod merging;
mod odd_names;
mod pipes;
mod programs;
mod pruned;
mod quiet;
mod registering;
mod settling;
mod support;
mod swapped;
mod tables;
mod told_rightly;
mod unfinished;
mod unlogged;
mod unseen;
mod untouched;
