//! The parts of a skill that act for the user: hooks, commands in its text, tools that it allows. In a project they have to be
//! accepted before they count.

use std::path::Path;

use super::definition::{SkillDefinition, SkillKind, SkillOrigin, SkillSource, read_skill};
use super::expand::{BodyPart, CommandPart, cut};
use crate::settings::printable;
use crate::trust::PowerItem;

impl SkillDefinition {
    /// The item to accept before all of a skill in a project counts; `None` where nothing in it acts
    /// for the user.
    pub(crate) fn power_item(&self, text: &str) -> Option<PowerItem> {
        let line = self.power_line()?;
        let commands = self.command_parts();
        let name = format!("skill `{}`", printable(&self.name));
        let values = (self.hooks.as_ref().map(|hooks| &hooks.value), None);
        let item = PowerItem::of_text(&self.origin.path, Some(line), name, text, values);
        let commands = commands.iter().map(|command| command.text.to_owned());
        Some(item.with_commands(commands, self.origin.directory()))
    }

    /// The line of the first part that acts for the user; `None` where nothing in it does.
    pub(crate) fn power_line(&self) -> Option<usize> {
        let tools = self.allowed_tools.as_ref().filter(|tools| !tools.is_empty());
        let lines = [
            self.hooks.as_ref().map(|hooks| hooks.line),
            tools.map(|tools| tools.line),
            self.command_parts().first().map(|command| command.line),
        ];
        lines.into_iter().flatten().min()
    }

    /// The commands in its text, as its author wrote them.
    pub fn commands(&self) -> impl Iterator<Item = &str> {
        self.command_parts().into_iter().map(|command| command.text)
    }

    /// The commands in its text, with their places.
    pub(super) fn command_parts(&self) -> Vec<CommandPart<'_>> {
        let command = |part| match part {
            BodyPart::Command(command) => Some(command),
            BodyPart::Text(_) => None,
        };
        cut(&self.body, self.body.line).into_iter().filter_map(command).collect()
    }
}

/// The texts of a skill or command that may name files which run, whatever else the file is.
pub(crate) fn commands_of_text(text: &str, path: &Path) -> Vec<String> {
    let origin = SkillOrigin {
        source: SkillSource::Plugin,
        kind: SkillKind::Command,
        path: path.to_owned(),
        plugin: None,
    };
    let read = read_skill(text, origin).ok();
    let item = read.and_then(|(definition, _)| definition.power_item(text));
    item.map(|item| item.commands().to_vec()).unwrap_or_default()
}
