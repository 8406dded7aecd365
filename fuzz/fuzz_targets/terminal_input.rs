//! What a terminal sends, cut anywhere: no panic, and the same keys, pastes and replies however it is cut.

#![no_main]

use centurion_fuzz::input::{Input, InputParser, unbracketed_paste};
use libfuzzer_sys::fuzz_target;

// The first byte says into how large pieces the rest is cut.
fuzz_target!(|data: &[u8]| {
    let Some((size, body)) = data.split_first() else { return };
    let cut = read(body, usize::from(*size).max(1));
    assert_eq!(cut, read(body, body.len().max(1)), "the inputs depend on how the bytes are cut");
    let mut joined = cut;
    unbracketed_paste(&mut joined);
});

fn read(body: &[u8], size: usize) -> Vec<Input> {
    let mut parser = InputParser::new();
    let mut inputs = Vec::new();
    for piece in body.chunks(size) {
        parser.feed(piece, &mut inputs);
    }
    parser.flush(&mut inputs);
    inputs
}
