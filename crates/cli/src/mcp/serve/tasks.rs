//! Calls that continue after their answers, as the extension `io.modelcontextprotocol/tasks` of the protocol has them.
//!
//! A client that knows tasks gets one instead of the result of a call that takes long or has a question. It asks how
//! the task stands, answers its questions, and can cancel it. A task ends with the server; its result is kept for a while.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use centurion_protocol::{SystemWorld, Timestamp, World};
use parking_lot::Mutex;
use rmcp::ServiceError;
use rmcp::model::{
    CallToolResult, ContentBlock, DetailedTask, ElicitRequest, ElicitRequestParams, ElicitResult,
    ErrorData, InputRequest, InputResponses, JsonObject, Task, TaskPayload, TaskStatus,
};
use serde::Serialize;
use serde_json::Value;
use thiserror::Error;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The reason that a client answered no question.
#[derive(Debug, Error)]
pub(super) enum QuestionError {
    #[error("the call has ended")]
    CallEnded,
    #[error("the answer is none: {0}")]
    NoAnswer(serde_json::Error),
    #[error(transparent)]
    Refused(#[from] ServiceError),
}

/// The time for which the result of a task is kept, at least while there are few of them.
const KEPT: Duration = Duration::from_mins(10);

/// The most results that are kept. A further one takes the place of the oldest.
const MOST_KEPT: usize = 64;

/// The pause that clients should make between two looks at a task.
const PAUSE_MS: u64 = 500;

/// The most bytes of what a task says about itself beside its result.
const MOST_MESSAGE: usize = 500;

/// The end of a call that was dropped before it had one.
const FAULT: &str = "the call was ended by a fault of the program";

/// The state of a call, for those who wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    AtWork,
    /// Only the client can answer what the call asks.
    Asks,
    Ended,
}

/// A call of a client that knows tasks.
pub(super) struct LongCall {
    id: String,
    created: Instant,
    /// Ends the work.
    pub(super) cancel: CancellationToken,
    moment: watch::Sender<Moment>,
    state: Mutex<State>,
}

struct State {
    created_at: Timestamp,
    updated_at: Timestamp,
    /// Whether the client was told that the call continues as a task.
    is_task: bool,
    /// Whether the client wants it to end.
    is_unwanted: bool,
    step: Option<String>,
    questions: BTreeMap<String, Question>,
    /// The number of all questions so far: no key comes twice.
    asked: u64,
    end: Option<CallEnd>,
}

struct Question {
    params: ElicitRequestParams,
    /// To the call that waits for the answer.
    answer: oneshot::Sender<Value>,
}

struct CallEnd {
    result: Result<CallToolResult, ErrorData>,
    at: Instant,
}

impl LongCall {
    pub(super) fn new(cancel: CancellationToken) -> Arc<Self> {
        let now = now();
        let state = State {
            created_at: now,
            updated_at: now,
            is_task: false,
            is_unwanted: false,
            step: None,
            questions: BTreeMap::new(),
            asked: 0,
            end: None,
        };
        Arc::new(Self {
            id: SystemWorld.uuid().to_string(),
            created: Instant::now(),
            cancel,
            moment: watch::Sender::new(Moment::AtWork),
            state: Mutex::new(state),
        })
    }

    pub(super) fn moments(&self) -> watch::Receiver<Moment> {
        self.moment.subscribe()
    }

    /// Does the work of the call and keeps its result. Work that is dropped has one, too.
    pub(super) async fn work(
        self: Arc<Self>,
        work: impl Future<Output = Result<CallToolResult, ErrorData>>,
    ) {
        let ending = Ending(self);
        let result = work.await;
        ending.0.end(result);
    }

    fn end(&self, result: Result<CallToolResult, ErrorData>) {
        self.change(|state| {
            state.questions.clear();
            state.end.get_or_insert(CallEnd { result, at: Instant::now() });
        });
    }

