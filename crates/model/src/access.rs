//! What the user says about getting at models, besides the environment.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use crate::{RequestExtras, ServedNames};

/// How models are got at.
#[derive(Clone, Default)]
pub struct Access {
    pub names: ServedNames,
    /// Gives the key of the Messages API where the environment has none.
    pub key_helper: Option<Arc<dyn KeyHelper>>,
    pub extras: RequestExtras,
}

impl fmt::Debug for Access {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Access")
            .field("names", &self.names)
            .field("key_helper", &self.key_helper.is_some())
            .field("extras", &self.extras)
            .finish()
    }
}

/// A key, or why there is none.
pub type KeyFuture<'a> = Pin<Box<dyn Future<Output = Result<String, String>> + Send + 'a>>;

/// A source of keys that may not last.
pub trait KeyHelper: Send + Sync {
    /// The key to use now; another one than that which was refused.
    fn key<'a>(&'a self, refused: Option<&'a str>) -> KeyFuture<'a>;
}
