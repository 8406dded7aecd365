//! The bytes of a streaming answer, cut anywhere: no panic, no hang, and the same events however they are cut.

#![no_main]

use bytes::Bytes;
use centurion_fuzz::well_formed::Watched;
use centurion_model::AnthropicReader;
use futures_util::{StreamExt, stream};
use libfuzzer_sys::fuzz_target;

// The first byte says into how large pieces the rest is cut.
fuzz_target!(|data: &[u8]| {
    let Some((size, body)) = data.split_first() else { return };
    let cut = read(body, usize::from(*size).max(1));
    assert_eq!(cut, read(body, body.len().max(1)), "the events depend on how the bytes are cut");
});

/// The events, as text, and whether they ended in an error.
fn read(body: &[u8], size: usize) -> (Vec<String>, bool) {
    let pieces: Vec<_> = body.chunks(size).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.expect("a runtime").block_on(async {
        let mut events = AnthropicReader::events(stream::iter(pieces));
        let mut watched = Watched::default();
        let mut seen = Vec::new();
        while let Some(event) = events.next().await {
            let Ok(event) = event else { return (seen, true) };
            watched.push(&event);
            seen.push(format!("{event:?}"));
        }
        watched.finish();
        (seen, false)
    })
}
