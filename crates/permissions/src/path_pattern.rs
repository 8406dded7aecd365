//! Path patterns of `Read(…)` and `Edit(…)` rules.
//!
//! They read like `.gitignore` lines: `*` stays in one segment, `**` crosses them, a bare name holds at any depth, a
//! directory holds for its content. The beginning of a pattern determines its anchor, and no action of an agent can
//! move the anchor: a `cd` neither escapes a deny rule nor moves an allow rule.

use std::borrow::Cow;
use std::path::{Component, Path, PathBuf};

use globset::{Glob, GlobBuilder, GlobMatcher, GlobSet, GlobSetBuilder};

use crate::paths::{below, normal};
use crate::policy::Policy;
use crate::rule::RuleKind;
use crate::shell::{Outline, Shape, ShapeRest, of_glob};

/// The anchor of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Anchor {
    /// `//path`
    Filesystem,
    /// `~/path`
    Home,
    /// `/path`: in the project, or at the root of the settings that contain it.
    Root(Option<PathBuf>),
    /// `path`, `./path`: in the project, but a single name holds at any depth.
    Unanchored,
}

/// An anchor, and the number of `../` that lead away from it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Base {
    anchor: Anchor,
    ascents: usize,
}

impl Base {
    fn directory<'a>(&'a self, policy: &'a Policy) -> Option<Cow<'a, Path>> {
        let anchor = match &self.anchor {
            Anchor::Filesystem => Path::new(Component::RootDir.as_os_str()),
            Anchor::Home => policy.home.as_deref()?,
            Anchor::Root(Some(root)) => root,
            Anchor::Root(None) | Anchor::Unanchored => &policy.project_root,
        };
        match normal(anchor) {
            path if self.ascents == 0 => Some(path),
            Cow::Borrowed(path) => path.ancestors().nth(self.ascents).map(Cow::Borrowed),
            Cow::Owned(path) => {
                path.ancestors().nth(self.ascents).map(|path| path.to_owned().into())
            }
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct PathPattern {
    base: Base,
    globs: Vec<Glob>,
    /// More globs for ask and deny rules: `src/**` at any depth.
    wider: Vec<Glob>,
}

impl PathPattern {
    /// Parses a pattern. `root` is the anchor of one that begins with `/`, if it is not the project.
    pub(crate) fn parse(text: &str, root: Option<&Path>) -> Result<Self, globset::Error> {
        let (base, rest) = split_base(text, root);
        let floats = base.anchor == Anchor::Unanchored && base.ascents == 0;
        let (globs, wider) = globs(rest, floats && !rest.contains('/'));
        let wider = if floats { wider } else { vec![] };
        Ok(Self { base, globs: build(&globs)?, wider: build(&wider)? })
    }

    /// Parses a pattern for whole paths from its anchor: no name holds at any depth, and a directory stands for its
    /// content only with `**`.
    pub(crate) fn parse_anchored(text: &str, root: Option<&Path>) -> Result<Self, globset::Error> {
        let (base, rest) = split_base(text, root);
        let globs = match rest.strip_suffix("/**") {
            Some(directory) => vec![directory.to_owned(), rest.to_owned()],
            None if rest == "**" => vec![String::new(), rest.to_owned()],
            None => vec![rest.to_owned()],
        };
        Ok(Self { base, globs: build(&globs)?, wider: Vec::new() })
    }
}

/// A location in the file system at which a deny pattern takes effect.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DenyLocation {
    /// This path, and everything below it.
    Path(PathBuf),
    /// Matching paths below this directory: only a search there can find them.
    Below(PathBuf),
}

impl PathPattern {
    /// The locations at which the pattern takes effect as that of a deny rule.
    pub(crate) fn spots(&self, policy: &Policy) -> Vec<DenyLocation> {
        let Some(base) = self.base.directory(policy) else { return Vec::new() };
        let globs = self.globs.iter().chain(&self.wider).map(Glob::glob);
        let mut spots: Vec<DenyLocation> = globs.map(|glob| spot(&base, glob)).collect();
        spots.sort();
        spots.dedup();
        spots
    }

    /// The base of the pattern with each of its globs as that of a deny rule.
    pub(crate) fn texts(&self, policy: &Policy) -> Vec<(PathBuf, String)> {
        let Some(base) = self.base.directory(policy) else { return Vec::new() };
        let globs = self.globs.iter().chain(&self.wider);
        globs.map(|glob| (base.to_path_buf(), glob.glob().to_owned())).collect()
    }
}

fn spot(base: &Path, glob: &str) -> DenyLocation {
    const SPECIAL: [char; 6] = ['*', '?', '[', ']', '{', '\\'];
    let whole = glob.strip_suffix("/**").unwrap_or(if glob == "**" { "" } else { glob });
    if !whole.contains(SPECIAL) {
        return DenyLocation::Path(base.join(whole));
    }
    let fixed = glob.split('/').take_while(|name| !name.contains(SPECIAL));
    DenyLocation::Below(fixed.fold(base.to_owned(), |path, name| path.join(name)))
}

/// The anchor of a pattern, and the rest of it.
fn split_base<'a>(text: &'a str, root: Option<&Path>) -> (Base, &'a str) {
    let (anchor, rest) = split_anchor(text, root);
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
    (Base { anchor, ascents }, rest)
}

/// An index of many patterns: each base is matched once, whatever the number of patterns there.
#[derive(Clone, Debug, Default)]
pub(crate) struct PathIndex {
    groups: Vec<Group>,
}

#[derive(Clone, Debug)]
struct Group {
    base: Base,
    matcher: Matcher,
    globs: Vec<OwnedGlob>,
}

/// A glob of a rule.
#[derive(Clone, Debug)]
struct OwnedGlob {
    text: String,
    shape: Shape,
    outline: Outline,
    rule: usize,
    /// Whether it counts for ask and deny rules only.
    takes_only: bool,
}

impl OwnedGlob {
    fn new(glob: &Glob, rule: usize, takes_only: bool) -> Self {
        let text = glob.glob().to_owned();
        let shape = of_glob(&text);
        Self { outline: Outline::of(&shape), text, shape, rule, takes_only }
    }
}

#[derive(Clone, Debug)]
enum Matcher {
    Together(GlobSet),
    /// For patterns that are too much for one automaton.
    OneByOne(Vec<GlobMatcher>),
}

impl Matcher {
    fn new(globs: &[Glob]) -> Self {
        let mut set = GlobSetBuilder::new();
        for glob in globs {
            set.add(glob.clone());
        }
        match set.build() {
            Ok(set) => Self::Together(set),
            Err(_) => Self::OneByOne(globs.iter().map(Glob::compile_matcher).collect()),
        }
    }

