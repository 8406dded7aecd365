//! Files that programs obey by themselves: one that the same line makes is run.

use super::super::programs::base_name;
use super::super::script::Word;
use super::super::shape::Shape;
use super::Finder;
use super::words::{attached, has_word};

/// Suffixes of the names of files that a program runs, or that name programs for it.
const OBEYED: [(&[&str], &[&str]); 22] = [
    (&["aws"], &["config", "credentials"]),
    (&["bazel"], &["BUILD", ".bzl", ".bazel", "WORKSPACE", ".bazelrc"]),
    (&["bun", "npm", "pnpm", "yarn"], &["package.json", ".npmrc", ".yarnrc.yml"]),
    (&["cargo"], &[".rs", ".toml"]),
    (&["cmake", "ctest"], &["CMakeLists.txt", ".cmake"]),
    (
        &["eslint", "prettier", "vite", "webpack"],
        &[".config.cjs", ".config.js", ".config.mjs", ".config.ts", "rc.cjs", "rc.js"],
    ),
    (&["gdb", "gdbtui", "rust-gdb"], &[".gdbinit"]),
    (&["go"], &[".go"]),
    (&["gradle"], &[".gradle", ".kts", ".properties"]),
    (&["invoke"], &["tasks.py"]),
    (&["java"], &[".class", ".jar", ".java"]),
    (&["jest", "mocha", "vitest"], &["js", "ts", ".json"]),
    (&["just"], &["justfile", "Justfile"]),
    (&["kubectl", "helm"], &["config"]),
    (&["mvn"], &["pom.xml", "settings.xml"]),
    (&["mypy"], &["mypy.ini", ".toml", "setup.cfg"]),
    (&["ninja"], &[".ninja"]),
    (&["nox", "py.test", "pytest", "tox"], &[".py", ".ini", ".toml"]),
    (&["pip", "pip3", "poetry", "uv"], &["setup.py", ".toml", "setup.cfg"]),
    (&["pre-commit"], &[".pre-commit-config.yaml"]),
    (&["rake", "bundle"], &["Rakefile", "Gemfile", ".rb", ".rake"]),
    (&["autossh", "rsync", "scp", "sftp", "slogin", "ssh"], &["config"]),
];

impl Finder<'_> {
    /// Records the files that a program obeys, if they are made: by their names, or because an option names them.
    pub(super) fn obeyed(&mut self, name: &str, arguments: &[Word]) {
        if let Some((_, endings)) = OBEYED.iter().find(|(names, _)| names.contains(&name)) {
            self.runs_sources(endings);
        }
        match name {
            // Every file in a directory.
            "run-parts" => self.run.push(Shape::any()),
            "psql" => self.runs_any(&[".psqlrc"]),
            "sqlite3" => self.runs_any(&[".sqliterc"]),
            "node" if has_word(arguments, &["--test"]) => {
                self.runs_sources(&[".cjs", ".js", ".mjs"]);
            }
            "java" | "pip" | "pip3" | "scp" | "sftp" | "slogin" | "ssh" => {
                for word in arguments {
                    self.runs(word);
                    let value = word.value.as_deref().unwrap_or_default();
                    let file = attached(value).or(value.split_once('=').map(|(_, file)| file));
                    self.run.extend(file.map(|file| Shape::literal(base_name(file))));
                }
            }
            _ => {}
        }
    }
}
