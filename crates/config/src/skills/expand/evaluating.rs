//! Builtins of bash that evaluate their own words: as names of variables with a subscript, as arithmetic, or as text
//! that is expanded once more. No quoting makes a value data for them.
//!
//! Looks at the words of a simple command alone, without their quotes, and takes any word for the builtin: it is
//! better to refuse a value than to have it evaluated.

/// Builtins that evaluate any of their words.
const EVALUATING: [&[u8]; 12] = [
    b"bind",
    b"compgen",
    b"complete",
    b"compopt",
    b"coproc",
    b"getopts",
    b"let",
    b"mapfile",
    b"read",
    b"readarray",
    b"unset",
    b"wait",
];

/// Builtins that evaluate their words but for the value of a plain assignment.
const DECLARING: [&[u8]; 5] = [b"declare", b"export", b"local", b"readonly", b"typeset"];

/// Builtins that take the name of a variable after `-v` or `-R`.
const NAMING: [&[u8]; 3] = [b"[", b"printf", b"test"];

/// Letters of a word that are kept; no name above is longer.
const KEPT: usize = 10;

/// The way in which a simple command treats its words, as the first of them tell it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each answers a question of its own")]
pub(super) struct SimpleWords {
    word: [u8; KEPT],
    /// Letters of the last word, also of those that are not kept.
    length: usize,
    evaluates: bool,
    declares: bool,
    names: bool,
    /// An option has a letter by which a declared variable evaluates what it is given.
    has_declaring_option: bool,
    has_naming_option: bool,
}

impl SimpleWords {
    /// Takes in the next byte of the command.
    pub(super) fn read(&mut self, byte: u8) {
        match byte {
            b'\'' | b'"' | b'\\' => {}
            b' ' | b'\t' | b'\n' => {
                let word = self.word.get(..self.length).unwrap_or_default();
                self.evaluates |= EVALUATING.contains(&word);
                self.declares |= DECLARING.contains(&word);
                self.names |= NAMING.contains(&word);
                self.length = 0;
            }
            _ => {
                let is_option = self.length > 0 && matches!(self.word[0], b'-' | b'+');
                self.has_declaring_option |= is_option && b"aAin".contains(&byte);
                self.has_naming_option |= is_option && b"vR".contains(&byte);
                if let Some(kept) = self.word.get_mut(self.length) {
                    *kept = byte;
                }
                self.length = self.length.saturating_add(1);
            }
        }
    }

    /// Checks that the command would evaluate a value that is its next word, or a part of it.
    pub(super) fn evaluate(&self, is_assignment: bool) -> bool {
        self.evaluates
            || (self.declares && (!is_assignment || self.has_declaring_option))
            || (self.names && self.has_naming_option)
    }

    /// Checks that the command declares a variable that evaluates whatever is assigned to it.
    pub(super) fn declare_evaluating(&self) -> bool {
        self.declares && self.has_declaring_option
    }
}
