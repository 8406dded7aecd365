//! Deny rules for reading bind every file of a repository whose text reaches a model without a call of a tool.

use std::os::unix::fs::symlink;

use centurion_testkit::Reply;
use serde_json::json;

use crate::program::{Ended, Program, call};

const SECRET: &str = "TOPSECRET";

/// A repository with a secret that the user's settings keep from being read.
fn guarded(replies: impl IntoIterator<Item = Reply>) -> Program {
    let program = Program::answering(replies);
    program.scratch.write(".env", format!("---\nname: x\ndescription: d\n---\n{SECRET}=1\n"));
    let rules = json!({"permissions": {"deny": ["Read(.env)", "Read(**/.env)"]}});
    program.scratch.write_home(".claude/settings.json", rules.to_string());
    program
}

/// Checks that no request held the secret, and that the user was told of the file and the rule.
fn check(program: &Program, ended: &Ended, file: &str, way: &str) {
    for request in program.server().requests() {
        assert!(!request.json().to_string().contains(SECRET), "{way}: {}", request.json());
    }
    let told = format!("{}{}", ended.stderr, ended.stdout);
    assert!(told.contains(file) && told.contains("`Read(.env)`"), "{way}: {told}");
}

#[test]
fn no_instruction_file_import_or_link_brings_what_a_rule_denies() {
    for (file, text) in [
        ("CLAUDE.md", "see @.env\n"),
        ("CLAUDE.local.md", "see @./.env\n"),
        ("AGENTS.md", "see @a.md\n"),
        (".claude/CLAUDE.md", "see @../.env\n"),
        (".claude/rules/r.md", "see @../../.env\n"),
    ] {
        let program = guarded([Reply::text("ok")]);
        program.scratch.write("a.md", "@.env\n");
        program.scratch.write(file, text);
        check(&program, &program.run(&["-p", "hi"]), ".env", file);
    }
    for link in ["CLAUDE.md", "AGENTS.md", "CLAUDE.local.md", ".claude/rules/r.md"] {
        let program = guarded([Reply::text("ok")]);
        let at = program.scratch.project().join(link);
        std::fs::create_dir_all(at.parent().unwrap()).unwrap();
        symlink(program.scratch.project().join(".env"), at).unwrap();
        check(&program, &program.run(&["-p", "hi"]), link, link);
    }
}

#[test]
fn no_instruction_of_a_directory_that_is_read_later_brings_what_a_rule_denies() {
    let read = call("toolu_1", "Read", json!({"file_path": "sub/a.txt"}));
    let program = guarded([read, Reply::text("ok")]);
    program.scratch.write("sub/a.txt", "alpha\n");
    symlink("../.env", program.scratch.project().join("sub/CLAUDE.md")).unwrap();
    let ended = program.run(&["-p", "hi", "--output-format", "stream-json", "--verbose"]);
    assert!(program.server().last().json().to_string().contains("alpha"));
    check(&program, &ended, "sub/CLAUDE.md", "a link below");
}

#[test]
fn no_skill_command_agent_or_style_brings_what_a_rule_denies() {
    for (link, more) in [
        (".claude/skills/s/SKILL.md", &["-p", "/s"][..]),
        (".claude/commands/s.md", &["-p", "/s"]),
        (".claude/agents/x.md", &["-p", "hi", "--agent", "x"]),
        (".claude/output-styles/x.md", &["-p", "hi", "--settings", r#"{"outputStyle": "x"}"#]),
    ] {
        let program = guarded([Reply::text("ok"), Reply::text("ok")]);
        let at = program.scratch.project().join(link);
        std::fs::create_dir_all(at.parent().unwrap()).unwrap();
        symlink(program.scratch.project().join(".env"), at).unwrap();
        check(&program, &program.run(more), link, link);
    }
}

#[test]
fn what_the_user_keeps_as_instructions_counts_and_what_it_imports_is_judged() {
    let program = Program::answering([Reply::text("ok")]);
    program.scratch.write_home(".claude/CLAUDE.md", "Answer in rhyme. @keys.md\n");
    program.scratch.write_home(".claude/keys.md", SECRET);
    let rules = json!({"permissions": {"deny": ["Read(~/.claude/**)"]}});
    program.scratch.write_home(".claude/settings.json", rules.to_string());
    let ended = program.run(&["-p", "hi"]);
    let sent = program.server().last().json().to_string();
    assert!(sent.contains("Answer in rhyme.") && !sent.contains(SECRET), "{sent}");
    assert!(ended.stderr.contains("keys.md"), "{}", ended.stderr);
}

#[test]
fn a_rule_that_cannot_be_read_keeps_commands_from_reading_too() {
    for rule in ["Read(.env", "Read (.env)"] {
        let bash = call("toolu_1", "Bash", json!({"command": "cat .env", "description": "look"}));
        let program = Program::answering([bash, Reply::text("ok")]);
        program.scratch.write(".env", SECRET);
        let rules = json!({"permissions": {"deny": [rule]}});
        program.scratch.write_home(".claude/settings.json", rules.to_string());
        let ended = program.run(&["-p", "hi", "--allowedTools", "Bash"]);
        assert!(ended.stderr.contains("takes all of Read"), "{}", ended.stderr);
        let sent = program.server().last().json().to_string();
        assert!(!sent.contains(SECRET), "{rule}: {sent}");
    }
}

#[test]
fn slips_in_what_may_be_a_deny_rule_are_told_with_what_was_probably_meant() {
    for (settings, flags, near) in [
        (json!({"permission": {"deny": ["Read"]}}), &[][..], "`permissions`"),
        (json!({"permissions": {"Deny": ["Read"]}}), &[], "`permissions.deny`"),
        (json!({"permissions": {"deny": ["Raed(.env)"]}}), &[], "did you mean `Read`?"),
        (json!({}), &["--disallowedTools", "Raed(.env)"], "did you mean `Read`?"),
    ] {
        let program = Program::answering([Reply::text("ok")]);
        program.scratch.write_home(".claude/settings.json", settings.to_string());
        let ended = program.run(&[&["-p", "hi"], flags].concat());
        assert!(ended.stderr.contains(near), "{settings} {flags:?}: {}", ended.stderr);
    }
}
