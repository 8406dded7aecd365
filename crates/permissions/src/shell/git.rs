//! Read-only forms of `git`.
//!
//! A repository's configuration can name programs that even `git status` runs. Reading is therefore
//! free only in the repository that was there before the agent, and only as that repository says.

use std::path::PathBuf;

use super::read_only::refuses;
use crate::paths::is_inside;
use crate::scene::Scene;

/// Whether all the places, and what they lead to, are in the repository that the session began with.
pub(super) fn is_ours(places: &[PathBuf], scene: Scene<'_>) -> bool {
    let Some(repository) = &scene.policy.repository else { return false };
    let ours = std::slice::from_ref(repository);
    places.iter().all(|place| scene.spots(place).all(|spot| is_inside(&spot, ours)))
}

/// Whether the command only reads. Options before the subcommand may load another configuration.
pub(super) fn reads(arguments: &[&str]) -> bool {
    const LONG: [&str; 7] = [
        "--exec-path",
        "--ext-diff",
        "--open-files-in-pager",
        "--output",
        "--textconv",
        "--upload-pack",
        "--filters",
    ];
    let arguments = match arguments.split_first() {
        Some((first, rest)) if *first == "--no-pager" => rest,
        _ => arguments,
    };
    let Some((subcommand, rest)) = arguments.split_first() else { return false };
    let dangerous = !refuses(rest, &LONG, &[])
        || rest.iter().any(|word| word.starts_with("-c") || word.starts_with("-o"));
    if dangerous {
        return false;
    }
    match *subcommand {
        "status" | "log" | "diff" | "show" | "rev-parse" | "ls-files" | "blame" | "describe" => {
            true
        }
        "branch" => lists(rest, &["-a", "-r", "-v", "-vv", "--all", "--remotes", "--show-current"]),
        "tag" => lists(rest, &[]),
        "remote" => rest.iter().all(|word| *word == "-v" || *word == "--verbose"),
        "stash" => rest.first().is_some_and(|word| *word == "list"),
        _ => false,
    }
}

/// Whether `git branch` or `git tag` only lists: every option is known to, and a bare argument, which
/// would otherwise name something to create, stands beside one that makes it a pattern.
fn lists(arguments: &[&str], more: &[&str]) -> bool {
    const FILTERS: [&str; 5] = ["--list", "--contains", "--merged", "--no-merged", "--points-at"];
    const SHAPES: [&str; 4] = ["--sort=", "--format=", "--color", "--no-color"];
    let name = |word: &str| word.split('=').next().unwrap_or_default().to_owned();
    let filters = arguments.iter().any(|word| FILTERS.contains(&name(word).as_str()));
    arguments.iter().all(|word| {
        if !word.starts_with('-') {
            return filters;
        }
        FILTERS.contains(&name(word).as_str())
            || SHAPES.iter().any(|shape| word.starts_with(shape))
            || more.contains(word)
    })
}
