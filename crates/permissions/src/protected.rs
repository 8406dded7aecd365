//! Paths whose content runs as a program or controls what may run.
//!
//! An agent that writes there can make a later, harmless-looking step do anything. A write to them therefore asks a
//! person even where edits run freely.

use std::borrow::Cow;
use std::path::{Component, Path, PathBuf};

use crate::shell::Shape;

const DIRECTORIES: &[&str] = &[
    ".cargo",
    ".devcontainer",
    ".git",
    ".hg",
    ".husky",
    ".idea",
    ".mvn",
    ".ssh",
    ".vscode",
    ".yarn",
];

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
    ".cshrc",
    ".devcontainer.json",
    ".envrc",
    ".exrc",
    ".gdbinit",
    ".gitconfig",
    ".gitmodules",
    ".inputrc",
    ".kshrc",
    ".lefthook-local.yaml",
    ".lefthook-local.yml",
    ".lefthook.yaml",
    ".lefthook.yml",
    ".lldbinit",
    ".login",
    ".logout",
    ".mcp.json",
    ".npmrc",
    ".pnp.cjs",
    ".pnp.loader.mjs",
    ".pnpmfile.cjs",
    ".pre-commit-config.yaml",
    ".profile",
    ".ripgreprc",
    ".tcshrc",
    ".vimrc",
    ".xinitrc",
    ".xprofile",
    ".xsession",
    ".xsessionrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".zlogin",
    ".zlogout",
    ".zprofile",
    ".zshenv",
    ".zshrc",
    "bunfig.toml",
    "gradle-wrapper.properties",
    // With this file and two directories beside it, any directory is a repository.
    "head",
    "lefthook-local.yaml",
    "lefthook-local.yml",
    "lefthook.yaml",
    "lefthook.yml",
    "maven-wrapper.properties",
    "pyrightconfig.json",
];

/// Whether a write to this path needs a person's approval.
///
/// Ignores case, and characters that some file systems ignore in names: on some of them `.GIT`, `.git.` and `git~1` are
/// `.git`.
pub(crate) fn is_protected(path: &Path) -> bool {
    let texts: Vec<_> = path
        .components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(name.to_string_lossy()),
            _ => None,
        })
        .collect();
    let names: Vec<_> = texts.iter().map(|text| folded(text)).collect();
    if names.last().is_some_and(|name| FILES.contains(&name.as_ref())) {
        return true;
    }
    names.iter().enumerate().any(|(index, name)| {
        let next = names.get(index + 1).map(AsRef::as_ref);
        match name.as_ref() {
            // An agent works in its own worktree.
            ".claude" | ".centurion" => next != Some("worktrees"),
            ".config" => matches!(next, Some("fish" | "git")),
            ".ssh" => {
                matches!(next, Some("authorized_keys" | "config" | "environment" | "rc"))
            }
            // Bare repositories, which have hooks, too.
            name if is_bare_repository(name) && next.is_some() => true,
            name => DIRECTORIES.contains(&name),
        }
    })
}

/// The protected path that a pattern may match, where the disk cannot be read: only looks for names that begin with a
/// dot, which a matching pattern must contain literally.
pub(crate) fn may_be(pattern: &Shape) -> Option<PathBuf> {
    let own = [".claude", ".centurion"];
    let names = DIRECTORIES.iter().chain(FILES).chain(&own).filter(|name| name.starts_with('.'));
    names.copied().find_map(|name| {
        let mut shape = Shape::any_after('/');
        shape.push_text("/");
        shape.push_text(name);
        shape.append_optional(&Shape::any_below());
        shape.intersects(pattern).then(|| PathBuf::from(name))
    })
}

/// The protected names that begin with a text, which is itself the beginning of a name with a dot.
pub(crate) fn names_from(start: &str) -> impl Iterator<Item = &'static str> {
    let names = DIRECTORIES.iter().chain(FILES).chain(&[".claude", ".centurion"]).copied();
    let is_meant = start.len() > 1 && start.starts_with('.');
    names.filter(move |name| is_meant && name.starts_with(start))
}

/// Characters without a width, which some file systems ignore in names.
const IGNORED: [(char, char); 4] = [
    ('\u{200c}', '\u{200f}'),
    ('\u{202a}', '\u{202e}'),
    ('\u{206a}', '\u{206f}'),
    ('\u{feff}', '\u{feff}'),
];

/// A name as the most lenient file system reads it.
fn folded(name: &str) -> Cow<'_, str> {
    // Nearly every name is plain.
    let is_plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-');
    if name.bytes().all(is_plain) && !name.ends_with('.') {
        return Cow::Borrowed(name);
    }
    let is_ignored =
        |letter: char| IGNORED.iter().any(|(from, to)| (*from..=*to).contains(&letter));
    let name: String = name.chars().filter(|letter| !is_ignored(*letter)).collect();
    // A stream of a file is the file.
    let name = name.split(':').next().unwrap_or_default().trim_end_matches(['.', ' ']);
    match name.to_lowercase().as_str() {
        "git~1" => Cow::Borrowed(".git"),
        "claude~1" => Cow::Borrowed(".claude"),
        "centur~1" => Cow::Borrowed(".centurion"),
        name => Cow::Owned(name.to_owned()),
    }
}

/// Whether a directory has the usual name of a bare repository. The name is in lower case.
fn is_bare_repository(name: &str) -> bool {
    name.strip_suffix("git").is_some_and(|name| name.ends_with('.'))
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
            ("/p/.config/fish/config.fish", true),
            ("/p/.config/other", false),
            ("/p/.ssh/authorized_keys", true),
            ("/p/.ssh/id_ed25519", false),
            ("/p/.hg/hgrc", true),
            ("/p/.vimrc", true),
            ("/p/.cshrc", true),
            ("/p/.inputrc", true),
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
            ("/p/.git./config", true),
            ("/p/.git /hooks/x", true),
            ("/p/GIT~1/config", true),
            ("/p/.g\u{200c}it/config", true),
            ("/p/.git::$INDEX_ALLOCATION/config", true),
            ("/p/sub/.git/modules/x/config", true),
            ("/p/mirror.git/hooks/post-receive", true),
            ("/p/sub/.Claude/agents/x.md", true),
            ("/p/a/b/.centurion/skills/s/SKILL.md", true),
            ("/p/notes.git", false),
            ("/p/src/main.rs", false),
        ] {
            assert_eq!(is_protected(Path::new(path)), expected, "{path}");
        }
    }
}
