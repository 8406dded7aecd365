//! Worktrees are copies of a checkout: a rule about a path of the checkout also holds for that path in its copies. An
//! ask or deny rule holds in every copy; an allow rule holds in the copy in which the agent works.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::policy::Policy;
use crate::rule::RuleKind;
use crate::shell::{Shape, ShapeRest, Step};

/// The directory of the worktrees of agents and sessions, in a checkout.
pub const WORKTREES: &str = ".claude/worktrees";

/// The levels of worktrees within worktrees that are searched, where names are not known.
const DEEPEST: usize = 3;

/// The directory among them for worktrees that are being removed.
const TRASH: &str = ".trash";

/// A directory with the same content as a checkout.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CheckoutCopy {
    pub checkout: PathBuf,
    pub root: PathBuf,
}

impl CheckoutCopy {
    /// The path in the checkout that corresponds to a path of the copy.
    fn original(&self, path: &Path) -> Option<PathBuf> {
        path.strip_prefix(&self.root).ok().map(|below| joined(&self.checkout, below))
    }

    /// The path in the copy that corresponds to a path of the checkout.
    pub fn place(&self, path: &Path) -> Option<PathBuf> {
        let below = path.strip_prefix(&self.checkout).ok()?;
        (!below.starts_with(WORKTREES)).then(|| joined(&self.root, below))
    }

    /// The base and glob in the copy of a pattern that is anchored at `base` in or above the checkout, if the glob
    /// leads there.
    pub fn pattern(&self, base: &Path, glob: &str) -> Option<(PathBuf, String)> {
        if let Some(base) = self.place(base) {
            return Some((base, glob.to_owned()));
        }
        let way = self.checkout.strip_prefix(base).ok()?.to_str()?;
        let below = glob.strip_prefix(way)?;
        let below = if below.is_empty() { below } else { below.strip_prefix('/')? };
        Some((self.root.clone(), below.to_owned()))
    }
}

impl Policy {
    /// The agent's own checkout, as a copy of each checkout from which it works apart.
    pub fn own_copies(&self) -> impl Iterator<Item = CheckoutCopy> + '_ {
        let apart = self.role.apart.iter();
        apart.flat_map(|apart| {
            let copy = |checkout: &PathBuf| CheckoutCopy {
                checkout: checkout.clone(),
                root: apart.root.clone(),
            };
            apart.checkouts.iter().map(copy)
        })
    }

    /// Other paths that rules of a kind may mean by a clean path: its originals.
    pub(crate) fn originals(&self, kind: RuleKind, path: &Path) -> Vec<PathBuf> {
        let mut found: Vec<PathBuf> =
            self.own_copies().filter_map(|copy| copy.original(path)).collect();
        if kind != RuleKind::Allow {
            // A worktree may lie in another.
            found.extend(std::iter::successors(by_place(path), |path| by_place(path)));
        }
        found
    }

    /// Other paths that ask and deny rules may mean by paths of a shape.
    pub(crate) fn originals_of_shape(&self, shape: &Shape) -> Vec<Shape> {
        let mut found: Vec<Shape> = Vec::new();
        let mut new = vec![shape.clone()];
        for _ in 0..DEEPEST {
            new = new.iter().flat_map(|shape| self.next_originals(shape)).collect();
            new.retain(|shape| !found.contains(shape));
            found.extend(new.iter().cloned());
        }
        found
    }

    fn next_originals(&self, shape: &Shape) -> Vec<Shape> {
        let within = |checkout: &Path, below: &Shape| {
            let mut original = Shape::literal(checkout.to_str()?.trim_end_matches('/'));
            original.push_text("/");
            original.append(below);
            Some(original)
        };
        let own = self.own_copies().filter_map(|copy| {
            match shape.after(&format!("{}/", copy.root.to_str()?)) {
                ShapeRest::Rest(below) => within(&copy.checkout, &below),
                ShapeRest::Other | ShapeRest::Unknown => None,
            }
        });
        // The checkouts that it names, and those around the working directories.
        let start: String = shape.start().collect();
        let worktrees = format!("/{WORKTREES}/");
        let named = start.match_indices(&worktrees).map(|(at, _)| at);
        let named: Vec<&Path> = named.filter_map(|at| start.get(..at)).map(Path::new).collect();
        let around = self.directories.iter().chain([&self.project_root]);
        let around: BTreeSet<&Path> = around.flat_map(|it| it.ancestors()).chain(named).collect();
        let others = around.iter().flat_map(|checkout| {
            let top = format!("{}/", checkout.to_str().unwrap_or_default().trim_end_matches('/'));
            let above = format!("{top}{WORKTREES}/");
            let below = match shape.after(&above) {
                ShapeRest::Rest(below) => vec![below],
                // Words in it may be computed. A path without any known part does not count as one in a worktree.
                ShapeRest::Unknown if start.starts_with(&top) => shape.rests(&above),
                ShapeRest::Other | ShapeRest::Unknown => Vec::new(),
            };
            let below = below.iter().flat_map(in_worktree).collect::<Vec<_>>();
            below.into_iter().filter_map(|below| within(checkout, &below))
        });
        own.chain(others).collect()
    }
}

