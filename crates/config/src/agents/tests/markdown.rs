//! Files of agents: what makes one, and what is only a text.

use super::*;

fn reason(text: &str) -> (usize, String) {
    let failed = read(text).unwrap_err();
    assert_eq!(failed.path, Path::new("/p/.claude/agents/x.md"));
    (failed.line.unwrap(), failed.reason)
}

#[test]
fn a_text_without_frontmatter_is_no_agent() {
    // S-052, D-40
    for text in ["", "# Read me\n", "<!-- x -->\n---\nname: a\n---\n", "---\njust a rule\n---\n"] {
        assert_eq!(read(text), Ok(None), "{text:?}");
    }
}

#[test]
fn a_name_and_a_description_are_needed() {
    // S-004, S-053, D-40
    assert_eq!(reason("---\ndescription: x\n---\n"), (2, "has no `name`".to_owned()));
    assert_eq!(reason("---\nname:\ndescription: x\n---\n").1, "has no `name`");
    let no_description = "has no `description`, which says when to use the agent";
    assert_eq!(reason("---\n\nname: a\n---\n"), (3, no_description.to_owned()));
    assert_eq!(reason("---\nname: a\ndescription: ''\n---\n").1, no_description);
    assert_eq!(reason("---\nname: a\nprose\n").1, "the frontmatter has no closing `---`");
}

#[test]
fn a_name_that_means_something_else_is_refused() {
    let bad = |name: &str| reason(&format!("---\nname: '{name}'\ndescription: x\n---\n"));
    assert_eq!(
        bad("a:b").1,
        "the name `a:b` contains `:`, which is kept for the agents of plugins"
    );
    assert_eq!(bad("-x").1, "the name `-x` begins with `-`");
    assert_eq!(bad("../../x"), (2, "the name `../../x` begins with `.`".to_owned()));
    assert_eq!(bad("x/../../y").1, "the name `x/../../y` would lead to another directory");
}

fn plugin(text: &str, folders: &[&str]) -> Result<Option<ReadAgent>, FailedAgent> {
    let folders = folders.iter().map(|it| (*it).to_owned()).collect();
    let scope = AgentScope::Plugin { plugin: "kit".to_owned(), folders };
    read_markdown(text, Path::new("/kit/agents/fixer.md"), &scope, &vocabulary())
}

#[test]
fn an_agent_of_a_plugin_falls_back_to_its_file() {
    // S-068, S-069, S-070, D-26
    let named = |text: &str, folders: &[&str]| {
        let definition = plugin(text, folders).unwrap().unwrap().definition;
        (definition.name.value.clone(), definition.description.value.clone())
    };
    let pair = |name: &str, description: &str| (name.to_owned(), description.to_owned());
    assert_eq!(named("---\nname: a\ndescription: b\n---\n", &[]), pair("kit:a", "b"));
    assert_eq!(named("---\nname: a\ndescription: b\n---\n", &["x", "y"]), pair("kit:x:y:a", "b"));
    assert_eq!(named("---\nwhen-to-use: w\n---\n", &[]), pair("kit:fixer", "w"));
    assert_eq!(named("---\nmodel: opus\n---\n", &[]), pair("kit:fixer", "Agent from kit plugin"));
    assert_eq!(named("---\nname: a:b\ndescription: c\n---\n", &[]), pair("kit:fixer", "c"));
    assert_eq!(plugin("# Read me\n", &[]), Ok(None));
    let definition = plugin("---\nname: a\n---\n", &[]).unwrap().unwrap().definition;
    assert_eq!(definition.origin.source, AgentSource::Plugin);
    assert_eq!(definition.origin.plugin.as_deref(), Some("kit"));
}

#[test]
fn near_yaml_costs_a_warning_and_no_agent() {
    // D-40
    let text = "---\nname: helper\ndescription: Use when: it breaks. Say \"help\": it comes\n\
                tools: Read, Grep\nmodel: opus\n---\nHelp.\n";
    let read = read(text).unwrap().unwrap();
    let definition = &read.definition;
    assert_eq!(definition.description.as_str(), "Use when: it breaks. Say \"help\": it comes");
    assert_eq!(definition.tools.as_ref().unwrap().value, ["Read", "Grep"]);
    let [(line, message)] = problems(&read)[..] else { panic!("{:?}", read.problems) };
    assert_eq!(line, 3);
    assert!(
        message.starts_with("the frontmatter is no YAML and was read line by line: "),
        "{message}"
    );
}

#[test]
fn every_key_of_an_agent_begins_a_value() {
    let (own, foreign) = AGENT_GRAMMAR.known.split_at(AGENT_KEYS.len());
    assert_eq!(own, AGENT_KEYS);
    assert_eq!(AGENT_KEYS.last(), Some(&"criticalSystemReminder_EXPERIMENTAL"));
    assert_eq!(foreign, ["when-to-use", "prompt", "allowed-tools", "allowedTools"]);
}

#[test]
fn ends_of_lines_that_are_spelt_out_are_no_part_of_the_ends_of_a_text() {
    let text = "---\nname: x\ndescription: \\n one\\ntwo \\n\n---\n";
    assert_eq!(definition(text).description.as_str(), "one\ntwo");
}
