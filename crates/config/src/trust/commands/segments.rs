//! A shell text, taken apart into simple commands.

use super::KEYWORDS;

/// A simple command: its tokens with their quotes, and where it reads from and writes to.
#[derive(Default)]
pub(super) struct SimpleCommand {
    pub(super) tokens: Vec<String>,
    pub(super) inputs: Vec<String>,
    pub(super) outputs: Vec<String>,
    /// Its output goes to the next one.
    pub(super) is_piped: bool,
}

/// The place to which the next token belongs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TokenPlace {
    Word,
    Input,
    Output,
}

/// Takes a text apart into simple commands. The patterns of `case` are left out.
struct Splitter {
    segments: Vec<SimpleCommand>,
    segment: SimpleCommand,
    token: String,
    belongs: TokenPlace,
    open_cases: usize,
    /// The next bracket ends a pattern of `case`.
    is_pattern: bool,
}

impl Splitter {
    fn end_token(&mut self) {
        if self.token.is_empty() {
            return;
        }
        let token = std::mem::take(&mut self.token);
        match self.belongs {
            TokenPlace::Input => self.segment.inputs.push(token),
            TokenPlace::Output => self.segment.outputs.push(token),
            TokenPlace::Word => {
                if token == "in" && self.is_head_of_case() {
                    self.open_cases += 1;
                    self.end_segment(false);
                    self.is_pattern = true;
                } else if token == "esac" && self.segment.tokens.is_empty() {
                    self.open_cases = self.open_cases.saturating_sub(1);
                    self.is_pattern = false;
                } else {
                    self.segment.tokens.push(token);
                }
            }
        }
        self.belongs = TokenPlace::Word;
    }

    /// `case $x`, perhaps behind keywords.
    fn is_head_of_case(&self) -> bool {
        let is_keyword = |token: &&String| KEYWORDS.contains(&token.as_str());
        let mut tokens = self.segment.tokens.iter().skip_while(is_keyword);
        tokens.next().is_some_and(|token| token == "case") && tokens.count() == 1
    }

    fn end_segment(&mut self, is_piped: bool) {
        let segment = std::mem::take(&mut self.segment);
        self.segments.push(SimpleCommand { is_piped, ..segment });
    }

    /// A sign that ends a command or a part of a pattern.
    fn border(&mut self, letter: char, is_doubled: bool) {
        self.end_token();
        if letter == '\n' && self.is_head_of_case() {
            return;
        }
        if self.is_pattern {
            match letter {
                ')' | '|' => self.segment = SimpleCommand::default(),
                _ => {}
            }
            self.is_pattern = letter != ')';
            return;
        }
        let is_group = letter == '(' && self.segments.last().is_some_and(|it| it.is_piped);
        self.end_segment(is_group || letter == '|' && !is_doubled);
        // `;;` and `;&`.
        self.is_pattern = letter == ';' && is_doubled && self.open_cases > 0;
    }
}

