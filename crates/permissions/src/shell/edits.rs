//! File commands that `acceptEdits` runs: what they touch is as plain as with the file tools.

use super::removal::is_critical;
use super::words::simple_command;
use crate::paths::{is_inside, normalize};
use crate::policy::Policy;
use crate::protected::is_protected;

/// Whether the command only makes, moves, copies or removes files inside the working directories,
/// none of them protected.
pub(crate) fn edits_inside(command: &str, policy: &Policy) -> bool {
    let Some(words) = simple_command(command) else { return false };
    let Some((program, arguments)) = words.split_first() else { return false };
    let (options, operands): (Vec<&String>, Vec<&String>) =
        arguments.iter().partition(|word| word.starts_with('-'));
    // An option that may hold a path could hide where the command writes.
    if options.iter().any(|option| option.contains(['/', '.'])) {
        return false;
    }
    let operands: Vec<_> =
        operands.into_iter().map(|word| normalize(&policy.cwd.join(word))).collect();
    if operands.is_empty()
        || !operands.iter().all(|path| is_inside(path, &policy.directories) && !is_protected(path))
    {
        return false;
    }
    let lost = match program.as_str() {
        "mkdir" | "touch" | "cp" => &[],
        "rm" | "rmdir" => operands.as_slice(),
        // The last operand is where things go.
        "mv" => operands.split_last().map_or(&[][..], |(_, moved)| moved),
        _ => return false,
    };
    !lost.iter().any(|path| is_critical(path, policy))
}
