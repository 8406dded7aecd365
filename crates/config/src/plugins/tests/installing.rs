//! Plugins and marketplaces are put into our directory and taken out again.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};

use super::*;

const OURS: &str = "home/.centurion/plugins";

fn install(machine: &Machine, from: &str, id: &str) -> Result<Installed, StoreError> {
    let (id, from): (PluginId, _) = (id.parse().unwrap(), machine.path(from));
    let installation = Installation {
        id: &id,
        from: &from,
        entry: None,
        commit: None,
        scope: InstallScope::User,
        project: None,
    };
    machine.stores().install(&installation, &Later)
}

fn list(machine: &Machine) -> Value {
    serde_json::from_str(&machine.read(&format!("{OURS}/installed_plugins.json"))).unwrap()
}

#[test]
fn a_plugin_is_copied_noted_replaced_and_removed() {
    let machine = Machine::new();
    machine.plugin("src", "kit", "1.0");
    let first = install(&machine, "src", "kit@local").unwrap();
    let root = machine.path(&format!("{OURS}/cache/local/kit/1.0"));
    assert_eq!((&first.plugin.root, first.problems.len()), (&root, 0));
    let record = &list(&machine)["plugins"]["kit@local"][0];
    assert_eq!(record["scope"], "user");
    assert_eq!(record["installPath"], root.display().to_string());
    assert_eq!(record["installedAt"], "2100-01-01T00:00:00Z");
    let mode = fs::metadata(machine.path(&format!("{OURS}/installed_plugins.json"))).unwrap();
    assert_eq!(mode.permissions().mode() & 0o777, 0o600);
    // The same version again, with other contents.
    fs::remove_file(machine.path("src/agents/helper.md")).unwrap();
    machine.write("src/agents/other.md", "---\ndescription: d\n---\nx\n");
    install(&machine, "src", "kit@local").unwrap();
    assert_eq!(agent_names(&machine.load(&[])), ["kit:other"]);
    machine.plugin("src", "kit", "2.0");
    let second = install(&machine, "src", "kit@local").unwrap().plugin;
    assert_eq!(machine.load(&[]).enabled[0].manifest().version.as_deref(), Some("2.0"));
    assert_eq!(list(&machine)["plugins"]["kit@local"].as_array().unwrap().len(), 1);
    let left: Vec<_> = fs::read_dir(root.parent().unwrap()).unwrap().collect();
    assert_eq!(left.len(), 2, "nothing but the two versions: {left:?}");
    machine.stores().uninstall(&second).unwrap();
    assert_eq!(list(&machine), json!({"plugins": {}}));
    assert!(!root.parent().unwrap().exists());
    machine.stores().uninstall(&second).unwrap();
}

#[test]
fn what_is_no_plugin_leaves_nothing_behind() {
    let machine = Machine::new();
    machine.write("src/plugin.json", "{\n\"name\": 1}");
    let error = install(&machine, "src", "kit@local").unwrap_err().to_string();
    assert!(error.contains("plugin.json:2: `name` must be text"), "{error}");
    assert!(!machine.path(&format!("{OURS}/installed_plugins.json")).exists());
    let home = machine.path(&format!("{OURS}/cache/local/kit"));
    assert_eq!(fs::read_dir(home).unwrap().count(), 0);
    assert!(install(&machine, "nowhere", "kit@local").is_err());
    machine.write("evil/plugin.json", r#"{"name": "kit", "version": "../../../../../x"}"#);
    let root = install(&machine, "evil", "kit@local").unwrap().plugin.root;
    assert!(root.starts_with(machine.path(&format!("{OURS}/cache/local/kit"))), "{root:?}");
}

#[test]
fn a_plugin_may_be_installed_for_a_project_and_for_the_user() {
    let machine = Machine::new();
    machine.plugin("src", "kit", "1.0");
    let user = install(&machine, "src", "kit@local").unwrap().plugin;
    let project = machine.path("repo");
    machine.plugin("src", "kit", "2.0");
    let (id, from) = ("kit@local".parse().unwrap(), machine.path("src"));
    let installation = Installation {
        id: &id,
        from: &from,
        entry: None,
        commit: Some("0123456789abcdef".to_owned()),
        scope: InstallScope::Project,
        project: Some(&project),
    };
    let of_project = machine.stores().install(&installation, &Later).unwrap().plugin;
    assert_eq!(list(&machine)["plugins"]["kit@local"][1]["gitCommitSha"], "0123456789abcdef");
    let version =
        |machine: &Machine| machine.load(&[]).enabled[0].manifest().version.clone().unwrap();
    assert_eq!(version(&machine), "2.0", "the project's own goes first");
    machine.stores().uninstall(&of_project).unwrap();
    assert_eq!(version(&machine), "1.0");
    machine.stores().uninstall(&user).unwrap();
    assert!(machine.load(&[]).enabled.is_empty());
}

#[test]
fn a_marketplace_speaks_for_a_plugin_without_a_manifest() {
    let machine = Machine::new();
    machine.write("src/one/SKILL.md", "---\ndescription: d\n---\nx\n");
    machine.write(
        "market/.claude-plugin/marketplace.json",
        r#"{"name": "tools", "plugins": [{"name": "docs", "source": "./src", "strict": false,
            "description": "Documents", "skills": ["./one"]}]}"#,
    );
    let marketplace = Marketplace::read(&machine.path("market")).unwrap();
    let (id, from) = ("docs@tools".parse().unwrap(), machine.path("src"));
    let installation = Installation {
        id: &id,
        from: &from,
        entry: marketplace.find("docs"),
        commit: Some("0123456789abcdef0123".to_owned()),
        scope: InstallScope::User,
        project: None,
    };
    let installed = machine.stores().install(&installation, &Later).unwrap();
    assert_eq!(installed.plugin.version, "0123456789ab");
    let catalog = machine.load(&[]);
    assert_eq!(catalog.enabled[0].manifest().description.as_deref(), Some("Documents"));
    assert!(skills(&catalog).find("docs:one").is_some());
}

#[test]
fn marketplaces_are_kept_and_forgotten() {
    let machine = Machine::new();
    let stores = machine.stores();
    let source = MarketplaceSource::parse("owner/repo#v1", Path::new("/")).unwrap();
    let fetched = stores.fetching_place("x").unwrap();
    fs::create_dir_all(fetched.join("inside")).unwrap();
    let location = stores.keep_marketplace("tools", &source, Some(&fetched), &Later).unwrap();
    assert!(location.join("inside").is_dir() && !fetched.exists());
    let known = stores.contents();
    assert_eq!(known.marketplace("tools").unwrap().source, source);
    assert_eq!(known.marketplace("tools").unwrap().location, location);
    // Again, with other contents.
    fs::create_dir_all(&fetched).unwrap();
    stores.keep_marketplace("tools", &source, Some(&fetched), &Later).unwrap();
    assert!(location.is_dir() && !location.join("inside").exists());
    let here = MarketplaceSource::Directory(machine.path("repo"));
    stores.keep_marketplace("here", &here, None, &Later).unwrap();
    for name in ["../evil", "local", ""] {
        assert!(stores.keep_marketplace(name, &here, None, &Later).is_err(), "{name}");
        assert!(stores.forget_marketplace(name).is_err(), "{name}");
    }
    stores.forget_marketplace("tools").unwrap();
    stores.forget_marketplace("here").unwrap();
    assert!(stores.contents().marketplaces.is_empty());
    assert!(!location.exists() && machine.path("repo").is_dir());
}
