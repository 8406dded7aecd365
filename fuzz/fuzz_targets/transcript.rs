//! Loading a transcript: whatever the file holds, the history is one that a provider accepts.

#![no_main]

use std::collections::BTreeSet;

use centurion_fuzz::journal::transcript::load;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    let loaded = load(data);
    // The calls of the message before, which this one has to answer.
    let mut calls = BTreeSet::new();
    for message in loaded.conversation.iter() {
        // The wire form begins with the comma that parts messages.
        let wire = message.wire().strip_prefix(b",").expect("a comma comes first");
        let message: Value = serde_json::from_slice(wire).expect("a message is JSON");
        let results = ids(&message, "tool_result", "tool_use_id");
        assert_eq!(results, calls, "the results are not those of the calls before");
        calls = ids(&message, "tool_use", "id");
        assert!(calls.is_empty() || message["role"] == "assistant", "a person made a call");
    }
});

fn ids(message: &Value, kind: &str, field: &str) -> BTreeSet<String> {
    let blocks = message["content"].as_array().into_iter().flatten();
    blocks
        .filter(|block| block["type"] == kind)
        .filter_map(|block| block[field].as_str().map(str::to_owned))
        .collect()
}
