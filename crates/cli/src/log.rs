//! The log of `--debug`: one redacted line on standard error, or in a file, for each event of the wanted targets.
//!
//! Spans are not shown. A filter is a list such as `warn,centurion_model=trace,hyper`: levels, targets, or both.

use std::fmt::{Debug, Write as _};
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::Context;
use centurion_protocol::{SystemWorld, Timestamp, World as _};
use centurion_redact::redact_text;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Metadata, Subscriber, span};

/// Logs to a file or to standard error, if that is wanted.
pub(crate) fn start_logging(filter: Option<&str>, file: Option<&Path>) -> anyhow::Result<()> {
    let Some(filter) = filter else { return Ok(()) };
    let open = |path: &Path| {
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path);
        file.with_context(|| format!("--debug-file {}", path.display()))
    };
    let log = Log { filter: Filter::parse(filter)?, file: file.map(open).transpose()? };
    tracing::subscriber::set_global_default(log).context("logging has begun already")
}

/// The targets that are logged, each from a level on.
#[derive(Debug)]
struct Filter {
    /// Longest target first; the empty target is every target.
    targets: Vec<(String, LevelFilter)>,
}

impl Filter {
    fn parse(text: &str) -> anyhow::Result<Self> {
        let mut targets = Vec::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let wrong = || format!("`{part}` is no log filter");
            let (target, level) = match part.split_once('=') {
                Some((target, level)) => (target.trim(), level.trim().parse().with_context(wrong)?),
                None => match part.parse() {
                    Ok(level) => ("", level),
                    Err(_) => (part, LevelFilter::TRACE),
                },
            };
            let is_name = |it: char| it.is_ascii_alphanumeric() || "_:-.".contains(it);
            anyhow::ensure!(target.chars().all(is_name), wrong());
            targets.push((target.to_owned(), level));
        }
        targets.sort_by_key(|(target, _)| std::cmp::Reverse(target.len()));
        Ok(Self { targets })
    }

    /// The level of the most exact target that is a prefix of this one.
    fn level(&self, target: &str) -> LevelFilter {
        let found = self.targets.iter().find(|(prefix, _)| target.starts_with(prefix.as_str()));
        found.map_or(LevelFilter::OFF, |(_, level)| *level)
    }
}

/// Writes events to its file, or to standard error.
struct Log {
    filter: Filter,
    file: Option<File>,
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= self.filter.level(metadata.target())
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        self.filter.targets.iter().map(|(_, level)| *level).max()
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let (time, metadata) = (Timestamp::from(SystemWorld.now()), event.metadata());
        let (level, target) = (metadata.level(), metadata.target());
        let line = format!("{time} {level:>5} {target}:{}\n", fields.text());
        // A closed standard error or a full disk is no reason to stop working.
        let _ = match &self.file {
            Some(file) => (&*file).write_all(line.as_bytes()),
            None => std::io::stderr().lock().write_all(line.as_bytes()),
        };
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// The fields of one event: its message first, then the others.
#[derive(Default)]
struct Fields {
    message: String,
    others: String,
}

impl Fields {
    /// The text of one line, without credentials: a log is a file soon enough. Control characters in a value end no line
    /// and steer no terminal.
    fn text(&self) -> String {
        let mut text = String::new();
        for part in [&self.message, &self.others].into_iter().filter(|part| !part.is_empty()) {
            text.push(' ');
            for it in redact_text(part.trim_start()).chars() {
                if it.is_control() { text.extend(it.escape_default()) } else { text.push(it) }
            }
        }
        text
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // Writing to a string fails only if the value's own formatting does: what it wrote until then is logged.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.others, " {name}={value:?}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_levels_targets_or_both_and_the_most_exact_target_counts() {
        let filter = Filter::parse("warn, centurion_model=trace,centurion_model::retry=off,hyper");
        let filter = filter.unwrap();
        for (target, level) in [
            ("centurion_engine::turn", LevelFilter::WARN),
            ("centurion_model", LevelFilter::TRACE),
            ("centurion_model::retry::gate", LevelFilter::OFF),
            ("hyper::client", LevelFilter::TRACE),
        ] {
            assert_eq!(filter.level(target), level, "{target}");
        }
        let only = Filter::parse("centurion_mcp=INFO").unwrap();
        assert_eq!(only.level("centurion_model"), LevelFilter::OFF);
        assert_eq!(Filter::parse("debug").unwrap().level("any"), LevelFilter::DEBUG);
    }

    #[test]
    fn what_is_no_filter_is_said() {
        for text in ["centurion=loud", "a b", "[span]=debug", "=noise", "x{y}"] {
            let error = Filter::parse(text).unwrap_err().to_string();
            assert!(error.contains("is no log filter"), "{text}: {error}");
        }
    }

    #[test]
    fn values_cannot_break_a_line_steer_a_terminal_or_show_a_credential() {
        let fields = Fields {
            message: "read\nERROR forged".to_owned(),
            others: format!(" path=\u{1b}[2Jx key=ghp_{}", "a1".repeat(18)),
        };
        let expected = " read\\nERROR forged path=\\u{1b}[2Jx key=[redacted: github_token]";
        assert_eq!(fields.text(), expected);
    }
}
