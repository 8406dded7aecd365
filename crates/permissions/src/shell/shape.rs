//! Partly known texts, and whether one of them can match a rule.
//!
//! A shape is a sequence of steps, each of which consumes a piece of text. Two shapes intersect if some text matches
//! both: the steps are walked in parallel, every pair of positions once.

/// One step of a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Literal(char),
    /// Any one character of a name in a path.
    Character,
    /// Any run of characters of one name in a path.
    Name,
    /// Any run of digits, also with a sign.
    Number,
    /// Any text.
    Any,
    /// No dot comes next: a pattern of the shell does not match one at the start of a name.
    NoDot,
    /// Continue with the next step, or this many steps further.
    Split(usize),
    /// Continue this many steps further.
    Jump(usize),
}

/// A text with parts that may be unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shape(Vec<Step>);

impl Shape {
    pub(crate) fn any() -> Self {
        Self(vec![Step::Any])
    }

    pub(crate) fn literal(text: &str) -> Self {
        Self(text.chars().map(Step::Literal).collect())
    }

    pub(crate) fn from_steps(steps: &[Step]) -> Self {
        Self(steps.to_vec())
    }

    /// Every path below a directory.
    pub(crate) fn any_below() -> Self {
        Self(vec![Step::Literal('/'), Step::Any])
    }

    /// Any text, then this.
    pub(crate) fn any_then(shape: &Self) -> Self {
        let mut any = Self::any();
        any.append(shape);
        any
    }

    /// This character, then any text.
    pub(crate) fn any_after(start: char) -> Self {
        Self(vec![Step::Literal(start), Step::Any])
    }

    /// Whether every matching text is a number, several in a row, or empty.
    pub(crate) fn is_number(&self) -> bool {
        self.0.iter().all(|step| match step {
            Step::Number | Step::Split(_) | Step::Jump(_) => true,
            Step::Literal(character) => character.is_ascii_digit(),
            Step::Character | Step::Name | Step::Any | Step::NoDot => false,
        })
    }

    pub(crate) fn steps(&self) -> &[Step] {
        &self.0
    }

    pub(crate) fn push(&mut self, step: Step) {
        self.0.push(step);
    }

    pub(crate) fn push_text(&mut self, text: &str) {
        self.0.extend(text.chars().map(Step::Literal));
    }

    pub(crate) fn append(&mut self, other: &Self) {
        self.0.extend_from_slice(&other.0);
    }

    /// Appends an optional shape.
    pub(crate) fn append_optional(&mut self, other: &Self) {
        self.0.push(Step::Split(other.0.len() + 1));
        self.append(other);
    }

    /// One of these, or the empty text if there is none.
    pub(crate) fn one_of(shapes: &[Self]) -> Self {
        let Some((last, others)) = shapes.split_last() else { return Self::default() };
        let mut joined = last.clone();
        for shape in others.iter().rev() {
            let mut steps = vec![Step::Split(shape.0.len() + 2)];
            steps.extend_from_slice(&shape.0);
            steps.push(Step::Jump(joined.0.len() + 1));
            steps.extend_from_slice(&joined.0);
            joined = Self(steps);
        }
        joined
    }

    /// The text, if it is known.
    pub(crate) fn text(&self) -> Option<String> {
        self.0
            .iter()
            .map(|step| match step {
                Step::Literal(character) => Some(*character),
                _ => None,
            })
            .collect()
    }

    /// The alternatives of its choices, each without choices; `None` if there are more than `most`.
    pub(crate) fn alternatives(&self, most: usize) -> Option<Vec<Self>> {
        let mut found: Vec<Self> = Vec::new();
        let mut open = vec![(0, Vec::new())];
        while let Some((mut at, mut taken)) = open.pop() {
            loop {
                match self.0.get(at) {
                    None => break,
                    Some(Step::Jump(further)) => at += further,
                    Some(Step::Split(further)) => {
                        if open.len() + found.len() >= most {
                            return None;
                        }
                        open.push((at + further, taken.clone()));
                        at += 1;
                    }
                    Some(step) => {
                        taken.push(*step);
                        at += 1;
                    }
                }
            }
            let shape = Self(taken);
            if !found.contains(&shape) {
                found.push(shape);
            }
        }
        Some(found)
    }

