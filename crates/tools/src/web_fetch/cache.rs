//! Caches pages for a quarter of an hour.

use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;
use parking_lot::Mutex;
use tokio::time::Instant;
use url::Url;

use super::page::WebPage;
use crate::context::lock;

/// Pages by the requested address, oldest first.
#[derive(Default)]
pub(super) struct Cache(Mutex<IndexMap<Url, (Instant, Arc<WebPage>)>>);

impl Cache {
    const KEPT_FOR: Duration = Duration::from_mins(15);
    const PAGES: usize = 16;
    const BYTES: usize = 32 << 20;

    pub(super) fn get(&self, url: &Url) -> Option<Arc<WebPage>> {
        let mut pages = lock(&self.0);
        pages.retain(|_, (since, _)| since.elapsed() < Self::KEPT_FOR);
        pages.get(url).map(|(_, page)| Arc::clone(page))
    }

    pub(super) fn put(&self, url: &Url, page: Arc<WebPage>) {
        let mut pages = lock(&self.0);
        pages.shift_remove(url);
        pages.insert(url.clone(), (Instant::now(), page));
        let bytes = |pages: &IndexMap<Url, (Instant, Arc<WebPage>)>| {
            pages.values().map(|(_, page)| page.kept_size()).sum::<usize>()
        };
        while pages.len() > Self::PAGES || bytes(&pages) > Self::BYTES {
            pages.shift_remove_index(0);
        }
    }
}
