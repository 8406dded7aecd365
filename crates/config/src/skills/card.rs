//! Cards: the facts about a skill that are known before it is invoked, from the head of its file.
//!
//! A session may have hundreds of skills and use none: their bodies stay on disk, and the frontmatter that most
//! authors write, plain or quoted values, a paragraph, a list of words, is read without a YAML parser. A test compares both
//! ways.

use std::iter::Peekable;
use std::str::Split;
use std::sync::Arc;

use super::definition::{SkillDefinition, SkillFileError, SkillOrigin, read_skill};
use crate::agents::check_skill_name;
use crate::scan::{Keep, KeptReader, Writer};

/// Facts about a skill.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each answers a question of its own")]
pub struct SkillCard {
    /// Its purpose.
    pub summary: Option<String>,
    pub when_to_use: Option<String>,
    pub argument_hint: Option<String>,
    /// A model may invoke it.
    pub for_models: bool,
    /// A person may invoke it.
    pub for_people: bool,
    /// A model is told its name alone.
    pub name_only: bool,
    /// An agent of its own carries it out.
    pub is_fork: bool,
    /// It brings hooks, which may not count.
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

/// The card of a file whose frontmatter is written as most authors write it; `None` where it is anything else.
pub(super) fn plain_card(head: &str, origin: &SkillOrigin) -> Option<(String, SkillCard)> {
    let block = head.strip_prefix("---\n")?;
    let block = block.get(..memchr::memmem::find(block.as_bytes(), b"\n---\n")?)?;
    if block.len() > LONGEST {
        return None;
    }
    let mut card = SkillCard { for_models: true, for_people: true, ..SkillCard::default() };
    let (mut has_label, mut seen) = (false, Vec::with_capacity(8));
    let mut lines = block.split('\n').peekable();
    while let Some(line) = lines.next() {
        let (key, rest) = line.split_once(':')?;
        if !is_key(key) || seen.contains(&key) {
            return None;
        }
        seen.push(key);
        let value = plain_value(key, rest, &mut lines)?;
        match key {
            "name" => has_label = true,
            "description" => card.summary = Some(value.into_text()?),
            "when_to_use" => card.when_to_use = Some(value.into_text()?),
            "argument-hint" => card.argument_hint = Some(value.into_text()?),
            "disable-model-invocation" => card.for_models = !value.truth()?,
            "user-invocable" => card.for_people = value.truth()?,
            "context" if value == Plain::Word("fork") => card.is_fork = true,
            "context" | "hooks" | "paths" => return None,
            _ => {}
        }
    }
    card.summary.as_ref()?;
    let name = match &origin.plugin {
        Some(_) if has_label => return None,
        plugin => {
            let name = origin.place_name();
            check_skill_name(&name).ok()?;
            match plugin {
                Some(plugin) => format!("{plugin}:{name}"),
                None => name,
            }
        }
    };
    Some((name, card))
}

/// A value that needs no parser.
#[derive(Debug, PartialEq, Eq)]
enum Plain<'t> {
    /// As it stands there, without quotes.
    Word(&'t str),
    /// In quotes, or on lines of its own.
    Text(String),
    /// A list, which tells the card nothing.
    List,
}

impl Plain<'_> {
    fn into_text(self) -> Option<String> {
        match self {
            Self::Word(text) => Some(text.to_owned()),
            Self::Text(text) => Some(text),
            Self::List => None,
        }
    }

    fn truth(&self) -> Option<bool> {
        match self {
            Self::Word("true") => Some(true),
            Self::Word("false") => Some(false),
            _ => None,
        }
    }
}

/// Reads what stands after a key and its colon, and the lines below that belong to it.
fn plain_value<'t>(
    key: &str,
    rest: &'t str,
    lines: &mut Peekable<Split<'t, char>>,
) -> Option<Plain<'t>> {
    if rest.is_empty() {
        return plain_items(lines).then_some(Plain::List);
    }
    let value = rest.strip_prefix(' ')?;
    match value.as_bytes().first()? {
        _ if key == "argument-hint" => is_hint(value).then_some(Plain::Word(value)),
        b'>' | b'|' => {
            let joint = match value {
                ">" | ">-" => " ",
                "|" | "|-" => "\n",
                _ => return None,
            };
            let mut text = String::new();
            while let Some(line) = lines.next_if(|line| line.starts_with("  ")) {
                let line = line.get(2..).filter(|line| is_whole(line))?;
                if !text.is_empty() {
                    text.push_str(joint);
                }
                text.push_str(line);
            }
            (!text.is_empty()).then_some(Plain::Text(text))
        }
        quote @ (b'"' | b'\'') => {
            let quote = char::from(*quote);
            let text = value.strip_prefix(quote)?.strip_suffix(quote)?;
            let is_usual = !text.contains(quote) && is_whole(text);
            is_usual.then(|| Plain::Text(text.to_owned()))
        }
        b'[' => {
            let items = value.strip_prefix('[')?.strip_suffix(']')?;
            let is_item = |item: &str| is_plain(item) && !item.contains(FLOW);
            items.split(',').map(str::trim).all(is_item).then_some(Plain::List)
        }
        _ => is_plain(value).then_some(Plain::Word(value)),
    }
}

