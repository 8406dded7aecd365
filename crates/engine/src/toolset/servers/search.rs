//! `ToolSearch`: brings tools of servers that are only named to the model.

use std::cmp::Reverse;
use std::fmt::Write as _;
use std::sync::Arc;

use centurion_permissions::Access;
use centurion_protocol::ToolSpec;
use centurion_tools::{Tool, ToolContext, ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{Servers, is_connected};

pub(super) struct ToolSearch(pub(super) Arc<Servers>);

/// Loads tools that are only named so far. They can be called from your next step on.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ToolSearchInput {
    /// `select:` and the names of tools with commas between them, or words to look for in names and
    /// descriptions. A word with `+` before it must be in the name.
    query: String,
    /// The most tools that a search by words loads.
    #[serde(default = "default_results")]
    max_results: usize,
}

fn default_results() -> usize {
    5
}

impl Tool for ToolSearch {
    type Input = ToolSearchInput;

    const NAME: &'static str = "ToolSearch";

    fn is_read_only(&self, _: &Self::Input) -> bool {
        true
    }

    fn access(&self, _: &Self::Input, _: &ToolContext) -> Access {
        Access::Session
    }

    async fn run(&self, input: Self::Input, _: &ToolContext) -> Result<ToolOutput, ToolError> {
        let connections = self.0.active().into_iter().filter(is_connected);
        let specs: Vec<ToolSpec> =
            connections.flat_map(|it| it.tools()).map(|tool| tool.spec()).collect();
        let found = match input.query.trim().strip_prefix("select:") {
            Some(names) => select(&specs, names)?,
            None => look_for(&specs, &input.query, input.max_results.clamp(1, 50)),
        };
        if found.is_empty() {
            let text = format!("No tool fits \"{}\". Try other words.", input.query.trim());
            return Ok(ToolOutput::text(text));
        }
        let mut text = String::from("Loaded, to be called from now on:");
        for spec in &found {
            let first = spec.description.lines().next().unwrap_or_default();
            // Writing to a string cannot fail.
            let _ = write!(text, "\n- {}: {first}", spec.name);
        }
        let names: Vec<&str> = found.iter().map(|spec| spec.name.as_str()).collect();
        let data =
            json!({"matches": names, "query": input.query, "total_deferred_tools": specs.len()});
        self.0.load(names);
        Ok(ToolOutput::text(text).with_data(data))
    }
}

impl Servers {
    /// Offers these tools from the next request on.
    fn load<'a>(&self, names: impl IntoIterator<Item = &'a str>) {
        let mut held = self.held();
        held.changes += 1;
        held.loaded.extend(names.into_iter().map(str::to_owned));
    }
}

fn select<'a>(specs: &'a [ToolSpec], names: &str) -> Result<Vec<&'a ToolSpec>, ToolError> {
    let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
    let find = |name: &str| {
        let is_it = |spec: &&ToolSpec| spec.name == name;
        let gone =
            || ToolError::failed(format!("There is no tool named {name}; nothing was loaded."));
        specs.iter().find(is_it).ok_or_else(gone)
    };
    names.map(find).collect()
}

/// The tools that fit the words best. A word in the name counts more than one in the description.
fn look_for<'a>(specs: &'a [ToolSpec], query: &str, most: usize) -> Vec<&'a ToolSpec> {
    let query = query.to_lowercase();
    let words: Vec<&str> = query.split_whitespace().collect();
    let mut scored: Vec<(usize, &ToolSpec)> = Vec::new();
    for spec in specs {
        let (name, description) = (spec.name.to_lowercase(), spec.description.to_lowercase());
        let is_wanted =
            words.iter().filter_map(|word| word.strip_prefix('+')).all(|word| name.contains(word));
        let score: usize = words
            .iter()
            .map(|word| word.trim_start_matches('+'))
            .map(|word| {
                4 * usize::from(name.contains(word)) + usize::from(description.contains(word))
            })
            .sum();
        if is_wanted && score > 0 {
            scored.push((score, spec));
        }
    }
    scored.sort_by_key(|(score, spec)| (Reverse(*score), spec.name.clone()));
    scored.into_iter().take(most).map(|(_, spec)| spec).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn specs() -> Vec<ToolSpec> {
        let spec = |name: &str, description: &str| ToolSpec {
            name: name.to_owned(),
            description: description.to_owned(),
            input_schema: Box::default(),
        };
        vec![
            spec("mcp__chat__send", "Send a message to a channel"),
            spec("mcp__chat__list", "List channels"),
            spec("mcp__mail__send", "Send an email message"),
        ]
    }

    fn names(found: &[&ToolSpec]) -> Vec<String> {
        found.iter().map(|spec| spec.name.clone()).collect()
    }

    #[test]
    fn words_in_names_count_most_and_plus_makes_them_necessary() {
        let specs = specs();
        assert_eq!(
            names(&look_for(&specs, "chat channel", 5)),
            ["mcp__chat__list", "mcp__chat__send"]
        );
        assert_eq!(names(&look_for(&specs, "+mail send", 5)), ["mcp__mail__send"]);
        assert_eq!(names(&look_for(&specs, "send", 1)), ["mcp__chat__send"]);
        assert!(look_for(&specs, "database", 5).is_empty());
    }

    #[test]
    fn a_selection_is_all_or_nothing() {
        let specs = specs();
        let chosen = select(&specs, "mcp__mail__send, mcp__chat__list").unwrap();
        assert_eq!(names(&chosen), ["mcp__mail__send", "mcp__chat__list"]);
        assert!(select(&specs, "mcp__mail__send,nope").unwrap_err().to_string().contains("nope"));
    }
}
