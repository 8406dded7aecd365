//! Skills and commands as people write them, and where they keep them.

mod bundled;
mod cards;
mod overrides;
mod preload;

use std::fs;
use std::path::Path;

use centurion_protocol::SystemWorld;

use super::*;
use crate::agents::ProjectFolders;

fn read(text: &str) -> (SkillDefinition, Vec<String>) {
    let origin = SkillOrigin {
        source: SkillSource::Project,
        kind: SkillKind::Skill,
        path: "/p/.claude/skills/deploy/SKILL.md".into(),
        plugin: None,
    };
    let (skill, problems) = read_skill(text, origin).unwrap();
    (skill, problems.iter().map(ToString::to_string).collect())
}

#[test]
fn every_field_is_read_with_its_line() {
    // S-281, S-282, S-287
    let (skill, problems) = read(
        "---\nname: Deploy it\ndescription: Puts it out\nwhen_to_use: On Fridays\n\
         argument-hint: [env] [--force]\narguments: env force\ndisable-model-invocation: yes\n\
         user-invocable: off\nallowed-tools: Read Bash(git add *)\ndisallowed-tools: Write\n\
         model: haiku\neffort: low\ncontext: fork\nagent: Explore\nbackground: false\n\
         hooks:\n  Stop: []\npaths: src/**/*.{ts,tsx}, lib/*\nshell: bash\nlicense: MIT\n\
         metadata:\n  a: 1\ncompatibility: any\n---\n# Deploy\n",
    );
    assert!(problems.iter().all(|it| it.contains("no YAML")), "{problems:?}");
    let said = |it: &Option<crate::Located<String>>| {
        it.as_ref().map(|it| (it.value.clone(), it.line)).unwrap()
    };
    assert_eq!(skill.name, "deploy");
    assert_eq!(said(&skill.label), ("Deploy it".to_owned(), 2));
    assert_eq!(said(&skill.description), ("Puts it out".to_owned(), 3));
    assert_eq!(said(&skill.when_to_use), ("On Fridays".to_owned(), 4));
    assert_eq!(said(&skill.argument_hint), ("[env] [--force]".to_owned(), 5));
    assert_eq!(skill.arguments.as_ref().unwrap().value, ["env", "force"]);
    assert!(skill.disable_model_invocation.as_ref().unwrap().value);
    assert!(!skill.user_invocable.as_ref().unwrap().value);
    assert_eq!(skill.allowed_tools.as_ref().unwrap().value, ["Read", "Bash(git add *)"]);
    assert_eq!(skill.disallowed_tools.as_ref().unwrap().value, ["Write"]);
    assert_eq!(said(&skill.model).0, "haiku");
    assert_eq!(skill.effort.as_ref().unwrap().to_string(), "low");
    assert_eq!(skill.fork.as_ref().unwrap().line, 13);
    assert_eq!(said(&skill.agent).0, "Explore");
    assert!(!skill.background.as_ref().unwrap().value);
    assert_eq!(skill.hooks.as_ref().unwrap().line, 16);
    assert_eq!(skill.paths.as_ref().unwrap().value, ["src/**/*.{ts,tsx}", "lib/*"]);
    assert_eq!(skill.shell.as_ref().unwrap().value, Shell::Bash);
    assert_eq!(skill.metadata.as_ref().unwrap().value["a"], 1);
    assert_eq!(skill.license.as_ref().unwrap().value, "MIT");
    assert_eq!(skill.compatibility.as_ref().unwrap().value, "any");
    assert_eq!(skill.summary(), Some("Puts it out"));
}

#[test]
fn nothing_is_needed_and_the_first_line_describes_the_rest() {
    let (skill, problems) = read("# Deploy the site\n\nDo it.\n");
    assert_eq!((skill.name.as_str(), skill.summary()), ("deploy", Some("Deploy the site")));
    assert_eq!(skill.body.value, "# Deploy the site\n\nDo it.");
    assert_eq!(problems, [""; 0]);
    assert_eq!(read("").0.summary(), None);
    let (skill, problems) = read("---\nname: a\nprose\n");
    assert_eq!((skill.label, skill.body.as_str()), (None, "---\nname: a\nprose"));
    assert!(problems[0].ends_with(":1: the frontmatter has no closing `---`"), "{problems:?}");
}

