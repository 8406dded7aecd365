//! Requests of a host about files and outputs: as much as the Read tool would give without a question.

use centurion_engine::Handle;
use centurion_tools::{FileView, OutputTail};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Answer;
use super::refusal::Refusal;

/// The number of bytes of a file that are given if the host does not say.
const USUAL: u64 = 1024 * 1024;

/// The most bytes of a file that are given.
const MOST: u64 = 16 * 1024 * 1024;

/// The encoding of a file's bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) enum Encoding {
    #[default]
    #[serde(rename = "utf-8")]
    Utf8,
    #[serde(rename = "base64")]
    Base64,
}

/// Gives the beginning of a file.
pub(super) fn read(handle: &Handle, path: &str, most: Option<u64>, encoding: Encoding) -> Answer {
    let most = most.unwrap_or(USUAL).min(MOST);
    let (path, view) = handle.read_file(path, most).map_err(Refusal::invalid)?;
    let FileView { bytes, is_cut } = view;
    let mut answer = json!({"absPath": path});
    if is_cut {
        answer["truncated"] = json!(true);
    }
    match encoding {
        Encoding::Base64 => {
            answer["contents"] = json!(base64(&bytes));
            answer["encoding"] = json!("base64");
        }
        Encoding::Utf8 => {
            answer["lossy"] = json!(std::str::from_utf8(&bytes).is_err());
            answer["contents"] = json!(String::from_utf8_lossy(&bytes));
        }
    }
    Ok(answer)
}

/// Writes bytes in the alphabet of base64.
fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// Notes that the main agent has seen a file; one that changed since then has to be read again.
pub(super) fn seed(handle: &Handle, path: &str, changed_at: u64) -> Answer {
    handle.seed_read_state(path, changed_at).map_err(Refusal::invalid)?;
    Ok(json!({}))
}

/// Gives the end of what a shell in the background has written.
pub(super) async fn task_output(handle: &Handle, id: &str) -> Answer {
    let tail = handle.task_output(id).await;
    let tail = tail.ok_or_else(|| Refusal::invalid(format!("there is no shell `{id}`")))?;
    let OutputTail { text, size, is_cut } = tail.map_err(Refusal::invalid)?;
    Ok(Value::from_iter([
        ("output", json!(text)),
        ("total_bytes", json!(size)),
        ("truncated", json!(is_cut)),
    ]))
}
