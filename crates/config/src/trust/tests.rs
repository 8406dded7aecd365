//! Answers about folders, and what was accepted in them.

mod content;
mod folder;
mod properties;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use centurion_protocol::SystemWorld;

use super::*;

/// Marks the machine of these tests.
struct TrustTests;

type Machine = crate::testing::Machine<TrustTests>;

impl Machine {
    fn new() -> Self {
        let machine = Self::with(|_| TrustTests);
        fs::create_dir_all(machine.path("home/repo/.git/worktrees/wt")).unwrap();
        fs::write(machine.path("home/repo/.git/worktrees/wt/commondir"), "../..\n").unwrap();
        fs::create_dir_all(machine.path("home/repo/src")).unwrap();
        fs::create_dir_all(machine.path("home/wt")).unwrap();
        fs::create_dir_all(machine.path("home/plain/sub")).unwrap();
        machine
    }

    fn key(&self, relative: &str) -> TrustKey {
        TrustKey::of(&self.path(relative))
    }

    /// Trusts a folder with all that is in it.
    fn grant(&self, trust: &mut Trust, relative: &str) -> Result<AnswerStorage, TrustError> {
        let found = survey(&self.path(relative), Some(&self.path("home")), &SystemWorld);
        trust.grant(&self.key(relative), &found, &str::to_owned)
    }

    fn open(&self) -> Trust {
        Trust::open(TrustSources {
            store: self.path("home/.centurion/trust.json"),
            other: Some(self.path("home/.claude.json")),
            home: Some(self.path("home")),
            start_dir: None,
        })
        .unwrap()
    }
}

#[test]
fn an_answer_is_kept_for_the_whole_repository() {
    let machine = Machine::new();
    let mut trust = machine.open();
    let key = machine.key("home/repo/src");
    assert_eq!(key.path(), machine.path("home/repo"));
    assert_eq!(trust.state(&key), TrustState::Untrusted);
    assert_eq!(machine.grant(&mut trust, "home/repo/src").unwrap(), AnswerStorage::Stored);
    let trusted = TrustState::Trusted(TrustedBy::Store);
    assert_eq!((trust.state(&key), machine.open().state(&key)), (trusted.clone(), trusted));
    let file = machine.path("home/.centurion/trust.json");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(trust.list(), [(key.path(), TrustedBy::Store)]);
    trust.revoke(&key).unwrap();
    assert_eq!(machine.open().state(&key), TrustState::Untrusted);
    assert_eq!(machine.open().list(), []);
}

#[test]
fn a_folder_below_a_trusted_one_is_partly_trusted() {
    let machine = Machine::new();
    let mut trust = machine.open();
    machine.grant(&mut trust, "home/plain").unwrap();
    let below = trust.state(&machine.key("home/plain/sub"));
    assert_eq!(below, TrustState::Parent(machine.path("home/plain")));
    assert_eq!(below.standing(), RepositoryTrust::Partly);
    trust.revoke(&machine.key("home/plain/sub")).unwrap();
    assert_eq!(trust.state(&machine.key("home/plain/sub")), TrustState::Untrusted);
}

#[test]
fn the_home_directory_is_trusted_for_one_run() {
    let machine = Machine::new();
    let json = format!(
        r#"{{"projects": {{"{}": {{"hasTrustDialogAccepted": true}}}}}}"#,
        machine.path("home").display()
    );
    fs::write(machine.path("home/.claude.json"), json).unwrap();
    let mut trust = machine.open();
    let home = machine.key("home");
    assert_eq!(trust.state(&home), TrustState::Untrusted);
    assert_eq!(machine.grant(&mut trust, "home").unwrap(), AnswerStorage::ThisRunOnly);
    assert_eq!(trust.state(&home), TrustState::Trusted(TrustedBy::ThisRun));
    assert_eq!(machine.open().state(&home), TrustState::Untrusted);
    assert!(!machine.path("home/.centurion/trust.json").exists());
    trust.revoke(&home).unwrap();
    assert_eq!(trust.state(&home), TrustState::Untrusted);
}

