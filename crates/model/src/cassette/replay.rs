//! Replaying: finds the exchange that a request was recorded with and plays its events.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::stream;
use parking_lot::Mutex;
use thiserror::Error;
use tokio::time::Instant;

use super::canonical::{Canonical, CanonicalPart};
use super::line::{End, Line, VERSION};
use super::normal::{KnownDirectory, Normaliser, places_in};
use super::{CassetteError, difference};
use crate::{ErrorKind, EventStream, ModelError, Request, StreamEvent};

/// A recorded cassette.
pub(super) struct Tape {
    path: PathBuf,
    /// The directories that the recorded requests name.
    places: Vec<KnownDirectory>,
    exchanges: Vec<Exchange>,
    /// The exchanges with equal requests, in the order in which they were recorded.
    equal: HashMap<blake3::Hash, Vec<usize>>,
    used: Mutex<Vec<bool>>,
    speed: Speed,
}

#[derive(Clone, Copy)]
enum Speed {
    Full,
    AsRecorded,
}

pub(super) struct Exchange {
    pub(super) line: usize,
    pub(super) request: Canonical<CanonicalPart>,
    /// The items of the stream with their times, in milliseconds.
    items: Vec<(u64, Result<StreamEvent, ModelError>)>,
    /// Whether the caller dropped the stream in the middle.
    cut: bool,
}

impl Tape {
    pub(super) fn load(path: &Path, text: &str) -> Result<Self, CassetteError> {
        let broken = |line: usize, reason: String| CassetteError::Broken {
            path: path.to_owned(),
            line,
            reason,
        };
        let mut lines = Vec::new();
        for (number, text) in (1..).zip(text.lines()).filter(|(_, text)| !text.trim().is_empty()) {
            let line: Line = serde_json::from_str(text).map_err(|error| {
                broken(number, format!("this is no recorded exchange: {error}"))
            })?;
            if line.cassette != VERSION {
                let reason = format!("version {} of the format is unknown", line.cassette);
                return Err(broken(number, reason));
            }
            lines.push((number, line));
        }
        let all_parts = lines.iter().flat_map(|(_, line): &(usize, Line)| line.parts.values());
        let places: Vec<KnownDirectory> = all_parts.flat_map(places_in).collect();
        let normaliser = Normaliser::new(&places);

        let mut parts = BTreeMap::new();
        let mut exchanges = Vec::new();
        let mut equal: HashMap<_, Vec<usize>> = HashMap::new();
        for (number, line) in lines {
            let exchange = Exchange::new(number, line, &mut parts, &normaliser)
                .map_err(|error| broken(number, error.to_string()))?;
            equal.entry(exchange.request.key()).or_default().push(exchanges.len());
            exchanges.push(exchange);
        }
        let used = Mutex::new(vec![false; exchanges.len()]);
        let path = path.to_owned();
        Ok(Self { path, places, exchanges, equal, used, speed: Speed::Full })
    }

    pub(super) fn at_recorded_speed(self) -> Self {
        Self { speed: Speed::AsRecorded, ..self }
    }

    pub(super) fn model(&self) -> Option<&str> {
        self.exchanges.first().map(|exchange| exchange.request.model.as_str())
    }

    pub(super) fn stream(&self, request: &Request) -> EventStream {
        let asked = Canonical::of(request).normalise(&self.places);
        match self.take(&asked) {
            Ok(exchange) => exchange.play(self.speed),
            Err(NoExchange { difference: message }) => {
                Box::pin(stream::iter([Err(ModelError::new(ErrorKind::Replay, message))]))
            }
        }
    }

    /// The first unused exchange of an equal request. One that its caller cut short comes last: a repeated request got
    /// a whole answer.
    fn take(&self, asked: &Canonical<CanonicalPart>) -> Result<&Exchange, NoExchange> {
        let mut used = self.used.lock();
        let equal = self.equal.get(&asked.key()).map(Vec::as_slice).unwrap_or_default();
        let candidates = equal.iter().filter_map(|number| {
            let exchange = self.exchanges.get(*number)?;
            asked.may_use(&exchange.request).then_some((*number, exchange))
        });
        let free = candidates.filter(|(number, _)| used.get(*number) == Some(&false));
        match free.min_by_key(|(number, exchange)| (exchange.cut, *number)) {
            Some((number, exchange)) => {
                if let Some(flag) = used.get_mut(number) {
                    *flag = true;
                }
                Ok(exchange)
            }
            None => Err(NoExchange {
                difference: difference::describe(&self.path, asked, &self.exchanges, &used),
            }),
        }
    }
}

/// No unused exchange has an equal request.
#[derive(Debug, Error)]
#[error("{difference}")]
struct NoExchange {
    /// The difference from the nearest one.
    difference: String,
}

/// The reason that a line of a recording cannot be replayed.
#[derive(Debug, Error)]
enum ExchangeError {
    #[error("no line before holds the part {name}")]
    NoPart { name: String },
    #[error("a block of an answer is broken: {0}")]
    Block(#[source] serde_json::Error),
}

impl Exchange {
    fn new(
        number: usize,
        line: Line,
        parts: &mut BTreeMap<String, CanonicalPart>,
        normaliser: &Normaliser,
    ) -> Result<Self, ExchangeError> {
        for (name, value) in line.parts {
            parts.insert(name, CanonicalPart::new(value, normaliser));
        }
        let request = line
            .request
            .try_map(|name| parts.get(&name).cloned().ok_or(ExchangeError::NoPart { name }))?;
        let mut items = Vec::new();
        for (at, event) in line.events {
            let event = StreamEvent::try_from(event).map_err(ExchangeError::Block)?;
            items.push((at, Ok(event)));
        }
        let last = items.last().map_or(0, |(at, _)| *at);
        let cut = matches!(line.end, End::Cut);
        match line.end {
            End::Whole => {}
            End::Failed(at, failure) => items.push((at, Err(failure.into()))),
            End::Cut => {
                let message = "the recording of this answer ends here: its caller gave it up";
                items.push((last, Err(ModelError::new(ErrorKind::Replay, message))));
            }
        }
        Ok(Self { line: number, request, items, cut })
    }

    fn play(&self, speed: Speed) -> EventStream {
        let items = self.items.clone();
        match speed {
            Speed::Full => Box::pin(stream::iter(items.into_iter().map(|(_, item)| item))),
            Speed::AsRecorded => {
                let started = Instant::now();
                Box::pin(stream::unfold(items.into_iter(), move |mut items| async move {
                    let (at, item) = items.next()?;
                    tokio::time::sleep_until(started + Duration::from_millis(at)).await;
                    Some((item, items))
                }))
            }
        }
    }
}
