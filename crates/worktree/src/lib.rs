//! Worktrees of agents. Knows git and files, nothing of models or rules.
//!
//! An agent that works apart has a checkout of its own, `<repository>/.claude/worktrees/<slug>`, on a branch of its own. To
//! the repository it is a linked worktree like any other. While the agent works, though, the checkout's `.git` file leads
//! to a **private repository** (`<git directory>/centurion/worktrees/<slug>/git`): objects, refs, stashes, index and logs
//! that the agent makes are there, and the objects of the repository are read through `objects/info/alternates`. So
//! ordinary git work of the agent writes nothing that is shared, and a sandbox can keep all that is shared read-only.
//!
//! - [`create`](Worktrees::create) makes one, or opens one that is there.
//! - [`finish`](Worktrees::finish) ends the work: unless everything is as it was made, it is **brought home**: the
//!   history is fetched into the repository (git checks every object), the branch is set, whatever else was made is kept
//!   under `refs/centurion/agents/<id>/`, and the checkout becomes an ordinary linked worktree. [`settle`](Worktrees::settle)
//!   then removes it if nothing was done.
//! - [`list`](Worktrees::list) tells what there is, also what a process left that died; [`mend`](Worktrees::mend) brings that home.
//! - [`merge`] makes the commits that a merge needs beside all checkouts, and moves the caller's by a fast-forward: it
//!   succeeds, or leaves everything as it was. What a process left that died in between is mended like the rest.
//!
//! Each worktree has a record (`record.json`), written before the thing that it speaks of, and a lease, which the process
//! that uses the worktree holds. Every step can be the last one of a process: the record, the `.git` file and the refs say
//! how far it came.

mod branch;
mod checkout;
mod contents;
mod create;
mod entry;
mod exact;
mod files;
mod git;
mod home;
mod hooked;
mod index;
mod kept;
mod lfs;
mod lock;
mod mend;
pub mod merge;
mod names;
mod operation;
mod ordinary;
mod own_branch;
mod pipes;
mod place;
mod plain;
mod private;
mod record;
mod refs;
mod register;
mod remove;
mod report;
mod restore;
mod salvage;
mod saved;
mod shadow;
mod slug;
mod snapshot;
mod state;
mod surroundings;
mod unreached;
mod untouched;
mod whole_index;
mod worktrees;

pub use checkout::{Checkout, CheckoutError};
pub use contents::Contents;
pub use create::{CreateError, Wish};
pub use entry::{Entry, Standing, left_in};
pub use git::{Direct, Git, GitError, Program, ProgramOutput, RunProgram, Running, read};
pub use hooked::HookedCheckout;
pub use kept::{KeptError, Unsaved};
pub use mend::{MendError, Mended};
pub use operation::Operation;
pub use private::PrivateRepository;
pub use record::{Lease, Owner, Record};
pub use remove::Trash;
pub use report::{ChangedFile, DryMerge, Report};
pub use slug::{Slug, SlugError};
pub use state::Work;
pub use surroundings::{PlaceError, Surroundings, check_directory};
pub use worktrees::{Finished, SettleError, Settled, Worktree, Worktrees};
