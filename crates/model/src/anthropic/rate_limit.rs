//! The limits of an account, as the head of an answer tells them.
//!
//! For subscriptions there is one state over all windows, and the window that counts is named. For keys there are counts
//! of requests and tokens: these are told of only when a request was rejected, and when one is allowed again.

use std::sync::Arc;

use centurion_protocol::sdk::RateLimit;
use jiff::Timestamp;
use parking_lot::Mutex;
use reqwest::StatusCode;
use reqwest::header::HeaderMap;

/// The words of a state.
const STATES: [&str; 3] = ["allowed", "allowed_warning", "rejected"];

/// The windows that hosts know, with their short names in headers.
const WINDOWS: [(&str, &str); 6] = [
    ("five_hour", "5h"),
    ("seven_day", "7d"),
    ("seven_day_opus", "7d_opus"),
    ("seven_day_sonnet", "7d_sonnet"),
    ("seven_day_overage_included", "7d_oi"),
    ("overage", "overage"),
];

/// The counts that are limited for keys.
const COUNTS: [&str; 4] = ["requests", "tokens", "input-tokens", "output-tokens"];

/// The limits as the last answer told them. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct RateLimits(Arc<Mutex<Option<RateLimit>>>);

impl RateLimits {
    pub(super) fn last(&self) -> Option<RateLimit> {
        self.0.lock().clone()
    }

    /// Takes note of the head of an answer.
    pub(super) fn note(&self, status: StatusCode, headers: &HeaderMap) {
        let mut last = self.0.lock();
        if let Some(limit) = of_subscription(headers) {
            *last = Some(limit);
        } else if status == StatusCode::TOO_MANY_REQUESTS {
            *last = of_key(headers).or(last.take());
        } else if status.is_success()
            && let Some(limit) = &mut *last
            && limit.status == "rejected"
        {
            *limit = RateLimit { status: "allowed", ..RateLimit::default() };
        }
    }
}

fn of_subscription(headers: &HeaderMap) -> Option<RateLimit> {
    let text = |name: &str| text(headers, &format!("anthropic-ratelimit-unified-{name}"));
    let number = |name: &str| text(name)?.parse::<f64>().ok().filter(|it| it.is_finite());
    let moment = |name: &str| moment(text(name)?);
    let window = text("representative-claim");
    let window = window.and_then(|it| WINDOWS.iter().find(|(name, _)| *name == it));
    Some(RateLimit {
        status: word(text("status")?, &STATES)?,
        resets_at: moment("reset").or_else(|| moment(&format!("{}-reset", window?.1))),
        rate_limit_type: window.map(|(name, _)| *name),
        utilization: window.and_then(|(_, short)| number(&format!("{short}-utilization"))),
        overage_status: text("overage-status").and_then(|it| word(it, &STATES)),
        overage_resets_at: moment("overage-reset"),
    })
}

/// The limit that a rejected request of a key met: of those that nothing is left of, the one that lasts longest.
fn of_key(headers: &HeaderMap) -> Option<RateLimit> {
    let of = |count: &str, what: &str| {
        text(headers, &format!("anthropic-ratelimit-{count}-{what}")).map(str::to_owned)
    };
    COUNTS.iter().find_map(|count| of(count, "limit"))?;
    let exhausted = COUNTS.iter().filter(|count| of(count, "remaining").as_deref() == Some("0"));
    let resets_at = exhausted.filter_map(|count| moment(&of(count, "reset")?)).max();
    Some(RateLimit { status: "rejected", resets_at, ..RateLimit::default() })
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

/// A moment in seconds since the epoch, however it is written.
fn moment(text: &str) -> Option<i64> {
    text.parse().ok().or_else(|| text.parse::<Timestamp>().ok().map(Timestamp::as_second))
}

/// A word that hosts know.
fn word(text: &str, known: &[&'static str]) -> Option<&'static str> {
    known.iter().find(|it| **it == text).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(limits: &RateLimits, status: u16, headers: &[(&'static str, &str)]) {
        let headers =
            headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        limits.note(StatusCode::from_u16(status).unwrap(), &headers.collect());
    }

    #[test]
    fn a_subscription_tells_the_window_that_counts() {
        let limits = RateLimits::default();
        noted(
            &limits,
            200,
            &[
                ("anthropic-ratelimit-unified-status", "allowed_warning"),
                ("anthropic-ratelimit-unified-reset", "1775455200"),
                ("anthropic-ratelimit-unified-representative-claim", "seven_day"),
                ("anthropic-ratelimit-unified-5h-utilization", "0.26"),
                ("anthropic-ratelimit-unified-7d-utilization", "0.91"),
                ("anthropic-ratelimit-unified-overage-status", "rejected"),
            ],
        );
        let expected = RateLimit {
            status: "allowed_warning",
            resets_at: Some(1_775_455_200),
            rate_limit_type: Some("seven_day"),
            utilization: Some(0.91),
            overage_status: Some("rejected"),
            overage_resets_at: None,
        };
        assert_eq!(limits.last(), Some(expected));
    }

    #[test]
    fn unknown_words_and_numbers_are_left_out() {
        let limits = RateLimits::default();
        noted(&limits, 200, &[("anthropic-ratelimit-unified-status", "<b>fine</b>")]);
        assert_eq!(limits.last(), None);
        noted(
            &limits,
            200,
            &[
                ("anthropic-ratelimit-unified-status", "allowed"),
                ("anthropic-ratelimit-unified-reset", "soon"),
                ("anthropic-ratelimit-unified-representative-claim", "leap_year"),
                ("anthropic-ratelimit-unified-5h-utilization", "NaN"),
            ],
        );
        let bare = RateLimit { status: "allowed", ..RateLimit::default() };
        assert_eq!(limits.last(), Some(bare));
    }

    #[test]
    fn a_key_tells_of_a_rejection_and_of_its_end() {
        let limits = RateLimits::default();
        let counts = |remaining| {
            [
                ("anthropic-ratelimit-requests-limit", "50"),
                ("anthropic-ratelimit-requests-remaining", "12"),
                ("anthropic-ratelimit-requests-reset", "2027-01-01T00:00:00Z"),
                ("anthropic-ratelimit-input-tokens-limit", "20000"),
                ("anthropic-ratelimit-input-tokens-remaining", remaining),
                ("anthropic-ratelimit-input-tokens-reset", "2026-01-01T00:00:09Z"),
            ]
        };
        noted(&limits, 200, &counts("9"));
        assert_eq!(limits.last(), None, "nothing has changed");
        noted(&limits, 429, &[]);
        assert_eq!(limits.last(), None, "it does not say which limit");
        noted(&limits, 429, &counts("0"));
        let rejected = RateLimit {
            status: "rejected",
            resets_at: Some(1_767_225_609),
            ..RateLimit::default()
        };
        assert_eq!(limits.last(), Some(rejected.clone()));
        noted(&limits, 500, &[]);
        assert_eq!(limits.last(), Some(rejected));
        noted(&limits, 200, &counts("20000"));
        let allowed = RateLimit { status: "allowed", ..RateLimit::default() };
        assert_eq!(limits.last(), Some(allowed));
    }
}
