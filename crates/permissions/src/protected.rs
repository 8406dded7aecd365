//! Paths whose content runs as a program or decides what may run.
//!
//! Whoever writes there can make a later, harmless-looking step do anything. A write to them is
//! therefore put to a person even where edits run freely.

use std::path::{Component, Path};

const DIRECTORIES: &[&str] =
    &[".cargo", ".devcontainer", ".git", ".husky", ".idea", ".mvn", ".vscode", ".yarn"];

const FILES: &[&str] = &[
    ".bash_aliases",
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".bazeliskrc",
    ".bazelrc",
    ".bazelversion",
    ".bunfig.toml",
    ".claude.json",
    ".devcontainer.json",
    ".envrc",
    ".gitconfig",
    ".gitmodules",
    ".lefthook-local.yaml",
    ".lefthook-local.yml",
    ".lefthook.yaml",
    ".lefthook.yml",
    ".mcp.json",
    ".npmrc",
    ".pnp.cjs",
    ".pnp.loader.mjs",
    ".pnpmfile.cjs",
    ".pre-commit-config.yaml",
    ".profile",
    ".ripgreprc",
    ".yarnrc",
    ".yarnrc.yml",
    ".zlogin",
    ".zlogout",
    ".zprofile",
    ".zshenv",
    ".zshrc",
    "bunfig.toml",
    "gradle-wrapper.properties",
    // With it and two directories beside it, any directory is a repository.
    "head",
    "lefthook-local.yaml",
    "lefthook-local.yml",
    "lefthook.yaml",
    "lefthook.yml",
    "maven-wrapper.properties",
    "pyrightconfig.json",
];

/// Whether a write to this path needs a person's word.
///
/// Case does not count: on some file systems `.GIT` is `.git`.
pub(crate) fn is_protected(path: &Path) -> bool {
    let names: Vec<_> = path
        .components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(name.to_string_lossy().to_lowercase()),
            _ => None,
        })
        .collect();
    if names.last().is_some_and(|name| FILES.contains(&name.as_str())) {
        return true;
    }
    names.iter().enumerate().any(|(index, name)| {
        let next = names.get(index + 1).map(String::as_str);
        match name.as_str() {
            // An agent's own worktree is a place to work in.
            ".claude" | ".centurion" => next != Some("worktrees"),
            ".config" => next == Some("git"),
            name => DIRECTORIES.contains(&name),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_run_later_is_protected() {
        for (path, expected) in [
            ("/p/.git/hooks/pre-commit", true),
            ("/p/.git", true),
            ("/p/sub/.git/config", true),
            ("/p/.GIT/config", true),
            ("/p/.config/git/config", true),
            ("/p/.config/other", false),
            ("/p/.vscode/tasks.json", true),
            ("/p/.claude/settings.json", true),
            ("/p/.claude/worktrees/agent-1/src/main.rs", false),
            ("/p/.claude/worktrees/agent-1/.git", true),
            ("/p/.claude/worktrees/agent-1/.claude/settings.json", true),
            ("/p/.centurion/settings.json", true),
            ("/p/.mcp.json", true),
            ("/home/ada/.bashrc", true),
            ("/p/.envrc", true),
            ("/p/.env", false),
            ("/p/gradle/wrapper/gradle-wrapper.properties", true),
            ("/p/lefthook.yml", true),
            ("/p/.lefthook.yaml", true),
            ("/p/.gitignore", false),
            ("/p/.github/workflows/ci.yml", false),
            ("/p/git/config", false),
            ("/p/src/HEAD", true),
            ("/p/src/main.rs", false),
        ] {
            assert_eq!(is_protected(Path::new(path)), expected, "{path}");
        }
    }
}