    fn matches(&self, path: &Path) -> Vec<usize> {
        match self {
            Self::Together(set) => set.matches(path),
            Self::OneByOne(globs) => {
                let hits = globs.iter().enumerate().filter(|(_, glob)| glob.is_match(path));
                hits.map(|(index, _)| index).collect()
            }
        }
    }
}

impl PathIndex {
    pub(crate) fn new<'a>(patterns: impl IntoIterator<Item = (usize, &'a PathPattern)>) -> Self {
        let mut bases: Vec<(Base, Vec<(Glob, OwnedGlob)>)> = Vec::new();
        for (rule, pattern) in patterns {
            let narrow = pattern.globs.iter().map(|glob| (glob, false));
            let wide = pattern.wider.iter().map(|glob| (glob, true));
            let owned = narrow
                .chain(wide)
                .map(|(glob, takes_only)| (glob.clone(), OwnedGlob::new(glob, rule, takes_only)));
            match bases.iter_mut().find(|(base, _)| *base == pattern.base) {
                Some((_, globs)) => globs.extend(owned),
                None => bases.push((pattern.base.clone(), owned.collect())),
            }
        }
        let group = |(base, owned): (Base, Vec<(Glob, OwnedGlob)>)| {
            let (matched, globs): (Vec<_>, Vec<_>) = owned.into_iter().unzip();
            Group { base, matcher: Matcher::new(&matched), globs }
        };
        Self { groups: bases.into_iter().map(group).collect() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// The owners of the patterns that match the path, in no order.
    pub(crate) fn owners(&self, kind: RuleKind, path: &Path, policy: &Policy) -> Vec<usize> {
        let path = normal(path);
        let mut found = self.owners_at(kind, &path, policy);
        for original in policy.originals(kind, &path) {
            found.extend(self.owners_at(kind, &original, policy));
        }
        found
    }

    fn owners_at(&self, kind: RuleKind, path: &Path, policy: &Policy) -> Vec<usize> {
        let mut found = Vec::new();
        for group in &self.groups {
            let Some(base) = group.base.directory(policy) else { continue };
            let Some(relative) = below(path, &base) else { continue };
            let hits = group.matcher.matches(relative);
            let globs = hits.into_iter().filter_map(|hit| group.globs.get(hit));
            let globs = globs.filter(|glob| kind != RuleKind::Allow || !glob.takes_only);
            found.extend(globs.map(|glob| glob.rule));
        }
        found
    }
}

impl PathIndex {
    /// The owners of the patterns that match some path of the shape, in no order. For ask and deny rules.
    pub(crate) fn owners_of_shape(&self, shape: &Shape, policy: &Policy) -> Vec<usize> {
        let mut found = self.owners_at_shape(shape, policy);
        for original in policy.originals_of_shape(shape) {
            found.extend(self.owners_at_shape(&original, policy));
        }
        found
    }

    fn owners_at_shape(&self, shape: &Shape, policy: &Policy) -> Vec<usize> {
        let is_vague = shape.has_any();
        // A file that a rule names is seldom a directory: an expansion need not be a path in it.
        let is_inside_file =
            |glob: &str| is_vague && glob.strip_suffix("/**").is_some_and(is_named_like_a_file);
        let mut found = Vec::new();
        for group in &self.groups {
            let Some(base) = group.base.directory(policy) else { continue };
            let Some(base) = base.to_str().map(|base| base.trim_end_matches('/')) else { continue };
            let is_base = Shape::literal(base).intersects(shape);
            let below = shape.after(&format!("{base}/"));
            let outline =
                Outline::of(if let ShapeRest::Rest(rest) = &below { rest } else { shape });
            let meets = |glob: &&OwnedGlob| match &below {
                // The directory itself.
                _ if glob.text.is_empty() => is_base,
                ShapeRest::Rest(rest) => {
                    !glob.outline.differs(&outline) && glob.shape.intersects(rest)
                }
                ShapeRest::Other => false,
                ShapeRest::Unknown => {
                    let mut whole = Shape::literal(base);
                    whole.push_text("/");
                    whole.append(&glob.shape);
                    !Outline::of(&whole).differs(&outline) && whole.intersects(shape)
                }
            };
            let globs = group.globs.iter().filter(meets).filter(|glob| !is_inside_file(&glob.text));
            found.extend(globs.map(|glob| glob.rule));
        }
        found
    }

    /// The owners of the patterns that match a path in or below a directory. A name that holds at any depth is only
    /// looked for at the top: deeper paths are not known here.
    pub(crate) fn owners_below(&self, directory: &Path, policy: &Policy) -> Vec<usize> {
        let mut found = self.owners_at_or_below(directory, policy);
        for original in policy.originals(RuleKind::Deny, &normal(directory)) {
            found.extend(self.owners_at_or_below(&original, policy));
        }
        found
    }

    fn owners_at_or_below(&self, directory: &Path, policy: &Policy) -> Vec<usize> {
        let Some(directory) = directory.to_str() else { return Vec::new() };
        let mut tree = Shape::literal(directory.trim_end_matches('/'));
        tree.append_optional(&Shape::any_below());
        self.owners_where(policy, |base, glob| {
            let mut pattern = Shape::literal(base);
            pattern.push_text("/");
            pattern.append(&of_glob(glob.strip_prefix("**/").unwrap_or(glob)));
            pattern.intersects(&tree)
        })
    }

    fn owners_where(&self, policy: &Policy, means: impl Fn(&str, &str) -> bool) -> Vec<usize> {
        let mut found = Vec::new();
        for group in &self.groups {
            let Some(base) = group.base.directory(policy) else { continue };
            let Some(base) = base.to_str().map(|base| base.trim_end_matches('/')) else { continue };
            let globs = group.globs.iter().filter(|glob| means(base, &glob.text));
            found.extend(globs.map(|glob| glob.rule));
        }
        found
    }
}

/// Whether the last name of a pattern looks like that of a file: `.env`, `*.pem`.
fn is_named_like_a_file(glob: &str) -> bool {
    let last = glob.rsplit('/').next().unwrap_or(glob);
    last.starts_with(".env") || last.trim_start_matches('.').contains('.')
}

fn split_anchor<'a>(text: &'a str, root: Option<&Path>) -> (Anchor, &'a str) {
    if let Some(rest) = text.strip_prefix("//") {
        (Anchor::Filesystem, rest)
    } else if let Some(rest) = text.strip_prefix("~/") {
        (Anchor::Home, rest)
    } else if text == "~" {
        (Anchor::Home, "")
    } else if let Some(rest) = text.strip_prefix('/') {
        (Anchor::Root(root.map(Path::to_owned)), rest)
    } else {
        (Anchor::Unanchored, text)
    }
}

