//! Files that people wrote for this run: settings, as far as this folder is trusted to bring them.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use centurion_config::paths::main_checkout;
use centurion_config::settings::{
    Additions, FlagSettings, KeyState, LevelChoice, ParentSettings, Settings, SettingsSources,
};
use centurion_config::trust::{Trust, TrustKey, TrustSources, TrustState};
use clap::Args;

use crate::output::note;
use crate::surroundings::{MANAGED, Surroundings};

#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Settings")]
pub(crate) struct SettingsArgs {
    /// Settings for this run: a file, or JSON
    #[arg(long, value_name = "FILE|JSON")]
    pub(crate) settings: Option<String>,

    /// Limits of the program that starts this one, as JSON; what would loosen something is left out
    #[arg(long, value_name = "JSON", hide = true)]
    pub(crate) managed_settings: Option<String>,

    /// The settings that are read: any of user, project and local, with commas
    #[arg(long, value_name = "LEVELS", value_parser = LevelChoice::parse)]
    pub(crate) setting_sources: Option<LevelChoice>,

    /// True if hooks, agents, plugins and the like of users and projects are left out.
    #[arg(skip)]
    pub(crate) leaves_additions: bool,
}

/// The settings of a run and the trust that lets them count.
pub(crate) struct Configuration {
    pub(crate) settings: Settings,
    pub(crate) trust: Arc<Trust>,
    pub(crate) folder: TrustKey,
}

impl Configuration {
    pub(crate) fn load(surroundings: &Surroundings, args: &SettingsArgs) -> anyhow::Result<Self> {
        let cwd = &surroundings.cwd;
        let flag =
            args.settings.as_deref().map(|text| FlagSettings::parse(text, cwd)).transpose()?;
        let trust = Arc::new(open_trust(surroundings)?);
        let folder = TrustKey::of(surroundings.project());
        let sources = SettingsSources {
            managed_dir: Some(PathBuf::from(MANAGED)),
            flag,
            parent: args.managed_settings.as_deref().map(ParentSettings::parse).transpose()?,
            start_dir: cwd.clone(),
            project_dir: surroundings.config_root.clone(),
            checkout: main_checkout(surroundings.project()),
            home: surroundings.home.clone(),
            config_dirs: surroundings.dirs.config_dirs().to_vec(),
            levels: args.setting_sources.unwrap_or_default(),
            additions: if args.leaves_additions { Additions::Named } else { Additions::All },
        };
        let settings = Settings::load(sources, trust.folder(&folder));
        Ok(Self { settings, trust, folder })
    }

    pub(crate) fn trust_state(&self) -> TrustState {
        self.trust.state(&self.folder)
    }

    /// Tells the user what is wrong with their files; none of it stops a run.
    pub(crate) fn warn(&self) {
        for problem in self.settings.problems() {
            note(&format!("warning: {problem}"));
        }
        let sources = self.settings.sources();
        if let Some(parent) = &sources.parent {
            if sources.is_managed() {
                note(
                    "warning: --managed-settings does not count beside the administrator's settings",
                );
            }
            if !parent.left_out.is_empty() {
                let names = parent.left_out.join(", ");
                note(&format!("warning: --managed-settings can only tighten; left out: {names}"));
            }
        }
        for problem in self.settings.unaccepted() {
            note(&format!("warning: {problem}"));
        }
        // A rule that takes away and stands under another name takes nothing away.
        let is_rule = |nearest: &&str| {
            ["permissions", "permissions.deny", "permissions.ask"].contains(nearest)
        };
        for report in self.settings.keys() {
            if let KeyState::Unknown { nearest: Some(nearest) } = &report.state
                && is_rule(nearest)
            {
                let (file, line, key) = (report.file.display(), report.line, &report.key);
                note(&format!("warning: {file}:{line}: `{key}` {}", report.why()));
            }
        }
    }
}

pub(crate) fn open_trust(surroundings: &Surroundings) -> anyhow::Result<Trust> {
    let home = surroundings.home.as_ref();
    Trust::open(TrustSources {
        store: surroundings.dirs.trust_file(),
        other: home.map(|home| home.join(".claude.json")),
        home: home.cloned(),
        start_dir: Some(surroundings.cwd.clone()),
    })
    .context("which folders are trusted cannot be read")
}
