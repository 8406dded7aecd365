//! A callback that answers questions about calls, and a hook that sees them first.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::path::Path;

use centurion_embed::{HookEvent, HookReply, Model, PermissionReply, Session};
use serde_json::Value;

const SCRIPT: &str = r#"
default:
  - {tool: Write, input: {file_path: "${arg}/notes.txt", content: "first line"}}
  - {tool: Write, input: {file_path: "${arg}/secret.txt", content: "second line"}}
  - {tool: Write, input: {file_path: "${arg}/build.log", content: "third line"}}
  - "I wrote what I could."
"#;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let project = directory.path().canonicalize()?;
    let script = SCRIPT.replace("${arg}", &project.display().to_string());
    let mut session = Session::builder(Model::script(script))
        .directory(&project)
        .on_permission(|ask| async move {
            let path = ask.input.get("file_path").and_then(Value::as_str).unwrap_or_default();
            if path.ends_with("secret.txt") {
                println!("denied: {} ({})", ask.tool, ask.reason.replace(path, "secret.txt"));
                return PermissionReply::deny("secrets are written by people");
            }
            PermissionReply::allow()
        })
        .hook(HookEvent::PreToolUse, "Write", |call| async move {
            let path = call.input.as_ref().and_then(|input| input.get("file_path")?.as_str());
            if path.is_some_and(|path| Path::new(path).extension().is_some_and(|it| it == "log")) {
                println!("blocked: a log");
                return HookReply::block("logs are not written by hand");
            }
            HookReply::proceed()
        })
        .open()
        .await?;
    let answer = session.ask("write three files").await?;
    println!("{} ({} calls were denied)", answer.text, answer.denials.len());
    for name in ["notes.txt", "secret.txt", "build.log"] {
        println!("{name}: {}", project.join(name).exists());
    }
    session.close().await;
    Ok(())
}
