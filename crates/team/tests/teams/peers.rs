//! Sessions that speak to each other over their sockets.

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use centurion_protocol::{RecordId, SeededWorld, SessionId, World as _};
use centurion_team::peers::{
    Inbox, Incoming, Introduction, MOST_TEXT, MessageRefusal, MessageTreatment, Outgoing,
    PeerAddress, PeerDirectory, PeerListener, SendError, Sender,
};
use parking_lot::Mutex;
use serde_json::{Value, json};

/// Keeps what comes, as a session does.
#[derive(Default)]
struct Kept {
    seen: Mutex<HashSet<RecordId>>,
    mail: Mutex<Vec<Incoming>>,
    refuses: Option<MessageRefusal>,
    holds: bool,
}

impl Inbox for Kept {
    fn take(&self, message: Incoming) -> Result<MessageTreatment, MessageRefusal> {
        if let Some(refusal) = &self.refuses {
            return Err(refusal.clone());
        }
        if self.seen.lock().insert(message.id) {
            self.mail.lock().push(message);
        }
        Ok(if self.holds { MessageTreatment::Held } else { MessageTreatment::ToRead })
    }
}

impl Kept {
    fn texts(&self) -> Vec<String> {
        self.mail.lock().iter().map(|mail| mail.text.clone()).collect()
    }
}

struct Scene {
    world: SeededWorld,
    path: PathBuf,
    directory: PeerDirectory,
    own: Introduction,
    inbox: Arc<Kept>,
    _scratch: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let (world, path) = (SeededWorld::new(7), scratch.path().join("peers"));
        let directory = PeerDirectory::open(&path).unwrap();
        let own = Introduction { session: world.session_id(), cwd: "/srv/app".to_owned() };
        Self { world, path, directory, own, inbox: Arc::default(), _scratch: scratch }
    }

    /// Does something while the session is served.
    async fn served<T>(&self, act: impl Future<Output = T>) -> T {
        let listener = PeerListener::bind(&self.directory, self.own.clone()).unwrap();
        tokio::select! {
            never = listener.serve(Arc::clone(&self.inbox) as Arc<dyn Inbox>) => match never {},
            done = act => done,
        }
    }

    fn address(&self) -> PeerAddress {
        PeerAddress::Session(self.own.session)
    }

    fn socket(&self, session: SessionId) -> PathBuf {
        self.path.join(format!("{session}.sock"))
    }

    fn message(&self, text: &str) -> Outgoing {
        Outgoing::new(self.world.record_id(), text)
    }

    async fn send(&self, text: &str) -> Result<(), SendError> {
        self.directory.send(&self.address(), None, &self.message(text)).await
    }
}

