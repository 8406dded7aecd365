//! Values of the placeholders of one invocation.

use std::borrow::Cow;
use std::path::Path;

use super::Invocation;
use super::arguments::split_arguments;
use super::placeholder::{Placeholder, Variable};

/// Value of a placeholder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PlaceholderValue<'v> {
    /// Nothing is known: the placeholder stays as it is written.
    Unset,
    /// A declared argument that was not given.
    Missing,
    One(Cow<'v, str>),
    /// All arguments: as written, and as words.
    All {
        raw: &'v str,
        words: &'v [String],
    },
}

/// The values of one invocation.
pub(super) struct Values<'v> {
    invocation: &'v Invocation<'v>,
    directory: &'v Path,
    words: Vec<String>,
}

impl<'v> Values<'v> {
    pub(super) fn new(invocation: &'v Invocation<'v>, directory: &'v Path) -> Self {
        Self { invocation, directory, words: split_arguments(invocation.arguments) }
    }

    pub(super) fn get(&self, placeholder: Placeholder) -> PlaceholderValue<'_> {
        let word =
            |index: usize| self.words.get(index).map(|word| PlaceholderValue::One(word.into()));
        match placeholder {
            Placeholder::Arguments => {
                PlaceholderValue::All { raw: self.invocation.arguments, words: &self.words }
            }
            Placeholder::Argument(index) => word(index).unwrap_or(PlaceholderValue::Unset),
            Placeholder::Named(index) => word(index).unwrap_or(PlaceholderValue::Missing),
            Placeholder::Variable(variable) => self.variable(variable),
            // Its plugin's variables are the skill's, not the invocation's.
            Placeholder::Plugin(_) => PlaceholderValue::Unset,
        }
    }

    fn variable(&self, variable: Variable) -> PlaceholderValue<'_> {
        match variable {
            Variable::Session => PlaceholderValue::One(self.invocation.session.to_string().into()),
            Variable::Effort => match self.invocation.effort {
                Some(effort) => PlaceholderValue::One(effort.to_string().into()),
                None => PlaceholderValue::Unset,
            },
            Variable::SkillDirectory => PlaceholderValue::One(self.directory.to_string_lossy()),
            Variable::ProjectDirectory => {
                PlaceholderValue::One(self.invocation.project_dir.to_string_lossy())
            }
        }
    }
}
