//! `centurion skills` and `centurion commands`: skills are listed, checked, explained and written.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::agents::{good, named, names, project};
use crate::program::Program;

fn told(program: &Program, arguments: &[&str]) -> Value {
    serde_json::from_str(&good(program.run(&[arguments, &["--json"]].concat()))).unwrap()
}

fn listed(program: &Program) -> Value {
    told(program, &["skills", "list"])
}

const BUNDLED: [&str; 5] = ["init", "new-agent", "new-skill", "review", "verify"];

#[test]
fn the_list_has_a_fixed_form() {
    let program = Program::alone();
    let front = "description: Puts it out\nwhen_to_use: On Fridays\nargument-hint: [env]\ncontext: fork\n\
                 user-invocable: false\npaths: src/**\n";
    program.scratch.write(".claude/skills/deploy/SKILL.md", format!("---\n{front}---\nDo it.\n"));
    program.scratch.write(".claude/commands/deploy.md", "# Another\n");
    program.scratch.write(".claude/commands/fix.md", "# Fix it\n");
    program.scratch.write(".claude/skills/-bad/SKILL.md", "x\n");
    let list = listed(&program);
    let keys: Vec<_> = list.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["active", "shadowed", "off", "failed"]);
    let expected = json!({
        "name": "deploy", "description": "Puts it out", "whenToUse": "On Fridays",
        "argumentHint": "[env]", "kind": "skill", "source": "project",
        "path": project(&program, ".claude/skills/deploy/SKILL.md"), "userInvocable": false,
        "modelInvocable": true, "nameOnly": false, "fork": true, "paths": ["src/**"],
        "withheld": null,
    });
    assert_eq!(*named(&list["active"], "deploy"), expected);
    let all = ["deploy", "fix", "init", "new-agent", "new-skill", "review", "verify"];
    assert_eq!(names(&list["active"]), all);
    assert_eq!(named(&list["active"], "init")["modelInvocable"], false);
    let [shadowed] = list["shadowed"].as_array().unwrap().as_slice() else { panic!("{list}") };
    assert_eq!(
        (&shadowed["kind"], &shadowed["shadowedBy"]),
        (&json!("command"), &expected["path"])
    );
    let bad = project(&program, ".claude/skills/-bad/SKILL.md");
    let reason = "the name `-bad` begins with `-`";
    assert_eq!(list["failed"], json!([{"path": bad, "line": 1, "reason": reason}]));
}

#[test]
fn people_read_skills_by_whose_they_are() {
    let program = Program::alone();
    program.scratch.write(".claude/commands/fix.md", "---\nargument-hint: [bug]\n---\n# Fix it\n");
    program.scratch.write_home(".claude/skills/mine/SKILL.md", "Mine.\n");
    program
        .scratch
        .write_home(".claude/skills/verify/SKILL.md", "---\nuser-invocable: no\n---\nx\n");
    let overrides = r#"{"skillOverrides": {"init": "off", "mine": "user-invocable-only"}}"#;
    program.scratch.write_home(".claude/settings.json", overrides);
    let text = good(program.run(&["skills", "list"]));
    let titles: Vec<_> =
        text.lines().filter(|line| line.ends_with(':') && !line.starts_with(' ')).collect();
    let expected = [
        "User:",
        "Project:",
        "Bundled:",
        "Switched off by the settings:",
        "Another has their name:",
    ];
    assert_eq!(titles, expected, "{text}");
    assert!(text.contains("  mine (skill; people only)\n      Mine.\n"), "{text}");
    assert!(text.contains("  fix [bug] (command; people and models)\n      Fix it\n"), "{text}");
    assert!(text.contains("  verify (skill; models only)\n"), "{text}");
    assert!(text.contains("  init of bundled/init/SKILL.md: `skillOverrides`\n"), "{text}");
    let commands = good(program.run(&["commands", "list"]));
    assert!(commands.starts_with("Built in:\n  /add-dir"), "{commands}");
    assert!(commands.contains("User:\n  /mine\n      Mine.\n"), "{commands}");
    assert!(commands.contains("Project:\n  /fix [bug]\n      Fix it\n"), "{commands}");
    assert!(!commands.contains("/verify") && !commands.contains("/init"), "{commands}");
    let mut typed = told(&program, &["commands", "list"]);
    let typed_files = typed["commands"].as_array_mut().unwrap();
    assert!(typed_files.iter().any(|it| it["name"] == "compact" && it["source"] == "built-in"));
    typed_files.retain(|command| !command["path"].is_null());
    assert_eq!(names(&typed["commands"]), ["fix", "mine", "new-agent", "new-skill", "review"]);
    let fix = named(&typed["commands"], "fix");
    let path = project(&program, ".claude/commands/fix.md");
    let expected = json!({
        "name": "fix", "description": "Fix it", "argumentHint": "[bug]", "source": "project",
        "path": path,
    });
    assert_eq!(*fix, expected);
}

