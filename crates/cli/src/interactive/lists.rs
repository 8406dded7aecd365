//! Lists to choose from that need more than the session: models, settings.

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

/// All settings with their values, and who set each.
pub(super) fn settings(settings: &Settings, words: &str) -> Fact {
    let row = |it: centurion_config::settings::KeyReport| {
        let value = settings.value(&it.key).filter(|_| it.in_force());
        let shown = value.map(|value| shortened(&value.to_string())).unwrap_or_default();
        let file = format!("{}:{}", it.file.display(), it.line);
        let why = it.why();
        let hint = if why.is_empty() { file } else { format!("{file} · {why}") };
        PickRow { text: format!("{} {shown}", it.key).trim_end().to_owned(), hint, value: it.key }
    };
    let lower = words.to_lowercase();
    let rows: Vec<PickRow> = settings
        .keys()
        .into_iter()
        .map(row)
        .filter(|it| it.text.to_lowercase().contains(&lower))
        .collect();
    if rows.is_empty() {
        return Fact::Notice("no file sets anything of that".to_owned());
    }
    Fact::Pick(Picker::new("Settings, and who set them", PickFor::Reading, rows))
}

/// The beginning of a value.
fn shortened(value: &str) -> String {
    const MOST: usize = 60;
    // A key or a password has no place on a screen.
    let value = centurion_redact::redact_text(value);
    let mut short: String = value.chars().take(MOST).collect();
    if short.len() < value.len() {
        short.push('…');
    }
    short
}