    /// Whether the matching texts are finitely many.
    pub(crate) fn is_finite(&self) -> bool {
        let is_listed =
            |step: &Step| matches!(step, Step::Literal(_) | Step::Split(_) | Step::Jump(_));
        self.0.iter().all(is_listed)
    }

    /// Every matching text, if there are at most `most`.
    pub(crate) fn texts(&self, most: usize) -> Option<Vec<String>> {
        self.alternatives(most)?.iter().map(Self::text).collect()
    }

    /// A text for every alternative, with one number for all numbers, if there are at most `most` and no other part is
    /// unknown.
    pub(crate) fn samples(&self, most: usize) -> Option<Vec<String>> {
        let sample = |shape: &Self| {
            let characters = shape.0.iter().map(|step| match step {
                Step::Literal(character) => Some(*character),
                Step::Number => Some('1'),
                _ => None,
            });
            characters.collect()
        };
        self.alternatives(most)?.iter().map(sample).collect()
    }

    /// Whether it contains an arbitrary text.
    pub(crate) fn has_any(&self) -> bool {
        self.0.contains(&Step::Any)
    }

    /// Whether some character of some matching text satisfies the condition.
    pub(crate) fn may_have(&self, condition: impl Fn(char) -> bool) -> bool {
        self.0.iter().any(|step| match step {
            Step::Literal(character) => condition(*character),
            Step::Any | Step::Name | Step::Character => true,
            Step::Number => ('0'..='9').chain(['-']).any(&condition),
            Step::NoDot | Step::Split(_) | Step::Jump(_) => false,
        })
    }

    /// An estimate of its size in bytes.
    pub(crate) fn weight(&self) -> usize {
        self.0.len() * size_of::<Step>()
    }

    /// The known characters at its start.
    pub(crate) fn start(&self) -> impl Iterator<Item = char> {
        self.0.iter().map_while(|step| match step {
            Step::Literal(character) => Some(*character),
            _ => None,
        })
    }

    /// The rest after this text, if the shape begins with it.
    pub(crate) fn after(&self, text: &str) -> ShapeRest {
        let mut at = 0;
        for character in text.chars() {
            match self.0.get(at) {
                Some(Step::Literal(own)) if *own == character => at += 1,
                Some(Step::Literal(_)) | None => return ShapeRest::Other,
                Some(_) => return ShapeRest::Unknown,
            }
        }
        ShapeRest::Rest(Self::from_steps(self.0.get(at..).unwrap_or_default()))
    }

    /// All possible rests after this text, where the shape may begin with it.
    pub(crate) fn rests(&self, text: &str) -> Vec<Self> {
        let text: Vec<char> = text.chars().collect();
        let literals = Self(text.iter().copied().map(Step::Literal).collect());
        let mut found: Vec<Self> = Vec::new();
        let width = text.len() + 1;
        let mut seen = vec![false; (self.0.len() + 1) * width * 2];
        let mut open = vec![(0, 0, false)];
        while let Some((i, j, no_dot)) = open.pop() {
            let Some(seen) = seen.get_mut((i * width + j) * 2 + usize::from(no_dot)) else {
                continue;
            };
            if std::mem::replace(seen, true) {
                continue;
            }
            if j == text.len() {
                let rest = Self::from_steps(self.0.get(i..).unwrap_or_default());
                if !found.contains(&rest) {
                    found.push(rest);
                }
                continue;
            }
            let Some(step) = self.0.get(i).copied() else { continue };
            let moves = Moves::of(step, i);
            for next in moves.free.into_iter().flatten() {
                open.push((next, j, no_dot || step == Step::NoDot));
            }
            let theirs = literals.0.get(j).map_or(Moves::NONE, |step| Moves::of(*step, j));
            if let (Some((take, i)), Some((letter, j))) = (moves.taking, theirs.taking)
                && take.meets(letter, no_dot)
            {
                open.push((i, j, false));
            }
        }
        found
    }

