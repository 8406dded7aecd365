//! The known models: aliases, windows, modes of thinking and prices.
//!
//! An unknown name is no error: it gets conservative values, and its prices are marked as an estimate.

use centurion_protocol::{Effort, Env, ReportedUsage, Thinking, Usage};

/// The suffix that asks for a window of a million tokens.
const LARGE_SUFFIX: &str = "[1m]";
const LARGE_WINDOW: u64 = 1_000_000;

/// The aliases, their default models, and the variables that override them.
const ALIASES: [(&str, &str, &str); 4] = [
    ("opus", "claude-opus-5-5", "ANTHROPIC_DEFAULT_OPUS_MODEL"),
    ("sonnet", "claude-sonnet-5-5", "ANTHROPIC_DEFAULT_SONNET_MODEL"),
    ("haiku", "claude-haiku-5-5", "ANTHROPIC_DEFAULT_HAIKU_MODEL"),
    ("fable", "claude-fable-5-2", "ANTHROPIC_DEFAULT_FABLE_MODEL"),
];

/// The aliases of models in one environment.
#[derive(Clone, Debug)]
pub struct Aliases {
    names: Vec<Alias>,
}

#[derive(Clone, Debug)]
struct Alias {
    short: &'static str,
    built_in: &'static str,
    /// The environment's definition of the alias.
    chosen: Option<String>,
}

impl Aliases {
    pub fn new(env: &Env) -> Self {
        let names = ALIASES.map(|(short, built_in, variable)| Alias {
            short,
            built_in,
            chosen: env.get(variable).map(|name| name.trim().to_owned()),
        });
        Self { names: names.into() }
    }

    /// The full name; returns a name that is no alias unchanged.
    pub fn resolve(&self, name: &str) -> String {
        self.resolve_or(name, |alias| alias.built_in.to_owned())
    }

    /// As [`Aliases::resolve`] for a provider without such families: an alias that the environment does not define is
    /// the session's own model.
    pub fn resolve_elsewhere(&self, name: &str, own: &str) -> String {
        self.resolve_or(name, |_| own.to_owned())
    }

    /// Whether the name is an alias.
    pub fn is_alias(&self, name: &str) -> bool {
        self.find(split_suffix(name.trim()).0).is_some()
    }

    fn resolve_or(&self, name: &str, default: impl FnOnce(&Alias) -> String) -> String {
        let (plain, is_large) = split_suffix(name.trim());
        let Some(alias) = self.find(plain) else { return name.trim().to_owned() };
        let full = alias.chosen.clone().unwrap_or_else(|| default(alias));
        if is_large && !split_suffix(&full).1 { format!("{full}{LARGE_SUFFIX}") } else { full }
    }

    fn find(&self, plain: &str) -> Option<&Alias> {
        let wanted = if plain.eq_ignore_ascii_case("default") { "opus" } else { plain };
        self.names.iter().find(|alias| alias.short.eq_ignore_ascii_case(wanted))
    }
}

/// Splits `[1m]` off a name.
pub(crate) fn split_suffix(name: &str) -> (&str, bool) {
    match name.len().checked_sub(LARGE_SUFFIX.len()).and_then(|at| name.split_at_checked(at)) {
        Some((plain, suffix)) if suffix.eq_ignore_ascii_case(LARGE_SUFFIX) => (plain, true),
        _ => (name, false),
    }
}

/// The way in which a request controls a model's thinking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThinkingKind {
    /// It does not think, or cannot be controlled.
    None,
    /// By a number of tokens.
    Budget,
    /// The model decides by itself how much to think.
    Adaptive,
    /// The model decides by itself unless the request has a number.
    AdaptiveOrBudget,
}

/// The thinking field of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThinkingMode {
    Unsaid,
    Disabled,
    Adaptive,
    Budget(u32),
}

/// Dollars for a million tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prices {
    pub input: f64,
    pub output: f64,
    /// For five minutes.
    pub cache_write: f64,
    pub hour_write: f64,
    pub cache_read: f64,
}

impl Prices {
    pub const FREE: Self =
        Self { input: 0.0, output: 0.0, cache_write: 0.0, hour_write: 0.0, cache_read: 0.0 };

    const fn family(input: f64, output: f64) -> Self {
        Self {
            input,
            output,
            cache_write: input * 1.25,
            hour_write: input * 2.0,
            cache_read: input * 0.1,
        }
    }
}

