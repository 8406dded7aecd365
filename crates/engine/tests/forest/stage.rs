//! Where a forest grows: one directory, in which several processes live one after another. Each has a clock of
//! its own that only moves when all tasks wait.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use centurion_config::agents::{AgentSources, ProjectFolders};
use centurion_config::skills::SkillSources;
use centurion_engine::builtin::{self, Switches};
use centurion_engine::{
    AgentOptions, Answerer, Definitions, DelegationRules, Handle, Limit, Limits, Options, Start,
    View,
};
use centurion_model::{Model, ProviderKind, RetryPolicy};
use centurion_permissions::Mode;
use centurion_protocol::{Env, SeededWorld, SessionId, Usage, World};
use indexmap::IndexMap;
use serde_json::json;

use crate::bench::{Bench, Watcher};
use crate::cut::{cut, transcripts};
use crate::person::{Person, Watch};
use crate::plan::{Fate, Intervention, LEAD, Plan};
use crate::players::{Part, Players, State, prompt};
use crate::process::{Ended, run};

const MODEL: &str = "claude-opus-5-5";

/// A place for one forest.
pub(crate) struct Stage {
    bench: Bench,
    pub(crate) plan: Arc<Plan>,
    id: SessionId,
}

/// What one process left behind, beside its records.
#[derive(Debug)]
pub(crate) struct Life {
    pub(crate) ended: Ended,
    pub(crate) open_questions: usize,
    pub(crate) agents: IndexMap<String, &'static str>,
    pub(crate) dollars: f64,
    pub(crate) most_flying: (usize, usize),
    pub(crate) requests: usize,
    pub(crate) faults: Vec<String>,
}

impl Stage {
    pub(crate) fn new(plan: Plan) -> Self {
        let mut bench = Bench::new(json!({"default": "never asked"}));
        bench.mode = Mode::Default;
        bench.file("notes.txt", "42\n");
        let id = SeededWorld::new(plan.seed).session_id();
        Self { bench, plan: Arc::new(plan), id }
    }

    /// The directory that everything is in.
    pub(crate) fn home(&self) -> String {
        self.bench.dir.path().display().to_string()
    }

    pub(crate) fn transcript(&self) -> PathBuf {
        self.bench.transcript(self.id)
    }

    /// What the dearest request of the plan costs.
    pub(crate) fn dearest(&self) -> (u64, f64) {
        let (players, _) = Players::new(&self.plan, Part::Plan);
        let info = self.model(players, 0).info(MODEL);
        let usage = self.plan.nodes.iter().map(|node| Usage {
            input_tokens: node.tokens.0,
            output_tokens: node.tokens.1,
            ..Usage::default()
        });
        usage.fold((0, 0.0), |(tokens, dollars), usage| {
            (tokens.max(usage.total()), f64::max(dollars, info.cost(&usage)))
        })
    }

    /// The first process: it plays the plan.
    pub(crate) fn play(&self) -> Life {
        let dies = match self.plan.fate {
            Fate::Dies(after) => after,
            Fate::Lives | Fate::Cut(_) => Duration::MAX,
        };
        self.live(0, Start::New(self.id), Part::Plan, Some(&prompt(LEAD)), dies)
    }

    /// A later process, which does nothing but look and read.
    pub(crate) fn read(&self, number: u64, prompt: Option<&str>) -> Life {
        self.live(number, Start::Resume(self.id), Part::Reading, prompt, Duration::MAX)
    }

    /// A later process, in which the lead speaks to these agents.
    pub(crate) fn wake(&self, number: u64, agents: &[&str]) -> Life {
        let prompt = format!("Speak to {}.", agents.join(", "));
        self.live(number, Start::Resume(self.id), Part::Waking, Some(&prompt), Duration::MAX)
    }

