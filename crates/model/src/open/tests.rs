//! The model that is opened for each name and environment. Servers are searched on ports of the test.

use std::time::Duration;

use centurion_protocol::Thinking;
use centurion_testkit::{Fault, Reply, Scratch, Server, closed_port};
use serde_json::json;

use super::*;
use crate::discover::UsualAddress;
use crate::testing::{Memory, request, world};
use crate::{Model, Patience, RetryPolicy};

async fn open(spec: Option<&str>, env: &[(&str, &str)]) -> Result<Model, OpenError> {
    open_among(spec, env, &[]).await
}

async fn open_among(
    spec: Option<&str>,
    env: &[(&str, &str)],
    ports: &[u16],
) -> Result<Model, OpenError> {
    let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let places: Vec<UsualAddress> =
        ports.iter().map(|port| UsualAddress { kind: "Test", port: *port }).collect();
    // A busy machine may take its time; only the silent server makes the test wait this long.
    let search = Search { places: &places, patience: Duration::from_secs(2) };
    Model::open_among(spec, &Env::new(env), ModelAccess::default(), world(), search).await
}

fn offers(names: &[&str]) -> Server {
    let data: Vec<_> = names.iter().map(|name| json!({ "id": name, "object": "model" })).collect();
    let list = json!({ "object": "list", "data": data }).to_string();
    Server::start_with(move |_| Reply::status(200).body(list.clone()))
}

const KEY: (&str, &str) = ("ANTHROPIC_API_KEY", "k");
const LOCAL: (&str, &str) = ("ANTHROPIC_BASE_URL", "http://127.0.0.1:9");

#[tokio::test]
async fn a_name_given_wins_over_the_environment_and_that_over_the_default() {
    let model_env = ("ANTHROPIC_MODEL", "sonnet");
    let name = async |spec, env: &[_]| open(spec, env).await.unwrap().name().to_owned();
    assert_eq!(name(Some("haiku"), &[KEY, LOCAL, model_env]).await, "claude-haiku-5-5");
    assert_eq!(name(None, &[KEY, LOCAL, model_env]).await, "claude-sonnet-5-5");
    assert_eq!(name(None, &[KEY, LOCAL]).await, "claude-opus-5-5");
    assert_eq!(name(Some("claude-x-9"), &[KEY, LOCAL]).await, "claude-x-9");
}

#[tokio::test]
async fn an_own_address_needs_no_key() {
    let model = open(None, &[LOCAL]).await.unwrap();
    assert_eq!((model.provider_kind(), model.key_source()), (ProviderKind::Anthropic, "none"));
    let model = open(None, &[LOCAL, KEY]).await.unwrap();
    assert_eq!(model.key_source(), "ANTHROPIC_API_KEY");
    assert!(!format!("{model:?}").contains("\"k\""));
}

#[tokio::test]
async fn with_nothing_at_hand_the_error_says_what_to_do() {
    let error = open_among(None, &[], &[closed_port()]).await.unwrap_err().to_string();
    assert!(error.starts_with("there is no key, and no model server runs"), "{error}");
    for words in ["\nhelp: set ANTHROPIC_API_KEY", "OPENAI_API_KEY", "Ollama", "`centurion demo`"] {
        assert!(error.contains(words), "{error}");
    }
}

#[tokio::test]
async fn the_first_local_server_with_a_chat_model_is_used() {
    let (embeds, talks) = (offers(&["nomic-embed-text"]), offers(&["bge-m3", "qwen3:8b", "llama"]));
    let silent = Server::start([Reply::status(200).fault(Fault::BlackHole)]);
    let other = Server::start([Reply::status(200).body("<html>hello</html>")]);
    let ports = [closed_port(), silent.port(), other.port(), embeds.port(), talks.port()];
    let model = open_among(None, &[], &ports).await.unwrap();
    assert_eq!((model.name(), model.provider_kind()), ("qwen3:8b", ProviderKind::OpenAi));
    assert_eq!(model.key_source(), "none");
    assert_eq!(talks.requests()[0].path, "/v1/models");
    assert!(model.info(model.name()).prices == crate::catalog::Prices::FREE);
    // The families of another provider all mean its one model.
    assert_eq!(model.resolve("haiku"), "qwen3:8b");
    assert_eq!(model.resolve("openai:llama"), "llama");

    let model = open_among(Some("llama"), &[], &ports).await.unwrap();
    assert_eq!(model.name(), "llama");
    let error = open_among(Some("gemma"), &[], &ports[3..]).await.unwrap_err().to_string();
    assert!(error.contains("`gemma`") && error.contains("Test has bge-m3, qwen3:8b"), "{error}");
}

