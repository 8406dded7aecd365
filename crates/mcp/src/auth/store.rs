//! The file that holds the tokens of all servers, by URL. Only its owner can read it.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;

use centurion_files::private;
use centurion_protocol::bounded;
use rmcp::transport::auth::{
    AuthError, CredentialRefreshGuard, CredentialStore, StoredCredentials,
};
use serde_json::{Map, Value};

/// The largest store of tokens that is read.
const MOST_STORE: u64 = 16 * 1024 * 1024;

/// The tokens of one server.
#[derive(Clone, Debug)]
pub(crate) struct TokenStore {
    path: PathBuf,
    url: String,
}

type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, AuthError>> + Send + 'a>>;

impl TokenStore {
    pub(crate) fn new(path: &Path, url: &str) -> Self {
        Self { path: path.to_owned(), url: url.to_owned() }
    }

    /// Whether there are tokens for this server. A file that cannot be read has none.
    pub(crate) fn has_tokens(&self) -> bool {
        self.read().is_ok_and(|all| all.contains_key(&self.url))
    }

    /// Deletes the data of this server; returns whether there were tokens.
    pub(crate) fn forget(&self) -> io::Result<bool> {
        self.change(|all, url| {
            all.shift_remove(&wanted_key(url));
            all.shift_remove(&secret_key(url));
            all.shift_remove(url).is_some()
        })
    }

    /// Stores scopes that the server demands besides those that it has granted.
    pub(crate) fn want(&self, scope: &str) -> io::Result<()> {
        self.change(|all, url| {
            all.insert(wanted_key(url), Value::from(scope));
        })
    }

    /// The scopes that the next login must ask for: none, unless the server has demanded more.
    pub(crate) fn wanted(&self) -> Vec<String> {
        let all = self.read().unwrap_or_default();
        let Some(wanted) = all.get(&wanted_key(&self.url)).and_then(Value::as_str) else {
            return Vec::new();
        };
        let granted = all.get(&self.url).and_then(|stored| stored["granted_scopes"].as_array());
        let granted = granted.into_iter().flatten().filter_map(Value::as_str);
        let mut scopes: Vec<String> = Vec::new();
        for scope in granted.chain(wanted.split_whitespace()) {
            if !scopes.iter().any(|known| known == scope) {
                scopes.push(scope.to_owned());
            }
        }
        scopes
    }

    /// The secret of a client that was registered by hand.
    pub(crate) fn secret(&self) -> Option<String> {
        let all = self.read().ok()?;
        all.get(&secret_key(&self.url))?.as_str().map(str::to_owned)
    }

    /// Stores the results of a login besides tokens.
    pub(crate) fn conclude(&self, secret: Option<&str>) -> io::Result<()> {
        self.change(|all, url| {
            all.shift_remove(&wanted_key(url));
            match secret {
                Some(secret) => all.insert(secret_key(url), Value::from(secret)),
                None => all.shift_remove(&secret_key(url)),
            };
        })
    }

    fn read(&self) -> io::Result<Map<String, Value>> {
        match bounded::read_file(&self.path, MOST_STORE) {
            Ok(text) => Ok(serde_json::from_slice(&text)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Map::new()),
            Err(error) => Err(error),
        }
    }

    /// Changes the file while no other process does.
    fn change<T>(&self, change: impl FnOnce(&mut Map<String, Value>, &str) -> T) -> io::Result<T> {
        let _lock = self.lock("lock")?;
        let mut all = self.read()?;
        let result = change(&mut all, &self.url);
        private::replace(&self.path, &serde_json::to_vec_pretty(&all)?)?;
        Ok(result)
    }

    /// Waits for a lock beside the file; it is held until the result is dropped.
    fn lock(&self, suffix: &str) -> io::Result<File> {
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(".");
        name.push(suffix);
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        let lock = private::open(&mut options, &self.path.with_file_name(name))?;
        lock.lock()?;
        Ok(lock)
    }

