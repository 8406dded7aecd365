//! The work for a text grows with its length, whatever stands in it.

use super::*;
use crate::hint;
use crate::replace::redact;

/// The most steps for a byte.
const MOST: usize = 400;

fn steps(text: &str) -> usize {
    work::of(|| {
        redact(text.as_bytes());
    })
}

/// A piece again and again up to the length, and an end.
fn filled(piece: &str, end: &str, length: usize) -> String {
    format!("{}{end}", piece.repeat(length / piece.len()))
}

fn assert_linear(length: usize, text: impl Fn(usize) -> String) {
    let [short, long] = [length, 4 * length].map(text);
    let (few, many) = (steps(&short), steps(&long));
    let shown = &short[..short.floor_char_boundary(60)];
    assert!(many <= few * 8 + 4 * 1024, "{few} steps become {many}: {shown}");
    assert!(many <= MOST * long.len(), "{many} steps for {} bytes: {shown}", long.len());
}

#[test]
fn a_hint_that_stands_everywhere_costs_no_more_than_the_text_is_long() {
    let behind = ["", "=", ":", ": ", "=\"", " ", ".", "-", "/", "x", "1", "\\", "\n", "a:b/"];
    let ends = ["", "$1", ".eyJ", "9", "(", "=$", "=\"a", "@", "\"", "=x$1"].iter().cycle();
    let mut ends = ends.copied();
    for hint in hint::all() {
        for behind in behind {
            let (piece, end) = (format!("{hint}{behind}"), ends.next().unwrap());
            assert_linear(1024, |length| filled(&piece, end, length));
        }
    }
}

#[test]
fn a_long_run_behind_many_hints_is_measured_once() {
    let tails = [" ", "\"", "\\", "x", "a", "1", "a-b_", "\\t", "é"];
    let mut between = ["", "=", ": ", "=\"", " "].iter().copied().cycle();
    for hint in hint::all() {
        for tail in tails {
            let between = between.next().unwrap();
            assert_linear(1024, |length| {
                format!("{}{between}{}", filled(hint, "", length), filled(tail, "$1", length))
            });
            assert_linear(1024, |length| {
                let hints = filled(&format!("{hint}{between}"), "", length);
                format!("{}\n{hints}{}", filled(tail, "", length), tail.repeat(40))
            });
        }
    }
}

#[test]
fn labels_of_keys_without_keys_cost_no_more_than_the_text_is_long() {
    let labels = ["-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----"];
    for label in labels {
        for between in ["", " ", "1:", "1-", "a", "\n", "\\n", "\\t", "A1b2C3d4\n"] {
            for (before, after) in
                [("", ""), ("blank \n", "      "), ("\n", "-----END "), ("a\n", "\"")]
            {
                assert_linear(20 * 1024, |length| {
                    let labels = format!("{label}{between}").repeat(length / 2 / label.len());
                    let before = before.repeat(length / 4 / before.len().max(1));
                    format!("{before}{labels}{}", after.repeat(length / 4 / after.len().max(1)))
                });
            }
            assert_linear(20 * 1024, |length| {
                let blanks = " ".repeat(length / 2);
                let labels = format!("{label}{between}").repeat(length / 2 / label.len());
                format!("x{blanks}\n{labels}{blanks}-----END PRIVATE KEY-----")
            });
        }
    }
}
