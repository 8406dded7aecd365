//! Every source file is compiled: it is the root of a target, or its parent declares it.
//!
//! Tests in a file that no `mod` names never run, and nothing else says so.

use crate::tree::{self, File, assert_none};

#[test]
fn every_source_file_is_compiled() {
    assert_none(&forgotten(&tree::sources()));
}

fn forgotten(sources: &[File]) -> Vec<String> {
    let unknown = sources.iter().filter(|file| !is_root(&file.path) && !is_declared(file, sources));
    unknown.map(|file| format!("{}: no `mod` names it, so it is not compiled", file.path)).collect()
}

/// The files that cargo finds by itself or by a manifest.
fn is_root(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    matches!(
        parts[..],
        [.., "src", "lib.rs" | "main.rs"]
            | [.., "src", "bin", _]
            | [.., "tests" | "benches" | "examples" | "fuzz_targets", _]
            | [.., "tests", _, "main.rs"]
            | [.., "build.rs"]
    )
}

fn is_declared(file: &File, sources: &[File]) -> bool {
    let (directory, name) = file.path.rsplit_once('/').unwrap_or(("", &file.path));
    let module = name.trim_end_matches(".rs");
    // The file beside the directory, or the root of a target in it or, with a path, above it.
    let beside = format!("{directory}.rs");
    let above = directory.rsplit_once('/').map_or("", |(above, _)| above);
    let in_directory = |path: &str| path.rsplit_once('/').is_some_and(|(of, _)| of == directory);
    let is_above = |path: &str| path.rsplit_once('/').is_some_and(|(of, _)| of == above);
    let by_path = format!(
        "#[path = \"{}/{name}\"]",
        directory.trim_start_matches(above).trim_start_matches('/')
    );
    sources.iter().any(|other| {
        let is_parent = other.path == beside || (in_directory(&other.path) && is_root(&other.path));
        (is_parent && declares(&other.text, module))
            || (is_above(&other.path) && other.text.contains(&by_path))
    })
}

fn declares(text: &str, module: &str) -> bool {
    let declaration = format!("mod {module};");
    text.lines().map(str::trim).any(|line| {
        !line.starts_with("//")
            && line
                .strip_suffix(&declaration)
                .is_some_and(|rest| rest.is_empty() || rest.ends_with(' '))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_no_module_names_is_found() {
        let file =
            |(path, text): (&str, &str)| File { path: path.to_owned(), text: text.to_owned() };
        let sources = [
            ("crates/a/src/lib.rs", "mod mail;\npub(crate) mod post;\n// mod lost;\n"),
            ("crates/a/src/mail.rs", "#[cfg(test)]\nmod tests;\n"),
            ("crates/a/src/mail/tests.rs", ""),
            ("crates/a/src/mail/more.rs", "mod tests;"),
            ("crates/a/src/post.rs", ""),
            ("crates/a/src/lost.rs", "#[test]\nfn never_runs() {}\n"),
            ("crates/a/tests/main.rs", "#[path = \"story/calls.rs\"]\nmod calls;\n"),
            ("crates/a/tests/story/calls.rs", ""),
            ("crates/a/tests/story/mail.rs", ""),
            ("crates/a/tests/shell/main.rs", "mod guard;"),
            ("crates/a/tests/shell/guard.rs", ""),
        ]
        .map(file);
        let found: Vec<String> = forgotten(&sources);
        let paths: Vec<&str> = found.iter().filter_map(|it| it.split(':').next()).collect();
        assert_eq!(
            paths,
            ["crates/a/src/mail/more.rs", "crates/a/src/lost.rs", "crates/a/tests/story/mail.rs"]
        );
    }
}
