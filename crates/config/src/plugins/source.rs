//! Sources of marketplaces and plugins, as people and files write them. Nothing is fetched here.

use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use thiserror::Error;
use url::Url;

use crate::settings::printable;

/// The ways that git may fetch by. Others can run commands.
const SCHEMES: [&str; 5] = ["https", "http", "ssh", "git", "file"];

/// The reason why a text is no source.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SourceError {
    #[error(
        "`{0}` is no source: use a directory, owner/repository, or the address of a git repository"
    )]
    Unknown(String),
    #[error(
        "`{0}` is an address of a file, from which no marketplace can be fetched; help: use the git \
         repository that it is in"
    )]
    File(String),
    #[error(
        "sources of the kind `{0}` are not supported; help: use a git repository or a directory"
    )]
    Unsupported(String),
    #[error("`{key}` of a source is missing or no text")]
    Missing { key: &'static str },
    #[error("`{0}` is no address that git may fetch from")]
    Address(String),
    #[error("`{0}` is no repository: write owner/repository")]
    Repository(String),
    #[error("`{0}` is no branch, tag or commit")]
    Reference(String),
}

/// A git repository, and what of it is wanted. Every part is checked: none can be taken for an option or a
/// command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitSource {
    url: String,
    reference: Option<String>,
    commit: Option<String>,
    /// `owner/repository`, where it was written so.
    shorthand: Option<String>,
}

impl GitSource {
    pub fn new(
        url: &str,
        reference: Option<String>,
        commit: Option<String>,
    ) -> Result<Self, SourceError> {
        let url = check_url(url)?;
        if let Some(reference) = &reference {
            check_reference(reference)?;
        }
        if let Some(commit) = &commit {
            check_commit(commit)?;
        }
        Ok(Self { url, reference, commit, shorthand: None })
    }

    /// `owner/repository` on GitHub.
    pub fn github(
        repository: &str,
        reference: Option<String>,
        commit: Option<String>,
    ) -> Result<Self, SourceError> {
        if !is_shorthand(repository) {
            return Err(SourceError::Repository(printable(repository)));
        }
        let url = format!("https://github.com/{repository}.git");
        let source = Self::new(&url, reference, commit)?;
        Ok(Self { shorthand: Some(repository.to_owned()), ..source })
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// A branch or tag.
    pub fn reference(&self) -> Option<&str> {
        self.reference.as_deref()
    }

    /// All forty digits of a commit.
    pub fn commit(&self) -> Option<&str> {
        self.commit.as_deref()
    }

    /// Whether both are the same repository, whatever is wanted of it.
    pub(super) fn is_same_repository(&self, other: &Self) -> bool {
        let plain = |url: &str| url.trim_end_matches('/').trim_end_matches(".git").to_lowercase();
        plain(&self.url) == plain(&other.url)
    }

    fn from_value(value: &Value, kind: &str) -> Result<Self, SourceError> {
        let reference = text(value, "ref").map(str::to_owned);
        let commit = text(value, "sha").map(str::to_owned);
        if kind == "github" {
            let repository = text(value, "repo").ok_or(SourceError::Missing { key: "repo" })?;
            return Self::github(repository, reference, commit);
        }
        let url = text(value, "url").ok_or(SourceError::Missing { key: "url" })?;
        if is_shorthand(url) {
            return Self::github(url, reference, commit);
        }
        Self::new(url, reference, commit)
    }
}

impl fmt::Display for GitSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.shorthand {
            Some(shorthand) => formatter.write_str(shorthand)?,
            None => formatter.write_str(&without_secrets(&self.url))?,
        }
        match self.commit.as_ref().or(self.reference.as_ref()) {
            Some(reference) => write!(formatter, "#{reference}"),
            None => Ok(()),
        }
    }
}

/// The source of a marketplace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MarketplaceSource {
    Directory(PathBuf),
    /// Its `marketplace.json` alone.
    File(PathBuf),
    Git(GitSource),
}

