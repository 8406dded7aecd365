//! A bench whose session knows agents: the built-in ones and those in files of its project.

use std::path::PathBuf;
use std::sync::Arc;

use centurion_config::agents::{AgentSources, ProjectFolders};
use centurion_config::settings::{LevelChoice, RepositoryTrust};
use centurion_config::skills::SkillSources;
use centurion_config::trust::ContentTrust;
use centurion_engine::builtin::{self, Switches};
use centurion_engine::{AgentOptions, Definitions, Handle, Options, Start};
use centurion_protocol::{Block, SeededWorld, World};
use serde_json::{Value, json};

use crate::bench::{Asked, Bench, Told, Watcher};

impl Bench {
    /// A bench whose model plays these scripts: `lead` is the main agent's.
    pub(crate) fn cast(scripts: &Value) -> Self {
        let mut bench = Self::new(json!({"scripts": scripts}));
        bench.knows_agents(|_| {});
        bench
    }

    /// Lets the session know the agents in its project, which is trusted, and the built-in ones, with other rules.
    pub(crate) fn knows_agents(
        &mut self,
        change: impl Fn(&mut AgentOptions) + Send + Sync + 'static,
    ) {
        self.knows_agents_of(|| ContentTrust::for_this_run(RepositoryTrust::Full), change);
    }

    /// The same in a project that is not trusted.
    pub(crate) fn knows_strangers_agents(
        &mut self,
        change: impl Fn(&mut AgentOptions) + Send + Sync + 'static,
    ) {
        self.knows_agents_of(ContentTrust::default, change);
    }

    fn knows_agents_of(
        &mut self,
        trust: fn() -> ContentTrust,
        change: impl Fn(&mut AgentOptions) + Send + Sync + 'static,
    ) {
        let cwd = self.project();
        self.adjust = Box::new(move |options: &mut Options| {
            let folders = ProjectFolders { cwd: cwd.clone(), ..ProjectFolders::default() };
            let agents = AgentSources {
                folders: folders.clone(),
                levels: LevelChoice::default(),
                built_in: builtin::agents(&Switches::default()),
                content: trust(),
                ..AgentSources::default()
            };
            let skills = SkillSources { folders, content: trust(), ..SkillSources::default() };
            let definitions = Definitions::new(agents, skills, Arc::new(SeededWorld::new(99)));
            options.agents = AgentOptions::new(definitions);
            change(&mut options.agents);
        });
    }

    /// Runs while `act` acts on the session from outside; then nothing more is submitted.
    pub(crate) async fn live<F: Future<Output = ()>>(
        &self,
        prompt: &str,
        act: impl FnOnce(Handle, Arc<Watcher>) -> F,
    ) -> Told {
        let (watcher, world) = (Arc::new(Watcher::default()), SeededWorld::new(self.seed + 500));
        let start = Start::New(SeededWorld::new(self.seed).session_id());
        let mut session = self.open(start, None, &watcher).await;
        let handle = session.handle();
        handle.submit(world.record_id(), vec![Block::text(prompt)]);
        let acting = async {
            act(handle.clone(), Arc::clone(&watcher)).await;
            handle.close();
        };
        let (outcome, ()) = tokio::join!(session.run(), acting);
        self.told(&session, outcome, &watcher)
    }

    /// Defines an agent in the project.
    pub(crate) fn agent(&self, name: &str, front: &str, body: &str) {
        let directory = self.project().join(".claude/agents");
        std::fs::create_dir_all(&directory).unwrap();
        let text = format!("---\nname: {name}\ndescription: test agent\n{front}---\n{body}\n");
        std::fs::write(directory.join(format!("{name}.md")), text).unwrap();
    }
}

/// A call of the Agent tool.
pub(crate) fn agent(kind: &str, prompt: &str, more: &Value) -> Value {
    let mut input = json!({"description": "a job", "prompt": prompt, "subagent_type": kind});
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"tool": "Agent", "input": input})
}

/// The usual agent, waited for.
pub(crate) fn waits(prompt: &str) -> Value {
    agent("general-purpose", prompt, &json!({}))
}

/// The usual agent, in the background.
pub(crate) fn starts(prompt: &str) -> Value {
    agent("general-purpose", prompt, &json!({"run_in_background": true}))
}

/// A message to an agent.
pub(crate) fn message(to: &str, text: &str) -> Value {
    json!({"tool": "SendMessage", "input": {"to": to, "message": text}})
}

/// The id that the last answer about an agent gave, as scripts find it.
pub(crate) const LAST_AGENT: &str = "${re:agentId: (a[0-9a-f]+)}";

/// What a field of a notification says.
pub(crate) fn field<'a>(news: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = news.split_once(&format!("<{name}>"))?;
    Some(rest.split_once(&format!("</{name}>"))?.0)
}

impl Asked {
    /// What people, tools and the runtime said in it, one after another.
    pub(crate) fn texts(&self) -> Vec<&str> {
        let messages = self.messages.as_array().unwrap().iter().filter(|it| it["role"] == "user");
        let blocks = messages.flat_map(|it| it["content"].as_array().unwrap());
        blocks.flat_map(words).collect()
    }

    /// What a tool says about itself and what it takes.
    pub(crate) fn offer(&self, tool: &str) -> &Value {
        self.offers.iter().find(|offer| offer["name"] == tool).unwrap()
    }
}

fn words(block: &Value) -> Vec<&str> {
    match (&block["text"], &block["content"]) {
        (Value::String(text), _) | (_, Value::String(text)) => vec![text],
        (_, Value::Array(blocks)) => blocks.iter().flat_map(words).collect(),
        _ => Vec::new(),
    }
}

impl Told {
    /// The results of the main agent's calls of the Agent tool, as data.
    pub(crate) fn agent_results(&self) -> Vec<&Value> {
        let users = self.of("user", None).into_iter();
        let main = users.filter(|event| event["parent_tool_use_id"].is_null());
        main.map(|event| &event["tool_use_result"])
            .filter(|data| data["agentId"].is_string())
            .collect()
    }

    /// The user texts of the last request of the main agent: those whose first message has this prompt.
    pub(crate) fn last_texts(&self, prompt: &str) -> String {
        let is_its = |request: &&Value| request[0].to_string().contains(prompt);
        self.requests.iter().rfind(is_its).unwrap().to_string()
    }

    /// The requests of the agents whose first message has this prompt.
    pub(crate) fn asked_by(&self, prompt: &str) -> Vec<&Asked> {
        let is_its = |asked: &&Asked| asked.messages[0].to_string().contains(prompt);
        self.asked.iter().filter(is_its).collect()
    }

    /// All that the main agent was told in its last request.
    pub(crate) fn main_texts(&self) -> Vec<&str> {
        let is_main = |asked: &&Asked| asked.agent.is_none();
        self.asked.iter().rfind(is_main).unwrap().texts()
    }

    /// The news of background work that the main agent has read.
    pub(crate) fn news(&self) -> Vec<&str> {
        let is_news = |text: &&str| text.starts_with("<task-notification>");
        self.main_texts().into_iter().filter(is_news).collect()
    }

    /// The ids of the agents in the order of their start.
    pub(crate) fn agent_ids(&self) -> Vec<String> {
        let started = self.of("system", Some("task_started"));
        started.iter().map(|event| event["task_id"].as_str().unwrap().to_owned()).collect()
    }

    /// Where an agent's transcript is.
    pub(crate) fn agent_transcript(&self, id: &str) -> PathBuf {
        self.transcript.with_extension("").join(format!("subagents/agent-{id}.jsonl"))
    }
}
