//! Which models a run may use, where the settings limit them.

use centurion_config::settings::Settings;
use centurion_model::Model;

use crate::output::note;

/// The models that the settings list.
#[derive(Clone, Debug)]
pub(crate) struct ModelLimits {
    /// As they were written; `None` if every model may be used.
    listed: Option<Vec<String>>,
    /// Whether the default model must be listed, too.
    is_enforced: bool,
}

impl ModelLimits {
    pub(crate) fn new(settings: &Settings) -> Self {
        let listed = settings.available_models();
        let listed = listed.map(|listed| listed.into_iter().map(|model| model.value).collect());
        Self { listed, is_enforced: settings.enforces_available_models() }
    }

    /// Whether nothing is limited.
    pub(crate) fn is_none(&self) -> bool {
        self.listed.is_none()
    }

    /// The model to use in place of the default model; `None` if the default may be used.
    pub(crate) fn instead_of_default(&self, model: &Model) -> Option<&str> {
        let first = self.listed.as_ref()?.first()?;
        (self.is_enforced && !self.allow(model.name(), model)).then_some(first)
    }

    /// Refuses a chosen model that is not listed.
    pub(crate) fn check(&self, name: &str, model: &Model) -> Result<(), String> {
        if self.allow(name, model) {
            return Ok(());
        }
        let help = match self.listed.as_deref() {
            None | Some([]) => "leave --model out: the default one may be used".to_owned(),
            Some(listed) => format!("--model takes {}", listed.join(", ")),
        };
        Err(format!("the settings do not let {} be used\nhelp: {help}", model.resolve(name)))
    }

    /// The fallback models that may be used.
    pub(crate) fn keep(&self, fallbacks: Vec<String>, model: &Model) -> Vec<String> {
        let (kept, dropped): (Vec<_>, Vec<_>) =
            fallbacks.into_iter().partition(|name| self.allow(name, model));
        if !dropped.is_empty() {
            let names = dropped.join(", ");
            note(&format!("warning: the settings do not let {names} be used as a fallback"));
        }
        kept
    }

    fn allow(&self, name: &str, model: &Model) -> bool {
        let name = model.resolve(name);
        let Some(listed) = &self.listed else { return true };
        listed.iter().any(|listed| model.resolve(listed) == name)
    }
}
