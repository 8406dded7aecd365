//! The scenario format, parsed from JSON and YAML alike.
//!
//! Everything is checked here, while line and column are known: patterns compile, blocks are complete, every key is
//! read. No later code re-interprets the text.

use std::collections::BTreeMap;
use std::fmt;

use regex::Regex;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::keys::{read_fields, read_object};
use super::step::Step;
use super::template::compile_pattern;
use super::view::is_name_character;

/// A whole scenario file.
#[derive(Debug)]
pub(super) struct Scenario {
    pub(super) scripts: BTreeMap<String, Vec<Step>>,
    pub(super) rules: Vec<Rule>,
    pub(super) default: Option<Fallback>,
}

/// The answer when no rule and no script matches.
#[derive(Debug)]
pub(super) enum Fallback {
    /// The same step at every turn.
    Always(Box<Step>),
    /// One step per turn.
    ByTurn(Vec<Step>),
}

#[derive(Debug)]
pub(super) struct Rule {
    pub(super) when: Matcher,
    pub(super) respond: Step,
}

/// The conditions of a rule. All given ones must hold.
#[derive(Debug, Default)]
pub(super) struct Matcher {
    pub(super) system: Option<String>,
    pub(super) system_pattern: Option<Regex>,
    pub(super) first_user: Option<Regex>,
    pub(super) last_user: Option<Regex>,
    pub(super) tool_result: Option<Regex>,
    pub(super) model: Option<Regex>,
    pub(super) has_tool: Option<String>,
    pub(super) lacks_tool: Option<String>,
    pub(super) turn: Option<usize>,
    pub(super) max_hits: Option<u64>,
}

read_object!(Scenario, "a scenario: an object with `scripts`, `rules` or `default`", |map| {
    read_fields!(map, "a scenario", {
        "scripts" => scripts, "rules" => rules, "default" => default
    });
    let scripts: Option<Scripts> = scripts;
    let rules: Option<Vec<Rule>> = rules;
    if scripts.is_none() && rules.is_none() && default.is_none() {
        return Err(A::Error::custom("a scenario needs `scripts`, `rules` or `default`"));
    }
    Ok(Scenario {
        scripts: scripts.map(|scripts| scripts.0).unwrap_or_default(),
        rules: rules.unwrap_or_default(),
        default,
    })
});

struct Scripts(BTreeMap<String, Vec<Step>>);

read_object!(Scripts, "an object of scripts: a name and a list of steps each", |map| {
    let mut scripts = BTreeMap::new();
    while let Some(ScriptName(name)) = map.next_key()? {
        if scripts.insert(name.clone(), map.next_value()?).is_some() {
            return Err(A::Error::custom(format_args!("the script `{name}` is there twice")));
        }
    }
    Ok(Scripts(scripts))
});

struct ScriptName(String);

impl<'de> Deserialize<'de> for ScriptName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        if name.is_empty() || !name.chars().all(is_name_character) {
            return Err(D::Error::custom(format_args!(
                "no marker can name the script `{name}`: use letters, digits, `_` and `-`"
            )));
        }
        Ok(Self(name))
    }
}

read_object!(Rule, "a rule: an object with `match` and `respond`", |map| {
    read_fields!(map, "a rule", { "match" => when, "respond" => respond });
    Ok(Rule {
        when: when.unwrap_or_default(),
        respond: respond.ok_or_else(|| A::Error::custom("a rule needs `respond`: a step"))?,
    })
});

read_object!(Matcher, "the conditions of a rule: an object", |map| {
    read_fields!(map, "`match`", {
        "system" => system, "system_re" => system_re, "first_user" => first_user,
        "last_user" => last_user, "tool_result" => tool_result, "model" => model,
        "has_tool" => has_tool, "lacks_tool" => lacks_tool, "turn" => turn,
        "max_hits" => max_hits
    });
    let regex = |pattern: Option<Pattern>| pattern.map(|pattern| pattern.0);
    Ok(Matcher {
        system,
        system_pattern: regex(system_re),
        first_user: regex(first_user),
        last_user: regex(last_user),
        tool_result: regex(tool_result),
        model: regex(model),
        has_tool,
        lacks_tool,
        turn,
        max_hits,
    })
});

struct Pattern(Regex);

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        compile_pattern(&text).map(Self).map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Fallback {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Fallback;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a step or a list of steps")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Fallback, E> {
                let step = Step::text(text).map_err(E::custom)?;
                Ok(Fallback::Always(Box::new(step)))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Fallback, A::Error> {
                let mut steps = Vec::new();
                while let Some(step) = items.next_element()? {
                    steps.push(step);
                }
                Ok(Fallback::ByTurn(steps))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Fallback, A::Error> {
                let entries = serde::de::value::MapAccessDeserializer::new(map);
                Ok(Fallback::Always(Box::new(Step::deserialize(entries)?)))
            }
        }
        deserializer.deserialize_any(Either)
    }
}
