//! The order of the crates: dependencies point down only.

use std::process::Command;

use serde_json::Value;

use crate::tree::{assert_none, root};

/// Each crate with those of the project that it may depend on.
const LAYERS: [(&str, &[&str]); 22] = [
    ("centurion-protocol", &[]),
    ("centurion-files", &[]),
    ("centurion-diff", &[]),
    ("centurion-redact", &["centurion-files"]),
    ("centurion-journal", &["centurion-files", "centurion-protocol", "centurion-redact"]),
    ("centurion-model", &["centurion-protocol", "centurion-redact"]),
    ("centurion-config", &["centurion-protocol", "centurion-files", "centurion-model"]),
    ("centurion-permissions", &["centurion-protocol", "centurion-config"]),
    ("centurion-sandbox", &["centurion-protocol"]),
    ("centurion-worktree", &["centurion-files", "centurion-protocol"]),
    ("centurion-team", &["centurion-files", "centurion-protocol", "centurion-redact"]),
    (
        "centurion-tools",
        &[
            "centurion-diff",
            "centurion-files",
            "centurion-protocol",
            "centurion-redact",
            "centurion-config",
            "centurion-permissions",
            "centurion-sandbox",
        ],
    ),
    (
        "centurion-hooks",
        &[
            "centurion-files",
            "centurion-protocol",
            "centurion-redact",
            "centurion-config",
            "centurion-permissions",
            "centurion-sandbox",
            "centurion-tools",
        ],
    ),
    (
        "centurion-mcp",
        &[
            "centurion-files",
            "centurion-protocol",
            "centurion-redact",
            "centurion-config",
            "centurion-permissions",
            "centurion-sandbox",
            "centurion-tools",
        ],
    ),
    (
        "centurion-engine",
        &[
            "centurion-files",
            "centurion-protocol",
            "centurion-journal",
            "centurion-redact",
            "centurion-model",
            "centurion-config",
            "centurion-permissions",
            "centurion-sandbox",
            "centurion-tools",
            "centurion-hooks",
            "centurion-mcp",
            "centurion-team",
            "centurion-worktree",
        ],
    ),
    (
        "centurion-host",
        &[
            "centurion-protocol",
            "centurion-model",
            "centurion-config",
            "centurion-permissions",
            "centurion-tools",
            "centurion-hooks",
            "centurion-mcp",
            "centurion-engine",
        ],
    ),
    (
        "centurion-tui",
        &[
            "centurion-diff",
            "centurion-protocol",
            "centurion-files",
            "centurion-engine",
            "centurion-host",
        ],
    ),
    (
        "centurion",
        &[
            "centurion-diff",
            "centurion-files",
            "centurion-protocol",
            "centurion-journal",
            "centurion-redact",
            "centurion-model",
            "centurion-config",
            "centurion-permissions",
            "centurion-sandbox",
            "centurion-tools",
            "centurion-hooks",
            "centurion-mcp",
            "centurion-engine",
            "centurion-host",
            "centurion-team",
            "centurion-worktree",
            "centurion-tui",
        ],
    ),
    ("centurion-embed-derive", &[]),
    (
        "centurion-embed",
        &[
            "centurion-embed-derive",
            "centurion-protocol",
            "centurion-model",
            "centurion-config",
            "centurion-permissions",
            "centurion-tools",
            "centurion-hooks",
            "centurion-engine",
        ],
    ),
    ("centurion-testkit", &["centurion-protocol"]),
    ("xtask", &[]),
];

/// The crate that only tests may use.
const FOR_TESTS: &str = "centurion-testkit";

#[test]
fn dependencies_point_down_only() {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--offline", "--format-version=1"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    assert!(packages.len() >= LAYERS.len(), "the workspace was not read");
    assert_none(&packages.iter().flat_map(complaints).collect::<Vec<_>>());
}

#[test]
fn one_library_for_cryptography() {
    let lock = std::fs::read_to_string(root().join("Cargo.lock")).expect("Cargo.lock");
    assert!(lock.contains("name = \"ring\""), "the lock file was not read");
    assert!(
        !lock.contains("name = \"aws-lc-sys\""),
        "aws-lc-sys is back: some feature asks for it"
    );
}

fn complaints(package: &Value) -> Vec<String> {
    let name = package["name"].as_str().unwrap_or_default();
    let Some((_, below)) = LAYERS.iter().find(|(layer, _)| *layer == name) else {
        return vec![format!("{name}: say in the table of layers what it may depend on")];
    };
    let dependencies = package["dependencies"].as_array().into_iter().flatten();
    dependencies
        .filter_map(|dependency| {
            let used = dependency["name"].as_str().unwrap_or_default();
            let for_tests = dependency["kind"] == "dev";
            let ours = LAYERS.iter().any(|(layer, _)| *layer == used);
            let fine = !ours || below.contains(&used) || (for_tests && used == FOR_TESTS);
            (!fine).then(|| format!("{name} may not depend on {used}"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_dependency_upwards_is_found() {
        for (package, expected) in [
            (
                json!({"name": "centurion-model", "dependencies": [
                {"name": "centurion-protocol", "kind": null}, {"name": "serde", "kind": null}]}),
                0,
            ),
            (
                json!({"name": "centurion-model", "dependencies": [
                {"name": "centurion-tools", "kind": null}]}),
                1,
            ),
            (
                json!({"name": "centurion-model", "dependencies": [
                {"name": "centurion-tools", "kind": "dev"}]}),
                1,
            ),
            (
                json!({"name": "centurion-model", "dependencies": [
                {"name": "centurion-testkit", "kind": "dev"}]}),
                0,
            ),
            (
                json!({"name": "centurion-model", "dependencies": [
                {"name": "centurion-testkit", "kind": null}]}),
                1,
            ),
            (json!({"name": "centurion-novelty", "dependencies": []}), 1),
        ] {
            assert_eq!(complaints(&package).len(), expected, "{package}");
        }
    }
}