    /// Whether some text matches both.
    pub(crate) fn intersects(&self, other: &Self) -> bool {
        let (ours, theirs) = (&self.0, &other.0);
        let width = theirs.len() + 1;
        let mut seen = vec![false; (ours.len() + 1) * width * 2];
        let mut open = vec![(0, 0, false)];
        while let Some((i, j, no_dot)) = open.pop() {
            let Some(seen) = seen.get_mut((i * width + j) * 2 + usize::from(no_dot)) else {
                continue;
            };
            if std::mem::replace(seen, true) {
                continue;
            }
            if i == ours.len() && j == theirs.len() {
                return true;
            }
            let (our, their) = (ours.get(i).copied(), theirs.get(j).copied());
            let ours_moved = our.map_or(Moves::NONE, |step| Moves::of(step, i));
            let theirs_moved = their.map_or(Moves::NONE, |step| Moves::of(step, j));
            for next in ours_moved.free.into_iter().flatten() {
                open.push((next, j, no_dot || our == Some(Step::NoDot)));
            }
            for next in theirs_moved.free.into_iter().flatten() {
                open.push((i, next, no_dot || their == Some(Step::NoDot)));
            }
            if let (Some((ours_take, i)), Some((theirs_take, j))) =
                (ours_moved.taking, theirs_moved.taking)
                && ours_take.meets(theirs_take, no_dot)
            {
                open.push((i, j, false));
            }
        }
        false
    }
}

/// The rest of a shape after a start.
pub(crate) enum ShapeRest {
    Rest(Shape),
    /// The shape begins differently.
    Other,
    /// It is not known whether it begins so.
    Unknown,
}

/// The successors of a step: without consuming a character, and by consuming one.
struct Moves {
    free: [Option<usize>; 2],
    taking: Option<(StepCharacters, usize)>,
}

/// The characters that a step consumes.
#[derive(Clone, Copy)]
enum StepCharacters {
    One(char),
    Digit,
    NoSlash,
    All,
}

impl Moves {
    const NONE: Self = Self { free: [None, None], taking: None };

    fn of(step: Step, at: usize) -> Self {
        let (free, taking) = match step {
            Step::Literal(character) => {
                ([None, None], Some((StepCharacters::One(character), at + 1)))
            }
            Step::Character => ([None, None], Some((StepCharacters::NoSlash, at + 1))),
            Step::Name => ([Some(at + 1), None], Some((StepCharacters::NoSlash, at))),
            Step::Number => ([Some(at + 1), None], Some((StepCharacters::Digit, at))),
            Step::Any => ([Some(at + 1), None], Some((StepCharacters::All, at))),
            Step::NoDot => ([Some(at + 1), None], None),
            Step::Split(further) => ([Some(at + 1), Some(at + further)], None),
            Step::Jump(further) => ([Some(at + further), None], None),
        };
        Self { free, taking }
    }
}

impl StepCharacters {
    fn meets(self, other: Self, no_dot: bool) -> bool {
        match (self, other) {
            (Self::One(one), Self::Digit) | (Self::Digit, Self::One(one)) => {
                one.is_ascii_digit() || one == '-'
            }
            (Self::One(one), Self::One(two)) => one == two && !(no_dot && one == '.'),
            (Self::One(one), Self::NoSlash) | (Self::NoSlash, Self::One(one)) => {
                one != '/' && !(no_dot && one == '.')
            }
            (Self::One(one), Self::All) | (Self::All, Self::One(one)) => !(no_dot && one == '.'),
            (Self::Digit, _)
            | (_, Self::Digit)
            | (Self::NoSlash | Self::All, Self::NoSlash | Self::All) => true,
        }
    }
}

