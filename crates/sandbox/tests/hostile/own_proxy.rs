//! Commands whose way out is a proxy that the user runs.

use std::fs::{self, Permissions};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use centurion_sandbox::{Domains, Network, Routes};
use parking_lot::Mutex;

use crate::cell::Cell;
use crate::proxied::{Server, ask, start};

/// A SOCKS proxy of the user's own, which wants a password and answers with the requested name.
fn socks_proxy() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let _ = serve_socks(stream);
        }
    });
    port
}

fn serve_socks(mut stream: TcpStream) -> std::io::Result<()> {
    let mut read = |count: usize, answer: &[u8]| {
        let mut bytes = vec![0; count];
        stream.read_exact(&mut bytes)?;
        stream.write_all(answer)?;
        std::io::Result::Ok(bytes)
    };
    let offered = usize::from(read(2, &[])?[1]);
    read(offered, &[5, 2])?;
    let secret = read(2 + 2 + 1 + 4, &[1, 0])?;
    assert_eq!(secret, b"\x01\x02me\x04word");
    let length = usize::from(read(5, &[])?[4]);
    let name = read(length + 2, &[5, 0, 0, 1, 0, 0, 0, 0, 0, 0])?;
    let name = String::from_utf8_lossy(&name[..length]).into_owned();
    read(0, format!("socks got {name}").as_bytes())?;
    Ok(())
}

/// Sends a SOCKS request to the address that programs are told.
fn ask_socks(command: u8, host: &str) -> String {
    format!(
        "perl -MSocket -e '
            my ($host, $port) = $ENV{{ALL_PROXY}} =~ m|socks5h://(.*):(.*)| or die \"no proxy\";
            socket(S, AF_INET, SOCK_STREAM, 0) or die $!;
            connect(S, sockaddr_in($port, inet_aton($host))) or die $!;
            sub hear {{ my $all = \"\"; while (length $all < $_[0]) {{
                sysread(S, my $part, $_[0] - length $all) or last; $all .= $part; }} $all }}
            syswrite(S, \"\\x05\\x02\\x00\\x02\"); hear(2) eq \"\\x05\\x02\" or die \"no way\";
            syswrite(S, \"\\x01\\x02me\\x04word\"); hear(2) eq \"\\x01\\x00\" or die \"not known\";
            syswrite(S, \"\\x05\" . chr({command}) . \"\\x00\\x03\" . chr(length \"{host}\") . \"{host}\\x00\\x50\");
            print \"code \", unpack(\"xC\", hear(10)), \" \"; print hear(100);'"
    )
}

fn routes(http: Option<u16>, socks: Option<u16>, allowed: &[&str], denied: &[&str]) -> Routes {
    let owned = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
    let domains = Domains { allowed: owned(allowed), denied: owned(denied) };
    Routes { domains, http, socks, ..Routes::default() }
}

/// Runs commands in every cell whose network is these routes.
fn each_cell(routes: &Routes, test: impl Fn(&Cell)) {
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), Permissions::from_mode(0o777)).unwrap();
    let proxy = start(directory.path().join("proxy"), routes.clone());
    let (socket, ways) = (proxy.socket().to_owned(), routes.ways());
    for cell in Cell::all(Cell::open(Network::Proxied { socket, ways })) {
        let _hold = cell.hold();
        test(&cell);
    }
}

/// A proxy of the user's own that makes no tunnel and waits for more requests; with the text that it receives.
fn refusing_proxy() -> (u16, Arc<Mutex<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let heard = Arc::new(Mutex::new(String::new()));
    let told = Arc::clone(&heard);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = stream.read(&mut bytes) {
                told.lock().push_str(&String::from_utf8_lossy(&bytes[..count]));
                let _ = stream.write_all(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n");
            }
        }
    });
    (port, heard)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tunnel_that_was_refused_carries_no_second_request() {
    let (port, heard) = refusing_proxy();
    each_cell(&routes(Some(port), None, &["good.test"], &["evil.test"]), |cell| {
        let asked =
            "CONNECT good.test:443 HTTP/1.1\\r\\n\\r\\nCONNECT evil.test:443 HTTP/1.1\\r\\n\\r\\n";
        let said = cell.run(&ask(asked));
        assert!(said.text.starts_with("HTTP/1.1 502 "), "{said:?}");
    });
    let heard = heard.lock();
    assert!(heard.contains("good.test") && !heard.contains("evil.test"), "{heard}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_of_the_users_own_is_asked_in_place_of_ours() {
    let own = Server::start();
    each_cell(&routes(Some(own.address.port()), None, &[], &["denied.org"]), |cell| {
        let plain = "GET http://anywhere.org/page HTTP/1.1\\r\\n\\r\\n";
        let said = cell.run(&ask(plain));
        let expected = "server got GET http://anywhere.org/page HTTP/1.1";
        assert!(said.text.ends_with(expected), "{said:?}");
        let said = cell.run(&ask("CONNECT anywhere.org:443 HTTP/1.1\\r\\n\\r\\n"));
        assert!(said.text.ends_with("server got CONNECT anywhere.org:443 HTTP/1.1"), "{said:?}");
        let said = cell.run(&ask("CONNECT denied.org:443 HTTP/1.1\\r\\n\\r\\n"));
        assert!(said.text.contains("403 Forbidden"), "{said:?}");
        assert!(!said.text.contains("server got"), "{said:?}");
    });
    each_cell(&routes(Some(own.address.port()), None, &["listed.org"], &[]), |cell| {
        let said = cell.run(&ask("CONNECT listed.org:443 HTTP/1.1\\r\\n\\r\\n"));
        assert!(said.text.contains("server got"), "{said:?}");
        let said = cell.run(&ask("CONNECT other.org:443 HTTP/1.1\\r\\n\\r\\n"));
        assert!(said.text.contains("403 Forbidden"), "{said:?}");
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socks_proxy_of_the_users_own_is_asked_for_what_is_not_denied() {
    each_cell(&routes(None, Some(socks_proxy()), &[], &["denied.org"]), |cell| {
        let said = cell.run(&ask_socks(1, "anywhere.org"));
        assert_eq!(said.text, "code 0 socks got anywhere.org");
        let said = cell.run(&ask_socks(1, "denied.org"));
        assert_eq!(said.text, "code 2 ");
        // Datagrams could go anywhere.
        let said = cell.run(&ask_socks(3, "anywhere.org"));
        assert_eq!(said.text, "code 7 ");
        let said = cell.run("echo ${HTTP_PROXY-none}");
        assert_eq!(said.text, "none\n", "nobody serves that");
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_that_does_not_run_is_named() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    each_cell(&routes(Some(port), None, &[], &[]), |cell| {
        let said = cell.run(&ask("CONNECT anywhere.org:443 HTTP/1.1\\r\\n\\r\\n"));
        assert!(said.text.contains("502 Bad Gateway"), "{said:?}");
        assert!(said.text.contains(&format!("the proxy on port {port}")), "{said:?}");
    });
}