#[test]
fn another_programs_answers_count_and_are_left_alone() {
    let machine = Machine::new();
    let repo = machine.path("home/repo").display().to_string();
    let plain = machine.path("home/plain").display().to_string();
    let json = format!(
        r#"{{"x": 1, "projects": {{"{repo}": {{"hasTrustDialogAccepted": true, "history": []}},
           "{plain}": {{"hasTrustDialogAccepted": "yes"}}}}}}"#
    );
    fs::write(machine.path("home/.claude.json"), &json).unwrap();
    let mut trust = machine.open();
    assert_eq!(trust.state(&machine.key("home/repo")), TrustState::Trusted(TrustedBy::Other));
    assert_eq!(trust.state(&machine.key("home/plain")), TrustState::Untrusted);
    trust.revoke(&machine.key("home/repo")).unwrap();
    assert_eq!(machine.open().state(&machine.key("home/repo")), TrustState::Untrusted);
    assert_eq!(fs::read_to_string(machine.path("home/.claude.json")).unwrap(), json);
    fs::write(machine.path("home/.claude.json"), "{broken").unwrap();
    assert_eq!(machine.open().list(), []);
}

#[test]
fn a_worktree_has_its_checkouts_trust_and_no_other_directory_gets_it() {
    let machine = Machine::new();
    let admin = machine.path("home/repo/.git/worktrees/wt");
    let git_file = |at: &str, admin: &Path| {
        fs::create_dir_all(machine.path(at)).unwrap();
        fs::write(machine.path(at).join(".git"), format!("gitdir: {}\n", admin.display())).unwrap();
    };
    git_file("home/wt", &admin);
    fs::write(admin.join("gitdir"), format!("{}\n", machine.path("home/wt/.git").display()))
        .unwrap();
    assert_eq!(machine.key("home/wt").path(), machine.path("home/repo"));
    // Says that it is that worktree, and is not.
    git_file("home/evil", &admin);
    assert_eq!(machine.key("home/evil").path(), machine.path("home/evil"));
    // Borrows the real worktree's file.
    fs::create_dir(machine.path("home/thief")).unwrap();
    std::os::unix::fs::symlink(machine.path("home/wt/.git"), machine.path("home/thief/.git"))
        .unwrap();
    assert_eq!(machine.key("home/thief").path(), machine.path("home/thief"));
    // Brings the administration itself.
    let own = machine.path("home/forger/admin/worktrees/x");
    fs::create_dir_all(&own).unwrap();
    git_file("home/forger", &own);
    fs::write(own.join("gitdir"), machine.path("home/forger/.git").display().to_string()).unwrap();
    fs::write(own.join("commondir"), machine.path("home/repo/.git").display().to_string()).unwrap();
    assert_eq!(machine.key("home/forger").path(), machine.path("home/forger"));
}

#[test]
fn a_broken_store_is_an_error_with_its_place() {
    let machine = Machine::new();
    fs::create_dir_all(machine.path("home/.centurion")).unwrap();
    fs::write(machine.path("home/.centurion/trust.json"), "{\n\"folders\": 1}").unwrap();
    let sources = TrustSources {
        store: machine.path("home/.centurion/trust.json"),
        ..TrustSources::default()
    };
    let error = Trust::open(sources).unwrap_err().to_string();
    assert!(error.contains("trust.json:2: is not valid JSON"), "{error}");
}

#[test]
fn what_a_later_version_wrote_is_kept() {
    let machine = Machine::new();
    fs::create_dir_all(machine.path("home/.centurion")).unwrap();
    let file = machine.path("home/.centurion/trust.json");
    fs::write(&file, r#"{"later": 1, "folders": {"/x": {"trusted": true, "by": "me"}}}"#).unwrap();
    machine.grant(&mut machine.open(), "home/repo").unwrap();
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("\"later\": 1") && text.contains("\"by\": \"me\""), "{text}");
}
