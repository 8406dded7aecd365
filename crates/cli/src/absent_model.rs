//! A model that is not there, for what can do without one: every request fails with the reason.

use std::sync::Arc;

use centurion_model::{
    ErrorKind, EventStream, Model, ModelError, Provider, ProviderKind, Request, RetryPolicy,
};
use centurion_protocol::World;

/// No provider, and why there is none.
struct Absent(String);

impl Provider for Absent {
    fn stream(&self, _: Request) -> EventStream {
        let error = ModelError::new(ErrorKind::Authentication, self.0.clone());
        Box::pin(futures_util::stream::iter([Err(error)]))
    }

    fn credential(&self) -> &'static str {
        "none"
    }
}

/// The name of the model that is not there.
pub(crate) const ABSENT: &str = "none";

/// Stands in for a model that cannot be reached.
pub(crate) fn absent_model(reason: String, world: Arc<dyn World>) -> Model {
    let policy = RetryPolicy::default();
    Model::with_provider(Arc::new(Absent(reason)), ProviderKind::Script, ABSENT, policy, world)
}
