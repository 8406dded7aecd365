//! Files that are broken, wrong or changing.

use std::fs;

use serde_json::json;

use super::super::*;
use super::{Machine, load, texts, values};

#[test]
fn a_broken_file_is_reported_and_the_others_count() {
    let machine = Machine::new();
    machine.user(&json!({"model": "m"}));
    machine.write("home/.centurion/settings.json", "{\n  \"model\": \"x\",\n}");
    machine.write("home/repo/app/.claude/settings.json", b"{\n\"a\xff\": 1}");
    machine.write("home/repo/app/.centurion/settings.json", "[1]");
    machine.write("home/repo/.claude/settings.local.json", "[".repeat(1_000_000));
    machine.write("etc/managed-settings.json", vec![b' '; 2 * 1024 * 1024 + 1]);
    fs::create_dir_all(machine.path("home/repo/.centurion/settings.local.json")).unwrap();
    machine.write("etc/managed-settings.d/a.json", " ");
    let settings = machine.load();
    assert_eq!(settings.model().unwrap().value, "m");
    assert_eq!(
        machine.problems(&settings),
        [
            "etc/managed-settings.json: is larger than 2 MiB",
            "home/repo/.centurion/settings.local.json: is not a regular file",
            "home/repo/.claude/settings.local.json:1: is not valid JSON: recursion limit exceeded (column 128)",
            "home/repo/app/.centurion/settings.json:1: must be an object, and is a list",
            "home/repo/app/.claude/settings.json:2: is not UTF-8",
            "home/.centurion/settings.json:3: is not valid JSON: trailing comma (column 1)",
        ]
    );
}

#[test]
fn a_bad_value_is_left_out_and_the_rest_of_its_file_counts() {
    let machine = Machine::new();
    machine.write(
        "home/.claude/settings.json",
        r#"{
  "model": 3,
  "permissions": {
    "deny": ["Bash(rm *)", 7, " ", {"tool": "Task", "args": "Explore"}, {"args": "x"}],
    "defaultMode": "yolo",
    "allow": "Bash"
  },
  "cleanupPeriodDays": 0,
  "env": {"A": "1", "PORT": 3000, "A": "2"},
  "sandbox": "on",
  "effortLevel": "max",
  "availableModels": ["a", 1],
  "includeGitInstructions": false
}"#,
    );
    let settings = machine.load();
    let name = "home/.claude/settings.json";
    let rule = r#"must be a rule such as "Bash(ls *)" or {"tool": "Bash", "args": "ls *"}, and is"#;
    assert_eq!(
        machine.problems(&settings),
        [
            format!("{name}:2: `model` must be text in quotes, and is a number; it is left out"),
            format!("{name}:4: `permissions.deny[1]` {rule} a number"),
            format!("{name}:4: `permissions.deny[2]` {rule} empty"),
            format!("{name}:4: `permissions.deny[4]` {rule} an object"),
            format!(
                "{name}:5: `permissions.defaultMode` must be one of default, manual, acceptEdits, plan, \
                 auto, dontAsk, bypassPermissions, and is `yolo`; it is left out"
            ),
            format!(
                "{name}:6: `permissions.allow` must be a list of rules such as \"Bash(ls *)\", and is \
                 text; it is left out"
            ),
            format!(
                "{name}:8: `cleanupPeriodDays` must be a whole number from 1 to 36500, and is 0; it is \
                 left out"
            ),
            format!("{name}:9: `A` in env is written again further down, which counts instead"),
            format!("{name}:9: `env.PORT` must be text in quotes, and is a number; it is left out"),
            format!("{name}:10: `sandbox` must be an object, and is text; it is left out"),
            format!(
                "{name}:11: `effortLevel` must be one of low, medium, high, xhigh, and is `max`; it is \
                 left out"
            ),
            format!(
                "{name}:12: `availableModels[1]` must be text in quotes, and is a number; it is left out"
            ),
        ]
    );
    let permissions = settings.permissions();
    assert_eq!(permissions.deny[0].form, RuleForm::Text("Bash(rm *)".to_owned()));
    let object = json!({"tool": "Task", "args": "Explore"});
    assert_eq!(permissions.deny[3].form, RuleForm::Object(object));
    assert_eq!(permissions.deny[3].origin.line, 4);
    // A rule that takes away is not lost, even if it cannot be read.
    assert_eq!(permissions.deny[1].form, RuleForm::Object(json!(7)));
    assert_eq!(permissions.deny.len(), 5);
    assert_eq!(settings.env()["A"].value, "2");
    assert_eq!(values(&settings.available_models().unwrap()), ["a"]);
    assert!(!settings.include_git_instructions());
}