    /// The result, if the call has ended; it is not there any more then.
    pub(super) fn take_result(&self) -> Option<Result<CallToolResult, ErrorData>> {
        self.state.lock().end.take().map(|end| end.result)
    }

    /// Says what the call does now. Tells whether the client sees it: it has to look at the call itself.
    pub(super) fn step(&self, step: &str) -> bool {
        let cut = step.floor_char_boundary(MOST_MESSAGE);
        self.change(|state| {
            state.step = Some(step.get(..cut).unwrap_or_default().to_owned());
            state.is_task
        })
    }

    /// Asks the client and waits for its answer. Dropping the future withdraws the question.
    pub(super) async fn ask(
        &self,
        params: ElicitRequestParams,
    ) -> Result<ElicitResult, QuestionError> {
        let (answer, answered) = oneshot::channel();
        let key = self.change(|state| {
            state.asked += 1;
            let key = format!("question-{}", state.asked);
            // After its end a call has no questions.
            if state.end.is_none() {
                state.questions.insert(key.clone(), Question { params, answer });
            }
            key
        });
        let _open = OpenQuestion { call: self, key };
        let answer = answered.await.map_err(|_| QuestionError::CallEnded)?;
        serde_json::from_value(answer).map_err(QuestionError::NoAnswer)
    }

    /// Takes in what the client answers. What answers no open question is not heard.
    pub(super) fn answer(&self, answers: InputResponses) {
        self.change(|state| {
            for (key, answer) in answers {
                if let Some(question) = state.questions.remove(&key) {
                    let _ = question.answer.send(answer);
                }
            }
        });
    }

    /// Ends the work at the client's wish.
    pub(super) fn cancel_for_client(&self) {
        self.change(|state| state.is_unwanted |= state.end.is_none());
        self.cancel.cancel();
    }

    /// Changes the state and tells those who wait.
    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.lock();
        let changed = change(&mut state);
        state.updated_at = now();
        let moment = match (&state.end, state.questions.is_empty()) {
            (Some(_), _) => Moment::Ended,
            (None, false) => Moment::Asks,
            (None, true) => Moment::AtWork,
        };
        self.moment.send_replace(moment);
        changed
    }

    fn ended_at(&self) -> Option<Instant> {
        self.state.lock().end.as_ref().map(|end| end.at)
    }

    /// The state of the task, with what belongs to it.
    pub(super) fn detailed(&self) -> DetailedTask {
        let state = self.state.lock();
        let payload = state.payload();
        let message = match &payload {
            TaskPayload::Cancelled => state.last_words(),
            _ => state.step.clone(),
        };
        let (created, updated) = (state.created_at.to_string(), state.updated_at.to_string());
        let mut task = Task::new(&self.id, TaskStatus::Working, created, updated);
        task.status_message = message;
        task.poll_interval_ms = Some(PAUSE_MS);
        task.ttl_ms = state.end.as_ref().map(|end| {
            let kept_until = end.at.duration_since(self.created) + KEPT;
            u64::try_from(kept_until.as_millis()).unwrap_or(u64::MAX)
        });
        DetailedTask::new(task, payload)
    }
}

impl State {
    fn payload(&self) -> TaskPayload {
        match &self.end {
            None if self.questions.is_empty() => TaskPayload::Working,
            None => TaskPayload::InputRequired {
                input_requests: self
                    .questions
                    .iter()
                    .map(|(key, question)| (key.clone(), question.request()))
                    .collect(),
            },
            // Work that was done in spite of the client's wish is done.
            Some(CallEnd { result: Ok(result), .. })
                if !self.is_unwanted || result.is_error != Some(true) =>
            {
                TaskPayload::Completed { result: object(result) }
            }
            Some(CallEnd { result: Err(error), .. }) if !self.is_unwanted => {
                TaskPayload::Failed { error: object(error) }
            }
            Some(_) => TaskPayload::Cancelled,
        }
    }

