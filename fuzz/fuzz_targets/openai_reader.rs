//! The events of an OpenAI-compatible answer: whatever arrives, what is let through is well-formed.

#![no_main]

use centurion_fuzz::well_formed::Watched;
use centurion_model::OpenAiReader;
use libfuzzer_sys::fuzz_target;

// One event to a line.
fuzz_target!(|data: &[u8]| {
    let mut reader = OpenAiReader::new(7);
    let mut watched = Watched::default();
    for payload in data.split(|byte| *byte == b'\n') {
        match reader.read(payload) {
            Ok(events) => events.iter().for_each(|event| watched.push(event)),
            Err(_) => break,
        }
    }
    watched.finish();
});
