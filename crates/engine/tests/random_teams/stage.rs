//! Where a team works: one directory, in which several processes live one after another. Each has a clock of its own that
//! only moves when all tasks wait.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use centurion_config::agents::{AgentSources, ProjectFolders};
use centurion_config::settings::RepositoryTrust;
use centurion_config::skills::SkillSources;
use centurion_config::trust::ContentTrust;
use centurion_engine::builtin::{self, Switches};
use centurion_engine::{
    AgentOptions, Answerer, Definitions, DelegationRules, Handle, Limits, Options, Start,
    TaskListPlace, TeamOptions, View,
};
use centurion_model::{Model, Provider, ProviderKind, RetryPolicy};
use centurion_permissions::Mode;
use centurion_protocol::{Env, SeededWorld, SessionId, World};
use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::json;

use crate::bench::{Bench, Watcher};
use crate::cut::{cut, transcripts};
use crate::person::{Person, Watch};
use crate::plan::{Intervention, Kind, Plan};
use crate::players::{Part, Players, State};
use crate::process::{Ended, run};

const MODEL: &str = "claude-opus-5-5";
pub(crate) const TEAM: &str = "session-1";

/// A place for one team.
pub(crate) struct Stage {
    bench: Bench,
    pub(crate) plan: Arc<Plan>,
    id: SessionId,
}

/// A mode that the lead had, and for how long it certainly had it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeadsMode {
    pub(crate) mode: Mode,
    pub(crate) from: Timestamp,
    pub(crate) until: Timestamp,
}

/// What one process left behind, beside its records.
#[derive(Debug)]
pub(crate) struct Life {
    pub(crate) ended: Ended,
    pub(crate) open_questions: usize,
    pub(crate) requests: usize,
    pub(crate) faults: Vec<String>,
    pub(crate) modes: Vec<LeadsMode>,
}

/// One process of the session.
pub(crate) struct Process<'a> {
    /// Each has its own numbers and times, all later than those before.
    pub(crate) number: u64,
    pub(crate) part: Part,
    pub(crate) prompt: Option<&'a str>,
    pub(crate) dies: Duration,
}