const FABLE: Prices = Prices::family(10.0, 50.0);
const OPUS: Prices = Prices::family(5.0, 25.0);
const EARLY_OPUS: Prices = Prices::family(15.0, 75.0);
const SONNET: Prices = Prices::family(3.0, 15.0);
const HAIKU: Prices = Prices::family(1.0, 5.0);
/// The assumed prices of a model with unknown prices, so that a budget stops early rather than late.
const DEAREST: Prices = FABLE;
/// Dollars for one use of each tool that a provider runs by itself, by the name of its count. A sandbox for code is
/// charged for five minutes at least.
const SERVER_TOOLS: [(&str, f64); 2] =
    [("web_search_requests", 0.01), ("code_execution_requests", 0.05 / 12.0)];

/// The facts about one model.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelInfo {
    pub name: String,
    /// Tokens of input and answer together.
    pub context_window: u64,
    /// The largest answer, in tokens.
    pub max_output: u32,
    pub thinking: ThinkingKind,
    /// The levels of effort that it supports, lowest first.
    pub efforts: &'static [Effort],
    pub prices: Prices,
    /// Whether the prices are a guess.
    pub is_estimate: bool,
    /// Whether its provider can search the web by itself.
    pub has_server_tools: bool,
}

const ALL_EFFORTS: &[Effort] = &Effort::ALL;
const NO_XHIGH: &[Effort] = &[Effort::Low, Effort::Medium, Effort::High, Effort::Max];
const UP_TO_HIGH: &[Effort] = &[Effort::Low, Effort::Medium, Effort::High];

impl ModelInfo {
    /// A model of the Messages API.
    pub fn anthropic(name: &str) -> Self {
        let (plain, is_large) = split_suffix(name);
        let plain = plain.to_ascii_lowercase();
        let version = claude_version(&plain);
        let (prices, is_estimate) = family_prices(&plain, version);
        Self {
            context_window: if is_large || is_natively_large(&plain, version) {
                LARGE_WINDOW
            } else {
                200_000
            },
            max_output: largest_answer(&plain, version),
            thinking: match version {
                Some((5.., _)) => ThinkingKind::Adaptive,
                Some((4, 6..)) => ThinkingKind::AdaptiveOrBudget,
                Some((4, _) | (3, 7)) => ThinkingKind::Budget,
                _ => ThinkingKind::None,
            },
            efforts: match version {
                Some((5.., _)) => ALL_EFFORTS,
                Some((4, 6..)) => NO_XHIGH,
                Some((4, 5)) if plain.contains("opus") => UP_TO_HIGH,
                _ => &[],
            },
            prices,
            is_estimate,
            has_server_tools: true,
            name: name.to_owned(),
        }
    }

    /// A model behind an OpenAI-compatible interface.
    pub fn openai(name: &str, is_local: bool) -> Self {
        let (plain, is_large) = split_suffix(name);
        let reasons = reasons(plain);
        Self {
            context_window: if is_large { LARGE_WINDOW } else { 128_000 },
            max_output: match (reasons, is_local) {
                (true, _) => 32_000,
                (false, false) => 16_384,
                // Small servers refuse an answer that could not fit beside the prompt.
                (false, true) => 8_192,
            },
            thinking: ThinkingKind::None,
            efforts: if reasons { UP_TO_HIGH } else { &[] },
            prices: if is_local { Prices::FREE } else { DEAREST },
            is_estimate: !is_local,
            has_server_tools: false,
            name: name.to_owned(),
        }
    }

    /// The cost of the tokens, in dollars.
    pub fn cost(&self, usage: &Usage) -> f64 {
        let prices = &self.prices;
        let millionths = usage.input_tokens as f64 * prices.input
            + usage.output_tokens as f64 * prices.output
            + usage.cache_creation_input_tokens as f64 * prices.cache_write
            + usage.cache_read_input_tokens as f64 * prices.cache_read;
        millionths / 1e6
    }

    /// The name that all places of one model share: without the address of a cloud, a date, a revision and the mark
    /// of a large window.
    pub fn canonical_name(&self) -> &str {
        let (plain, _) = split_suffix(&self.name);
        let Some(begin) = plain.find("claude-") else { return plain };
        let plain = &plain[begin..];
        let plain = plain.split(['@', ':']).next().unwrap_or(plain);
        let plain = plain.strip_suffix("-v1").unwrap_or(plain);
        match plain.rsplit_once('-') {
            Some((name, date))
                if date.len() == 8 && date.bytes().all(|byte| byte.is_ascii_digit()) =>
            {
                name
            }
            _ => plain,
        }
    }

