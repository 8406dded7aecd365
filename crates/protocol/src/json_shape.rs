//! Depth and number of values of a JSON text, found without building the value.
//!
//! A value takes many times the memory of its text when it consists of small values, and parsers give
//! up on values that are nested deep. One pass over the text finds both.

/// The measures of a JSON text. Means nothing for what is no JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JsonShape {
    /// The deepest nesting of arrays and objects.
    pub depth: usize,
    /// The number of values: at least one, and one more for each comma and each bracket.
    pub values: usize,
}

impl JsonShape {
    pub fn of(json: &[u8]) -> Self {
        let mut scanner = JsonScanner::default();
        for byte in json {
            scanner.push(*byte);
        }
        scanner.shape()
    }
}

/// Follows JSON byte by byte: where it is, and what has been seen.
#[derive(Clone, Copy, Debug, Default)]
pub struct JsonScanner {
    depth: usize,
    deepest: usize,
    values: usize,
    is_text: bool,
    is_escaped: bool,
}

impl JsonScanner {
    pub fn push(&mut self, byte: u8) {
        if self.is_text {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => self.is_text = false,
                _ => {}
            }
            return;
        }
        match byte {
            b'"' => self.is_text = true,
            b'{' | b'[' => {
                self.values += 1;
                self.depth += 1;
                self.deepest = self.deepest.max(self.depth);
            }
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            b',' => self.values += 1,
            _ => {}
        }
    }

    /// The number of open arrays and objects.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Whether the last byte was inside a text, or began one.
    pub fn is_in_text(&self) -> bool {
        self.is_text
    }

    pub fn shape(&self) -> JsonShape {
        JsonShape { depth: self.deepest, values: self.values + 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_and_commas_count_and_text_does_not() {
        let shape = |json: &str| {
            let JsonShape { depth, values } = JsonShape::of(json.as_bytes());
            (depth, values)
        };
        assert_eq!(shape("1"), (0, 1));
        assert_eq!(shape(r#"{"a\\":"\"[{,"}"#), (1, 2));
        assert_eq!(shape("[[],[],[[]]]"), (3, 8));
        assert_eq!(shape(&"[".repeat(1_000_000)).0, 1_000_000);
    }
}
