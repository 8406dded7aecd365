//! The events of a Messages API answer: whatever arrives, what is let through is well-formed.

#![no_main]

use centurion_fuzz::well_formed::Watched;
use centurion_model::AnthropicReader;
use libfuzzer_sys::fuzz_target;

// One event to a line.
fuzz_target!(|data: &[u8]| {
    let mut reader = AnthropicReader::default();
    let mut watched = Watched::default();
    for payload in data.split(|byte| *byte == b'\n') {
        match reader.read(payload) {
            Ok(events) => events.iter().for_each(|event| watched.push(event)),
            Err(_) => break,
        }
    }
    watched.finish();
});