#[test]
fn a_persons_own_goes_before_the_projects_and_both_before_what_is_bundled() {
    let program = Program::alone();
    program.scratch.write(".claude/skills/review/SKILL.md", "The project's.\n");
    program.scratch.write("more/.claude/skills/far/SKILL.md", "Far.\n");
    program.scratch.write("kit/.claude-plugin/plugin.json", r#"{"name": "kit"}"#);
    program.scratch.write("kit/skills/review/SKILL.md", "The plugin's.\n");
    let source =
        |program: &Program, name: &str| named(&listed(program)["active"], name)["source"].clone();
    assert_eq!(source(&program, "review"), "project");
    program.scratch.write_home(".claude/commands/review.md", "A command.\n");
    assert_eq!(source(&program, "review"), "project", "a skill goes before all commands");
    program.scratch.write_home(".claude/skills/review/SKILL.md", "Mine.\n");
    assert_eq!(source(&program, "review"), "user");
    let list = told(&program, &["skills", "list", "--plugin-dir", "kit", "--add-dir", "more"]);
    assert_eq!(names(&list["shadowed"]), ["review"; 3]);
    assert_eq!(named(&list["active"], "kit:review")["source"], "plugin");
    assert_eq!(named(&list["active"], "far")["source"], "project");
    let none = told(&program, &["skills", "list", "--setting-sources", "user"]);
    assert_eq!(named(&none["active"], "review")["description"], "Mine.");
    let off = r#"{"disableBundledSkills": true}"#;
    let list = told(&program, &["skills", "list", "--settings", off]);
    assert_eq!(names(&list["off"]), BUNDLED);
    assert_eq!(list["off"][0]["offBy"], "disableBundledSkills");
}

#[test]
fn a_check_names_file_line_and_the_likely_key() {
    let program = Program::alone();
    assert_eq!(
        good(program.run(&["skills", "check"])),
        "0 skills are good, 0 cannot be used, 0 warnings\n"
    );
    program.scratch.write(".claude/skills/good/SKILL.md", "---\ndescription: d\n---\nx\n");
    let slips = "---\nalowed-tools: Read\ndisable-model-invokation: true\ncontext: fresh\n---\nx\n";
    program.scratch.write(".claude/skills/odd/SKILL.md", slips);
    let odd = project(&program, ".claude/skills/odd/SKILL.md");
    let warned = program.run(&["skills", "check"]);
    let expected = format!(
        "{odd}:2: `alowed-tools` is unknown and ignored; did you mean `allowed-tools`?\n\
         {odd}:3: `disable-model-invokation` is unknown and ignored; did you mean `disable-model-invocation`?\n\
         {odd}:4: `context: fresh` is ignored: use fork\n\
         2 skills are good, 0 cannot be used, 3 warnings\n"
    );
    assert_eq!((warned.stdout.as_str(), warned.code), (expected.as_str(), Some(0)));
    assert_eq!(program.run(&["skills", "check", "--strict"]).code, Some(1));
    program.scratch.write(".claude/commands/-x.md", "x\n");
    let failed = program.run(&["skills", "check"]);
    assert!(failed.stdout.contains("-x.md:1: the name `-x` begins with `-`"), "{}", failed.stdout);
    assert_eq!(failed.code, Some(1));
    let data = program.run(&["skills", "check", "--json"]);
    assert_eq!(data.code, Some(1));
    let data: Value = serde_json::from_str(&data.stdout).unwrap();
    assert_eq!((&data["good"], data["warnings"].as_array().unwrap().len()), (&json!(2), 3));
    assert_eq!(
        (&data["warnings"][0]["path"], &data["warnings"][0]["line"]),
        (&json!(odd), &json!(2))
    );
    assert!(data["failed"][0]["message"].as_str().unwrap().contains("begins with `-`"), "{data}");
}

#[test]
fn a_check_names_what_has_no_effect() {
    let program = Program::alone();
    let scratch = &program.scratch;
    scratch.write_home(
        ".claude/skills/odd/SKILL.md",
        "---\ndescription: d\nallowed-tools: [\"Bash(\", Read]\npaths: \"src/[z-a]\"\ncontext: fork\nagent: nosuch\n\
         hooks:\n  PreToolUse:\n    - matcher: Bash\n      hooks:\n        - type: comand\n          command: x\n\
         ---\nText.\n",
    );
    scratch.write_home(".claude/skills/context/SKILL.md", "---\ndescription: d\n---\nText.\n");
    scratch.write_home(".claude/commands/empty.md", "---\ndescription: d\n---\n\n");
    let told = program.run(&["skills", "check"]);
    let home = scratch.home().canonicalize().unwrap();
    let at = |file: &str, line: usize| format!("{}:{line}: ", home.join(file).display());
    let odd = |line| at(".claude/skills/odd/SKILL.md", line);
    for expected in [
        format!("{}permission rule `Bash(` has a parenthesis without its partner", odd(3)),
        format!("{}`paths` is ignored: `src/[z-a]` is no glob", odd(4)),
        format!("{}there is no agent `nosuch`: the skill cannot be invoked", odd(6)),
        odd(7),
        format!(
            "{}people cannot type it: /context is a command of the program; models can invoke it; \
             give the directory another name",
            at(".claude/skills/context/SKILL.md", 1)
        ),
        format!("{}it has no text behind its frontmatter", at(".claude/commands/empty.md", 4)),
    ] {
        assert!(told.stdout.contains(&expected), "{expected}\n{}", told.stdout);
    }
    assert_eq!((told.code, program.run(&["skills", "check", "--strict"]).code), (Some(0), Some(1)));
    let explained = program.run(&["skills", "explain", "odd"]);
    assert!(explained.stdout.contains("there is no agent `nosuch`"), "{}", explained.stdout);
    let by_path = program.run(&["skills", "check", home.join(".claude/skills").to_str().unwrap()]);
    assert!(by_path.stdout.contains("without its partner"), "{}", by_path.stdout);
}

#[test]
fn paths_are_checked_wherever_they_are() {
    let program = Program::alone();
    program.scratch.write("drafts/a/SKILL.md", "---\ndescription: d\n---\nx\n");
    program.scratch.write("drafts/a/notes.md", "---\nzzzz: 1\n---\n");
    program.scratch.write("drafts/commands/b.md", "---\nshell: fish\n---\nx\n");
    program.scratch.write("empty/README.md", "# Nothing\n");
    let one = program.run(&["skills", "check", "drafts/a", "--strict"]);
    assert_eq!(
        (one.stdout.as_str(), one.code),
        ("1 skill is good, 0 cannot be used, 0 warnings\n", Some(0))
    );
    let all = program.run(&["skills", "check", "drafts"]);
    let b = project(&program, "drafts/commands/b.md");
    assert!(all.stdout.starts_with(&format!("{b}:2: `shell: fish` is ignored")), "{}", all.stdout);
    assert!(
        all.stdout.ends_with("2 skills are good, 0 cannot be used, 1 warning\n"),
        "{}",
        all.stdout
    );
    let empty = program.run(&["skills", "check", "empty"]);
    assert!(empty.stdout.contains("empty: holds no skill"), "{}", empty.stdout);
    assert_eq!(empty.code, Some(1));
    let nothing = program.run(&["skills", "check", "nowhere"]);
    assert_eq!(nothing.code, Some(1));
    assert!(nothing.stderr.contains("there is nothing at "), "{}", nothing.stderr);
}

#[test]
fn an_explanation_shows_the_text_and_what_decided_each_part() {
    let program = Program::alone();
    let text = "---\ndescription: Puts it out\narguments: env\nallowed-tools: Bash(git log *)\nmodel: haiku\n\
                effort: low\ncontext: fork\n---\nPut $env out: $ARGUMENTS\n\nSee !`touch ran; git log $0`.\n\n\
                ```!\ntouch ran\n```\nLook into ${CLAUDE_SKILL_DIR}, ${CLAUDE_EFFORT}.\n";
    program.scratch.write_home(".claude/skills/deploy/SKILL.md", text);
    program.scratch.write(".claude/skills/deploy/SKILL.md", "Another.\n");
    let explained = told(&program, &["skills", "explain", "/deploy", "live", "now"]);
    let home = program.scratch.home().join(".claude/skills/deploy");
    let place = |line: usize| format!("{}:{line}", home.join("SKILL.md").display());
    let expected = format!(
        "Put live out: live now\n\nSee !`touch ran; git log live`.\n\n```!\ntouch ran\n```\nLook into {}, low.",
        home.display()
    );
    assert_eq!(explained["text"], expected);
    assert_eq!(explained["allowedTools"], json!({"value": ["Bash(git log *)"], "from": place(4)}));
    assert_eq!(explained["model"], json!({"value": "haiku", "from": place(5)}));
    assert_eq!(explained["effort"], json!({"value": "low", "from": place(6)}));
    assert_eq!(explained["context"], json!({"value": "fork", "from": place(7)}));
    let by_default = json!({"value": "general-purpose", "from": "the default of a fork"});
    assert_eq!(explained["agent"], by_default);
    assert_eq!(explained["modelInvocable"], json!({"value": true, "from": "the default"}));
    assert_eq!((&explained["source"], &explained["withheld"]), (&json!("user"), &Value::Null));
    let commands = json!([
        {"command": "touch ran; git log live", "from": place(11)},
        {"command": "touch ran", "from": place(13)},
    ]);
    assert_eq!(explained["commands"], commands);
    assert_eq!(explained["shadows"], json!([project(&program, ".claude/skills/deploy/SKILL.md")]));
    let text = good(program.run(&["skills", "explain", "deploy"]));
    assert!(text.contains(&format!("model: haiku   [{}]\n", place(5))), "{text}");
    assert!(text.contains("\ntext:\n  Put  out: \n"), "{text}");
    let off = r#"{"disableSkillShellExecution": true, "skillOverrides": {"deploy": "user-invocable-only"}}"#;
    let explained = told(&program, &["skills", "explain", "deploy", "--settings", off]);
    let told_by = explained["commands"][0]["from"].as_str().unwrap();
    assert!(
        told_by.ends_with("not run: `disableSkillShellExecution` in the settings"),
        "{told_by}"
    );
    let by_settings = json!({"value": false, "from": "`skillOverrides` in the settings"});
    assert_eq!(explained["modelInvocable"], by_settings);
    assert!(!program.scratch.project().join("ran").exists(), "nothing of it was run");
}

#[test]
fn an_explanation_names_the_line_of_every_key() {
    let program = Program::alone();
    let keys = [
        ("name: Put it out", "label"),
        ("description: Puts it out", "description"),
        ("when_to_use: On Fridays", "whenToUse"),
        ("argument-hint: env", "argumentHint"),
        ("arguments: env", "arguments"),
        ("disable-model-invocation: on", "modelInvocable"),
        ("user-invocable: 1", "userInvocable"),
        ("allowed-tools: Read", "allowedTools"),
        ("disallowed-tools: Write", "disallowedTools"),
        ("model: haiku", "model"),
        ("effort: low", "effort"),
        ("context: fork", "context"),
        ("agent: Explore", "agent"),
        ("background: no", "background"),
        ("hooks: {Stop: []}", "hooks"),
        ("paths: src/**", "paths"),
        ("shell: bash", "shell"),
        ("metadata: {a: 1}", "metadata"),
        ("license: MIT", "license"),
        ("compatibility: any", "compatibility"),
    ];
    let lines: Vec<&str> = keys.iter().map(|(line, _)| *line).collect();
    let text = format!("---\n{}\n---\nx\n", lines.join("\n"));
    program.scratch.write_home(".claude/skills/deploy/SKILL.md", text);
    let explained = told(&program, &["skills", "explain", "deploy"]);
    let file = program.scratch.home().join(".claude/skills/deploy/SKILL.md");
    for (line, (key, shown)) in (2..).zip(keys) {
        let from = format!("{}:{line}", file.display());
        assert_eq!(explained[shown]["from"], from, "{key}: {explained}");
    }
    assert_eq!(explained["label"]["value"], "Put it out");
    assert_eq!(explained["metadata"]["value"], json!({"a": 1}));
    let check = program.run(&["skills", "check", "--strict"]);
    assert_eq!(check.code, Some(0), "{}", check.stdout);
}

#[test]
fn a_name_that_means_nothing_gets_the_likely_one() {
    let program = Program::alone();
    let near = program.run(&["skills", "explain", "reviw"]);
    assert_eq!(near.code, Some(1));
    assert!(
        near.stderr.contains("there is no skill `reviw`; did you mean `review`?"),
        "{}",
        near.stderr
    );
    let settings = r#"{"skillOverrides": {"review": "off"}}"#;
    let off = program.run(&["skills", "explain", "review", "--settings", settings]);
    assert_eq!(off.code, Some(1));
    assert!(
        off.stderr.contains("`skillOverrides` in the settings switches `review` off"),
        "{}",
        off.stderr
    );
}

#[test]
fn what_acts_in_a_repositorys_skill_is_off_until_it_is_accepted() {
    let program = Program::alone();
    let hooks = "---\ndescription: d\nhooks:\n  Stop: []\n---\nx\n";
    let acting = [
        ("allows", "---\ndescription: d\nallowed-tools: Bash\n---\nx\n"),
        ("hooks", hooks),
        ("runs", "---\ndescription: d\n---\nSee !`./check.sh`.\n"),
    ];
    for (name, text) in acting {
        program.scratch.write(format!(".claude/skills/{name}/SKILL.md"), text);
    }
    program.scratch.write(".claude/skills/plain/SKILL.md", "Text.\n");
    program.scratch.write("check.sh", "true\n");
    let withheld = |name: &str| named(&listed(&program)["active"], name)["withheld"].clone();
    for (name, _) in acting {
        let reason = withheld(name);
        assert!(
            reason.as_str().unwrap().contains("this folder is not trusted"),
            "{name}: {reason}"
        );
        let explained = told(&program, &["skills", "explain", name]);
        assert_eq!(explained["withheld"], reason, "{name}");
    }
    assert_eq!(withheld("plain"), Value::Null);
    let list = good(program.run(&["skills", "list"]));
    assert_eq!(list.matches("what acts for the user in it is off: ").count(), 3, "{list}");
    let explained = told(&program, &["skills", "explain", "allows"]);
    let from = explained["allowedTools"]["from"].as_str().unwrap();
    assert!(from.ends_with("SKILL.md:3; off, see `withheld`"), "{from}");
    let status = good(program.run(&["trust"]));
    for (name, _) in acting {
        assert!(status.contains(&format!("skill `{name}`")), "{status}");
    }
    assert!(!status.contains("skill `plain`"), "{status}");
    good(program.run(&["trust", "grant"]));
    assert!(acting.iter().all(|(name, _)| withheld(name) == Value::Null));
    program.scratch.write("check.sh", "evil\n");
    assert!(
        withheld("runs").as_str().unwrap().contains("check.sh`, which it runs"),
        "{}",
        withheld("runs")
    );
    assert_eq!(withheld("allows"), Value::Null);
}

#[test]
fn a_new_skill_is_good_and_nothing_is_overwritten() {
    let program = Program::alone();
    let args = ["skills", "new", "release-notes", "--description", "Writes: \"notes\" # really"];
    let more = ["--tools", "Read, Bash(git log *)", "--fork"];
    let wrote = good(program.run(&[&args[..], &more].concat()));
    let path = project(&program, ".claude/skills/release-notes/SKILL.md");
    assert!(wrote.starts_with(&format!("wrote {path};")), "{wrote}");
    let data = told(&program, &["skills", "new", "verify"]);
    assert_eq!(data["path"], project(&program, ".claude/skills/verify/SKILL.md"));
    assert!(data["note"].as_str().unwrap().starts_with("it takes the place of `verify`"), "{data}");
    let list = listed(&program);
    let skill = named(&list["active"], "release-notes");
    assert_eq!(skill["description"], "Writes: \"notes\" # really");
    assert_eq!((&skill["fork"], &skill["path"]), (&json!(true), &json!(path)));
    let explained = told(&program, &["skills", "explain", "release-notes", "v2"]);
    assert_eq!(explained["allowedTools"]["value"], json!(["Read", "Bash(git log *)"]));
    assert!(explained["text"].as_str().unwrap().contains("What to work on: v2\n"), "{explained}");
    good(program.run(&["skills", "check", "--strict", ".claude/skills"]));
    let before = program.scratch.read(".claude/skills/release-notes/SKILL.md");
    program.scratch.write(".claude/skills/taken/SKILL.md", vec![b'x'; 2 << 20]);
    for (name, reason) in [
        ("release-notes", "there is a skill `release-notes` already, in "),
        ("taken", "there is a file "),
        ("a:b", "the name `a:b` contains `:`"),
        ("../x", "the name `../x` begins with `.`"),
        ("a/x", "contains `/`, and a name is no path"),
        ("", "the name `` is empty"),
    ] {
        let refused = program.run(&["skills", "new", name]);
        assert_eq!(refused.code, Some(1), "{name}");
        assert!(refused.stderr.contains(reason), "{name}: {}", refused.stderr);
    }
    assert_eq!(program.scratch.read(".claude/skills/release-notes/SKILL.md"), before);
    for bad in [["--description", " "], ["--tools", ","]] {
        assert_eq!(program.run(&["skills", "new", "x", bad[0], bad[1]]).code, Some(1), "{bad:?}");
    }
    let mine = program.run(&["skills", "new", "release-notes", "--scope", "user"]);
    assert!(
        mine.stderr.contains("note: it takes the place of `release-notes` of "),
        "{}",
        mine.stderr
    );
    assert!(program.scratch.home().join(".centurion/skills/release-notes/SKILL.md").is_file());
    let beaten = program.run(&["skills", "new", "review", "--scope", "user"]);
    assert!(beaten.stderr.contains("of bundled/review/SKILL.md"), "{}", beaten.stderr);
    let beaten = program.run(&["skills", "new", "review"]);
    assert!(beaten.stderr.contains("goes before it"), "{}", beaten.stderr);
}

#[test]
fn a_repositorys_link_is_not_written_through() {
    let program = Program::alone();
    program.scratch.write(".claude/skills/other/SKILL.md", "x\n");
    symlink(program.scratch.home(), program.scratch.project().join(".claude/skills/out")).unwrap();
    let refused = program.run(&["skills", "new", "out"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("skills/out is a link"), "{}", refused.stderr);
    assert!(!program.scratch.home().join("SKILL.md").exists());
}

#[test]
fn hostile_skills_are_named_and_not_used() {
    let program = Program::alone();
    program.scratch.write_home("secret/SKILL.md", "The secret.\n");
    program.scratch.write_home("secret/notes.md", "More secrets.\n");
    program.scratch.write(".claude/skills/plain/SKILL.md", "Text \u{1b}[31m.\n");
    let skills = program.scratch.project().join(".claude/skills");
    symlink(program.scratch.home().join("secret"), skills.join("out")).unwrap();
    std::fs::create_dir(skills.join("file")).unwrap();
    symlink(program.scratch.home().join("secret/SKILL.md"), skills.join("file/SKILL.md")).unwrap();
    let head = b"---\ndescription: d\n---\n".to_vec();
    let large = [head, vec![b'x'; 10 << 20]].concat();
    program.scratch.write(".claude/skills/large/SKILL.md", large);
    let list = listed(&program);
    let own = names(&list["active"]).into_iter().filter(|name| !BUNDLED.contains(name));
    assert_eq!(own.collect::<Vec<_>>(), ["plain"]);
    let failed: Vec<&str> = list["failed"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["reason"].as_str().unwrap())
        .collect();
    assert_eq!(failed.iter().filter(|it| it.contains("is a link that leads elsewhere")).count(), 2);
    assert!(failed.iter().any(|it| it.contains("larger than")), "{failed:?}");
    assert!(!list.to_string().contains("secret."), "{list}");
    let text = good(program.run(&["skills", "list"]));
    assert!(!text.contains('\u{1b}'), "{text}");
    let checked = program.run(&["skills", "check"]);
    assert!(
        checked.stdout.ends_with("1 skill is good, 3 cannot be used, 0 warnings\n"),
        "{}",
        checked.stdout
    );
    assert_eq!(program.run(&["skills", "explain", "large"]).code, Some(1));
}

#[test]
fn five_thousand_skills_are_listed() {
    let program = Program::alone();
    for number in 0..5_000 {
        let text = format!("---\ndescription: Does {number}\n---\nDo {number} for $ARGUMENTS.\n");
        program.scratch.write(format!(".claude/skills/s{number:04}/SKILL.md"), text);
    }
    let list = listed(&program);
    assert_eq!(list["active"].as_array().unwrap().len(), 5_000 + BUNDLED.len());
    assert_eq!(named(&list["active"], "s4999")["description"], "Does 4999");
    let typed = told(&program, &["commands", "list"]);
    let files = typed["commands"].as_array().unwrap().iter().filter(|it| !it["path"].is_null());
    assert_eq!(files.count(), 5_000 + BUNDLED.len());
    let explained = told(&program, &["skills", "explain", "s4999", "it"]);
    assert_eq!(explained["text"], "Do 4999 for it.");
    let checked = good(program.run(&["skills", "check"]));
    assert_eq!(checked, "5000 skills are good, 0 cannot be used, 0 warnings\n");
}