/// The globs of a pattern, and those that only ask and deny rules add.
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
    // A directory stands for its content. `src/*` does not: its star counts one segment.
    if bare || !last.contains(['*', '?', '[']) {
        (vec![format!("{glob}/**"), glob], Vec::new())
    } else {
        (vec![glob], Vec::new())
    }
}

fn build(globs: &[String]) -> Result<Vec<Glob>, globset::Error> {
    let build = |glob: &String| {
        GlobBuilder::new(glob).literal_separator(true).backslash_escape(true).build()
    };
    globs.iter().map(build).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(pattern: &str, root: Option<&str>) -> PathIndex {
        let pattern = PathPattern::parse(pattern, root.map(Path::new)).unwrap();
        PathIndex::new([(0, &pattern)])
    }

    fn matches(kind: RuleKind, pattern: &str, path: &str) -> bool {
        let index = index(pattern, None);
        // The answer does not depend on the shell's directory.
        let answers = ["/home/ada/project", "/home/ada/project/crates", "/srv"].map(|cwd| {
            let policy = Policy {
                cwd: PathBuf::from(cwd),
                project_root: PathBuf::from("/home/ada/project"),
                home: Some(PathBuf::from("/home/ada")),
                ..Policy::default()
            };
            !index.owners(kind, Path::new(path), &policy).is_empty()
        });
        assert_eq!(answers, [answers[0]; 3], "{kind} on {path} depends on where the shell stands");
        answers[0]
    }

    #[test]
    fn a_deny_pattern_says_where_to_look_for_what_it_means() {
        let policy = Policy {
            project_root: PathBuf::from("/p"),
            home: Some(PathBuf::from("/home/ada")),
            ..Policy::default()
        };
        let path = |text: &str| DenyLocation::Path(text.into());
        let below = |text: &str| DenyLocation::Below(text.into());
        for (pattern, expected) in [
            ("//etc/shadow", vec![path("/etc/shadow")]),
            ("~/.ssh/**", vec![path("/home/ada/.ssh")]),
            ("/secrets", vec![path("/p/secrets")]),
            ("/secrets/**", vec![path("/p/secrets")]),
            ("a/b.txt", vec![path("/p/a/b.txt")]),
            (".env", vec![below("/p")]),
            ("*.pem", vec![below("/p")]),
            ("keys/**", vec![path("/p/keys"), below("/p")]),
            ("a/b/*.pem", vec![below("/p/a/b")]),
            ("//**/.env", vec![below("/")]),
            ("/", vec![path("/p/")]),
        ] {
            let pattern_read = PathPattern::parse(pattern, None).unwrap();
            assert_eq!(pattern_read.spots(&policy), expected, "{pattern}");
        }
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
        let index = index("~/.ssh", None);
        let policy = Policy { project_root: PathBuf::from("/p"), ..Policy::default() };
        assert!(index.owners(RuleKind::Deny, Path::new("/root/.ssh"), &policy).is_empty());
    }

    #[test]
    fn a_slash_hangs_where_the_settings_say() {
        let policy = Policy { project_root: PathBuf::from("/p"), ..Policy::default() };
        for (pattern, path, expected) in [
            ("/docs/**", "/home/ada/.centurion/docs/a", true),
            ("/docs/**", "/p/docs/a", false),
            // Only a leading slash anchors it.
            ("docs/**", "/p/docs/a", true),
            ("docs/**", "/home/ada/.centurion/docs/a", false),
        ] {
            let index = index(pattern, Some("/home/ada/.centurion"));
            let found = !index.owners(RuleKind::Allow, Path::new(path), &policy).is_empty();
            assert_eq!(found, expected, "{pattern} on {path}");
        }
    }

    #[test]
    fn an_anchored_pattern_means_whole_paths() {
        let policy = Policy {
            project_root: PathBuf::from("/home/ada/project"),
            home: Some(PathBuf::from("/home/ada")),
            ..Policy::default()
        };
        for (pattern, path, expected) in [
            ("~/work/*", "/home/ada/work/a", true),
            ("~/work/*", "/home/ada/work", false),
            ("~/work/*", "/home/ada/work/a/b", false),
            ("~/work", "/home/ada/work", true),
            ("~/work", "/home/ada/work/a", false),
            ("~/work/**", "/home/ada/work", true),
            ("~/work/**", "/home/ada/work/a/b", true),
            ("docs", "/home/ada/project/docs", true),
            ("docs", "/home/ada/project/a/docs", false),
            ("../other", "/home/ada/other", true),
            ("//srv/*", "/srv/a", true),
            ("**", "/home/ada/project", true),
        ] {
            let pattern_read = PathPattern::parse_anchored(pattern, None).unwrap();
            let index = PathIndex::new([(0, &pattern_read)]);
            for kind in [RuleKind::Allow, RuleKind::Deny] {
                let found = !index.owners(kind, Path::new(path), &policy).is_empty();
                assert_eq!(found, expected, "{kind} {pattern} on {path}");
            }
        }
    }

    #[test]
    fn a_broken_glob_is_an_error() {
        assert!(PathPattern::parse("src/[a", None).is_err());
        assert!(PathPattern::parse("src/{a", None).is_err());
    }
}
