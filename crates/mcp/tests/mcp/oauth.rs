//! Login to a server, against an authorization server of the test.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use centurion_config::mcp::{McpOAuth, McpServer, McpTransport};
use centurion_mcp::{CallOptions, LoginError, State, login, logout};
use centurion_testkit::{Recorded, Reply, Server};
use serde_json::{Value, json};
use url::Url;

use crate::bench::{Bench, PATIENCE, call, object, program, remote, server};
use crate::web;

/// An MCP server that trusts only tokens of its own authorization server. Each token is good for one
/// generation; asking with a refresh token begins the next.
struct World {
    web: Server,
    generation: Arc<AtomicUsize>,
}

/// How the authorization server of the test describes itself.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Usual,
    /// As revision 2025-03-26 has it: at the root of the server, with an issuer that is a path there.
    Old,
    /// The same, but tokens come from another server.
    OldElsewhere,
    /// Client ids may be addresses of documents.
    Documents,
    /// Calls of tools need more than the first login asks for.
    Narrow,
}

impl World {
    fn new() -> Self {
        Self::of(Kind::Usual)
    }

    fn of(kind: Kind) -> Self {
        let base: Arc<OnceLock<String>> = Arc::default();
        let generation = Arc::new(AtomicUsize::new(1));
        let (known, current) = (Arc::clone(&base), Arc::clone(&generation));
        let web = Server::start_with(move |request| {
            let base = known.get().map_or("", String::as_str);
            route(request, base, &current, kind)
        });
        base.set(web.url()).unwrap();
        Self { web, generation }
    }

    fn server(&self) -> McpServer {
        server(McpTransport::Http(remote(format!("{}/mcp", self.web.url()))))
    }

    fn asked(&self, path: &str) -> Vec<String> {
        let all = self.web.requests().into_iter().filter(|request| request.path == path);
        all.map(|request| String::from_utf8_lossy(&request.body).into_owned()).collect()
    }
}

fn route(request: &Recorded, base: &str, generation: &AtomicUsize, kind: Kind) -> Reply {
    let json = |value: Value| {
        Reply::status(200).header("content-type", "application/json").body(value.to_string())
    };
    let current = generation.load(Ordering::SeqCst);
    let is_old = matches!(kind, Kind::Old | Kind::OldElsewhere);
    let issuer = if is_old { format!("{base}/oauth") } else { base.to_owned() };
    let elsewhere = if kind == Kind::OldElsewhere { "https://tokens.example.com" } else { base };
    match request.path.as_str() {
        "/mcp"
            if kind == Kind::Narrow
                && current == 1
                && request.header("authorization").is_some()
                && request.json()["method"] == "tools/call" =>
        {
            let challenge = "Bearer error=\"insufficient_scope\", scope=\"write\"";
            Reply::status(403).header("www-authenticate", challenge)
        }
        "/mcp" if request.header("authorization") == Some(&format!("Bearer token-{current}")) => {
            web::reply(request)
        }
        "/mcp" if is_old => Reply::status(401).header("www-authenticate", "Bearer"),
        "/.well-known/oauth-protected-resource/mcp" if is_old => Reply::status(404),
        "/mcp" => Reply::status(401).header(
            "www-authenticate",
            &format!("Bearer resource_metadata=\"{base}/.well-known/oauth-protected-resource/mcp\", scope=\"read\""),
        ),
        "/.well-known/oauth-protected-resource/mcp" => {
            json(json!({ "resource": format!("{base}/mcp"), "authorization_servers": [base] }))
        }
        "/.well-known/oauth-authorization-server" => json(json!({
            "issuer": issuer,
            "authorization_endpoint": format!("{base}/authorize"),
            "token_endpoint": format!("{elsewhere}/token"),
            "client_id_metadata_document_supported": kind == Kind::Documents,
            "registration_endpoint": format!("{base}/register"),
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
        })),
        "/register" => {
            let asked = request.json();
            let uris = asked["redirect_uris"].clone();
            json(json!({ "client_id": "registered", "redirect_uris": uris }))
        }
        "/token" => {
            let body = String::from_utf8_lossy(&request.body);
            if body.contains("grant_type=refresh_token") {
                if !body.contains(&format!("refresh_token=refresh-{}", current - 1)) {
                    let error = json!({ "error": "invalid_grant" }).to_string();
                    return Reply::status(400).header("content-type", "application/json").body(error);
                }
            } else if !body.contains("code=the-code") || !body.contains("code_verifier=") {
                return Reply::status(400);
            }
            json(json!({
                "access_token": format!("token-{current}"),
                "refresh_token": format!("refresh-{current}"),
                "token_type": "Bearer",
                "expires_in": 3600,
            }))
        }
        _ => Reply::status(404),
    }
}

