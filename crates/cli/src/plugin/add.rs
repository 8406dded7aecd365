//! Installing plugins and removing them.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use centurion_config::plugins::{
    Bundle, EntrySource, InstallScope, Installation, InstalledPlugin, LOCAL, Marketplace,
    MarketplaceEntry, PluginId, part,
};
use centurion_config::settings::{Level, switch_plugin};
use centurion_protocol::SystemWorld;

use super::marketplace::FetchedDirectory;
use super::{PluginScope, Plugins, git};
use crate::output::{Output, note, printable};

/// Installs a plugin and switches it on.
pub(super) fn add(written: &str, scope: PluginScope) -> anyhow::Result<()> {
    let plugins = Plugins::plain()?;
    // Asked before anything is fetched: an installation that cannot be switched on is worth nothing.
    plugins.settings_file(scope)?;
    let path = plugins.surroundings.cwd.join(written);
    let is_path = written.starts_with(['.', '/']) || (path.is_dir() && !written.contains('@'));
    let installed = if is_path {
        plugins.add_directory(&path, scope)?
    } else {
        let id = plugins.listed(written)?;
        plugins.add_listed(&id, scope)?
    };
    let file = plugins.settings_file(scope)?;
    let id = installed.id.to_string();
    switch_plugin(&file, &id, Some(true))?;
    super::switch::accept_switch(&plugins, &file, &id, (scope, true))?;
    let line = format!("added plugin `{id}` {} in {}", installed.version, installed.root.display());
    Output::default().write(format!("{}\n", printable(&line)).as_bytes());
    super::switch::tell_state(&installed.id, true)
}

/// Removes a plugin, and what the settings of its scope say about it.
pub(super) fn remove(written: &str, scope: Option<PluginScope>) -> anyhow::Result<()> {
    let plugins = Plugins::plain()?;
    let id = plugins.meant(written)?;
    let cwd = &plugins.surroundings.cwd;
    let contents = plugins.stores().contents();
    let wanted = |plugin: &&InstalledPlugin| {
        plugin.id == id
            && plugin.project.as_ref().is_none_or(|project| project == cwd)
            && scope.is_none_or(|scope| scope.install_scope() == plugin.scope)
    };
    let found: Vec<&InstalledPlugin> = contents.plugins.iter().filter(wanted).collect();
    ensure!(
        !found.is_empty(),
        "plugin `{id}` is not installed here\nhelp: `centurion plugin list` shows those that are"
    );
    let ours = plugins.stores().ours();
    let (mine, others): (Vec<_>, Vec<_>) = found.into_iter().partition(|it| it.store == ours);
    if let (true, Some(other)) = (mine.is_empty(), others.first()) {
        bail!(
            "plugin `{id}` is kept in {}, which is another program's and is not written\n\
             help: `centurion plugin disable {id}` switches it off here",
            other.store.display()
        );
    }
    for plugin in mine {
        plugins.stores().uninstall(plugin)?;
        let file = level_of(plugin.scope)
            .and_then(|level| plugins.configuration.settings.sources().file_for(level));
        if let Some(file) = file {
            switch_plugin(&file, &id.to_string(), None)?;
        }
        let line = format!("removed plugin `{id}` ({})\n", plugin.scope.as_str());
        Output::default().write_text(&line);
    }
    Ok(())
}

fn level_of(scope: InstallScope) -> Option<Level> {
    match scope {
        InstallScope::Managed => None,
        InstallScope::User => Some(Level::User),
        InstallScope::Project => Some(Level::Project),
        InstallScope::Local => Some(Level::Local),
    }
}