/// The simple commands of a text, in their order.
pub(super) fn segments(text: &str) -> Vec<SimpleCommand> {
    let letters: Vec<char> = text.chars().collect();
    let mut splitter = Splitter {
        segments: Vec::new(),
        segment: SimpleCommand::default(),
        token: String::new(),
        belongs: TokenPlace::Word,
        open_cases: 0,
        is_pattern: false,
    };
    let mut at = 0;
    while let Some(&letter) = letters.get(at) {
        let next = letters.get(at + 1).copied();
        let end = match letter {
            '\\' if next == Some('\n') => {
                at += 2;
                continue;
            }
            '\\' => at + 2,
            '\'' => position(&letters, at + 1, |it| it == '\'') + 1,
            '"' => quote_end(&letters, at, 0),
            '`' => position(&letters, at + 1, |it| it == '`') + 1,
            '$' if matches!(next, Some('(' | '{')) => balanced(&letters, at + 1, false, 0) + 1,
            '#' if splitter.token.is_empty() => {
                at = position(&letters, at, |it| it == '\n');
                continue;
            }
            ' ' | '\t' | '\r' => {
                splitter.end_token();
                at += 1;
                continue;
            }
            '<' | '>' => {
                at = redirection(&letters, at, &mut splitter);
                continue;
            }
            '&' if next == Some('>') => {
                at = redirection(&letters, at + 1, &mut splitter);
                continue;
            }
            ';' | '&' | '|' | '\n' | '(' | ')' => {
                let is_doubled = next == Some(letter) || letter == ';' && next == Some('&');
                splitter.border(letter, is_doubled && letter != ')' && letter != '(');
                at += if is_doubled && matches!(letter, ';' | '&' | '|') { 2 } else { 1 };
                continue;
            }
            _ => at + 1,
        };
        let end = end.min(letters.len());
        // A line that continues is one word.
        let piece: String = letters[at..end].iter().collect();
        splitter.token.push_str(&if letter == '"' { piece.replace("\\\n", "") } else { piece });
        at = end;
    }
    splitter.end_token();
    splitter.end_segment(false);
    let is_used = |it: &SimpleCommand| {
        it.is_piped || !it.tokens.is_empty() || !it.inputs.is_empty() || !it.outputs.is_empty()
    };
    splitter.segments.retain(is_used);
    splitter.segments
}

/// Reads the sign of a redirection; gives the place behind it.
fn redirection(letters: &[char], from: usize, splitter: &mut Splitter) -> usize {
    // `2>`
    if splitter.token.bytes().all(|byte| byte.is_ascii_digit()) {
        splitter.token.clear();
    }
    splitter.end_token();
    let end = position(letters, from, |it| !matches!(it, '<' | '>'));
    let is_input = letters.get(from) == Some(&'<');
    let end = if matches!(letters.get(end), Some('&' | '|')) { end + 1 } else { end };
    // A command follows a process substitution.
    if letters.get(end) != Some(&'(') {
        splitter.belongs = if is_input { TokenPlace::Input } else { TokenPlace::Output };
    }
    end
}

/// The position of the first such letter, or the end.
pub(super) fn position(letters: &[char], from: usize, is_it: impl Fn(char) -> bool) -> usize {
    let found = letters.iter().skip(from).position(|letter| is_it(*letter));
    found.map_or(letters.len(), |found| from + found).max(from.min(letters.len()))
}

/// The deepest nesting of quotes and brackets that is followed.
const DEEPEST_QUOTES: usize = 32;

/// The position at which the bracket at `from` is closed, or the end.
pub(super) fn balanced(letters: &[char], from: usize, is_quoted: bool, depth: usize) -> usize {
    if depth > DEEPEST_QUOTES {
        return letters.len();
    }
    let is_variable = letters.get(from) == Some(&'{');
    let close = if is_variable { '}' } else { ')' };
    let (mut at, mut open) = (from + 1, 1_usize);
    while let Some(&letter) = letters.get(at) {
        match letter {
            '\\' => at += 1,
            '\'' if !(is_quoted && is_variable) => at = position(letters, at + 1, |it| it == '\''),
            '"' => at = quote_end(letters, at, depth + 1).saturating_sub(1),
            '$' if matches!(letters.get(at + 1), Some('(' | '{')) => {
                at = balanced(letters, at + 1, is_quoted && is_variable, depth + 1);
            }
            '(' if !is_variable => open += 1,
            _ if letter == close => {
                open -= 1;
                if open == 0 {
                    return at;
                }
            }
            _ => {}
        }
        at += 1;
    }
    letters.len()
}

/// Behind the quotes that begin at `from`.
fn quote_end(letters: &[char], from: usize, depth: usize) -> usize {
    let mut at = from + 1;
    while let Some(&letter) = letters.get(at) {
        match letter {
            '"' => return at + 1,
            '\\' => at += 2,
            '$' if matches!(letters.get(at + 1), Some('(' | '{')) => {
                at = balanced(letters, at + 1, true, depth + 1) + 1;
            }
            _ => at += 1,
        }
    }
    letters.len()
}