/// A person who agrees: the browser goes where the page sends it.
fn agree(page: &str) {
    let page = Url::parse(page).unwrap();
    let find =
        |name: &str| page.query_pairs().find(|(known, _)| known == name).unwrap().1.into_owned();
    assert_eq!(find("code_challenge_method"), "S256");
    visit(format!("{}?code=the-code&state={}", find("redirect_uri"), find("state")));
}

fn refuse(page: &str) {
    let page = Url::parse(page).unwrap();
    let find =
        |name: &str| page.query_pairs().find(|(known, _)| known == name).unwrap().1.into_owned();
    let back = find("redirect_uri");
    // A foreign request at the port changes nothing.
    visit(format!("{back}?code=evil&state=guess"));
    visit(format!(
        "{back}?error=access_denied&error_description=not+today&state={}",
        find("state")
    ));
}

fn visit(url: String) {
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        runtime.block_on(async { client.get(url).send().await.unwrap() });
    });
}

#[tokio::test]
async fn a_login_gives_tokens_that_are_kept_used_and_renewed() {
    let world = World::new();
    let bench = Bench::new();
    let tokens = bench.root().join("tokens.json");
    let connection = bench.pool.share(world.server());
    assert_eq!(connection.ready(PATIENCE).await.to_string(), "needs-auth");

    login(&world.server(), &tokens, None, agree).await.unwrap();
    assert_eq!(std::fs::metadata(&tokens).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(connection.reconnect().await, State::Connected);
    assert_eq!(call(&connection, "echo", json!({})).await, "{}");
    assert_eq!(world.asked("/register").len(), 1);

    // The server forgets the token: the client renews it, and the caller does not notice.
    world.generation.store(2, Ordering::SeqCst);
    assert_eq!(call(&connection, "echo", json!({})).await, "{}");
    assert!(std::fs::read_to_string(&tokens).unwrap().contains("refresh-2"));

    // It forgets everything: the user has to log in again.
    world.generation.store(9, Ordering::SeqCst);
    let error = connection.call("echo", object(json!({})), &CallOptions::default()).await;
    assert!(error.is_err());
    let state = connection.state();
    assert!(state.reason().is_some_and(|reason| reason.contains("mcp login test")), "{state:?}");

    assert!(logout(&world.server(), &tokens).unwrap());
    assert!(!logout(&world.server(), &tokens).unwrap());
    assert_eq!(connection.reconnect().await.to_string(), "needs-auth");
}

#[tokio::test]
async fn a_call_that_needs_more_scopes_has_the_next_login_ask_for_them() {
    let world = World::of(Kind::Narrow);
    let bench = Bench::new();
    let tokens = bench.root().join("tokens.json");
    login(&world.server(), &tokens, None, agree).await.unwrap();
    let connection = bench.pool.share(world.server());
    assert_eq!(connection.ready(PATIENCE).await, State::Connected);
    let refused = connection.call("echo", object(json!({})), &CallOptions::default()).await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("write"), "{refused}");
    let state = connection.state();
    assert!(state.reason().is_some_and(|reason| reason.contains("mcp login test")), "{state:?}");

    // The token of the next login may call tools.
    world.generation.store(2, Ordering::SeqCst);
    let seen = Arc::new(OnceLock::new());
    let page = Arc::clone(&seen);
    let keep = move |url: &str| {
        page.set(url.to_owned()).unwrap();
        agree(url);
    };
    login(&world.server(), &tokens, None, keep).await.unwrap();
    let page = Url::parse(seen.get().unwrap()).unwrap();
    let scopes = page.query_pairs().find(|(name, _)| name == "scope").unwrap().1.into_owned();
    assert!(scopes.split(' ').any(|scope| scope == "write"), "{scopes}");
    assert!(scopes.split(' ').any(|scope| scope == "read"), "what was granted is kept: {scopes}");
    assert_eq!(connection.reconnect().await, State::Connected);
    assert_eq!(call(&connection, "echo", json!({})).await, "{}");
}

