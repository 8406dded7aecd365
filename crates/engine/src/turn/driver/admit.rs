//! Admission of input: commands of servers are replaced by their texts, hooks see every input and
//! may keep it out, changed settings take effect.

use std::path::Path;

use centurion_config::memory::{MemoryFile, MemoryOrigin, Scope};
use centurion_config::skills::{SkillEntry, SkillLookupError};
use centurion_hooks::Event;
use centurion_hooks::events::{
    ConfigChange, InstructionsLoaded, SessionStart, UserPromptExpansion, UserPromptSubmit,
};
use centurion_protocol::{Block, Outcome};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{Driver, Run};
use crate::message::manner::Manner;
use crate::message::queue::{Item, Origin, Priority};
use crate::policy::permissions::Objection;
use crate::toolset::servers::Expansion;
use crate::turn::commands::{SWITCHED_OFF, read_command, unknown_command};
use crate::turn::dispatch::HookOutput;
use crate::turn::mention::{self, Mentioning};
use crate::turn::skill::{InvokedSkill, Invoker, KNOWN_TEXT, SkillError, find, invoke};
use crate::turn::typed_command::{MOST_STACKED, TypedLine};
use centurion_journal::JournalError;

/// An input that is kept from the model.
struct RefusedInput {
    reason: String,
    /// The text that goes back to the person who wrote it.
    gives_back: Option<String>,
}

/// The reason why what a person typed is not said to the model.
enum ExpandRefusal {
    /// A hook says no.
    Blocked(String),
    /// It is no command, or one that cannot be carried out.
    Failed(String),
}

impl RefusedInput {
    fn of_command(run: &mut Run, refusal: ExpandRefusal) -> Self {
        let reason = match refusal {
            ExpandRefusal::Blocked(reason) => reason,
            ExpandRefusal::Failed(reason) => {
                run.outcome = Outcome::CommandFailed;
                reason
            }
        };
        Self { reason, gives_back: None }
    }
}

/// The source of a beginning after a compaction.
pub(super) const COMPACT: &str = "compact";

/// The reason why instruction files are read.
#[derive(Clone, Copy, Debug)]
pub(super) enum Loads<'a> {
    AtStart,
    AfterCompaction,
    /// A file was read in whose place they apply.
    ForFile(&'a Path),
}

impl Driver {
    /// Lets hooks see what is due. `None` if something was and nothing is left of it.
    pub(super) async fn admit(
        &mut self,
        run: &mut Run,
        items: &[Item],
        cancel: &CancellationToken,
    ) -> Result<Option<Vec<Item>>, JournalError> {
        if let Some(reason) = self.aside.stop.take() {
            // Hooks of the session's start ended the run before it began.
            self.keep_all_out(run, items, &reason)?;
            return Ok(None);
        }
        if items.iter().any(|item| matches!(item.origin, Origin::Person)) {
            self.end_skills();
        }
        let mut admitted = Vec::with_capacity(items.len());
        let mut aside = HookOutput::default();
        for item in items {
            let mut item = item.clone();
            let mut skills = Vec::new();
            let refused = match item.origin {
                Origin::Hook | Origin::Delegation | Origin::Message { .. } => None,
                Origin::Person if item.manner.is_verbatim => {
                    self.submit(&item, &mut aside, cancel).await
                }
                // Only what people type is expanded, and that takes much room in an agent's future.
                Origin::Initial => {
                    let expanding = self.expand(&mut item, &mut skills, &mut aside, cancel);
                    let refused = Box::pin(expanding).await;
                    refused.map(|refusal| RefusedInput::of_command(run, refusal))
                }
                Origin::Person => {
                    let pastes = item.split_pastes();
                    let typed = text(&item.content);
                    let expanding = self.expand(&mut item, &mut skills, &mut aside, cancel);
                    let refused = Box::pin(expanding).await;
                    item.rejoin_pastes(&typed, pastes);
                    match refused {
                        Some(refusal) => Some(RefusedInput::of_command(run, refusal)),
                        None => self.submit(&item, &mut aside, cancel).await,
                    }
                }
                Origin::TaskNotification { .. }
                | Origin::TaskNotifications { .. }
                | Origin::TeammateIdle { .. }
                | Origin::Schedule { .. }
                | Origin::MissedSchedules { .. } => self.submit(&item, &mut aside, cancel).await,
            };
            match refused {
                None => {
                    self.put_in_force(&skills);
                    admitted.push(item);
                }
                Some(RefusedInput { reason, gives_back }) => {
                    self.keep_all_out(run, &[item], &reason)?;
                    if let Some(prompt) = gives_back {
                        self.dispatch.agent.inform("info", format!("the input was: {prompt}"));
                    }
                }
            }
        }
        self.aside.context.append(&mut aside.context);
        if let Some(reason) = aside.stop {
            self.keep_all_out(run, &admitted, &reason)?;
            admitted.clear();
        }
        Ok((!admitted.is_empty() || items.is_empty()).then_some(admitted))
    }

