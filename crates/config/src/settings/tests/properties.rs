//! Properties that hold for any files.

use std::collections::BTreeMap;
use std::fs;

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::*;
use super::{ALL, Machine, texts};

/// The contents of one file.
#[derive(Clone, Debug)]
struct Words {
    model: Option<u8>,
    env: BTreeMap<String, String>,
    allow: Vec<u8>,
    deny: Vec<u8>,
    is_broken: bool,
}

fn words() -> impl Strategy<Value = Words> {
    let env = btree_map("[A-C]", "[xy]?", 0..3);
    let rules = || vec(0..5_u8, 0..3);
    (any::<Option<u8>>(), env, rules(), rules(), prop::bool::weighted(0.1)).prop_map(
        |(model, env, allow, deny, is_broken)| Words { model, env, allow, deny, is_broken },
    )
}

impl Words {
    fn text(&self) -> String {
        let rules = |rules: &[u8]| rules.iter().map(|it| format!("R{it}")).collect::<Vec<_>>();
        let mut value = json!({
            "env": self.env,
            "permissions": {"allow": rules(&self.allow), "deny": rules(&self.deny)},
        });
        if let Some(model) = self.model {
            value["model"] = json!(model.to_string());
        }
        let end = if self.is_broken { "," } else { "" };
        format!("{value:#}{end}")
    }
}