    /// The cost of everything that a provider reports, in dollars: tokens, and what its own tools charge for.
    pub fn cost_of(&self, usage: &ReportedUsage) -> f64 {
        let prices = &self.prices;
        let hour_writes =
            usage.hour_writes() as f64 * (prices.hour_write - prices.cache_write) / 1e6;
        let uses = |name| usage.number(["server_tool_use", name]) as f64;
        let server_tools = SERVER_TOOLS
            .iter()
            .filter(|_| self.has_server_tools)
            .fold(0.0, |sum, (name, dollars)| sum + uses(*name) * dollars);
        self.cost(&usage.counts) + hour_writes + server_tools
    }

    /// The level to send for a requested level: the highest supported one that is no higher, or the lowest.
    pub fn effort(&self, asked: Effort) -> Option<Effort> {
        let mut known = self.efforts.iter().copied();
        known.rfind(|level| *level <= asked).or(self.efforts.first().copied())
    }

    /// The thinking field for an answer of at most `max_tokens`.
    pub fn thinking_mode(&self, asked: Thinking, max_tokens: u32) -> ThinkingMode {
        use ThinkingKind as Kind;
        // The interface refuses a budget below its minimum, or one that leaves no tokens for the answer.
        let budget = |tokens: u32| match max_tokens.checked_sub(1) {
            Some(most @ 1024..) => ThinkingMode::Budget(tokens.clamp(1024, most)),
            _ => ThinkingMode::Unsaid,
        };
        match (self.thinking, asked) {
            (Kind::None, _) | (Kind::Budget, Thinking::Disabled) => ThinkingMode::Unsaid,
            (Kind::Adaptive | Kind::AdaptiveOrBudget, Thinking::Disabled) => ThinkingMode::Disabled,
            (Kind::Adaptive, _) | (Kind::AdaptiveOrBudget, Thinking::Auto | Thinking::Adaptive) => {
                ThinkingMode::Adaptive
            }
            (Kind::Budget, Thinking::Auto | Thinking::Adaptive) => budget(u32::MAX),
            (Kind::Budget | Kind::AdaptiveOrBudget, Thinking::Budget(tokens)) => budget(tokens),
        }
    }
}

/// Whether an OpenAI model accepts `reasoning_effort`: the o-series and gpt-5.
pub(crate) fn reasons(name: &str) -> bool {
    // Routers write `openai/gpt-5`.
    let name = name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase();
    let o_series = name.strip_prefix('o').is_some_and(|rest| {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        digits > 0 && matches!(rest.as_bytes().get(digits), None | Some(b'-'))
    });
    o_series || name.starts_with("gpt-5")
}

pub(crate) fn is_natively_large_window(name: &str) -> bool {
    let name = split_suffix(name).0.to_ascii_lowercase();
    is_natively_large(&name, claude_version(&name))
}

fn is_natively_large(name: &str, version: Option<(u32, u32)>) -> bool {
    let is_current = matches!(version, Some(version) if version >= (5, 5));
    name.contains("fable") || (is_current && (name.contains("opus") || name.contains("sonnet")))
}

fn largest_answer(name: &str, version: Option<(u32, u32)>) -> u32 {
    match version {
        Some((5.., _)) if name.contains("haiku") => 64_000,
        Some((5.., _)) => 128_000,
        Some((4, ..5)) if name.contains("opus") => 32_000,
        Some((4, _) | (3, 7)) => 64_000,
        Some((3, 5..)) => 8_192,
        Some((3, _)) => 4_096,
        _ => 32_000,
    }
}

fn family_prices(name: &str, version: Option<(u32, u32)>) -> (Prices, bool) {
    let known = if name.contains("fable") {
        FABLE
    } else if name.contains("opus") {
        if version.is_some_and(|version| version < (4, 5)) { EARLY_OPUS } else { OPUS }
    } else if name.contains("sonnet") {
        SONNET
    } else if name.contains("haiku") {
        HAIKU
    } else {
        return (DEAREST, true);
    };
    (known, false)
}

