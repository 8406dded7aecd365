//! Programs that git runs by itself in a work tree: those that the configuration of the repository names, those that the
//! configuration of a repository in its index names, and the hook that even a command that only reads sets off.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::configuration::{self, Setting};
use super::index::gitlinks;
use crate::files;
use crate::paths::main_checkout;
use crate::trust::{Lookup, NamedFiles, PowerItem, named_files};

/// The most repositories within a work tree that are looked into.
const MOST_REPOSITORIES: usize = 2_000;

/// Git runs this one when it has looked at the times of files, as `git status` does.
const HOOK: &str = "post-index-change";

/// The largest hook that is read.
const LARGEST_HOOK: u64 = 1024 * 1024;

/// The programs that git may run without being told to.
#[derive(Clone, Debug, Default)]
pub(crate) struct GitPrograms {
    pub(crate) items: Vec<PowerItem>,
    /// Whether all of it was seen.
    pub(crate) is_whole: bool,
}

/// The programs that git may run at the top of a work tree.
pub(crate) fn git_programs(root: &Path, home: Option<&Path>) -> GitPrograms {
    let mut items = Vec::new();
    let mut seen = BTreeSet::new();
    let mut waiting = vec![root.to_owned()];
    let mut is_whole = true;
    while let Some(work_tree) = waiting.pop() {
        if seen.len() >= MOST_REPOSITORIES {
            is_whole = false;
            break;
        }
        if !seen.insert(work_tree.clone()) || work_tree.join(".git").symlink_metadata().is_err() {
            continue;
        }
        let mut found = of_work_tree(&work_tree, root, home);
        items.append(&mut found.items);
        is_whole &= found.is_whole;
        let own = configuration::directories(&work_tree).paths.into_iter().next();
        match own.and_then(|own| gitlinks(&own)) {
            Some(links) => waiting.extend(links.iter().map(|link| work_tree.join(link))),
            None => is_whole = false,
        }
    }
    GitPrograms { items, is_whole }
}

fn of_work_tree(work_tree: &Path, root: &Path, home: Option<&Path>) -> GitPrograms {
    let main = main_checkout(root);
    // A worktree has the configuration of its checkout, and is accepted as that one.
    let normal = |file: &Path| {
        let file = without_links(file);
        match main.as_deref().and_then(|main| file.strip_prefix(main).ok()) {
            Some(rest) => root.join(rest),
            None => file,
        }
    };
    let of_setting = |setting: &Setting| {
        let text = std::slice::from_ref(&setting.value);
        PowerItem::of_commands(
            &normal(&setting.file),
            format!("git {}", setting.key),
            text,
            work_tree,
        )
    };
    let own = configuration::of_repository(work_tree, home);
    let users = home.map(configuration::of_user).unwrap_or_default();
    let is_whole = !own.is_cut && !users.is_cut;
    let (own, users) = (own.settings, users.settings);
    // Missing objects are fetched from there.
    let fetches = own.iter().any(Setting::fetches);
    let runs = |it: &&Setting| !it.is_plain() || fetches && it.is_address();
    // The user's own counts where it leads into the work tree.
    let leads_here = |setting: &&Setting| {
        setting.file.starts_with(root) || !named(setting, work_tree, root, home).present.is_empty()
    };
    let running = own.iter().chain(users.iter().filter(leads_here)).filter(runs);
    let mut items: Vec<PowerItem> = running.map(of_setting).collect();
    for directory in hook_directories(work_tree, own.iter().chain(&users), home) {
        let file = directory.join(HOOK);
        let is_users = !file.starts_with(root) && home.is_some_and(|home| file.starts_with(home));
        if file.symlink_metadata().is_ok() && !is_users {
            let text = files::read(&file, LARGEST_HOOK).1.ok().flatten();
            let text = text.unwrap_or_else(|| "(it cannot be read)".to_owned());
            let name = format!("git hook {HOOK}");
            items.push(PowerItem::of_commands(&normal(&file), name, &[text], work_tree));
        }
    }
    GitPrograms { items, is_whole }
}

