//! Commands that may reach some hosts, and no others.

use std::fs::Permissions;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::thread::JoinHandle;

use centurion_sandbox::{Domains, Network, Proxy, ProxyProtocol, Routes};

use crate::cell::Cell;

/// A server on this machine that answers plain requests with the request.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    _thread: JoinHandle<()>,
}

impl Server {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let thread = std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut head = [0; 4096];
                let read = stream.read(&mut head).unwrap_or_default();
                let head = String::from_utf8_lossy(head.get(..read).unwrap_or_default());
                let line = head.lines().next().unwrap_or_default().to_owned();
                let answer =
                    format!("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nserver got {line}");
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        Self { address, _thread: thread }
    }
}

/// A proxy that allows this machine's address, and nothing else.
fn proxy(socket: PathBuf) -> Proxy {
    let domains = Domains { allowed: vec!["127.0.0.1".to_owned()], denied: Vec::new() };
    start(socket, Routes { domains, ..Routes::default() })
}

/// A proxy that every user of the tests can reach.
pub(crate) fn start(socket: PathBuf, routes: Routes) -> Proxy {
    let proxy = Proxy::start(socket, routes).unwrap();
    std::fs::set_permissions(proxy.socket(), Permissions::from_mode(0o777)).unwrap();
    proxy
}

fn through(proxy: &Proxy) -> Network {
    Network::Proxied { socket: proxy.socket().to_owned(), ways: vec![ProxyProtocol::Http] }
}

/// Sends a literal request to the proxy.
pub(crate) fn ask(request: &str) -> String {
    format!(
        "perl -MSocket -e '
            my ($host, $port) = $ENV{{HTTP_PROXY}} =~ m|http://(.*):(.*)| or die \"no proxy\";
            socket(S, AF_INET, SOCK_STREAM, 0) or die $!;
            connect(S, sockaddr_in($port, inet_aton($host))) or die $!;
            send(S, \"{request}\", 0); print while <S>;'"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn allowed_hosts_are_reached_and_no_others() {
    let server = Server::start();
    let directory = tempfile::tempdir().unwrap();
    std::fs::set_permissions(directory.path(), Permissions::from_mode(0o777)).unwrap();
    let proxy = proxy(directory.path().join("proxy"));
    let network = through(&proxy);
    let cells = Cell::all(Cell::open(network));
    for cell in &cells {
        assert!(cell.has_namespaces(), "without namespaces it is refused");
        let _hold = cell.hold();
        let to = server.address;
        let plain =
            |host: &str| format!("GET http://{to}/page HTTP/1.1\\r\\nHost: {host}\\r\\n\\r\\n");
        let said = cell.run(&ask(&plain("evil.org")));
        assert!(said.text.starts_with("HTTP/1.1 400 ") && !said.text.contains("got"), "{said:?}");
        let said = cell.run(&ask(&plain(&to.to_string())));
        assert!(said.text.ends_with("server got GET /page HTTP/1.1"), "{said:?}");
        let tunnel = format!("CONNECT {to} HTTP/1.1\\r\\n\\r\\nGET /inside HTTP/1.1\\r\\n\\r\\n");
        let said = cell.run(&ask(&tunnel));
        assert!(said.text.ends_with("server got GET /inside HTTP/1.1"), "{said:?}");

        for request in [
            format!("GET http://localhost:{}/ HTTP/1.1\\r\\n\\r\\n", to.port()),
            "CONNECT example.com:443 HTTP/1.1\\r\\n\\r\\n".to_owned(),
            "CONNECT 169.254.169.254:80 HTTP/1.1\\r\\n\\r\\n".to_owned(),
        ] {
            let said = cell.run(&ask(&request));
            assert!(said.text.contains("403 Forbidden"), "{request}: {said:?}");
            assert!(said.text.contains("the sandbox does not allow"), "{request}: {said:?}");
        }
        // There is no way around the proxy.
        let said = cell.run(&format!("echo x > /dev/tcp/127.0.0.1/{}", to.port()));
        assert!(!said.ok, "{said:?}");
        let said = cell.run(&format!(
            "perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0) or die $!' || ls {}",
            proxy.socket().display()
        ));
        assert!(said.text.contains("not permitted"), "{said:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_hold_the_command_is_not_served() {
    let server = Server::start();
    let directory = tempfile::tempdir().unwrap();
    std::fs::set_permissions(directory.path(), Permissions::from_mode(0o777)).unwrap();
    let proxy = proxy(directory.path().join("proxy"));
    let network = through(&proxy);
    let request = format!("GET http://{}/ HTTP/1.1\\r\\n\\r\\n", server.address);
    for cell in Cell::all(Cell::open(network)) {
        let said = cell.run(&ask(&request));
        assert!(!said.text.contains("server got"), "{said:?}");
    }
}

#[test]
fn a_proxy_that_is_gone_stops_the_command() {
    let network =
        Network::Proxied { socket: "/nonexistent/proxy".into(), ways: vec![ProxyProtocol::Http] };
    for cell in Cell::all(Cell::open(network)) {
        let said = cell.run("echo ran");
        assert!(said.text.contains("cannot reach the proxy") && !said.ok, "{said:?}");
    }
}
