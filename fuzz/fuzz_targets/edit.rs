//! The Edit tool's replacement: it changes what it says and nothing else.

#![no_main]

use centurion_fuzz::edit::apply;
use libfuzzer_sys::fuzz_target;

// Text, what to replace and the replacement, apart by NUL; a fourth part asks for every place.
fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let parts: Vec<&str> = text.split('\0').collect();
    let (content, old, new, everywhere) = match parts.as_slice() {
        [content, old, new] => (*content, *old, *new, false),
        [content, old, new, _] => (*content, *old, *new, true),
        _ => return,
    };
    let Ok(applied) = apply(content, old, new, everywhere) else { return };

    assert!(everywhere || applied.replaced.len() == 1, "one place was asked for");
    let mut end = 0;
    let mut kept = String::new();
    for place in &applied.replaced {
        let between = applied.content.get(end..place.start);
        kept.push_str(between.expect("places stand in order and between characters"));
        end = place.end;
    }
    kept.push_str(applied.content.get(end..).expect("the last place ends inside the text"));
    assert!(is_subsequence(&kept, content), "text outside the places has changed");

    if !text.contains('\r') && !old.is_empty() {
        let count = if everywhere { usize::MAX } else { 1 };
        assert_eq!(applied.content, content.replacen(old, new, count));
    }
});

/// Whether the first text is the second with something left out.
fn is_subsequence(kept: &str, content: &str) -> bool {
    let mut characters = content.chars();
    kept.chars().all(|wanted| characters.any(|found| found == wanted))
}