    /// The words in which a call that was not wanted any more ended.
    fn last_words(&self) -> Option<String> {
        let CallEnd { result, .. } = self.end.as_ref()?;
        let text = match result {
            Ok(result) => result.content.iter().find_map(ContentBlock::as_text)?.text.as_str(),
            Err(error) => &error.message,
        };
        Some(text.get(..text.floor_char_boundary(MOST_MESSAGE))?.to_owned())
    }
}

impl Question {
    fn request(&self) -> InputRequest {
        InputRequest::Elicitation(ElicitRequest::new(self.params.clone()))
    }
}

/// Gives a call an end, whatever becomes of its work.
struct Ending(Arc<LongCall>);

impl Drop for Ending {
    fn drop(&mut self) {
        if *self.0.moment.borrow() != Moment::Ended {
            self.0.end(Err(ErrorData::internal_error(FAULT, None)));
        }
    }
}

struct OpenQuestion<'a> {
    call: &'a LongCall,
    key: String,
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        self.call.change(|state| state.questions.remove(&self.key));
    }
}

/// The calls that continue as tasks, in the order in which they became ones.
#[derive(Default)]
pub(super) struct Tasks(Mutex<Vec<Arc<LongCall>>>);

impl Tasks {
    /// Keeps a call as a task, and gives what its client is told at first.
    pub(super) fn keep(&self, call: &Arc<LongCall>) -> Task {
        let mut calls = self.0.lock();
        sweep(&mut calls);
        calls.push(Arc::clone(call));
        drop(calls);
        call.change(|state| state.is_task = true);
        // The first look brings what belongs to an end or a question.
        call.detailed().task
    }

    /// Finds a task by its id.
    pub(super) fn find(&self, id: &str) -> Result<Arc<LongCall>, ErrorData> {
        let mut calls = self.0.lock();
        sweep(&mut calls);
        calls.iter().find(|call| call.id == id).map(Arc::clone).ok_or_else(|| {
            ErrorData::invalid_params(format!("there is no task {id}, or none any more"), None)
        })
    }
}

/// Forgets the results that were kept long enough, and the oldest of too many.
fn sweep(calls: &mut Vec<Arc<LongCall>>) {
    calls.retain(|call| call.ended_at().is_none_or(|at| at.elapsed() < KEPT));
    let ended = calls.iter().filter(|call| call.ended_at().is_some()).count();
    let mut surplus = ended.saturating_sub(MOST_KEPT);
    calls.retain(|call| {
        let goes = surplus > 0 && call.ended_at().is_some();
        surplus -= usize::from(goes);
        !goes
    });
}

fn now() -> Timestamp {
    SystemWorld.now().into()
}