    /// Notes that inputs were kept from the model; what they said is not kept. Messages of agents stay pending:
    /// their senders were told that they will be read.
    pub(super) fn keep_all_out(
        &self,
        run: &mut Run,
        items: &[Item],
        reason: &str,
    ) -> Result<(), JournalError> {
        let is_mail = |item: &&Item| matches!(item.origin, Origin::Message { .. });
        for item in items.iter().filter(|item| !is_mail(item)) {
            let origin = item.recorded_origin();
            let data = json!({"item": item.id, "reason": reason, "origin": origin});
            self.journal.note("prompt_blocked", &data)?;
            self.shared.queue.delivered(&[item.id]);
            self.dispatch
                .agent
                .inform("warning", format!("the input was kept from the model: {reason}"));
            run.errors.push(reason.to_owned());
        }
        Ok(())
    }

    /// Replaces a command by what it stands for, and adds what is mentioned.
    async fn expand(
        &self,
        item: &mut Item,
        skills: &mut Vec<InvokedSkill>,
        aside: &mut HookOutput,
        cancel: &CancellationToken,
    ) -> Option<ExpandRefusal> {
        let text = text(&item.content);
        let servers = &self.dispatch.agent.servers;
        let mentioned = servers.mentioned(&text).await;
        let mut files = mention::attached(&self.dispatch, &[Mentioning::all(&text)], cancel).await;
        let has_commands = self.shared.delegation.definitions.has_commands();
        let refused = match (servers.command(&text), read_command(&self.shared, &text)) {
            (command, _) if !has_commands => {
                let typed = TypedLine::read(&text);
                let is_command = command.is_some() || typed.is_some_and(|it| !it.may_be_path());
                is_command.then(|| ExpandRefusal::Failed(SWITCHED_OFF.to_owned()))
            }
            (Some(command), _) => self.expand_prompt(item, &command, &text, aside, cancel).await,
            (None, Some(typed)) => {
                match self.expand_skills(item, typed, &text, aside, cancel).await {
                    Ok(invoked) => {
                        *skills = invoked;
                        for skill in skills.iter().filter(|it| !self.knows(it)) {
                            mention::add_new(&mut files, skill.attached.clone());
                        }
                        None
                    }
                    Err(refused) => Some(refused),
                }
            }
            (None, None) => None,
        };
        let files = files.into_iter().map(|file| file.text);
        item.content.extend(mentioned.into_iter().chain(files).map(Block::Text));
        refused
    }

    /// Asks hooks whether a command may be replaced by what it stands for.
    async fn ask_expansion(
        &self,
        expansion: &UserPromptExpansion<'_>,
        aside: &mut HookOutput,
        cancel: &CancellationToken,
    ) -> Option<ExpandRefusal> {
        let fired = self.dispatch.agent.fire(expansion, cancel).await;
        aside.take(fired.context_for_model(), &fired.effects);
        fired.verdict.0.map(ExpandRefusal::Blocked)
    }

    /// Puts what a prompt of a server stands for in its place.
    async fn expand_prompt(
        &self,
        item: &mut Item,
        command: &Expansion,
        text: &str,
        aside: &mut HookOutput,
        cancel: &CancellationToken,
    ) -> Option<ExpandRefusal> {
        let expansion = UserPromptExpansion {
            expansion_type: "mcp_prompt",
            command_name: &command.command,
            command_args: &command.arguments,
            command_source: "mcp",
            prompt: text,
        };
        if let Some(refused) = self.ask_expansion(&expansion, aside, cancel).await {
            return Some(refused);
        }
        match command.run().await {
            Ok(blocks) => {
                item.content = blocks;
                None
            }
            Err(error) => Some(ExpandRefusal::Failed(error.to_string())),
        }
    }

