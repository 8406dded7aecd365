//! `centurion demo`: a real agent with real tools in a scratch repository; only the model is scripted.
//!
//! Needs no key, no network and nothing prepared, and touches nothing outside its scratch directory.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;

use anyhow::{Context, ensure};
use centurion_engine::{
    Bypass, Extensions, Options, PromptOptions, Redaction, RequestSettings, Session, Start,
    Storage, ToolChoice,
};
use centurion_model::Model;
use centurion_permissions::{Mode, Policy, Rule, RuleOrigin};
use centurion_protocol::{Block, Env, Outcome, SystemWorld, World};
use clap::Parser;
use jiff::tz::TimeZone;

use crate::output::{LiveView, Nowhere, note};
use crate::setup;
use crate::surroundings::Surroundings;

const SCENARIO: &str = include_str!("demo/scenario.json");
const PROMPT: &str = "The test of sum.sh fails. Find out why and fix it.";
const SUM: &str = "#!/usr/bin/env bash\n# Adds up its arguments.\ntotal=0\nfor number in \"${@:2}\"; do\n  \
                   total=$((total + number))\ndone\necho \"$total\"\n";
const TEST: &str = "#!/usr/bin/env bash\nresult=$(./sum.sh 1 2 3)\nif [ \"$result\" = 6 ]; then\n  \
                    echo \"ok: 1 + 2 + 3 = $result\"\nelse\n  echo \"FAILED: 1 + 2 + 3 = $result, expected 6\"\n  \
                    exit 1\nfi\n";

/// Shows a real agent at work, without a key or a network.
#[derive(Debug, Parser)]
#[command(name = "centurion demo")]
pub(crate) struct DemoArgs {}

pub(crate) async fn run(_: DemoArgs) -> anyhow::Result<ExitCode> {
    let scratch =
        tempfile::Builder::new().prefix("centurion-demo-").tempdir()?.keep().canonicalize()?;
    let project = scratch.join("project");
    prepare(&project).context("cannot prepare the scratch repository")?;
    note(&format!("A scratch repository with a failing test: {}", project.display()));
    note(&format!("The prompt: {PROMPT}\n"));
    let mut session =
        Session::open(options(&Surroundings::observe()?, &scratch, &project).await?).await?;
    let handle = session.handle();
    handle.submit(SystemWorld.record_id(), vec![Block::text(PROMPT)]);
    handle.close();
    let outcome = session.run().await;
    let id = session.id();
    drop(session);
    ensure!(outcome == Some(Outcome::Completed), "the demo did not complete: {outcome:?}");
    note(&format!(
        "\nEverything above happened: the files, the commands and the edit are real, only the model was scripted.\n\
         \n  See the change:          git -C {project} diff\
         \n  See the session again:   CENTURION_CONFIG_DIR={scratch}/state centurion sessions show {id}\
         \n  Work in your repository: export ANTHROPIC_API_KEY=… (or OPENAI_API_KEY, or start Ollama), then\
         \n                           centurion -p \"what to do\" --permission-mode acceptEdits",
        project = project.display(),
        scratch = scratch.display(),
    ));
    Ok(ExitCode::SUCCESS)
}

/// Makes a git repository with a script and a test that fails.
fn prepare(project: &Path) -> anyhow::Result<()> {
    std::fs::create_dir(project)?;
    for (name, content) in [("sum.sh", SUM), ("test.sh", TEST)] {
        let path = project.join(name);
        std::fs::write(&path, content)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))?;
    }
    git(project, &["init", "--quiet", "--initial-branch=main"])?;
    git(project, &["add", "."])?;
    git(project, &["commit", "--quiet", "--message", "Add up numbers"])
}

fn git(project: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    // The user's own git configuration (signing, hooks, templates) stays out of the demo.
    let status = Command::new("git")
        .args(["-c", "user.name=Demo", "-c", "user.email=demo@localhost"])
        .args(arguments)
        .current_dir(project)
        .envs([("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1")])
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .env_remove("GIT_INDEX_FILE")
        .env_remove("GIT_OBJECT_DIRECTORY")
        .stdin(Stdio::null())
        .status()
        .context("git is needed for the demo and could not be started")?;
    ensure!(status.success(), "git {} failed", arguments.join(" "));
    Ok(())
}

async fn options(
    surroundings: &Surroundings,
    scratch: &Path,
    project: &Path,
) -> anyhow::Result<Options> {
    let scenario = scratch.join("scenario.json");
    std::fs::write(&scenario, SCENARIO)?;
    let world: Arc<dyn World> = Arc::new(SystemWorld);
    let env = Arc::clone(&surroundings.env);
    let spec = format!("script:{}", scenario.display());
    let model = Model::open(Some(&spec), &env, Arc::clone(&world)).await?;
    let view = LiveView::new(Nowhere, surroundings.paints());
    let session = world.session_id();
    let dirs = centurion_config::paths::Dirs::new(
        &Env::from([("CENTURION_CONFIG_DIR", &*scratch.join("state").to_string_lossy())]),
        None,
    )?;
    Ok(Options {
        start: Start::New(session),
        storage: Storage {
            transcript: Some(dirs.transcript(project, session)),
            resumed: None,
            output_dir: dirs.session_dir(project, session).join("tool-results"),
            redaction: Redaction::On,
        },
        cwd: project.to_owned(),
        repository: Some(project.to_owned()),
        additional_directories: Vec::new(),
        env,
        time_zone: TimeZone::system(),
        restores_model: false,
        rule_source: None,
        rule_store: None,
        sandbox: None,
        allows_sandboxed: false,
        bypass: Bypass::Refused("the demo needs no leave for everything"),
        settings: RequestSettings {
            model: model.name().to_owned(),
            concurrent_calls: 10,
            ..RequestSettings::default()
        },
        world,
        model,
        prompt: PromptOptions::default(),
        memory: None,
        tools: ToolChoice::All,
        policy: Policy {
            mode: Mode::AcceptEdits,
            allow: Rule::parse_list("Bash(./test.sh)", &RuleOrigin::Flag)?.into(),
            repository: Some(project.to_owned()),
            cwd: project.to_owned(),
            project_root: project.to_owned(),
            directories: vec![project.to_owned()],
            ..Policy::default()
        },
        max_budget: None,
        structured: None,
        answerer: None,
        view: Arc::new(view),
        guard: setup::guard()?,
        entrypoint: "demo".to_owned(),
        extensions: Extensions::default(),
    })
}
