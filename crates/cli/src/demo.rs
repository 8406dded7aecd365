//! `centurion demo`: a lead and five agents that it starts, two of them in worktrees of their own, and then a team of three
//! on one task list, with real tools in a scratch repository; only the model is scripted.
//!
//! Needs no key, no network and nothing prepared, and touches nothing outside its scratch directory. It
//! succeeds only if everything that it promises was seen to happen.

mod repository;
mod team;
mod witness;

use std::io::IsTerminal as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, ensure};
use centurion_config::agents::AgentSources;
use centurion_config::paths::Dirs;
use centurion_config::skills::SkillSources;
use centurion_engine::builtin::{self, Switches};
use centurion_engine::{
    AgentOptions, Base, Definitions, Options, PermissionOptions, Session, Start, Storage, View,
};
use centurion_host::{Front, Fronts};
use centurion_model::Model;
use centurion_permissions::{Mode, Policy, Rule, RuleOrigin};
use centurion_protocol::{Block, Env, Outcome, SessionId, SystemWorld, World};
use clap::Parser;

use self::team::TeamWitness;
use self::witness::{Step, Witness};
use crate::interactive;
use crate::output::{LiveView, note};
use crate::setup;
use crate::surroundings::Surroundings;

const SCENARIO: &str = include_str!("demo/scenario.json");
const PROMPT: &str =
    "The test of sum.sh fails. Find out why, fix it, and add an example to README.md.";

/// The commands that agents of the demo run without a question.
const ALLOWED: &str = "Bash(./test.sh *),Bash(./sum.sh *),Bash(bash product.sh *)";

/// Shows agents at work, without a key or a network.
#[derive(Debug, Parser)]
#[command(name = "centurion demo")]
pub(crate) struct DemoArgs {
    /// Play it in the terminal: look at the agents, speak to them, and leave when you like
    #[arg(long)]
    interactive: bool,
}

impl DemoArgs {
    /// The demo in the terminal.
    pub(crate) fn interactive() -> Self {
        Self { interactive: true }
    }
}

