//! Definitions that strangers wrote, read as an oracle says they must be.
//!
//! The corpus is no part of the project. `CENTURION_CORPUS` names the directory that holds
//! `open.tar.gz` and `oracle.json`; without it nothing is compared.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use centurion_config::agents::{
    AGENT_GRAMMAR, AgentScope, AgentSource, Color, FailedAgent, ReadAgent, Vocabulary,
    read_markdown,
};
use centurion_config::frontmatter::{self, Grammar, Reading};
use centurion_config::skills::{
    CommandForm, Expanded, Invocation, Piece, SKILL_GRAMMAR, SkillKind, SkillOrigin, SkillSource,
    expand, read_skill,
};
use centurion_protocol::SessionId;
use centurion_testkit::{Lack, skip};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

/// The unpacked corpus and its oracle.
struct Corpus {
    oracle: Value,
    files: tempfile::TempDir,
}

impl Corpus {
    fn open() -> Option<Self> {
        let directory = PathBuf::from(std::env::var_os("CENTURION_CORPUS")?);
        let oracle = fs::read(directory.join("oracle.json")).unwrap();
        let files = tempfile::tempdir().unwrap();
        let unpacked = Command::new("tar")
            .arg("-xzf")
            .arg(directory.join("open.tar.gz"))
            .arg("-C")
            .arg(files.path())
            .status()
            .unwrap();
        assert!(unpacked.success());
        Some(Self { oracle: serde_json::from_slice(&oracle).unwrap(), files })
    }

    /// Compares all entries of a kind, and tells all that differ.
    fn compare(&self, kind: &str, observe: impl Fn(&Path, &Value) -> Value) {
        let entries = self.oracle[kind].as_array().unwrap();
        let mut differing = Vec::new();
        for entry in entries {
            let path = self.files.path().join("open").join(entry["path"].as_str().unwrap());
            let seen = observe(&path, entry);
            for (key, value) in seen.as_object().unwrap() {
                if entry[key] != *value {
                    let path = entry["path"].as_str().unwrap();
                    differing
                        .push(format!("{path}: {key}\n  oracle {}\n  here   {value}", entry[key]));
                }
            }
        }
        let agreeing = entries.len();
        assert!(
            differing.is_empty(),
            "{} differences in {agreeing} {kind}:\n{}",
            differing.len(),
            differing.join("\n")
        );
    }
}

fn text(path: &Path) -> String {
    frontmatter::decode(&fs::read(path).unwrap()).into_owned()
}

/// The form in which descriptions are compared.
fn prefix(description: &str) -> String {
    let spaced = description.replace("\\n", " ").replace("\\t", " ");
    let words: Vec<_> = spaced.split_whitespace().collect();
    words.join(" ").chars().take(80).collect()
}

/// The length of an agent's description, as it was written.
fn length_of_description(text: &str) -> usize {
    let front = frontmatter::read(text, &AGENT_GRAMMAR).unwrap().frontmatter.unwrap();
    let description = front.members.iter().find(|member| member.key == "description");
    description.and_then(|it| it.value.as_text()).map_or(0, |it| it.chars().count())
}

/// The way in which the frontmatter was read, and the keys that the oracle does not treat one by one.
fn reading(text: &str, grammar: &Grammar<'_>, treated: &[&str]) -> (&'static str, Vec<String>) {
    let page = frontmatter::read(text, grammar);
    let Ok(frontmatter::Page { frontmatter: Some(front), .. }) = page else {
        return ("none", Vec::new());
    };
    let yaml = if front.reading == Reading::Lines { "invalid" } else { "valid" };
    let keys = front.members.iter().map(|member| member.key.clone());
    let mut keys: Vec<_> = keys.filter(|key| !treated.contains(&key.as_str())).collect();
    keys.sort();
    (yaml, keys)
}

/// Whether a reader that knows nothing but YAML and `---` would read it, too.
fn is_strict(text: &str, yaml: &str) -> bool {
    yaml == "valid"
        && text.starts_with("---\n")
        && text.lines().skip(1).any(|it| it.trim_end() == "---")
}

fn read_agent(
    text: &str,
    path: &Path,
    scope: &AgentScope,
) -> Result<Option<ReadAgent>, FailedAgent> {
    read_markdown(text, path, scope, &Vocabulary::default())
}

