//! Cards of skills: the quick way reads what the whole one reads.

use super::*;
use crate::skills::card::{plain_card, read_card};
use proptest::prelude::*;

fn origin(plugin: Option<&str>) -> SkillOrigin {
    SkillOrigin {
        source: SkillSource::Project,
        kind: SkillKind::Skill,
        path: "/p/.claude/skills/deploy/SKILL.md".into(),
        plugin: plugin.map(str::to_owned),
    }
}

fn whole(text: &str, plugin: Option<&str>) -> (String, SkillCard) {
    let (definition, _) = read_skill(text, origin(plugin)).unwrap();
    let card = SkillCard::from(&definition);
    (definition.name, card)
}

#[test]
fn what_most_authors_write_is_read_the_quick_way() {
    let text = "---\nname: deploy\ndescription: Puts it out, e.g. on Fridays (it's \"live\")\n\
                allowed-tools: Bash(git add:*), Read\nargument-hint: file\n\
                disable-model-invocation: true\nversion: v1\n---\nText\n";
    let (name, card) = plain_card(text, &origin(None)).unwrap();
    assert_eq!(name, "deploy");
    assert!(!card.for_models && card.for_people);
    assert_eq!(card.summary.as_deref(), Some("Puts it out, e.g. on Fridays (it's \"live\")"));
    assert_eq!((name, card), whole(text, None));
    for (front, summary) in [
        ("description: 'Use it: now'", "Use it: now"),
        ("description: \"Use it: now # and\"", "Use it: now # and"),
        ("description: >\n  Use it\n  now: here.", "Use it now: here."),
        ("description: |-\n  Use it\n  # now", "Use it\n# now"),
        ("allowed-tools: [Read, Grep]\ndescription: a", "a"),
        ("allowed-tools:\n  - Bash(git add:*)\n  - Read\ndescription: a", "a"),
        ("allowed-tools:\n- Read\n- Grep\ndescription: a", "a"),
    ] {
        let text = format!("---\n{front}\n---\nText\n");
        let (name, card) = plain_card(&text, &origin(None)).expect(front);
        assert_eq!(card.summary.as_deref(), Some(summary), "{front}");
        assert_eq!((name, card), whole(&text, None), "{front}");
    }
}

#[test]
fn what_is_no_plain_line_takes_the_other_way() {
    for front in [
        "description: a\n  b",
        "description: 'a''b'",
        "description: \"a\\n\"",
        "description: 'a' # b",
        "description: ' a'",
        "description: a # b",
        "description: a: b",
        "description: |\n    a",
        "description: |\n  a\n\n  b",
        "description: |\n  a\n    b",
        "description: |+\n  a",
        "description: >",
        "description: [a]",
        "description: a\nallowed-tools: [a, [b]]",
        "description: a\nallowed-tools: [a,]",
        "description: a\nallowed-tools:\n  - a: b",
        "description: a\nallowed-tools:\n  - a\n- b",
        "description: a\nallowed-tools:\n   - a",
        "description: a\nuser-invocable: 'true'",
        "description: a\ndescription: b",
        "description: yes",
        "description: a\\nb",
        "description: a\nhooks:\n  Stop: []",
        "description:",
        "name: x",
        "description: a\npaths: b",
        "description: a\ncontext: own",
        "description: a\nuser-invocable: no",
        "description: a:",
        "description: a ",
    ] {
        assert_eq!(plain_card(&format!("---\n{front}\n---\n"), &origin(None)), None, "{front}");
    }
}

/// A line as authors write them, and as they should not.
fn line() -> impl Strategy<Value = String> {
    let key = prop_oneof![
        prop::sample::select(SKILL_KEYS.to_vec()).prop_map(str::to_owned),
        "[a-z_-]{1,6}",
    ];
    let value = prop_oneof![
        "[A-Za-z][A-Za-z0-9 ,.()'\"*/-]{0,20}",
        prop::sample::select(vec![
            "true",
            "false",
            "fork",
            "null",
            "~",
            "[a]",
            "On",
            "Nope",
            "x: y",
            "é",
            "a\u{2028}b",
            "'a: b'",
            "\"a # b\"",
            "\"a\"b\"",
            ">\n  a\n  b: c",
            "|\n  a\n  # b",
            ">-\n  a\n   b",
            "|\n  a\n  b\nc",
            "[a, b-c]",
            "[a, 1]",
            "\n  - a\n  - b(c:*)",
            "\n- a\n- b",
            "\n  - a\n- b",
        ])
        .prop_map(str::to_owned),
        "\\PC{0,12}",
        "['\"][a-z:# '\"]{0,8}['\"]",
        "\\[[a-z:# ,'*-]{0,8}\\]",
        "[>|]-?(\n  [a-zé:#>'-][a-z:# ]{0,6}){0,3}",
        "(\n ? ?- [a-z:#*' ]{0,6}){0,3}",
    ];
    (key, prop_oneof![8 => Just(": "), 1 => Just(":"), 1 => Just(" : ")], value).prop_map(
        |(key, colon, value)| {
            let colon = if value.starts_with('\n') { ":" } else { colon };
            format!("{key}{colon}{value}")
        },
    )
}

proptest! {
    #[test]
    fn both_ways_read_the_same(lines in prop::collection::vec(line(), 1..6), plugin in any::<bool>()) {
        let text = format!("---\n{}\n---\nThe text.\n", lines.join("\n"));
        let plugin = plugin.then_some("kit");
        if let Some(quick) = plain_card(&text, &origin(plugin)) {
            prop_assert_eq!(quick, whole(&text, plugin));
        }
        prop_assert_eq!(read_card(&text, &origin(plugin)).unwrap(), whole(&text, plugin));
    }
}
