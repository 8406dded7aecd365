//! The list of models to choose from, which needs more than the session.

use centurion_config::settings::Settings;
use centurion_protocol::Env;
use centurion_tui::{Fact, PickFor, PickRow, Picker};

/// The short names of models, each with what it is for.
const MODELS: [(&str, &str); 4] = [
    ("opus", "the most capable"),
    ("sonnet", "for everyday work"),
    ("haiku", "the fastest"),
    ("fable", "for long tasks"),
];

/// The models that can be taken.
pub(super) fn models(env: &Env, settings: Option<&Settings>) -> Fact {
    let row = |name: &str, hint: &str| PickRow {
        text: name.to_owned(),
        hint: hint.to_owned(),
        value: format!("/model {name}"),
    };
    let allowed = settings.and_then(Settings::available_models);
    let mut rows: Vec<PickRow> = match &allowed {
        Some(names) => names.iter().map(|it| row(&it.value, &it.origin.to_string())).collect(),
        None => MODELS.iter().map(|(name, about)| row(name, about)).collect(),
    };
    for variable in ["ANTHROPIC_MODEL", "OPENAI_MODEL"] {
        let named = env.get(variable).filter(|name| !name.is_empty() && allowed.is_none());
        if let Some(name) = named.filter(|name| rows.iter().all(|row| row.text != *name)) {
            rows.push(row(name, variable));
        }
    }
    Fact::Pick(Picker::new("Model · /model NAME takes any other", PickFor::Command, rows))
}
