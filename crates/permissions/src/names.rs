//! Names of agents, skills and other sessions in rules.

use serde_json::{Map, Value};

use crate::wildcard::Wildcard;

/// The types of agents in `Agent(type)` or `Agent(type, type)`, in which `*` matches any text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AgentNames(Vec<Wildcard>);

impl AgentNames {
    pub(crate) fn parse(text: &str) -> Self {
        // A name may contain a comma.
        let texts = text.split(',').chain(text.contains(',').then_some(text));
        let names = texts.map(clean).filter(|name| !name.is_empty());
        Self(names.map(|name| Wildcard::parse(&name)).collect())
    }

    /// Whether a call starts an agent of one of these types. `known` are all names of that agent, where they are known;
    /// without them, the requested name counts, or else the general one.
    pub(crate) fn fit(&self, input: &Map<String, Value>, known: &[String]) -> bool {
        let asked = input.get("subagent_type").and_then(Value::as_str);
        let asked = asked.filter(|name| !name.trim().is_empty());
        let usual = known.is_empty().then_some("general-purpose");
        let mut names = known.iter().map(String::as_str).chain(asked.or(usual));
        names.any(|name| self.names(name))
    }

    fn names(&self, name: &str) -> bool {
        let name = clean(name);
        self.0.iter().any(|pattern| pattern.fits(&name))
    }
}

/// Ignores case and separators in the names of agents. Letter by letter, as in the lookup of agents: a name that finds
/// an agent there is equal here.
fn clean(name: &str) -> String {
    let parts = name.trim().split([' ', '_', '-']).filter(|part| !part.is_empty());
    let lower = |part: &str| part.chars().flat_map(char::to_lowercase).collect::<String>();
    parts.map(lower).collect::<Vec<_>>().join("-")
}

/// A skill in `Skill(name)`, or with any arguments in `Skill(name *)`. In the name `*` matches any text, so that
/// `Skill(kit:*)` means all skills of a plugin; it means the skill `kit` with any arguments, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SkillPattern {
    names: Vec<Wildcard>,
    any_arguments: bool,
}

impl SkillPattern {
    pub(crate) fn parse(text: &str) -> Self {
        let any_arguments = text.ends_with('*');
        let text = text.strip_suffix(" *").unwrap_or(text).trim().trim_start_matches('/');
        let names = std::iter::once(text).chain(text.strip_suffix(":*"));
        Self { names: names.map(Wildcard::parse).collect(), any_arguments }
    }

    /// Whether a call is one of this skill. `known` are all names of that skill, where they are known; without them, the
    /// requested name counts. Without ` *`, an allow rule means the skill without arguments; an ask or deny rule means
    /// the skill with any.
    pub(crate) fn fits(&self, input: &Map<String, Value>, known: &[String], gives: bool) -> bool {
        let field = |name: &str| input.get(name).and_then(Value::as_str).map(str::trim);
        let takes = self.any_arguments || !gives;
        if !known.is_empty() {
            let is_bare = field("args").is_none_or(str::is_empty);
            return (is_bare || takes) && known.iter().any(|name| self.names(name));
        }
        let Some(asked) = field("skill").or_else(|| field("command")) else { return false };
        let asked = asked.trim_start_matches('/');
        let first = asked.split_once(' ').map(|(name, _)| name);
        let is_bare = first.is_none() && field("args").is_none_or(str::is_empty);
        (is_bare || takes) && std::iter::once(asked).chain(first).any(|name| self.names(name))
    }

    fn names(&self, name: &str) -> bool {
        self.names.iter().any(|pattern| pattern.fits(name))
    }
}

/// Other sessions in `SendMessage(uds:…)`, in which `*` matches any text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PeerPattern(Wildcard);

