//! Rules about skills, which speak of the skill that a call means, however the call spells it.

use std::sync::Arc;

use centurion_config::agents::{AgentSources, ProjectFolders};
use centurion_config::skills::{PluginSkills, SkillSources};
use centurion_engine::{AgentOptions, Definitions};
use centurion_permissions::{Rule, RuleOrigin, RuleSet};
use serde_json::{Value, json};

use crate::bench::Bench;
use crate::hook_stage::{Stage, every_event};
use crate::skills::said;

/// A project with the skills `my skill` and `look`, and the plugin `kit` with `fix` and `look`.
fn bench(input: &Value) -> Bench {
    let call = json!([{"tool": "Skill", "input": input}]);
    let mut bench = Bench::new(json!({"scripts": {"lead": [call, "done"]}}));
    let cwd = bench.project();
    for (place, text) in [
        (".claude/skills/my skill", "TEXT-MY"),
        (".claude/skills/look", "TEXT-LOOK"),
        ("../kit/skills/fix", "TEXT-KIT-FIX"),
        ("../kit/skills/look", "TEXT-KIT-LOOK"),
    ] {
        let directory = cwd.join(place);
        std::fs::create_dir_all(&directory).unwrap();
        let text = format!("---\ndescription: d\n---\n{text}\n");
        std::fs::write(directory.join("SKILL.md"), text).unwrap();
    }
    bench.adjust = Box::new(move |options| {
        let kit = cwd.join("../kit").canonicalize().unwrap();
        let plugin = PluginSkills {
            plugin: "kit".to_owned(),
            skills: vec![kit.join("skills")],
            root: kit,
            ..PluginSkills::default()
        };
        let folders = ProjectFolders { cwd: cwd.clone(), ..ProjectFolders::default() };
        let skills = SkillSources { folders, plugins: vec![plugin], ..SkillSources::default() };
        let world = Arc::new(centurion_protocol::SeededWorld::new(99));
        let definitions = Definitions::new(AgentSources::default(), skills, world);
        options.agents = AgentOptions::new(definitions);
    });
    bench
}

/// Whether a call is carried out under these rules.
async fn is_invoked(rules: &str, kind: &'static str, input: &Value) -> bool {
    let mut bench = bench(input);
    let rule = Rule::parse(rules, RuleOrigin::Flag).unwrap();
    let rules = RuleSet::from_iter([rule]);
    bench.also(move |options| {
        let policy = &mut options.permission.policy;
        match kind {
            "deny" => policy.deny = rules.clone(),
            "ask" => policy.ask = rules.clone(),
            "only" => policy.role.only = rules.clone(),
            _ => unreachable!("{kind}"),
        }
    });
    let told = bench.run("@@lead").await;
    let text = said(&told.asked[1]);
    let is_told = text.contains("TEXT-");
    assert!(is_told || text.contains("Skill("), "{text}");
    is_told
}

#[tokio::test(start_paused = true)]
async fn a_rule_holds_for_every_spelling_of_its_skill() {
    for (rule, input, is_meant) in [
        ("Skill(kit:fix)", json!({"skill": "kit:fix"}), true),
        ("Skill(kit:fix)", json!({"skill": "fix"}), true),
        ("Skill(kit:fix)", json!({"skill": " /fix "}), true),
        ("Skill(kit:fix)", json!({"command": "fix", "args": "x"}), true),
        ("Skill(fix)", json!({"skill": "kit:fix"}), true),
        ("Skill(kit:*)", json!({"skill": "fix", "args": "x"}), true),
        ("Skill(kit:*)", json!({"command": "/kit:look"}), true),
        ("Skill(k*)", json!({"skill": "fix"}), true),
        ("Skill(my skill)", json!({"skill": "my skill"}), true),
        ("Skill(my skill)", json!({"command": "/my skill", "args": "x"}), true),
        // Others are not meant.
        ("Skill(kit:*)", json!({"skill": "look"}), false),
        ("Skill(look)", json!({"skill": "kit:look"}), false),
        ("Skill(kit:look)", json!({"skill": "look"}), false),
        ("Skill(my)", json!({"skill": "my skill"}), false),
    ] {
        for kind in ["deny", "ask"] {
            let is_invoked = is_invoked(rule, kind, &input).await;
            assert_eq!(is_invoked, !is_meant, "{kind} {rule} on {input}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_rule_holds_for_the_skill_that_a_name_has_come_to_mean_since_its_call_was_judged() {
    // The project's skill goes after hooks and rules have let the call pass. Then the name means the plugin's.
    for (kind, reason) in [
        (None, "TEXT-KIT-LOOK"),
        (Some("deny"), "a rule denies the skill `kit:look`"),
        (Some("ask"), "a rule asks about the skill `kit:look`"),
    ] {
        let mut bench = bench(&json!({"skill": "look"}));
        let skill = bench.project().join(".claude/skills/look");
        let gone = skill.clone();
        let stage = Stage::new(move |told| {
            // Hooks hear of changes of skills, so that none counts before they were asked.
            if told["hook_event_name"] == "PreToolUse" {
                std::fs::remove_dir_all(&gone).unwrap();
            }
            Some(json!({}))
        });
        bench.also(move |options| {
            stage.extend(options, every_event());
            let rules =
                RuleSet::from_iter([Rule::parse("Skill(kit:look)", RuleOrigin::Flag).unwrap()]);
            let policy = &mut options.permission.policy;
            match kind {
                Some("deny") => policy.deny = rules,
                Some(_) => policy.ask = rules,
                None => {}
            }
        });
        let told = bench.run("@@lead").await;
        assert!(!skill.exists());
        let text = said(&told.asked[1]);
        assert!(text.contains(reason), "{kind:?}: {text}");
        assert!(!text.contains("TEXT-LOOK"), "{kind:?}: {text}");
        assert_eq!(text.contains("TEXT-KIT-LOOK"), kind.is_none(), "{kind:?}: {text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_rule_that_gives_a_skill_gives_it_with_arguments_only_where_it_says_so() {
    for (rule, input, is_given) in [
        ("Skill(kit:fix)", json!({"skill": "fix"}), true),
        ("Skill(kit:fix)", json!({"skill": "fix", "args": "x"}), false),
        ("Skill(kit:fix *)", json!({"command": "fix", "args": "x"}), true),
        ("Skill(kit:*)", json!({"skill": "kit:fix", "args": "x"}), true),
        ("Skill(my skill)", json!({"skill": "my skill"}), true),
        ("Skill(look)", json!({"skill": "kit:look"}), false),
        ("Skill(kit:*)", json!({"skill": "look"}), false),
    ] {
        let is_invoked = is_invoked(rule, "only", &input).await;
        assert_eq!(is_invoked, is_given, "{rule} on {input}");
    }
}
