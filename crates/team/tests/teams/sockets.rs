//! Sockets under attack: a hostile peer loses its own connection, and nothing else happens.

use std::fs::{self, Permissions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use centurion_team::socket::{
    Connection, Limits, Listener, Patience, SocketDirectory, SocketError,
};
use centurion_testkit::{Lack, skip};
use serde_json::{Value, json};

const LIMITS: Limits = Limits { frame: 1000, connections: 8, of_one_process: 6 };
const PATIENCE: Patience =
    Patience { until_next: Some(Duration::from_millis(500)), for_one: Duration::from_millis(500) };
const WAIT: Duration = Duration::from_secs(5);

/// Says every frame back.
async fn echo(mut connection: Connection) {
    while let Ok(Some(frame)) = connection.reader.read::<Value>(PATIENCE).await {
        if connection.writer.write(&frame, PATIENCE.for_one).await.is_err() {
            return;
        }
    }
}

async fn ask(directory: &SocketDirectory, frame: Value) -> Result<Option<Value>, SocketError> {
    let mut connection = Connection::open(directory, "echo.sock", 1000, WAIT).await?;
    let patience = Patience { until_next: Some(WAIT), for_one: WAIT };
    if connection.writer.write(&frame, WAIT).await.is_err() {
        return Ok(None);
    }
    Ok(connection.reader.read(patience).await.unwrap_or_default())
}

/// A server of frames, with what attacks it, for as long as that continues.
async fn attacked<T: Send + 'static>(
    attack: impl FnOnce(PathBuf) -> T + Send + 'static,
) -> (SocketDirectory, tempfile::TempDir, T) {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("sockets");
    let directory = SocketDirectory::open(&path).unwrap();
    let listener = Listener::bind(&directory, "echo.sock").unwrap();
    let attack = tokio::task::spawn_blocking(move || attack(path.join("echo.sock")));
    let served = async {
        let left = attack.await.unwrap();
        // Whatever was done, the next caller is served at once.
        let before = Instant::now();
        while ask(&directory, json!("still there?")).await.unwrap().is_none() {
            assert!(before.elapsed() < WAIT, "nobody is served any more");
        }
        left
    };
    let left = tokio::select! {
        never = listener.serve(LIMITS, echo) => match never {},
        left = served => left,
    };
    (directory, scratch, left)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_home_of_any_length_has_sockets() {
    // A path may have 108 bytes for the kernel.
    let scratch = tempfile::tempdir().unwrap();
    let long = scratch.path().join("a".repeat(200)).join("ü b'\"\n").join("c".repeat(200));
    let directory = SocketDirectory::open(&long).unwrap();
    let listener = Listener::bind(&directory, "echo.sock").unwrap();
    tokio::select! {
        never = listener.serve(LIMITS, echo) => match never {},
        answer = ask(&directory, json!({"a": [1]})) => {
            assert_eq!(answer.unwrap(), Some(json!({"a": [1]})));
        }
    }
    drop(listener);
    assert!(fs::read_dir(&long).unwrap().next().is_none(), "an orderly end leaves nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn floods_of_connections_leave_room_for_others() {
    let flood = |path: PathBuf| {
        let held: Vec<_> = (0..200).filter_map(|_| UnixStream::connect(&path).ok()).collect();
        // Those beyond the limit are disconnected at once; the others keep their connections.
        let limit = Duration::from_millis(50);
        let ended = held.iter().filter(|stream| {
            stream.set_read_timeout(Some(limit)).unwrap();
            matches!((&**stream).read(&mut [0]), Ok(0))
        });
        ended.count()
    };
    let (_, _scratch, ended) = attacked(flood).await;
    assert!(ended >= 194, "{ended} of 200");
}

#[tokio::test(flavor = "multi_thread")]
async fn huge_half_and_senseless_frames_cost_their_sender_the_connection() {
    let attack = |path: PathBuf| {
        for bytes in [
            vec![b'x'; 4_000_000],
            [b"[".repeat(999), b"\n".to_vec()].concat(),
            b"\xff\xff\n".to_vec(),
            b"{\"half\":".to_vec(),
            b"\0".to_vec(),
        ] {
            let mut stream = UnixStream::connect(&path).unwrap();
            stream.set_read_timeout(Some(WAIT)).unwrap();
            stream.set_write_timeout(Some(WAIT)).unwrap();
            // It may be cut off while it is still sending.
            let _ = stream.write_all(&bytes);
            let ended = stream.read(&mut [0; 16]);
            assert!(!matches!(&ended, Ok(1..)), "{ended:?}");
            let is_late = |error: &std::io::Error| error.kind() == std::io::ErrorKind::WouldBlock;
            assert!(!ended.as_ref().is_err_and(is_late), "it was kept: {ended:?}");
        }
    };
    attacked(attack).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_that_does_not_read_is_given_up() {
    let attack = |path: PathBuf| {
        let mut stream = UnixStream::connect(&path).unwrap();
        stream.set_write_timeout(Some(WAIT)).unwrap();
        let frame = [b"\"".to_vec(), vec![b'x'; 900], b"\"\n".to_vec()].concat();
        let before = Instant::now();
        // Answers pile up unread until the server waits, and then until it does not any more.
        while stream.write_all(&frame).is_ok() {
            assert!(before.elapsed() < WAIT, "it is served for ever");
        }
    };
    attacked(attack).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_of_another_user_is_turned_away() {
    if !rustix::process::geteuid().is_root() {
        return skip(Lack::OtherUsers);
    }
    let attack = |path: PathBuf| {
        // As if the user had opened everything.
        let open = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode));
        for directory in path.ancestors().skip(1).take(2) {
            open(directory, 0o777).unwrap();
        }
        open(&path, 0o777).unwrap();
        let script = "use Socket; $SIG{PIPE} = 'IGNORE'; $) = $( = 65534; $< = $> = 65534; die 'still root' unless $> == 65534; \
            socket(S, AF_UNIX, SOCK_STREAM, 0) or die; \
            connect(S, pack_sockaddr_un($ARGV[0])) or die qq(connect: $!); \
            syswrite(S, qq(1\\n)); my $n = sysread(S, my $b, 10); print defined $n ? qq(got $n) : qq(cut off);";
        let ran = Command::new("perl").args(["-e", script]).arg(&path).output().unwrap();
        String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned()
    };
    let (_, _scratch, said) = attacked(attack).await;
    assert!(said == "got 0" || said == "cut off", "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_a_dead_process_left_is_taken_over_and_a_living_one_is_not() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = SocketDirectory::open(&scratch.path().join("s")).unwrap();
    // A process that is killed leaves the name.
    let script = "use Socket; socket(S, AF_UNIX, SOCK_STREAM, 0); bind(S, pack_sockaddr_un($ARGV[0])) or die; \
                  listen(S, 5); $| = 1; print qq(ready\\n); sleep 100";
    let path = scratch.path().join("s/echo.sock");
    let mut child = Command::new("perl")
        .args(["-e", script])
        .arg(&path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdout.as_mut().unwrap().read_exact(&mut [0; 6]).unwrap();
    assert!(matches!(Listener::bind(&directory, "echo.sock"), Err(SocketError::Served)));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(path.exists());
    let refused = Connection::open(&directory, "echo.sock", 1000, WAIT).await;
    assert!(matches!(refused, Err(SocketError::Dead)), "{refused:?}");
    let listener = Listener::bind(&directory, "echo.sock").unwrap();
    let again = Listener::bind(&directory, "echo.sock");
    assert!(matches!(again, Err(SocketError::Served)), "{again:?}");
    tokio::select! {
        never = listener.serve(LIMITS, echo) => match never {},
        answer = ask(&directory, json!(1)) => assert_eq!(answer.unwrap(), Some(json!(1))),
    }
}
