//! Output styles: texts that say how the main agent answers, the program's own and those of people.

use std::collections::BTreeMap;
use std::path::Path;

use centurion_protocol::World;

use crate::ReadRules;
use crate::agents::{AgentSources, PROJECT_DIRS, PluginAgents};
use crate::frontmatter::{self, Grammar, Shape};
use crate::scan::{FileChoice, Memo, ScanPlace};

/// The directory of styles beside those of agents and skills.
const DIRECTORY: &str = "output-styles";

/// The name of no style at all.
pub const DEFAULT_STYLE: &str = "default";

const GRAMMAR: Grammar<'static> = Grammar {
    known: &["name", "description", "keep-coding-instructions", "force-for-plugin"],
    raw: &["name", "description"],
};

/// The program's own styles.
const BUILT_IN: [(&str, &str); 2] = [
    ("Explanatory", include_str!("output_styles/explanatory.md")),
    ("Learning", include_str!("output_styles/learning.md")),
];

/// One way of answering.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputStyle {
    pub name: String,
    pub description: String,
    /// Whether the rules for work on software stay in the prompt beside it.
    pub keeps_coding: bool,
    /// Whether it is in force while its plugin is switched on with all its power.
    pub is_forced: bool,
    pub text: String,
}

/// All styles by their names; of several with one name the strongest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutputStyles(BTreeMap<String, OutputStyle>);

impl OutputStyles {
    /// Reads the styles at the places where agents are, too: what the administrator manages is the strongest, then
    /// the project's, the nearest first, the user's, those of plugins, and the program's own.
    pub fn load(sources: &AgentSources, world: &dyn World) -> Self {
        let mut styles = Self::default();
        for (name, text) in BUILT_IN {
            styles.add(name, text, None);
        }
        let mut add = |root: &Path, within: Option<&Path>, plugin: Option<&PluginAgents>| {
            for (stem, text) in files(root, within, &sources.read_rules, world) {
                styles.add(&stem, &text, plugin);
            }
        };
        for plugin in &sources.plugins {
            add(&plugin.root.join(DIRECTORY), Some(&plugin.root), Some(plugin));
        }
        if sources.levels.user {
            for directory in &sources.config_dirs {
                add(&directory.join(DIRECTORY), None, None);
            }
        }
        if sources.levels.project {
            for folder in sources.folders.chain().iter().rev() {
                for name in PROJECT_DIRS {
                    let place = folder.path.join(name).join(DIRECTORY);
                    add(&place, Some(&folder.within), None);
                }
            }
        }
        if let Some(managed) = &sources.managed_dir {
            for name in PROJECT_DIRS {
                add(&managed.join(name).join(DIRECTORY), None, None);
            }
        }
        styles
    }

    /// The style that is in force where the settings name this one: a plugin's goes first if it says so.
    pub fn in_force(&self, named: Option<&str>) -> Option<&OutputStyle> {
        let forced = self.0.values().find(|style| style.is_forced);
        forced.or_else(|| self.find(named?))
    }

    /// The style of this name, in any case of letters.
    pub fn find(&self, name: &str) -> Option<&OutputStyle> {
        self.0.get(name).or_else(|| self.0.values().find(|it| it.name.eq_ignore_ascii_case(name)))
    }

    /// The names of all styles, with that of none.
    pub fn names(&self) -> Vec<String> {
        std::iter::once(DEFAULT_STYLE.to_owned()).chain(self.0.keys().cloned()).collect()
    }

