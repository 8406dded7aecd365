//! Deny rules for reading, as they bind files whose text reaches a model without a call of a tool: instructions and
//! their imports, rules, skills, commands, agents and output styles.
//!
//! Knows nothing of rules themselves: the session hands in the judgement, and may replace it while it runs.

use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

/// Names the rule that denies reading the file at a path.
type Judge = dyn Fn(&Path) -> Option<String> + Send + Sync;

/// Receives what is to be told to the user.
type Teller = dyn Fn(&str) + Send + Sync;

/// The deny rules for reading that are in force. Clones share them; the default denies nothing until it is bound.
#[derive(Clone, Default)]
pub struct ReadRules(Arc<Inner>);

#[derive(Default)]
struct Inner {
    judge: RwLock<Option<Arc<Judge>>>,
    /// Directories of the user and of the administrator, as they are called and with links resolved.
    own: Vec<PathBuf>,
    tell: Option<Box<Teller>>,
    /// The files that the user was told of.
    told: Mutex<HashSet<PathBuf>>,
}

impl ReadRules {
    /// Rules that spare what the user and the administrator keep in directories of their own as instructions and
    /// definitions. `tell` hears once of each definition that is left out.
    pub fn new(own: &[PathBuf], tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        let real = own.iter().filter_map(|directory| directory.canonicalize().ok());
        let own = own.iter().cloned().chain(real).collect();
        Self(Arc::new(Inner { own, tell: Some(Box::new(tell)), ..Inner::default() }))
    }

    /// Puts a judgement in force, in place of the one before.
    pub fn bind(&self, judge: impl Fn(&Path) -> Option<String> + Send + Sync + 'static) {
        *self.0.judge.write() = Some(Arc::new(judge));
    }

    /// Whether nothing is denied because no rules are known.
    pub(crate) fn is_unbound(&self) -> bool {
        self.0.judge.read().is_none()
    }

    /// The reason why a file must not be read: a rule denies it by the name it was called, or by its real path.
    pub(crate) fn denial(&self, named: &Path, real: &Path) -> Option<String> {
        let judge = self.0.judge.read().clone()?;
        let rule = judge(real).or_else(|| judge(named))?;
        Some(format!("is left out: {rule} denies reading it"))
    }

    /// The same for a file that counts by its own name and place, and is imported by no other.
    pub(crate) fn denial_of_named(&self, named: &Path, real: &Path) -> Option<String> {
        let is_own = |path: &Path| self.0.own.iter().any(|directory| path.starts_with(directory));
        self.denial(named, real).filter(|_| !(is_own(named) && is_own(real)))
    }

    /// The same for the file of a definition, of which the user is told.
    pub(crate) fn denial_of_definition(&self, named: &Path, real: &Path) -> Option<String> {
        let reason = self.denial_of_named(named, real)?;
        if let Some(tell) = &self.0.tell
            && self.0.told.lock().insert(named.to_owned())
        {
            tell(&format!("{} {reason}", named.display()));
        }
        Some(reason)
    }
}

impl fmt::Debug for ReadRules {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ReadRules")
    }
}

/// All rules are asked anew whenever a file is read: which ones they are makes no source another one.
impl PartialEq for ReadRules {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for ReadRules {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_denied_by_either_of_its_names_but_for_the_users_own() {
        let rules = ReadRules::new(&["/home/ann/.claude".into()], |_| {});
        let denied = |named: &str, real: &str| {
            let (named, real) = (Path::new(named), Path::new(real));
            (rules.denial(named, real).is_some(), rules.denial_of_named(named, real).is_some())
        };
        assert!(rules.is_unbound());
        assert_eq!(denied("/p/.env", "/p/.env"), (false, false));
        rules.bind(|path| {
            let is_denied = path.ends_with(".env") || path.starts_with("/home/ann/.claude");
            is_denied.then(|| "`Read(x)`".to_owned())
        });
        assert_eq!(denied("/p/.env", "/p/a"), (true, true));
        assert_eq!(denied("/p/CLAUDE.md", "/p/.env"), (true, true));
        assert_eq!(denied("/p/CLAUDE.md", "/p/CLAUDE.md"), (false, false));
        assert_eq!(
            denied("/home/ann/.claude/CLAUDE.md", "/home/ann/.claude/CLAUDE.md"),
            (true, false)
        );
        assert_eq!(denied("/p/CLAUDE.md", "/home/ann/.claude/secret.md"), (true, true));
        assert_eq!(denied("/home/ann/.claude/CLAUDE.md", "/p/.env"), (true, true));
    }
}