/// The shape of a glob in a path rule, relative to the rule's anchor.
pub(crate) fn of_glob(glob: &str) -> Shape {
    let mut shape = Shape::default();
    let mut rest = glob;
    let mut at_start = true;
    while let Some(character) = rest.chars().next() {
        if at_start && let Some(after) = rest.strip_prefix("**/") {
            shape.append_optional(&Shape(vec![Step::Any, Step::Literal('/')]));
            rest = after;
            continue;
        }
        let mut taken = character.len_utf8();
        match character {
            '*' if rest.starts_with("**") => {
                shape.push(Step::Any);
                taken = rest.len() - rest.trim_start_matches('*').len();
            }
            '*' => shape.push(Step::Name),
            '?' => shape.push(Step::Character),
            '[' => {
                shape.push(Step::Character);
                let inside = rest.get(2..).unwrap_or_default();
                taken = inside.find(']').map_or(rest.len(), |end| end + 3);
            }
            '{' => {
                shape.push(Step::Any);
                taken = rest.find('}').map_or(rest.len(), |end| end + 1);
            }
            '\\' => {
                let escaped = rest.chars().nth(1).unwrap_or('\\');
                shape.push(Step::Literal(escaped));
                taken += escaped.len_utf8();
            }
            other => shape.push(Step::Literal(other)),
        }
        at_start = character == '/';
        rest = rest.get(taken..).unwrap_or_default();
    }
    shape
}

#[cfg(test)]
mod tests {
    use super::super::outline::Outline;
    use super::*;

    /// A shape in glob syntax, with `^` for "no dot here".
    fn shape(text: &str) -> Shape {
        let mut shape = Shape::default();
        for (index, piece) in text.split('^').enumerate() {
            if index > 0 {
                shape.push(Step::NoDot);
            }
            shape.append(&of_glob(piece));
        }
        shape
    }

    #[test]
    fn shapes_meet_where_a_text_fits_both() {
        for (one, two, expected) in [
            ("/p/.env", "/p/.env", true),
            ("/p/.en*", "/p/.env", true),
            ("/p/.e?v", "/p/.env", true),
            ("/p/.[e]nv", "/p/.env", true),
            ("/p/^*", "/p/.env", false),
            ("/p/^*.env", "/p/.env", false),
            ("/p/^?env", "/p/.env", false),
            ("/p/^*", "/p/secret", true),
            ("/p/*.rs", "/p/.env", false),
            ("/p/src/*.rs", "/p/**/.env", false),
            ("/p/src/*", "/p/**/.env", true),
            ("/p/src/^*", "/p/**/.env", false),
            ("/p/**", "/p/a/b/.env", true),
            ("/p/*", "/p/a/.env", false),
            ("/p/a/x", "/p/**/x", true),
            ("/p/x", "/p/**/x", true),
            ("/p/a*c", "/p/ab*", true),
            ("/p/a*c", "/p/b*", false),
        ] {
            let [one_outline, two_outline] = [one, two].map(|text| Outline::of(&shape(text)));
            assert!(!(expected && one_outline.differs(&two_outline)), "{one} and {two} differ");
            assert_eq!(shape(one).intersects(&shape(two)), expected, "{one} and {two}");
            assert_eq!(shape(two).intersects(&shape(one)), expected, "{two} and {one}");
        }
    }

    #[test]
    fn one_of_several_is_one_of_them() {
        let several =
            Shape::one_of(&[Shape::literal("a"), Shape::literal("bc"), Shape::literal("")]);
        for (text, expected) in
            [("a", true), ("bc", true), ("", true), ("b", false), ("abc", false)]
        {
            assert_eq!(several.intersects(&Shape::literal(text)), expected, "{text:?}");
            let outlines = [Outline::of(&several), Outline::of(&Shape::literal(text))];
            assert!(!(expected && outlines[0].differs(&outlines[1])), "{text:?}");
        }
    }
}
