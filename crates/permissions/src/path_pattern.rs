//! Path patterns of `Read(…)` and `Edit(…)` rules.
//!
//! They read like `.gitignore` lines: `*` stays in one segment, `**` crosses them, a bare name holds
//! at any depth, a directory holds for what is in it. The beginning says where the pattern hangs, and
//! nothing that an agent does can move that place: a `cd` neither escapes a deny rule nor carries an
//! allow rule along.

use std::path::{Component, Path, PathBuf};

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};

use crate::paths::normalize;
use crate::policy::Policy;
use crate::rule::RuleKind;

/// Where a pattern hangs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Anchor {
    /// `//path`
    Filesystem,
    /// `~/path`
    Home,
    /// `/path`
    Project,
    /// `path`, `./path`: in the project too, but a single name holds at any depth.
    Unanchored,
}

#[derive(Clone, Debug)]
pub(crate) struct PathPattern {
    anchor: Anchor,
    /// How many `../` lead away from the anchor.
    ascents: usize,
    globs: GlobSet,
    /// What ask and deny rules match beyond `globs`: `src/**` at any depth.
    wider: GlobSet,
}

impl PathPattern {
    pub(crate) fn parse(text: &str) -> Result<Self, globset::Error> {
        let (anchor, rest) = split_anchor(text);
        let mut rest = rest.trim_end_matches('/');
        let mut ascents = 0;
        loop {
            if rest == ".." || rest.starts_with("../") {
                ascents += 1;
                rest = rest.get(3..).unwrap_or_default();
            } else if rest == "." || rest.starts_with("./") {
                rest = rest.get(2..).unwrap_or_default();
            } else {
                break;
            }
        }
        let bare = anchor == Anchor::Unanchored && ascents == 0 && !rest.contains('/');
        let (globs, wider) = globs(rest, bare);
        let wider = if anchor == Anchor::Unanchored && ascents == 0 { wider } else { vec![] };
        Ok(Self { anchor, ascents, globs: compile(&globs)?, wider: compile(&wider)? })
    }

    pub(crate) fn matches(&self, kind: RuleKind, path: &Path, policy: &Policy) -> bool {
        let Some(base) = self.base(policy) else { return false };
        let path = normalize(path);
        let Ok(relative) = path.strip_prefix(&base) else { return false };
        self.globs.is_match(relative) || (kind != RuleKind::Allow && self.wider.is_match(relative))
    }

    /// The directory that the globs are relative to.
    fn base(&self, policy: &Policy) -> Option<PathBuf> {
        let anchor = match self.anchor {
            Anchor::Filesystem => Path::new(Component::RootDir.as_os_str()),
            Anchor::Home => policy.home.as_deref()?,
            Anchor::Project | Anchor::Unanchored => &policy.project_root,
        };
        normalize(anchor).ancestors().nth(self.ascents).map(Path::to_owned)
    }
}

fn split_anchor(text: &str) -> (Anchor, &str) {
    if let Some(rest) = text.strip_prefix("//") {
        (Anchor::Filesystem, rest)
    } else if let Some(rest) = text.strip_prefix("~/") {
        (Anchor::Home, rest)
    } else if text == "~" {
        (Anchor::Home, "")
    } else if let Some(rest) = text.strip_prefix('/') {
        (Anchor::Project, rest)
    } else {
        (Anchor::Unanchored, text)
    }
}

/// The globs that a pattern stands for, and those that only ask and deny rules add.
fn globs(pattern: &str, bare: bool) -> (Vec<String>, Vec<String>) {
    if pattern.is_empty() || pattern == "**" {
        return (vec!["**".to_owned(), String::new()], Vec::new());
    }
    if let Some(directory) = pattern.strip_suffix("/**") {
        let narrow = vec![directory.to_owned(), pattern.to_owned()];
        let wide = if directory.contains('/') {
            Vec::new()
        } else {
            vec![format!("**/{directory}"), format!("**/{pattern}")]
        };
        return (narrow, wide);
    }
    let glob = if bare { format!("**/{pattern}") } else { pattern.to_owned() };
    let last = pattern.rsplit('/').next().unwrap_or(pattern);
    // A directory stands for what is in it. `src/*` does not: its star counts one segment.
    if bare || !last.contains(['*', '?', '[']) {
        (vec![format!("{glob}/**"), glob], Vec::new())
    } else {
        (vec![glob], Vec::new())
    }
}

fn compile(globs: &[String]) -> Result<GlobSet, globset::Error> {
    let mut set = GlobSetBuilder::new();
    for glob in globs {
        set.add(build(glob)?);
    }
    set.build()
}

