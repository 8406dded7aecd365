//! `centurion init`: a first CLAUDE.md for a project, and a list of what is read here already.
//!
//! An instruction file that exists is left alone, and nothing else is written.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use centurion_config::paths::repo_root;
use centurion_files::create;
use clap::Parser;

use crate::output::Output;
use crate::surroundings::Surroundings;

/// Writes a first CLAUDE.md, and lists what is read here.
#[derive(Debug, Parser)]
#[command(name = "centurion init")]
pub(crate) struct InitArgs {
    /// Print the draft and write nothing
    #[arg(long)]
    dry_run: bool,
}

/// The name of the instruction file.
const FILE: &str = "CLAUDE.md";

/// The files that are read of a project, with their use.
const READ: [(&str, &str); 12] = [
    ("CLAUDE.md", "instructions"),
    ("CLAUDE.local.md", "your own instructions"),
    ("AGENTS.md", "instructions"),
    (".claude/CLAUDE.md", "instructions"),
    (".claude/settings.json", "settings of the project"),
    (".claude/settings.local.json", "your own settings"),
    (".claude/agents", "agents"),
    (".claude/skills", "skills"),
    (".claude/commands", "commands"),
    (".claude/rules", "rules"),
    (".centurion/settings.json", "settings of the project"),
    (".mcp.json", "MCP servers"),
];

/// Files that tell how a project is built, with the commands that they mean.
const KINDS: [(&str, &str, &[&str]); 6] = [
    ("Cargo.toml", "Rust", &["cargo build", "cargo test", "cargo clippy --all-targets"]),
    ("package.json", "Node.js", &["npm install", "npm test"]),
    ("pyproject.toml", "Python", &["python -m pytest"]),
    ("go.mod", "Go", &["go build ./...", "go test ./..."]),
    ("Makefile", "make", &["make", "make test"]),
    ("pom.xml", "Java", &["mvn test"]),
];

pub(crate) fn run(args: &InitArgs) -> anyhow::Result<ExitCode> {
    let surroundings = Surroundings::observe()?;
    let root = repo_root(&surroundings.cwd).unwrap_or_else(|| surroundings.cwd.clone());
    let mut text = String::new();
    let found: Vec<_> = READ.iter().filter(|(name, _)| root.join(name).exists()).collect();
    if found.is_empty() {
        let _ = writeln!(text, "{}: nothing of this project is read yet", root.display());
    } else {
        let _ = writeln!(text, "Read in {}:", root.display());
        for (name, what) in found {
            let _ = writeln!(text, "  {name}  ({what})");
        }
        text.push_str("What loosens rules or runs programs counts once you trust the folder: centurion trust\n");
    }
    let path = root.join(FILE);
    let draft = draft(&root);
    if path.exists() {
        let _ = writeln!(text, "\n{FILE} is there, and stays as it is.");
    } else if args.dry_run {
        let _ = writeln!(text, "\nThis would be {FILE}:\n\n{draft}");
    } else {
        create(&path, draft.as_bytes())
            .with_context(|| format!("{} cannot be written", path.display()))?;
        let _ = writeln!(
            text,
            "\nWritten: {}. Change it as you like: every agent reads it.",
            path.display()
        );
    }
    Output::default().write_text(&text);
    Ok(ExitCode::SUCCESS)
}

/// The draft: what the files of a project tell for certain, and headings for what only people know.
fn draft(root: &Path) -> String {
    let name = root.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut text = format!("# {name}\n\nWhat this project is for: …\n\n## Commands\n\n");
    let kinds = KINDS.iter().filter(|(file, ..)| root.join(file).exists());
    let mut is_known = false;
    for (_, kind, commands) in kinds {
        is_known = true;
        for command in *commands {
            let _ = writeln!(text, "- `{command}` ({kind})");
        }
    }
    if !is_known {
        text.push_str("- build: …\n- test: …\n");
    }
    text.push_str("\n## Where things are\n\n");
    let mut folders: Vec<String> = std::fs::read_dir(root)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| {
            !name.starts_with('.') && !matches!(name.as_str(), "target" | "node_modules")
        })
        .collect();
    folders.sort();
    for folder in folders.iter().take(20) {
        let _ = writeln!(text, "- `{folder}/`: …");
    }
    text.push_str("\n## Rules\n\n- …\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_draft_has_the_commands_that_files_tell_of() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().join("shop");
        std::fs::create_dir_all(root.join("src")).unwrap();
        std::fs::create_dir_all(root.join(".git")).unwrap();
        std::fs::write(root.join("Cargo.toml"), "").unwrap();
        let draft = draft(&root);
        assert!(
            draft.starts_with("# shop\n") && draft.contains("- `cargo test` (Rust)"),
            "{draft}"
        );
        assert!(draft.contains("- `src/`") && !draft.contains(".git"), "{draft}");
    }
}