#[test]
fn every_key_is_accounted_for() {
    let machine = Machine::new();
    machine.write(
        "home/.claude/settings.json",
        "{\n\"model\": \"m\",\n\"modle\": 1,\n\"language\": \"x\",\n\"permissions\": {\n\
         \"allow\": [\"A\",\n\"B\"],\n\"alow\": []},\n\"claudeMd\": \"x\",\n\"zzz\": {\"deep\": 1},\n\
         \"permissions.deny\": [\"X\"]}",
    );
    machine.json("home/.centurion/settings.json", &json!({"model": "n"}));
    let settings = machine.load();
    let reports: Vec<_> = settings
        .keys()
        .into_iter()
        .map(|key| {
            (
                key.key.clone(),
                key.line,
                key.in_force(),
                key.why().replace(&*machine.path("").to_string_lossy(), ""),
            )
        })
        .collect();
    let report =
        |key: &str, line, in_force, why: &str| (key.to_owned(), line, in_force, why.to_owned());
    assert_eq!(
        reports,
        [
            report("model", 1, true, ""),
            report("model", 2, false, "home/.centurion/settings.json:1 (user) says otherwise"),
            report("language", 4, false, "is known, but does nothing in this version"),
            report("permissions.allow", 6, true, ""),
            report("claudeMd", 9, false, "counts only in managed settings"),
            report("modle", 3, false, "is no known key; perhaps `model` is meant"),
            report(
                "permissions.alow",
                8,
                false,
                "is no known key; perhaps `permissions.allow` is meant"
            ),
            report("zzz", 10, false, "is no known key"),
            report(
                "permissions.deny",
                11,
                false,
                "is no known key; perhaps `permissions.deny` is meant"
            ),
        ]
    );
    assert!(settings.permissions().deny.is_empty());
}

#[test]
fn a_change_of_any_file_is_seen() {
    let machine = Machine::new();
    machine.user(&json!({"model": "one"}));
    let mut settings = machine.load();
    assert!(!settings.is_stale());
    let mut expect = |model: Option<&str>| {
        assert!(settings.is_stale());
        settings.reload();
        assert!(!settings.is_stale());
        assert_eq!(settings.model().map(|model| model.value).as_deref(), model);
    };
    machine.user(&json!({"model": "longer"}));
    expect(Some("longer"));
    machine.project(&json!({"model": "project"}));
    expect(Some("project"));
    machine.json("etc/managed-settings.d/a.json", &json!({"model": "managed"}));
    expect(Some("managed"));
    fs::remove_file(machine.path("etc/managed-settings.d/a.json")).unwrap();
    expect(Some("project"));
    fs::remove_file(machine.path("home/repo/app/.claude/settings.json")).unwrap();
    expect(Some("longer"));
    fs::remove_file(machine.path("home/.claude/settings.json")).unwrap();
    expect(None);
}