#[test]
fn agents_are_read_as_the_oracle_says() {
    // S-004, S-052, D-40
    let Some(corpus) = Corpus::open() else { return skip(Lack::Corpus) };
    corpus.compare("agents", |path, entry| {
        let text = text(path);
        let own = read_agent(&text, path, &AgentScope::Own(AgentSource::Project));
        let scope = AgentScope::Plugin { plugin: "p".to_owned(), folders: Vec::new() };
        let plugin = read_agent(&text, path, &scope).unwrap();
        let treated = ["name", "description", "tools", "disallowedTools", "model", "color"];
        let (yaml, other_keys) = reading(&text, &AGENT_GRAMMAR, &treated);
        let should_load = matches!(own, Ok(Some(_)));
        let reason = match &own {
            Ok(None) => "no-frontmatter",
            Err(failed) if failed.reason.contains("`name`") => "missing-name",
            Err(failed) if failed.reason.contains("`description`") => "missing-description",
            _ => entry["reason"].as_str().unwrap(),
        };
        let mut seen = json!({
            "should_load": should_load,
            "strict_load": should_load && is_strict(&text, yaml),
            "reason": reason,
            "yaml": yaml,
            "other_keys": other_keys,
        });
        // A plugin's text without frontmatter is no agent either (D-40), whatever it would be called.
        if let Some(read) = plugin {
            let definition = read.definition.as_ref().clone();
            let is_missing = definition.description.as_str() == "Agent from p plugin";
            let description = (!is_missing).then(|| definition.description.as_str());
            seen["description_prefix"] = json!(description.map(prefix));
            seen["desc_len"] = json!(length_of_description(&text));
            seen["plugin_name"] = json!(definition.name.strip_prefix("p:").unwrap());
            seen["tools"] = json!(definition.tools.map(|it| it.value));
            seen["disallowedTools"] = json!(definition.disallowed_tools.map(|it| it.value));
            seen["model"] = json!(definition.model.map(|it| it.as_str().to_owned()));
            let color = definition.color.map(|it| it.as_str());
            let is_known = entry["color"].as_str().is_none_or(|it| it.parse::<Color>().is_ok());
            if is_known {
                seen["color"] = json!(color);
            } else {
                // A colour that there is not is told and left out.
                let told = read.problems.iter().any(|it| it.message.starts_with("`color: "));
                assert!(color.is_none() && told, "{}", path.display());
            }
        }
        if let Ok(Some(read)) = own {
            seen["name"] = json!(read.definition.name.value.clone());
        }
        seen
    });
}

fn observe_skill(path: &Path, kind: SkillKind) -> Value {
    let text = text(path);
    let origin =
        SkillOrigin { source: SkillSource::Project, kind, path: path.to_owned(), plugin: None };
    let (skill, _) = read_skill(&text, origin).unwrap();
    let treated =
        ["name", "description", "context", "agent", "allowed-tools", "argument-hint", "model"];
    let (yaml, other_keys) = reading(&text, &SKILL_GRAMMAR, &treated);
    let fallback = skill.description.is_none().then(|| skill.summary()).flatten().map(prefix);
    // To the oracle a description that is there and empty is one.
    let is_empty = text.contains("\ndescription: \"\"\n").then(String::new);
    let said = |it: Option<centurion_config::Located<String>>| json!(it.map(|it| it.value));
    json!({
        "should_load": true,
        "strict_metadata": is_strict(&text, yaml),
        "yaml": yaml,
        "other_keys": other_keys,
        "invocation_name": skill.name.clone(),
        "description_fallback": fallback,
        "description_prefix": skill.description.as_ref().map(|it| prefix(it)).or(is_empty),
        "name": said(skill.label),
        "context": skill.fork.map(|_| "fork"),
        "agent": said(skill.agent),
        "allowed_tools": skill.allowed_tools.map(|it| it.value),
        "argument_hint": said(skill.argument_hint),
        "model": said(skill.model),
    })
}

#[test]
fn skills_are_read_as_the_oracle_says() {
    let Some(corpus) = Corpus::open() else { return skip(Lack::Corpus) };
    corpus.compare("skills", |path, _| observe_skill(path, SkillKind::Skill));
}

#[test]
fn commands_are_read_as_the_oracle_says() {
    let Some(corpus) = Corpus::open() else { return skip(Lack::Corpus) };
    corpus.compare("commands", |path, _| observe_skill(path, SkillKind::Command));
}

/// The commands in an expanded body, with their places.
fn commands(expanded: &Expanded) -> Vec<(usize, usize, CommandForm)> {
    let pieces = expanded.pieces.iter().enumerate();
    let commands = pieces.filter_map(|(index, piece)| match piece {
        Piece::Command(command) => Some((index, command.line, command.form)),
        Piece::Text(_) => None,
    });
    commands.collect()
}

#[test]
fn skills_and_commands_are_expanded_for_any_arguments() {
    let Some(corpus) = Corpus::open() else { return skip(Lack::Corpus) };
    let mut runner = TestRunner::deterministic();
    let arguments =
        proptest::string::string_regex("([a-z0-9 '\"\\\\$`!\n;]|\\$ARGUMENTS|\\PC){0,40}");
    let arguments = arguments.unwrap();
    let mut found = 0;
    for (kind, entries) in [(SkillKind::Skill, "skills"), (SkillKind::Command, "commands")] {
        for entry in corpus.oracle[entries].as_array().unwrap() {
            let path = corpus.files.path().join("open").join(entry["path"].as_str().unwrap());
            let (source, plugin) = (SkillSource::Project, None);
            let origin = SkillOrigin { source, kind, path: path.clone(), plugin };
            let (skill, _) = read_skill(&text(&path), origin).unwrap();
            let expanded = |arguments: &str| {
                let session: SessionId = "6f1c5d52-7d0c-4d1b-9d5a-2a3a4f1d2f10".parse().unwrap();
                let project_dir = Path::new("/a project");
                let invocation = Invocation { arguments, project_dir, session, effort: None };
                expand(&skill.template(), &invocation)
            };
            let unchanged = expanded("").unwrap();
            found += unchanged.commands().count();
            for _ in 0..3 {
                let arguments = arguments.new_tree(&mut runner).unwrap().current();
                if let Ok(expanded) = expanded(&arguments) {
                    assert_eq!(commands(&expanded), commands(&unchanged), "{}", path.display());
                }
            }
            // A real argument of people has a place in every command there is.
            assert!(expanded("42 'a topic'").is_ok(), "{}", path.display());
        }
    }
    assert!(found > 20, "{found} commands");
}
