//! Random edits of random things: none brings power that was not accepted.

use std::collections::BTreeSet;

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::folder::{FOLDER, Folder, agent, hook};
use super::*;

/// Something that a person or an attacker does in a folder.
#[derive(Clone, Debug)]
enum Edit {
    Settings { file: usize, allow: Vec<u8>, env: Option<u8>, hooks: Vec<u8> },
    Servers(Vec<(u8, u8)>),
    Agent { name: u8, command: u8 },
    Script { name: u8, content: u8 },
    Remove(usize),
}

const FILES: [&str; 6] = [
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".centurion/settings.json",
    ".mcp.json",
    ".claude/agents/a0.md",
    "s0.sh",
];

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let small = || 0..3_u8;
    let settings = (0..3_usize, vec(small(), 0..3), prop::option::of(small()), vec(small(), 0..3));
    let settings =
        settings.prop_map(|(file, allow, env, hooks)| Edit::Settings { file, allow, env, hooks });
    let edit = prop_oneof![
        settings,
        vec((small(), small()), 0..3).prop_map(Edit::Servers),
        (small(), small()).prop_map(|(name, command)| Edit::Agent { name, command }),
        (small(), small()).prop_map(|(name, content)| Edit::Script { name, content }),
        (0..FILES.len()).prop_map(Edit::Remove),
    ];
    vec(edit, 0..6)
}

impl Folder {
    fn apply(&self, edit: &Edit) {
        let command = |it: &u8| format!("./s{it}.sh");
        match edit {
            Edit::Settings { file, allow, env, hooks } => {
                let allow: Vec<String> = allow.iter().map(|it| format!("Bash(c{it})")).collect();
                // A name of its own: what another file covers comes to light when that one changes.
                let env = env.iter().map(|it| (format!("A{file}"), json!(it.to_string())));
                let hooks: Vec<Value> = hooks.iter().map(|it| hook(&command(it))).collect();
                let value = json!({
                    "permissions": {"allow": allow}, "env": Value::Object(env.collect()),
                    "hooks": {"Stop": hooks},
                });
                self.json(FILES[*file], &value);
            }
            Edit::Servers(servers) => {
                let server =
                    |(name, it): &(u8, u8)| (format!("m{name}"), json!({"command": command(it)}));
                self.servers_file(&Value::Object(servers.iter().map(server).collect()));
            }
            Edit::Agent { name, command: it } => {
                let name = format!("a{name}");
                self.write(&format!(".claude/agents/{name}.md"), &agent(&name, &command(it)));
            }
            Edit::Script { name, content } => {
                self.write(&format!("s{name}.sh"), &content.to_string());
            }
            Edit::Remove(file) => {
                let _ = fs::remove_file(self.machine.path(FOLDER).join(FILES[*file]));
            }
        }
    }

    /// Power with what its scripts say.
    fn spelled_out(&self) -> BTreeSet<String> {
        let script = |it: u8| {
            let path = self.machine.path(FOLDER).join(format!("s{it}.sh"));
            fs::read_to_string(path).unwrap_or_else(|_| "none".to_owned())
        };
        let spell = |power: String| {
            (0..3).fold(power, |power, it| {
                power.replace(&format!("s{it}.sh"), &format!("s{it}.sh={}", script(it)))
            })
        };
        self.power().into_iter().map(spell).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Content in force is accepted content, as far as it is still there.
    #[test]
    fn no_edit_after_trust_brings_power(before in edits(), after in edits()) {
        let mut folder = Folder::new();
        for edit in &before {
            folder.apply(edit);
        }
        prop_assert!(folder.power().is_empty(), "{:?}", folder.power());
        folder.grant();
        let accepted = folder.spelled_out();
        for edit in &after {
            folder.apply(edit);
            let now = folder.spelled_out();
            // A command that lost its script runs nothing.
            let gained = now.difference(&accepted).find(|it| !it.contains("=none"));
            prop_assert!(gained.is_none(), "{:?} gained {:?} over {:?}", edit, gained, accepted);
        }
        // Accepted again, all of it counts.
        folder.grant();
        prop_assert!(!folder.difference().unwrap().has_unaccepted());
        prop_assert!(folder.settings().unaccepted().is_empty());
    }
}
