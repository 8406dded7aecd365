//! The file of a new definition: where it belongs, writing it without replacing anything, and telling of it.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use centurion_config::Problem;
use clap::ValueEnum;
use serde_json::json;

use super::findings::problem_data;
use super::listing::Form;
use super::places::Places;
use crate::output::{note, printable};
use crate::surroundings::Surroundings;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DefinitionScope {
    /// Project: for all its users
    Project,
    /// User: for you, in all projects
    User,
}

/// The path of a file of a scope, by its path below a directory of definitions.
pub(crate) fn locate(
    places: &Places,
    scope: DefinitionScope,
    relative: &Path,
) -> anyhow::Result<PathBuf> {
    let repository = places.agents.folders.repository.as_deref();
    locate_in(&places.surroundings, repository, scope, relative)
}

/// The same where the repository is known.
pub(crate) fn locate_in(
    surroundings: &Surroundings,
    repository: Option<&Path>,
    scope: DefinitionScope,
    relative: &Path,
) -> anyhow::Result<PathBuf> {
    match scope {
        DefinitionScope::User => {
            // Ours, so that another program's files stay as they are.
            let own = surroundings.dirs.config_dirs().last();
            Ok(own.context("there is no directory for your own files")?.join(relative))
        }
        DefinitionScope::Project => {
            let home = surroundings.home.as_deref();
            let root = repository.filter(|root| Some(*root) != home).unwrap_or(&surroundings.cwd);
            ensure!(
                Some(root) != home,
                "the home directory is no project\nhelp: --scope user writes it for all projects"
            );
            let path = root.join(".claude").join(relative);
            // A repository must not choose where on the machine something is written.
            let above = path.ancestors().skip(1).take_while(|place| *place != root);
            for place in above {
                ensure!(!place.is_symlink(), "{} is a link; nothing is written", place.display());
            }
            Ok(path)
        }
    }
}

/// Writes a file that is not there yet.
pub(crate) fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let doing = || format!("{} cannot be written", path.display());
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).with_context(doing)?;
    }
    let mut file = match OpenOptions::new().write(true).create_new(true).open(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            bail!("there is a file {} already", path.display())
        }
        opened => opened.with_context(doing)?,
    };
    file.write_all(text.as_bytes()).with_context(doing)
}

/// A file that was written, with remarks about it.
pub(crate) struct WrittenFile<'f> {
    pub(crate) path: &'f Path,
    /// The purpose of its text.
    pub(crate) purpose: String,
    pub(crate) warnings: &'f [Problem],
    /// A remark about another definition of the same name.
    pub(crate) rival: Option<String>,
}

impl WrittenFile<'_> {
    /// Tells of the file: people read remarks on standard error.
    pub(crate) fn tell(&self, form: Form) {
        let text = || {
            for problem in self.warnings {
                note(&format!("warning: {}", printable(&problem.to_string())));
            }
            self.rival.iter().for_each(|rival| note(&printable(&format!("note: {rival}"))));
            let line = format!("wrote {}; {}", self.path.display(), self.purpose);
            format!("{}\n", printable(&line))
        };
        let data = || {
            let warnings: Vec<_> = self.warnings.iter().map(problem_data).collect();
            json!({"path": self.path, "warnings": warnings, "note": self.rival})
        };
        form.print(text, data);
    }
}
