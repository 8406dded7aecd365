//! The size limits of conversations, and the thresholds of compaction.

use centurion_model::ModelInfo;

/// The tokens of a window that are reserved for the next answer and the input after it.
const RESERVED: u64 = 33_000;
/// The share of it that is for the answer.
const FOR_ANSWER: u64 = 20_000;
/// The smallest window that settings of other programs mean.
pub const SMALLEST_WINDOW: u64 = 100_000;

/// The user's choices about windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextRules {
    /// The window of every model, whatever is known of it.
    pub window: Option<u64>,
    /// The window of models of which nothing is known.
    pub unknown_window: Option<u64>,
    /// The window by which conversations are made shorter, where that is less.
    pub automatic_window: Option<u64>,
    /// At how many percent of it they are made shorter.
    pub percent: Option<u64>,
    /// True if they are made shorter before they would no longer fit.
    pub automatic: bool,
    /// True if they are made shorter at all.
    pub allowed: bool,
}

impl Default for ContextRules {
    fn default() -> Self {
        Self {
            window: None,
            unknown_window: None,
            automatic_window: None,
            percent: None,
            automatic: true,
            allowed: true,
        }
    }
}

impl ContextRules {
    /// The most tokens of a request and its answer together.
    pub(crate) fn window(&self, info: &ModelInfo) -> u64 {
        // A model that is never helped by a summary is taken at the user's word.
        let unknown = self.unknown_window.filter(|_| info.is_estimate || !self.allowed);
        self.window.or(unknown).unwrap_or(info.context_window)
    }

    /// From how many tokens on a conversation is made shorter; `None` if that is not to happen by itself.
    pub(crate) fn threshold(&self, info: &ModelInfo) -> Option<u64> {
        let window = self.window(info);
        let window = self.automatic_window.map_or(window, |chosen| chosen.min(window));
        let threshold = match self.percent {
            Some(percent) => {
                let for_answer = FOR_ANSWER.min(window / 5);
                (window - for_answer).saturating_mul(percent.min(100)) / 100
            }
            None => window - RESERVED.min(window / 3),
        };
        (self.automatic && self.allowed).then_some(threshold)
    }

    /// The switch that keeps a run from making its conversation shorter by itself, in words for people.
    pub(crate) fn switched_off_by(&self) -> Option<&'static str> {
        match self {
            Self { allowed: false, .. } => Some("compaction is off (DISABLE_COMPACT)"),
            Self { automatic: false, .. } => Some(
                "automatic compaction is off (DISABLE_AUTO_COMPACT, autoCompactEnabled): /compact makes room",
            ),
            _ => None,
        }
    }

    /// The most tokens of a summary.
    pub(crate) fn largest_summary(&self, info: &ModelInfo) -> u64 {
        FOR_ANSWER.min(self.window(info) / 5)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn threshold(model: &str, rules: ContextRules) -> Option<u64> {
        rules.threshold(&ModelInfo::anthropic(model))
    }

    #[test]
    fn the_threshold_follows_the_model_and_what_the_user_chose() {
        // D-55
        let usual = ContextRules::default();
        assert_eq!(threshold("claude-opus-5-5", usual), Some(967_000));
        assert_eq!(threshold("claude-sonnet-4-5", usual), Some(167_000));
        let chosen = ContextRules { automatic_window: Some(100_000), ..usual };
        assert_eq!(threshold("claude-opus-5-5", chosen), Some(67_000));
        let larger = ContextRules { automatic_window: Some(400_000), ..usual };
        assert_eq!(
            threshold("claude-sonnet-4-5", larger),
            Some(167_000),
            "a model has what it has"
        );
        let percent = ContextRules { percent: Some(50), ..chosen };
        assert_eq!(threshold("claude-opus-5-5", percent), Some(40_000));
        let small = ContextRules { window: Some(9_000), ..usual };
        assert_eq!(threshold("claude-opus-5-5", small), Some(6_000));
        for off in
            [ContextRules { automatic: false, ..usual }, ContextRules { allowed: false, ..usual }]
        {
            assert_eq!(threshold("claude-opus-5-5", off), None);
        }
    }

    #[test]
    fn the_window_of_an_unknown_model_is_what_the_user_says() {
        let rules = ContextRules { unknown_window: Some(64_000), ..ContextRules::default() };
        assert_eq!(rules.window(&ModelInfo::openai("house-model", false)), 64_000);
        assert_eq!(rules.window(&ModelInfo::anthropic("claude-sonnet-4-5")), 200_000);
        let without = ContextRules { allowed: false, ..rules };
        assert_eq!(without.window(&ModelInfo::anthropic("claude-sonnet-4-5")), 64_000);
    }
}
