//! Finds a model server on this machine, for people who have no key.

use std::sync::Arc;
use std::time::Duration;

use centurion_protocol::{Env, World};
use futures_util::future::join_all;
use reqwest::header::HeaderMap;
use serde::Deserialize;
use url::Url;

use crate::http::{self, Http};

/// The usual address of a kind of server.
#[derive(Clone, Debug)]
pub(crate) struct UsualAddress {
    pub(crate) kind: &'static str,
    pub(crate) port: u16,
}

/// The addresses to try, and the time limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Search<'a> {
    /// In order of preference.
    pub(crate) places: &'a [UsualAddress],
    /// The time limit of the whole search.
    pub(crate) patience: Duration,
}

/// The usual addresses. A local server answers at once or does not exist.
pub(crate) const USUAL: Search<'static> = Search {
    places: &[
        UsualAddress { kind: "Ollama", port: 11434 },
        UsualAddress { kind: "LM Studio", port: 1234 },
        UsualAddress { kind: "llama.cpp", port: 8080 },
        UsualAddress { kind: "vLLM", port: 8000 },
    ],
    patience: Duration::from_millis(250),
};

/// A server that answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FoundServer {
    pub(crate) kind: &'static str,
    /// Ends with `/v1`.
    pub(crate) base: Url,
    /// The models that it offers, in its own order.
    pub(crate) models: Vec<String>,
}

/// Asks all addresses at once; returns the servers that answered in time, in the order of the addresses.
pub(crate) async fn look(
    search: Search<'_>,
    env: &Env,
    world: &Arc<dyn World>,
) -> Vec<FoundServer> {
    let asked = search.places.iter().map(|place| async move {
        tokio::time::timeout(search.patience, ask(place, env, world)).await.ok()?
    });
    join_all(asked).await.into_iter().flatten().collect()
}

async fn ask(place: &UsualAddress, env: &Env, world: &Arc<dyn World>) -> Option<FoundServer> {
    let base = Url::parse(&format!("http://127.0.0.1:{}/v1", place.port)).ok()?;
    let http = Http::open(&base, env, Arc::clone(world)).ok()?;
    let list = http.get(http::below(&base, "models"), HeaderMap::new()).await.ok()?;
    let models = model_names(&list);
    tracing::debug!(kind = place.kind, ?models, "a local server answered");
    (!models.is_empty()).then_some(FoundServer { kind: place.kind, base, models })
}

/// The names in a list of models; empty if it is no such list.
pub(crate) fn model_names(list: &[u8]) -> Vec<String> {
    #[derive(Deserialize)]
    struct List {
        data: Vec<Entry>,
    }
    #[derive(Deserialize)]
    struct Entry {
        id: String,
    }
    let list: Option<List> = serde_json::from_slice(list).ok();
    list.map_or_else(Vec::new, |list| list.data.into_iter().map(|entry| entry.id).collect())
}

/// The first model that looks like a chat model.
pub(crate) fn first_chat_model(names: &[String]) -> Option<String> {
    const OTHERS: &[&str] = &[
        "embed",
        "rerank",
        "bge-",
        "minilm",
        "whisper",
        "tts",
        "moderation",
        "dall-e",
        "diffusion",
        "clip",
        "transcribe",
        "guard",
    ];
    let talks = |name: &&String| {
        let name = name.to_lowercase();
        !OTHERS.iter().any(|word| name.contains(word))
    };
    names.iter().find(talks).cloned()
}
