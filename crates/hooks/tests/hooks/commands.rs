//! Commands: their input, their output, and the treatment of commands that misbehave.

use std::time::Duration;

use centurion_config::settings::Level;
use centurion_hooks::events::{SessionEnd, SessionStart, UserPromptSubmit};
use centurion_hooks::{HookOutcome, HookScope, ToolDecision};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::stage::{Stage, plugin};

#[tokio::test]
async fn a_command_reads_the_event_and_its_answer_counts() {
    let stage = Stage::new();
    stage.command(
        "PreToolUse",
        "cat > told.json; echo '{\"hookSpecificOutput\": {\"permissionDecision\": \"deny\", \
         \"permissionDecisionReason\": \"R\", \"additionalContext\": \"C\"}}'",
    );
    let fired = stage.bash(&stage.common(), "ls").await;
    assert_eq!(fired.verdict.decision, Some(ToolDecision::Deny));
    assert_eq!(fired.verdict.denial("Bash").as_deref(), Some("PreToolUse:Bash hook error: R"));
    assert_eq!(fired.context_for_model(), ["PreToolUse:Bash hook additional context: C"]);
    let told: Value = serde_json::from_str(&stage.scratch.read("told.json")).unwrap();
    assert_eq!(told["tool_input"], json!({"command": "ls"}));
    assert_eq!(told["hook_event_name"], "PreToolUse");
    let started = stage.seen.started.lock()[0].clone();
    let ended = stage.seen.ended.lock()[0].clone();
    assert_eq!(started.hook_id, ended.hook_id);
    assert_eq!((started.hook_name.as_str(), ended.exit_code), ("PreToolUse:Bash", Some(0)));
    assert_eq!(ended.outcome, HookOutcome::Success);
}

#[tokio::test]
async fn exit_code_two_blocks_with_the_error_output() {
    let stage = Stage::new();
    stage.command("PreToolUse", "echo no >&2; exit 2");
    let fired = stage.bash(&stage.common(), "ls").await;
    assert_eq!(fired.verdict.reason.as_deref(), Some("[echo no >&2; exit 2]: no"));
    assert_eq!(stage.seen.ended.lock()[0].outcome, HookOutcome::Error);
}

#[tokio::test]
async fn what_a_command_prints_is_context_for_a_prompt() {
    let stage = Stage::new();
    stage.command("UserPromptSubmit", "echo today is monday");
    stage.command("UserPromptSubmit", "exit 3");
    stage.command("UserPromptSubmit", "no-such-program-here");
    let fired = stage.prompt().await;
    assert_eq!(fired.effects.context, ["today is monday"]);
    assert_eq!(fired.runs, 3);
    let errors: Vec<_> = fired.effects.errors.iter().map(ToString::to_string).collect();
    assert_eq!(errors[0], "UserPromptSubmit hook error: [exit 3]: failed with exit code 3");
    assert!(errors[1].contains("was not found (exit code 127)"), "{errors:?}");
}

#[tokio::test]
async fn a_program_with_arguments_needs_no_shell() {
    let stage = Stage::new();
    let handler = json!({"type": "command", "command": "printf", "args":
        ["%s|", "$HOME", "${CLAUDE_PLUGIN_ROOT}/x", "${user_config.api-key}", "a b"]});
    let hooks = json!({"UserPromptSubmit": [{"hooks": [handler]}]});
    stage.keep(HookScope::Session, &plugin("/plugin root".into()), &hooks);
    assert_eq!(stage.prompt().await.effects.context, ["$HOME|/plugin root/x|k e y|a b|"]);
}

