//! The listing of skills for an agent, and the effect of skills in force on its requests.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use centurion_config::skills::{ListingBudget, SkillEntry, SkillListing};
use centurion_journal::JournalError;
use centurion_journal::transcript::{SKILL_USED, UsedSkill};
use memchr::memmem;

use super::Driver;
use crate::agent::builder::SKILL_TOOL;
use crate::agent::hooks::reminder;
use crate::turn::dispatch::Dispatch;

/// The kind of the records that hold the list of skills.
pub(super) const SKILL_LISTING: &str = "skill_listing";

/// The introductions of the list of skills, and of texts that are told again.
const LISTED: &str =
    "Skills that you can invoke with the Skill tool. Invoke one when the task is what it is for:";
const USED: &str = "Skills that you have used. What they say still counts:";

/// The beginnings of the same texts in a conversation.
pub(super) const LISTING_BEGINS: &str =
    "<system-reminder>\nSkills that you can invoke with the Skill tool.";
pub(super) const USED_AGAIN: &str = "<system-reminder>\nSkills that you have used.";

/// The most bytes of one skill's text that are told again after a compaction, and of all together.
const MOST_AGAIN: (usize, usize) = (20_000, 100_000);

/// The most skills that are named without their texts.
const MOST_NAMES: usize = 40;

/// The note in the place of the rest of a skill's text.
const SKILL_CUT: &str =
    "\n[The rest of this skill is left out for want of room. Invoke it again where you need it.]";

impl Driver {
    /// Offers the tool that invokes skills as soon as there is one: the first may come while the session runs.
    pub(crate) fn refresh_skill_tool(&mut self) {
        let shared = &self.shared;
        if !shared.delegation.definitions.has_skills_for_models() {
            return;
        }
        let Dispatch { toolbox, agent, .. } = &mut self.dispatch;
        let builder = &shared.delegation.builder;
        toolbox.admit((builder.engine_tools.invoking)(agent), &builder.offer_to(agent, shared));
    }

    /// The list of skills, where the agent can invoke them and does not know it as it is now.
    pub(super) fn skill_news(&mut self, has_input: bool) -> Option<String> {
        let is_fork = self.task().is_some_and(|task| task.spec.is_fork());
        if is_fork || self.dispatch.toolbox.withholds(SKILL_TOOL) {
            return None;
        }
        let files = self.dispatch.agent.workspace.read_state.paths();
        if !has_input && files.len() == self.dispatch.agent.skill_view().files {
            return None;
        }
        self.dispatch.agent.skill_view().files = files.len();
        let definitions = &self.shared.delegation.definitions;
        let has_new = definitions.touch(files.iter().map(|file| &**file));
        if !has_input && !has_new && !has_scoped(&definitions.skills().active) {
            return None;
        }
        self.refresh_skill_tool();
        if self.dispatch.toolbox.get(SKILL_TOOL).is_err() {
            return None;
        }
        let text = self.skill_listing(&files)?;
        let earlier = self.dispatch.agent.skill_view().told.replace(text.clone());
        if earlier.as_ref() == Some(&text) {
            return None;
        }
        // A session that continues may have it in its conversation.
        (earlier.is_some() || !self.has_said(&text)).then_some(text)
    }

    /// The list of skills as it is told again when the conversation begins anew.
    pub(super) fn skill_listing_again(&self) -> Option<String> {
        self.dispatch.agent.skill_view().told.clone()
    }

    fn skill_listing(&self, files: &[Arc<Path>]) -> Option<String> {
        let sources = &self.shared.delegation.builder.sources;
        let catalog = self.shared.delegation.definitions.skills();
        let window = self.shared.window_of(&self.settings.model);
        let settings = &sources.skills;
        let budget =
            ListingBudget::new(window, settings.listing_fraction, settings.most_description);
        let cwd = &self.dispatch.agent.workspace.root();
        let touched: Vec<&Path> = files.iter().filter_map(|it| it.strip_prefix(cwd).ok()).collect();
        let listing = SkillListing::new(&catalog, &touched, budget);
        if listing.lines.is_empty() {
            return None;
        }
        let mut text = format!("{LISTED}\n{}", listing.lines.join("\n"));
        if !listing.left_out.is_empty() {
            let count = listing.left_out.len();
            // Writing to a string cannot fail.
            let _ = write!(text, "\n({count} more are not listed for want of room.)");
        }
        Some(reminder(&text))
    }

    /// Looks for a text in the conversation.
    fn has_said(&self, text: &str) -> bool {
        if self.conversation.is_empty() {
            return false;
        }
        let Ok(quoted) = serde_json::to_string(text) else { return false };
        let finder = memmem::Finder::new(quoted.as_bytes());
        self.conversation.iter().any(|message| finder.find(message.wire()).is_some())
    }

    /// Has the next requests ask for what the skills in force want.
    pub(super) fn follow_skills(&mut self) {
        let wanted = self.dispatch.agent.skill_requests();
        let is_wanted = wanted.model.is_some() || wanted.effort.is_some();
        let settings = &mut self.settings;
        let mut view = self.dispatch.agent.skill_view();
        if is_wanted {
            let own = || (settings.model.clone(), settings.effort);
            let (model, effort) = view.own.get_or_insert_with(own).clone();
            settings.model = wanted.model.unwrap_or(model);
            settings.effort = wanted.effort.or(effort);
        } else if let Some((model, effort)) = view.own.take() {
            (settings.model, settings.effort) = (model, effort);
        }
    }

    /// Ends the skills in force: a person says something else.
    pub(crate) fn end_skills(&mut self) {
        self.dispatch.agent.end_skills();
        self.follow_skills();
    }

    /// Records the skills whose texts the agent was told.
    pub(super) fn record_skills(&self) -> Result<(), JournalError> {
        for used in self.dispatch.agent.take_unrecorded_skills() {
            self.journal.note(SKILL_USED, &used)?;
            if !self.journal.is_kept() {
                self.dispatch.agent.skill_view().used.push(used);
            }
        }
        Ok(())
    }

    /// The texts of the skills that were used last, as they are told again when the conversation begins anew. They come
    /// from the record: an earlier process may have used them.
    pub(super) fn skills_again(&self) -> Option<String> {
        let used = if self.journal.is_kept() {
            self.journal.used_skills()
        } else {
            self.dispatch.agent.skill_view().used.clone()
        };
        let (most, most_together) = MOST_AGAIN;
        let (mut room, mut texts, mut left_out) = (most_together, Vec::new(), Vec::new());
        for UsedSkill { name, text } in used.iter().rev() {
            let end = text.floor_char_boundary(most.min(room));
            let shown = &text[..end];
            if shown.is_empty() {
                left_out.push(name.as_str());
                continue;
            }
            room -= shown.len();
            let cut = if end < text.len() { SKILL_CUT } else { "" };
            texts.push(format!("Skill {name}:\n{shown}{cut}"));
        }
        if texts.is_empty() {
            return None;
        }
        texts.push(USED.to_owned());
        texts.reverse();
        if !left_out.is_empty() {
            let more = left_out.len().saturating_sub(MOST_NAMES);
            let names = left_out[..left_out.len() - more].join(", ");
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            texts.push(format!(
                "You have also used these, whose texts are left out for want of room: {names}{more}. Invoke them again \
                 where you need them."
            ));
        }
        Some(texts.join("\n\n"))
    }
}

/// Tells whether some skills are told of only when certain files are worked on.
fn has_scoped(skills: &[Arc<SkillEntry>]) -> bool {
    skills.iter().any(|skill| skill.card.paths.is_some())
}
