//! The order in which the engine's folders may use each other.
//!
//! `crates/engine/src/lib.rs` lists them from the bottom to the top.

use std::path::Path;

use crate::sources::before_tests;
use crate::tree::{assert_none, root, sources};

/// The folders in the order of the list.
fn order(lib: &str) -> Vec<&str> {
    let lines = lib.lines().filter_map(|line| line.strip_prefix("//! - `"));
    lines.filter_map(|line| line.split('`').next()).collect()
}

/// The folder that a file belongs to, by its path below the sources.
fn folder(path: &Path) -> &str {
    let first = path.iter().next().and_then(|name| name.to_str()).unwrap_or_default();
    first.strip_suffix(".rs").unwrap_or(first)
}

/// The folders that a source uses, tests aside.
fn used(source: &str) -> impl Iterator<Item = &str> {
    let product = before_tests(source);
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    product.split("crate::").skip(1).map(move |rest| {
        let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        &rest[..end]
    })
}

/// The faults in the uses of one file.
fn complaints(order: &[&str], path: &Path, source: &str) -> Vec<String> {
    let place = |name: &str| order.iter().position(|folder| *folder == name);
    let Some(own) = place(folder(path)) else {
        return vec![format!("{}: its folder is not in the list of lib.rs", path.display())];
    };
    let is_above = |name: &&str| place(name).is_none_or(|other| other > own);
    used(source)
        .filter(is_above)
        .map(|name| format!("{} uses `{name}`, which stands above it", path.display()))
        .collect()
}

#[test]
fn the_engines_folders_use_only_those_below_them() {
    let engine = Path::new("crates/engine/src");
    let lib = std::fs::read_to_string(root().join(engine).join("lib.rs")).expect("lib.rs");
    let order = order(&lib);
    assert!(order.len() > 5, "the list of folders was not read");
    let mut found = Vec::new();
    for file in sources() {
        let Ok(path) = Path::new(&file.path).strip_prefix(engine) else { continue };
        let is_test = path.iter().any(|name| name == "tests" || name == "tests.rs");
        if path != Path::new("lib.rs") && !is_test {
            found.extend(complaints(&order, path, &file.text));
        }
    }
    assert_none(&found);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_use_upwards_is_found() {
        let order = order("//! - `low`: a\n//! - `high`: b\n");
        assert_eq!(order, ["low", "high"]);
        let count = |path: &str, source: &str| complaints(&order, Path::new(path), source).len();
        assert_eq!(count("low/x.rs", "use crate::high::Y;"), 1);
        assert_eq!(count("low.rs", "fn f() { crate::high::y() }"), 1);
        assert_eq!(count("high/x.rs", "use crate::low::Y;\nuse crate::high::z;"), 0);
        assert_eq!(count("low/x.rs", "#[cfg(test)]\nmod tests {\nuse crate::high::Y;\n}\n"), 0);
        assert_eq!(count("low/x.rs", "#[cfg(test)]\nmod tests;\nuse crate::high::Y;"), 1);
        assert_eq!(count("low/x.rs", "use crate::nowhere::Y;"), 1);
        assert_eq!(count("elsewhere/x.rs", ""), 1);
    }
}