impl MarketplaceSource {
    /// Takes what a person wrote: a path, `owner/repository` or an address; the last two may end with
    /// `#branch`.
    pub fn parse(written: &str, cwd: &Path) -> Result<Self, SourceError> {
        let written = written.trim();
        let path = cwd.join(written);
        if written.starts_with(['.', '/']) || path.is_dir() {
            return Ok(Self::at(path));
        }
        let (address, reference) = match written.split_once('#') {
            Some((address, reference)) => (address, Some(reference.to_owned())),
            None => (written, None),
        };
        if is_shorthand(address) {
            return GitSource::github(address, reference, None).map(Self::Git);
        }
        if !address.contains(':') {
            return Err(SourceError::Unknown(printable(written)));
        }
        let is_json =
            Path::new(address).extension().is_some_and(|it| it.eq_ignore_ascii_case("json"));
        if is_json {
            return Err(SourceError::File(without_secrets(address)));
        }
        GitSource::new(address, reference, None).map(Self::Git)
    }

    fn at(path: PathBuf) -> Self {
        let path = path.canonicalize().unwrap_or(path);
        if path.is_file() { Self::File(path) } else { Self::Directory(path) }
    }

    /// Reads what a file holds. Relative paths begin at `base`.
    pub fn from_value(value: &Value, base: &Path) -> Result<Self, SourceError> {
        let path = || {
            let path = text(value, "path").ok_or(SourceError::Missing { key: "path" })?;
            Ok(base.join(path))
        };
        match text(value, "source").ok_or(SourceError::Missing { key: "source" })? {
            "directory" => path().map(Self::Directory),
            "file" => path().map(Self::File),
            kind @ ("github" | "git") => GitSource::from_value(value, kind).map(Self::Git),
            other => Err(SourceError::Unsupported(printable(other))),
        }
    }

    /// As files hold it.
    pub(super) fn to_value(&self) -> Value {
        match self {
            Self::Directory(path) => json!({"source": "directory", "path": path}),
            Self::File(path) => json!({"source": "file", "path": path}),
            Self::Git(GitSource { url, reference, shorthand, .. }) => {
                let mut value = match shorthand {
                    Some(repository) => json!({"source": "github", "repo": repository}),
                    None => json!({"source": "git", "url": url}),
                };
                if let Some(reference) = reference {
                    value["ref"] = json!(reference);
                }
                value
            }
        }
    }
}

impl fmt::Display for MarketplaceSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(path) | Self::File(path) => write!(formatter, "{}", path.display()),
            Self::Git(git) => git.fmt(formatter),
        }
    }
}

/// The source of a plugin of a marketplace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntrySource {
    /// Below the marketplace's own directory.
    Relative(String),
    /// A repository, or a directory in it.
    Git { git: GitSource, path: Option<String> },
}

impl EntrySource {
    pub(super) fn from_value(value: &Value) -> Result<Self, SourceError> {
        if let Some(path) = value.as_str() {
            return Ok(Self::Relative(path.to_owned()));
        }
        match text(value, "source").ok_or(SourceError::Missing { key: "source" })? {
            kind @ ("github" | "url" | "git") => {
                Ok(Self::Git { git: GitSource::from_value(value, kind)?, path: None })
            }
            kind @ "git-subdir" => {
                let path = text(value, "path").ok_or(SourceError::Missing { key: "path" })?;
                let git = GitSource::from_value(value, kind)?;
                Ok(Self::Git { git, path: Some(path.to_owned()) })
            }
            other => Err(SourceError::Unsupported(printable(other))),
        }
    }
}

fn text<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value.get(key).and_then(Value::as_str)
}

/// Whether a text is `owner/repository`.
fn is_shorthand(text: &str) -> bool {
    let is_part = |part: &str| {
        let is_good = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.');
        part.starts_with(|it: char| it.is_ascii_alphanumeric() || it == '_')
            && part.chars().all(is_good)
    };
    text.split_once('/').is_some_and(|(owner, name)| is_part(owner) && is_part(name))
}

fn check_url(written: &str) -> Result<String, SourceError> {
    let url = written.trim();
    let refused = || SourceError::Address(without_secrets(url));
    if url.starts_with('-') || url.chars().any(|it| it.is_control() || it.is_whitespace()) {
        return Err(refused());
    }
    if let Some((scheme, rest)) = url.split_once("://") {
        let is_good = SCHEMES.contains(&scheme) && !rest.is_empty() && !rest.starts_with('-');
        return if is_good { Ok(url.to_owned()) } else { Err(refused()) };
    }
    // As ssh has it: user@host:path. A second colon would name a helper, which can run commands.
    let is_ssh = url.split_once(':').is_some_and(|(host, path)| {
        host.split_once('@').is_some_and(|(user, host)| {
            !user.is_empty() && !host.is_empty() && !host.starts_with('-') && !host.contains('/')
        }) && !path.is_empty()
            && !path.starts_with(':')
    });
    if is_ssh { Ok(url.to_owned()) } else { Err(refused()) }
}

