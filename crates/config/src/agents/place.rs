//! The agents of any one directory or file, and what is wrong with them.

use std::path::{Path, PathBuf};

use centurion_protocol::World;

use super::definition::AgentSource;
use super::markdown::{AgentScope, FailedAgent, read_markdown};
use super::reading::{ReadAgent, Vocabulary};
use crate::scan::{FileChoice, Memo, ScanPlace};

/// The agents and problems of a place.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadPlace {
    pub agents: Vec<ReadAgent>,
    pub failed: Vec<FailedAgent>,
    /// Texts without frontmatter, which are no agents.
    pub others: Vec<PathBuf>,
}

/// Reads a file, or all Markdown below a directory, as it would be read in a project, or in a plugin if
/// it lies in the `agents` directory of one.
pub fn read_place(path: &Path, vocabulary: &Vocabulary, world: &dyn World) -> ReadPlace {
    let place = ScanPlace {
        root: path.to_owned(),
        within: None,
        pick: FileChoice::Markdown,
        owner: "place".to_owned(),
    };
    let visit = Memo::default()
        .visit(&place, world, |path, text| read_markdown(text, path, &scope_of(path), vocabulary));
    let mut read = ReadPlace::default();
    for refused in visit.refused {
        read.failed.push(FailedAgent {
            path: refused.path,
            line: None,
            reason: refused.reason,
            source: AgentSource::Project,
        });
    }
    for found in visit.found {
        match &*found.value {
            Ok(Some(agent)) => read.agents.push(agent.clone()),
            Ok(None) => read.others.push(found.path),
            Err(failed) => read.failed.push(failed.clone()),
        }
    }
    read
}

/// The owner of a file, by the folders around it.
fn scope_of(path: &Path) -> AgentScope {
    let above = path.ancestors().filter(|it| it.file_name().is_some_and(|it| it == "agents"));
    let plugin = above.filter_map(Path::parent).find(|root| is_plugin(root));
    match plugin.and_then(Path::file_name) {
        Some(name) => {
            let plugin = name.to_string_lossy().into_owned();
            AgentScope::Plugin { plugin, folders: Vec::new() }
        }
        None => AgentScope::Own(AgentSource::Project),
    }
}

/// Whether a directory is a plugin.
pub(crate) fn is_plugin(root: &Path) -> bool {
    [".claude-plugin/plugin.json", "plugin.json"].iter().any(|file| root.join(file).is_file())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use centurion_protocol::SystemWorld;

    use super::*;

    fn names(read: &ReadPlace) -> Vec<&str> {
        read.agents.iter().map(|agent| agent.definition.name.as_str()).collect()
    }

    #[test]
    fn a_directory_or_a_file_is_read_as_a_projects() {
        // D-40
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| scratch.path().join(name);
        fs::create_dir(at("sub")).unwrap();
        fs::write(at("a.md"), "---\nname: a\ndescription: b\n---\n").unwrap();
        fs::write(at("sub/b.md"), "---\ndescription: b\n---\n").unwrap();
        fs::write(at("README.md"), "# About\n").unwrap();
        fs::write(at("notes.txt"), "---\nname: c\n---\n").unwrap();
        let read = |path: &Path| read_place(path, &Vocabulary::default(), &SystemWorld);
        let all = read(scratch.path());
        assert_eq!(names(&all), ["a"]);
        assert_eq!(all.others, [at("README.md")]);
        let [failed] = all.failed.as_slice() else { panic!("{:?}", all.failed) };
        assert_eq!((&failed.path, failed.line), (&at("sub/b.md"), Some(2)));
        assert_eq!(names(&read(&at("a.md"))), ["a"]);
        assert_eq!(read(&at("sub/b.md")).failed, all.failed);
    }

    #[test]
    fn what_lies_in_a_plugin_needs_no_name() {
        // D-24, D-26
        let scratch = tempfile::tempdir().unwrap();
        for (root, manifest) in [("kit", "plugin.json"), ("set", ".claude-plugin/plugin.json")] {
            let root = scratch.path().join(root);
            fs::create_dir_all(root.join("agents")).unwrap();
            fs::create_dir_all(root.join(manifest).parent().unwrap()).unwrap();
            fs::write(root.join(manifest), "{}").unwrap();
            fs::write(root.join("agents/b.md"), "---\ndescription: b\n---\n").unwrap();
        }
        let read = read_place(scratch.path(), &Vocabulary::default(), &SystemWorld);
        assert_eq!((names(&read), read.failed.len()), (vec!["kit:b", "set:b"], 0));
    }
}