#[tokio::test]
async fn a_command_knows_the_project_the_plugin_and_the_file_for_variables() {
    let stage = Stage::with_env(&[("MINE", "m"), ("CLAUDE_ENV_FILE", "outer")]);
    let print = "echo \"$MINE|$CLAUDE_PROJECT_DIR|$CLAUDE_PLUGIN_ROOT|$CLAUDE_PLUGIN_DATA|\
                 $CLAUDE_PLUGIN_OPTION_API_KEY|$CLAUDE_ENV_FILE|$PWD\"";
    let handler = json!({"type": "command", "command": print});
    let groups = json!([{"hooks": [handler]}]);
    let hooks = json!({"UserPromptSubmit": groups, "SessionStart": groups});
    stage.keep(HookScope::Session, &plugin("/root".into()), &hooks);
    let project = stage.scratch.project().display().to_string();
    let expected = |file: &str| format!("m|{project}|/root|/root/data|k e y|{file}|{project}");
    assert_eq!(stage.prompt().await.effects.context, [expected("")]);
    let start = SessionStart { source: "startup", model: None, session_title: None };
    let fired = stage.hooks.fire(&stage.common(), &start, &CancellationToken::new()).await;
    let file = stage.scratch.root().join("env.sh").display().to_string();
    assert_eq!(fired.effects.context, [expected(&file)]);
    assert_eq!(fired.hook_name, "SessionStart:startup");
}

#[tokio::test]
async fn a_command_that_never_reads_is_told_a_megabyte_all_the_same() {
    let stage = Stage::new();
    stage.command("UserPromptSubmit", "echo deaf");
    stage.command("UserPromptSubmit", "exec <&-; echo closed");
    stage.command("UserPromptSubmit", "wc -c");
    let prompt = "x".repeat(1024 * 1024);
    let input = UserPromptSubmit { prompt: &prompt };
    let fired = stage.hooks.fire(&stage.common(), &input, &CancellationToken::new()).await;
    assert!(fired.effects.errors.is_empty(), "{:?}", fired.effects.errors);
    let [deaf, closed, count] = &fired.effects.context[..] else { panic!("{fired:?}") };
    assert_eq!((deaf.as_str(), closed.as_str()), ("deaf", "closed"));
    assert!(count.trim().parse::<usize>().unwrap() > 1024 * 1024);
}

#[tokio::test]
async fn endless_output_is_read_and_forgotten() {
    let stage = Stage::new();
    stage.command("UserPromptSubmit", "yes | head -c 3000000; yes | head -c 3000000 >&2");
    let fired = stage.prompt().await;
    let ended = stage.seen.ended.lock()[0].clone();
    assert_eq!((ended.stdout.len(), ended.stderr.len()), (1024 * 1024, 1024 * 1024));
    // The part that enters the conversation is shorter still, and the rest is in a file.
    let context = &fired.effects.context[0];
    assert!(context.len() < 3_000 && context.contains("the whole text is in "), "{context}");
}

#[tokio::test]
async fn a_denial_that_is_too_long_to_be_read_is_still_one() {
    for output in [
        // The model's own words make the denial long, or deep.
        "jq -c '{decision: \"block\", reason: .tool_input.command}' || cat",
        "printf '{\"decision\": \"block\", \"reason\": \"'; cat | tr -d '\\n\\\\\"'; printf '\"}'",
        "printf '{\"decision\": \"block\", \"x\": '; head -c 500 /dev/zero | tr '\\0' '['; \
         head -c 500 /dev/zero | tr '\\0' ']'; printf '}'",
        "head -c 1100000 /dev/zero | tr '\\0' ' '; echo '{\"decision\": \"block\"}'",
    ] {
        let stage = Stage::new();
        stage.command("PreToolUse", output);
        let fired = stage.bash(&stage.common(), &format!("echo {}", "x".repeat(1_200_000))).await;
        let denial = fired.verdict.denial("Bash").unwrap_or_default();
        assert!(denial.contains("cannot be read counts as a denial"), "{output}: {denial:.200}");
    }
}

