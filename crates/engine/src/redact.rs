//! Credentials of known shapes never reach the disk.
//!
//! Runs on every record just before it is written. Nearly all records hold none of the telling
//! prefixes, and pay for one pass over their bytes; the patterns are compiled when first needed.

use std::borrow::Cow;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, Input, MatchKind};
use regex::bytes::{Captures, Regex};

/// What each pattern begins with or must contain, and the pattern: a name for the reader of the
/// transcript, and a shape strict enough that ordinary text does not fit it.
const SHAPES: &[(&str, &[&str], &str)] = &[
    ("anthropic_key", &["sk-ant-"], r"sk-ant-[A-Za-z0-9_-]{16,}"),
    ("openai_key", &["sk-"], r"sk-(?:proj-|svcacct-|or-)?[A-Za-z0-9_-]{20,}"),
    ("github_token", &["ghp_", "gho_", "ghu_", "ghs_", "ghr_"], r"gh[pousr]_[A-Za-z0-9]{30,}"),
    ("github_token_fine", &["github_pat_"], r"github_pat_[A-Za-z0-9_]{22,}"),
    ("gitlab_token", &["glpat-"], r"glpat-[A-Za-z0-9_-]{20,}"),
    ("aws_access_key", &["AKIA"], r"AKIA[0-9A-Z]{16}\b"),
    ("aws_session_key", &["ASIA"], r"ASIA[0-9A-Z]{16}\b"),
    ("slack_token", &["xox"], r"xox[abeoprs]-[A-Za-z0-9-]{10,}"),
    ("google_key", &["AIza"], r"AIza[0-9A-Za-z_-]{35}"),
    ("npm_token", &["npm_"], r"npm_[A-Za-z0-9]{36}"),
    ("pypi_token", &["pypi-"], r"pypi-[A-Za-z0-9_-]{40,}"),
    ("hugging_face_token", &["hf_"], r"hf_[A-Za-z0-9]{30,}"),
    ("stripe_key", &["sk_live_", "rk_live_"], r"[sr]k_live_[A-Za-z0-9]{20,}"),
    ("sendgrid_key", &["SG."], r"SG\.[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{20,}"),
    (
        "json_web_token",
        &["eyJ"],
        r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
    ),
    (
        "private_key",
        &["PRIVATE KEY-----"],
        r"(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?-----END [A-Z0-9 ]*PRIVATE KEY-----",
    ),
];

static HINTS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    let hints = SHAPES.iter().flat_map(|(_, hints, _)| *hints);
    // Leftmost first, because only such searches look at many bytes at once.
    AhoCorasick::builder().match_kind(MatchKind::LeftmostFirst).build(hints).ok()
});

static PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let alternatives: Vec<String> =
        SHAPES.iter().map(|(name, _, shape)| format!("(?P<{name}>{shape})")).collect();
    // What is searched is JSON, where the letter of an escape like `\t` is no part of a word.
    let before = r"(?P<before>^|[^0-9A-Za-z_]|\\[bfnrt]|\\u[0-9A-Fa-f]{4})";
    Regex::new(&format!("{before}(?:{})", alternatives.join("|"))).ok()
});

/// The bytes of the longest escape in JSON, as in `\u001b`.
const ESCAPE: usize = 6;

/// Whether a word may begin here: in `task-list` none begins with `sk-`. An escape before it is no part of
/// the word.
fn begins_word(bytes: &[u8], at: usize) -> bool {
    let before = &bytes[at.saturating_sub(ESCAPE)..at];
    before.last().is_none_or(|last| !last.is_ascii_alphanumeric() && *last != b'_')
        || before.contains(&b'\\')
}

/// Whether a word begins as a credential would.
fn is_hinted(hints: &AhoCorasick, bytes: &[u8]) -> bool {
    let mut from = 0;
    while let Some(found) = hints.find(Input::new(bytes).range(from..)) {
        if begins_word(bytes, found.start()) {
            return true;
        }
        // No hint has another one inside: whatever else there is begins later.
        from = found.start() + 1;
    }
    false
}

/// The same bytes with every credential replaced by `[redacted: kind]`.
pub(crate) fn redact(bytes: &[u8]) -> Cow<'_, [u8]> {
    match PATTERN.as_ref() {
        Some(pattern) if HINTS.as_ref().is_none_or(|hints| is_hinted(hints, bytes)) => pattern
            .replace_all(bytes, |found: &Captures<'_>| {
                let kind = SHAPES.iter().find(|(name, ..)| found.name(name).is_some());
                let mut replaced = found["before"].to_vec();
                replaced.extend_from_slice(b"[redacted: ");
                replaced.extend_from_slice(kind.map_or("secret", |(name, ..)| name).as_bytes());
                replaced.push(b']');
                replaced
            }),
        _ => Cow::Borrowed(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redacted(text: &str) -> String {
        String::from_utf8(redact(text.as_bytes()).into_owned()).unwrap()
    }

    #[test]
    fn known_credentials_disappear() {
        let alphabet = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJ";
        for secret in [
            format!("sk-ant-api03-{alphabet}"),
            format!("sk-proj-{alphabet}"),
            format!("ghp_{}", &alphabet[..36]),
            format!("github_pat_{alphabet}"),
            format!("glpat-{alphabet}"),
            "AKIAIOSFODNN7EXAMPLE".to_owned(),
            format!("xoxb-{alphabet}"),
            format!("AIza{}", &alphabet[..35]),
            format!("npm_{}", &alphabet[..36]),
            format!("hf_{alphabet}"),
            format!("sk_live_{alphabet}"),
            format!("eyJ{alphabet}.eyJ{alphabet}.{alphabet}"),
            format!(r"-----BEGIN RSA PRIVATE KEY-----\n{alphabet}\n-----END RSA PRIVATE KEY-----"),
        ] {
            for before in ["key=", r"1\t", r"\n", r"\u001b", ""] {
                let line = redacted(&format!(r#"{{"text":"{before}{secret} end"}}"#));
                assert!(!line.contains(&secret[..secret.len().min(24)]), "{line}");
                assert!(line.starts_with(&format!(r#"{{"text":"{before}[redacted: "#)), "{line}");
                assert!(line.ends_with(r#" end"}"#), "{line}");
            }
        }
    }

    #[test]
    fn ordinary_text_is_left_alone() {
        for text in [
            "task-notification of the risk-averse disk-operations-team-in-the-basement",
            "ghost_writer, AKIA, eyJhbGciOi without dots, npm_install",
            "-----BEGIN PUBLIC KEY----- abc -----END PUBLIC KEY-----",
        ] {
            assert_eq!(redacted(text), text);
        }
    }
}
