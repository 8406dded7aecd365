//! A definition that is written out and read again is the same.

use std::num::NonZeroU32;

use centurion_protocol::Effort;
use proptest::prelude::*;
use proptest::{option, sample};

use super::*;
use crate::Located;

/// Text as it stands in a file: with letters of all kinds, and no blanks around it.
fn text() -> impl Strategy<Value = String> {
    let odd = "[a-zA-Zäß日😀0-9:#*&!|>%@`'\"\\\\{}\\[\\],.?~ \n\t-]{0,40}";
    prop_oneof![odd.prop_map(|it| it.trim().to_owned()), "[a-z]{1,12}", "(true|null|1\\.0|no|~)"]
        .prop_filter("nothing is no text", |it| !it.is_empty())
}

fn name() -> impl Strategy<Value = String> {
    "[A-Za-z0-9日][A-Za-z0-9 ._/&'#-]{0,12}[a-z]"
        .prop_filter("a good name", |name| check_name(name).is_ok())
}

fn names() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec("[A-Za-z][A-Za-z_*]{0,8}(\\([a-z ,:*.]{0,10}\\))?", 0..4)
}

fn object() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        text().prop_map(Json::from),
        any::<i32>().prop_map(Json::from),
        any::<bool>().prop_map(Json::from),
        prop::collection::vec(text().prop_map(Json::from), 0..3).prop_map(Json::from),
    ];
    prop::collection::btree_map("[A-Za-z]{1,8}", leaf, 1..4)
        .prop_map(|map| Json::Object(map.into_iter().collect()))
}

fn at<T>(value: T) -> Located<T> {
    Located::new(value, 1)
}

/// The half of the fields that are lists, texts and objects.
fn first_half() -> impl Strategy<Value = AgentDefinition> {
    let origin = AgentOrigin {
        source: AgentSource::Project,
        path: "/p/.claude/agents/x.md".into(),
        plugin: None,
    };
    (
        (name(), text(), text()),
        option::of(names()),
        option::of(names()),
        option::of(names()),
        option::of(names()),
        option::of(object()),
        option::of(object()),
        option::of(text()),
        option::of(text()),
    )
        .prop_map(
            move |(words, tools, denied, skills, servers, hooks, mcp, first, reminder)| {
                let (name, description, prompt) = words;
                let mut agent =
                    AgentDefinition::new(at(name), at(description), at(prompt), origin.clone());
                agent.tools = tools.map(at);
                agent.disallowed_tools = denied.map(at);
                agent.skills = skills.map(at);
                agent.required_mcp_servers = servers.map(at);
                agent.hooks = hooks.map(at);
                agent.mcp_servers = mcp.map(at);
                agent.initial_prompt = first.map(at);
                agent.critical_reminder = reminder.map(at);
                agent
            },
        )
}

fn agents() -> impl Strategy<Value = AgentDefinition> {
    let models = ["opus", "inherit", "claude-opus-4-8", "vendor/model:free", "5"];
    let effort = prop_oneof![
        sample::select(Effort::ALL.to_vec()).prop_map(AgentEffort::Level),
        any::<u32>().prop_map(AgentEffort::Amount),
    ];
    (
        first_half(),
        option::of(sample::select(models.to_vec())),
        option::of(effort),
        option::of(sample::select(PERMISSION_MODES.to_vec())),
        option::of(1_u32..),
        prop::array::uniform3(option::of(any::<bool>())),
        option::of(Just(Isolation::Worktree)),
        option::of(sample::select(MemoryScope::ALL.to_vec())),
        option::of(sample::select(Color::ALL.to_vec())),
    )
        .prop_map(
            |(mut agent, model, effort, mode, turns, flags, isolation, memory, color)| {
                agent.model = model.map(|name| match name {
                    "inherit" => at(AgentModel::Inherit),
                    name => at(AgentModel::Named(name.to_owned())),
                });
                agent.effort = effort.map(at);
                agent.permission_mode = mode.map(|mode| at(mode.to_owned()));
                agent.max_turns = turns.and_then(NonZeroU32::new).map(at);
                let [background, fork_context, omit_claude_md] = flags;
                agent.background = background.map(at);
                agent.fork_context = fork_context.map(at);
                agent.omit_claude_md = omit_claude_md.map(at);
                agent.isolation = isolation.map(at);
                agent.memory = memory.map(at);
                agent.color = color.map(at);
                agent
            },
        )
}

/// The same definition with everything on line one: where it is written is not what it says.
fn on_one_line(mut agent: AgentDefinition) -> AgentDefinition {
    fn move_up<T>(field: &mut Option<Located<T>>) {
        if let Some(field) = field {
            field.line = 1;
        }
    }
    agent.name.line = 1;
    agent.description.line = 1;
    agent.prompt.line = 1;
    move_up(&mut agent.tools);
    move_up(&mut agent.disallowed_tools);
    move_up(&mut agent.model);
    move_up(&mut agent.effort);
    move_up(&mut agent.permission_mode);
    move_up(&mut agent.mcp_servers);
    move_up(&mut agent.required_mcp_servers);
    move_up(&mut agent.hooks);
    move_up(&mut agent.skills);
    move_up(&mut agent.max_turns);
    move_up(&mut agent.background);
    move_up(&mut agent.isolation);
    move_up(&mut agent.memory);
    move_up(&mut agent.color);
    move_up(&mut agent.initial_prompt);
    move_up(&mut agent.fork_context);
    move_up(&mut agent.omit_claude_md);
    move_up(&mut agent.critical_reminder);
    agent
}

proptest! {
    #[test]
    fn a_written_definition_reads_the_same(agent in agents()) {
        let written = write_markdown(&agent);
        let scope = AgentScope::Own(AgentSource::Project);
        let path = Path::new("/p/.claude/agents/x.md");
        let read = read_markdown(&written, path, &scope, &Vocabulary::default());
        let read = read.map_err(|failed| TestCaseError::fail(format!("{failed:?}\n{written}")))?;
        let read = read.unwrap();
        prop_assert!(read.problems.is_empty(), "{:?}\n{}", read.problems, written);
        prop_assert_eq!(on_one_line(read.definition.as_ref().clone()), agent, "{}", written);
    }

    /// Reading any file ends and does not panic.
    #[test]
    fn any_text_can_be_read(lines in prop::collection::vec(
        "(---|name: x|description: .{0,20}|tools: [*\\[a, -]{0,8}|  [-a:&*|>{} ]{0,8}|#+ x|<example>|.{0,20})", 0..20,
    )) {
        let text = format!("---\n{}\n", lines.join("\n"));
        if let Ok(Some(read)) = read(&text) {
            let lines = text.lines().count() + 1;
            prop_assert!(read.problems.iter().all(|it| it.line.is_some_and(|it| it <= lines)));
        }
    }
}
