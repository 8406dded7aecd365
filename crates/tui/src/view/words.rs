//! Amounts in few characters.

use std::time::Duration;

use crate::text::{foreign_text, graphemes, text_width};

/// Tokens, such as `900`, `2.6k` or `31k`.
pub(crate) fn amount(tokens: u64) -> String {
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..10_000 => format!("{}.{}k", tokens / 1_000, tokens % 1_000 / 100),
        10_000..1_000_000 => format!("{}k", tokens / 1_000),
        _ => format!("{}.{}M", tokens / 1_000_000, tokens % 1_000_000 / 100_000),
    }
}

/// A time, such as `4s`, `2m` or `1h 05m`.
pub(crate) fn clock(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds @ 60..3_600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        seconds => format!("{}h {:02}m", seconds / 3_600, seconds % 3_600 / 60),
    }
}

/// Money, such as `$0.11`.
pub(crate) fn money(dollars: f64) -> String {
    format!("${dollars:.2}")
}

/// The first of some wordings that fits into so many cells, else the last.
pub(super) fn first_that_fits(wordings: &[&'static str], cells: usize) -> &'static str {
    let fits = wordings.iter().find(|words| text_width(words) <= cells);
    fits.or(wordings.last()).copied().unwrap_or_default()
}

/// A text in so many cells: filled with blanks, or cut.
pub(crate) fn fitted(text: &str, cells: usize) -> String {
    let shown = foreign_text(text);
    let width = text_width(&shown);
    if width <= cells {
        return format!("{shown}{}", " ".repeat(cells - width));
    }
    let (mut cut, mut used) = (String::new(), 0);
    for (grapheme, width) in graphemes(&shown) {
        let width = usize::from(width);
        if used + width >= cells {
            break;
        }
        used += width;
        cut.push_str(grapheme);
    }
    if cells > used {
        cut.push('…');
        used += 1;
    }
    cut.push_str(&" ".repeat(cells.saturating_sub(used)));
    cut
}