impl Plugins {
    /// The plugin of a marketplace that a person means: by its id, or by a name that only one marketplace
    /// lists.
    fn listed(&self, written: &str) -> anyhow::Result<PluginId> {
        if written.contains('@') {
            return Ok(written.parse()?);
        }
        let contents = self.stores().contents();
        let lists = |location: &Path| {
            Marketplace::read(location).is_ok_and(|it| it.find(written).is_some())
        };
        let known = contents.marketplaces.iter().filter(|known| lists(&known.location));
        let names: Vec<&str> = known.map(|known| known.name.as_str()).collect();
        match names.as_slice() {
            [marketplace] => Ok(PluginId::new(written, marketplace)?),
            [] => bail!(
                "`{}` is no directory and no plugin of a known marketplace\n\
                 help: write a path that begins with `./`, or PLUGIN@MARKETPLACE",
                printable(written)
            ),
            several => bail!("`{written}` is in several marketplaces: {}", several.join(", ")),
        }
    }

    /// Refuses what managed settings do not let be installed.
    fn check_allowed(&self, id: &PluginId) -> anyhow::Result<()> {
        let name = id.to_string();
        let switches = &self.sources.settings.switches;
        let managed = switches.iter().find(|it| it.id == name && it.origin.level == Level::Managed);
        if let Some(switch) = managed.filter(|switch| !switch.is_on) {
            bail!("plugin `{id}` is switched off in {}", switch.origin);
        }
        Ok(())
    }

    /// Installs a plugin from its directory.
    fn add_directory(&self, path: &Path, scope: PluginScope) -> anyhow::Result<InstalledPlugin> {
        let path = path.canonicalize().with_context(|| path.display().to_string())?;
        let usual_name = path.file_name().unwrap_or_default().to_string_lossy();
        let bundle = Bundle::read(&path, &usual_name).map_err(|problems| {
            let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
            anyhow::anyhow!("{}", lines.join("\n"))
        })?;
        let id = PluginId::new(&bundle.manifest.name, LOCAL)?;
        self.check_allowed(&id)?;
        if let Some(reason) = self.policy().denial(None) {
            bail!("plugins of a directory may not be used: {reason}");
        }
        self.install(&InstallSource { id: &id, from: &path, entry: None, commit: None }, scope)
    }

    /// Installs a plugin that a marketplace lists.
    fn add_listed(&self, id: &PluginId, scope: PluginScope) -> anyhow::Result<InstalledPlugin> {
        self.check_allowed(id)?;
        let (marketplace, known) = self.marketplace(id.marketplace())?;
        let entry = marketplace.find(id.name()).with_context(|| {
            let of_it = format!("plugin `{}`", id.name());
            let why = marketplace.problems.iter().find(|it| it.message.starts_with(&of_it));
            match why {
                Some(problem) => problem.to_string(),
                None => {
                    format!("marketplace `{}` lists no plugin `{}`", id.marketplace(), id.name())
                }
            }
        })?;
        match &entry.source {
            EntrySource::Relative(path) => {
                let from = marketplace.directory(path)?;
                let commit = git::head(&self.surroundings.env, &known.location);
                self.install(&InstallSource { id, from: &from, entry: Some(entry), commit }, scope)
            }
            EntrySource::Git { git: source, path } => {
                let place = FetchedDirectory(self.stores().fetching_place("plugin")?);
                let commit = Some(git::fetch(source, &self.surroundings.env, &place.0)?);
                let root = place.0.canonicalize()?;
                let from: PathBuf = match path {
                    Some(path) => part(&root, path)?,
                    None => root,
                };
                self.install(&InstallSource { id, from: &from, entry: Some(entry), commit }, scope)
            }
        }
    }

    fn install(
        &self,
        source: &InstallSource<'_>,
        scope: PluginScope,
    ) -> anyhow::Result<InstalledPlugin> {
        let project = (scope != PluginScope::User).then_some(self.surroundings.cwd.as_path());
        let installation = Installation {
            id: source.id,
            from: source.from,
            entry: source.entry,
            commit: source.commit.clone(),
            scope: scope.install_scope(),
            project,
        };
        let installed = self.stores().install(&installation, &SystemWorld)?;
        for problem in &installed.problems {
            note(&format!("warning: {problem}"));
        }
        Ok(installed.plugin)
    }
}

/// The source of an installation.
struct InstallSource<'s> {
    id: &'s PluginId,
    from: &'s Path,
    entry: Option<&'s MarketplaceEntry>,
    commit: Option<String>,
}