/// Every file that needs no flag, with or without words.
fn machine(files: &[Option<Words>]) -> (Machine, Vec<(&'static str, &Words)>) {
    let machine = Machine::new();
    let mut written = Vec::new();
    let places = ALL.into_iter().filter(|place| !place.starts_with("flag"));
    for (place, words) in places.zip(files) {
        if let Some(words) = words {
            machine.write(place, words.text());
            written.push((place, words));
        }
    }
    written.retain(|(_, words)| !words.is_broken);
    (machine, written)
}

fn is_project(place: &str) -> bool {
    place.starts_with("home/repo/")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn any_files_merge_as_the_rules_say(files in vec(prop::option::weighted(0.6, words()), 11)) {
        let (machine, written) = machine(&files);
        for standing in [RepositoryTrust::Untrusted, RepositoryTrust::Partly, RepositoryTrust::Full] {
            let settings = Settings::load(machine.sources(), standing);
            let broken = files.iter().flatten().filter(|words| words.is_broken).count();
            prop_assert_eq!(settings.problems().count(), broken);
            let model = written.iter().find_map(|(_, words)| words.model).map(|it| it.to_string());
            prop_assert_eq!(settings.model().map(|it| it.value), model);
            // Denies count from everywhere, allows from a repository only with trust.
            let rule = |it: &u8| format!("R{it}");
            let denied: Vec<String> = written.iter().flat_map(|(_, it)| it.deny.iter().map(rule)).collect();
            prop_assert_eq!(texts(&settings.permissions().deny), denied);
            let may_allow = |place: &str| standing == RepositoryTrust::Full || !is_project(place);
            let allowed: Vec<String> = written
                .iter()
                .filter(|(place, _)| may_allow(place))
                .flat_map(|(_, it)| it.allow.iter().map(rule))
                .collect();
            prop_assert_eq!(texts(&settings.permissions().allow), allowed);
            let mut env = BTreeMap::new();
            for (place, words) in written.iter().rev() {
                if standing > RepositoryTrust::Untrusted || !is_project(place) {
                    env.extend(words.env.clone());
                }
            }
            let set = settings.env().into_iter().map(|(name, it)| (name.to_owned(), it.value.to_owned()));
            prop_assert_eq!(set.collect::<BTreeMap<_, _>>(), env);
        }
    }

    /// The choice of the file of a level that holds a rule makes no difference to the rules of that level.
    #[test]
    fn rules_do_not_depend_on_the_file_of_their_level(one in words(), two in words(), three in words()) {
        let rules = |order: [&Words; 3]| {
            let machine = Machine::new();
            for (index, words) in order.into_iter().enumerate() {
                let whole = Words { is_broken: false, ..words.clone() };
                machine.write(&format!("etc/managed-settings.d/{index}.json"), whole.text());
            }
            let settings = machine.load();
            let sorted = |rules: &[RuleText]| {
                let mut rules: Vec<String> = texts(rules).into_iter().map(str::to_owned).collect();
                rules.sort();
                rules
            };
            (sorted(&settings.permissions().allow), sorted(&settings.permissions().deny))
        };
        prop_assert_eq!(rules([&one, &two, &three]), rules([&three, &one, &two]));
        prop_assert_eq!(rules([&one, &two, &three]), rules([&two, &one, &three]));
    }

    /// The user's deny stands and nothing is allowed, whatever a repository writes.
    #[test]
    fn no_file_of_a_repository_takes_a_deny_away(bytes in hostile()) {
        let machine = Machine::new();
        machine.write("home/.claude/settings.json", r#"{"permissions": {"deny": ["Bash(rm *)"]}}"#);
        machine.write("home/repo/app/.claude/settings.json", &bytes);
        machine.write("home/repo/app/.centurion/settings.json", &bytes);
        let settings = machine.load();
        let user = |rule: &&RuleText| rule.origin.level == Level::User;
        prop_assert_eq!(settings.permissions().deny.iter().filter(user).count(), 1);
        prop_assert!(settings.permissions().allow.is_empty() && settings.env().is_empty());
        settings.keys();
    }
}

proptest! {
    // Each case waits for the disk.
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// A rule is added to any object, and nothing else changes.
    #[test]
    fn an_edit_changes_only_what_it_says(value in settings_json(), is_pretty: bool) {
        let machine = Machine::new();
        let text = if is_pretty { format!("{value:#}") } else { value.to_string() };
        machine.write("settings.json", text);
        let path = machine.path("settings.json");
        let file = SettingsFile::of_user(path.clone());
        add_rule(&file, RuleList::Deny, "New").unwrap();
        set_default_mode(&file, "plan").unwrap();
        let after: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        let mut expected = value;
        let permissions = expected.as_object_mut().unwrap().entry("permissions").or_insert(json!({}));
        let list = permissions.as_object_mut().unwrap().entry("deny").or_insert(json!([]));
        list.as_array_mut().unwrap().push(json!("New"));
        permissions["defaultMode"] = json!("plan");
        prop_assert_eq!(after, expected);
    }
}

/// Bytes, broken JSON, and JSON with known keys and any values.
fn hostile() -> impl Strategy<Value = Vec<u8>> {
    let keys = prop::sample::select(vec![
        "permissions",
        "allow",
        "deny",
        "env",
        "sandbox",
        "network",
        "hooks",
        "model",
        "fallbackModel",
        "availableModels",
        "agents",
        "defaultMode",
        "x",
        "",
        "permissions.allow",
    ]);
    let tree = json_leaf().prop_recursive(5, 40, 5, move |inner| {
        let members = vec((keys.clone(), inner.clone()), 0..5);
        prop_oneof![
            vec(inner, 0..5).prop_map(Value::from),
            members.prop_map(|members| members
                .into_iter()
                .map(|(name, it)| (name.to_owned(), it))
                .collect()),
        ]
    });
    prop_oneof![
        vec(any::<u8>(), 0..200),
        "[\\[\\]{}:,\"a0 \n]{0,60}".prop_map(String::into_bytes),
        tree.prop_map(|value| value.to_string().into_bytes()),
    ]
}

fn json_leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-zB(*){}\\[\\]\"\\\\ ,\n]{0,8}".prop_map(Value::from),
    ]
}

/// An object in which `permissions`, if it is there, has its right shape.
fn settings_json() -> impl Strategy<Value = Value> {
    let any_json = json_leaf().prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map("[a-z{\"]{1,4}", inner, 0..4)
                .prop_map(|members| members.into_iter().collect()),
        ]
    });
    let rules = || prop::option::of(vec("[a-z\\[\\]\"]{0,5}", 0..3));
    let permissions = (rules(), rules()).prop_map(|(allow, deny)| {
        let lists = [("allow", allow), ("deny", deny)];
        lists
            .into_iter()
            .filter_map(|(name, it)| Some((name.to_owned(), json!(it?))))
            .collect::<Value>()
    });
    let rest = btree_map("[a-z]{1,6}", any_json, 0..4);
    (rest, prop::option::of(permissions)).prop_map(|(rest, permissions)| {
        let permissions = permissions.map(|it| ("permissions".to_owned(), it));
        rest.into_iter().chain(permissions).collect()
    })
}