fn build(glob: &str) -> Result<Glob, globset::Error> {
    GlobBuilder::new(glob).literal_separator(true).backslash_escape(true).build()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(kind: RuleKind, pattern: &str, path: &str) -> bool {
        let pattern = PathPattern::parse(pattern).unwrap();
        // Wherever the shell stands, the answer is the same.
        let answers = ["/home/ada/project", "/home/ada/project/crates", "/srv"].map(|cwd| {
            let policy = Policy {
                cwd: PathBuf::from(cwd),
                project_root: PathBuf::from("/home/ada/project"),
                home: Some(PathBuf::from("/home/ada")),
                ..Policy::default()
            };
            pattern.matches(kind, Path::new(path), &policy)
        });
        assert_eq!(answers, [answers[0]; 3], "{kind} on {path} depends on where the shell stands");
        answers[0]
    }

    /// Cases that hold for allow, ask and deny alike.
    #[test]
    fn patterns_hang_where_their_beginning_says() {
        for (pattern, path, expected) in [
            ("//etc/hosts", "/etc/hosts", true),
            ("//etc", "/etc/ssh/config", true),
            ("//etc/**", "/etc/ssh/config", true),
            ("//etc/**", "/etc", true),
            ("//etc/**", "/home/ada/project/etc/x", false),
            ("//**/.env", "/srv/app/.env", true),
            ("~/.ssh/**", "/home/ada/.ssh/id_ed25519", true),
            ("~/.ssh", "/home/ada/.ssh/id_ed25519", true),
            ("~/.ssh/**", "/home/bob/.ssh/id_ed25519", false),
            ("~/.zshrc", "/home/ada/sub/.zshrc", false),
            ("~", "/home/ada/anything", true),
            ("/docs/**", "/home/ada/project/docs/a/b.md", true),
            ("/docs/**", "/home/ada/project/crates/docs/b.md", false),
            ("/docs/*.md", "/home/ada/project/docs/b.md", true),
            ("/docs/*.md", "/home/ada/project/docs/a/b.md", false),
            ("/docs/", "/home/ada/project/docs/a/b.md", true),
            ("/", "/home/ada/project/anything", true),
            ("/", "/home/ada/else", false),
            ("model/src/*.rs", "/home/ada/project/model/src/lib.rs", true),
            ("./model/src/*.rs", "/home/ada/project/model/src/lib.rs", true),
            ("model/src/*.rs", "/home/ada/project/crates/model/src/lib.rs", false),
            ("model/src/*", "/home/ada/project/model/src/a/b.rs", false),
            ("model/**/b.rs", "/home/ada/project/model/src/a/b.rs", true),
            ("model/**/b.rs", "/home/ada/project/model/b.rs", true),
            (".env", "/home/ada/project/.env", true),
            (".env", "/home/ada/project/a/b/.env", true),
            ("./.env", "/home/ada/project/a/.env", true),
            (".env", "/home/ada/.env", false),
            (".env", "/home/ada/project/.envrc", false),
            ("*.pem", "/home/ada/project/a/key.pem", true),
            ("secrets", "/home/ada/project/a/secrets/key", true),
            ("../docs/**", "/home/ada/docs/a.md", true),
            ("../../*.txt", "/home/a.txt", true),
            ("**", "/home/ada/project/a/b", true),
            ("**", "/home/ada/project", true),
            ("**", "/home/ada", false),
            ("a[0-9].txt", "/home/ada/project/a7.txt", true),
            ("a\\*.txt", "/home/ada/project/a*.txt", true),
            ("a\\*.txt", "/home/ada/project/ab.txt", false),
            ("src/**", "/home/ada/project/src/../../key", false),
        ] {
            for kind in [RuleKind::Allow, RuleKind::Ask, RuleKind::Deny] {
                assert_eq!(matches(kind, pattern, path), expected, "{kind} {pattern} on {path}");
            }
        }
    }

    #[test]
    fn a_directory_pattern_is_narrow_when_it_gives_and_wide_when_it_takes() {
        let deep = "/home/ada/project/crates/model/src/lib.rs";
        assert!(!matches(RuleKind::Allow, "src/**", deep));
        assert!(matches(RuleKind::Ask, "src/**", deep));
        assert!(matches(RuleKind::Deny, "src/**", deep));
        let shallow = "/home/ada/project/src/lib.rs";
        assert!(matches(RuleKind::Allow, "src/**", shallow));
        // Only a single segment is widened.
        assert!(!matches(RuleKind::Deny, "model/src/**", "/home/ada/project/a/model/src/x"));
    }

    #[test]
    fn without_a_home_nothing_is_below_it() {
        let pattern = PathPattern::parse("~/.ssh").unwrap();
        let policy = Policy { project_root: PathBuf::from("/p"), ..Policy::default() };
        assert!(!pattern.matches(RuleKind::Deny, Path::new("/root/.ssh"), &policy));
    }

    #[test]
    fn a_broken_glob_is_an_error() {
        assert!(PathPattern::parse("src/[a").is_err());
        assert!(PathPattern::parse("src/{a").is_err());
    }
}