/// The path in the checkout for a path in a worktree below it. For the directory of all worktrees, the checkout itself.
fn by_place(path: &Path) -> Option<PathBuf> {
    // A look at the bytes settles most paths.
    let mut bytes = path.as_os_str().as_encoded_bytes().windows(WORKTREES.len());
    bytes.find(|bytes| *bytes == WORKTREES.as_bytes())?;
    let worktrees = path.ancestors().find(|above| above.ends_with(WORKTREES))?;
    let checkout = worktrees.ancestors().nth(2)?;
    let mut below = path.strip_prefix(worktrees).ok()?.components();
    // A worktree that is being removed lies one directory deeper.
    if below.next().is_some_and(|name| name.as_os_str() == TRASH) {
        below.next();
    }
    Some(joined(checkout, below.as_path()))
}

/// Joins two paths; the directory itself if `below` is empty.
fn joined(directory: &Path, below: &Path) -> PathBuf {
    directory.components().chain(below.components()).collect()
}

/// All paths in a worktree that a path below the directory of worktrees may lead to. One that is being removed lies one
/// directory deeper.
fn in_worktree(below: &Shape) -> Vec<Shape> {
    let trash = format!("{TRASH}/");
    let removed = match below.after(&trash) {
        ShapeRest::Rest(rest) => vec![rest],
        ShapeRest::Unknown => below.rests(&trash),
        ShapeRest::Other => Vec::new(),
    };
    [below].into_iter().chain(&removed).flat_map(without_first_name).collect()
}

/// All possible rests of a path after its first name; empty if it has only one name.
fn without_first_name(path: &Shape) -> Vec<Shape> {
    let mut found = Vec::new();
    for (at, step) in path.steps().iter().enumerate() {
        let rest = |at: usize| path.steps().get(at..).map(Shape::from_steps).unwrap_or_default();
        match step {
            Step::Literal('/') => {
                found.push(rest(at + 1));
                return found;
            }
            Step::Literal(_) | Step::Character | Step::Name | Step::Number | Step::NoDot => {}
            // The name may end within it, or behind it.
            Step::Any => found.push(rest(at)),
            Step::Split(_) | Step::Jump(_) => return vec![Shape::any()],
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_a_worktree_is_known_by_its_place() {
        for (path, original) in [
            ("/p/.claude/worktrees/a/secrets/key", Some("/p/secrets/key")),
            ("/p/.claude/worktrees/a", Some("/p")),
            ("/p/.claude/worktrees", Some("/p")),
            ("/p/.claude/worktrees/.trash/a-0/x", Some("/p/x")),
            ("/.claude/worktrees/a/x", Some("/x")),
            ("/p/.claude/worktrees/a/.claude/worktrees/b/x", Some("/p/.claude/worktrees/a/x")),
            ("/p/.claude/agents/a", None),
            ("/p/worktrees/a/x", None),
        ] {
            assert_eq!(by_place(Path::new(path)), original.map(PathBuf::from), "{path}");
        }
    }

    #[test]
    fn patterns_hang_in_a_copy_where_they_hang_in_the_checkout() {
        let copy = CheckoutCopy { checkout: "/h/p".into(), root: "/w/a".into() };
        let pattern = |base: &str, glob: &str| {
            copy.pattern(Path::new(base), glob)
                .map(|(base, glob)| format!("{} {glob}", base.display()))
        };
        assert_eq!(pattern("/h/p", "secrets/**").unwrap(), "/w/a secrets/**");
        assert_eq!(pattern("/h/p/sub", "x").unwrap(), "/w/a/sub x");
        assert_eq!(pattern("/", "h/p/secrets/**").unwrap(), "/w/a secrets/**");
        assert_eq!(pattern("/h", "p").unwrap(), "/w/a ");
        assert_eq!(pattern("/h", "q/x"), None);
        assert_eq!(pattern("/h", "px"), None);
        let place = |path: &str| copy.place(Path::new(path));
        assert_eq!(place("/h/p/x"), Some("/w/a/x".into()));
        assert_eq!(place("/h/p"), Some("/w/a".into()));
        // The other worktrees of the checkout are no part of the copy.
        assert_eq!(place("/h/p/.claude/worktrees/b/x"), None);
        assert_eq!(place("/h/px"), None);
    }
}
