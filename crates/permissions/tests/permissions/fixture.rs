//! The fixture of this crate's tests: a project of Ada's, and short names for accesses.

use std::path::{Path, PathBuf};

use centurion_permissions::{
    Access, Call, Links, Mode, NoLinks, PathKind, Policy, Rule, RuleOrigin, RuleSet,
};

pub(crate) fn policy(mode: Mode) -> Policy {
    Policy {
        mode,
        cwd: "/home/ada/project".into(),
        project_root: "/home/ada/project".into(),
        home: Some("/home/ada".into()),
        directories: vec!["/home/ada/project".into(), "/added".into()],
        trusted_repository: Some("/home/ada/project".into()),
        ..Policy::default()
    }
}

pub(crate) fn rules(text: &str) -> RuleSet {
    Rule::parse_list(text, &RuleOrigin::Flag).expect("a good rule").into()
}

pub(crate) fn read(path: &str) -> Access {
    Access::Read(PathBuf::from(path))
}

pub(crate) fn write(path: &str) -> Access {
    Access::Write(PathBuf::from(path))
}

pub(crate) fn shell(command: &str) -> Access {
    Access::Shell(command.to_owned())
}

pub(crate) fn network(url: &str) -> Access {
    Access::Network(url.to_owned())
}

/// A call with this access, of the tool for it.
pub(crate) fn call(access: &Access) -> Call<'_> {
    let tool = match access {
        Access::Session => "TodoWrite",
        Access::Read(_) => "Read",
        Access::Write(_) => "Write",
        Access::Shell(_) => "Bash",
        Access::Network(_) => "WebFetch",
        Access::External { .. } => "mcp__git__push",
    };
    Call { links: &PlainFiles, ..Call::new(tool, access) }
}

/// Ada's disk: no links, no repository inside another, and every name is a file unless it ends in `-dir`,
/// which is an empty directory.
#[derive(Debug)]
pub(crate) struct PlainFiles;

impl Links for PlainFiles {
    fn resolve(&self, path: &Path) -> PathBuf {
        NoLinks.resolve(path)
    }

    fn kind(&self, path: &Path) -> PathKind {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        match &*name {
            ".git" | "HEAD" => PathKind::Missing,
            name if name.ends_with("-dir") => PathKind::Directory,
            _ => PathKind::File,
        }
    }

    fn tree(&self, _directory: &Path, _most: usize) -> Option<Vec<PathBuf>> {
        Some(Vec::new())
    }
}