/// Major and minor version of `claude-opus-5-5`, `claude-3-7-sonnet-20250219` and the like.
fn claude_version(name: &str) -> Option<(u32, u32)> {
    let (_, rest) = name.split_once("claude-")?;
    // Dates are longer than versions; clouds add `@20250514`, `-v1:0` and the like.
    let mut numbers = rest
        .split(['-', '@', ':', '.'])
        .skip_while(|part| part.parse::<u32>().is_err())
        .map_while(|part| part.parse::<u32>().ok().filter(|_| part.len() <= 2));
    let major = numbers.next()?;
    Some((major, numbers.next().unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn aliases_are_resolved_and_can_be_chosen() {
        let aliases = Aliases::new(&Env::default());
        assert_eq!(aliases.resolve("default"), "claude-opus-5-5");
        assert_eq!(aliases.resolve("Opus"), "claude-opus-5-5");
        assert_eq!(aliases.resolve("sonnet[1m]"), "claude-sonnet-5-5[1m]");
        assert_eq!(aliases.resolve("haiku"), "claude-haiku-5-5");
        assert_eq!(aliases.resolve("fable"), "claude-fable-5-2");
        assert_eq!(aliases.resolve("claude-sonnet-4-5"), "claude-sonnet-4-5");
        let aliases = Aliases::new(&Env::from([("ANTHROPIC_DEFAULT_OPUS_MODEL", "mine")]));
        assert_eq!(aliases.resolve("default"), "mine");
        assert_eq!(aliases.resolve("opus[1m]"), "mine[1m]");
        assert_eq!(aliases.resolve_elsewhere("opus", "qwen"), "mine");
        assert_eq!(aliases.resolve_elsewhere("haiku", "qwen"), "qwen");
        assert_eq!(aliases.resolve_elsewhere("llama", "qwen"), "llama");
        assert!(aliases.is_alias("default") && !aliases.is_alias("claude-opus-5-5"));
    }

    #[test]
    fn versions_are_found_in_all_spellings() {
        for (name, version) in [
            ("claude-opus-5-5", Some((5, 5))),
            ("claude-opus-4-6", Some((4, 6))),
            ("claude-sonnet-4-20250514", Some((4, 0))),
            ("claude-3-7-sonnet-20250219", Some((3, 7))),
            ("us.anthropic.claude-opus-4-1-20250805-v1:0", Some((4, 1))),
            ("anthropic/claude-sonnet-4.5", Some((4, 5))),
            ("claude-opus-4@20250514", Some((4, 0))),
            ("claude-instant", None),
            ("gpt-4", None),
        ] {
            assert_eq!(claude_version(name), version, "{name}");
        }
    }

    #[test]
    fn windows_and_answers() {
        let window = |name: &str| ModelInfo::anthropic(name).context_window;
        assert_eq!(window("claude-opus-5-5"), 1_000_000);
        assert_eq!(window("claude-sonnet-5-5"), 1_000_000);
        assert_eq!(window("claude-fable-5-2"), 1_000_000);
        assert_eq!(window("claude-haiku-5-5"), 200_000);
        assert_eq!(window("claude-sonnet-4-5"), 200_000);
        assert_eq!(window("claude-sonnet-4-5[1m]"), 1_000_000);
        assert_eq!(window("somebody-elses"), 200_000);
        assert_eq!(ModelInfo::openai("qwen3", true).context_window, 128_000);
        assert_eq!(ModelInfo::anthropic("claude-opus-5-5").max_output, 128_000);
        assert_eq!(ModelInfo::anthropic("claude-opus-4-1").max_output, 32_000);
        assert_eq!(ModelInfo::anthropic("somebody-elses").max_output, 32_000);
    }

    #[test]
    fn an_effort_that_a_model_lacks_steps_down() {
        let effort = |name: &str, asked| ModelInfo::anthropic(name).effort(asked);
        assert_eq!(effort("claude-opus-5-5", Effort::Xhigh), Some(Effort::Xhigh));
        assert_eq!(effort("claude-opus-4-6", Effort::Xhigh), Some(Effort::High));
        assert_eq!(effort("claude-opus-4-6", Effort::Max), Some(Effort::Max));
        assert_eq!(effort("claude-opus-4-5", Effort::Max), Some(Effort::High));
        assert_eq!(effort("claude-sonnet-4-5", Effort::Low), None);
        assert_eq!(ModelInfo::openai("gpt-5", false).effort(Effort::Max), Some(Effort::High));
        assert_eq!(ModelInfo::openai("gpt-4o", false).effort(Effort::Max), None);
    }

    #[test]
    fn thinking_is_asked_for_in_the_way_a_model_takes() {
        let mode = |name: &str, asked| ModelInfo::anthropic(name).thinking_mode(asked, 10_000);
        assert_eq!(mode("claude-opus-5-5", Thinking::Auto), ThinkingMode::Adaptive);
        assert_eq!(mode("claude-opus-5-5", Thinking::Budget(5000)), ThinkingMode::Adaptive);
        assert_eq!(mode("claude-opus-5-5", Thinking::Disabled), ThinkingMode::Disabled);
        assert_eq!(mode("claude-opus-4-6", Thinking::Auto), ThinkingMode::Adaptive);
        assert_eq!(mode("claude-opus-4-6", Thinking::Budget(5000)), ThinkingMode::Budget(5000));
        assert_eq!(mode("claude-sonnet-4-5", Thinking::Auto), ThinkingMode::Budget(9999));
        assert_eq!(mode("claude-sonnet-4-5", Thinking::Budget(1)), ThinkingMode::Budget(1024));
        assert_eq!(mode("claude-sonnet-4-5", Thinking::Budget(99_999)), ThinkingMode::Budget(9999));
        assert_eq!(mode("claude-sonnet-4-5", Thinking::Disabled), ThinkingMode::Unsaid);
        assert_eq!(mode("claude-3-5-haiku-20241022", Thinking::Auto), ThinkingMode::Unsaid);
        let old = ModelInfo::anthropic("claude-sonnet-4-5");
        assert_eq!(old.thinking_mode(Thinking::Auto, 1000), ThinkingMode::Unsaid);
        assert_eq!(old.thinking_mode(Thinking::Auto, 0), ThinkingMode::Unsaid);
    }

    #[test]
    fn tokens_cost_what_the_family_costs() {
        let usage = Usage {
            input_tokens: 1_000_000,
            output_tokens: 1_000_000,
            cache_creation_input_tokens: 1_000_000,
            cache_read_input_tokens: 1_000_000,
        };
        for (name, dollars, is_estimate) in [
            ("claude-opus-5-5", 5.0 + 25.0 + 6.25 + 0.5, false),
            ("claude-sonnet-5-5", 3.0 + 15.0 + 3.75 + 0.3, false),
            ("claude-haiku-5-5", 1.0 + 5.0 + 1.25 + 0.1, false),
            ("claude-fable-5-2", 10.0 + 50.0 + 12.5 + 1.0, false),
            ("claude-opus-4-1", 15.0 + 75.0 + 18.75 + 1.5, false),
            ("claude-nova-9", 10.0 + 50.0 + 12.5 + 1.0, true),
        ] {
            let info = ModelInfo::anthropic(name);
            assert!((info.cost(&usage) - dollars).abs() < 1e-9, "{name}");
            assert_eq!(info.is_estimate, is_estimate, "{name}");
        }
        assert!(ModelInfo::openai("qwen3", true).cost(&usage).abs() < 1e-9);
        assert!(ModelInfo::openai("gpt-5", false).is_estimate);
    }

    #[test]
    fn what_a_provider_charges_beside_tokens_counts() {
        let sent = json!({
            "cache_creation_input_tokens": 1_000_000,
            "cache_creation": {"ephemeral_1h_input_tokens": 1_000_000},
            "server_tool_use": {"web_search_requests": 100, "code_execution_requests": 12},
        });
        let mut usage = ReportedUsage::default();
        usage.update(sent.as_object().unwrap().clone());
        let cost = ModelInfo::anthropic("claude-opus-5-5").cost_of(&usage);
        assert!((cost - (10.0 + 1.0 + 0.05)).abs() < 1e-9, "{cost}");
        assert!(ModelInfo::openai("qwen3", true).cost_of(&usage).abs() < 1e-9);
    }

    #[test]
    fn a_model_has_one_name_at_all_places() {
        for (name, canonical) in [
            ("claude-opus-5-5[1m]", "claude-opus-5-5"),
            ("claude-sonnet-4-20250514", "claude-sonnet-4"),
            ("us.anthropic.claude-opus-4-1-20250805-v1:0", "claude-opus-4-1"),
            ("claude-opus-4@20250514", "claude-opus-4"),
        ] {
            assert_eq!(ModelInfo::anthropic(name).canonical_name(), canonical);
        }
        assert_eq!(ModelInfo::openai("qwen3:8b", true).canonical_name(), "qwen3:8b");
    }

    #[test]
    fn only_reasoning_models_take_an_effort() {
        for name in ["o1", "o3-mini", "o4-mini-2025", "gpt-5", "gpt-5-mini", "openai/gpt-5.1"] {
            assert!(reasons(name), "{name}");
        }
        for name in ["gpt-4o", "olmo-2", "o", "openchat", "qwen3", "o3x"] {
            assert!(!reasons(name), "{name}");
        }
    }
}
