//! Marketplaces: which are known, and fetching them.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use centurion_config::plugins::{
    KnownMarketplace, Marketplace, MarketplaceSource, check_marketplace_name,
};
use centurion_protocol::SystemWorld;
use clap::Subcommand;
use serde_json::json;

use super::show::counted;
use super::{Plugins, git};
use crate::output::{Output, note, printable};

#[derive(Debug, Subcommand)]
pub(crate) enum MarketplaceAction {
    /// Add a marketplace: a directory, OWNER/REPOSITORY, or the address of a git repository
    Add { source: String },
    /// List the marketplaces
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove a marketplace
    Remove { name: String },
    /// Fetch marketplaces again: one, or all of them
    Update { name: Option<String> },
}

pub(super) fn run(action: &MarketplaceAction) -> anyhow::Result<()> {
    let plugins = Plugins::plain()?;
    match action {
        MarketplaceAction::Add { source } => {
            let source = MarketplaceSource::parse(source, &plugins.surroundings.cwd)?;
            let (marketplace, _) = plugins.fetch_marketplace(&source, None)?;
            let (name, count) = (&marketplace.name, plugins_in(&marketplace));
            say(&format!("added marketplace `{name}` ({source}), which lists {count}"));
            tell_problems(&marketplace);
        }
        MarketplaceAction::List { json } => plugins.list_marketplaces(*json),
        MarketplaceAction::Remove { name } => {
            plugins.remove_marketplace(name)?;
            say(&format!("removed marketplace `{name}`"));
        }
        MarketplaceAction::Update { name } => plugins.update_marketplaces(name.as_deref())?,
    }
    Ok(())
}

/// The number of plugins that a marketplace lists.
fn plugins_in(marketplace: &Marketplace) -> String {
    counted(marketplace.entries.len(), "plugin")
}

fn say(line: &str) {
    Output::default().write(format!("{}\n", printable(line)).as_bytes());
}

fn tell_problems(marketplace: &Marketplace) {
    for problem in &marketplace.problems {
        note(&format!("warning: {problem}"));
    }
}

/// A directory that something is fetched into, gone if it does not get its place.
pub(super) struct FetchedDirectory(pub(super) PathBuf);

