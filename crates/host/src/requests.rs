//! Requests that we put to a host, from the moment they are put until their response is there.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::oneshot;

/// Open requests in the order in which they were put. After [`Requests::disconnect`] there are none, and none can be
/// added.
pub struct Requests(Mutex<Option<Vec<OpenRequest>>>);

struct OpenRequest {
    id: String,
    /// The line that the host was sent.
    line: Arc<Value>,
    sender: oneshot::Sender<Value>,
}

impl Default for Requests {
    fn default() -> Self {
        Self(Mutex::new(Some(Vec::new())))
    }
}

impl Requests {
    /// Adds a request; what is returned gets its response. `None` if the host has gone.
    pub fn expect(&self, id: &str, line: Arc<Value>) -> Option<oneshot::Receiver<Value>> {
        let (sender, receiver) = oneshot::channel();
        self.0.lock().as_mut()?.push(OpenRequest { id: id.to_owned(), line, sender });
        Some(receiver)
    }

    /// Hands a response to the request that waits for it; gives it back if none does.
    pub fn respond(&self, id: &str, response: Value) -> Result<(), Value> {
        match self.take(id) {
            // The call may have ended in this very moment.
            Some(request) => request.sender.send(response),
            None => Err(response),
        }
    }

    /// The request waits no longer.
    pub fn forget(&self, id: &str) {
        self.take(id);
    }

    fn take(&self, id: &str) -> Option<OpenRequest> {
        let mut requests = self.0.lock();
        let requests = requests.as_mut()?;
        let at = requests.iter().position(|request| request.id == id)?;
        Some(requests.remove(at))
    }

    /// The lines of the open requests of one subtype, each with its id.
    pub fn open(&self, subtype: &str) -> Vec<(String, Arc<Value>)> {
        let requests = self.0.lock();
        let is_wanted =
            |request: &&OpenRequest| request.line["request"]["subtype"].as_str() == Some(subtype);
        let open = requests.iter().flatten().filter(is_wanted);
        open.map(|request| (request.id.clone(), Arc::clone(&request.line))).collect()
    }

    /// The host has gone: every request that waits, now or later, ends without a response.
    pub fn disconnect(&self) {
        *self.0.lock() = None;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line(subtype: &str) -> Arc<Value> {
        Arc::new(json!({"request": {"subtype": subtype}}))
    }

    #[tokio::test]
    async fn a_response_reaches_its_request_and_nothing_else() {
        let requests = Requests::default();
        let first = requests.expect("1", line("a")).unwrap();
        let second = requests.expect("2", line("a")).unwrap();
        assert_eq!(requests.respond("2", 22.into()), Ok(()));
        assert_eq!(second.await, Ok(22.into()));
        assert_eq!(requests.respond("2", 23.into()), Err(23.into()), "it was answered");
        requests.forget("1");
        assert_eq!(requests.respond("1", 11.into()), Err(11.into()), "it was withdrawn");
        assert!(first.await.is_err());
        let third = requests.expect("3", line("a")).unwrap();
        requests.disconnect();
        assert!(third.await.is_err());
        assert!(requests.expect("4", line("a")).is_none());
        assert!(requests.open("a").is_empty());
    }

    #[test]
    fn open_requests_are_listed_in_their_order_until_they_are_answered() {
        let requests = Requests::default();
        let waiting: Vec<_> =
            ["b", "a", "c"].map(|id| requests.expect(id, line("ask")).unwrap()).into();
        let _other = requests.expect("d", line("tell"));
        let open = |requests: &Requests| {
            requests.open("ask").into_iter().map(|(id, _)| id).collect::<String>()
        };
        assert_eq!(open(&requests), "bac");
        requests.respond("a", Value::Null).unwrap();
        assert_eq!(open(&requests), "bc");
        drop(waiting);
    }
}