impl PeerPattern {
    /// `None` if it names no session.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let is_peer = ["uds:", "bridge:"].iter().any(|scheme| text.starts_with(scheme));
        is_peer.then(|| Self(Wildcard::parse(text)))
    }

    /// Whether a message is for one of these. A session has two addresses, its id and the path of its socket, and
    /// either means the same.
    pub(crate) fn fits(&self, input: &Map<String, Value>) -> bool {
        let Some(to) = input.get("to").and_then(Value::as_str).map(str::trim) else { return false };
        let path = to.strip_prefix("uds:").map(str::trim).filter(|place| place.starts_with('/'));
        let name = path.and_then(|path| path.rsplit('/').next());
        let session = name.and_then(|name| name.strip_suffix(".sock"));
        self.0.fits(to) || session.is_some_and(|it| self.0.fits(&format!("uds:{it}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_named_by_its_id_or_its_socket() {
        // S-235
        for (rule, to, expected) in [
            ("uds:*", "uds:7b5e", true),
            ("uds:*", " uds:/run/7b5e.sock ", true),
            ("uds:*", "w1", false),
            ("uds:*", "bridge:x", false),
            ("uds:7b5e", "uds:7b5e", true),
            ("uds:7b5e", "uds:/a/../b/7b5e.sock", true),
            ("uds:7b5e", "uds: /b/7b5e.sock", true),
            ("uds:7b5e", "uds:8c6f", false),
            ("bridge:*", "bridge:x", true),
        ] {
            let input = Map::from_iter([("to".to_owned(), Value::from(to))]);
            assert_eq!(PeerPattern::parse(rule).unwrap().fits(&input), expected, "{rule} on {to}");
        }
        assert_eq!(PeerPattern::parse("to:x"), None);
    }

    fn input(json: &str) -> Map<String, Value> {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn agents_are_named_without_regard_to_case_and_separators() {
        for (rule, json, expected) in [
            ("Explore", r#"{"subagent_type":"explore"}"#, true),
            ("code-reviewer", r#"{"subagent_type":"Code Reviewer"}"#, true),
            ("a, b", r#"{"subagent_type":"b"}"#, true),
            ("fork", r#"{"subagent_type":"fork"}"#, true),
            ("fork", r#"{"subagent_type":"forker"}"#, false),
            ("general-purpose", "{}", true),
            ("fork", "{}", false),
            ("plugin:scan", r#"{"subagent_type":"plugin:scan"}"#, true),
            ("plugin:*", r#"{"subagent_type":"Plugin:scan"}"#, true),
            ("general*", "{}", true),
            ("General *", r#"{"subagent_type":"general_purpose"}"#, true),
            ("*-purpose", "{}", true),
            ("a, gen*", "{}", true),
            ("gen*", r#"{"subagent_type":"Explore"}"#, false),
            ("a, b", r#"{"subagent_type":"a, b"}"#, true),
            ("ΟΔΟΣ", r#"{"subagent_type":"οδοσ"}"#, true),
        ] {
            let fits = AgentNames::parse(rule).fit(&input(json), &[]);
            assert_eq!(fits, expected, "{rule} on {json}");
        }
    }

    #[test]
    fn an_agent_is_meant_by_each_of_its_names() {
        let known = ["centurion-guide".to_owned(), "claude-code-guide".to_owned()];
        for (rule, json, expected) in [
            ("claude-code-guide", r#"{"subagent_type":"centurion-guide"}"#, true),
            ("claude*", r#"{"subagent_type":"centurion-guide"}"#, true),
            ("centurion_guide", r#"{"subagent_type":"claude-code-guide"}"#, true),
            // The requested name counts as well, and a name that the agent does not have counts not.
            ("guide", r#"{"subagent_type":"guide"}"#, true),
            ("general-purpose", "{}", false),
            ("Explore", "{}", false),
        ] {
            let fits = AgentNames::parse(rule).fit(&input(json), &known);
            assert_eq!(fits, expected, "{rule} on {json}");
        }
    }

    #[test]
    fn a_skill_with_arguments_needs_a_star_to_be_allowed() {
        for (rule, json, gives, takes) in [
            ("review", r#"{"skill":"review"}"#, true, true),
            ("review", r#"{"skill":"/review"}"#, true, true),
            ("review", r#"{"skill":"review","args":"x"}"#, false, true),
            ("review", r#"{"command":"review x"}"#, false, true),
            ("review *", r#"{"skill":"review","args":"x"}"#, true, true),
            ("review *", r#"{"skill":"review"}"#, true, true),
            ("review *", r#"{"skill":"reviewer"}"#, false, false),
            ("review", r#"{"other":1}"#, false, false),
        ] {
            let pattern = SkillPattern::parse(rule);
            assert_eq!(pattern.fits(&input(json), &[], true), gives, "allow {rule} on {json}");
            assert_eq!(pattern.fits(&input(json), &[], false), takes, "deny {rule} on {json}");
        }
    }

    #[test]
    fn a_skill_is_meant_by_each_of_its_names_and_by_no_other() {
        let of_plugin = ["kit:fix", "fix"];
        for (rule, known, json, gives, takes) in [
            ("kit:fix", of_plugin.as_slice(), r#"{"skill":"fix"}"#, true, true),
            ("fix", &of_plugin, r#"{"skill":"kit:fix"}"#, true, true),
            ("fix", &["kit:fix"], r#"{"skill":"kit:fix"}"#, false, false),
            ("kit:*", &of_plugin, r#"{"skill":"fix","args":"x"}"#, true, true),
            ("kit:*", &["kit"], r#"{"skill":"kit","args":"x"}"#, true, true),
            ("kit:*", &["kitchen:fix"], r#"{"skill":"kitchen:fix"}"#, false, false),
            ("k* *", &of_plugin, r#"{"skill":"fix","args":"x"}"#, true, true),
            ("my skill", &["my skill"], r#"{"skill":"my skill"}"#, true, true),
            ("my skill", &["my skill"], r#"{"command":"my skill","args":"x"}"#, false, true),
            ("my skill *", &["my skill"], r#"{"skill":"my skill","args":"x"}"#, true, true),
            ("my", &["my skill"], r#"{"skill":"my skill"}"#, false, false),
            // What it asks for by another name counts not.
            ("other", &["fix"], r#"{"skill":"other"}"#, false, false),
        ] {
            let known: Vec<String> = known.iter().map(|name| (*name).to_owned()).collect();
            let pattern = SkillPattern::parse(rule);
            let fits = |gives| pattern.fits(&input(json), &known, gives);
            assert_eq!((fits(true), fits(false)), (gives, takes), "{rule} on {json}");
        }
    }
}
