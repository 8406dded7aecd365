//! `script:FILE`: a scenario file that plays the model.
//!
//! It needs no network and gives the same answers every time, so that agents can be tested, and so that rare failures
//! of a real provider can be had on demand. `docs/scripted-models.md` describes the format. Time passes on tokio's
//! clock; nothing here retries.

mod keys;
mod play;
mod scenario;
mod select;
mod step;
mod template;
#[cfg(test)]
mod tests;
mod view;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use centurion_protocol::bounded;
use futures_util::stream;
use parking_lot::Mutex;
use thiserror::Error;

use self::scenario::Scenario;
use self::select::ScenarioState;
use self::step::Step;
use self::view::View;
use crate::{EventStream, Provider, Request};

/// The largest scenario that is read.
const MOST_SCRIPT: u64 = 64 * 1024 * 1024;

/// A model that reads its answers from a scenario.
#[derive(Debug)]
pub struct Script {
    name: String,
    credential: String,
    scenario: Scenario,
    /// The answer past the end of a script.
    done: Step,
    memory: Mutex<ScenarioState>,
    requests: AtomicU64,
}

/// The reason that a scenario cannot be used.
#[derive(Debug, Error)]
pub enum ScriptError {
    #[error("cannot read the scenario `{}`: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{name}:{line}:{column}: {message}")]
    Broken { name: String, line: u64, column: u64, message: String },
}

/// Reads a scenario file: JSON if its name ends so, YAML otherwise.
pub fn open(path: &Path) -> Result<Script, ScriptError> {
    let text = bounded::read_text_file(path, MOST_SCRIPT)
        .map_err(|source| ScriptError::Read { path: path.to_owned(), source })?;
    parse(&text, &path.display().to_string())
}

/// Parses a scenario from its text; `name` appears in errors and decides between JSON and YAML.
pub fn parse(text: &str, name: &str) -> Result<Script, ScriptError> {
    let text = text.trim_start_matches('\u{feff}');
    let broken = |line, column, message: String| ScriptError::Broken {
        name: name.to_owned(),
        line,
        column,
        message,
    };
    let is_json =
        Path::new(name).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    let scenario = if is_json {
        serde_json::from_str(text).map_err(|error| {
            let (line, column) = (error.line() as u64, error.column() as u64);
            let place = format!(" at line {line} column {column}");
            broken(line, column, without(&error.to_string(), &place))
        })?
    } else {
        // `y`, `no` and the like are texts: a scenario says `yes` to a question, not to a switch.
        let options = serde_saphyr::options! { strict_booleans: true, with_snippet: false };
        serde_saphyr::from_str_with_options(text, options).map_err(|error| {
            let place = error.location();
            let (line, column) = place.map_or((1, 1), |place| (place.line(), place.column()));
            let place = format!(" at line {line}, column {column}");
            broken(line, column, without(&error.to_string(), &place))
        })?
    };
    Ok(Script {
        name: name.to_owned(),
        credential: format!("script:{name}"),
        scenario,
        done: Step::text("done").map_err(|error| broken(1, 1, error.to_string()))?,
        memory: Mutex::default(),
        requests: AtomicU64::new(0),
    })
}

/// A message without the position at its end, which is reported separately.
fn without(message: &str, place: &str) -> String {
    message.strip_suffix(place).unwrap_or(message).to_owned()
}

impl Provider for Script {
    fn stream(&self, request: Request) -> EventStream {
        let number = self.requests.fetch_add(1, Ordering::Relaxed) + 1;
        let view = View::new(&request);
        let chosen = self.memory.lock().choose(&self.scenario, &self.done, &view, &self.name);
        match chosen {
            Ok(chosen) => play::play(&chosen, &view, number),
            Err(error) => Box::pin(stream::iter([Err(error)])),
        }
    }

    fn credential(&self) -> &str {
        &self.credential
    }
}
