//! Suggestions for the user's next prompt: asked beside the conversation when a turn is over, for hosts that show it.

use centurion_protocol::Role;
use centurion_protocol::sdk::{EventBody, PromptSuggestion};

use crate::agent::shared::Shared;
use crate::turn::internal_fork::InternalFork;

/// The question to the model.
const QUESTION: &str = "<system-reminder>\nThe turn is over. What would the user most likely type next? Answer with \
    that text alone, as the user would write it: two to twelve words, one line, no quotes. If nothing suggests itself, \
    answer NONE. Call no tools, and do not continue the work: the conversation will not contain this exchange.\n\
    </system-reminder>";

/// The longest suggestion that is shown.
const LONGEST: usize = 120;

/// Shows what may come next, if the model has an idea. Dropping the future withdraws the question.
pub(super) async fn suggest(shared: &Shared) {
    let Some(point) = shared.main_point() else { return };
    // Only an answer leaves something to say.
    if point.prefix.conversation.last().is_none_or(|last| last.role() != Role::Assistant) {
        return;
    }
    let fork =
        InternalFork::after_conversation(shared, &point, "prompt_suggestion", QUESTION.to_owned());
    match fork.ask(shared).await {
        Ok(text) => {
            if let Some(suggestion) = read(&text) {
                shared.show(EventBody::PromptSuggestion(PromptSuggestion { suggestion }));
            }
        }
        Err(error) => tracing::debug!(%error, "there is no suggestion"),
    }
}

/// The suggestion in an answer.
fn read(answer: &str) -> Option<String> {
    let line: String =
        answer.trim().lines().next()?.chars().filter(|letter| !letter.is_control()).collect();
    let line = line.trim().trim_matches(['"', '\'', '`']).trim();
    let is_one = !line.is_empty() && !line.eq_ignore_ascii_case("none") && line.len() <= LONGEST;
    is_one.then(|| line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suggestion_is_one_short_line() {
        assert_eq!(read(" \"run the tests\" \nbecause").as_deref(), Some("run the tests"));
        assert_eq!(read("run\x1b]0;x\x07 it").as_deref(), Some("run]0;x it"));
        for nothing in ["", "NONE", "none\n", "\"\"", &"word ".repeat(50)] {
            assert_eq!(read(nothing), None, "{nothing}");
        }
    }
}