    fn add(&mut self, stem: &str, text: &str, plugin: Option<&PluginAgents>) {
        let Ok(page) = frontmatter::read(text, &GRAMMAR) else { return };
        let members = page.frontmatter.map(|it| it.members).unwrap_or_default();
        let said = |key: &str| {
            let member = members.iter().find(|member| member.key == key)?;
            match &member.value.shape {
                Shape::Text(text) => Some(text.text.trim().to_owned()),
                _ => None,
            }
        };
        let is_on = |key: &str| said(key).is_some_and(|text| text.eq_ignore_ascii_case("true"));
        let text = page.body.trim().to_owned();
        if text.is_empty() {
            return;
        }
        // The name of a plugin's style has its plugin's before it, whatever it calls itself.
        let name = match plugin {
            Some(plugin) => format!("{}:{stem}", plugin.plugin),
            None => said("name").filter(|name| !name.is_empty()).unwrap_or_else(|| stem.to_owned()),
        };
        // A style may leave out rules of the prompt: a repository that is not trusted puts none in force.
        let may_force = |plugin: &PluginAgents| plugin.power.limit().is_none();
        let style = OutputStyle {
            description: said("description").unwrap_or_default(),
            keeps_coding: is_on("keep-coding-instructions"),
            is_forced: is_on("force-for-plugin") && plugin.is_some_and(may_force),
            text,
            name: name.clone(),
        };
        self.0.insert(name, style);
    }
}

/// The files of a place, each with its name without the ending.
fn files(
    root: &Path,
    within: Option<&Path>,
    rules: &ReadRules,
    world: &dyn World,
) -> Vec<(String, String)> {
    let place = ScanPlace {
        root: root.to_owned(),
        within: within.map(Path::to_owned),
        pick: FileChoice::Markdown,
        owner: String::new(),
    };
    let visit = Memo::under(rules).visit(&place, world, |_, text| text.to_owned());
    let named = |path: &Path| Some(path.file_stem()?.to_str()?.to_owned());
    let found = visit.found.into_iter();
    found.filter_map(|file| Some((named(&file.path)?, file.value.to_string()))).collect()
}

#[cfg(test)]
mod tests {
    use centurion_protocol::SeededWorld;

    use super::*;
    use crate::agents::ProjectFolders;
    use crate::testing::Machine;

    fn sources(machine: &Machine) -> AgentSources {
        AgentSources {
            managed_dir: Some(machine.path("managed")),
            folders: ProjectFolders {
                cwd: machine.path("repo/deep"),
                repository: Some(machine.path("repo")),
                ..ProjectFolders::default()
            },
            config_dirs: vec![machine.path("home/.claude")],
            ..AgentSources::default()
        }
    }

    #[test]
    fn the_nearest_style_of_a_name_counts() {
        let machine = Machine::with(|_| ());
        let load = || OutputStyles::load(&sources(&machine), &SeededWorld::new(1));
        assert_eq!(load().names(), ["default", "Explanatory", "Learning"]);
        let text = |styles: &OutputStyles| styles.find("Terse").unwrap().text.clone();
        for (place, body) in [
            ("home/.claude", "of the user"),
            ("repo/.claude", "of the project"),
            ("repo/deep/.claude", "nearer"),
            ("managed/.claude", "managed"),
        ] {
            machine.write(
                &format!("{place}/output-styles/terse.md"),
                format!("---\nname: Terse\n---\n{body}"),
            );
            assert_eq!(text(&load()), body);
        }
        let styles = load();
        assert!(styles.find("terse").is_some() && styles.in_force(None).is_none());
        assert_eq!(styles.in_force(Some("Learning")).unwrap().name, "Learning");
        assert!(styles.in_force(Some("default")).is_none());
    }

    #[test]
    fn a_style_of_a_plugin_has_its_name_before_it_and_may_be_forced() {
        let machine = Machine::with(|_| ());
        machine.write("kit/output-styles/a.md", "---\nname: Learning\nforce-for-plugin: true\nkeep-coding-instructions: true\n---\nspeak");
        machine.write(
            "repo/.claude/output-styles/b.md",
            "---\nforce-for-plugin: true\n---\nnever forced",
        );
        machine.write("repo/.claude/output-styles/empty.md", "---\nname: Nothing\n---\n\n");
        let mut sources = sources(&machine);
        let kit = PluginAgents {
            plugin: "kit".to_owned(),
            root: machine.path("kit"),
            ..PluginAgents::default()
        };
        sources.plugins.push(kit);
        let styles = OutputStyles::load(&sources, &SeededWorld::new(1));
        assert_eq!(styles.names(), ["default", "Explanatory", "Learning", "b", "kit:a"]);
        let forced = styles.in_force(Some("Learning")).unwrap();
        assert_eq!((forced.name.as_str(), forced.keeps_coding), ("kit:a", true));
    }
}
