//! Events about hooks: their runs, for observers, and the output of hooks that were not waited for.

use std::sync::Weak;

use centurion_hooks::{Event, HookProgress, HookResponse, HookStarted, HookWatcher, LateReply};
use centurion_protocol::Block;
use centurion_protocol::sdk::{EventBody, System};
use serde_json::{Value, to_value};

use crate::agent::hooks::reminder;
use crate::agent::shared::Shared;
use crate::message::manner::Manner;
use crate::message::queue::{Item, Origin, Priority};

/// Watches the hooks of a session.
pub(crate) struct HookWatch {
    /// Weak, because the session owns the hooks.
    pub(crate) shared: Weak<Shared>,
    /// True if every run of a hook is an event, and not only those at the start of a session.
    pub(crate) shows_runs: bool,
}

impl HookWatch {
    /// Shows a run of a hook. Hosts are told of those at the start of a session without asking for them.
    fn show(&self, at: Event, event: impl FnOnce(Value) -> System, hook: &impl serde::Serialize) {
        let is_shown = self.shows_runs || matches!(at, Event::SessionStart | Event::Setup);
        if is_shown
            && let Some(shared) = self.shared.upgrade()
            && let Ok(hook) = to_value(hook)
        {
            shared.show(EventBody::System(event(hook)));
        }
    }
}

impl HookWatcher for HookWatch {
    fn started(&self, hook: HookStarted) {
        self.show(hook.hook_event, System::HookStarted, &hook);
    }

    fn progressed(&self, hook: HookProgress) {
        self.show(hook.hook_event, System::HookProgress, &hook);
    }

    fn ended(&self, hook: HookResponse) {
        self.show(hook.hook_event, System::HookResponse, &hook);
    }

    fn late(&self, reply: LateReply) {
        let Some(shared) = self.shared.upgrade() else { return };
        if let Some(error) = &reply.error {
            let text = format!("{} hook error: {error}", reply.hook_name);
            shared.inform(reply.agent.as_ref(), "warning", text);
        }
        for text in reply.context {
            shared.add_side_note(reply.agent.clone(), text);
        }
        if let Some(text) = &reply.wakes {
            let hears = shared.living(reply.agent.as_ref());
            let news = Item {
                id: shared.world.record_id(),
                priority: Priority::Later,
                addressee: None,
                content: vec![Block::Text(reminder(text))],
                origin: Origin::Hook,
                manner: Manner::default(),
            };
            // One that ends in this moment passes it on.
            shared.queue.tell(hears.as_ref(), news);
        }
    }
}
