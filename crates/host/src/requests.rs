//! Requests that we put to a host, from the moment they are put until their response is there.

use std::collections::HashMap;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::oneshot;

/// Requests by id. After [`Requests::disconnect`] there are none, and none can be added.
pub struct Requests(Mutex<Option<HashMap<String, oneshot::Sender<Value>>>>);

impl Default for Requests {
    fn default() -> Self {
        Self(Mutex::new(Some(HashMap::new())))
    }
}

impl Requests {
    /// Adds a request; what is returned gets its response. `None` if the host has gone.
    pub fn expect(&self, id: &str) -> Option<oneshot::Receiver<Value>> {
        let (sender, receiver) = oneshot::channel();
        self.0.lock().as_mut()?.insert(id.to_owned(), sender);
        Some(receiver)
    }

    /// Hands a response to the request that waits for it; gives it back if none does.
    pub fn respond(&self, id: &str, response: Value) -> Result<(), Value> {
        let waiting = self.0.lock().as_mut().and_then(|waiting| waiting.remove(id));
        match waiting {
            // The call may have ended in this very moment.
            Some(sender) => sender.send(response),
            None => Err(response),
        }
    }

    /// The request waits no longer.
    pub fn forget(&self, id: &str) {
        if let Some(waiting) = self.0.lock().as_mut() {
            waiting.remove(id);
        }
    }

    /// The host has gone: every request that waits, now or later, ends without a response.
    pub fn disconnect(&self) {
        *self.0.lock() = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_response_reaches_its_request_and_nothing_else() {
        let requests = Requests::default();
        let first = requests.expect("1").unwrap();
        let second = requests.expect("2").unwrap();
        assert_eq!(requests.respond("2", 22.into()), Ok(()));
        assert_eq!(second.await, Ok(22.into()));
        assert_eq!(requests.respond("2", 23.into()), Err(23.into()), "it was answered");
        requests.forget("1");
        assert_eq!(requests.respond("1", 11.into()), Err(11.into()), "it was withdrawn");
        assert!(first.await.is_err());
        let third = requests.expect("3").unwrap();
        requests.disconnect();
        assert!(third.await.is_err());
        assert!(requests.expect("4").is_none());
    }
}
