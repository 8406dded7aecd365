//! What is told of a skill before it is invoked, from the head of its file.
//!
//! A session may have hundreds of skills and use none: their bodies stay on disk, and the frontmatter that most
//! authors write, one plain value a line, is read without a YAML parser. A test compares both ways.

use super::definition::{SkillDefinition, SkillFileError, SkillOrigin, read_skill};
use crate::agents::check_skill_name;

/// What is told of a skill.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each answers a question of its own")]
pub struct SkillCard {
    /// What it is for.
    pub summary: Option<String>,
    pub when_to_use: Option<String>,
    pub argument_hint: Option<String>,
    /// Whether a model may invoke it.
    pub for_models: bool,
    /// Whether a person may invoke it.
    pub for_people: bool,
    /// Whether a model is told its name alone.
    pub name_only: bool,
    /// Whether it is carried out by an agent of its own.
    pub is_fork: bool,
    /// Whether it brings hooks, which may not count.
    pub has_hooks: bool,
    /// Globs of the files that it is about: a model is told of it when it works on one.
    pub paths: Option<Vec<String>>,
}

impl From<&SkillDefinition> for SkillCard {
    fn from(skill: &SkillDefinition) -> Self {
        let text = |it: &Option<crate::Located<String>>| it.as_ref().map(|it| it.value.clone());
        Self {
            summary: skill.summary().map(str::to_owned),
            when_to_use: text(&skill.when_to_use),
            argument_hint: text(&skill.argument_hint),
            for_models: skill.is_for_models(),
            for_people: skill.is_for_people(),
            name_only: false,
            is_fork: skill.fork.is_some(),
            has_hooks: skill.hooks.is_some(),
            paths: skill.paths.as_ref().map(|paths| paths.value.clone()),
        }
    }
}

/// Reads the head of a file: the name by which it is invoked, and its card.
pub(super) fn read_card(
    head: &str,
    origin: &SkillOrigin,
) -> Result<(String, SkillCard), SkillFileError> {
    if let Some(read) = plain_card(head, origin) {
        return Ok(read);
    }
    let (definition, _) = read_skill(head, origin.clone())?;
    let card = SkillCard::from(&definition);
    Ok((definition.name, card))
}

/// The card of a file whose frontmatter is one plain value a line; `None` where it is anything else.
pub(super) fn plain_card(head: &str, origin: &SkillOrigin) -> Option<(String, SkillCard)> {
    let block = head.strip_prefix("---\n")?;
    let block = block.get(..memchr::memmem::find(block.as_bytes(), b"\n---\n")?)?;
    let mut card = SkillCard { for_models: true, for_people: true, ..SkillCard::default() };
    let (mut label, mut seen) = (None, Vec::new());
    for line in block.split('\n') {
        let (key, value) = line.split_once(": ")?;
        let is_usual = if key == "argument-hint" { is_hint(value) } else { is_plain(value) };
        if !is_key(key) || !is_usual || seen.contains(&key) {
            return None;
        }
        seen.push(key);
        let text = || Some(value.to_owned());
        match key {
            "name" => label = Some(value),
            "description" => card.summary = text(),
            "when_to_use" => card.when_to_use = text(),
            "argument-hint" => card.argument_hint = text(),
            "disable-model-invocation" => card.for_models = !truth(value)?,
            "user-invocable" => card.for_people = truth(value)?,
            "context" if value == "fork" => card.is_fork = true,
            "context" | "hooks" | "paths" => return None,
            _ => {}
        }
    }
    card.summary.as_ref()?;
    let name = match (&origin.plugin, label) {
        (Some(_), Some(_)) => return None,
        (plugin, _) => {
            let name = origin.place_name();
            check_skill_name(&name).ok()?;
            plugin.as_ref().map_or(name.clone(), |plugin| format!("{plugin}:{name}"))
        }
    };
    Some((name, card))
}

fn truth(value: &str) -> Option<bool> {
    match value {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

fn is_key(key: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte == b'-' || byte == b'_';
    key.starts_with(|first: char| first.is_ascii_lowercase()) && key.bytes().all(is_letter)
}

/// Whether YAML reads a value as the text that stands there, and as one that ends with its line.
fn is_plain(value: &str) -> bool {
    let bytes = value.as_bytes();
    let may_begin = bytes.first().is_some_and(u8::is_ascii_alphabetic);
    let may_end = bytes.last().is_some_and(|last| last.is_ascii_graphic() && *last != b':');
    let is_mark = |pair: &[u8]| pair == b": " || pair == b" #";
    may_begin
        && may_end
        && bytes.iter().all(|byte| *byte >= b' ' && *byte != 0x7f && *byte != b'\\')
        && !bytes.windows(2).any(is_mark)
        && !is_reserved(value)
}

/// Whether a hint is the text after the colon: brackets and all, but no quotes.
fn is_hint(value: &str) -> bool {
    let is_usual = |byte: u8| byte.is_ascii_alphanumeric() || b" []<>|(){}.,:=_/-".contains(&byte);
    value.trim() == value && !value.is_empty() && value.bytes().all(is_usual)
}

/// Words that YAML reads as something other than text, unless a flag is what they are wanted for.
fn is_reserved(value: &str) -> bool {
    const WORDS: [&str; 7] = ["null", "yes", "no", "on", "off", "y", "n"];
    WORDS.iter().any(|word| value.eq_ignore_ascii_case(word))
}
