//! From a line of plain commands to a [`Script`](super::script::Script), without any grammar.

use std::iter::Peekable;
use std::vec::IntoIter;

use super::places::{Ending, Places};
use super::script::Command;
use super::walker::Walker;
use super::words::{Link, PlainCommand};

type Line = Peekable<IntoIter<PlainCommand>>;

/// Takes every command of the line in, each with the places where it may run.
pub(super) fn walk(line: Vec<PlainCommand>, walker: &mut Walker<'_>, places: Places) {
    let mut places = places;
    let mut line = line.into_iter().peekable();
    while line.peek().is_some() {
        let (ending, waits) = and_or(&mut line, walker, &places);
        if waits {
            places = ending.either();
        }
    }
}

/// Pipelines up to the next `;`, `&` or end, and whether the shell waits for them.
fn and_or(line: &mut Line, walker: &mut Walker<'_>, places: &Places) -> (Ending, bool) {
    let (mut ending, mut joint) = pipeline(line, walker, places);
    loop {
        (ending, joint) = match joint {
            Link::And => {
                let (then, next) = pipeline(line, walker, &ending.success);
                (ending.and(then), next)
            }
            Link::Or => {
                let (then, next) = pipeline(line, walker, &ending.failure);
                (ending.or(then), next)
            }
            Link::Background => return (ending, false),
            Link::Pipe | Link::Sequence | Link::End => return (ending, true),
        };
    }
}

/// Commands up to the next operator that is no pipe, and that operator.
fn pipeline(line: &mut Line, walker: &mut Walker<'_>, places: &Places) -> (Ending, Link) {
    let mut is_pipe = false;
    loop {
        let Some(PlainCommand { words, redirections, fed, link, .. }) = line.next() else {
            return (Ending::same(places.clone()), Link::End);
        };
        let fed = fed || is_pipe;
        is_pipe |= link == Link::Pipe;
        let here = places.clone();
        let command = Command { words, redirections, places: here, fed, ..Command::default() };
        let last = walker.finish(command);
        if link != Link::Pipe {
            return (if is_pipe { Ending::of_pipe(places, &last) } else { last }, link);
        }
    }
}
