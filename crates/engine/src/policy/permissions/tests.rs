//! The permissions of one agent, each promise by itself.

use serde_json::json;

use super::source::LOOK_INTERVAL;
use super::*;
use crate::definition::bypass::BypassRefused;

fn permissions(mode: Mode, bypass: Bypass) -> Permissions {
    Permissions::new(Policy { mode, ..Policy::default() }, bypass, None, None)
}

#[test]
fn planning_gives_back_the_mode_it_took() {
    let permissions = permissions(Mode::AcceptEdits, Bypass::Enabled);
    permissions.enter_plan().unwrap();
    assert!(permissions.enter_plan().is_err());
    assert_eq!(permissions.leave_plan(), Mode::AcceptEdits);
}

#[test]
fn a_mode_set_meanwhile_is_not_raised_again_by_an_approved_plan() {
    let permissions = permissions(Mode::BypassPermissions, Bypass::Enabled);
    permissions.enter_plan().unwrap();
    permissions.set_mode(Mode::Plan).unwrap();
    assert_eq!(permissions.leave_plan(), Mode::Default);
}

#[test]
fn a_lead_gives_what_it_may_do_in_the_place_where_it_would_be_done() {
    // D-67: a command that writes here is another one elsewhere
    let (project, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let root = project.path().canonicalize().unwrap();
    let policy = Policy {
        mode: Mode::AcceptEdits,
        cwd: root.clone(),
        project_root: root.clone(),
        directories: vec![root.clone()],
        ..Policy::default()
    };
    let lead = Permissions::new(policy, Bypass::Enabled, None, None);
    let access = Access::Shell("touch made.txt".to_owned());
    let call = Call::new("Bash", &access);
    assert!(lead.allows_in(&call, root.clone()));
    assert!(!lead.allows_in(&call, elsewhere.path().canonicalize().unwrap()));
    assert_eq!(lead.place(), root, "the lead stands where it stood");
}

fn update(kind: &str, rules: &[&str], behavior: &str, destination: &str) -> Remember {
    let rules: Vec<Value> = rules.iter().map(|rule| json!({"toolName": rule})).collect();
    let update = json!({
        "type": kind, "rules": rules, "behavior": behavior, "destination": destination,
    });
    Remember::from_update(serde_json::from_value(update).unwrap()).unwrap()
}

fn texts(permissions: &Permissions, kind: RuleKind) -> Vec<String> {
    let mut state = permissions.state_mut();
    let rules = state.rules_mut(kind).iter();
    rules.map(|rule| rule.source().text.clone()).collect()
}

#[test]
fn rules_are_added_replaced_and_removed_where_they_are_kept() {
    let of = |level, text| {
        let (file, root) = (PathBuf::from("/s.json"), PathBuf::from("/"));
        Rule::parse(text, RuleOrigin::Settings { level, file, line: None, root }).unwrap()
    };
    let written = || -> RuleSet {
        vec![of(RuleLevel::Managed, "A"), of(RuleLevel::User, "A"), of(RuleLevel::User, "B")].into()
    };
    let permissions = permissions(Mode::Default, Bypass::Enabled);
    permissions.replace_rules(Rules { deny: written(), ..Rules::default() });
    let deny = || texts(&permissions, RuleKind::Deny);
    // The change, and all rules that deny something after it.
    for (kind, rules, destination, expected) in [
        ("addRules", &["C", "D"][..], "session", &["A", "A", "B", "C", "D"][..]),
        ("removeRules", &["A", "C"], "session", &["A", "A", "B", "D"]),
        ("replaceRules", &["E"], "session", &["A", "A", "B", "E"]),
        ("replaceRules", &["F"], "projectSettings", &["A", "A", "B", "E", "F"]),
        ("removeRules", &["F"], "session", &["A", "A", "B", "E", "F"]),
        ("removeRules", &["F"], "projectSettings", &["A", "A", "B", "E"]),
        // The administrator's rules stay, whatever is said of the user's file.
        ("removeRules", &["A"], "userSettings", &["A", "B", "E"]),
        ("replaceRules", &["G"], "userSettings", &["A", "E", "G"]),
    ] {
        permissions.remember(&update(kind, rules, "deny", destination)).unwrap();
        assert_eq!(deny(), expected, "{kind} {rules:?} {destination}");
    }
    assert_eq!(texts(&permissions, RuleKind::Allow), Vec::<String>::new());
    // Rules of the session hold after the files were read again.
    permissions.replace_rules(Rules { deny: written(), ..Rules::default() });
    assert_eq!(deny(), ["A", "A", "B", "E", "G"]);
    let bad = permissions.remember(&update("replaceRules", &["Bash("], "deny", "session"));
    assert!(bad.is_err());
    assert_eq!(deny(), ["A", "A", "B", "E", "G", "Bash"], "all of it, for what cannot be read");
    let mixed = permissions.remember(&update("addRules", &["Read([)", "H"], "deny", "session"));
    assert!(mixed.unwrap_err().to_string().contains("Read"));
    assert_eq!(deny(), ["A", "A", "B", "E", "G", "Bash", "Read", "Read(//**)", "H"]);
    let bad = permissions.remember(&update("addRules", &["Edit([)", "I"], "allow", "session"));
    assert!(bad.is_err());
    assert_eq!(texts(&permissions, RuleKind::Allow), ["I"], "nothing is allowed by it");
}

#[test]
fn directories_come_and_go() {
    let permissions = permissions(Mode::Default, Bypass::Enabled);
    let change = |kind| {
        let update = json!({"type": kind, "directories": ["/d"], "destination": "session"});
        let remember = Remember::from_update(serde_json::from_value(update).unwrap()).unwrap();
        permissions.remember(&remember).unwrap();
        permissions.replace_rules(Rules::default());
        permissions.state().policy.directories.clone()
    };
    assert_eq!(change("addDirectories"), [PathBuf::from("/d")]);
    assert_eq!(change("removeDirectories"), Vec::<PathBuf>::new());
}

fn change(kind: &str, directory: &Path) -> Remember {
    let update = json!({"type": kind, "directories": [directory], "destination": "session"});
    Remember::from_update(serde_json::from_value(update).unwrap()).unwrap()
}

fn writes(permissions: &Permissions, path: &Path) -> Verdict {
    let access = Access::Write(path.to_owned());
    permissions.decide(&Call::new("Write", &access), PathBuf::from("/")).verdict
}

#[test]
fn a_directory_that_is_taken_away_is_gone_for_the_main_agent_and_all_others() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path().canonicalize().unwrap();
    let (real, link) = (place.join("real"), place.join("link"));
    std::fs::create_dir(&real).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let main = Arc::new(permissions(Mode::AcceptEdits, Bypass::Enabled));
    let child = Arc::new(main.child(Role::default(), OwnMode::Inherited));
    let deeper = child.child(Role::default(), OwnMode::Inherited);
    let all = || [&*main, &*child, &deeper].map(|it| writes(it, &real.join("a")));
    let written = || Rules { directories: vec![real.clone()], ..Rules::default() };
    main.replace_rules(written());
    for (by, named) in [(&*main, &real), (&*child, &real), (&deeper, &link)] {
        assert_eq!(all(), [Verdict::Allow; 3]);
        by.remember(&change("removeDirectories", named)).unwrap();
        assert_eq!(all(), [Verdict::Ask; 3]);
        for agent in [&*main, &*child, &deeper] {
            assert!(agent.find_denied().write.contains(&real), "nor do sandboxed commands");
        }
        // Nor do settings bring it back that did not change their mind.
        main.replace_rules(written());
        assert_eq!(all(), [Verdict::Ask; 3]);
        by.remember(&change("addDirectories", named)).unwrap();
    }
}

