//! Hooks about models, shown texts and added directories, in the whole program.

use centurion_testkit::Reply;
use serde_json::{Value, json};

use crate::host::Host;
use crate::program::Program;

/// A program whose user has one command at each of these events, with the replies of its model.
fn program(hooks: &[(&str, String)], replies: impl IntoIterator<Item = Reply>) -> Program {
    let program = Program::answering(replies);
    let hook = |command: &String| json!([{"hooks": [{"type": "command", "command": command}]}]);
    let hooks = hooks.iter().map(|(event, command)| ((*event).to_owned(), hook(command)));
    let settings = json!({"hooks": Value::Object(hooks.collect())});
    program.scratch.write_home(".claude/settings.json", settings.to_string());
    program
}

/// The inputs that the hooks of an event wrote into its file.
fn heard(program: &Program, event: &str) -> Vec<Value> {
    let file = program.scratch.project().join(event);
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A command that keeps what it is told, and then does this.
fn keep(event: &str, then: &str) -> String {
    format!("tee -a \"$CLAUDE_PROJECT_DIR/{event}\" | {then}")
}

#[test]
fn a_hook_may_deny_another_model_and_hears_of_those_that_are_taken() {
    let deny = "grep -q '\"to_model\":\"claude-opus' && { echo 'too dear' >&2; exit 2; }; exit 0";
    let context = json!({"hookSpecificOutput": {
        "hookEventName": "PostModelSwitch", "additionalContext": "you are small now",
    }});
    let tell = format!("cat > /dev/null; echo '{context}'");
    let hooks = [
        ("PreModelSwitch", keep("PreModelSwitch", deny)),
        ("PostModelSwitch", keep("PostModelSwitch", &format!("{{ {tell}; }}"))),
    ];
    let program = program(&hooks, [Reply::text("one"), Reply::text("two")]);
    let mut host = Host::start(&program, &["--model", "sonnet"]);
    host.say("first");
    assert_eq!(host.result()["result"], "one");
    let refused = host.ask(&json!({"subtype": "set_model", "model": "opus"}));
    assert!(refused["error"].as_str().unwrap().contains("too dear"), "{refused}");
    let change = json!({"subtype": "apply_flag_settings", "settings": {"model": "opus"}});
    assert!(host.ask(&change)["error"].as_str().unwrap().contains("too dear"));
    let settings = host.ask(&json!({"subtype": "get_settings"}));
    assert_eq!(settings["response"]["effective"]["model"], Value::Null, "nothing was changed");
    host.say("/model opus");
    assert!(host.result()["errors"].to_string().contains("too dear"));

    assert_eq!(host.ask(&json!({"subtype": "set_model", "model": "haiku"}))["subtype"], "success");
    host.say("second");
    assert_eq!(host.result()["result"], "two");
    let asked = heard(&program, "PreModelSwitch");
    let wanted: Vec<_> = asked.iter().map(|it| (&it["requested_model"], &it["source"])).collect();
    let (opus, haiku) = (json!("opus"), json!("haiku"));
    let (sdk, command) = (json!("sdk"), json!("command"));
    assert_eq!(wanted, [(&opus, &sdk), (&opus, &sdk), (&opus, &command), (&haiku, &sdk)]);
    let told = heard(&program, "PostModelSwitch");
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0]["to_model"], "claude-haiku-5-5");
    assert_ne!(told[0]["from_model"], told[0]["to_model"]);
    assert!(told[0]["context_tokens"].as_u64().unwrap() > 0, "{}", told[0]);
    assert!(told[0]["estimated_cache_write_usd"].as_f64().unwrap() > 0.0, "{}", told[0]);
    assert_eq!((&told[0]["cache_ttl"], &told[0]["pricing"]), (&json!("5m"), &json!("catalog")));
    let sent = program.server().last().json();
    assert_eq!(sent["model"], "claude-haiku-5-5");
    assert!(sent.to_string().contains("you are small now"), "{sent}");
    assert_eq!(host.finish(), 0);
}

#[test]
fn a_hook_hears_of_each_text_that_is_shown_and_cannot_change_it() {
    let output = json!({"hookSpecificOutput": {
        "hookEventName": "MessageDisplay", "displayContent": "something else",
    }});
    let say = format!("{{ cat > /dev/null; echo '{output}'; }}");
    let hooks = [("MessageDisplay", keep("MessageDisplay", &say))];
    let program = program(&hooks, [Reply::text("line one\nline two")]);
    let ended = program.run(&["-p", "go", "--output-format", "stream-json", "--verbose"]);
    let events = ended.events();
    let told = heard(&program, "MessageDisplay");
    assert_eq!(told.len(), 1, "{told:?}");
    let fields = ["index", "final", "delta"].map(|field| &told[0][field]);
    assert_eq!(json!(fields), json!([0, true, "line one\nline two"]));
    let said = events.iter().find(|event| event["type"] == "assistant").unwrap();
    assert_eq!(told[0]["message_id"], said["uuid"]);
    assert_eq!(said["message"]["content"][0]["text"], "line one\nline two");
    assert!(ended.stdout.contains("its displayContent has no effect here"), "{}", ended.stdout);
}

#[test]
fn a_host_adds_a_directory_whose_instructions_count_at_once_and_hooks_hear_of_it() {
    let say = "{ cat > /dev/null; echo '{\"systemMessage\": \"look around there\"}'; }";
    let hooks = [("DirectoryAdded", keep("DirectoryAdded", say))];
    let program = program(&hooks, [Reply::text("one"), Reply::text("two"), Reply::text("three")]);
    program.scratch.write("lib/CLAUDE.md", "Use tabs in lib.");
    program.scratch.write("tool/CLAUDE.md", "Use spaces in tool.");
    program
        .scratch
        .write("lib/.claude/skills/late/SKILL.md", "---\ndescription: Late.\n---\nGo.\n");
    let mut host = Host::start(&program, &[]);
    host.say("first");
    host.result();
    let add = |directory: &str, reload: bool| {
        json!({"subtype": "register_repo_root", "directory": directory, "reload_claude_md": reload,
               "reload_skills": reload, "reload_plugins": reload})
    };
    assert_eq!(host.ask(&add("lib", true))["subtype"], "success");
    assert_eq!(host.ask(&add("lib", true))["error_code"], "invalid_request", "it is there already");
    host.say("second");
    host.result();
    let sent = program.server().last().json().to_string();
    assert!(sent.contains("Use tabs in lib.") && sent.contains("look around there"), "{sent}");
    assert_eq!(host.ask(&add("tool", false))["subtype"], "success");
    host.say("third");
    host.result();
    let sent = program.server().last().json().to_string();
    assert!(!sent.contains("Use spaces in tool."), "only when a file there is read: {sent}");
    let told = heard(&program, "DirectoryAdded");
    let lib = program.scratch.project().canonicalize().unwrap().join("lib");
    assert_eq!(told.len(), 2, "{told:?}");
    assert_eq!(
        (&told[0]["directory"], &told[0]["source"]),
        (&json!(lib), &json!("register_repo_root"))
    );
    assert_eq!(host.finish(), 0);
}