/// Passes over a list, one plain word a line; whether it was one.
fn plain_items(lines: &mut Peekable<Split<'_, char>>) -> bool {
    let dash = match lines.peek() {
        Some(line) if line.starts_with("- ") => "- ",
        Some(line) if line.starts_with("  - ") => "  - ",
        _ => return false,
    };
    let mut are_plain = true;
    while let Some(line) = lines.next_if(|line| line.starts_with(dash)) {
        are_plain &= line.strip_prefix(dash).is_some_and(is_plain);
    }
    are_plain
}

/// Characters that mean something else inside of brackets.
const FLOW: [char; 8] = ['[', ']', '{', '}', ':', '?', '"', '\''];

/// Frontmatter that is longer has to be looked at more closely.
const LONGEST: usize = 32 * 1024;

fn is_key(key: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte == b'-' || byte == b'_';
    key.starts_with(|first: char| first.is_ascii_lowercase()) && key.bytes().all(is_letter)
}

/// Checks that YAML reads a value as the text that stands there, and as one that ends with its line.
fn is_plain(value: &str) -> bool {
    let bytes = value.as_bytes();
    let is_mark = |at: usize| match bytes.get(at..at + 2) {
        Some(pair) => pair == b": " || pair == b" #",
        None => false,
    };
    is_whole(value)
        && bytes.first().is_some_and(u8::is_ascii_alphabetic)
        && bytes.last() != Some(&b':')
        && !memchr::memchr2_iter(b':', b'#', bytes)
            .any(|at| is_mark(at) || is_mark(at.wrapping_sub(1)))
        && !is_reserved(value)
}

/// Checks that a text begins and ends with a letter or mark, and has nothing in it that stands for something else.
fn is_whole(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_usual = |byte: &u8| *byte >= b' ' && *byte != 0x7f && *byte != b'\\';
    bytes.first().is_some_and(u8::is_ascii_graphic)
        && bytes.last().is_some_and(u8::is_ascii_graphic)
        && bytes.iter().all(is_usual)
}

/// Checks that a hint is the text after the colon: brackets and all, but no quotes.
fn is_hint(value: &str) -> bool {
    let is_usual = |byte: u8| byte.is_ascii_alphanumeric() || b" []<>|(){}.,:=_/-".contains(&byte);
    value.trim() == value && !value.is_empty() && value.bytes().all(is_usual)
}

/// Words that YAML reads as something other than text, unless a flag is what they are wanted for.
fn is_reserved(value: &str) -> bool {
    const WORDS: [&str; 7] = ["null", "yes", "no", "on", "off", "y", "n"];
    WORDS.iter().any(|word| value.eq_ignore_ascii_case(word))
}

impl Keep for Result<(String, Arc<SkillCard>), SkillFileError> {
    fn write(&self, to: &mut Writer) -> bool {
        let Ok((name, card)) = self else { return false };
        let SkillCard { summary, when_to_use, argument_hint, paths, .. } = &**card;
        to.text(name);
        let flags = [
            card.for_models,
            card.for_people,
            card.name_only,
            card.is_fork,
            card.has_hooks,
            summary.is_some(),
            when_to_use.is_some(),
            argument_hint.is_some(),
            paths.is_some(),
        ];
        let bits = flags.iter().enumerate().map(|(at, is_set)| u64::from(*is_set) << at);
        to.number(bits.sum());
        for text in [summary, when_to_use, argument_hint].into_iter().flatten() {
            to.text(text);
        }
        if let Some(paths) = paths {
            to.number(paths.len() as u64);
            for path in paths {
                to.text(path);
            }
        }
        true
    }

    fn read(from: &mut KeptReader<'_>) -> Option<Self> {
        let name = from.text()?.to_owned();
        let flags = from.number()?;
        let flag = |at: u32| flags >> at & 1 == 1;
        let mut text = |at: u32| {
            if flag(at) { from.text().map(|text| Some(text.to_owned())) } else { Some(None) }
        };
        let (summary, when_to_use, argument_hint) = (text(5)?, text(6)?, text(7)?);
        let card = SkillCard {
            summary,
            when_to_use,
            argument_hint,
            for_models: flag(0),
            for_people: flag(1),
            name_only: flag(2),
            is_fork: flag(3),
            has_hooks: flag(4),
            paths: if flag(8) { Some(read_list(from)?) } else { None },
        };
        Some(Ok((name, Arc::new(card))))
    }
}

fn read_list(from: &mut KeptReader<'_>) -> Option<Vec<String>> {
    let count = from.number()?;
    let mut list = Vec::new();
    for _ in 0..count {
        list.push(from.text()?.to_owned());
    }
    Some(list)
}