impl Stage {
    pub(crate) fn new(plan: Plan) -> Self {
        let mut bench = Bench::new(json!({"default": "never asked"}));
        bench.mode = plan.settings.mode;
        let directory = bench.project().join(".claude/agents");
        std::fs::create_dir_all(&directory).unwrap();
        for (kind, mode) in
            [(Kind::AcceptEdits, "acceptEdits"), (Kind::Default, "default"), (Kind::Plan, "plan")]
        {
            let name = kind.name();
            let text = format!(
                "---\nname: {name}\ndescription: d\npermissionMode: {mode}\n---\nYou are {name}.\n"
            );
            std::fs::write(directory.join(format!("{name}.md")), text).unwrap();
        }
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

    /// The directory of all task lists.
    pub(crate) fn lists(&self) -> PathBuf {
        self.bench.dir.path().join("lists")
    }

    /// Plays one process of the plan to its end.
    pub(crate) fn live(&self, process: &Process<'_>) -> Life {
        let Process { number, part, prompt, dies } = *process;
        let (players, state) = Players::new(&self.plan, part);
        let person = Arc::new(Person::new(self.plan.seed));
        let world: Arc<dyn World> = Arc::new(Later::new(self.plan.seed, number));
        let mut options = self.options(number, players, &world);
        let has_person = self.plan.settings.has_person;
        options.answerer = has_person.then(|| Arc::clone(&person) as Arc<dyn Answerer>);
        let (mode, from) = (self.plan.settings.mode, world.now());
        let modes = Mutex::new(vec![LeadsMode { mode, from, until: Timestamp::MAX }]);
        let ended = run(options, &*world, prompt, async |handle| {
            tokio::select! {
                biased;
                () = self.meddle(part, &handle, &state, &*world, &modes) => Ended::Stuck,
                () = tokio::time::sleep(dies) => Ended::Died,
            }
        });
        let state = std::mem::take(&mut *state.lock());
        Life {
            ended,
            open_questions: person.open_questions(),
            requests: state.requests,
            faults: state.faults,
            modes: modes.into_inner(),
        }
    }

    /// What a process of the session is opened with.
    pub(crate) fn options(
        &self,
        number: u64,
        provider: Arc<dyn Provider>,
        world: &Arc<dyn World>,
    ) -> Options {
        let start = if number == 0 { Start::New(self.id) } else { Start::Resume(self.id) };
        let mut options = self.bench.options(start, None, &Arc::new(Watcher::default()));
        options.base.world = Arc::clone(world);
        options.model = self.model(provider, number);
        options.view = Arc::new(Watch::default()) as Arc<dyn View>;
        self.furnish(&mut options);
        options
    }

    fn model(&self, players: Arc<dyn Provider>, number: u64) -> Model {
        let world = Arc::new(SeededWorld::new(self.plan.seed.wrapping_mul(8) + 4 + number));
        let policy = RetryPolicy { max_retries: 1, ..RetryPolicy::new(&Env::default()) };
        Model::with_provider(players, ProviderKind::Script, MODEL, policy, world)
    }

    /// What the user set, as the plan has it.
    fn furnish(&self, options: &mut Options) {
        let settings = &self.plan.settings;
        let trust = || ContentTrust::for_this_run(RepositoryTrust::Full);
        let folders = ProjectFolders { cwd: options.base.cwd.clone(), ..ProjectFolders::default() };
        let agents = AgentSources {
            folders: folders.clone(),
            built_in: builtin::agents(&Switches::default()),
            content: trust(),
            ..AgentSources::default()
        };
        let skills = SkillSources { folders, content: trust(), ..SkillSources::default() };
        let definitions = Definitions::new(agents, skills, Arc::new(SeededWorld::new(99)));
        options.max_budget = settings.dollars;
        options.agents = AgentOptions {
            rules: DelegationRules {
                limits: Limits { running: settings.running, ..Limits::default() },
                stall: Some(Duration::from_mins(2)),
                interrupt_ends_background: settings.interrupt_ends_background,
                ..DelegationRules::default()
            },
            team: Some(TeamOptions {
                name: TEAM.parse().unwrap(),
                teardown: Duration::from_mins(1),
                views: None,
            }),
            task_list: Some(TaskListPlace { lists: self.lists(), name: TEAM.parse().unwrap() }),
            ..AgentOptions::new(definitions)
        };
    }

    /// Does what the plan's person does, and then nothing for ever.
    async fn meddle(
        &self,
        part: Part,
        handle: &Handle,
        state: &Arc<Mutex<State>>,
        world: &dyn World,
        modes: &Mutex<Vec<LeadsMode>>,
    ) {
        let begun = tokio::time::Instant::now();
        for (at, what) in self.plan.interventions.iter().filter(|_| part == Part::Plan) {
            tokio::time::sleep_until(begun + *at).await;
            match what {
                Intervention::Interrupt => drop(handle.interrupt()),
                Intervention::StopAll => drop(handle.stop_agents()),
                Intervention::StopOne(member) => {
                    let name = state.lock().names.get(member).cloned();
                    if let Some(name) = name {
                        // It may have ended in this very moment.
                        let _ = handle.stop_task(&name).await;
                    }
                }
                Intervention::SetMode(mode) => {
                    let until = world.now();
                    handle.set_mode(*mode).unwrap();
                    let mut modes = modes.lock();
                    modes.last_mut().unwrap().until = until;
                    let (mode, from) = (*mode, world.now());
                    modes.push(LeadsMode { mode, from, until: Timestamp::MAX });
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

/// A world of a later process: its times come after those of the processes before.
pub(crate) struct Later {
    world: SeededWorld,
    days: u64,
}

impl Later {
    pub(crate) fn new(seed: u64, number: u64) -> Self {
        Self { world: SeededWorld::new(seed.wrapping_mul(8) + number), days: number }
    }
}

impl World for Later {
    fn now(&self) -> Timestamp {
        let days = i64::try_from(self.days).unwrap();
        self.world.now() + jiff::SignedDuration::from_hours(24 * days)
    }

    fn random(&self) -> u64 {
        self.world.random()
    }

    fn has_threads(&self) -> bool {
        false
    }
}
