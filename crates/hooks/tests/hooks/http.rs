//! HTTP hooks.

use centurion_config::settings::{HookLimits, Level, Origin, Sourced};
use centurion_hooks::HookRules;
use centurion_testkit::{Fault, Reply, Server};
use serde_json::json;

use crate::stage::Stage;

fn post(stage: &Stage, url: &str) {
    let handler = json!({"type": "http", "url": url, "timeout": 20,
        "headers": {"X-Token": "Bearer $TOKEN", "X-Other": "<$OTHER>", "X-Home": "<$HOME>"},
        "allowedEnvVars": ["TOKEN", "OTHER"]});
    stage.settings(Level::User, &json!({"UserPromptSubmit": [{"hooks": [handler]}]}));
}

fn limit(stage: &Stage, urls: Option<&[&str]>, variables: Option<&[&str]>) {
    let origin = Origin {
        level: Level::User,
        file: std::path::Path::new("/s").into(),
        line: 1,
        root: std::path::Path::new("/").into(),
    };
    let list = |texts: &[&str]| {
        let sourced = |text: &&str| Sourced { value: (*text).to_owned(), origin: origin.clone() };
        texts.iter().map(sourced).collect()
    };
    stage.hooks.limit(HookRules::new(&HookLimits {
        http_urls: urls.map(list),
        http_variables: variables.map(list),
        ..HookLimits::default()
    }));
}

#[tokio::test]
async fn the_answer_to_a_post_counts_like_what_a_command_prints() {
    let output = json!({"decision": "block", "reason": "R"}).to_string();
    let server = Server::start([Reply::status(200).body(output)]);
    let stage = Stage::with_env(&[("TOKEN", "t"), ("OTHER", "o"), ("HOME", "/h")]);
    post(&stage, &format!("{}/hook?x=1", server.url()));
    limit(&stage, Some(&[&format!("{}/*", server.url())]), Some(&["TOKEN"]));
    let fired = stage.prompt().await;
    assert_eq!(fired.verdict.block.reason(), Some("R"));
    let request = server.last();
    assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/hook?x=1"));
    assert_eq!(request.header("content-type"), Some("application/json"));
    assert_eq!(request.json()["prompt"], "hi");
    // A variable must be allowed by the hook and by the settings.
    assert_eq!(request.header("x-token"), Some("Bearer t"));
    assert_eq!(request.header("x-other"), Some("<>"));
    assert_eq!(request.header("x-home"), Some("<>"));
}

#[tokio::test]
async fn an_answer_that_is_too_long_to_be_read_counts_as_a_denial() {
    let server = Server::start([Reply::status(200).body(vec![b' '; 1024 * 1024 + 1])]);
    let stage = Stage::new();
    post(&stage, &server.url());
    let fired = stage.prompt().await;
    let reason = fired.verdict.block.reason().unwrap();
    assert!(reason.contains("more than one megabyte"), "{reason}");
}

#[tokio::test]
async fn anything_but_nothing_or_an_object_is_an_error_that_stops_nothing() {
    for (reply, error) in [
        (Reply::status(204), None),
        (Reply::status(200).body("{}"), None),
        (Reply::status(200).body("words"), Some("no JSON object")),
        (Reply::status(200).body("[1]"), Some("no JSON object")),
        (Reply::status(200).body("{broken"), Some("is no JSON")),
        (Reply::status(403).body("{\"decision\": \"block\"}"), Some("status 403")),
        (Reply::status(302).header("location", "http://127.0.0.1:1/"), Some("status 302")),
        (Reply::status(500).body(vec![b' '; 1024 * 1024 + 1]), Some("status 500")),
        (
            Reply::status(200).body("{}").fault(Fault::Reset { after: 0 }),
            Some("could not be reached"),
        ),
    ] {
        let shown = format!("{:.200?}", format!("{reply:?}"));
        let server = Server::start([reply]);
        let stage = Stage::new();
        post(&stage, &server.url());
        let fired = stage.prompt().await;
        assert_eq!(fired.verdict.block.reason(), None, "{shown}");
        let told = fired.effects.errors.first().map(|it| it.message.clone()).unwrap_or_default();
        assert_eq!(told.is_empty(), error.is_none(), "{shown}: {told}");
        assert!(told.contains(error.unwrap_or_default()), "{shown}: {told}");
    }
}

#[tokio::test]
async fn a_url_that_is_not_listed_is_not_reached() {
    let server = Server::start([Reply::status(204)]);
    let stage = Stage::new();
    post(&stage, &server.url());
    limit(&stage, Some(&["https://a.com/*"]), None);
    let fired = stage.prompt().await;
    assert!(fired.effects.errors[0].message.contains("allowedHttpHookUrls"), "{fired:?}");
    assert!(server.requests().is_empty());
}
