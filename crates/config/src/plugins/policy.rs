//! Marketplaces that may be used at all: the lists of allowed and blocked sources in managed settings.

use std::path::Path;

use super::source::MarketplaceSource;
use crate::Problem;
use crate::settings::{PluginSettings, Sourced};

/// The lists, checked.
#[derive(Clone, Debug, Default)]
pub struct MarketplacePolicy {
    /// `None` if no setting limits the sources.
    allowed: Option<Vec<MarketplaceSource>>,
    blocked: Vec<Sourced<MarketplaceSource>>,
    /// Items that are not understood. A list of allowed sources counts even so.
    pub problems: Vec<Problem>,
}

impl MarketplacePolicy {
    pub fn new(settings: &PluginSettings) -> Self {
        let mut policy = Self::default();
        let allowed = settings.allowed.as_ref().map(|items| {
            policy.read(items, "strictKnownMarketplaces").into_iter().map(|it| it.value).collect()
        });
        policy.allowed = allowed;
        policy.blocked = policy.read(&settings.blocked, "blockedMarketplaces");
        policy
    }

    fn read(
        &mut self,
        items: &[Sourced<serde_json::Value>],
        key: &str,
    ) -> Vec<Sourced<MarketplaceSource>> {
        let mut read = Vec::new();
        for Sourced { value, origin } in items {
            match MarketplaceSource::from_value(value, &origin.root) {
                Ok(value) => read.push(Sourced { value, origin: origin.clone() }),
                Err(error) => self.problems.push(Problem {
                    path: origin.file.to_path_buf(),
                    line: Some(origin.line),
                    message: format!("an item of `{key}` is left out: {error}"),
                }),
            }
        }
        read
    }

    /// The reason why a marketplace may not be used; `None` if it may. One whose source is not known is used only if
    /// no setting limits the sources.
    pub fn denial(&self, source: Option<&MarketplaceSource>) -> Option<String> {
        let blocked =
            self.blocked.iter().find(|item| source.is_some_and(|it| covers(&item.value, it)));
        if let Some(item) = blocked {
            return Some(format!("`blockedMarketplaces` names its source, {}", item.origin));
        }
        let allowed = self.allowed.as_ref()?;
        let is_allowed = source.is_some_and(|it| allowed.iter().any(|item| covers(item, it)));
        (!is_allowed).then(|| "`strictKnownMarketplaces` does not name its source".to_owned())
    }
}

/// Whether an item of a list is about a source. One without a branch is about all branches.
fn covers(item: &MarketplaceSource, source: &MarketplaceSource) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    match (item, source) {
        (MarketplaceSource::Git(item), MarketplaceSource::Git(source)) => {
            item.is_same_repository(source)
                && item.reference().is_none_or(|it| source.reference() == Some(it))
        }
        (MarketplaceSource::Directory(item), MarketplaceSource::Directory(source))
        | (MarketplaceSource::File(item), MarketplaceSource::File(source)) => {
            real(item) == real(source)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use crate::settings::{Level, Origin};

    fn listed(values: &[Value]) -> Vec<Sourced<Value>> {
        let (file, root) = (Arc::from(Path::new("/etc/m.json")), Arc::from(Path::new("/etc")));
        let origin = Origin { level: Level::Managed, file, line: 4, root };
        values.iter().map(|it| Sourced { value: it.clone(), origin: origin.clone() }).collect()
    }

    fn source(text: &str) -> MarketplaceSource {
        MarketplaceSource::parse(text, Path::new("/")).unwrap()
    }

    #[test]
    fn only_listed_sources_count_and_blocked_ones_never_do() {
        let open = MarketplacePolicy::new(&PluginSettings::default());
        assert_eq!((open.denial(None), open.denial(Some(&source("a/b")))), (None, None));
        let settings = PluginSettings {
            allowed: Some(listed(&[
                json!({"source": "github", "repo": "good/tools"}),
                json!({"source": "github", "repo": "good/pinned", "ref": "v1"}),
                json!({"source": "hostPattern", "hostPattern": ".*"}),
                json!({"source": "directory", "path": "/srv/tools"}),
            ])),
            blocked: listed(&[json!({"source": "git", "url": "https://github.com/Good/Tools"})]),
            ..PluginSettings::default()
        };
        let mut policy = MarketplacePolicy::new(&settings);
        assert_eq!(policy.problems.len(), 1, "{:?}", policy.problems);
        assert!(policy.problems[0].to_string().starts_with("/etc/m.json:4: an item of `strict"));
        let said = |policy: &MarketplacePolicy, text| policy.denial(Some(&source(text)));
        assert!(said(&policy, "good/tools").unwrap().contains("blockedMarketplaces"));
        assert_eq!(said(&policy, "good/pinned#v1"), None);
        assert_eq!(said(&policy, "/srv/tools"), None);
        assert!(said(&policy, "good/pinned").unwrap().contains("strictKnownMarketplaces"));
        assert!(policy.denial(None).is_some() && said(&policy, "bad/tools").is_some());
        policy.blocked.clear();
        assert_eq!(said(&policy, "https://github.com/good/tools.git"), None);
    }
}