/// The directories in which git looks for hooks: each that a file names, and git's own.
fn hook_directories<'s>(
    work_tree: &Path,
    settings: impl Iterator<Item = &'s Setting>,
    home: Option<&Path>,
) -> Vec<PathBuf> {
    let named = settings.filter(|setting| setting.is_hooks_path()).map(|setting| {
        work_tree.join(
            configuration::in_home(&setting.value, home)
                .unwrap_or_else(|| PathBuf::from(&setting.value)),
        )
    });
    let own = configuration::directories(work_tree).paths.into_iter().map(|it| it.join("hooks"));
    named.chain(own).collect()
}

/// The file that a setting names below a directory.
fn named(setting: &Setting, work_tree: &Path, root: &Path, home: Option<&Path>) -> NamedFiles {
    let directory = setting.file.parent().unwrap_or(root);
    let lookup = Lookup { places: &[directory, work_tree], root, home };
    named_files(std::slice::from_ref(&setting.value), &lookup)
}

/// The files in the work tree that its configuration, or the user's, names: programs, more configuration, and the
/// directories of hooks, whether they are there or not.
pub fn named_by_configuration(work_tree: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let own = configuration::of_repository(work_tree, home).settings;
    let users = home.map(configuration::of_user).unwrap_or_default().settings;
    let mut all: BTreeSet<PathBuf> = BTreeSet::new();
    for setting in own.iter().chain(&users) {
        all.insert(without_links(&setting.file));
        all.extend(setting.included(home).map(|file| without_links(&file)));
        if setting.is_plain() || setting.is_hooks_path() {
            continue;
        }
        let files = named(setting, work_tree, work_tree, home);
        all.extend(files.present.into_iter().chain(files.missing));
    }
    // A directory in the work tree, and not the one that git has by itself.
    let git = work_tree.join(".git");
    for directory in hook_directories(work_tree, own.iter().chain(&users), home) {
        // A hook is often a link to a script.
        let entries = std::fs::read_dir(&directory).into_iter().flatten().flatten();
        let links = entries.filter(|it| it.file_type().is_ok_and(|kind| kind.is_symlink()));
        all.extend(links.filter_map(|link| link.path().canonicalize().ok()));
        all.insert(without_links(&directory));
    }
    all.retain(|path| path.starts_with(work_tree) && !path.starts_with(&git));
    all.into_iter().collect()
}