fn check_reference(reference: &str) -> Result<(), SourceError> {
    let is_good =
        |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.' | '/' | '+');
    let starts_well = reference.starts_with(|it: char| it.is_ascii_alphanumeric() || it == '_');
    if starts_well && reference.chars().all(is_good) && !reference.contains("..") {
        return Ok(());
    }
    Err(SourceError::Reference(printable(reference)))
}

fn check_commit(commit: &str) -> Result<(), SourceError> {
    if commit.len() == 40 && commit.chars().all(|it| it.is_ascii_hexdigit()) {
        return Ok(());
    }
    Err(SourceError::Reference(printable(commit)))
}

/// An address without the name and password that it may hold.
pub fn without_secrets(address: &str) -> String {
    let address = printable(address);
    match Url::parse(&address) {
        Ok(mut url)
            if url.password().is_some()
                || (url.scheme() != "ssh" && !url.username().is_empty()) =>
        {
            // Both fail only for addresses that cannot have a name.
            let _ = url.set_password(None);
            let _ = url.set_username("");
            url.to_string()
        }
        _ => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(written: &str) -> Result<MarketplaceSource, SourceError> {
        MarketplaceSource::parse(written, Path::new("/nowhere"))
    }

    #[test]
    fn people_write_sources_in_a_few_ways() {
        for (written, shown) in [
            ("owner/repo", "owner/repo"),
            ("owner/repo#v1", "owner/repo#v1"),
            ("https://h.example/r.git", "https://h.example/r.git"),
            ("https://ann:s3cret@h.example/r.git#main", "https://h.example/r.git#main"),
            ("git@h.example:team/r.git", "git@h.example:team/r.git"),
            ("./here", "/nowhere/./here"),
            ("/abs", "/abs"),
        ] {
            let source = parse(written).unwrap();
            assert_eq!(source.to_string(), shown, "{written}");
            let again = MarketplaceSource::from_value(&source.to_value(), Path::new("/")).unwrap();
            assert_eq!(again, source, "{written}");
        }
        let Ok(MarketplaceSource::Git(git)) = parse("owner/repo#v1") else { panic!() };
        assert_eq!((git.url(), git.reference()), ("https://github.com/owner/repo.git", Some("v1")));
    }

    #[test]
    fn nothing_that_git_would_run_or_take_for_an_option_is_a_source() {
        for bad in [
            "",
            "word",
            "ext::sh -c touch% /tmp/x",
            "ext::sh",
            "--upload-pack=touch",
            "-u",
            "https://",
            "ssh://-oProxyCommand=x/y",
            "user@-oProxyCommand=x:y",
            "javascript://x",
            "owner/repo#--exec",
            "owner/repo#a..b",
            "owner/-repo",
            "https://h/marketplace.json",
            "https://h/a b",
            "helper::https://h/r",
        ] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
        assert!(GitSource::new("https://h/r", None, Some("abc".to_owned())).is_err());
        assert!(GitSource::new("https://h/r", None, Some("a".repeat(40))).is_ok());
        assert!(GitSource::github("../..", None, None).is_err());
    }

    #[test]
    fn plugins_come_from_paths_and_repositories() {
        let read = |value: Value| EntrySource::from_value(&value);
        assert_eq!(read(json!("./p")), Ok(EntrySource::Relative("./p".to_owned())));
        let github = GitSource::github("o/r", Some("v2".to_owned()), None).unwrap();
        assert_eq!(
            read(json!({"source": "github", "repo": "o/r", "ref": "v2"})),
            Ok(EntrySource::Git { git: github, path: None })
        );
        let git = GitSource::new("https://h/r.git", None, None).unwrap();
        assert_eq!(
            read(json!({"source": "git-subdir", "url": "https://h/r.git", "path": "tools/p"})),
            Ok(EntrySource::Git { git, path: Some("tools/p".to_owned()) })
        );
        for kind in ["npm", "archive", "command"] {
            let error = read(json!({"source": kind, "package": "x"})).unwrap_err();
            assert_eq!(error, SourceError::Unsupported(kind.to_owned()));
        }
        assert_eq!(read(json!({"source": "url"})), Err(SourceError::Missing { key: "url" }));
    }
}
