//! Models that may not be used: the host decides, and the engine asks it before a model is in force.

use std::error::Error;
use std::sync::Arc;

/// Refuses a model, given by its full name, that may not be used.
pub type ModelCheck = Arc<dyn Fn(&str) -> Result<(), ModelRefusal> + Send + Sync>;

/// The reason why a model may not be used, as the host gives it.
#[derive(Clone, Debug, thiserror::Error)]
#[error(transparent)]
pub struct ModelRefusal(Arc<dyn Error + Send + Sync>);

impl ModelRefusal {
    pub fn new(reason: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(reason.into().into())
    }
}
