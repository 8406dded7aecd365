//! Code in colours: a small lexer for what most languages have in common.
//!
//! It knows comments, strings, numbers and the words of families of languages. It never changes a character.

use crate::frame::{Colour, Line, Style};
use crate::text::foreign;

const COMMENT: Style = Style::DIM;
const STRING: Style = Style::of(Colour::Green);
const NUMBER: Style = Style::of(Colour::Cyan);
const WORD: Style = Style::of(Colour::Magenta);

/// The look of languages that are alike.
struct Family {
    names: &'static [&'static str],
    line_comments: &'static [&'static str],
    block_comment: Option<(&'static str, &'static str)>,
    quotes: &'static [char],
    words: &'static str,
}

const FAMILIES: [Family; 5] = [
    Family {
        names: &["rust", "rs"],
        line_comments: &["//"],
        block_comment: Some(("/*", "*/")),
        quotes: &['"'],
        words: "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match \
                mod move mut pub ref return self Self static struct super trait true type unsafe use where while",
    },
    Family {
        names: &[
            "c",
            "cpp",
            "c++",
            "h",
            "java",
            "js",
            "javascript",
            "ts",
            "typescript",
            "tsx",
            "jsx",
            "go",
            "cs",
            "csharp",
            "kotlin",
            "swift",
            "scala",
            "php",
            "json",
        ],
        line_comments: &["//"],
        block_comment: Some(("/*", "*/")),
        quotes: &['"', '\'', '`'],
        words: "abstract async await bool boolean break case catch char class const continue default defer do double \
                else enum export extends false final finally float for func function go if implements import in int \
                interface let long map new nil null package private protected public range return short static string \
                struct super switch this throw true try type typeof undefined var void while yield",
    },
    Family {
        names: &["python", "py"],
        line_comments: &["#"],
        block_comment: None,
        quotes: &['"', '\''],
        words: "and as assert async await break class continue def del elif else except False finally for from global if \
                import in is lambda None nonlocal not or pass raise return True try while with yield",
    },
    Family {
        names: &[
            "sh",
            "bash",
            "zsh",
            "shell",
            "console",
            "yaml",
            "yml",
            "toml",
            "ruby",
            "rb",
            "make",
            "dockerfile",
        ],
        line_comments: &["#"],
        block_comment: None,
        quotes: &['"', '\''],
        words: "begin break case class continue def do done elif else end esac exit export false fi for function if in \
                local module nil return set shift then true unless until while",
    },
    Family {
        names: &["sql", "lua", "haskell", "hs"],
        line_comments: &["--"],
        block_comment: None,
        quotes: &['"', '\''],
        words: "and as begin by create delete do drop else end false from function group having if in insert into join \
                left limit local not null on or order return select set table then true union update values where \
                AND AS BEGIN BY CREATE DELETE DROP ELSE END FROM GROUP HAVING IN INSERT INTO JOIN LEFT LIMIT NOT NULL \
                ON OR ORDER SELECT SET TABLE THEN UNION UPDATE VALUES WHERE",
    },
];

/// The flush lines of code in a language; of a language that is not known they are plain.
pub fn highlighted(code: &str, language: &str) -> Vec<Line> {
    let name = language.split([' ', ',', '{']).next().unwrap_or_default().to_ascii_lowercase();
    let family = FAMILIES.iter().find(|family| family.names.contains(&name.as_str()));
    let mut in_comment = false;
    let lines = code.strip_suffix('\n').unwrap_or(code).split('\n');
    lines
        .map(|line| family.map_or_else(|| plain(line), |it| it.line(line, &mut in_comment)))
        .collect()
}

fn plain(text: &str) -> Line {
    let mut line = Line::flush();
    line.spans = foreign(text, Style::PLAIN);
    line
}

impl Family {
    fn line(&self, text: &str, in_comment: &mut bool) -> Line {
        let mut parts: Vec<(&str, Style)> = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (length, style) = self.token(rest, in_comment);
            let (token, after) = rest.split_at(length);
            parts.push((token, style));
            rest = after;
        }
        let mut line = Line::flush();
        let mut open = String::new();
        for (index, (token, style)) in parts.iter().enumerate() {
            open.push_str(token);
            if parts.get(index + 1).is_none_or(|next| next.1 != *style) {
                line.spans.extend(foreign(&std::mem::take(&mut open), *style));
            }
        }
        line
    }

    /// The length of the first token and its look. It is one character at least.
    fn token(&self, text: &str, in_comment: &mut bool) -> (usize, Style) {
        if let Some((begin, end)) = self.block_comment
            && (*in_comment || text.starts_with(begin))
        {
            let from = if *in_comment { 0 } else { begin.len() };
            let found = text[from..].find(end).map(|at| from + at + end.len());
            *in_comment = found.is_none();
            return (found.unwrap_or(text.len()), COMMENT);
        }
        if self.line_comments.iter().any(|mark| text.starts_with(mark)) {
            return (text.len(), COMMENT);
        }
        let Some(first) = text.chars().next() else { return (0, Style::PLAIN) };
        if self.quotes.contains(&first) {
            return (string(text, first), STRING);
        }
        let is_word = |char: char| char.is_alphanumeric() || char == '_';
        if first.is_ascii_digit() {
            return (text.find(|it| !is_word(it) && it != '.').unwrap_or(text.len()), NUMBER);
        }
        if is_word(first) {
            let end = text.find(|it| !is_word(it)).unwrap_or(text.len());
            let is_known = self.words.split(' ').any(|word| word == &text[..end]);
            return (end, if is_known { WORD } else { Style::PLAIN });
        }
        (first.len_utf8(), Style::PLAIN)
    }
}

/// The length of a string that begins here and ends in this line.
fn string(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, char) in text.char_indices().skip(1) {
        match char {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if char == quote => return at + char.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_strings_numbers_and_comments_have_colours() {
        let lines = highlighted("let x = \"a\\\"b\"; // 1\n/* two\nlines */ 42", "rust");
        let found: Vec<(&str, Style)> =
            lines.iter().flat_map(|it| &it.spans).map(|it| (it.text.as_str(), it.style)).collect();
        assert_eq!(
            found,
            [
                ("let", WORD),
                (" x = ", Style::PLAIN),
                ("\"a\\\"b\"", STRING),
                ("; ", Style::PLAIN),
                ("// 1", COMMENT),
                ("/* two", COMMENT),
                ("lines */", COMMENT),
                (" ", Style::PLAIN),
                ("42", NUMBER),
            ]
        );
    }

    proptest! {
        #[test]
        fn no_character_is_changed(
            code in "[a-z0-9\"'/*#\\\\ \né日-]{0,80}", language in "(rust|c|python|sh|sql|)"
        ) {
            let lines: Vec<String> = highlighted(&code, &language).iter().map(Line::text).collect();
            prop_assert_eq!(lines.join("\n"), code.strip_suffix('\n').unwrap_or(&code));
        }
    }
}
