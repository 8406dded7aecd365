//! Files that sandboxed commands must not change even where they may write: those that make this program, or git, run
//! something later without a question.
//!
//! Existing files are found at any depth; at the top of a directory the places of missing ones are held, too.
//! Whatever a command manages to put elsewhere is off by itself: trust is of content.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use centurion_config::repository::named_by_configuration;
use centurion_sandbox::is_placeholder;

/// The most directories that are looked into, the nearest first.
const MOST_DIRECTORIES: usize = 5_000;

/// Directories of definitions.
const DEFINITIONS: [&str; 2] = [".claude", ".centurion"];

/// An agent's own worktrees, which it works in, among the definitions.
const WORKTREES: &str = "worktrees";

/// Entries that may lie among the definitions, beside worktrees; directories end with a slash.
const PARTS: [&str; 12] = [
    "agents/",
    "commands/",
    "hooks/",
    "loop.md",
    "output-styles/",
    "plugins/",
    "rules/",
    "scheduled_tasks.json",
    "settings.json",
    "settings.local.json",
    "skills/",
    "workflows/",
];

/// Entries in the directory of a repository that decide which programs git runs, and what is kept there of agents that
/// work apart: their repositories, and records by which worktrees are merged and removed. The rest of it changes with
/// every commit.
const GIT_PARTS: [&str; 6] =
    ["centurion/", "commondir", "config", "config.worktree", "hooks/", "info/attributes"];

/// Other things whose content runs, kept where they are there. Their missing places are free: programs that
/// commands run make some of them.
const OTHERS: [&str; 11] = [
    ".config/git",
    ".devcontainer",
    ".envrc",
    ".gitconfig",
    ".gitmodules",
    ".husky",
    ".idea",
    ".lefthook.yml",
    ".pre-commit-config.yaml",
    ".vscode",
    "lefthook.yml",
];

/// Files that shells run when they start and end. In the home directory, the missing ones are held as well.
pub(crate) const SHELL_FILES: [&str; 10] = [
    ".bash_aliases",
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".profile",
    ".zlogin",
    ".zprofile",
    ".zshenv",
    ".zshrc",
];

/// Whether missing places are held.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Held,
    Free,
}

/// All that is kept in these directories. `false` if there was too much to look through.
pub(crate) fn kept_paths(directories: &[PathBuf], home: Option<&Path>) -> (Vec<PathBuf>, bool) {
    let mut kept = KeptPaths { paths: Vec::new(), home };
    let mut is_whole = true;
    for directory in directories {
        kept.look_at(directory, Missing::Held);
        is_whole &= kept.look_below(directory);
    }
    kept.paths.sort();
    kept.paths.dedup();
    (kept.paths, is_whole)
}

struct KeptPaths<'a> {
    paths: Vec<PathBuf>,
    home: Option<&'a Path>,
}

impl KeptPaths<'_> {
    fn add(&mut self, path: PathBuf, missing: Missing) {
        if missing == Missing::Held || path.symlink_metadata().is_ok() {
            self.paths.push(path);
        }
    }

    fn look_at(&mut self, directory: &Path, missing: Missing) {
        for name in DEFINITIONS {
            self.definitions(&directory.join(name), missing);
        }
        self.add(directory.join(".mcp.json"), missing);
        for name in OTHERS {
            self.add(directory.join(name), Missing::Free);
        }
        let is_home = self.home.is_some_and(|home| is_same(directory, home));
        for name in SHELL_FILES {
            self.add(directory.join(name), if is_home { Missing::Held } else { Missing::Free });
        }
        let git = directory.join(".git");
        if is_there(&git) {
            self.paths.append(&mut named_by_configuration(directory, self.home));
        }
        match git.symlink_metadata().ok().filter(|_| is_there(&git)) {
            Some(metadata) if metadata.is_dir() => self.repository(&git, Missing::Held),
            // A file that leads to the repository, or a link.
            Some(_) => self.paths.push(git),
            None if missing == Missing::Held => {
                // A directory must not become a repository. With `HEAD` and two directories any directory is one: a
                // file in the place of one of these is enough. `HEAD` comes last, because git takes `HEAD` in
                // commands for that file.
                self.paths.extend(["commondir", "config", "hooks/"].map(|part| git.join(part)));
                let is_missing = |part: &PathBuf| !is_there(part);
                let parts = ["refs", "objects", "HEAD"].map(|part| directory.join(part));
                self.paths.extend(parts.into_iter().find(is_missing));
            }
            None => {}
        }
        if is_repository(directory) {
            self.repository(directory, Missing::Held);
        }
    }

    /// Directories of definitions are kept whole, unless agents work below them.
    fn definitions(&mut self, directory: &Path, missing: Missing) {
        if !directory.join(WORKTREES).is_dir() {
            // The slash says that a directory is missing, and no file.
            self.add(directory.join(""), missing);
            return;
        }
        for part in PARTS {
            self.add(directory.join(part), missing);
        }
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            if entry.file_name() != WORKTREES {
                self.paths.push(entry.path());
            }
        }
    }

    /// A directory of git, with those of its submodules and worktrees.
    fn repository(&mut self, git: &Path, missing: Missing) {
        for part in GIT_PARTS {
            self.add(git.join(part), missing);
        }
        for entry in fs::read_dir(git.join("worktrees")).into_iter().flatten().flatten() {
            for part in ["commondir", "gitdir", "config.worktree"] {
                self.add(entry.path().join(part), missing);
            }
        }
        self.modules(&git.join("modules"), 0);
    }

    /// The names of submodules are paths: their repositories lie at any depth.
    fn modules(&mut self, directory: &Path, depth: usize) {
        const DEEPEST: usize = 8;
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let path = entry.path();
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            if is_repository(&path) {
                self.repository(&path, Missing::Held);
            } else if depth < DEEPEST {
                self.modules(&path, depth + 1);
            }
        }
    }

    /// Looks for the same below a directory, the nearest first; says whether it saw all.
    fn look_below(&mut self, top: &Path) -> bool {
        let mut waiting = VecDeque::from([top.to_owned()]);
        let mut seen = 0;
        while let Some(directory) = waiting.pop_front() {
            seen += 1;
            if seen > MOST_DIRECTORIES {
                return false;
            }
            if directory != top {
                self.look_at(&directory, Missing::Free);
            }
            for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
                let name = entry.file_name();
                let is_kept = name == ".git" || DEFINITIONS.iter().any(|kept| name == *kept);
                let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
                // The worktrees of agents lie among the definitions.
                let worktrees = entry.path().join(WORKTREES);
                if is_dir && name != ".git" && is_kept && worktrees.is_dir() {
                    waiting.push_back(worktrees);
                }
                if is_dir && !is_kept && name != "node_modules" && !is_store(&directory, &name) {
                    waiting.push_back(entry.path());
                }
            }
        }
        true
    }
}

