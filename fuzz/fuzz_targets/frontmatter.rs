//! Definitions of agents and skills: any bytes are read soon and without harm, and what was read and
//! written out reads the same.

#![no_main]

use std::path::Path;
use std::time::{Duration, Instant};

use centurion_config::Located;
use centurion_config::agents::{
    AGENT_GRAMMAR, AgentDefinition, AgentScope, AgentSource, Vocabulary, read_markdown,
    write_markdown,
};
use centurion_config::frontmatter::{self, Member, Reading, Shape, Value};
use centurion_config::skills::{SKILL_GRAMMAR, SkillKind, SkillOrigin, SkillSource, read_skill};
use libfuzzer_sys::fuzz_target;

/// As large as frontmatter may be: what takes longer than a few passes over it shows here.
const LARGEST: usize = 64 * 1024;

/// What is written in no more than this has no more values than YAML may have.
const SMALL: usize = 8 * 1024;

/// Far more than a few passes take, and far less than one that looks back over all before it.
const PATIENCE: Duration = Duration::from_secs(3);

// The first byte says how often the rest is repeated.
fuzz_target!(|data: &[u8]| {
    let Some((times, bytes)) = data.split_first() else { return };
    let times = usize::from(*times).pow(2).min(LARGEST / bytes.len().max(1)).max(1);
    let bytes = bytes.repeat(times);
    let text = frontmatter::decode(&bytes);
    let started = Instant::now();
    read_agents(&text);
    read_skills(&text);
    assert!(started.elapsed() < PATIENCE, "{} bytes take too long", bytes.len());
});

fn read_agents(text: &str) {
    let own = AgentScope::Own(AgentSource::Project);
    let plugin = AgentScope::Plugin { plugin: "kit".to_owned(), folders: Vec::new() };
    for scope in [own, plugin] {
        let path = Path::new("/p/agents/x.md");
        let read = |text: &str| read_markdown(text, path, &scope, &Vocabulary::default());
        let Ok(Some(agent)) = read(text) else { continue };
        let lines = text.lines().count() + 1;
        assert!(agent.problems.iter().all(|it| it.line.is_some_and(|it| it <= lines)));
        let written = write_markdown(&agent.definition);
        if written.len() > LARGEST {
            // What is escaped is longer, and may be too long.
            continue;
        }
        let again = read(&written).expect("what was written is an agent").expect("with its fences");
        let (first, second) = (unlined(&agent.definition), unlined(&again.definition));
        assert_eq!(first, second, "written as {written}");
        // Near-YAML may hold more values than YAML is let have.
        let page = frontmatter::read(&written, &AGENT_GRAMMAR).expect("it was read before");
        let reading = page.frontmatter.map(|front| front.reading);
        assert!(reading == Some(Reading::Strict) || written.len() > SMALL, "{written} is no YAML");
    }
}

/// The definition with everything on line one: where it is written is not what it says.
fn unlined(definition: &AgentDefinition) -> AgentDefinition {
    fn move_up<T>(field: &mut Option<Located<T>>) {
        if let Some(field) = field {
            field.line = 1;
        }
    }
    let mut agent = definition.clone();
    (agent.name.line, agent.description.line, agent.prompt.line) = (1, 1, 1);
    for list in [
        &mut agent.tools,
        &mut agent.disallowed_tools,
        &mut agent.required_mcp_servers,
        &mut agent.skills,
    ] {
        move_up(list);
    }
    for flag in [&mut agent.background, &mut agent.fork_context, &mut agent.omit_claude_md] {
        move_up(flag);
    }
    for text in
        [&mut agent.permission_mode, &mut agent.initial_prompt, &mut agent.critical_reminder]
    {
        move_up(text);
    }
    for json in [&mut agent.mcp_servers, &mut agent.hooks] {
        move_up(json);
    }
    move_up(&mut agent.model);
    move_up(&mut agent.effort);
    move_up(&mut agent.max_turns);
    move_up(&mut agent.isolation);
    move_up(&mut agent.memory);
    move_up(&mut agent.color);
    agent
}

fn read_skills(text: &str) {
    let origin = SkillOrigin {
        source: SkillSource::Project,
        kind: SkillKind::Skill,
        path: "/p/skills/x/SKILL.md".into(),
        plugin: None,
    };
    let (skill, _) = read_skill(text, origin).expect("the place gives a good name");
    assert_eq!(skill.name, "x");
    let Ok(page) = frontmatter::read(text, &SKILL_GRAMMAR) else { return };
    let Some(mut front) = page.frontmatter else { return };
    // What is read raw is text, also where it looks like a list; a list in its place does not come back.
    let is_text = |member: &Member| matches!(member.value.shape, Shape::Text(_) | Shape::Null);
    front.members.retain(|it| !SKILL_GRAMMAR.raw.contains(&it.key.as_str()) || is_text(it));
    let written = format!("---\n{}---\n", frontmatter::write(&front.members));
    if written.len() > LARGEST {
        return;
    }
    let again = frontmatter::read(&written, &SKILL_GRAMMAR).expect("what was written has fences");
    let again = again.frontmatter.expect("what was written has frontmatter").members;
    assert_eq!(said(&again), said(&front.members), "written as {written}");
}

/// What members say, wherever they stand.
fn said(members: &[Member]) -> serde_json::Value {
    Value::new(1, Shape::Map(members.to_vec())).to_json()
}