    fn live(
        &self,
        number: u64,
        start: Start,
        part: Part,
        prompt: Option<&str>,
        dies: Duration,
    ) -> Life {
        let (players, state) = Players::new(&self.plan, part);
        let person = Arc::new(Person::new(self.plan.seed));
        let watch = Arc::new(Watch::default());
        let world: Arc<dyn World> =
            Arc::new(SeededWorld::new(self.plan.seed.wrapping_mul(8) + number));
        let model = self.model(players, number);
        let mut options = self.bench.options(start, None, &Arc::new(Watcher::default()));
        options.base.world = Arc::clone(&world);
        options.model = model;
        options.view = Arc::clone(&watch) as Arc<dyn View>;
        options.answerer = Some(Arc::clone(&person) as Arc<dyn Answerer>);
        self.furnish(&mut options);
        let ended = run(options, &*world, prompt, async |handle| {
            tokio::select! {
                biased;
                () = self.meddle(part, &handle, &state) => Ended::Stuck,
                () = tokio::time::sleep(dies) => Ended::Died,
            }
        });
        let state = std::mem::take(&mut *state.lock());
        Life {
            ended,
            open_questions: person.open_questions(),
            agents: watch.agents.lock().clone(),
            dollars: *watch.dollars.lock(),
            most_flying: state.most_flying,
            requests: state.requests,
            faults: state.faults,
        }
    }

    fn model(&self, players: Arc<Players>, number: u64) -> Model {
        let world = Arc::new(SeededWorld::new(self.plan.seed.wrapping_mul(8) + 4 + number));
        let policy = RetryPolicy { max_retries: 2, ..RetryPolicy::new(&Env::default()) };
        Model::with_provider(players, ProviderKind::Script, MODEL, policy, world)
    }

    /// What the user set, as the plan has it.
    fn furnish(&self, options: &mut Options) {
        let settings = &self.plan.settings;
        let folders = ProjectFolders { cwd: options.base.cwd.clone(), ..ProjectFolders::default() };
        let agents = AgentSources {
            folders: folders.clone(),
            built_in: builtin::agents(&Switches::default()),
            ..AgentSources::default()
        };
        let skills = SkillSources { folders, ..SkillSources::default() };
        let definitions = Definitions::new(agents, skills, Arc::new(SeededWorld::new(99)));
        options.max_budget = settings.dollars;
        options.agents = AgentOptions {
            rules: DelegationRules {
                limits: Limits {
                    depth: settings.depth,
                    running: settings.running,
                    spawns: settings.spawns,
                    budget: Limit { dollars: None, tokens: settings.tokens },
                    ..Limits::default()
                },
                auto_background: settings.auto_background,
                stall: Some(Duration::from_mins(2)),
                wait: settings.wait,
                interrupt_ends_background: settings.interrupt_ends_background,
                ..DelegationRules::default()
            },
            ..AgentOptions::new(definitions)
        };
    }

    /// Does what the plan's person does, and then nothing for ever.
    async fn meddle(&self, part: Part, handle: &Handle, state: &Arc<parking_lot::Mutex<State>>) {
        let begun = tokio::time::Instant::now();
        let interventions = self.plan.interventions.iter().filter(|_| part == Part::Plan);
        for (at, what) in interventions {
            tokio::time::sleep_until(begun + *at).await;
            match what {
                Intervention::Interrupt => drop(handle.interrupt()),
                Intervention::Detach => drop(handle.background_all()),
                Intervention::StopAll => drop(handle.stop_agents()),
                Intervention::StopOne(node) => {
                    let id = state.lock().ids.get(node).cloned();
                    if let Some(id) = id {
                        // It may have ended in this very moment.
                        let _ = handle.stop_task(id.as_str()).await;
                    }
                }
            }
        }
        std::future::pending::<()>().await;
    }

    /// Forgets what the first process wrote after a share of its records.
    pub(crate) fn cut(&self, share: f64) {
        cut(&self.paths(), share);
    }

    /// All transcripts: the lead's first, then those of agents.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        transcripts(self.transcript())
    }
}
