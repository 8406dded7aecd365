//! Skills that agents know from the start: which one a name means, and what an agent reads of it.

use std::os::unix::fs::symlink;

use centurion_protocol::{Effort, SessionId};

use super::*;
use crate::Located;
use crate::agents::{AgentDefinition, AgentEffort, AgentOrigin, AgentSource};

const SESSION: &str = "6f1c5d52-7d0c-4d1b-9d5a-2a3a4f1d2f10";

impl Machine {
    fn new() -> Self {
        Self::with(|_| SkillTests)
    }

    fn file(&self, relative: &str, text: &str) {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn sources(&self) -> SkillSources {
        let plugin = |name: &str| PluginSkills {
            plugin: name.to_owned(),
            root: self.path(name),
            skills: vec![self.path(&format!("{name}/skills"))],
            commands: vec![self.path(&format!("{name}/commands"))],
            ..PluginSkills::default()
        };
        SkillSources {
            managed_dir: Some(self.path("etc")),
            folders: ProjectFolders {
                cwd: self.path("repo"),
                repository: Some(self.path("repo")),
                ..ProjectFolders::default()
            },
            config_dirs: vec![self.path("home/.claude")],
            plugins: vec![plugin("kit"), plugin("box")],
            ..SkillSources::default()
        }
    }

    fn catalog(&self) -> std::sync::Arc<SkillCatalog> {
        SkillLoader::new().load(&self.sources(), &SystemWorld)
    }

    /// The preload of an agent of a project or plugin that names these skills.
    fn preload(&self, names: &[&str], plugin: Option<&str>) -> Preloaded {
        let catalog = self.catalog();
        let preload = Preload {
            catalog: &catalog,
            project_dir: &self.path("repo"),
            session: SESSION.parse().unwrap(),
            effort: Some(AgentEffort::Level(Effort::High)),
        };
        preload.for_agent(&agent(names, plugin))
    }
}

fn agent(names: &[&str], plugin: Option<&str>) -> AgentDefinition {
    let text = |text: &str, line| Located::new(text.to_owned(), line);
    let origin = AgentOrigin {
        source: AgentSource::Project,
        path: "/agents/scout.md".into(),
        plugin: plugin.map(str::to_owned),
    };
    let names = names.iter().map(|&name| name.to_owned()).collect();
    AgentDefinition {
        skills: Some(Located::new(names, 4)),
        ..AgentDefinition::new(text("scout", 2), text("d", 3), text("p", 6), origin)
    }
}

fn names(preloaded: &Preloaded) -> Vec<&str> {
    preloaded.skills.iter().map(|skill| skill.name.as_str()).collect()
}

fn problems(preloaded: &Preloaded) -> Vec<String> {
    preloaded.problems.iter().map(ToString::to_string).collect()
}

#[test]
fn a_name_is_exact_or_the_plugins_or_the_only_one_that_ends_so() {
    // S-079, S-339, S-021
    let machine = Machine::new();
    for file in [
        "repo/.claude/skills/a/SKILL.md",
        "kit/skills/a/SKILL.md",
        "kit/skills/both/SKILL.md",
        "box/skills/both/SKILL.md",
        "box/skills/only/SKILL.md",
        "box/commands/note.md",
    ] {
        machine.skill(file);
    }
    let one = |name: &str, plugin| {
        let preloaded = machine.preload(&[name], plugin);
        assert_eq!(problems(&preloaded), [""; 0]);
        names(&preloaded).join(" ")
    };
    assert_eq!(one("a", None), "a");
    assert_eq!(one("a", Some("kit")), "a");
    assert_eq!(one("kit:a", None), "kit:a");
    assert_eq!(one("both", Some("kit")), "kit:both");
    assert_eq!(one("both", Some("box")), "box:both");
    assert_eq!(one("only", None), "box:only");
    assert_eq!(one("only", Some("kit")), "box:only");
    assert_eq!(one("note", None), "box:note");
    let ambiguous = machine.preload(&["both", "only"], None);
    assert_eq!(names(&ambiguous), ["box:only"]);
    assert_eq!(
        problems(&ambiguous),
        [
            "/agents/scout.md:4: a skill is not loaded: `both` may be any of `box:both`, `kit:both`; write which"
        ]
    );
    assert_eq!(problems(&machine.preload(&["both"], Some("third"))).len(), 1);
    // However it is named, a skill is loaded once.
    assert_eq!(
        names(&machine.preload(&["only", "box:only", "a", "only"], None)),
        ["box:only", "a"]
    );
}

#[test]
fn a_name_ends_where_a_plugins_name_does() {
    // S-339
    let machine = Machine::new();
    machine.skill("kit/skills/lint/SKILL.md");
    machine.file("box/skills/lint/SKILL.md", "---\nname: web/lint\n---\nx");
    let catalog = machine.catalog();
    let found = |name: &str| catalog.resolve(name, Some("box")).map(|skill| skill.name.clone());
    assert_eq!(found("lint"), Ok("kit:lint".to_owned()));
    assert_eq!(found("web/lint"), Ok("box:web/lint".to_owned()));
    for none in ["int", ":lint", "t", "t:lint", "kit", "kit:", ""] {
        assert!(matches!(found(none), Err(SkillLookupError::Unknown { .. })), "{none}");
    }
}

#[test]
fn a_skill_that_is_not_there_is_told_with_the_nearest_name() {
    // S-338, S-339
    let machine = Machine::new();
    machine.skill("repo/.claude/skills/deploy/SKILL.md");
    machine.skill("kit/skills/review/SKILL.md");
    let told = |name: &str| {
        let preloaded = machine.preload(&[name], None);
        assert_eq!(names(&preloaded), [""; 0]);
        problems(&preloaded).join("\n").replace("/agents/scout.md:4: a skill is not loaded: ", "")
    };
    assert_eq!(told("depoly"), "there is no skill `depoly`; did you mean `deploy`?");
    assert_eq!(told("reviews"), "there is no skill `reviews`; did you mean `kit:review`?");
    assert_eq!(told("kti:review"), "there is no skill `kti:review`; did you mean `kit:review`?");
    assert_eq!(told("something-else"), "there is no skill `something-else`");
    assert_eq!(told(""), "there is no skill ``");
    assert_eq!(told("\u{1b}[2J\n"), "there is no skill `\u{fffd}[2J\u{fffd}`");
    assert!(told(&"x".repeat(10_000)).len() < 200);
    // One that is missing does not keep the others away.
    assert_eq!(names(&machine.preload(&["nope", "deploy"], None)), ["deploy"]);
}

#[test]
fn a_file_that_cannot_be_used_is_named_with_the_reason() {
    let machine = Machine::new();
    machine.file("repo/.claude/skills/huge/SKILL.md", &"x".repeat(2 * 1024 * 1024));
    machine.file("away/leak/SKILL.md", "The secret.");
    symlink(machine.path("away/leak"), machine.path("repo/.claude/skills/leak")).unwrap();
    machine.file("repo/.claude/commands/-x.md", "text");
    let catalog = machine.catalog();
    for (name, reason) in [
        ("huge", "is larger than 1 MiB"),
        ("leak", "is a link that leads elsewhere"),
        ("-x", "begins with `-`"),
    ] {
        let error = catalog.resolve(name, None).unwrap_err();
        assert!(matches!(error, SkillLookupError::Unusable { .. }), "{error}");
        assert!(error.to_string().contains(reason), "{error}");
    }
}

#[test]
fn what_is_synced_is_weaker_than_all_else_and_no_skill_by_itself() {
    let machine = Machine::new();
    let skill = |text: &str| format!("---\ndescription: {text}\n---\ntext\n");
    for name in ["mine", "review", "alone"] {
        let path = format!("home/.claude/skills/synced/{name}/SKILL.md");
        machine.file(&path, &skill("fetched"));
    }
    machine.file("home/.claude/skills/synced/SKILL.md", &skill("the folder"));
    machine.file("repo/.claude/skills/mine/SKILL.md", &skill("the project's"));
    machine.file("repo/.claude/skills/synced/SKILL.md", &skill("the project's folder"));
    machine.file("repo/.claude/skills/synced/other/SKILL.md", &skill("the project fetches none"));
    let sources = SkillSources { bundled: true, ..machine.sources() };
    let catalog = SkillLoader::new().load(&sources, &SystemWorld);
    let about = |name: &str| catalog.find(name).and_then(|it| it.card.summary.clone());
    assert_eq!(about("alone").as_deref(), Some("fetched"));
    assert_eq!(about("mine").as_deref(), Some("the project's"));
    assert!(about("review").unwrap().starts_with("Reviews"), "the program's own goes before it");
    assert_eq!((about("synced"), about("other")), (None, None));
    assert_eq!(catalog.shadowed.len(), 2);
}

#[test]
fn a_skill_for_people_only_is_not_preloaded() {
    // S-338
    let machine = Machine::new();
    machine.file("repo/.claude/skills/a/SKILL.md", "---\ndisable-model-invocation: true\n---\nx");
    machine.file("repo/.claude/skills/b/SKILL.md", "---\nuser-invocable: false\n---\nx");
    let preloaded = machine.preload(&["a", "b"], None);
    assert_eq!(names(&preloaded), ["b"]);
    let expected = "/agents/scout.md:4: the skill `a` is not loaded: it says `disable-model-invocation`, \
                    so that only people may use it";
    assert_eq!(problems(&preloaded), [expected]);
}

#[test]
fn a_text_is_given_with_its_place_and_what_it_names() {
    // S-338
    let machine = Machine::new();
    machine.file(
        "repo/.claude/skills/a/SKILL.md",
        "---\ndescription: d\n---\nRun ${CLAUDE_SKILL_DIR}/x in ${CLAUDE_PROJECT_DIR} for \
         ${CLAUDE_SESSION_ID} at ${CLAUDE_EFFORT}.\n$ARGUMENTS $1 ${OTHER} ${x${CLAUDE_EFFORT}} ${ ${CLAUDE",
    );
    let preloaded = machine.preload(&["a"], None);
    assert_eq!(problems(&preloaded), [""; 0]);
    let [skill] = preloaded.skills.as_slice() else { panic!("{preloaded:?}") };
    let directory = machine.path("repo/.claude/skills/a");
    let (place, project) = (directory.display(), machine.path("repo"));
    let body = format!(
        "Run {place}/x in {} for {SESSION} at high.\n$ARGUMENTS $1 ${{OTHER}} ${{xhigh}} ${{ ${{CLAUDE",
        project.display()
    );
    assert_eq!((&skill.directory, &skill.body), (&directory, &body));
    assert_eq!(
        skill.blocks(),
        [
            "<command-message>a</command-message>\n<command-name>a</command-name>\n\
             <skill-format>true</skill-format>"
                .to_owned(),
            format!("Base directory for this skill: {place}\n\n{body}"),
        ]
    );
}

#[test]
fn what_a_value_says_is_not_looked_through_again() {
    let machine = Machine::new();
    let directory = "repo/.claude/skills/${CLAUDE_SESSION_ID}";
    machine.file(&format!("{directory}/SKILL.md"), "${CLAUDE_SKILL_DIR} ${CLAUDE_EFFORT}");
    let catalog = machine.catalog();
    let preload = Preload {
        catalog: &catalog,
        project_dir: Path::new("/p"),
        session: SESSION.parse::<SessionId>().unwrap(),
        effort: None,
    };
    let preloaded = preload.for_agent(&agent(&["${CLAUDE_SESSION_ID}"], None));
    let expected = format!("{} ${{CLAUDE_EFFORT}}", machine.path(directory).display());
    assert_eq!(preloaded.skills[0].body, expected);
    // An agent that names none gets none.
    let none = AgentDefinition { skills: None, ..agent(&[], None) };
    assert_eq!(preload.for_agent(&none), Preloaded::default());
}

#[test]
fn commands_in_a_text_are_not_run() {
    // S-338
    let machine = Machine::new();
    let ran = machine.path("ran");
    let text = format!(
        "---\ndescription: d\n---\n\nHi.\nNow: !`touch {}`\n```!\ntouch x\n```\n",
        ran.display()
    );
    machine.file("repo/.claude/skills/a/SKILL.md", &text);
    machine.file("repo/.claude/skills/b/SKILL.md", "Wow!`x` `!` !`` ! `x` a!`b` !`open\n!x");
    let preloaded = machine.preload(&["a", "b"], None);
    assert!(preloaded.skills[0].body.contains("!`touch ") && !ran.exists());
    let path = machine.path("repo/.claude/skills/a/SKILL.md");
    let expected = format!(
        "{}:6: this command is not run when an agent is given the skill, and stays text, nor is one \
         further down",
        path.display()
    );
    assert_eq!(problems(&preloaded), [expected]);
}

#[test]
fn files_beside_a_skill_are_named_the_nearest_first() {
    // S-338
    let machine = Machine::new();
    machine.skill("repo/.claude/skills/a/SKILL.md");
    for file in ["b/c.py", "a.md", "z.md", ".hidden", ".git/x", "b/d/e.md", "line\nbreak"] {
        machine.file(&format!("repo/.claude/skills/a/{file}"), "x");
    }
    machine.file("home/secret", "s");
    let link = |target: &str, name: &str| {
        symlink(machine.path(target), machine.path(&format!("repo/.claude/skills/a/{name}")))
            .unwrap();
    };
    link("home/secret", "out.md");
    link("home", "out");
    link("repo/.claude/skills/a/z.md", "in.md");
    link("repo/.claude/skills/a", "b/loop");
    let preloaded = machine.preload(&["a"], None);
    let resources = &preloaded.skills[0].resources;
    assert_eq!(resources.names, ["a.md", "in.md", "z.md", "b/c.py", "b/d/e.md"]);
    assert!(!resources.is_cut);
    let [_, text] = preloaded.skills[0].blocks();
    assert!(text.ends_with("\n- z.md\n- b/c.py\n- b/d/e.md"), "{text}");
    // Files beside a command belong to others.
    machine.skill("repo/.claude/commands/c.md");
    machine.skill("repo/.claude/commands/d.md");
    assert_eq!(machine.preload(&["c"], None).skills[0].resources, Resources::default());
}

#[test]
fn files_without_number_and_depth_come_to_an_end() {
    // S-338
    let machine = Machine::new();
    machine.skill("repo/.claude/skills/a/SKILL.md");
    machine.skill("repo/.claude/skills/b/SKILL.md");
    for index in 0..2_100 {
        machine.file(&format!("repo/.claude/skills/a/many/{index}"), "");
    }
    machine.file("repo/.claude/skills/a/near", "");
    machine.file("repo/.claude/skills/b/1/2/3/4/5/6", "");
    let preloaded = machine.preload(&["a", "b"], None);
    let [many, deep] = preloaded.skills.as_slice() else { panic!("{preloaded:?}") };
    assert_eq!((many.resources.names.len(), many.resources.is_cut), (50, true));
    assert_eq!(many.resources.names[0], "near");
    assert!(many.blocks()[1].ends_with("\n- and more"));
    assert_eq!(deep.resources, Resources { names: Vec::new(), is_cut: true });
}

#[test]
fn all_texts_together_have_an_end() {
    // S-338
    let machine = Machine::new();
    for name in ["a", "b", "c"] {
        let text = "x".repeat(200 * 1024);
        machine.file(&format!("repo/.claude/skills/{name}/SKILL.md"), &text);
    }
    let preloaded = machine.preload(&["a", "b", "c"], None);
    assert_eq!(names(&preloaded), ["a", "b"]);
    let problems = problems(&preloaded);
    assert!(problems[0].contains("`c` and those after it are not loaded"), "{problems:?}");
}

#[test]
fn names_of_files_and_directories_are_no_markup_of_ours() {
    let machine = Machine::new();
    machine.skill("repo/.claude/skills/<system-reminder>/SKILL.md");
    machine.file("repo/.claude/skills/<system-reminder>/<task-notification>", "");
    let [_, text] = machine.preload(&["<system-reminder>"], None).skills[0].blocks();
    assert!(text.contains("skills/&lt;system-reminder>\n"), "{text}");
    assert!(text.contains("- &lt;task-notification>") && !text.contains("<system"), "{text}");
}

#[test]
fn a_name_stays_between_its_tags() {
    let machine = Machine::new();
    machine.skill("repo/.claude/skills/<x-y>&z/SKILL.md");
    let [head, _] = machine.preload(&["<x-y>&z"], None).skills[0].blocks();
    assert!(head.starts_with("<command-message>&lt;x-y&gt;&amp;z</command-message>\n"), "{head}");
}

#[test]
fn a_policy_of_plugins_alone_leaves_managed_skills_and_those_of_plugins() {
    // S-077
    let machine = Machine::new();
    for file in [
        "etc/.claude/skills/managed/SKILL.md",
        "home/.claude/skills/user/SKILL.md",
        "repo/.claude/skills/project/SKILL.md",
        "repo/.claude/commands/command.md",
        "kit/skills/plugin/SKILL.md",
    ] {
        machine.skill(file);
    }
    let sources = SkillSources { plugin_only: true, ..machine.sources() };
    let catalog = SkillLoader::new().load(&sources, &SystemWorld);
    let names: Vec<_> = catalog.active.iter().map(|skill| skill.name.as_str()).collect();
    assert_eq!(names, ["kit:plugin", "managed"]);
    assert_eq!(machine.catalog().active.len(), 5);
}
