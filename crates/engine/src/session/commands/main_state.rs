//! Commands about the main agent: what fills its window, its model, a new conversation.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use centurion_config::memory::MemoryTracker;
use centurion_config::skills::{ListingBudget, SkillListing};
use centurion_hooks::events::SessionEnd;
use centurion_journal::JournalError;
use centurion_protocol::RecordId;
use centurion_protocol::sdk::{EventBody, System};
use tokio_util::sync::CancellationToken;

use super::CommandEnd;
use super::show::first_line;
use crate::session::Session;
use crate::session::clear::BegunAnew;
use crate::turn::driver::Run;
use crate::turn::model_switch::Switch;

impl Session {
    /// The usage of the window, by category.
    pub(super) fn context(&self) -> String {
        let parts = self.driver.context_parts();
        let window = self.shared.window_of(&self.driver.settings.model);
        let used: u64 = parts.iter().map(|part| part.tokens).sum();
        let share = |tokens: u64| tokens as f64 * 100.0 / window.max(1) as f64;
        let model = &self.driver.settings.model;
        let rules = self.shared.delegation.builder.context;
        let compacted = match rules.threshold(&self.shared.model.info(model)) {
            Some(most) => format!("from {most} tokens on"),
            None => "not by itself".to_owned(),
        };
        let mut text = format!(
            "## Context usage\n\n**Model:** {model}\n**Tokens:** {used} of {window} ({:.1} %)\n\
             **Compacted:** {compacted}\n\n| Category | Tokens | Share |\n|---|---|---|",
            share(used)
        );
        let free = ("Free", window.saturating_sub(used));
        let parts = parts.into_iter().map(|part| (part.name, part.tokens));
        for (name, tokens) in parts.chain([free]) {
            // Writing to a string cannot fail.
            let _ = write!(text, "\n| {name} | {tokens} | {:.1} % |", share(tokens));
        }
        text
    }

    /// The session in a few lines.
    pub(super) fn status(&self) -> String {
        let settings = &self.driver.settings;
        let mut lines = vec![
            format!("Session: {}", self.shared.id()),
            format!("Version: {}", env!("CARGO_PKG_VERSION")),
            format!("Model: {}", settings.model),
            format!("Mode: {}", self.shared.permissions.mode()),
            format!("Directory: {}", self.init.cwd),
        ];
        lines.extend(self.shared.title().map(|title| format!("Title: {title}")));
        let added = &self.init.additional_directories;
        lines.extend(added.iter().map(|path| format!("Added directory: {path}")));
        lines.join("\n")
    }

    /// The instruction files and notes that are in force.
    pub(super) fn memory_files(&self) -> String {
        let files = self.driver.memory.iter().flat_map(MemoryTracker::files);
        let mut lines: Vec<String> = files.map(|file| file.path.display().to_string()).collect();
        let notes = self.driver.dispatch.agent.notes.as_ref();
        lines.extend(notes.map(|notes| format!("notes: {}", notes.directory().display())));
        if lines.is_empty() { "Nothing is remembered.".to_owned() } else { lines.join("\n") }
    }

    /// The skills, and what the model's list of them leaves out.
    pub(super) fn skills_shown(&self) -> String {
        let catalog = self.shared.delegation.definitions.skills();
        let settings = &self.shared.delegation.builder.sources.skills;
        let window = self.shared.window_of(&self.driver.settings.model);
        let (fraction, each) = (settings.listing_fraction, settings.most_description);
        let listing = SkillListing::new(&catalog, &[], ListingBudget::new(window, fraction, each));
        let mut lines: Vec<String> = Vec::new();
        for skill in &catalog.active {
            let summary = skill.card.summary.as_deref().map(first_line).unwrap_or_default();
            let source = skill.origin.source.as_str();
            lines.push(format!("{}  ({source})  {summary}", skill.name));
        }
        if !listing.shortened.is_empty() {
            lines.push(format!("Named alone, for want of room: {}", listing.shortened.join(", ")));
        }
        if !listing.left_out.is_empty() {
            lines.push(format!("Not told to the model: {}", listing.left_out.join(", ")));
        }
        if lines.is_empty() { "There are no skills.".to_owned() } else { lines.join("\n") }
    }

