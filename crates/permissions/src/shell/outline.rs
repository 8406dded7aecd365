//! A quick summary of a shape, which is enough to see that most pairs of shapes have no text in common.

use super::shape::{Shape, Step};

/// The known start and end of the texts of a shape, and the number of their names.
#[derive(Clone, Debug)]
pub(crate) struct Outline {
    start: String,
    /// From the last character on.
    end: String,
    fewest_slashes: usize,
    /// `None` without a bound.
    most_slashes: Option<usize>,
}

impl Outline {
    pub(crate) fn of(shape: &Shape) -> Self {
        let (fewest_slashes, most_slashes) = slashes(shape);
        Self { start: shape.start().collect(), end: end(shape), fewest_slashes, most_slashes }
    }

    /// Whether no text matches both because their starts, ends or numbers of names differ: quick, but does not find all
    /// disjoint pairs.
    pub(crate) fn differs(&self, other: &Self) -> bool {
        let is_more = |fewest: usize, most: Option<usize>| most.is_some_and(|most| most < fewest);
        !agree(&self.start, &other.start)
            || !agree(&self.end, &other.end)
            || is_more(self.fewest_slashes, other.most_slashes)
            || is_more(other.fewest_slashes, self.most_slashes)
    }
}

/// Whether one of them is a prefix of the other.
fn agree(one: &str, two: &str) -> bool {
    let length = one.len().min(two.len());
    one.as_bytes().get(..length) == two.as_bytes().get(..length)
}

/// The known characters at the end of a shape, from the last one on.
fn end(shape: &Shape) -> String {
    // A choice may skip the steps before its end.
    let jumps = shape.steps().iter().enumerate().map(|(at, step)| match step {
        Step::Split(further) | Step::Jump(further) => at + further,
        _ => 0,
    });
    let start = jumps.max().unwrap_or(0).min(shape.steps().len());
    let steps = shape.steps().get(start..).unwrap_or_default();
    let known = steps.iter().rev().map_while(|step| match step {
        Step::Literal(character) => Some(*character),
        _ => None,
    });
    known.collect()
}

/// The fewest slashes of a matching text, and the most, if that is bounded.
fn slashes(shape: &Shape) -> (usize, Option<usize>) {
    let (mut fewest, mut most, mut has_any) = (0, 0, false);
    // Steps that a choice may skip.
    let mut optional = 0;
    for (at, step) in shape.steps().iter().enumerate() {
        match step {
            Step::Split(further) => optional = optional.max(at + further),
            // The other alternatives are before and behind it.
            Step::Jump(_) => return (0, None),
            Step::Any => has_any = true,
            Step::Literal('/') => {
                most += 1;
                fewest += usize::from(at >= optional);
            }
            _ => {}
        }
    }
    (fewest, (!has_any).then_some(most))
}
