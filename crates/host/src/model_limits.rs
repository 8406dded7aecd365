//! Models that a run may use, if the settings limit them.

use centurion_config::settings::Settings;
use centurion_model::Model;

/// The settings do not list a model that was chosen.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the settings do not let {model} be used\nhelp: {help}")]
pub struct ModelRefused {
    model: String,
    help: String,
}

/// The models that the settings list.
#[derive(Clone, Debug)]
pub struct ModelLimits {
    /// As they were written; `None` if every model may be used.
    listed: Option<Vec<String>>,
    /// Whether the default model must be listed, too.
    is_enforced: bool,
}

impl ModelLimits {
    pub fn new(settings: &Settings) -> Self {
        let listed = settings.available_models();
        let listed = listed.map(|listed| listed.into_iter().map(|model| model.value).collect());
        Self { listed, is_enforced: settings.enforces_available_models() }
    }

    /// Whether nothing is limited.
    pub fn is_none(&self) -> bool {
        self.listed.is_none()
    }

    /// The model to use in place of the default model; `None` if the default may be used.
    pub fn instead_of_default(&self, model: &Model) -> Option<&str> {
        let first = self.listed.as_ref()?.first()?;
        (self.is_enforced && !self.allow(model.name(), model)).then_some(first)
    }

    /// Refuses a chosen model that is not listed.
    pub fn check(&self, name: &str, model: &Model) -> Result<(), ModelRefused> {
        if self.allow(name, model) {
            return Ok(());
        }
        let help = match self.listed.as_deref() {
            None | Some([]) => "leave --model out: the default one may be used".to_owned(),
            Some(listed) => format!("--model takes {}", listed.join(", ")),
        };
        Err(ModelRefused { model: model.resolve(name), help })
    }

    /// Takes fallback models apart: those that may be used, and those that may not.
    pub fn divide(&self, fallbacks: Vec<String>, model: &Model) -> (Vec<String>, Vec<String>) {
        fallbacks.into_iter().partition(|name| self.allow(name, model))
    }

    fn allow(&self, name: &str, model: &Model) -> bool {
        let name = model.resolve(name);
        let Some(listed) = &self.listed else { return true };
        listed.iter().any(|listed| model.resolve(listed) == name)
    }
}