    /// Puts the texts of skills in the place of their names. Several at the beginning share what follows.
    async fn expand_skills(
        &self,
        item: &mut Item,
        typed: TypedLine<'_>,
        text: &str,
        aside: &mut HookOutput,
        cancel: &CancellationToken,
    ) -> Result<Vec<InvokedSkill>, ExpandRefusal> {
        let catalog = self.shared.delegation.definitions.skills_now();
        let failed = |error: &SkillError| ExpandRefusal::Failed(error.to_string());
        let (mut entries, mut arguments) = (Vec::new(), typed.arguments);
        match find(&catalog, typed.name, Invoker::Person) {
            Ok(entry) if entry.card.is_fork => {
                return Err(failed(&SkillError::NotAlone(entry.name.clone())));
            }
            Ok(entry) => entries.push(entry),
            Err(SkillError::Lookup(_)) if typed.may_be_path() => return Ok(Vec::new()),
            Err(SkillError::Lookup(SkillLookupError::Unknown { .. })) => {
                let reason = unknown_command(&self.shared, typed.name);
                return Err(ExpandRefusal::Failed(reason));
            }
            Err(error) => return Err(failed(&error)),
        }
        while let Some(next) =
            TypedLine::read_among(arguments, &catalog).filter(|_| entries.len() < MOST_STACKED)
            && let Ok(entry) = find(&catalog, next.name, Invoker::Person)
        {
            if entry.card.is_fork {
                return Err(failed(&SkillError::NotAlone(entry.name.clone())));
            }
            entries.push(entry);
            arguments = next.arguments;
        }
        let (mut blocks, mut invoked) = (Vec::new(), Vec::new());
        for entry in entries {
            let expansion = expansion_of(&entry, arguments, text);
            if let Some(refused) = self.ask_expansion(&expansion, aside, cancel).await {
                return Err(refused);
            }
            let (agent, given) = (&self.dispatch.agent, (arguments, Invoker::Person));
            let invoking = invoke(&self.shared, agent, &catalog, &entry, given, cancel);
            let skill = invoking.await.map_err(|error| failed(&error))?;
            let [head, text] = skill.text.typed_blocks(arguments);
            let text = if self.knows(&skill) { KNOWN_TEXT.to_owned() } else { text };
            blocks.extend([head, text].map(Block::Text));
            invoked.push(skill);
        }
        let others = item.content.iter().filter(|block| !matches!(block, Block::Text(_)));
        blocks.extend(others.cloned());
        item.content = blocks;
        Ok(invoked)
    }

    /// Tells whether the conversation has the text of a skill, and the files that go along with it.
    fn knows(&self, skill: &InvokedSkill) -> bool {
        self.dispatch.agent.knows_skill_text(&skill.definition.name, &skill.for_agent())
    }

    /// Puts skills in force whose texts the model is about to be told.
    fn put_in_force(&self, skills: &[InvokedSkill]) {
        let agent = &self.dispatch.agent;
        for skill in skills {
            agent.put_in_force(&skill.definition);
            agent.note_skill_text(&skill.definition.name, &skill.for_agent());
        }
    }

    /// Lets hooks see a typed command that an agent of its own carries out; why it is not carried out, if so.
    pub(crate) async fn admit_forked(
        &mut self,
        item: &Item,
        entry: &SkillEntry,
        arguments: &str,
        cancel: &CancellationToken,
    ) -> Option<String> {
        let (prompt, mut aside) = (text(&item.content), HookOutput::default());
        let expansion = expansion_of(entry, arguments, &prompt);
        let refused = match self.ask_expansion(&expansion, &mut aside, cancel).await {
            Some(ExpandRefusal::Blocked(reason) | ExpandRefusal::Failed(reason)) => Some(reason),
            None => self.submit(item, &mut aside, cancel).await.map(|refused| refused.reason),
        };
        self.aside.context.append(&mut aside.context);
        refused.or(aside.stop)
    }

    /// Lets hooks see an input; why it is kept out, if it is.
    async fn submit(
        &self,
        item: &Item,
        aside: &mut HookOutput,
        cancel: &CancellationToken,
    ) -> Option<RefusedInput> {
        let agent = &self.dispatch.agent;
        agent.set_prompt(Some(item.id));
        if !agent.has_hooks(Event::UserPromptSubmit) {
            return None;
        }
        let prompt = text(&item.content);
        let fired = agent.fire(&UserPromptSubmit { prompt: &prompt }, cancel).await;
        aside.take(fired.context_for_model(), &fired.effects);
        let verdict = fired.verdict;
        self.name_session(verdict.session_title.as_deref());
        if let Some(reason) = verdict.block.0 {
            let is_given_back = matches!(item.origin, Origin::Person) && !verdict.suppress_original;
            return Some(RefusedInput { reason, gives_back: is_given_back.then_some(prompt) });
        }
        // A hook that was cut off might have said no. News of background work is not lost for that.
        let is_cut_off = cancel.is_cancelled() && matches!(item.origin, Origin::Person);
        let reason = "the run was interrupted before its hooks had answered";
        is_cut_off.then(|| RefusedInput { reason: reason.to_owned(), gives_back: None })
    }