    /// Uses another model from now on.
    pub(super) async fn change_model(&mut self, name: &str) -> CommandEnd {
        let model = self.shared.model.resolve(name);
        let from = self.driver.settings.model.clone();
        let switch = Switch { from: &from, to: &model, requested: Some(name), source: "command" };
        if let Err(refusal) = switch.check_name(&self.shared) {
            return CommandEnd::Failed(refusal.to_string());
        }
        if let Err(refusal) = (self.shared.delegation.builder.check_model)(&model) {
            return CommandEnd::Failed(refusal.to_string());
        }
        let agent = Arc::clone(&self.driver.dispatch.agent);
        if let Err(refusal) = switch.ask(&agent, &self.shared).await {
            return CommandEnd::Failed(refusal.to_string());
        }
        self.driver.settings.model.clone_from(&model);
        Arc::make_mut(&mut self.init).model.clone_from(&model);
        switch.tell(&agent, &self.shared).await;
        let unknown = self.shared.model.unknown(&model);
        let caution = unknown.map(|it| format!(" Caution: {it}.")).unwrap_or_default();
        CommandEnd::Said(format!("The model is {model} from now on.{caution}"))
    }

    /// Names the session.
    pub(super) fn rename(&self, title: &str) -> CommandEnd {
        // A title stands in lists, a line each.
        let title = title.replace(char::is_control, " ");
        let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
        if title.is_empty() {
            return CommandEnd::Failed("say what the session is to be called".to_owned());
        }
        self.shared.rename(title.clone());
        CommandEnd::Said(format!("The session is called {title} from now on."))
    }

    /// Begins a new conversation, which is another session. What was said stays in the transcript of the one before, and
    /// agents in the background continue.
    pub(super) async fn clear(
        &mut self,
        run: &Run,
        item: RecordId,
        cancel: &CancellationToken,
    ) -> Result<CommandEnd, JournalError> {
        self.driver.dispatch.agent.fire(&SessionEnd { reason: "clear" }, cancel).await;
        let BegunAnew { from, to, record } = match self.begin_anew(run).await? {
            Ok(begun) => begun,
            Err(error) => {
                // Hooks heard of an end that none was.
                self.driver.begin("resume", cancel).await;
                return Ok(CommandEnd::Failed(error.to_string()));
            }
        };
        let reset = EventBody::ConversationReset {
            new_conversation_id: to,
            trigger: "clear",
            user_message_uuid: item,
            timestamp: self.shared.world.now().into(),
        };
        self.shared.show_of(from, record, reset);
        // Hosts that know a session by what it began with hear of the new one.
        self.shared.show(EventBody::System(System::Init(Arc::clone(&self.init))));
        self.driver.begin("clear", cancel).await;
        Ok(CommandEnd::Said(String::new()))
    }

    /// The conversation as text, as the result or in a new file below the working directory.
    pub(super) fn export(&self, file: &str) -> CommandEnd {
        let text = self.driver.conversation_text();
        if text.is_empty() {
            return CommandEnd::Failed("nothing has been said yet".to_owned());
        }
        if file.is_empty() {
            return CommandEnd::Said(text);
        }
        let cwd = Path::new(&self.init.cwd);
        let path: PathBuf = cwd.join(file);
        let failed = |reason: &str| {
            CommandEnd::Failed(format!("{} was not written: {reason}", path.display()))
        };
        // The path may come from a definition, too: the command makes no files elsewhere.
        let parent = path.parent().and_then(|parent| parent.canonicalize().ok());
        if !parent.zip(cwd.canonicalize().ok()).is_some_and(|(it, cwd)| it.starts_with(cwd)) {
            return failed("it is in no directory below the working directory");
        }
        match centurion_redact::keep(&path, &text) {
            Ok(()) => CommandEnd::Said(format!("The conversation is in {}.", path.display())),
            Err(error) => failed(&error.to_string()),
        }
    }
}
