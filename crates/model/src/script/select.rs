//! Chooses the step that answers a request: the first rule that matches, else the script that the newest marker names,
//! else the default.

use std::collections::HashMap;

use super::keys::nearest;
use super::scenario::{Fallback, Matcher, Scenario};
use super::step::Step;
use super::view::View;
use crate::{ErrorKind, ModelError};

/// The characters of a text that an error shows.
const EXCERPT: usize = 120;

/// The step that answers.
pub(super) struct ChosenStep<'s> {
    pub(super) step: &'s Step,
    pub(super) argument: Option<String>,
    /// The number of this conversation's requests for this step, this one included.
    pub(super) asked: u64,
}

/// The state of a scenario between requests.
#[derive(Debug, Default)]
pub(super) struct ScenarioState {
    hits: HashMap<usize, u64>,
    asked: HashMap<(Origin, blake3::Hash), u64>,
}

/// The position of a step in the scenario.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Origin {
    Rule(usize),
    /// `message` distinguishes two uses of one script in the same conversation.
    Script {
        name: String,
        message: usize,
        step: usize,
    },
    Default(usize),
}

impl ScenarioState {
    /// Picks the step and counts it.
    pub(super) fn choose<'s>(
        &mut self,
        scenario: &'s Scenario,
        done: &'s Step,
        view: &View<'_>,
        name: &str,
    ) -> Result<ChosenStep<'s>, ModelError> {
        let conversation = blake3::hash(view.first_user().as_bytes());
        let mut chosen = |origin: Origin, step: &'s Step, argument: Option<String>| {
            let asked = self.asked.entry((origin, conversation)).or_default();
            *asked += 1;
            Ok(ChosenStep { step, argument, asked: *asked })
        };
        for (number, rule) in scenario.rules.iter().enumerate() {
            let hits = self.hits.entry(number).or_default();
            if rule.when.max_hits.is_none_or(|most| *hits < most) && rule.when.holds(view) {
                *hits += 1;
                return chosen(Origin::Rule(number), &rule.respond, None);
            }
        }
        if let Some(marker) = view.marker(|name| scenario.scripts.contains_key(name)) {
            let steps = scenario.scripts.get(&marker.name).map(Vec::as_slice).unwrap_or_default();
            let step = steps.get(marker.step).unwrap_or(done);
            let origin =
                Origin::Script { name: marker.name, message: marker.message, step: marker.step };
            return chosen(origin, step, marker.argument);
        }
        match &scenario.default {
            Some(Fallback::Always(step)) => chosen(Origin::Default(0), step, None),
            Some(Fallback::ByTurn(steps)) => {
                let turn = view.turn();
                chosen(Origin::Default(turn), steps.get(turn).unwrap_or(done), None)
            }
            None => Err(nothing_matches(scenario, view, name)),
        }
    }
}

impl Matcher {
    fn holds(&self, view: &View<'_>) -> bool {
        let given = |condition: &Option<regex::Regex>, test: &dyn Fn(&regex::Regex) -> bool| {
            condition.as_ref().is_none_or(test)
        };
        self.turn.is_none_or(|turn| view.turn() == turn)
            && self.has_tool.as_ref().is_none_or(|tool| view.offers(tool))
            && self.lacks_tool.as_ref().is_none_or(|tool| !view.offers(tool))
            && given(&self.model, &|pattern| pattern.is_match(&view.request.model))
            && self.system.as_ref().is_none_or(|part| view.system().contains(part))
            && given(&self.system_pattern, &|pattern| pattern.is_match(&view.system()))
            && given(&self.first_user, &|pattern| pattern.is_match(view.first_user()))
            && given(&self.last_user, &|pattern| pattern.is_match(&view.last_user()))
            && given(&self.tool_result, &|pattern| {
                view.last_tool_results().any(|result| pattern.is_match(&result))
            })
    }
}

fn nothing_matches(scenario: &Scenario, view: &View<'_>, name: &str) -> ModelError {
    let asked = view.last_user();
    let asked = match asked.trim() {
        "" => "only tool results".to_owned(),
        text => format!("\"{}\"", excerpt(text)),
    };
    let scripts: Vec<&str> = scenario.scripts.keys().map(String::as_str).collect();
    let scripts = match scripts.as_slice() {
        [] => "it has no scripts".to_owned(),
        names => format!("its scripts are {}", names.join(", ")),
    };
    let unknown = view.marker(|marker| !marker.is_empty());
    let hint = match unknown {
        Some(marker) => {
            let names = scenario.scripts.keys().map(String::as_str);
            let near = nearest(&marker.name, names)
                .map(|near| format!("; did you mean `@@{near}`?"))
                .unwrap_or_default();
            format!("; it has no script `{}`{near}", marker.name)
        }
        None => String::new(),
    };
    ModelError::new(
        ErrorKind::Replay,
        format!(
            "no rule, script or default of `{name}` answers turn {} of model `{}`; the last user \
             message holds {asked}; {scripts}{hint}",
            view.turn(),
            view.request.model,
        ),
    )
}

fn excerpt(text: &str) -> String {
    match text.char_indices().nth(EXCERPT) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