    /// The session begins, or begins again. What a hook wants to be said first goes to the queue.
    pub(crate) async fn begin(&mut self, source: &str, cancel: &CancellationToken) {
        if let Some(memory) = &self.memory {
            let loads = if source == COMPACT { Loads::AfterCompaction } else { Loads::AtStart };
            self.tell_instructions(memory.files(), loads).await;
        }
        let agent = &self.dispatch.agent;
        let model = Some(self.settings.model.as_str());
        let title = self.shared.title();
        let start = SessionStart { source, model, session_title: title.as_deref() };
        let fired = agent.fire(&start, cancel).await;
        self.aside.take(fired.context_for_model(), &fired.effects);
        self.name_session(fired.verdict.session_title.as_deref());
        if fired.verdict.reload_skills {
            self.shared.delegation.definitions.expire_skills();
        }
        if let Some(text) = fired.verdict.initial_user_message {
            self.shared.queue.push(Item {
                id: self.shared.world.record_id(),
                priority: Priority::Now,
                addressee: self.identity().id.clone(),
                content: vec![Block::Text(text)],
                origin: Origin::Person,
                manner: Manner::default(),
            });
        }
    }

    /// Tells hooks which instructions begin to count.
    pub(super) async fn tell_instructions(&self, files: &[MemoryFile], loads: Loads<'_>) {
        let agent = &self.dispatch.agent;
        if !agent.has_hooks(Event::InstructionsLoaded) {
            return;
        }
        for file in files {
            let trigger = match loads {
                Loads::ForFile(path) => Some(path),
                Loads::AtStart | Loads::AfterCompaction => None,
            };
            let (load_reason, parent, globs) = match (&file.origin, loads) {
                (MemoryOrigin::ImportedBy(parent), _) => ("include", Some(parent.as_path()), None),
                (MemoryOrigin::ScopedRule(globs), _) => {
                    ("path_glob_match", None, Some(globs.as_slice()))
                }
                (_, Loads::AtStart) => ("session_start", None, None),
                (_, Loads::AfterCompaction) => (COMPACT, None, None),
                (_, Loads::ForFile(_)) => ("nested_traversal", None, None),
            };
            let loaded = InstructionsLoaded {
                file_path: &file.path,
                memory_type: match file.scope {
                    Scope::Managed => "Managed",
                    Scope::User => "User",
                    Scope::Project => "Project",
                    Scope::Local => "Local",
                },
                load_reason,
                globs,
                trigger_file_path: trigger,
                parent_file_path: parent,
            };
            agent.fire(&loaded, &CancellationToken::new()).await;
        }
    }

    /// Applies settings that changed on disk, unless a hook keeps them out. Before that, hooks hear of files
    /// that they watch.
    pub(crate) async fn refresh(&self, cancel: &CancellationToken) {
        self.dispatch.agent.fire_file_changes(cancel).await;
        self.dispatch.agent.refresh_skills(cancel).await;
        let permissions = &self.dispatch.agent.permissions;
        let Some(change) = permissions.changed() else { return };
        let mut objection = None;
        for (source, file) in &change.files {
            let changed = ConfigChange { source, file_path: Some(file) };
            let fired = self.dispatch.agent.fire(&changed, cancel).await;
            if let Some(reason) = fired.verdict.reason() {
                objection = Some(Objection::Refused);
                let message =
                    format!("a hook keeps the change of {} out: {reason}", file.display());
                self.dispatch.agent.inform("warning", message);
            }
        }
        // A hook that was cut off might have said no.
        let is_heard =
            !cancel.is_cancelled() || !self.dispatch.agent.has_hooks(Event::ConfigChange);
        let objection = objection.or((!is_heard).then_some(Objection::Unheard));
        // Changes of the machine's administrator count, whatever else changed with them.
        let is_managed = change.files.iter().any(|(source, _)| *source == "policy_settings");
        if let Some(objection) = objection.filter(|_| !is_managed) {
            permissions.keep_out(change, objection);
        } else {
            permissions.replace_rules(change.rules);
            self.dispatch.agent.replace_hooks(change.hooks, change.hook_rules);
        }
    }
}

/// The words of an input.
fn text(content: &[Block]) -> String {
    let text = |block: &Block| match block {
        Block::Text(text) => Some(text.clone()),
        _ => None,
    };
    content.iter().filter_map(text).collect::<Vec<_>>().join("\n")
}

/// A skill as hooks are told of it when a person types its name.
fn expansion_of<'a>(
    entry: &'a SkillEntry,
    arguments: &'a str,
    prompt: &'a str,
) -> UserPromptExpansion<'a> {
    UserPromptExpansion {
        expansion_type: "slash_command",
        command_name: &entry.name,
        command_args: arguments,
        command_source: entry.origin.source.as_str(),
        prompt,
    }
}