/// Whether something is there that does not only stand for what is missing, while another session's command runs.
fn is_there(path: &Path) -> bool {
    // A repository is one, whatever mode a command has given to it.
    path.symlink_metadata().is_ok() && (!is_placeholder(path) || path.join("HEAD").exists())
}

fn is_same(one: &Path, other: &Path) -> bool {
    one == other
        || one.canonicalize().is_ok_and(|one| other.canonicalize().is_ok_and(|it| it == one))
}

/// Whether a name in a directory is one under which git stores objects: there are many, and nothing else is in them.
/// What only looks like a repository is looked through all the same.
fn is_store(directory: &Path, name: &OsStr) -> bool {
    let is_prefix = |name: &[u8]| name.len() == 2 && name.iter().all(u8::is_ascii_hexdigit);
    directory.file_name() == Some(OsStr::new("objects"))
        && directory.parent().is_some_and(is_repository)
        && (is_prefix(name.as_encoded_bytes()) || name == "pack")
}

/// Whether a directory is one of git's: that is how git itself tells.
fn is_repository(directory: &Path) -> bool {
    directory.join("HEAD").symlink_metadata().is_ok()
        && directory.join("objects").is_dir()
        && directory.join("refs").is_dir()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(root: &Path) -> Vec<String> {
        let (paths, is_whole) = kept_paths(&[root.to_owned()], None);
        assert!(is_whole);
        // Names of directories keep their slash.
        let top = format!("{}/", root.display());
        let name = |path: &PathBuf| path.display().to_string().replacen(&top, "", 1);
        paths.iter().map(name).collect()
    }

    fn write(root: &Path, files: &[&str]) {
        for file in files {
            let path = root.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
    }

    #[test]
    fn places_at_the_top_are_held_even_where_nothing_is() {
        let scratch = tempfile::tempdir().unwrap();
        assert_eq!(
            kept(scratch.path()),
            [
                ".centurion/",
                ".claude/",
                ".git/commondir",
                ".git/config",
                ".git/hooks/",
                ".mcp.json",
                "refs"
            ]
        );
        fs::create_dir(scratch.path().join("refs")).unwrap();
        assert!(kept(scratch.path()).contains(&"objects".to_owned()));
        fs::create_dir(scratch.path().join("objects")).unwrap();
        assert!(kept(scratch.path()).contains(&"HEAD".to_owned()));
    }

    #[test]
    fn what_makes_git_run_something_is_kept_at_any_depth_and_the_rest_is_not() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path();
        let repository = |at: &str| {
            write(root, &[&format!("{at}/HEAD"), &format!("{at}/config"), &format!("{at}/index")]);
            fs::create_dir_all(root.join(at).join("objects")).unwrap();
            fs::create_dir_all(root.join(at).join("refs")).unwrap();
        };
        repository(".git");
        repository(".git/modules/lib/inner");
        repository("deep/er/.git");
        repository("mirror.git");
        write(root, &[".git/worktrees/w/gitdir", "tree/.git", "tree/src/x", ".husky/pre-commit"]);
        write(root, &["deep/.claude/settings.json", "deep/er/.mcp.json"]);
        assert_eq!(
            kept(root),
            [
                ".centurion/",
                ".claude/",
                ".git/centurion/",
                ".git/commondir",
                ".git/config",
                ".git/config.worktree",
                ".git/hooks/",
                ".git/info/attributes",
                ".git/modules/lib/inner/centurion/",
                ".git/modules/lib/inner/commondir",
                ".git/modules/lib/inner/config",
                ".git/modules/lib/inner/config.worktree",
                ".git/modules/lib/inner/hooks/",
                ".git/modules/lib/inner/info/attributes",
                ".git/worktrees/w/commondir",
                ".git/worktrees/w/config.worktree",
                ".git/worktrees/w/gitdir",
                ".husky",
                ".mcp.json",
                "deep/.claude/",
                "deep/er/.git/centurion/",
                "deep/er/.git/commondir",
                "deep/er/.git/config",
                "deep/er/.git/config.worktree",
                "deep/er/.git/hooks/",
                "deep/er/.git/info/attributes",
                "deep/er/.mcp.json",
                "mirror.git/centurion/",
                "mirror.git/commondir",
                "mirror.git/config",
                "mirror.git/config.worktree",
                "mirror.git/hooks/",
                "mirror.git/info/attributes",
                "tree/.git",
            ]
        );
    }

    #[test]
    fn what_configurations_name_is_kept_in_nested_repositories_and_before_it_is_there() {
        let scratch = tempfile::tempdir().unwrap();
        let root = &scratch.path().canonicalize().unwrap();
        write(root, &["bare/HEAD", "bare/objects/x", "bare/refs/x", "lib/tools/f.sh", "home/x"]);
        for name in [".git", "lib/.git"] {
            fs::create_dir_all(root.join(name)).unwrap();
            fs::write(
                root.join(name).join("config"),
                "[core]\n\thooksPath = .githooks ; ours\n[filter \"x\"]\n\tclean = \"d=tools; $d/f.sh\"\n\
                 [filter \"y\"]\n\tclean = ./later.sh\n",
            )
            .unwrap();
        }
        fs::write(root.join("home/.gitconfig"), "[core]\n\thooksPath = .mine\n").unwrap();
        let (kept, _) = kept_paths(std::slice::from_ref(root), Some(&root.join("home")));
        for part in [
            ".githooks",
            ".mine",
            "lib/.mine",
            "later.sh",
            "lib/.githooks",
            "lib/later.sh",
            "lib/tools/f.sh",
            "bare/commondir",
            "bare/hooks/",
        ] {
            assert!(kept.contains(&root.join(part)), "{part}: {kept:?}");
        }
    }

    #[test]
    fn what_another_session_holds_is_held_as_if_it_were_missing() {
        use std::os::unix::fs::PermissionsExt as _;
        let scratch = tempfile::tempdir().unwrap();
        let before = kept(scratch.path());
        fs::create_dir(scratch.path().join(".git")).unwrap();
        let ours = fs::Permissions::from_mode(0o1755);
        fs::set_permissions(scratch.path().join(".git"), ours).unwrap();
        assert_eq!(kept(scratch.path()), before);
    }

    #[test]
    fn what_lies_in_an_agents_worktree_is_kept_as_anywhere() {
        let scratch = tempfile::tempdir().unwrap();
        let worktree = ".claude/worktrees/w";
        let files = [".git", ".mcp.json", ".claude/settings.json", "src/x"];
        let files = files.map(|name| format!("{worktree}/{name}"));
        write(scratch.path(), &files.each_ref().map(String::as_str));
        let kept = kept(scratch.path());
        for part in [".git", ".mcp.json", ".claude/"] {
            assert!(kept.contains(&format!("{worktree}/{part}")), "{part}: {kept:?}");
        }
        assert!(!kept.iter().any(|it| it.contains("src")), "{kept:?}");
    }

    #[test]
    fn a_directory_that_only_looks_like_a_repository_hides_nothing() {
        let scratch = tempfile::tempdir().unwrap();
        write(scratch.path(), &["HEAD", "objects/k", "refs/k", "lib/.git/config", "lib/.mcp.json"]);
        let kept = kept(scratch.path());
        for part in ["lib/.git/config", "lib/.git/commondir", "lib/.git/hooks/", "lib/.mcp.json"] {
            assert!(kept.contains(&part.to_owned()), "{part}: {kept:?}");
        }
    }

    #[test]
    fn agents_work_in_their_worktrees_below_what_is_kept() {
        let scratch = tempfile::tempdir().unwrap();
        write(scratch.path(), &[".claude/worktrees/w/src/x", ".claude/odd.json"]);
        let kept = kept(scratch.path());
        assert!(
            !kept.iter().any(|path| path.contains("worktrees") || path == ".claude/"),
            "{kept:?}"
        );
        for part in PARTS.iter().chain(&["odd.json"]) {
            assert!(kept.contains(&format!(".claude/{part}")), "{part}: {kept:?}");
        }
    }
}
