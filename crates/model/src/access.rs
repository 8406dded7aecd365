//! The user's settings for access to models, besides the environment.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use crate::{RequestExtras, ServedNames};

/// The settings for access to models.
#[derive(Clone, Default)]
pub struct ModelAccess {
    pub names: ServedNames,
    /// Provides the key of the Messages API where the environment has none.
    pub key_helper: Option<Arc<dyn KeyHelper>>,
    pub extras: RequestExtras,
}

impl fmt::Debug for ModelAccess {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ModelAccess")
            .field("names", &self.names)
            .field("key_helper", &self.key_helper.is_some())
            .field("extras", &self.extras)
            .finish()
    }
}

/// A key, or the reason that there is none.
pub type KeyFuture<'a> = Pin<Box<dyn Future<Output = Result<String, KeyError>> + Send + 'a>>;

/// The reason that a helper gives no key.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct KeyError(Box<dyn Error + Send + Sync>);

impl KeyError {
    pub fn new(reason: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(reason.into())
    }
}

/// A source of keys that may expire.
pub trait KeyHelper: Send + Sync {
    /// The key to use now; not the one that was refused.
    fn key<'a>(&'a self, refused: Option<&'a str>) -> KeyFuture<'a>;
}