#[tokio::test]
async fn a_known_client_does_not_register_and_asks_for_its_scopes() {
    let world = World::new();
    let bench = Bench::new();
    let mut place = remote(format!("{}/mcp", world.web.url()));
    place.oauth = Some(McpOAuth {
        client_id: Some("mine".into()),
        callback_port: Some(centurion_testkit::closed_port()),
        scopes: vec!["one".into(), "two".into()],
        auth_server_metadata_url: Some(format!(
            "{}/.well-known/oauth-authorization-server",
            world.web.url()
        )),
    });
    let port = place.oauth.as_ref().unwrap().callback_port.unwrap();
    let server = server(McpTransport::Http(place));
    let seen = Arc::new(OnceLock::new());
    let page = Arc::clone(&seen);
    login(&server, &bench.root().join("tokens.json"), Some("hush"), move |url| {
        page.set(url.to_owned()).unwrap();
        agree(url);
    })
    .await
    .unwrap();
    let page = seen.get().unwrap();
    assert!(page.contains("client_id=mine") && page.contains("scope=one+two"), "{page}");
    assert!(page.contains(&format!("localhost%3A{port}")), "{page}");
    assert!(world.asked("/register").is_empty());
    assert_eq!(bench.pool.share(server).ready(PATIENCE).await, State::Connected);
}

#[tokio::test]
async fn an_old_server_may_name_any_issuer_of_its_own_origin() {
    let world = World::of(Kind::Old);
    let bench = Bench::new();
    let tokens = bench.root().join("tokens.json");
    login(&world.server(), &tokens, None, agree).await.unwrap();
    // Tokens are used and renewed although the issuer is a path of the server.
    let connection = bench.pool.share(world.server());
    assert_eq!(connection.ready(PATIENCE).await, State::Connected);
    world.generation.store(2, Ordering::SeqCst);
    assert_eq!(call(&connection, "echo", json!({})).await, "{}");

    let world = World::of(Kind::OldElsewhere);
    let unused = |_: &str| panic!("there is no page");
    let error = login(&world.server(), &tokens, None, unused).await.unwrap_err().to_string();
    assert!(error.contains("issuer mismatch"), "{error}");
}

#[tokio::test]
async fn a_client_id_that_is_an_address_is_used_where_such_documents_are_read() {
    let document = "https://client.example.com/centurion.json";
    for (kind, registrations) in [(Kind::Documents, 0), (Kind::Usual, 1)] {
        let world = World::of(kind);
        let bench = Bench::new();
        let mut place = remote(format!("{}/mcp", world.web.url()));
        place.oauth =
            Some(McpOAuth { client_id: Some(document.to_owned()), ..McpOAuth::default() });
        let server = server(McpTransport::Http(place));
        let seen = Arc::new(OnceLock::new());
        let page = Arc::clone(&seen);
        let visit = move |url: &str| {
            page.set(url.to_owned()).unwrap();
            agree(url);
        };
        login(&server, &bench.root().join("tokens.json"), None, visit).await.unwrap();
        let page = Url::parse(seen.get().unwrap()).unwrap();
        let client = page.query_pairs().find(|(name, _)| name == "client_id").unwrap().1;
        let expected = if registrations == 0 { document } else { "registered" };
        assert_eq!(client, expected);
        assert_eq!(world.asked("/register").len(), registrations);
    }
}

#[tokio::test]
async fn a_login_that_cannot_be_says_why() {
    let world = World::new();
    let bench = Bench::new();
    let tokens = bench.root().join("tokens.json");
    let error = login(&world.server(), &tokens, None, refuse).await.unwrap_err();
    assert!(matches!(&error, LoginError::Refused(why) if why == "not today"), "{error}");
    assert!(!tokens.exists());
    let error =
        login(&program(""), &tokens, None, |_| panic!("there is no page")).await.unwrap_err();
    assert!(matches!(error, LoginError::NotRemote(_)), "{error}");
}