#[test]
fn an_agent_follows_the_mode_of_the_one_above_and_of_all_above_that() {
    // D-5a
    let main = Arc::new(permissions(Mode::BypassPermissions, Bypass::Enabled));
    let child = Arc::new(main.child(Role::default(), OwnMode::Inherited));
    let editor = Arc::new(child.child(Role::default(), OwnMode::Given(Mode::AcceptEdits)));
    let deeper = editor.child(Role::default(), OwnMode::Inherited);
    for (mode, expected) in [
        (Mode::BypassPermissions, [Mode::BypassPermissions, Mode::AcceptEdits, Mode::AcceptEdits]),
        (Mode::Default, [Mode::Default, Mode::AcceptEdits, Mode::AcceptEdits]),
        (Mode::DontAsk, [Mode::DontAsk; 3]),
        (Mode::Plan, [Mode::Plan; 3]),
        (Mode::AcceptEdits, [Mode::AcceptEdits; 3]),
    ] {
        main.set_mode(mode).unwrap();
        assert_eq!([child.mode(), editor.mode(), deeper.mode()], expected, "below {mode}");
    }
    // An agent that began below a planner plans to its end, and no approval ends that.
    main.set_mode(Mode::Plan).unwrap();
    let planner = main.child(Role::default(), OwnMode::Inherited);
    main.set_mode(Mode::AcceptEdits).unwrap();
    assert_eq!((planner.mode(), planner.must_plan(), child.must_plan()), (Mode::Plan, true, false));
    planner.leave_plan();
    assert_eq!(planner.mode(), Mode::Plan);
}

#[test]
fn a_part_of_a_directory_is_not_taken_away_in_silence() {
    let main = permissions(Mode::AcceptEdits, Bypass::Enabled);
    main.replace_rules(Rules { directories: vec!["/w".into()], ..Rules::default() });
    let told =
        main.remember(&change("removeDirectories", Path::new("/w/sub"))).unwrap_err().to_string();
    assert!(told.contains("agents still work in /w/sub"), "{told}");
    main.state_mut().policy.home = Some("/w".into());
    main.remember(&change("addDirectories", Path::new("~/x"))).unwrap();
    main.remember(&change("removeDirectories", Path::new("/w"))).unwrap();
    main.remember(&change("removeDirectories", Path::new("~/x"))).unwrap();
    assert!(main.state().policy.directories.is_empty());
}

