//! Text of the person's own programs with colours, as they write it for terminals. Everything else in it is made visible.

use super::foreign::foreign;
use crate::frame::{Colour, Line, Style};

/// A line with the looks that its escapes ask for.
pub(crate) fn coloured(text: &str) -> Line {
    let mut line = Line::flush();
    let mut style = Style::PLAIN;
    let mut rest = text;
    while let Some(at) = rest.find("\x1b[") {
        line.spans.extend(foreign(&rest[..at], style));
        let after = &rest[at + 2..];
        let end = after.find(|char: char| !(char.is_ascii_digit() || char == ';' || char == ':'));
        if let Some(end) = end.filter(|end| after[*end..].starts_with('m')) {
            style = changed(style, &after[..end]);
            rest = &after[end + 1..];
        } else {
            line.spans.extend(foreign("\x1b[", style));
            rest = after;
        }
    }
    line.spans.extend(foreign(rest, style));
    line
}

/// A look after the numbers of one escape.
fn changed(mut style: Style, numbers: &str) -> Style {
    let mut numbers = numbers.split([';', ':']).map(|it| it.parse().unwrap_or(0));
    while let Some(number) = numbers.next() {
        style = match number {
            0 => Style::PLAIN,
            1 => style.bold(),
            2 => style.dim(),
            3 => style.italic(),
            4 => style.underlined(),
            7 => style.reversed(),
            22 => Style { bold: false, dim: false, ..style },
            30..=37 | 90..=97 => style.coloured(colour(number % 10)),
            39 => style.coloured(Colour::Default),
            // A colour of a larger palette: the nearest of ours, or none.
            38 => match (numbers.next(), numbers.next()) {
                (Some(5), Some(index @ 0..=15)) => style.coloured(colour(index % 8)),
                (Some(2), Some(_)) => {
                    numbers.nth(1);
                    style
                }
                _ => style,
            },
            _ => style,
        };
    }
    style
}

fn colour(number: u16) -> Colour {
    match number {
        1 => Colour::Red,
        2 => Colour::Green,
        3 => Colour::Yellow,
        4 => Colour::Blue,
        5 => Colour::Magenta,
        6 => Colour::Cyan,
        // Black and white are the background of one terminal or the other.
        _ => Colour::Default,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_looks_and_all_else_is_made_visible() {
        let line = coloured("a\x1b[1;32mb\x1b[0mc\x1b[2Jd\x1b]0;x\x07");
        assert_eq!(line.text(), "abc␛[2Jd␛]0;x␇");
        let looks: Vec<Style> = line.spans.iter().map(|span| span.style).collect();
        assert_eq!(looks[..3], [Style::PLAIN, Style::of(Colour::Green).bold(), Style::PLAIN]);
        assert_eq!(coloured("\x1b[38;2;1;2;3mx").text(), "x");
        assert_eq!(coloured("\x1b[38;5;1mx").spans[0].style, Style::of(Colour::Red));
        assert_eq!(coloured("\x1b[").text(), "␛[");
    }
}
