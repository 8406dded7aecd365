//! Whole machines with servers in all their files: which are found, which run, and what is written.

mod editing;
mod entries;
mod standings;

use std::collections::BTreeMap;
use std::fs;

use centurion_protocol::Env;
use serde_json::{Value, json};

use super::*;
use crate::paths::Dirs;
use crate::settings::{FlagSettings, LevelChoice, RepositoryTrust, Settings, SettingsSources};

/// A scratch machine: a home, and a repository in `repo` with a directory `app`.
/// How servers are asked for on the machine of these tests.
struct Request {
    flags: Vec<McpFlag>,
    is_strict: bool,
    standing: RepositoryTrust,
    approval: McpApproval,
    levels: LevelChoice,
    settings: Option<Value>,
}

type Machine = crate::testing::Machine<Request>;

impl Machine {
    fn new() -> Self {
        let machine = Self::with(|_| Request {
            flags: Vec::new(),
            is_strict: false,
            standing: RepositoryTrust::Untrusted,
            approval: McpApproval::Folder,
            levels: LevelChoice::default(),
            settings: None,
        });
        fs::create_dir_all(machine.path("repo/.git")).unwrap();
        fs::create_dir_all(machine.path("repo/app")).unwrap();
        fs::create_dir_all(machine.path("home")).unwrap();
        machine
    }

    fn trusted() -> Self {
        let mut machine = Self::new();
        machine.standing = RepositoryTrust::Full;
        machine
    }

    fn json(&self, relative: &str, value: &Value) -> &Self {
        self.write(relative, format!("{value:#}"))
    }

    fn project_key(&self) -> String {
        self.path("repo").display().to_string()
    }

    fn places(&self) -> McpPlaces {
        let dirs = Dirs::new(&Env::default(), Some(&self.path("home"))).unwrap();
        McpPlaces::new(&dirs, &self.path("repo/app"))
    }

    fn load(&self) -> McpConfiguration {
        let sources = SettingsSources {
            managed_dir: Some(self.path("etc")),
            flag: self.settings.as_ref().map(|value| FlagSettings::Json(value.to_string())),
            start_dir: self.path("repo/app"),
            home: Some(self.path("home")),
            config_dirs: vec![self.path("home/.claude")],
            levels: self.levels,
            ..SettingsSources::default()
        };
        let settings = Settings::load(sources, self.standing);
        assert_eq!(settings.problems().count(), 0);
        McpConfiguration::load(&McpSources {
            managed_dir: Some(self.path("etc")),
            flags: self.flags.clone(),
            is_strict: self.is_strict,
            places: self.places(),
            settings: &settings,
            approval: self.approval,
            env: &Env::from([("TOKEN", "s3cret")]),
            variables: BTreeMap::from([("CLAUDE_PROJECT_DIR".to_owned(), "/repo".to_owned())]),
        })
    }

    /// Each server as `name command: standing`.
    fn servers(&self) -> Vec<String> {
        let servers = self.load().servers;
        servers
            .iter()
            .map(|it| format!("{} {}: {}", it.server.name, it.endpoint, it.standing.word()))
            .collect()
    }

    /// Problems with paths relative to the machine.
    fn problems(&self) -> Vec<String> {
        let root = format!("{}/", self.path("").display().to_string().trim_end_matches('/'));
        self.load().problems.iter().map(|it| it.to_string().replace(&root, "")).collect()
    }
}

fn command(name: &str) -> Value {
    json!({ "command": name })
}