#[test]
fn a_mode_that_gives_less_gives_no_more_when_the_mode_above_changes() {
    // D-5a
    let main = Arc::new(permissions(Mode::DontAsk, Bypass::Enabled));
    let strange = main.child(Role::default(), OwnMode::Modest(Mode::AcceptEdits));
    for (above, expected) in [
        (Mode::DontAsk, Mode::DontAsk),
        (Mode::Default, Mode::Default),
        (Mode::AcceptEdits, Mode::AcceptEdits),
        (Mode::Plan, Mode::Plan),
        (Mode::Default, Mode::Default),
    ] {
        main.set_mode(above).unwrap();
        assert_eq!(strange.mode(), expected, "below {above}");
    }
}

#[test]
fn a_mode_that_was_answered_to_one_agent_ends_with_the_next_mode_of_the_session() {
    let main = Arc::new(permissions(Mode::Default, Bypass::Enabled));
    let child = main.child(Role::default(), OwnMode::Inherited);
    let answer = json!({"type": "setMode", "mode": "acceptEdits", "destination": "session"});
    let answer = Remember::from_update(serde_json::from_value(answer).unwrap()).unwrap();
    child.remember(&answer).unwrap();
    assert_eq!((child.mode(), main.mode()), (Mode::AcceptEdits, Mode::Default));
    main.set_mode(Mode::Default).unwrap();
    assert_eq!(child.mode(), Mode::Default);
    // Nor does a plan bring back what the agent had by others' leave.
    main.set_mode(Mode::AcceptEdits).unwrap();
    child.enter_plan().unwrap();
    main.set_mode(Mode::Default).unwrap();
    assert_eq!(child.mode(), Mode::Plan, "planning goes on");
    assert_eq!(child.leave_plan(), Mode::Default);
    child.remember(&answer).unwrap();
    child.enter_plan().unwrap();
    assert_eq!(child.leave_plan(), Mode::AcceptEdits);
    child.remember(&answer).unwrap();
    child.enter_plan().unwrap();
    main.set_mode(Mode::Default).unwrap();
    assert_eq!(child.leave_plan(), Mode::Default);
}

/// Settings that change at each look.
struct Restless;

impl RuleSource for Restless {
    fn changed(&mut self) -> Option<Change> {
        let deny = Rule::parse_list("Write", &RuleOrigin::Flag).unwrap().into();
        Some(Change { rules: Rules { deny, ..Rules::default() }, ..Change::default() })
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_at_work_looks_for_changed_settings_while_the_main_agent_waits() {
    let policy = Policy { mode: Mode::AcceptEdits, ..Policy::default() };
    let main = Permissions::new(policy, Bypass::Enabled, Some(Box::new(Restless)), None);
    let main = Arc::new(main);
    let child = Arc::new(main.child(Role::default(), OwnMode::Inherited));
    let deeper = child.child(Role::default(), OwnMode::Inherited);
    assert!(deeper.changed().is_some());
    assert!(child.changed().is_none(), "another one has just looked");
    assert!(main.changed().is_some(), "the main agent always looks");
    tokio::time::advance(LOOK_INTERVAL).await;
    deeper.replace_rules(child.changed().unwrap().rules);
    for agent in [&*main, &*child, &deeper] {
        assert_eq!(writes(agent, Path::new("/w/a")), Verdict::Deny);
    }
}

#[test]
fn a_rule_in_force_holds_for_every_call_judged_at_that_moment() {
    // A copy of old rules under a new number would stay for ever.
    for round in 0..300 {
        let main = Arc::new(permissions(Mode::Default, Bypass::Enabled));
        let child = Arc::new(main.child(Role::default(), OwnMode::Inherited));
        let looking = std::thread::spawn({
            let child = Arc::clone(&child);
            move || while !child.denies_agent(&["late".to_owned()]) {}
        });
        let update = update("addRules", &["Agent"], "deny", "session");
        main.remember(&update).unwrap();
        assert!(child.denies_agent(&["late".to_owned()]), "round {round}");
        looking.join().unwrap();
    }
}

#[derive(Default)]
struct MemoryStore(Mutex<Vec<Remember>>);

impl RuleStore for MemoryStore {
    fn keep(&self, remember: &Remember) -> Result<(), KeepError> {
        self.0.lock().push(remember.clone());
        Ok(())
    }
}

#[test]
fn only_what_outlives_the_session_goes_to_the_store() {
    let store = Arc::new(MemoryStore::default());
    let policy = Policy::default();
    let permissions =
        Permissions::new(policy, Bypass::Enabled, None, Some(Arc::clone(&store) as _));
    let lasting = update("removeRules", &["A"], "allow", "localSettings");
    permissions.remember(&lasting).unwrap();
    permissions.remember(&update("replaceRules", &["A"], "allow", "session")).unwrap();
    assert_eq!(*store.0.lock(), [lasting]);
}

#[test]
fn bypass_needs_the_users_leave() {
    let permissions = permissions(Mode::Default, Bypass::Refused("not enabled"));
    assert_eq!(permissions.set_mode(Mode::BypassPermissions), Err(BypassRefused("not enabled")));
    assert_eq!(permissions.mode(), Mode::Default);
}