#[test]
fn what_is_meant_otherwise_is_told() {
    let (skill, problems) =
        read("---\ntools: Read\ncontext: |\n  !git log\nshell: fish\nzzzz: 1\n---\n");
    assert_eq!(skill.allowed_tools.unwrap().value, ["Read"]);
    assert_eq!((skill.fork, skill.shell), (None, None));
    let expected = [
        "2: `tools` is read as `allowed-tools`; write that",
        "3: `context: !git log` is ignored: use fork",
        "5: `shell: fish` is ignored: use bash or powershell",
        "6: `zzzz` is unknown and ignored",
    ];
    let expected = expected.map(|it| format!("/p/.claude/skills/deploy/SKILL.md:{it}"));
    assert_eq!(problems, expected);
}

#[test]
fn every_key_has_a_row_with_its_tests_in_the_requirements() {
    let requirements = include_str!("../../../../docs/requirements.md");
    for key in SKILL_KEYS {
        let row = format!("\n| `{key}` | ");
        assert_eq!(requirements.matches(&row).count(), 1, "{key}");
    }
}

#[test]
fn a_truth_is_written_in_many_ways() {
    for (text, expected) in [
        ("true", true),
        ("yes", true),
        ("on", true),
        ("1", true),
        ("False", false),
        ("no", false),
        ("off", false),
        ("0", false),
    ] {
        let (skill, problems) = read(&format!(
            "---\ndisable-model-invocation: {text}\nuser-invocable: {text}\n---\nx\n"
        ));
        assert_eq!((skill.is_for_models(), skill.is_for_people()), (!expected, expected), "{text}");
        assert_eq!(problems, [""; 0], "{text}");
    }
    let (skill, problems) = read("---\nuser-invocable: perhaps\n---\nx\n");
    assert!(skill.is_for_people() && problems[0].contains(":2: "), "{problems:?}");
}

#[test]
fn a_slip_in_a_key_is_named_with_its_line_and_the_likely_key() {
    let (skill, problems) = read(
        "---\ndescription: d\nalowed-tools: Read\ndisable-model-invokation: true\n\
         user_invocable: false\nargument_hint: x\narguements: a\nwhen-to-use: now\n---\n",
    );
    assert!(skill.allowed_tools.is_none() && skill.is_for_models());
    let expected = [
        "3: `alowed-tools` is unknown and ignored; did you mean `allowed-tools`?",
        "4: `disable-model-invokation` is unknown and ignored; did you mean `disable-model-invocation`?",
        "5: `user_invocable` is ignored: write `user-invocable`",
        "6: `argument_hint` is ignored: write `argument-hint`",
        "7: `arguements` is unknown and ignored; did you mean `arguments`?",
        "8: `when-to-use` is ignored: write `when_to_use`",
    ];
    let expected = expected.map(|it| format!("/p/.claude/skills/deploy/SKILL.md:{it}"));
    assert_eq!(problems, expected);
}

#[test]
fn an_argument_hint_is_the_text_after_the_colon() {
    let hint = |line: &str| {
        let (skill, _) = read(&format!("---\ndescription: x\nargument-hint: {line}\n---\n"));
        skill.argument_hint.unwrap().value
    };
    for line in ["[file]", "[a] [b]", "[--x] | [--y]", "<path>", "[--out [path]] (optional)"] {
        assert_eq!(hint(line), line);
    }
    assert_eq!(hint("\"[file] now\""), "[file] now");
}

/// Marks the machine of these tests.
struct SkillTests;

type Machine = crate::testing::Machine<SkillTests>;

impl Machine {
    fn skill(&self, relative: &str) {
        self.write(relative, format!("---\ndescription: {relative}\n---\nText.\n"));
    }
}

fn summaries(catalog: &SkillCatalog) -> Vec<(String, String)> {
    let summary = |it: &SkillEntry| it.card.summary.clone().unwrap();
    catalog.active.iter().map(|it| (it.name.clone(), summary(it))).collect()
}