impl Drop for FetchedDirectory {
    fn drop(&mut self) {
        // Most of the time it has been moved away.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Plugins {
    /// Fetches a marketplace and keeps it; gives it and where it is. `expected` is the name that it must
    /// have.
    pub(super) fn fetch_marketplace(
        &self,
        source: &MarketplaceSource,
        expected: Option<&str>,
    ) -> anyhow::Result<(Marketplace, PathBuf)> {
        if let Some(reason) = self.policy().denial(Some(source)) {
            bail!("the marketplace {source} may not be used: {reason}");
        }
        let stores = self.stores();
        let fetched = match source {
            MarketplaceSource::Git(git) => {
                let place = FetchedDirectory(stores.fetching_place("marketplace")?);
                git::fetch(git, &self.surroundings.env, &place.0)?;
                Some(place)
            }
            MarketplaceSource::Directory(_) | MarketplaceSource::File(_) => None,
        };
        let location: &Path = match (&fetched, source) {
            (Some(place), _) => &place.0,
            (None, MarketplaceSource::Directory(path) | MarketplaceSource::File(path)) => path,
            (None, MarketplaceSource::Git(_)) => bail!("{source} was not fetched"),
        };
        let marketplace =
            Marketplace::read(location).map_err(|problem| anyhow::anyhow!("{problem}"))?;
        let name = &marketplace.name;
        if let Some(expected) = expected {
            ensure!(name == expected, "{source} is the marketplace `{name}` and not `{expected}`");
        }
        let known = stores.contents();
        if let Some(known) = known.marketplace(name).filter(|it| it.store == stores.ours()) {
            ensure!(
                known.source == *source,
                "there is a marketplace `{name}` already, from {}\n\
                 help: `centurion plugin marketplace remove {name}` removes it",
                known.source
            );
        }
        let fetched = fetched.as_ref().map(|place| place.0.as_path());
        let location = stores.keep_marketplace(name, source, fetched, &SystemWorld)?;
        // Its own paths are those of the place that it is at now.
        let marketplace =
            Marketplace::read(&location).map_err(|problem| anyhow::anyhow!("{problem}"))?;
        Ok((marketplace, location))
    }

    /// The marketplace of a name. One that settings make known is fetched when it is first wanted.
    pub(super) fn marketplace(
        &self,
        name: &str,
    ) -> anyhow::Result<(Marketplace, KnownMarketplace)> {
        if self.stores().contents().marketplace(name).is_none()
            && let Some(source) = self.declared(name)?
        {
            self.fetch_marketplace(&source, Some(name))?;
        }
        let known = self.stores().contents().marketplace(name).cloned().with_context(|| {
            format!(
                "there is no marketplace `{name}`\n\
                 help: `centurion plugin marketplace add` adds one"
            )
        })?;
        if let Some(reason) = self.policy().denial(Some(&known.source)) {
            bail!("the marketplace `{name}` may not be used: {reason}");
        }
        let marketplace =
            Marketplace::read(&known.location).map_err(|problem| anyhow::anyhow!("{problem}"))?;
        Ok((marketplace, known))
    }

    /// The source of a marketplace in the settings.
    fn declared(&self, name: &str) -> anyhow::Result<Option<MarketplaceSource>> {
        let declared = &self.sources.settings.marketplaces;
        let Some((_, declared)) = declared.iter().find(|(known, _)| known == name) else {
            return Ok(None);
        };
        let origin = &declared.origin;
        let source = declared.value.get("source").cloned().unwrap_or_default();
        let source = MarketplaceSource::from_value(&source, &origin.root)
            .with_context(|| format!("marketplace `{name}` of {origin} cannot be used"))?;
        Ok(Some(source))
    }

    fn list_marketplaces(&self, json: bool) {
        let contents = self.stores().contents();
        for problem in &contents.problems {
            note(&format!("warning: {problem}"));
        }
        let policy = self.policy();
        let mut rows = Vec::new();
        for known in &contents.marketplaces {
            let state = match policy.denial(Some(&known.source)) {
                Some(reason) => format!("may not be used: {reason}"),
                None => match Marketplace::read(&known.location) {
                    Ok(marketplace) => plugins_in(&marketplace),
                    Err(problem) => format!("cannot be read: {problem}"),
                },
            };
            rows.push((known.name.clone(), known.source.to_string(), state));
        }
        for (name, declared) in &self.sources.settings.marketplaces {
            if contents.marketplace(name).is_none() {
                let source = match self.declared(name) {
                    Ok(Some(source)) => source.to_string(),
                    Ok(None) => continue,
                    Err(error) => format!("{error:#}"),
                };
                let state = format!("not fetched yet, declared in {}", declared.origin);
                rows.push((name.clone(), source, state));
            }
        }
        let output = Output::default();
        if json {
            let rows: Vec<_> = rows
                .iter()
                .map(
                    |(name, source, state)| json!({"name": name, "source": source, "state": state}),
                )
                .collect();
            return output.json_line(&rows);
        }
        for (name, source, state) in rows {
            let line = printable(&format!("{name} ({source}): {state}"));
            output.write(format!("{line}\n").as_bytes());
        }
    }

    fn remove_marketplace(&self, name: &str) -> anyhow::Result<()> {
        check_marketplace_name(name)?;
        let ours = self.stores().ours();
        let contents = self.stores().contents();
        let known = contents.marketplace(name);
        let known = known.with_context(|| format!("there is no marketplace `{name}`"))?;
        ensure!(
            known.store == ours,
            "marketplace `{name}` is kept in {}, which is another program's and is not written",
            known.store.display()
        );
        let mut installed: Vec<String> = contents
            .plugins
            .iter()
            .filter(|plugin| plugin.store == ours && plugin.id.marketplace() == name)
            .map(|plugin| plugin.id.to_string())
            .collect();
        installed.dedup();
        ensure!(
            installed.is_empty(),
            "marketplace `{name}` has plugins that are installed: {}\n\
             help: `centurion plugin remove` removes them",
            installed.join(", ")
        );
        self.stores().forget_marketplace(name)?;
        Ok(())
    }

    fn update_marketplaces(&self, name: Option<&str>) -> anyhow::Result<()> {
        let contents = self.stores().contents();
        let ours = contents.marketplaces.iter().filter(|known| known.store == self.stores().ours());
        let wanted: Vec<&KnownMarketplace> =
            ours.filter(|known| name.is_none_or(|name| known.name == name)).collect();
        if let (Some(name), true) = (name, wanted.is_empty()) {
            bail!(
                "the marketplace `{name}` is not added; help: `centurion plugin marketplace list` shows which are"
            );
        }
        let mut failed = Vec::new();
        for known in wanted {
            match self.fetch_marketplace(&known.source, Some(&known.name)) {
                Ok((marketplace, _)) => {
                    let count = plugins_in(&marketplace);
                    say(&format!("updated marketplace `{}`, which lists {count}", known.name));
                    tell_problems(&marketplace);
                }
                Err(error) => failed.push(format!("marketplace `{}`: {error:#}", known.name)),
            }
        }
        ensure!(failed.is_empty(), "{}", failed.join("\n"));
        Ok(())
    }
}
