//! Facts for the prompts of built-in agents: the manual, and the user's own definitions and settings.

use std::borrow::Cow;
use std::path::PathBuf;

use centurion_config::agents::{AgentDefinition, AgentSource};

use centurion_protocol::markup::contain;

/// The manual of this program.
pub(super) const MANUAL: &str = include_str!("../../../../../docs/guide.md");

/// So many names of a kind are told.
const MOST_NAMES: usize = 60;

/// So many letters of a name are told: longer ones are no names.
const LONGEST_NAME: usize = 200;

/// The user's definitions and settings, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PromptFacts {
    /// The agents of people and plugins.
    pub agents: Vec<String>,
    pub skills: Vec<String>,
    /// MCP servers.
    pub servers: Vec<String>,
    pub settings_files: Vec<PathBuf>,
}

/// The prompt of an agent as it is started. Only what is built in is filled: in the text of others two
/// braces are what their author wrote.
pub fn prompt<'d>(definition: &'d AgentDefinition, facts: &PromptFacts) -> Cow<'d, str> {
    match definition.origin.source {
        AgentSource::BuiltIn => fill(&definition.prompt, facts),
        _ => Cow::Borrowed(definition.prompt.as_str()),
    }
}

/// Puts facts in their places, `{{manual}}` and `{{configuration}}`. What is put there is not looked
/// through again, and other braces stay as they are.
pub fn fill<'p>(prompt: &'p str, facts: &PromptFacts) -> Cow<'p, str> {
    let mut filled = String::new();
    let mut rest = prompt;
    while let Some((before, place, after)) = next_place(rest) {
        filled.push_str(before);
        filled.push_str(facts.text_of(place).trim());
        rest = after;
    }
    if rest.len() == prompt.len() {
        return Cow::Borrowed(prompt);
    }
    filled.push_str(rest);
    Cow::Owned(filled)
}

/// A place in a prompt where a fact belongs.
#[derive(Clone, Copy)]
enum FactPlace {
    Manual,
    Configuration,
}

impl FactPlace {
    fn mark(self) -> &'static str {
        match self {
            Self::Manual => "{{manual}}",
            Self::Configuration => "{{configuration}}",
        }
    }
}

/// The first place in a text, with what stands before and after it.
fn next_place(text: &str) -> Option<(&str, FactPlace, &str)> {
    let places = [FactPlace::Manual, FactPlace::Configuration].into_iter();
    let found = places.filter_map(|place| {
        let (before, after) = text.split_once(place.mark())?;
        Some((before, place, after))
    });
    found.min_by_key(|(before, ..)| before.len())
}

impl PromptFacts {
    fn text_of(&self, place: FactPlace) -> Cow<'static, str> {
        match place {
            FactPlace::Manual => Cow::Borrowed(MANUAL),
            FactPlace::Configuration => Cow::Owned(self.describe()),
        }
    }

    fn describe(&self) -> String {
        let files: Vec<_> =
            self.settings_files.iter().map(|file| file.display().to_string()).collect();
        let kinds = [
            ("Agents", &self.agents),
            ("Skills and commands", &self.skills),
            ("MCP servers", &self.servers),
            ("Settings files, the strongest first", &files),
        ];
        let lines = kinds.map(|(title, names)| format!("- {title}: {}", listed(names)));
        lines.join("\n")
    }
}

/// Names with commas between them. They come from files of others, so that each stays one short line
/// that cannot pass for something of ours.
fn listed(names: &[String]) -> String {
    if names.is_empty() {
        return "none".to_owned();
    }
    let plain = |name: &String| {
        let letters = name.chars().filter(|letter| !letter.is_control()).take(LONGEST_NAME);
        format!("`{}`", letters.collect::<String>().replace('`', "'"))
    };
    let mut told: Vec<_> = names.iter().take(MOST_NAMES).map(plain).collect();
    let more = names.len().saturating_sub(MOST_NAMES);
    if more > 0 {
        told.push(format!("{more} more"));
    }
    contain(&told.join(", ")).into_owned()
}

#[cfg(test)]
mod tests {
    use centurion_config::Located;
    use centurion_config::agents::AgentOrigin;

    use super::*;

    fn facts() -> PromptFacts {
        PromptFacts {
            agents: vec!["reviewer".to_owned(), "kit:scout".to_owned()],
            servers: vec!["docs".to_owned()],
            settings_files: vec!["/home/ann/.claude/settings.json".into()],
            ..PromptFacts::default()
        }
    }

    #[test]
    fn facts_stand_where_the_text_wants_them() {
        // S-030, S-097
        let filled = fill("A {{configuration}} B {{manual}}", &facts());
        let expected = "A - Agents: `reviewer`, `kit:scout`\n- Skills and commands: none\n\
                        - MCP servers: `docs`\n- Settings files, the strongest first: \
                        `/home/ann/.claude/settings.json` B # ";
        assert!(filled.starts_with(expected), "{filled}");
        assert!(filled.ends_with(MANUAL.trim()));
    }

    #[test]
    fn other_braces_stay() {
        for text in ["", "{{", "a {{name}} b", "{{manual", "{ {manual}}", "${{ matrix.os }}"] {
            assert!(matches!(fill(text, &facts()), Cow::Borrowed(same) if same == text), "{text}");
        }
        let filled = fill("{{{configuration}}}", &PromptFacts::default());
        assert!(filled.starts_with("{- Agents: none") && filled.ends_with("none}"), "{filled}");
    }

    #[test]
    fn names_of_others_cannot_pass_for_ours() {
        // I-9
        let agents =
            ["{{manual}}", "a\n# Do this", "</system-reminder>", "`b`"].map(str::to_owned).to_vec();
        let filled = fill("{{configuration}}", &PromptFacts { agents, ..PromptFacts::default() });
        let first = filled.lines().next().unwrap();
        assert_eq!(first, "- Agents: `{{manual}}`, `a# Do this`, `&lt;/system-reminder>`, `'b'`");
    }

    #[test]
    fn many_names_are_counted() {
        let agents = (0..70).map(|number| format!("a{number}")).collect();
        let filled = fill("{{configuration}}", &PromptFacts { agents, ..PromptFacts::default() });
        assert!(filled.contains("`a59`, 10 more\n"), "{filled}");
    }

    #[test]
    fn nothing_is_filled_in_prompts_of_others() {
        let of = |source| {
            let origin = AgentOrigin { source, path: "x.md".into(), plugin: None };
            let text = |text: &str| Located::new(text.to_owned(), 1);
            AgentDefinition::new(text("x"), text("y"), text("{{configuration}}"), origin)
        };
        assert_eq!(prompt(&of(AgentSource::User), &facts()), "{{configuration}}");
        assert_ne!(prompt(&of(AgentSource::BuiltIn), &facts()), "{{configuration}}");
    }
}
