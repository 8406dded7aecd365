//! `cassette:FILE`: records a provider once and replays it byte for byte.
//!
//! A cassette holds one exchange per line: the request in a canonical form and the events of its answer. A replay needs
//! no network and no credentials, and refuses every request that was not recorded, showing the difference.
//! `cassette/normal.rs` lists the parts of a request that are not compared. Headers never reach this layer, and
//! credentials of known shapes are removed from the rest (`cassette/secrets.rs`).

mod canonical;
mod difference;
mod line;
mod normal;
mod record;
mod replay;
mod secrets;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use centurion_protocol::bounded;
use thiserror::Error;

use self::record::Recorder;
use self::replay::Tape;
use crate::{EventStream, Provider, Request};

/// The largest recording that is read.
const MOST_CASSETTE: u64 = 512 * 1024 * 1024;

/// A provider that replays or makes a recording.
pub struct Cassette {
    credential: String,
    mode: Mode,
}

enum Mode {
    Record { inner: Arc<dyn Provider>, recorder: Arc<Recorder> },
    Replay(Tape),
}

/// The reason that a cassette cannot be used.
#[derive(Debug, Error)]
pub enum CassetteError {
    #[error(
        "there is no cassette `{path}`; record one with `cassette:{path}=MODEL`",
        path = path.display()
    )]
    Missing { path: PathBuf },
    #[error("cannot read the cassette `{}`: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot write the cassette `{}`: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error(
        "{}:{line}: {reason}; help: delete this line, or the file and record it again",
        path.display()
    )]
    Broken { path: PathBuf, line: usize, reason: String },
}

/// The text after `cassette:` in the name of a model: a file, and the model to record into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec<'a> {
    pub path: &'a Path,
    pub record: Option<&'a str>,
}

impl<'a> Spec<'a> {
    /// Splits `FILE=MODEL-SPEC` at its first `=`.
    pub fn parse(text: &'a str) -> Self {
        let (path, record) = match text.split_once('=') {
            Some((path, model)) => (path, Some(model).filter(|model| !model.is_empty())),
            None => (text, None),
        };
        Self { path: Path::new(path), record }
    }
}

/// Opens a cassette: replays a file that has exchanges, otherwise records `inner` into it.
pub fn open(path: &Path, inner: Option<Arc<dyn Provider>>) -> Result<Cassette, CassetteError> {
    let text = match bounded::read_text_file(path, MOST_CASSETTE) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(source) => return Err(CassetteError::Read { path: path.to_owned(), source }),
    };
    if !text.trim().is_empty() {
        return Ok(Cassette {
            credential: format!("cassette:{}", path.display()),
            mode: Mode::Replay(Tape::load(path, &text)?),
        });
    }
    let inner = inner.ok_or_else(|| CassetteError::Missing { path: path.to_owned() })?;
    Ok(Cassette {
        credential: inner.credential().to_owned(),
        mode: Mode::Record { inner, recorder: Arc::new(Recorder::create(path)?) },
    })
}

impl Cassette {
    /// Replays at the speed of the recording.
    pub fn at_recorded_speed(self) -> Self {
        match self.mode {
            Mode::Replay(tape) => Self { mode: Mode::Replay(tape.at_recorded_speed()), ..self },
            Mode::Record { .. } => self,
        }
    }

    /// The model of the first recorded exchange, for requests that name none.
    pub fn recorded_model(&self) -> Option<&str> {
        match &self.mode {
            Mode::Replay(tape) => tape.model(),
            Mode::Record { .. } => None,
        }
    }
}

impl Provider for Cassette {
    fn stream(&self, request: Request) -> EventStream {
        match &self.mode {
            Mode::Record { inner, recorder } => record::stream(inner.as_ref(), recorder, request),
            Mode::Replay(tape) => tape.stream(&request),
        }
    }

    fn credential(&self) -> &str {
        &self.credential
    }
}
