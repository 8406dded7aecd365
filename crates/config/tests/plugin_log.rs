//! The log of loading plugins and their agents. Alone in its process: the log is set up once for all threads.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::fmt::{Debug, Write};
use std::fs;
use std::sync::Arc;

use centurion_config::agents::{AgentLoader, AgentSources};
use centurion_config::paths::Dirs;
use centurion_config::plugins::{PluginLoader, PluginSources};
use centurion_config::settings::{LevelChoice, RepositoryTrust, Settings, SettingsSources};
use centurion_protocol::{Env, SystemWorld};
use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Subscriber, span};

/// Keeps what is logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, "{}={value:?} ", field.name()).unwrap();
    }
}

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        self.0.lock().push(line.0);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

#[test]
fn how_much_was_loaded_is_logged() {
    // S-074, S-081
    let scratch = tempfile::tempdir().unwrap();
    let top = scratch.path().canonicalize().unwrap();
    let agent = "---\ndescription: d\n---\nx\n";
    for (path, text) in [
        ("mine/plugin.json", r#"{"name": "mine", "agents": "./more"}"#),
        ("mine/agents/a.md", agent),
        ("mine/more/b.md", agent),
        ("mine/more/c.md", agent),
        ("home/.claude/settings.json", r#"{"enabledPlugins": {"gone@tools": true}}"#),
    ] {
        fs::create_dir_all(top.join(path).parent().unwrap()).unwrap();
        fs::write(top.join(path), text).unwrap();
    }
    let dirs = Dirs::new(&Env::default(), Some(&top.join("home"))).unwrap();
    let settings = Settings::load(
        SettingsSources {
            start_dir: top.clone(),
            config_dirs: dirs.config_dirs().to_vec(),
            ..SettingsSources::default()
        },
        RepositoryTrust::Untrusted,
    );
    let sources = PluginSources::new(&dirs, &settings, &top, &["mine".into()]);
    let log = Log::default();
    tracing::subscriber::with_default(log.clone(), || {
        let catalog = PluginLoader::new().load(&sources, &SystemWorld);
        let sources = AgentSources {
            plugins: catalog.enabled.iter().map(|plugin| plugin.agents()).collect(),
            levels: LevelChoice { user: false, project: false, local: false },
            ..AgentSources::default()
        };
        AgentLoader::new().load(&sources, &SystemWorld);
    });
    let lines = log.0.lock();
    let has =
        |parts: &[&str]| lines.iter().any(|line| parts.iter().all(|part| line.contains(part)));
    assert!(has(&["message=plugins loaded", "found=2", "enabled=1", "disabled=1"]), "{lines:?}");
    assert!(has(&["plugin=\"mine\"", "mine/agents ", "files=1"]), "{lines:?}");
    assert!(has(&["plugin=\"mine\"", "mine/more ", "files=2"]), "{lines:?}");
    assert!(has(&["message=agents loaded", "active=3"]), "{lines:?}");
}