/// The place of a file, with the directory above it as it really is.
fn without_links(file: &Path) -> PathBuf {
    let mut missing = Vec::new();
    let mut at = file;
    loop {
        if let Ok(real) = at.parent().unwrap_or(Path::new("/")).canonicalize() {
            let name = at.file_name().map(PathBuf::from).unwrap_or_default();
            let mut path = real.join(name);
            path.extend(missing.iter().rev());
            return path;
        }
        let (Some(name), Some(parent)) = (at.file_name(), at.parent()) else {
            return file.to_owned();
        };
        missing.push(name);
        at = parent;
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Marks the machine of these tests.
    struct ProgramTests;

    type Machine = crate::testing::Machine<ProgramTests>;

    impl Machine {
        fn new() -> Self {
            Self::with(|_| ProgramTests)
        }

        fn shell(&self, directory: &str, script: &str) -> std::process::Output {
            let marker = self.path("marker");
            let mut bash = std::process::Command::new("bash");
            bash.args(["-c", script]).current_dir(self.path(directory)).env("MARKER", &marker);
            bash.env("EV", format!("touch {}; false", marker.display()));
            bash.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", self.path("none"));
            bash.output().unwrap()
        }

        /// A repository with another one in it, which its index lists: git looks into both.
        fn nested_repository(&self) -> PathBuf {
            let root = self.path("p");
            fs::create_dir_all(root.join("zub")).unwrap();
            let own = "git init -q . && git config user.email a@b && git config user.name n && \
                       echo q > q && git add q && git commit -qm z";
            assert!(self.shell("p", own).status.success());
            assert!(self.shell("p/zub", own).status.success());
            let link = "git update-index --add --cacheinfo 160000,$(git -C zub rev-parse HEAD),zub";
            assert!(self.shell("p", link).status.success());
            let found = git_programs(&root, None);
            assert!(found.items.is_empty() && found.is_whole, "{found:?}");
            root
        }

        fn named(&self, work_tree: &str) -> Vec<String> {
            let work_tree = self.path(work_tree);
            let named = named_by_configuration(&work_tree, Some(&self.path("home")));
            let name = |it: &PathBuf| it.strip_prefix(&work_tree).unwrap().display().to_string();
            named.iter().map(name).collect()
        }
    }

    #[test]
    fn whatever_a_configuration_names_in_the_work_tree_is_found() {
        let machine = Machine::new();
        for name in ["tools/filter.sh", ".githooks/pre-commit", "main", "monitor", "view", "see"] {
            machine.write(&format!("p/{name}"), "");
        }
        machine.write("p/shared.gitconfig", "[core]fsmonitor = ./monitor\n");
        machine.write("p/users.gitconfig", "[filter \"u\"] smudge = ./absent.sh\n");
        machine.write(
            "home/.gitconfig",
            format!("[include]\npath = {}\n", machine.path("p/users.gitconfig").display()),
        );
        machine.write(
            "p/.git/config",
            "[include]\n\tpath = ../shared.gitconfig\n[core]\n\thooksPath = .githooks\n\
             [filter \"x\"]\n\tclean = \"tools/filter.sh %f\"\n[branch \"main\"]\n\tremote = origin\n\
             [pager]\n\tlog = ./vi\\\new ; for long ones\n[interactive] diffFilter=./see\n",
        );
        assert_eq!(
            machine.named("p"),
            [
                ".githooks",
                "absent.sh",
                "monitor",
                "see",
                "shared.gitconfig",
                "tools/filter.sh",
                "users.gitconfig",
                "view"
            ]
        );
        // The same from a worktree of it.
        machine.write("p/.git/worktrees/wt/commondir", "../..\n");
        let gitdir = machine.path("p/.git/worktrees/wt");
        machine.write("p/wt/.git", format!("gitdir: {}\n", gitdir.display()));
        machine.write("p/wt/view", "");
        let found = machine.named("p/wt");
        assert!(
            found.contains(&".githooks".to_owned()) && found.contains(&"view".to_owned()),
            "{found:?}"
        );
    }

    #[test]
    fn what_a_configuration_says_of_other_things_names_nothing() {
        let machine = Machine::new();
        for name in ["README.md", "main", "a", "status"] {
            machine.write(&format!("p/{name}"), "");
        }
        machine.write(
            "p/.git/config",
            "[remote \"origin\"]\nurl = ./README.md\nfetch = +refs/heads/*:refs/remotes/origin/*\n\
             [branch \"main\"]\nremote = origin\nmerge = refs/heads/main\n[user]\nname = a\n\
             [alias]\nst = status\n[core]\nfsmonitor = true\nbare = false\n",
        );
        assert_eq!(machine.named("p"), Vec::<String>::new());
        assert!(git_programs(&machine.path("p"), None).items.is_empty());
        // A pattern is no list of programs.
        machine.write("p/.git/config", "[x]\ny = see a*\n");
        assert_eq!(machine.named("p"), Vec::<String>::new());
    }

    /// Ways to let `git status` run something, or reach somewhere, that a reader of its files might not see: each is
    /// carried out by the real git first.
    #[test]
    fn whatever_git_status_runs_is_seen_or_said_to_be_unseen() {
        const PLANTS: [(&str, &str); 10] = [
            ("plain", "git config core.fsmonitor \"$EV\""),
            (
                "large",
                "git config core.fsmonitor \"$EV\"; head -c 1200000 /dev/zero | tr '\\0' '#' >> .git/config; \
                 echo >> .git/config",
            ),
            (
                "blank",
                "cp -r .git 'evil '; mv .git evil; git --git-dir='evil ' config core.fsmonitor \"$EV\"; \
                 echo 'gitdir: evil ' > .git",
            ),
            (
                "long",
                "mv .git evil; git --git-dir=evil config core.fsmonitor \"$EV\"; \
                 { echo 'gitdir: evil'; head -c 70000 /dev/zero | tr '\\0' '\\n'; } > .git",
            ),
            (
                "return",
                "cp -r .git evil; git --git-dir=evil config core.fsmonitor \"$EV\"; \
                 printf '../evil\\r\\n' > .git/commondir",
            ),
            (
                "user",
                "git config -f evil.cfg core.fsmonitor \"$EV\"; \
                 git config include.path \"~$(id -un)/$(realpath --relative-to ~ \"$PWD\")/evil.cfg\"",
            ),
            (
                "end of gitdir",
                "mv .git evil; git --git-dir=evil config core.fsmonitor \"$EV\"; \
                 printf 'gitdir: evil\\0more\\n' > .git",
            ),
            (
                "end of commondir",
                "cp -r .git evil; git --git-dir=evil config core.fsmonitor \"$EV\"; \
                 printf '../evil\\0more\\n' > .git/commondir",
            ),
            (
                "end of include",
                "git config -f evil.cfg core.fsmonitor \"$EV\"; \
                 printf '[include]\\npath = ../evil.cfg\\0more\\n' >> .git/config",
            ),
            (
                "bytes",
                "d=$(printf 'ev\\377il'); cp -r .git \"$d\"; mv .git old; \
                 git --git-dir=\"$d\" config core.fsmonitor \"$EV\"; printf 'gitdir: %s\\n' \"$d\" > .git",
            ),
        ];
        for (name, plant) in PLANTS {
            let machine = Machine::new();
            let root = machine.nested_repository();
            machine.shell("p/zub", plant);
            machine.shell("p", "git status");
            assert!(machine.path("marker").exists(), "{name}: git did not run it");
            let found = git_programs(&root, None);
            assert!(!found.items.is_empty() || !found.is_whole, "{name} is not seen");
        }
    }

    #[test]
    fn a_repository_that_fetches_what_is_missing_is_seen() {
        let machine = Machine::new();
        let root = machine.nested_repository();
        let plant = "git clone -q --bare . ../../other && git config core.repositoryformatversion 1 && \
                     git config extensions.partialClone o && git config remote.o.url ../../other && \
                     git config remote.o.promisor true && \
                     t=$(git rev-parse 'HEAD^{tree}') && rm -f .git/objects/${t:0:2}/${t:2}";
        assert!(machine.shell("p/zub", plant).status.success());
        let there = "GIT_NO_LAZY_FETCH=1 git cat-file -e 'HEAD^{tree}'";
        assert!(!machine.shell("p/zub", there).status.success());
        machine.shell("p", "git status");
        assert!(machine.shell("p/zub", there).status.success(), "git fetched nothing");
        let found = git_programs(&root, None);
        let names: Vec<&str> = found.items.iter().map(|item| item.name.as_str()).collect();
        assert_eq!(
            names,
            ["git extensions.partialclone", "git remote.o.url", "git remote.o.promisor"]
        );
    }

    #[test]
    fn an_entry_of_the_index_whose_length_is_told_otherwise_is_not_believed() {
        let machine = Machine::new();
        let root = machine.path("p");
        fs::create_dir_all(&root).unwrap();
        let git = |arguments: &[&str]| {
            let output =
                std::process::Command::new("git").args(arguments).current_dir(&root).output();
            assert!(output.unwrap().status.success(), "{arguments:?}");
        };
        git(&["init", "-q", "."]);
        let entry = format!("160000,{},zubXYZ", "1".repeat(40));
        git(&["update-index", "--add", "--cacheinfo", &entry]);
        assert!(git_programs(&root, None).is_whole);
        let index = root.join(".git/index");
        let mut bytes = fs::read(&index).unwrap();
        let at = bytes.windows(6).position(|it| it == b"zubXYZ").unwrap();
        bytes[at - 1] = 4;
        fs::write(&index, bytes).unwrap();
        assert!(!git_programs(&root, None).is_whole);
    }

    #[test]
    fn where_hooks_that_are_links_lead_is_found() {
        let machine = Machine::new();
        machine.write("p/scripts/check.sh", "");
        machine.write("p/scripts/other.sh", "");
        machine.write("p/.githooks/x", "");
        machine.write("p/.git/hooks/pre-push", "");
        machine.write(
            "p/.git/config",
            "[core]\nhooksPath = .githooks\n[include]\npath = ../missing.cfg\n",
        );
        let link = |to: &str, at: &str| {
            std::os::unix::fs::symlink(to, machine.path(at)).unwrap();
        };
        link("../../scripts/check.sh", "p/.git/hooks/pre-commit");
        link("../scripts/other.sh", "p/.githooks/commit-msg");
        let found = machine.named("p");
        for name in ["scripts/check.sh", "scripts/other.sh", ".githooks", "missing.cfg"] {
            assert!(found.contains(&name.to_owned()), "{name}: {found:?}");
        }
    }
}
