//! The settings for all hooks together: which hooks run, and which URLs and variables HTTP hooks may use.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use centurion_config::settings::{HookLimits, Level, Sourced};
use centurion_config::trust::Unaccepted;
use regex::Regex;
use url::Url;

use crate::handler::{CommandAction, Handler};
use crate::origin::{HookOrigin, HookSource};

/// The limits of all hooks.
#[derive(Clone, Debug, Default)]
pub struct HookRules {
    /// The level that disabled hooks.
    disabled: Option<Level>,
    managed_only: bool,
    urls: Option<Vec<Regex>>,
    variables: Option<Vec<String>>,
    judge: Option<HookJudge>,
}

/// Decides whether a hook's command may run in a directory, each time before it does: files that it runs may have
/// changed since the hook was parsed, and it may mean other files there.
#[derive(Clone)]
pub struct HookJudge(Arc<Judge>);

type Judge = dyn Fn(&HookOrigin, &[String], &Path) -> Result<(), Unaccepted> + Send + Sync;

impl HookJudge {
    /// The judge receives the words of the command: a command line is one word, and a program has its arguments beside
    /// it.
    pub fn new(
        judge: impl Fn(&HookOrigin, &[String], &Path) -> Result<(), Unaccepted> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(judge))
    }
}

impl fmt::Debug for HookJudge {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("HookJudge")
    }
}

impl HookRules {
    pub fn new(limits: &HookLimits) -> Self {
        let texts = |list: &Vec<Sourced<String>>| list.iter().map(|it| it.value.clone()).collect();
        let patterns = |list: &Vec<Sourced<String>>| {
            list.iter().filter_map(|it| url_pattern(&it.value)).collect()
        };
        Self {
            disabled: limits.disabled.as_ref().map(|origin| origin.level),
            managed_only: limits.managed_only.is_some(),
            urls: limits.http_urls.as_ref().map(patterns),
            variables: limits.http_variables.as_ref().map(texts),
            judge: None,
        }
    }

    /// Lets this judge decide which commands run.
    #[must_use]
    pub fn judged_by(self, judge: HookJudge) -> Self {
        Self { judge: Some(judge), ..self }
    }

    /// Whether a command may run in a directory, and if not, the reason.
    pub(crate) fn judge(
        &self,
        handler: &Handler,
        action: &CommandAction,
        cwd: &Path,
    ) -> Result<(), Unaccepted> {
        let Some(HookJudge(judge)) = &self.judge else { return Ok(()) };
        let mut words = vec![action.command.clone()];
        words.extend(action.args.iter().flatten().cloned());
        judge(&handler.origin, &words, cwd)
    }

    /// Whether hooks of this source run.
    pub(crate) fn allows(&self, source: &HookSource) -> bool {
        match self.disabled {
            Some(Level::Managed) => false,
            Some(_) if !source.is_managed() => false,
            _ => !self.managed_only || source.is_managed() || *source == HookSource::Host,
        }
    }

    /// Whether hooks may post to a URL.
    pub(crate) fn allows_url(&self, url: &Url) -> bool {
        let fits = |patterns: &Vec<Regex>| patterns.iter().any(|it| it.is_match(url.as_str()));
        self.urls.as_ref().is_none_or(fits)
    }

    /// Whether headers may hold the value of a variable.
    pub(crate) fn allows_variable(&self, name: &str) -> bool {
        self.variables.as_ref().is_none_or(|names| names.iter().any(|it| it == name))
    }
}

/// A URL pattern with `*`. In the host a star matches only characters of a host name, so that it does not reach into
/// the path of another one. Alone it matches every URL.
fn url_pattern(text: &str) -> Option<Regex> {
    if text == "*" {
        return Regex::new("").ok();
    }
    let path = text.find("://").map_or(0, |scheme| scheme + 3);
    let path = text.get(path..)?.find('/').map_or(text.len(), |slash| path + slash);
    let (host, path) = text.split_at(path);
    let host = regex::escape(host).replace(r"\*", "[^/?#@]*");
    let path = regex::escape(path).replace(r"\*", ".*");
    let end = if path.is_empty() { "/?" } else { "" };
    Regex::new(&format!("^{host}{path}{end}$")).ok()
}

#[cfg(test)]
mod tests {
    use centurion_config::settings::Origin;

    use super::*;
    use crate::origin::PluginSource;

    fn origin(level: Level) -> Origin {
        Origin { level, file: Path::new("/s").into(), line: 1, root: Path::new("/").into() }
    }

    #[test]
    fn only_managed_settings_stop_managed_hooks() {
        let managed = HookSource::Settings(Level::Managed);
        let user = HookSource::Settings(Level::User);
        let plugin = HookSource::Plugin(Arc::default());
        let forced = PluginSource { is_managed: true, ..PluginSource::default() };
        let forced = HookSource::Plugin(Arc::new(forced));
        for (disabled, managed_only, expected) in [
            (None, None, [true, true, true, true, true]),
            (Some(Level::User), None, [true, false, false, true, false]),
            (Some(Level::Managed), None, [false; 5]),
            (None, Some(Level::Managed), [true, false, false, true, true]),
        ] {
            let limits = HookLimits {
                disabled: disabled.map(origin),
                managed_only: managed_only.map(origin),
                ..HookLimits::default()
            };
            let rules = HookRules::new(&limits);
            let found = [&managed, &user, &plugin, &forced, &HookSource::Host]
                .map(|source| rules.allows(source));
            assert_eq!(found, expected, "{limits:?}");
        }
    }

    #[test]
    fn a_star_in_a_host_stays_in_the_host() {
        for (pattern, url, expected) in [
            ("https://a.com/*", "https://a.com/x/y?z", true),
            ("https://a.com", "https://a.com/", true),
            ("https://a.com", "https://a.com/x", false),
            ("https://*.a.com/*", "https://b.a.com/x", true),
            ("https://*.a.com/*", "https://evil.com/x.a.com/y", false),
            ("https://*.a.com/*", "https://evil.com?.a.com/y", false),
            ("https://a.com/*", "https://a.com.evil.com/x", false),
            ("http://localhost:*", "http://localhost:8080/", true),
            ("http://localhost:*/x", "http://localhost:81/x", true),
            ("*", "https://a.com/x", true),
        ] {
            let value = pattern.to_owned();
            let limits = HookLimits {
                http_urls: Some(vec![Sourced { value, origin: origin(Level::User) }]),
                ..HookLimits::default()
            };
            let url = Url::parse(url).unwrap();
            assert_eq!(HookRules::new(&limits).allows_url(&url), expected, "{pattern} on {url}");
        }
        let none = HookLimits { http_urls: Some(Vec::new()), ..HookLimits::default() };
        assert!(!HookRules::new(&none).allows_url(&Url::parse("https://a.com").unwrap()));
    }
}
