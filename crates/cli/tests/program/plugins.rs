//! `centurion plugin`: plugins are added from directories and repositories, switched, checked and removed.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::host::Host;
use crate::program::{Ended, Program};
use crate::stage::Stage;

const AGENT: &str = "---\nname: code-reviewer\ndescription: Reviews code.\n---\nReview.\n";
const STORE: &str = ".centurion/plugins";

fn good(ended: Ended) -> String {
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    ended.stdout
}

/// The complaint of a command that must fail.
fn refused(ended: Ended) -> String {
    assert_eq!(ended.code, Some(1), "{}{}", ended.stdout, ended.stderr);
    ended.stderr
}

fn listed(program: &Program, arguments: &[&str]) -> Vec<Value> {
    let text = good(program.run(&[&["plugin", "list", "--json"], arguments].concat()));
    serde_json::from_str(&text).unwrap()
}

/// The id and the state of each plugin.
fn states(program: &Program) -> Vec<(String, String)> {
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    listed(program, &[]).iter().map(|it| (word(&it["id"]), word(&it["state"]))).collect()
}

fn state(id: &str, state: &str) -> (String, String) {
    (id.to_owned(), state.to_owned())
}

fn settings(program: &Program) -> Value {
    let path = program.scratch.home().join(".centurion/settings.json");
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// Runs git in a directory, as a user who has never heard of this program.
fn git(directory: &Path, arguments: &[&str]) {
    let output = Command::new("git")
        .args(["-c", "user.name=Ann", "-c", "user.email=ann@example.com"])
        .args(arguments)
        .current_dir(directory)
        .env_remove("GIT_DIR")
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A repository whose commits go to a bare one, which others fetch from.
struct Repository {
    work: PathBuf,
    bare: PathBuf,
}

impl Repository {
    fn new(program: &Program, name: &str) -> Self {
        let root = program.scratch.root().canonicalize().unwrap();
        let (work, bare) = (root.join(name), root.join(format!("{name}.git")));
        fs::create_dir(&work).unwrap();
        git(&root, &["init", "--quiet", "--bare", "--initial-branch=main", bare.to_str().unwrap()]);
        git(&work, &["init", "--quiet", "--initial-branch=main"]);
        git(&work, &["remote", "add", "origin", bare.to_str().unwrap()]);
        Self { work, bare }
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.work.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn push(&self) {
        git(&self.work, &["add", "--all"]);
        git(&self.work, &["commit", "--quiet", "--message", "change"]);
        git(&self.work, &["push", "--quiet", "origin", "main"]);
    }

    fn url(&self) -> String {
        format!("file://{}", self.bare.display())
    }
}

/// A marketplace in a repository, with one plugin beside it.
fn marketplace(program: &Program) -> Repository {
    let repository = Repository::new(program, "market");
    let listing = json!({
        "name": "tools", "owner": {"name": "Ann"},
        "plugins": [{"name": "my-plugin", "source": "./plugins/my-plugin"}],
    });
    repository.write(".claude-plugin/marketplace.json", &listing.to_string());
    let manifest = json!({"name": "my-plugin", "version": "1.0.0", "description": "Mine"});
    repository.write("plugins/my-plugin/plugin.json", &manifest.to_string());
    repository.write("plugins/my-plugin/agents/code-reviewer.md", AGENT);
    repository.push();
    repository
}

#[test]
fn a_plugin_of_a_repository_is_added_switched_updated_and_removed() {
    // S-073, S-080
    let program = Program::alone();
    let repository = marketplace(&program);
    let url = repository.url();
    let added = good(program.run(&["plugin", "marketplace", "add", &url]));
    assert!(added.contains("added marketplace `tools`") && added.contains("1 plugin"), "{added}");
    let known = program.scratch.home().join(STORE).join("known_marketplaces.json");
    assert_eq!(fs::metadata(&known).unwrap().permissions().mode() & 0o777, 0o600);
    let added = good(program.run(&["plugin", "install", "my-plugin@tools"]));
    assert!(added.contains("plugin `my-plugin@tools` is enabled"), "{added}");
    assert_eq!(settings(&program)["enabledPlugins"], json!({"my-plugin@tools": true}));
    let plugin = &listed(&program, &[])[0];
    assert_eq!(plugin["agents"], json!(["my-plugin:code-reviewer"]));
    assert_eq!((&plugin["version"], &plugin["power"]), (&json!("1.0.0"), &json!("full")));
    let root = program.scratch.home().canonicalize().unwrap().join(STORE);
    assert_eq!(plugin["root"], json!(root.join("cache/tools/my-plugin/1.0.0")));
    let text = good(program.run(&["plugin", "list"]));
    for part in ["my-plugin@tools 1.0.0: enabled", "  Mine\n", "brings 1 agent\n"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let off = good(program.run(&["plugin", "disable", "my-plugin"]));
    assert!(off.contains("is disabled: switched off in "), "{off}");
    assert_eq!(states(&program), [state("my-plugin@tools", "disabled")]);
    good(program.run(&["plugin", "enable", "my-plugin@tools"]));
    assert_eq!(states(&program), [state("my-plugin@tools", "enabled")]);
    let manifest = json!({"name": "my-plugin", "version": "2.0.0"});
    repository.write("plugins/my-plugin/plugin.json", &manifest.to_string());
    repository.push();
    let updated = good(program.run(&["plugin", "marketplace", "update"]));
    assert!(updated.contains("updated marketplace `tools`"), "{updated}");
    good(program.run(&["plugin", "add", "my-plugin"]));
    assert_eq!(listed(&program, &[])[0]["version"], "2.0.0");
    let held = refused(program.run(&["plugin", "marketplace", "remove", "tools"]));
    assert!(held.contains("plugins that are installed: my-plugin@tools"), "{held}");
    good(program.run(&["plugin", "uninstall", "my-plugin"]));
    assert_eq!(states(&program), []);
    assert_eq!(settings(&program)["enabledPlugins"], json!({}));
    assert!(!root.join("cache/tools/my-plugin").exists());
    good(program.run(&["plugin", "marketplace", "remove", "tools"]));
    assert_eq!(good(program.run(&["plugin", "marketplace", "list"])), "");
    assert!(!root.join("marketplaces/tools").exists());
}

#[test]
fn plugins_may_have_repositories_of_their_own() {
    let program = Program::alone();
    let own = Repository::new(&program, "own");
    own.write("deep/kit/agents/code-reviewer.md", AGENT);
    own.write("README.md", "about");
    own.push();
    let market = Repository::new(&program, "market");
    let source = |kind: &str, path: &str| json!({"source": kind, "url": own.url(), "path": path});
    let listing = json!({"name": "tools", "plugins": [
        {"name": "kit", "source": source("git-subdir", "deep/kit"), "description": "From within"},
        {"name": "whole", "source": {"source": "url", "url": own.url(), "ref": "main"}},
        {"name": "out", "source": source("git-subdir", "../..")},
        {"name": "shop", "source": {"source": "npm", "package": "shop"}},
    ]});
    market.write(".claude-plugin/marketplace.json", &listing.to_string());
    market.push();
    let added = program.run(&["plugin", "marketplace", "add", &market.url()]);
    assert!(added.stderr.contains("plugin `shop` is left out"), "{}", added.stderr);
    good(program.run(&["plugin", "add", "kit@tools"]));
    let kit = &listed(&program, &[])[0];
    assert_eq!(kit["agents"], json!(["kit:code-reviewer"]));
    assert_eq!(kit["description"], "From within", "the marketplace speaks for it");
    let root = kit["root"].as_str().unwrap();
    let version = root.rsplit('/').next().unwrap();
    assert!(version.len() == 12 && version.chars().all(|it| it.is_ascii_hexdigit()), "{version}");
    assert!(!Path::new(root).join(".git").exists());
    good(program.run(&["plugin", "add", "whole@tools"]));
    let out = refused(program.run(&["plugin", "add", "out@tools"]));
    assert!(out.contains("leads out of"), "{out}");
    let shop = refused(program.run(&["plugin", "add", "shop@tools"]));
    assert!(shop.contains("kind `npm` are not supported"), "{shop}");
    let place = program.scratch.home().join(STORE).join("marketplaces");
    let names: Vec<_> = fs::read_dir(place).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(names, ["tools"], "nothing half fetched is left");
}

#[test]
fn a_plugin_may_be_pinned_to_a_commit() {
    let program = Program::alone();
    let own = Repository::new(&program, "own");
    own.write("plugin.json", r#"{"name": "kit", "version": "1"}"#);
    own.push();
    let output =
        Command::new("git").args(["rev-parse", "HEAD"]).current_dir(&own.work).output().unwrap();
    let commit = String::from_utf8(output.stdout).unwrap();
    own.write("plugin.json", r#"{"name": "kit", "version": "2"}"#);
    own.push();
    let source = json!({"source": "url", "url": own.url(), "sha": commit.trim()});
    let listing = json!({"name": "tools", "plugins": [{"name": "kit", "source": source}]});
    program.scratch.write("market/.claude-plugin/marketplace.json", listing.to_string());
    good(program.run(&["plugin", "marketplace", "add", "./market"]));
    good(program.run(&["plugin", "add", "kit@tools"]));
    assert_eq!(listed(&program, &[])[0]["version"], "1");
}

#[test]
fn a_directory_is_added_for_a_scope_and_its_settings_stay_as_they_were() {
    // S-066, S-078, D-24
    let program = Program::alone();
    let manifest = r#"{"name": "my-plugin", "version": "1.0.0"}"#;
    program.scratch.write("my-plugin/plugin.json", manifest);
    program.scratch.write("my-plugin/agents/code-reviewer.md", AGENT);
    let before = "{\n\t\"model\" : \"haiku\",\n\t\"permissions\": {\"deny\": [ \"X\" ]}\n}\n";
    program.scratch.write(".claude/settings.local.json", before);
    let added = good(program.run(&["plugin", "add", "./my-plugin", "--scope", "local"]));
    assert!(added.contains("plugin `my-plugin@local` is enabled"), "{added}");
    let after = program.scratch.read(".claude/settings.local.json");
    assert!(after.starts_with(before.trim_end_matches("\n}\n")), "{after}");
    assert!(after.contains("\"my-plugin@local\": true"), "{after}");
    assert_eq!(states(&program), [state("my-plugin@local", "enabled")]);
    let removed = good(program.run(&["plugin", "remove", "my-plugin"]));
    assert!(removed.contains("removed plugin `my-plugin@local` (local)"), "{removed}");
    assert!(!program.scratch.read(".claude/settings.local.json").contains("my-plugin"));
    let again = refused(program.run(&["plugin", "remove", "my-plugin@local"]));
    assert!(again.contains("is not installed here"), "{again}");
}

#[test]
fn a_repository_alone_gives_no_power() {
    // D-9
    let program = Program::alone();
    program.scratch.write("kit/plugin.json", r#"{"name": "kit", "defaultEnabled": false}"#);
    program.scratch.write("kit/hooks/hooks.json", r#"{"Stop": []}"#);
    good(program.run(&["plugin", "add", "./kit", "--scope", "project"]));
    let limited = program.run(&["plugin", "list", "--json"]);
    assert!(limited.stderr.contains("this folder is not trusted"), "{}", limited.stderr);
    assert_eq!(listed(&program, &[])[0]["power"], "limited");
    good(program.run(&["trust", "grant"]));
    assert_eq!(listed(&program, &[])[0]["power"], "full");
}

#[test]
fn a_plugin_for_one_run_goes_before_what_is_installed() {
    // S-076
    let program = Program::alone();
    program.scratch.write("kit/plugin.json", r#"{"name": "kit", "version": "1"}"#);
    good(program.run(&["plugin", "add", "./kit"]));
    program.scratch.write("dev/plugin.json", r#"{"name": "kit", "version": "2"}"#);
    program.scratch.write("dev/agents/code-reviewer.md", AGENT);
    let plugins = listed(&program, &["--plugin-dir", "dev"]);
    assert_eq!((&plugins[0]["id"], &plugins[0]["version"]), (&json!("kit@inline"), &json!("2")));
    assert_eq!(plugins[1]["why"], "kit@inline has the same name");
}

#[test]
fn validate_says_what_is_wrong_with_file_and_line() {
    let program = Program::alone();
    program.scratch.write("good/.claude-plugin/plugin.json", r#"{"name": "good"}"#);
    program.scratch.write("good/agents/code-reviewer.md", AGENT);
    program.scratch.write("good/commands/run.md", "Run it.\n");
    let hooks = json!({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}});
    program.scratch.write("good/hooks/hooks.json", hooks.to_string());
    let text = good(program.run(&["plugin", "validate", "good"]));
    let expected = "plugin `good` can be used: 1 agent, 1 skill, 1 hook\n";
    assert_eq!(text, expected);
    let manifest = "{\"name\": \"bad\",\n\"skills\": \"/etc\",\n\"x\": 1}";
    program.scratch.write("bad/plugin.json", manifest);
    program.scratch.write("bad/agents/a.md", "---\nname: a\nprose\n");
    program.scratch.write("bad/.mcp.json", "{\"mcpServers\": {\n\"s\": {}}}");
    let hooks = "{\n\"Stop\": [{\"hooks\": [\n{\"type\": \"nonsense\"}]}]}";
    program.scratch.write("bad/hooks/hooks.json", hooks);
    let bad = program.run(&["plugin", "validate", "bad"]);
    assert_eq!(bad.code, Some(1));
    for part in [
        "bad/plugin.json:2: the path `/etc` is absolute",
        "bad/agents/a.md:1: ",
        "bad/.mcp.json:2: server `s` is left out",
        "bad/hooks/hooks.json:3: ",
    ] {
        let is_told = |line: &str| line.starts_with("error: ") && line.contains(part);
        assert!(bad.stdout.lines().any(is_told), "{part}: {}", bad.stdout);
    }
    assert!(bad.stdout.contains("bad/plugin.json:3: `x` is unknown"), "{}", bad.stdout);
    assert!(bad.stdout.ends_with("plugin `bad` has 4 errors\n"), "{}", bad.stdout);
    program.scratch.write("worse/plugin.json", "{\n\"name\": 7}");
    let worse = program.run(&["plugin", "validate", "worse"]);
    assert!(worse.stdout.contains("worse/plugin.json:2: `name` must be text"), "{}", worse.stdout);
    assert_eq!((worse.code, program.run(&["plugin", "validate", "none"]).code), (Some(1), Some(1)));
}

/// Adds a marketplace that has this name and lists one plugin.
fn add_marketplace(program: &Program, name: &str, plugin: &Value) -> Ended {
    let listing = json!({"name": name, "plugins": [plugin]}).to_string();
    program.scratch.write("market/.claude-plugin/marketplace.json", listing);
    program.run(&["plugin", "marketplace", "add", "./market"])
}

#[test]
fn hostile_names_and_paths_get_nowhere() {
    let program = Program::alone();
    let outside = program.scratch.write_home("secret/agents/code-reviewer.md", AGENT);
    for name in ["../../evil", "/abs", "local", "inline", "", "a b"] {
        let ended = add_marketplace(&program, name, &json!({"name": "p", "source": "./p"}));
        assert_eq!(ended.code, Some(1), "{name}: {}", ended.stdout);
    }
    let evil = add_marketplace(&program, "tools", &json!({"name": "../../evil", "source": "./p"}));
    assert!(evil.stderr.contains("plugin `../../evil` is left out"), "{}", evil.stderr);
    let target = outside.parent().unwrap().parent().unwrap();
    symlink(target, program.scratch.project().join("market/link")).unwrap();
    for (source, why) in [
        ("../../home/secret", "leads out of"),
        ("/etc", "is absolute"),
        ("./link", "is a link that leads out"),
        ("./none", "there is nothing at"),
    ] {
        good(add_marketplace(&program, "tools", &json!({"name": "p", "source": source})));
        let error = refused(program.run(&["plugin", "add", "p@tools"]));
        assert!(error.contains(why), "{source}: {error}");
    }
    for id in ["../x@tools", "x@../tools", "x@..", "@tools", "none@nowhere"] {
        refused(program.run(&["plugin", "add", id]));
        refused(program.run(&["plugin", "remove", id]));
    }
    assert_eq!(states(&program), []);
    assert!(!program.scratch.home().join(STORE).join("cache/tools/p").exists());
}

#[test]
fn git_runs_nothing_while_it_fetches() {
    let program = Program::alone();
    let repository = marketplace(&program);
    let mark = program.scratch.root().join("ran");
    let hostile = format!("ext::sh -c touch% {}", mark.display());
    for source in [hostile.as_str(), "--upload-pack=x", "git@-oProxyCommand=x:y", "word"] {
        refused(program.run(&["plugin", "marketplace", "add", "--", source]));
    }
    let missing = format!("file://{}/none.git", program.scratch.root().display());
    let gone = refused(program.run(&["plugin", "marketplace", "add", &missing]));
    assert!(gone.contains("cannot be fetched"), "{gone}");
    let script = format!("#!/bin/sh\ntouch {}\n", mark.display());
    let hook = program.scratch.write_home("hooks/post-checkout", script);
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    let config = format!("[core]\n\thooksPath = {}\n", hook.parent().unwrap().display());
    program.scratch.write_home(".gitconfig", config);
    good(program.run(&["plugin", "marketplace", "add", &repository.url()]));
    assert!(!mark.exists());
}

#[test]
fn a_marketplace_of_the_settings_is_fetched_when_it_is_wanted() {
    let program = Program::alone();
    let repository = marketplace(&program);
    let source = json!({"source": "git", "url": repository.url()});
    let declared = json!({"extraKnownMarketplaces": {"tools": {"source": source}}});
    // A source that an untrusted repository declares is not fetched from.
    program.scratch.write(".claude/settings.json", declared.to_string());
    let unknown = refused(program.run(&["plugin", "add", "my-plugin@tools"]));
    assert!(unknown.contains("there is no marketplace `tools`"), "{unknown}");
    program.scratch.write_home(".claude/settings.json", declared.to_string());
    let list = good(program.run(&["plugin", "marketplace", "list"]));
    assert!(list.contains("tools (") && list.contains("not fetched yet, declared in "), "{list}");
    good(program.run(&["plugin", "add", "my-plugin@tools"]));
    assert_eq!(states(&program), [state("my-plugin@tools", "enabled")]);
    let list = good(program.run(&["plugin", "marketplace", "list", "--json"]));
    let rows: Vec<Value> = serde_json::from_str(&list).unwrap();
    assert_eq!((&rows[0]["name"], &rows[0]["state"]), (&json!("tools"), &json!("1 plugin")));
}

#[test]
fn another_programs_plugins_are_used_and_never_written() {
    // D-51
    let program = Program::alone();
    let theirs = ".claude/plugins";
    let manifest = format!("{theirs}/cache/shop/kit/1.0/.claude-plugin/plugin.json");
    program.scratch.write_home(manifest, r#"{"name": "kit"}"#);
    let record = json!([{"scope": "user", "version": "1.0"}]);
    let list = json!({"version": 2, "plugins": {"kit@shop": record}}).to_string();
    let file = program.scratch.write_home(format!("{theirs}/installed_plugins.json"), &list);
    assert_eq!(states(&program), [state("kit@shop", "enabled")]);
    let kept = refused(program.run(&["plugin", "remove", "kit"]));
    assert!(kept.contains("another program's"), "{kept}");
    assert!(kept.contains("help: `centurion plugin disable kit@shop`"), "{kept}");
    good(program.run(&["plugin", "disable", "kit"]));
    assert_eq!(states(&program), [state("kit@shop", "disabled")]);
    assert_eq!(fs::read_to_string(file).unwrap(), list);
    assert!(!program.scratch.home().join(".claude/settings.json").exists());
}

#[test]
fn a_plugin_that_is_switched_on_brings_the_first_skill_that_models_may_invoke() {
    let invoke = json!({"tool": "Skill", "input": {"skill": "kit:ship"}});
    let stage = Stage::new(&json!({"lead": ["one"], "then": [[invoke], "two"]}));
    let scratch = &stage.program.scratch;
    let kit = scratch.root().join("kit");
    let write = |path: &str, text: &str| {
        fs::create_dir_all(kit.join(path).parent().unwrap()).unwrap();
        fs::write(kit.join(path), text).unwrap();
    };
    write(".claude-plugin/plugin.json", r#"{"name": "kit"}"#);
    let settings = r#"{"disableBundledSkills": true}"#;
    let flags =
        ["--model", stage.model(), "--plugin-dir", kit.to_str().unwrap(), "--settings", settings];
    let mut host = Host::start(&stage.program, &flags);
    host.say("@@lead");
    let lists_tool = |events: &[Value]| {
        let init = events.iter().rfind(|event| event["subtype"] == "init").unwrap();
        init["tools"].as_array().unwrap().contains(&json!("Skill"))
    };
    assert!(!lists_tool(&host.until(|event| event["type"] == "result")));
    write("skills/ship/SKILL.md", "---\ndescription: Ships.\n---\nSHIP-IT\n");
    host.ask(&json!({"subtype": "reload_plugins"}));
    host.say("@@then");
    let seen = host.until(|event| event["type"] == "result");
    assert!(lists_tool(&seen), "{seen:?}");
    let said = seen.iter().filter(|event| event["type"] == "user").map(Value::to_string);
    assert!(said.collect::<String>().contains("SHIP-IT"), "{seen:?}");
    assert_eq!(host.finish(), 0);
}
