//! The common part of all fronts of the program: the event stream of a session, its views, its answerers and its end.
//!
//! A front (the headless printers and the SDK channel now) shows the events of a session to one reader.
//! It is a [`Front`]: a view that is told when the session is over, and says whether its reader got everything.
//! [`Fronts`] shows one session to several readers.
//!
//! A front that can answer questions is an [`Answerer`], attached to the [`Answerers`] of its session.
//!
//! A host speaks the control protocol: [`HostChannel`] asks it and waits for its responses, [`Control`] answers what
//! it asks. Where its lines come from is the front's matter.
//!
//! # A reader that is slow
//!
//! The output of a front goes through an [`OutputQueue`]: bytes in the order in which they came, written at once
//! while the reader has room, and else by a thread of their own. A front that is made of more than bytes can have its
//! own queue, under the same policy:
//!
//! 1. **Nothing that was promised is lost.** Events and control messages reach the reader whole and in order,
//!    partial messages included: a reader gets those only if it asked for them.
//! 2. **Memory is bounded.** About 512 KiB wait in memory, and the event that is being added. What comes on top of
//!    that waits in files without a name, which are gone when they were read, or with the process.
//! 3. **No agent stalls** because its reader does not read for a while. Only when 128 MiB wait on disk does an
//!    agent wait before its next request ([`View::wait_for_room`]), and a host's next line is not read. This
//!    wait holds up neither signals nor other work: it is a task's wait, not a thread's.
//! 4. **The end is told.** [`Front::finish`] waits for the reader and says whether everything was written. Once
//!    the program has been told to end, a reader that takes nothing for two seconds is not waited for.
//! 5. **A reader that goes away** ends the queue: nothing more is kept for it, and the run is told.
//!
//! Knows nothing of standard streams, directories and signals: where bytes go and where they wait is handed in.
//!
//! [`Answerer`]: centurion_engine::Answerer
//! [`View::wait_for_room`]: centurion_engine::View::wait_for_room

mod answerers;
mod channel;
mod control;
mod front;
mod fronts;
mod json_view;
mod last_answer;
mod model_limits;
mod output_queue;
mod request_id;
mod requests;
mod spill;
mod stream_view;
mod transcript_mirror;

use serde_json::Value;

pub use answerers::{Answerers, Attachment};
pub use channel::{ForServers, HostChannel, NoResponse, reply};
pub use control::{
    Control, Declarations, DeskError, LoadedPlugins, OwnFileNames, PluginSource, PluginsUnreadable,
    SettingsDesk, SettingsView,
};
pub use front::{FinishFuture, Front};
pub use fronts::Fronts;
pub use json_view::JsonView;
pub use last_answer::LastAnswer;
pub use model_limits::{ModelLimits, ModelRefused};
pub use output_queue::{OutputQueue, Sink};
pub use request_id::RequestId;
pub use requests::Requests;
pub use spill::OpenSpill;
pub use stream_view::StreamView;
pub use transcript_mirror::TranscriptMirror;

/// An object without the fields that say nothing: hosts take a field that is there for a value.
fn without_nulls(mut object: Value) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    object
}