pub(crate) async fn run(args: DemoArgs) -> anyhow::Result<ExitCode> {
    let scratch =
        tempfile::Builder::new().prefix("centurion-demo-").tempdir()?.keep().canonicalize()?;
    let project = scratch.join("project");
    let surroundings = Surroundings::observe()?;
    repository::prepare(&surroundings.env, &project)
        .context("cannot prepare the scratch repository")?;
    if args.interactive {
        return Box::pin(play_in_terminal(&surroundings, &scratch, &project)).await;
    }
    note(&format!("A scratch repository with a failing test: {}", project.display()));
    note(&format!("The prompt: {PROMPT}\n"));
    let env = Env::from([("CENTURION_CONFIG_DIR", &*scratch.join("state").to_string_lossy())]);
    let dirs = Dirs::new(&env, None)?;
    let witness = Witness::default();
    let stage =
        Stage { surroundings: &surroundings, scratch: &scratch, project: &project, dirs: &dirs };
    let options = stage.options(SCENARIO, Arc::new(witness.clone())).await?;
    let id = play(options, PROMPT).await?;
    let mut steps = witness.steps();
    steps.push(Step {
        what: "the test passes, and README.md has an example that is true".to_owned(),
        is_seen: repository::is_done(&project),
    });
    steps.push(Step {
        what: "what those two wrote is merged, and what was not committed is as it was".to_owned(),
        is_seen: repository::is_merged(&project),
    });
    note(&format!("\nA team, then. The prompt: {}\n", team::PROMPT));
    let (witness, lists) = (TeamWitness::default(), scratch.join("state/tasks"));
    let mut options = stage.options(team::SCENARIO, Arc::new(witness.clone())).await?;
    team::enlist(&mut options.agents, &lists)?;
    play(options, team::PROMPT).await?;
    steps.extend(witness.steps(&lists, &project));
    sum_up(&steps, &scratch, &project, &dirs, id);
    Ok(if steps.iter().all(|step| step.is_seen) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Plays the first scene where a person can look at it and take part.
async fn play_in_terminal(
    surroundings: &Surroundings,
    scratch: &Path,
    project: &Path,
) -> anyhow::Result<ExitCode> {
    ensure!(
        std::io::stdin().is_terminal() && std::io::stdout().is_terminal(),
        "there is no terminal"
    );
    let env = Env::from([("CENTURION_CONFIG_DIR", &*scratch.join("state").to_string_lossy())]);
    let dirs = Dirs::new(&env, None)?;
    let stage = Stage { surroundings, scratch, project, dirs: &dirs };
    let mut place = surroundings.elsewhere(project.to_owned());
    place.dirs = dirs.clone();
    let options = async |view| stage.options_for(SCENARIO, view).await;
    Box::pin(interactive::perform(&place, PROMPT, options)).await?;
    note(&format!("The scratch repository: {}", project.display()));
    Ok(ExitCode::SUCCESS)
}

/// Says what was seen, and where all of it is.
fn sum_up(steps: &[Step], scratch: &Path, project: &Path, dirs: &Dirs, id: SessionId) {
    note("\nWhat was seen (files and commands are real, only the model was scripted):");
    for step in steps {
        let mark = if step.is_seen { "✓" } else { "✗ NOT SEEN:" };
        note(&format!("  {mark} {}", step.what));
    }
    note(&format!(
        "\n  Transcript of the lead:  {lead}\
         \n  Those of its agents:     {agents}\
         \n  See the change:          git -C {project} diff, git -C {project} log --graph --stat\
         \n  See the session again:   CENTURION_CONFIG_DIR={scratch}/state centurion sessions show {id}\
         \n  Work in your repository: export ANTHROPIC_API_KEY=… (or OPENAI_API_KEY, or start Ollama), then\
         \n                           centurion -p \"what to do\" --verbose --permission-mode acceptEdits",
        lead = dirs.transcript(project, id).display(),
        agents = dirs.session_dir(project, id).join("subagents").display(),
        project = project.display(),
        scratch = scratch.display(),
    ));
}

/// Plays one scene to its end.
async fn play(options: Options, prompt: &str) -> anyhow::Result<SessionId> {
    let mut session = Session::open(options).await?;
    let handle = session.handle();
    handle.submit(SystemWorld.record_id(), vec![Block::text(prompt)]);
    handle.close();
    let outcome = session.run().await;
    ensure!(outcome == Some(Outcome::Completed), "the demo did not complete: {outcome:?}");
    Ok(session.id())
}

/// The scene of the demo.
struct Stage<'a> {
    surroundings: &'a Surroundings,
    scratch: &'a Path,
    project: &'a Path,
    dirs: &'a Dirs,
}

impl Stage<'_> {
    /// The options of a session that plays a scenario.
    async fn options(&self, text: &str, witness: Arc<dyn Front>) -> anyhow::Result<Options> {
        let live: Arc<dyn Front> = Arc::new(LiveView::new(self.surroundings.paints()));
        self.options_for(text, Arc::new(Fronts::new([live, witness]))).await
    }

    /// The same, shown to a view.
    async fn options_for(&self, text: &str, view: Arc<dyn View>) -> anyhow::Result<Options> {
        let Self { surroundings, scratch, project, dirs } = *self;
        let scenario = scratch.join("scenario.json");
        std::fs::write(&scenario, text)?;
        let world: Arc<dyn World> = Arc::new(SystemWorld);
        let env = Arc::clone(&surroundings.env);
        let spec = format!("script:{}", scenario.display());
        let model = Model::open(Some(&spec), &env, Arc::clone(&world)).await?;
        let session = world.session_id();
        let base = Base {
            repository: Some(project.to_owned()),
            env,
            world,
            entrypoint: "demo".to_owned(),
            ..Base::new(project.to_owned(), setup::guard()?)
        };
        let storage = Storage {
            resumed_at: None,
            transcript: Some(dirs.transcript(project, session)),
            ..Storage::without_transcript(dirs.session_dir(project, session).join("tool-results"))
        };
        let policy = Policy {
            mode: Mode::AcceptEdits,
            allow: Rule::parse_list(ALLOWED, &RuleOrigin::Flag)?.into(),
            // The demo made it.
            trusted_repository: Some(project.to_owned()),
            ..PermissionOptions::in_directory(project).policy
        };
        let built_in = builtin::agents(&Switches::default());
        Ok(Options {
            start: Start::New(session),
            permission: PermissionOptions::new(policy),
            view,
            agents: AgentOptions::new(Definitions::new(
                AgentSources { built_in, ..AgentSources::default() },
                SkillSources::default(),
                Arc::new(SystemWorld),
            )),
            ..Options::new(model, base, storage)
        })
    }
}