#[tokio::test]
async fn what_a_command_leaves_running_does_not_hold_up_and_lives_until_the_end() {
    let stage = Stage::new();
    let fifo = stage.scratch.project().join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    // It holds the pipes, and ends only when a line is written to the FIFO or the session ends.
    stage.command("UserPromptSubmit", "echo here; (read line < fifo; echo \"$line\" > got) &");
    let fired = stage.prompt().await;
    assert_eq!(fired.effects.context, ["here"]);
    // It still runs: it takes the line.
    tokio::task::spawn_blocking(move || std::fs::write(fifo, "still\n")).await.unwrap().unwrap();
    let got = stage.scratch.project().join("got");
    while std::fs::read_to_string(&got).unwrap_or_default() != "still\n" {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn what_a_command_leaves_running_ends_with_the_session() {
    let stage = Stage::new();
    stage.command("UserPromptSubmit", "sleep 1000 & echo $!");
    let fired = stage.prompt().await;
    let process = format!("/proc/{}", fired.effects.context[0]);
    assert!(std::fs::exists(&process).unwrap());
    stage.hooks.shutdown().await;
    while std::fs::exists(&process).unwrap() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_command_that_takes_too_long_is_ended_with_all_it_started() {
    let stage = Stage::new();
    let handler = json!({"type": "command", "timeout": 0.2,
                         "command": "echo $$ > pid; sleep 1000 & sleep 1000"});
    stage.settings(Level::User, &json!({"UserPromptSubmit": [{"hooks": [handler]}]}));
    let fired = stage.prompt().await;
    let error = fired.effects.errors[0].to_string();
    assert!(error.contains("took longer than 200ms and was ended"), "{error}");
    assert_eq!(stage.seen.ended.lock()[0].outcome, HookOutcome::Error);
    // On a slow machine it had no time to begin.
    if let Ok(pid) = std::fs::read_to_string(stage.scratch.project().join("pid")) {
        let process = format!("/proc/{}", pid.trim());
        while !pid.trim().is_empty() && std::fs::exists(&process).unwrap() {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn a_run_that_is_stopped_stops_its_hooks() {
    let stage = Stage::new();
    stage.command("UserPromptSubmit", "echo > begun; sleep 1000");
    let cancel = CancellationToken::new();
    let begun = stage.scratch.project().join("begun");
    let stop = async {
        while !begun.exists() {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
    };
    let (common, input) = (stage.common(), UserPromptSubmit { prompt: "" });
    let (fired, ()) = tokio::join!(stage.hooks.fire(&common, &input, &cancel), stop);
    assert!(fired.effects.errors.is_empty() && fired.effects.context.is_empty());
    assert_eq!(stage.seen.ended.lock()[0].outcome, HookOutcome::Cancelled);
}

#[tokio::test]
async fn the_hooks_of_the_end_of_a_session_share_a_short_time() {
    let stage = Stage::with_env(&[("CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS", "50")]);
    stage.command("SessionEnd", "sleep 1000");
    let handler = json!({"type": "command", "command": "sleep 2000", "timeout": 500});
    stage.settings(Level::Project, &json!({"SessionEnd": [{"hooks": [handler]}]}));
    let end = SessionEnd { reason: "other" };
    let fired = stage.hooks.fire(&stage.common(), &end, &CancellationToken::new()).await;
    assert_eq!(fired.effects.errors.len(), 2);
    for error in &fired.effects.errors {
        assert!(error.message.contains(&format!("{:?}", Duration::from_millis(50))), "{error}");
    }
}

#[tokio::test]
async fn a_hook_that_cannot_be_started_is_an_error_and_no_more() {
    let stage = Stage::new();
    stage.command("UserPromptSubmit", "echo x");
    let common = centurion_hooks::Common { cwd: "/no/such/place".into(), ..stage.common() };
    let input = UserPromptSubmit { prompt: "" };
    let fired = stage.hooks.fire(&common, &input, &CancellationToken::new()).await;
    assert!(fired.effects.errors[0].message.contains("cannot be started"), "{fired:?}");
}