#[test]
fn a_file_that_breaks_keeps_its_last_word() {
    let machine = Machine::new();
    machine.project(&json!({"permissions": {"deny": ["A"], "allow": ["B"]}}));
    let mut settings = machine.trusted();
    machine.write("home/repo/app/.claude/settings.json", "{\"permissions\": {");
    settings.reload();
    assert_eq!(texts(&settings.permissions().deny), ["A"]);
    assert_eq!(texts(&settings.permissions().allow), ["B"]);
    let problems = machine.problems(&settings);
    assert!(problems[0].ends_with("what it said before still counts"), "{problems:?}");
    settings.reload();
    assert_eq!((settings.problems().count(), texts(&settings.permissions().deny)), (1, vec!["A"]));
    machine.project(&json!({}));
    settings.reload();
    assert_eq!((settings.problems().count(), settings.permissions().deny.len()), (0, 0));
}

#[test]
fn the_flag_takes_json_or_a_file_and_refuses_the_rest() {
    let machine = Machine::new();
    machine.write("broken.json", "{\n\"a\"}").write("big.json", vec![b' '; 2 * 1024 * 1024 + 1]);
    let refusal = |argument: &str| {
        let error = FlagSettings::parse(argument, &machine.path("")).unwrap_err().to_string();
        error.replace(
            &format!("{}/", machine.path("").display().to_string().trim_end_matches('/')),
            "",
        )
    };
    assert_eq!(refusal("none.json"), "--settings: there is no file `none.json`");
    assert_eq!(
        refusal("broken.json"),
        "--settings: broken.json line 2 is not valid JSON: expected `:` (column 4)"
    );
    assert_eq!(refusal("big.json"), "--settings: big.json is larger than 2 MiB");
    assert_eq!(refusal("home"), "--settings: home is not a regular file");
    assert_eq!(refusal("/dev/zero"), "--settings: /dev/zero is not a regular file");
    assert!(refusal(" {\"a\": }").starts_with("--settings: the JSON line 1 is not valid JSON"));
    let flag = Some(FlagSettings::parse(" {\"model\": \"x\"}", &machine.path("")).unwrap());
    let settings = load(SettingsSources { flag, ..machine.sources() });
    let model = settings.model().unwrap();
    assert_eq!(
        (model.value.as_str(), model.origin.to_string().as_str()),
        ("x", "--settings:1 (flag)")
    );
}

#[test]
fn a_file_of_rubbish_is_told_briefly_and_prints_safely() {
    let machine = Machine::new();
    let rules = vec!["1"; 100_000].join(",");
    let keys: Vec<String> = (0..20_000).map(|it| format!("\"key{it}\": 1")).collect();
    let text = format!(
        "{{\"permissions\": {{\"deny\": [{rules}]}}, \"\\u001b[2J\": 1, {},
           \"env\": {{\"A=B\": \"x\", \"\": \"x\", \"N\": \"a\\u0000b\", \"OK\": \"x\"}}}}",
        keys.join(",")
    );
    machine.write("home/.claude/settings.json", text);
    let settings = machine.load();
    let problems = machine.problems(&settings);
    assert_eq!(problems.len(), 51);
    assert!(problems[50].ends_with("there is more that is wrong with it"), "{}", problems[50]);
    let reports = settings.keys();
    assert_eq!(reports.len(), 20_003);
    assert!(reports.iter().any(|report| report.key == "\u{fffd}[2J"));
    assert_eq!(settings.env().into_keys().collect::<Vec<_>>(), ["OK"]);
}

#[test]
fn a_variable_must_have_a_name() {
    let machine = Machine::new();
    machine.json("home/.claude/settings.json", &json!({"env": {"A=B": "x"}}));
    let name = "home/.claude/settings.json:1: `env.A=B`";
    let problems = machine.problems(&machine.load());
    assert_eq!(
        problems,
        [format!("{name} must be under a name without `=`, and is not; it is left out")]
    );
}

