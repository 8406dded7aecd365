//! Commands that may reach some Unix sockets, and no others.

use std::fs::{self, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::Path;

use centurion_sandbox::{Network, Proxy, Routes, UnixSockets};
use tempfile::TempDir;

use crate::cell::Cell;
use crate::network::Listeners;
use crate::proxied::start;

/// A directory with a reachable socket, on which a server says hello, and the proxy.
struct Outside {
    directory: TempDir,
    proxy: Proxy,
}

impl Outside {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), Permissions::from_mode(0o777)).unwrap();
        let listed = directory.path().join("listed");
        let listener = UnixListener::bind(&listed).unwrap();
        fs::set_permissions(&listed, Permissions::from_mode(0o777)).unwrap();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let _ = stream.write_all(b"hello");
            }
        });
        let routes = Routes { unix_sockets: vec![listed], ..Routes::default() };
        let proxy = start(directory.path().join("proxy"), routes);
        Self { directory, proxy }
    }

    fn cells(&self, network: &Network) -> Vec<Cell> {
        let socket = self.proxy.socket();
        Cell::all(|sandbox| {
            sandbox.unix_sockets = UnixSockets::Listed { socket: socket.to_owned() };
            sandbox.network = network.clone();
        })
    }

    fn listed(&self) -> String {
        self.directory.path().join("listed").display().to_string()
    }
}

/// Connects to a path and prints the server's text.
fn listen_to(path: &str) -> String {
    format!(
        "perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0) or die $!; \
         connect(S, pack(\"S a*\", AF_UNIX, \"{path}\")) or die $!; print while <S>'"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listed_socket_is_reached_and_no_other() {
    let outside = Outside::new();
    for cell in outside.cells(&Network::Off) {
        let _hold = cell.hold();
        let said = cell.run(&listen_to(&outside.listed()));
        assert_eq!(said.text, "hello", "{:?}", cell.plan.method);
        let near = format!("cd {} && {}", outside.directory.path().display(), listen_to("listed"));
        let said = cell.run(&near);
        assert_eq!(said.text, "hello", "{:?}", cell.plan.method);

        let listeners = Listeners::new(&cell);
        for (way, attack) in listeners.attacks() {
            let said = cell.run(&attack);
            assert!(!said.ok || way == "udp", "{way}: {said:?} {:?}", cell.plan.method);
            assert_eq!(listeners.reached(), [""; 0], "{way} {:?}", cell.plan.method);
        }
        // Not even the proxy itself.
        let said = cell.run(&listen_to(&outside.proxy.socket().display().to_string()));
        assert!(said.text.contains("Permission denied"), "{said:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_to_a_listed_socket_leads_there_and_a_listed_name_nowhere_else() {
    let outside = Outside::new();
    for cell in outside.cells(&Network::Off) {
        let _hold = cell.hold();
        let other = UnixListener::bind(cell.project.join("other")).unwrap();
        other.set_nonblocking(true).unwrap();
        // The name of the listed socket, but in a directory of the command's own.
        let said = cell.run(&format!("ln -s other listed; {}", listen_to("listed")));
        assert!(said.text.contains("Permission denied"), "{said:?}");
        assert!(other.accept().is_err());
        let directory = outside.directory.path().display();
        let said = cell.run(&format!("ln -s {directory} way; {}", listen_to("way/listed")));
        assert_eq!(said.text, "hello", "{:?}", cell.plan.method);
    }
}

/// The checked address is the one that is connected to, however fast it changes.
#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_changes_while_it_is_looked_at_reaches_no_other_host() {
    let outside = Outside::new();
    for cell in outside.cells(&Network::Off) {
        let _hold = cell.hold();
        let listeners = Listeners::new(&cell);
        let program = cell.project.join("swap.py");
        fs::write(&program, swapping(&outside.listed(), &cell.project.join("stream"))).unwrap();
        let said = cell.run("python3 swap.py");
        assert!(said.text.contains("tried"), "{said:?}");
        assert_eq!(listeners.reached(), [""; 0], "{:?}", cell.plan.method);
    }
}

/// Connects again and again while another thread writes one address over the other.
fn swapping(listed: &str, other: &Path) -> String {
    format!(
        r#"
import ctypes, os, socket, struct, threading
libc = ctypes.CDLL(None, use_errno=True)
good = struct.pack("H108s", 1, b"{listed}")
bad = struct.pack("H108s", 1, b"{other}")
shared = ctypes.create_string_buffer(good, 110)
stopped = False
def swap():
    while not stopped:
        ctypes.memmove(shared, bad, 110)
        ctypes.memmove(shared, good, 110)
thread = threading.Thread(target=swap)
thread.start()
for _ in range(300):
    made = socket.socket(socket.AF_UNIX)
    libc.connect(made.fileno(), shared, 110)
    made.close()
stopped = True
thread.join()
print("tried")
"#,
        other = other.display()
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_still_reaches_its_own_processes() {
    let attempt = "perl -MSocket -e '
        socket(L, AF_INET, SOCK_STREAM, 0) or die $!;
        bind(L, sockaddr_in(0, INADDR_LOOPBACK)) or die $!; listen(L, 1) or die $!;
        my ($port) = sockaddr_in(getsockname(L));
        if (fork() == 0) {
            socket(S, AF_INET, SOCK_STREAM, 0) or die $!;
            connect(S, sockaddr_in($port, INADDR_LOOPBACK)) or die $!;
            send(S, \"hello\", 0); exit 0;
        }
        $SIG{ALRM} = sub { die \"nobody came\" }; alarm 5;
        accept(C, L) or die $!; recv(C, my $text, 5, 0); print $text;'";
    let outside = Outside::new();
    for cell in outside.cells(&Network::Loopback) {
        let _hold = cell.hold();
        let said = cell.run(attempt);
        assert_eq!(said.text == "hello", cell.has_namespaces(), "{said:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_hold_no_connection_is_made() {
    let outside = Outside::new();
    for cell in outside.cells(&Network::Off) {
        let said = cell.run(&listen_to(&outside.listed()));
        assert!(!said.ok && !said.text.contains("hello"), "{said:?}");
    }
}