fn object(value: &impl Serialize) -> JsonObject {
    match serde_json::to_value(value) {
        Ok(Value::Object(object)) => object,
        _ => JsonObject::new(),
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::ElicitationSchema;
    use serde_json::json;

    use super::*;

    fn call() -> Arc<LongCall> {
        LongCall::new(CancellationToken::new())
    }

    fn said(text: &str) -> CallToolResult {
        CallToolResult::success(vec![ContentBlock::text(text)])
    }

    fn question() -> ElicitRequestParams {
        ElicitRequestParams::FormElicitationParams {
            meta: None,
            message: "Really?".to_owned(),
            requested_schema: ElicitationSchema::new(BTreeMap::new()),
        }
    }

    fn status(call: &LongCall) -> Value {
        serde_json::to_value(call.detailed()).unwrap()["status"].take()
    }

    #[tokio::test]
    async fn work_that_is_dropped_has_an_end() {
        let call = call();
        drop(Box::pin(Arc::clone(&call).work(std::future::pending())));
        assert_eq!(status(&call), "working", "it had not begun");
        let mut begun = Box::pin(Arc::clone(&call).work(std::future::pending()));
        assert!(futures_util::poll!(&mut begun).is_pending());
        drop(begun);
        assert_eq!(status(&call), "failed");
        assert_eq!(*call.moments().borrow(), Moment::Ended);
    }

    #[tokio::test]
    async fn each_question_has_a_key_of_its_own_and_dies_with_who_asks() {
        let call = call();
        let mut first = Box::pin(call.ask(question()));
        assert!(futures_util::poll!(&mut first).is_pending());
        let mut second = Box::pin(call.ask(question()));
        assert!(futures_util::poll!(&mut second).is_pending());
        assert_eq!(status(&call), "input_required");
        drop(first);
        let open = serde_json::to_value(call.detailed()).unwrap();
        let keys: Vec<&String> = open["inputRequests"].as_object().unwrap().keys().collect();
        assert_eq!(keys, ["question-2"]);
        call.answer(BTreeMap::from([("question-1".to_owned(), json!({"action": "accept"}))]));
        assert!(futures_util::poll!(&mut second).is_pending(), "that was for another one");
        call.answer(BTreeMap::from([("question-2".to_owned(), json!({"action": "decline"}))]));
        assert!(second.await.is_ok());
        assert_eq!(status(&call), "working");
        call.answer(BTreeMap::from([("question-2".to_owned(), json!("it is answered already"))]));
        assert_eq!(status(&call), "working");
    }

    #[tokio::test]
    async fn an_answer_that_is_none_and_the_end_of_the_call_end_a_question() {
        let call = call();
        let mut asked = Box::pin(call.ask(question()));
        assert!(futures_util::poll!(&mut asked).is_pending());
        call.answer(BTreeMap::from([("question-1".to_owned(), json!("yes"))]));
        assert!(matches!(asked.await.unwrap_err(), QuestionError::NoAnswer(_)));
        let mut asked = Box::pin(call.ask(question()));
        assert!(futures_util::poll!(&mut asked).is_pending());
        call.end(Ok(said("done")));
        assert!(matches!(asked.await.unwrap_err(), QuestionError::CallEnded));
        assert_eq!(status(&call), "completed");
        let error = call.ask(question()).await.unwrap_err();
        assert!(matches!(error, QuestionError::CallEnded), "{error}");
    }

    #[test]
    fn what_was_done_in_spite_of_the_clients_wish_is_done() {
        for (result, expected) in [
            (Ok(said("done")), "completed"),
            (Ok(CallToolResult::error(vec![ContentBlock::text("stopped")])), "cancelled"),
            (Err(ErrorData::invalid_params("no such tool", None)), "cancelled"),
        ] {
            let call = call();
            call.cancel_for_client();
            assert!(call.cancel.is_cancelled());
            call.end(result);
            assert_eq!(status(&call), expected);
            call.cancel_for_client();
            assert_eq!(status(&call), expected, "an end stays");
        }
        let done = call();
        done.end(Ok(CallToolResult::error(vec![])));
        done.cancel_for_client();
        assert_eq!(status(&done), "completed", "it had ended before");
    }

    #[tokio::test(start_paused = true)]
    async fn results_are_kept_for_a_while_and_no_more_than_so_many() {
        let tasks = Tasks::default();
        let works = call();
        tasks.keep(&works);
        let ended: Vec<_> = std::iter::repeat_with(call).take(MOST_KEPT + 10).collect();
        for call in &ended {
            call.end(Ok(said("done")));
            tasks.keep(call);
        }
        let is_kept = |call: &LongCall| tasks.find(&call.id).is_ok();
        assert_eq!(ended.iter().filter(|call| is_kept(call)).count(), MOST_KEPT);
        assert!(!is_kept(&ended[0]) && is_kept(ended.last().unwrap()) && is_kept(&works));
        tokio::time::advance(KEPT).await;
        assert!(!is_kept(ended.last().unwrap()));
        assert!(is_kept(&works), "what goes on is kept");
        works.end(Ok(said("at last")));
        let ttl = works.detailed().task.ttl_ms.unwrap();
        assert_eq!(ttl, 2 * u64::try_from(KEPT.as_millis()).unwrap());
    }
}
