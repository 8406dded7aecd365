//! Small files in each of the ways in which people write definitions, read as `expected.json` says.
//!
//! The ways are those of the large corpus, which is no part of the project; the files are our own.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use centurion_config::agents::{AgentScope, AgentSource, Vocabulary, read_markdown};
use centurion_config::frontmatter;
use centurion_config::skills::{SkillKind, SkillOrigin, SkillSource, read_skill};
use centurion_config::{Located, Problem};
use serde_json::{Value, json};

fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples")
}

/// The Markdown of a folder, by its path from the samples.
fn files(folder: &str) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(samples().join(folder)).unwrap() {
        let path = entry.unwrap().path();
        let path = if path.is_dir() { path.join("SKILL.md") } else { path };
        let name = path.strip_prefix(samples()).unwrap().display().to_string();
        found.insert(name, fs::read(&path).unwrap());
    }
    found
}

fn lines(problems: &[Problem]) -> Vec<usize> {
    problems.iter().filter_map(|problem| problem.line).collect()
}

fn said<T: Clone>(field: Option<&Located<T>>) -> Option<T> {
    field.map(|field| field.value.clone())
}

/// The content of an agent's file; null for one that is none.
fn agent(bytes: &[u8], path: &str) -> Value {
    let text = frontmatter::decode(bytes);
    let scope = AgentScope::Own(AgentSource::Project);
    let read = match read_markdown(&text, Path::new(path), &scope, &Vocabulary::default()) {
        Ok(Some(read)) => read,
        Ok(None) => return Value::Null,
        Err(failed) => return json!({"line": failed.line, "failed": failed.reason}),
    };
    let agent = &read.definition;
    json!({
        "name": agent.name.value,
        "description": agent.description.value,
        "tools": said(agent.tools.as_ref()),
        "disallowedTools": said(agent.disallowed_tools.as_ref()),
        "model": agent.model.as_ref().map(|model| model.as_str()),
        "color": agent.color.as_ref().map(|color| color.as_str()),
        "prompt": agent.prompt.value,
        "promptLine": agent.prompt.line,
        "told": lines(&read.problems),
    })
}

/// The content of a skill's or command's file.
fn skill(bytes: &[u8], path: &str, kind: SkillKind) -> Value {
    let text = frontmatter::decode(bytes);
    let path = Path::new("/p").join(path);
    let origin = SkillOrigin { source: SkillSource::Project, kind, path, plugin: None };
    let (skill, problems) = read_skill(&text, origin).unwrap();
    json!({
        "name": skill.name,
        "label": said(skill.label.as_ref()),
        "summary": skill.summary(),
        "argumentHint": said(skill.argument_hint.as_ref()),
        "allowedTools": said(skill.allowed_tools.as_ref()),
        "model": said(skill.model.as_ref()),
        "agent": said(skill.agent.as_ref()),
        "fork": skill.fork.is_some(),
        "told": lines(&problems),
    })
}

/// All samples as they are read.
fn seen() -> BTreeMap<String, Value> {
    let agents = files("agents").into_iter().map(|(path, bytes)| {
        let value = agent(&bytes, &path);
        (path, value)
    });
    let skills = files("skills").into_iter().map(|(path, bytes)| {
        let value = skill(&bytes, &path, SkillKind::Skill);
        (path, value)
    });
    let commands = files("commands").into_iter().map(|(path, bytes)| {
        let value = skill(&bytes, &path, SkillKind::Command);
        (path, value)
    });
    agents.chain(skills).chain(commands).collect()
}

#[test]
fn every_sample_is_read_as_expected() {
    // S-004, S-005, S-052, S-053, D-40, D-45
    let text = fs::read_to_string(samples().join("expected.json")).unwrap();
    let expected: BTreeMap<String, Value> = serde_json::from_str(&text).unwrap();
    let seen = seen();
    assert_eq!(seen.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (path, value) in &seen {
        let expected = &expected[path];
        assert_eq!(value, expected, "{path} is read as {value:#}");
    }
}

#[test]
fn the_editor_that_wrote_a_file_does_not_matter() {
    for (path, bytes) in files("agents") {
        let text = String::from_utf8(bytes.clone()).unwrap();
        let windows = text.replace('\n', "\r\n");
        let marked = [b"\xef\xbb\xbf", windows.as_bytes()].concat();
        let wide: Vec<u8> = std::iter::once(0xfeff_u16)
            .chain(text.encode_utf16())
            .flat_map(u16::to_le_bytes)
            .collect();
        let plain = agent(&bytes, &path);
        for other in [windows.as_bytes(), &marked, &wide] {
            assert_eq!(agent(other, &path), plain, "{path}");
        }
    }
}