    /// Does work that may wait for a disk or a lock.
    fn blocking<'a, T: Send + 'static>(
        &self,
        work: impl FnOnce(Self) -> io::Result<T> + Send + 'static,
    ) -> StoreFuture<'a, T> {
        let store = self.clone();
        Box::pin(async move {
            let done = tokio::task::spawn_blocking(move || {
                let path = store.path.display().to_string();
                work(store).map_err(|error| format!("{path}: {error}"))
            });
            let done = done.await.map_err(|error| error.to_string());
            done.and_then(|done| done).map_err(AuthError::CredentialStoreError)
        })
    }
}

fn wanted_key(url: &str) -> String {
    format!("scopes wanted by {url}")
}

fn secret_key(url: &str) -> String {
    format!("client secret for {url}")
}

impl CredentialStore for TokenStore {
    fn load<'a, 'b>(&'a self) -> StoreFuture<'b, Option<StoredCredentials>>
    where
        'a: 'b,
        Self: 'b,
    {
        self.blocking(|store| match store.read()?.shift_remove(&store.url) {
            Some(stored) => Ok(Some(serde_json::from_value(stored)?)),
            None => Ok(None),
        })
    }

    fn save<'a, 'b>(&'a self, credentials: StoredCredentials) -> StoreFuture<'b, ()>
    where
        'a: 'b,
        Self: 'b,
    {
        self.blocking(move |store| {
            let stored = serde_json::to_value(&credentials)?;
            store.change(|all, url| {
                all.insert(url.to_owned(), stored);
            })
        })
    }

    fn clear<'a, 'b>(&'a self) -> StoreFuture<'b, ()>
    where
        'a: 'b,
        Self: 'b,
    {
        self.blocking(|store| store.forget().map(drop))
    }

    /// Two processes must not use one refresh token at the same time: the second use may revoke both.
    fn acquire_refresh_guard<'a, 'b>(&'a self) -> StoreFuture<'b, Option<CredentialRefreshGuard>>
    where
        'a: 'b,
        Self: 'b,
    {
        self.blocking(|store| {
            store.lock("refresh").map(|lock| Some(CredentialRefreshGuard::new(lock)))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[tokio::test]
    async fn tokens_are_kept_by_server_in_a_private_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state/tokens.json");
        let (one, other) =
            (TokenStore::new(&path, "https://one"), TokenStore::new(&path, "https://other"));
        assert!(!one.has_tokens());
        assert!(one.load().await.unwrap().is_none());
        let credentials = |id: &str| StoredCredentials::new(id.to_owned(), None, vec![], None);
        one.save(credentials("a")).await.unwrap();
        other.save(credentials("b")).await.unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(one.load().await.unwrap().unwrap().client_id, "a");
        let guard = one.acquire_refresh_guard().await.unwrap();
        one.save(credentials("c")).await.unwrap();
        drop(guard);
        assert!(one.forget().unwrap() && !one.forget().unwrap());
        assert!(!one.has_tokens() && other.has_tokens());
    }

    #[tokio::test]
    async fn wanted_scopes_are_added_to_those_that_were_granted() {
        let dir = tempfile::tempdir().unwrap();
        let store = TokenStore::new(&dir.path().join("tokens.json"), "https://one");
        let granted = vec!["read".to_owned(), "list".to_owned()];
        store.save(StoredCredentials::new("a".to_owned(), None, granted, None)).await.unwrap();
        assert!(store.wanted().is_empty());
        store.want("write read").unwrap();
        assert_eq!(store.wanted(), ["read", "list", "write"]);
        store.conclude(Some("hush")).unwrap();
        assert!(store.wanted().is_empty());
        assert_eq!(store.secret().as_deref(), Some("hush"));
        store.conclude(None).unwrap();
        assert_eq!(store.secret(), None);
    }

    #[tokio::test]
    async fn a_broken_file_is_told_and_not_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens.json");
        fs::write(&path, "{ broken").unwrap();
        let store = TokenStore::new(&path, "https://one");
        assert!(!store.has_tokens());
        let error = store.clear().await.unwrap_err().to_string();
        assert!(error.contains("tokens.json"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "{ broken");
    }
}