#[test]
fn skills_and_commands_of_all_scopes_are_found() {
    // S-079, S-339
    let machine = Machine::with(|_| SkillTests);
    for file in [
        "etc/.claude/skills/a/SKILL.md",
        "home/.claude/skills/a/SKILL.md",
        "home/.claude/skills/b/SKILL.md",
        "repo/.claude/skills/b/SKILL.md",
        "repo/.claude/skills/c/skill.md",
        "repo/.claude/skills/c/deeper/SKILL.md",
        "repo/.claude/skills/SKILL.md",
        "repo/.claude/commands/c.md",
        "repo/.claude/commands/tools/d.md",
        "repo/sub/.centurion/commands/d.md",
        "kit/skills/e/SKILL.md",
        "kit/commands/f.md",
        "kit/SKILL.md",
    ] {
        machine.skill(file);
    }
    let sources = SkillSources {
        managed_dir: Some(machine.path("etc")),
        folders: ProjectFolders {
            cwd: machine.path("repo/sub"),
            repository: Some(machine.path("repo")),
            home: Some(machine.path("home")),
            ..ProjectFolders::default()
        },
        config_dirs: vec![machine.path("home/.claude")],
        plugins: vec![PluginSkills {
            plugin: "kit".to_owned(),
            root: machine.path("kit"),
            skills: vec![machine.path("kit/skills")],
            commands: vec![machine.path("kit/commands")],
            ..PluginSkills::default()
        }],
        ..SkillSources::default()
    };
    let catalog = SkillLoader::new().load(&sources, &SystemWorld);
    let expected = [
        ("a", "etc/.claude/skills/a/SKILL.md"),
        ("b", "home/.claude/skills/b/SKILL.md"),
        ("c", "repo/.claude/skills/c/skill.md"),
        ("d", "repo/sub/.centurion/commands/d.md"),
        ("kit:e", "kit/skills/e/SKILL.md"),
        ("kit:f", "kit/commands/f.md"),
        ("kit:kit", "kit/SKILL.md"),
    ];
    let expected = expected.map(|(name, path)| (name.to_owned(), path.to_owned()));
    assert_eq!(summaries(&catalog), expected);
    let shadowed: Vec<_> = catalog.shadowed.iter().map(|it| it.entry.name.as_str()).collect();
    assert_eq!(shadowed, ["a", "b", "c", "d"]);
    let found = |name: &str| catalog.find(name).map(|it| it.name.clone()).unwrap_or_default();
    assert_eq!([found("c"), found("kit:e"), found("e")], ["c", "kit:e", "kit:e"]);
    assert_eq!([found("it"), found("none")], ["", ""]);
}

#[test]
fn a_skill_of_a_plugin_may_name_itself() {
    let named = |text: &str| {
        let origin = SkillOrigin {
            source: SkillSource::Plugin,
            kind: SkillKind::Skill,
            path: Path::new("/kit/skills/rules/SKILL.md").to_owned(),
            plugin: Some("kit".to_owned()),
        };
        read_skill(text, origin).unwrap().0.name
    };
    assert_eq!(named("---\nname: writing-rules\n---\n"), "kit:writing-rules");
    assert_eq!(named("---\nname: ../x\n---\n"), "kit:rules");
    assert_eq!(named("text"), "kit:rules");
}

#[test]
fn a_value_in_a_rule_is_put_in_once_and_means_nothing_but_itself() {
    let (mut skill, _) = read("x");
    let rule = "Bash(${CLAUDE_SKILL_DIR}/run ${CLAUDE_PROJECT_DIR} ${HOME} ${*)";
    let filled = skill.fill_rule(rule, Path::new("/my ${CLAUDE_SKILL_DIR}"));
    assert!(filled.is_err(), "{filled:?}");
    let filled = skill.fill_rule(rule, Path::new("/my repo"));
    let expected = "Bash(/p/.claude/skills/deploy/run /my repo ${HOME} ${*)";
    assert_eq!(filled.unwrap(), expected);
    for odd in ["/a*", "/a)", "/a(b", "/[a]", "/a?", "/{a,b}", "/a\\", "/a\nb"] {
        skill.origin.path = Path::new(odd).join("SKILL.md");
        let refused = skill.fill_rule("Bash(${CLAUDE_SKILL_DIR}/run)", Path::new("/repo"));
        assert!(refused.is_err_and(|it| it.to_string().contains("CLAUDE_SKILL_DIR")), "{odd}");
        assert!(skill.fill_rule("Read(${CLAUDE_PROJECT_DIR}/**)", Path::new(odd)).is_err());
        assert_eq!(skill.fill_rule("Bash(x *)", Path::new(odd)).unwrap(), "Bash(x *)");
    }
}
