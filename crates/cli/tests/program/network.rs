//! Network of sandboxed commands through the whole program: real commands, the real proxy, no internet.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;

use centurion_testkit::{Lack, Reply, skip};
use serde_json::{Value, json};

use crate::program::{Program, call};
use crate::sandboxes::can_confine;

/// A server on this machine that tells what it was asked; its port.
fn server(name: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut head = [0; 4096];
            let read = stream.read(&mut head).unwrap_or_default();
            let head = String::from_utf8_lossy(&head[..read]).into_owned();
            let line = head.lines().next().unwrap_or_default();
            let answer = format!("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{name} got {line}");
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    port
}

/// A command that asks for a page as every program does that follows the environment.
fn get(url: &str) -> String {
    format!(
        "at=${{HTTP_PROXY#http://}}; exec 3<>/dev/tcp/${{at%:*}}/${{at#*:}} && \
         printf 'GET {url} HTTP/1.1\\r\\n\\r\\n' >&3 && cat <&3"
    )
}

/// The results of sandboxed commands; `None` on a machine that cannot give them a network of their own.
fn results(network: &Value, commands: &[String]) -> Option<Vec<String>> {
    if !can_confine() {
        return None;
    }
    let calls = commands.iter().enumerate();
    let calls = calls.map(|(n, it)| call(&format!("toolu_{n}"), "Bash", json!({"command": it})));
    let program = Program::answering(calls.chain([Reply::text("done")]));
    let settings = json!({"sandbox": {"enabled": true, "network": network}});
    program.scratch.write_home(".claude/settings.json", settings.to_string());
    let ended = program.run(&["-p", "go"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(!ended.stderr.contains("without a sandbox"), "{}", ended.stderr);
    let requests = program.server().requests();
    let said = requests.iter().skip(1).map(|request| {
        let body = request.json();
        body["messages"].as_array().unwrap().last().unwrap()["content"].to_string()
    });
    Some(said.collect())
}

#[test]
fn an_allowed_domain_is_reached_and_a_denied_one_is_not() {
    let port = server("server");
    // Names that lead to this machine have to be named: a star never means them.
    let network = json!({
        "allowedDomains": ["localhost", "127.0.0.3", "*"], "deniedDomains": ["127.0.0.3"],
        "strictAllowlist": true,
    });
    let commands = [
        get(&format!("http://localhost:{port}/page")),
        get(&format!("http://127.0.0.3:{port}/page")),
        get(&format!("http://127.0.0.2:{port}/page")),
        format!("echo x > /dev/tcp/127.0.0.1/{port}"),
    ];
    let Some(results) = results(&network, &commands) else { return skip(Lack::Sandbox) };
    let [allowed, denied, unlisted, direct] = results.as_slice() else { panic!("{results:?}") };
    assert!(allowed.contains("server got GET /page"), "{allowed}");
    for refused in [denied, unlisted] {
        assert!(refused.contains("403 Forbidden"), "{refused}");
        assert!(refused.contains("the sandbox does not allow to reach 127.0.0."), "{refused}");
        assert!(!refused.contains("server got"), "{refused}");
    }
    assert!(direct.contains("Connection refused"), "there is no way around the proxy: {direct}");
}

#[test]
fn without_domains_there_is_no_network_at_all() {
    let port = server("server");
    let commands = [format!("echo ${{HTTP_PROXY-none}}; echo x > /dev/tcp/127.0.0.1/{port}")];
    let Some(results) = results(&json!({}), &commands) else { return skip(Lack::Sandbox) };
    assert!(results[0].contains("none") && results[0].contains("unreachable"), "{results:?}");
}

#[test]
fn a_proxy_of_the_users_own_is_used() {
    let port = server("own proxy");
    let network = json!({"httpProxyPort": port, "deniedDomains": ["denied.org"]});
    let commands = [get("http://anywhere.org/page"), get("http://denied.org/page")];
    let Some(results) = results(&network, &commands) else { return skip(Lack::Sandbox) };
    assert!(results[0].contains("own proxy got GET http://anywhere.org/page"), "{results:?}");
    assert!(results[1].contains("403 Forbidden"), "{results:?}");
}

#[test]
fn a_listed_unix_socket_is_reached_and_no_other() {
    let scratch = tempfile::tempdir().unwrap();
    let mut commands = Vec::new();
    for name in ["listed", "other"] {
        let path = scratch.path().join(name);
        let listener = UnixListener::bind(&path).unwrap();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let _ = stream.write_all(format!("{name} says hello").as_bytes());
            }
        });
        let path = path.display();
        commands.push(format!(
            "perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0) or die $!; \
             connect(S, sockaddr_un(\"{path}\")) or die $!; print while <S>'"
        ));
    }
    let network = json!({"allowUnixSockets": [scratch.path().join("listed")]});
    let Some(results) = results(&network, &commands) else { return skip(Lack::Sandbox) };
    assert!(results[0].contains("listed says hello"), "{results:?}");
    assert!(results[1].contains("Permission denied"), "{results:?}");
    assert!(!results[1].contains("hello"), "{results:?}");
}