#[tokio::test]
async fn a_model_that_was_asked_for_is_never_swapped() {
    let server = offers(&["qwen3:8b"]);
    let error = open_among(Some("sonnet"), &[], &[server.port()]).await.unwrap_err().to_string();
    assert!(error.contains("`sonnet` is a model of Anthropic"), "{error}");
    let chosen = ("ANTHROPIC_DEFAULT_SONNET_MODEL", "qwen3:8b");
    let base = format!("{}/v1", server.url());
    let env = [chosen, ("OPENAI_BASE_URL", base.as_str())];
    assert_eq!(open(Some("sonnet"), &env).await.unwrap().name(), "qwen3:8b");
}

#[tokio::test]
async fn an_own_openai_address_is_asked_what_it_has() {
    let server = offers(&["text-embed", "mistral"]);
    let base = format!("{}/v1/", server.url());
    let env = [("OPENAI_BASE_URL", base.as_str()), ("OPENAI_API_KEY", "k")];
    let model = open(None, &env).await.unwrap();
    assert_eq!((model.name(), model.key_source()), ("mistral", "OPENAI_API_KEY"));
    let asked = server.last();
    assert_eq!(
        (asked.path.as_str(), asked.header("authorization")),
        ("/v1/models", Some("Bearer k"))
    );
    assert_eq!(open(Some("openai:gpt-4o"), &env).await.unwrap().name(), "gpt-4o");
    let env = [env[0], ("OPENAI_MODEL", "phi")];
    assert_eq!(open(None, &env).await.unwrap().name(), "phi");
    let empty = offers(&[]);
    let error = open(None, &[("OPENAI_BASE_URL", &empty.url())]).await.unwrap_err().to_string();
    assert!(error.contains("help: name a model with --model openai:NAME"), "{error}");
}

#[tokio::test]
async fn files_are_models_too() {
    let scratch = Scratch::new();
    let file = scratch.write("play.json", r#"{"default":{"text":"hello"}}"#);
    let spec = format!("script:{}", file.display());
    let model = open(Some(&spec), &[]).await.unwrap();
    assert_eq!((model.provider_kind().as_str(), model.key_source()), ("script", "none"));
    assert_eq!((model.name(), model.resolve("default")), (spec.as_str(), spec.clone()));
    assert_eq!(model.resolve("haiku"), "claude-haiku-5-5");
    let error = open(Some("script:nowhere.yaml"), &[]).await.unwrap_err().to_string();
    assert!(error.contains("nowhere.yaml"), "{error}");

    let tape = scratch.project().join("tape.jsonl");
    let record = format!("cassette:{}={spec}", tape.display());
    let model = open(Some(&record), &[]).await.unwrap();
    assert_eq!(model.provider_kind(), ProviderKind::Cassette);
    assert_eq!(model.name(), spec);
    let unrecorded = format!("cassette:{}", scratch.project().join("none").display());
    let error = open(Some(&unrecorded), &[]).await.unwrap_err().to_string();
    assert!(error.contains("nothing to record") && error.contains("help:"), "{error}");
}

#[tokio::test]
async fn the_environment_speaks_about_thinking_where_a_request_does_not() {
    let memory = Memory::new([vec![], vec![]]);
    let provider: Arc<dyn Provider> = Arc::<Memory>::clone(&memory);
    let policy = RetryPolicy { max_retries: 0, ..RetryPolicy::default() };
    let model = Model::with_provider(provider, ProviderKind::Anthropic, "m", policy, world());
    let _ =
        futures_util::StreamExt::next(&mut model.stream(request("m", []), Patience::Full)).await;
    assert_eq!(memory.requests.lock()[0].thinking, Thinking::Auto);

    let server = Server::start([Reply::text("a"), Reply::text("b")]);
    for (tokens, expected) in
        [("2000", json!({ "type": "enabled", "budget_tokens": 2000 })), ("0", json!(null))]
    {
        let url = server.url();
        let env = [("MAX_THINKING_TOKENS", tokens), ("ANTHROPIC_BASE_URL", url.as_str())];
        let model = open(None, &env).await.unwrap();
        let hello = centurion_protocol::Message::user("hi");
        let stream = model.stream(request("claude-sonnet-4-5", [hello]), Patience::Full);
        let _: Vec<_> = futures_util::StreamExt::collect(stream).await;
        assert_eq!(server.last().json()["thinking"], expected);
    }
}