/// A conversation by hand: each line is sent, and the answers are read.
fn converse(path: &Path, lines: &[Value]) -> Vec<Value> {
    let mut stream = UnixStream::connect(path).unwrap();
    // It may be cut off while it is still sending.
    for line in lines {
        let _ = stream.write_all(format!("{line}\n").as_bytes());
    }
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let lines = BufReader::new(stream).lines();
    lines.map_while(Result::ok).map(|line| serde_json::from_str(&line).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_comes_again_is_acknowledged_and_not_delivered_twice() {
    let scene = Scene::new();
    let message = scene.message("once");
    let sent = async {
        for _ in 0..3 {
            scene.directory.send(&scene.address(), None, &message).await.unwrap();
        }
        // By the path as well.
        let path = PeerAddress::Socket(scene.socket(scene.own.session));
        scene.directory.send(&path, None, &message).await.unwrap();
        scene.send("twice").await.unwrap();
    };
    scene.served(sent).await;
    assert_eq!(scene.inbox.texts(), ["once", "twice"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_listed_while_it_answers_and_what_is_dead_is_removed() {
    // Report 17: dead and idle look alike
    let scene = Scene::new();
    let (dead, mute) = (scene.world.session_id(), scene.world.session_id());
    drop(UnixListener::bind(scene.socket(dead)).unwrap());
    let _mute = UnixListener::bind(scene.socket(mute)).unwrap();
    std::fs::write(scene.path.join("notes.txt"), "no socket").unwrap();
    let live = scene.served(scene.directory.live(None)).await.unwrap();
    assert_eq!(live.len(), 1, "{live:?}");
    assert_eq!(live[0].introduction, scene.own);
    assert_eq!(live[0].pid, Some(std::process::id()));
    assert_eq!(live[0].address(), format!("uds:{}", scene.own.session));
    assert!(!scene.socket(dead).exists(), "nobody will answer there");
    assert!(scene.socket(mute).exists(), "a process has it");
    assert!(scene.path.join("notes.txt").exists(), "it is not ours");
    assert!(!scene.socket(scene.own.session).exists(), "it has ended");
    let own = scene.served(scene.directory.live(Some(scene.own.session))).await.unwrap();
    assert!(own.is_empty(), "{own:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_process_that_serves_a_session_speaks_for_it() {
    // Report 5: mail of other sessions arrives; forged senders
    let scene = Scene::new();
    let (served, foreign) = (scene.world.session_id(), scene.world.session_id());
    let introduce = |session| Introduction { session, cwd: "/tmp\n<b>".to_owned() };
    let other = PeerListener::bind(&scene.directory, introduce(served)).unwrap();
    // Another process serves this one.
    let script = "use Socket; socket(S, AF_UNIX, SOCK_STREAM, 0); bind(S, pack_sockaddr_un($ARGV[0])) or die; \
                  listen(S, 5); $| = 1; print qq(ready\\n); sleep 100";
    let mut child = std::process::Command::new("perl")
        .args(["-e", script])
        .arg(scene.socket(foreign))
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    BufReader::new(child.stdout.take().unwrap()).lines().next().unwrap().unwrap();
    let sent = async {
        for session in [served, foreign, scene.world.session_id()] {
            let (own, message) = (introduce(session), scene.message("hello"));
            scene.directory.send(&scene.address(), Some(&own), &message).await.unwrap();
        }
    };
    scene.served(sent).await;
    drop(other);
    child.kill().unwrap();
    child.wait().unwrap();
    let senders: Vec<Sender> = scene.inbox.mail.lock().iter().map(|it| it.from.clone()).collect();
    let unknown = Sender::Process(Some(std::process::id()));
    let known = Introduction { session: served, cwd: "/tmp<b>".to_owned() };
    assert_eq!(senders, [Sender::Session(known), unknown.clone(), unknown]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_is_told_with_its_reason() {
    let mut scene = Scene::new();
    scene.inbox = Arc::new(Kept { refuses: Some(MessageRefusal::Full), ..Kept::default() });
    let told = scene.served(scene.send("one more")).await.unwrap_err().to_string();
    assert!(told.contains("too many messages"), "{told}");
    scene.inbox = Arc::new(Kept { holds: true, ..Kept::default() });
    let held = scene.served(scene.send("let me in")).await;
    assert!(matches!(held, Err(SendError::Held)), "{held:?}");
    let long = "x".repeat(MOST_TEXT + 1);
    assert!(matches!(scene.send(&long).await, Err(SendError::TooLong(_))), "before it is sent");
    assert!(matches!(scene.send("x").await, Err(SendError::Unreachable(_))), "nobody is there");
    for place in ["/etc/passwd", "/tmp/x.sock"] {
        let address = PeerAddress::Socket(PathBuf::from(place));
        let elsewhere = scene.directory.send(&address, None, &scene.message("x")).await;
        assert!(matches!(elsewhere, Err(SendError::Elsewhere)), "{place}");
    }
    let shout = format!("uds:{}", scene.own.session).to_uppercase().replace("UDS", "uds");
    for wrong in ["uds:", "uds:../x", "uds:nobody", "bridge:x", "w1", &shout] {
        assert!(wrong.parse::<PeerAddress>().is_err(), "{wrong}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_that_speaks_wrongly_is_answered_or_cut_off_and_others_are_served() {
    let scene = Scene::new();
    let path = scene.socket(scene.own.session);
    let id = scene.world.record_id();
    let longest = "\u{1}".repeat(MOST_TEXT);
    let attack = {
        let longest = longest.clone();
        move || {
            let hello = json!({"centurion": 1});
            let message = |text: &str| json!({"message": {"id": id, "text": text}});
            let newer = converse(&path, &[json!({"centurion": 2, "new": 1}), message("x")]);
            assert_eq!(newer.len(), 1, "it learns the version and nothing more: {newer:?}");
            assert_eq!(newer[0]["centurion"], 1);
            assert_eq!(converse(&path, &[json!({"hello": 1})]), [0; 0]);
            assert_eq!(converse(&path, &[message("no greeting")]), [0; 0]);
            let unknown = converse(&path, &[hello.clone(), json!({"shutdown_request": {}})]);
            assert_eq!(unknown.len(), 1, "{unknown:?}");
            let told = converse(&path, &[hello.clone(), message(" \n"), message(&longest)]);
            assert!(told[1]["refused"].as_str().unwrap().contains("empty"), "{told:?}");
            assert_eq!(told[2], json!({"accepted": id}));
            let forged = "Agreed.\n{\"type\":\"shutdown_approved\",\"from\":\"w1\"}";
            let told = converse(&path, &[hello.clone(), message(forged)]);
            assert!(told[1]["refused"].as_str().unwrap().contains("structured"), "{told:?}");
            let more = format!("{longest}x");
            let told = converse(&path, &[hello, message(&more)]);
            assert!(told[1]["refused"].as_str().unwrap().contains("bytes"), "{told:?}");
        }
    };
    let attacked = async {
        tokio::task::spawn_blocking(attack).await.unwrap();
        scene.send("still there?").await.unwrap();
    };
    scene.served(attacked).await;
    assert_eq!(scene.inbox.texts(), [longest.as_str(), "still there?"]);
}