#[test]
fn how_long_sessions_are_kept_is_not_guessed() {
    let machine = Machine::new();
    machine.user(&json!({"cleanupPeriodDays": 7, "model": 3}));
    // A fault elsewhere in a file says nothing about this.
    assert_eq!(machine.load().cleanup_period_days(), Some(7));
    for unclear in ["{\"cleanupPeriodDays\": 0}", "{\"cleanupPeriodDays\": \"9\"}", "{", "[]"] {
        machine.write("home/.centurion/settings.json", unclear);
        assert_eq!(machine.load().cleanup_period_days(), None, "{unclear}");
    }
    machine.json("home/.centurion/settings.json", &json!({"cleanupPeriodDays": 9}));
    let mut settings = machine.load();
    assert_eq!(settings.cleanup_period_days(), Some(9));
    // A file that was good once and is not now.
    machine.write("home/.centurion/settings.json", "{\"cleanupPeriodDays\": 365");
    settings.reload();
    assert_eq!(settings.cleanup_period_days(), None);
}

#[test]
fn a_key_without_effect_says_so_in_every_file_that_sets_it() {
    let machine = Machine::new();
    // The stricter of these would win over a managed one, if there were anything to be strict about.
    let strict = json!({
        "disableClaudeAiConnectors": true, "isolatePeerMachines": true,
        "remoteControlAtStartup": false,
        "useAutoModeDuringPlan": false, "syncClaudeAiSkills": false,
    });
    let lax = json!({
        "disableClaudeAiConnectors": false, "isolatePeerMachines": false,
        "remoteControlAtStartup": true,
        "useAutoModeDuringPlan": true, "syncClaudeAiSkills": true,
    });
    machine.managed(&lax).user(&strict);
    let reports = machine.load().keys();
    assert_eq!(reports.len(), 10);
    for report in &reports {
        assert_eq!(report.state, KeyState::NotYet { reason: None }, "{}", report.key);
    }
}

#[test]
fn other_sessions_are_heard_only_if_nothing_stricter_is_said() {
    // S-235
    let said = |word: &str| json!({"crossSessionInbound": word});
    let machine = Machine::new();
    assert_eq!(machine.load().other_sessions(), PeerPolicy::Refuse, "unless it is asked for");
    machine.user(&said("accept"));
    assert_eq!(machine.load().other_sessions(), PeerPolicy::Accept);
    machine.managed(&said("accept")).user(&said("refuse"));
    let settings = machine.load();
    assert_eq!(settings.other_sessions(), PeerPolicy::Refuse, "the stricter one, whoever says it");
    let states: Vec<_> = settings.keys().iter().map(|it| (it.level, it.in_force())).collect();
    assert_eq!(states, [(Level::Managed, false), (Level::User, true)]);
    machine.user(&said("hold"));
    assert_eq!(machine.load().other_sessions(), PeerPolicy::Hold);
    machine.managed(&said("refuse")).user(&said("accept"));
    assert_eq!(machine.load().other_sessions(), PeerPolicy::Refuse);
}

#[test]
fn what_is_half_in_force_says_which_half() {
    let machine = Machine::new();
    let network = |strict: bool| json!({"sandbox": {"network": {"strictAllowlist": strict}}});
    machine.user(&network(true));
    assert!(machine.load().keys()[0].in_force());
    machine.user(&network(false));
    let report = &machine.load().keys()[0];
    assert!(
        !report.in_force() && report.why().contains("no question is asked"),
        "{}",
        report.why()
    );
}

#[test]
fn only_an_administrator_forbids_flags_that_bring_things() {
    let machine = Machine::new();
    machine.user(&json!({"disableSideloadFlags": true}));
    assert!(machine.load().sideload_disabled().is_none());
    machine.write("etc/managed-settings.json", r#"{"disableSideloadFlags": true}"#);
    let origin = machine.load().sideload_disabled().unwrap();
    assert_eq!((origin.level, origin.line), (Level::Managed, 1));
    machine.write("etc/managed-settings.json", r#"{"disableSideloadFlags": false}"#);
    assert!(machine.load().sideload_disabled().is_none());
}
