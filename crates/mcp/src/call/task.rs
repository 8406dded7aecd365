//! A call that a server continues after its answer: the client looks after it until it ends.
//!
//! A server may answer a call with a task (the extension `io.modelcontextprotocol/tasks`). The task is asked how it
//! stands, at the pace that the server wants; its questions are put to people, and taken back when it no longer has
//! them. The caller sees none of this: a result, or why there is none.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use rmcp::model::{
    CallToolResult, CancelTaskParams, CancelTaskRequest, ClientRequest, ErrorData, GetTaskParams,
    GetTaskRequest, GetTaskResult, InputRequests, InputResponses, JsonObject, ServerResult, Task,
    TaskPayload, UpdateTaskParams, UpdateTaskRequest,
};
use serde_json::Value;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::{Call, CallError, CallOutput, MOST_REFUSAL, output};
use crate::content;
use crate::name::cut;
use crate::progress::Progress;

/// The pause between two looks at a task whose server names none.
const PAUSE: Duration = Duration::from_secs(1);

/// The bounds of what a server may name: one cannot have us ask without end, nor forget the task.
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// The looks in a row that may fail because the server is out of reach.
const MOST_FAILED_LOOKS: u32 = 5;

/// The time that a server has to take note that a task is not wanted any more.
const GOODBYE: Duration = Duration::from_secs(1);

/// The questions of a task that are being answered.
#[derive(Default)]
struct Questions<'a> {
    /// All keys that the task has used, each with what takes the question back. A key is answered once.
    seen: HashMap<String, CancellationToken>,
    /// `None` for a question that was taken back.
    open: FuturesUnordered<BoxFuture<'a, Option<QuestionAnswer>>>,
}

/// The key of a question, and its answer or why there is none.
type QuestionAnswer = (String, Result<Value, ErrorData>);

/// The most questions that a task may have over its life.
const MOST_QUESTIONS: usize = 1_000;

impl<'a> Questions<'a> {
    /// Puts the questions that are new, and takes back those that the task no longer has.
    fn follow(&mut self, call: &Call<'a>, requests: InputRequests) -> Result<(), CallError> {
        for (key, taken_back) in &self.seen {
            if !requests.contains_key(key) {
                taken_back.cancel();
            }
        }
        let client = &call.live.client;
        for (key, request) in requests {
            if self.seen.contains_key(&key) {
                continue;
            }
            if self.seen.len() == MOST_QUESTIONS {
                return Err(call.unexpected());
            }
            let taken_back = CancellationToken::new();
            self.seen.insert(key.clone(), taken_back.clone());
            self.open.push(Box::pin(async move {
                taken_back
                    .run_until_cancelled_owned(client.fulfil(request))
                    .await
                    .map(|answer| (key, answer))
            }));
        }
        Ok(())
    }
}

impl Call<'_> {
    /// Follows a task to its end. A task that ends otherwise than by itself is cancelled.
    pub(super) async fn follow(
        &self,
        seed: &Task,
        deadline: Instant,
    ) -> Result<CallOutput, CallError> {
        // The task of another call is not cancelled in this one's name.
        let followed = self.live.client.follow(&seed.task_id);
        let Some(_followed) = followed else { return Err(self.unexpected()) };
        let watched = self.watch(seed, deadline).await;
        let is_over = matches!(
            watched,
            Ok(_)
                | Err(CallError::TaskFailed { .. }
                    | CallError::TaskCancelled { .. }
                    | CallError::Gone { .. })
        );
        if !is_over {
            let params = CancelTaskParams::new(&seed.task_id);
            let cancel = ClientRequest::CancelTaskRequest(CancelTaskRequest::new(params));
            let _ = timeout(GOODBYE, self.live.peer.send_request(cancel)).await;
        }
        watched
    }

    async fn watch(&self, seed: &Task, deadline: Instant) -> Result<CallOutput, CallError> {
        let mut questions = Questions::default();
        let mut pause = pause(seed);
        let mut failed = 0;
        loop {
            tokio::select! {
                biased;
                () = self.options.cancel.cancelled() => return Err(CallError::Cancelled),
                () = self.live.gone.cancelled() => return Err(self.gone()),
                Some(answer) = questions.open.next() => {
                    if let Some((key, answer)) = answer {
                        let answer = answer.map_err(|error| self.refused(&error))?;
                        self.tell(seed, key, answer, deadline).await?;
                    }
                    continue;
                }
                () = sleep_until(deadline) => return Err(self.too_long()),
                () = sleep(pause) => {}
            }
            let told = match self.look(seed, deadline).await {
                Ok(told) => told.task,
                // The task continues; only the way to it is broken.
                Err(CallError::Unreachable { .. }) if failed < MOST_FAILED_LOOKS => {
                    failed += 1;
                    continue;
                }
                Err(error) => return Err(error),
            };
            failed = 0;
            pause = self::pause(&told.task);
            self.report(&told.task);
            match told.payload {
                TaskPayload::Completed { result } => return Ok(of_object(result)),
                TaskPayload::Failed { error } => return Err(self.failed_task(&error)),
                TaskPayload::Cancelled => return Err(self.cancelled_task(&told.task)),
                TaskPayload::InputRequired { input_requests } => {
                    questions.follow(self, input_requests)?;
                }
                _ => questions.follow(self, InputRequests::new())?,
            }
        }
    }

    async fn look(&self, task: &Task, deadline: Instant) -> Result<GetTaskResult, CallError> {
        let params = GetTaskParams::new(&task.task_id);
        let request = ClientRequest::GetTaskRequest(GetTaskRequest::new(params));
        match self.ask(request, deadline).await? {
            ServerResult::GetTaskResult(result) if result.task.task.task_id == task.task_id => {
                Ok(result)
            }
            _ => Err(self.unexpected()),
        }
    }

    /// Answers a question of a task.
    async fn tell(
        &self,
        task: &Task,
        key: String,
        answer: Value,
        deadline: Instant,
    ) -> Result<(), CallError> {
        let answers = InputResponses::from([(key, answer)]);
        let params = UpdateTaskParams::new(&task.task_id, answers);
        let request = ClientRequest::UpdateTaskRequest(UpdateTaskRequest::new(params));
        self.ask(request, deadline).await.map(drop)
    }

    /// Every look at a task that continues is a sign of life.
    fn report(&self, task: &Task) {
        if let Some(on_progress) = &self.options.on_progress {
            let message = task.status_message.as_deref();
            on_progress(Progress {
                done: 0.0,
                total: None,
                message: message.map(|text| cut(text, MOST_REFUSAL)),
            });
        }
    }

    fn failed_task(&self, error: &JsonObject) -> CallError {
        let message = error.get("message").and_then(Value::as_str).unwrap_or("no reason was given");
        CallError::TaskFailed {
            server: self.server.to_owned(),
            code: error.get("code").and_then(Value::as_i64).unwrap_or_default(),
            message: cut(message, MOST_REFUSAL),
        }
    }

    fn cancelled_task(&self, task: &Task) -> CallError {
        let reason = task.status_message.as_deref().unwrap_or("no reason was given");
        CallError::TaskCancelled {
            server: self.server.to_owned(),
            reason: cut(reason, MOST_REFUSAL),
        }
    }
}

/// The time until the next look.
fn pause(task: &Task) -> Duration {
    let wanted = task.poll_interval_ms.map_or(PAUSE, Duration::from_millis);
    wanted.clamp(SHORTEST_PAUSE, LONGEST_PAUSE)
}

fn of_object(result: JsonObject) -> CallOutput {
    let result = Value::Object(result);
    match serde_json::from_value::<CallToolResult>(result.clone()) {
        Ok(known) => output(&known),
        // An unknown kind of content is still worth reading.
        Err(_) => CallOutput {
            is_error: result.get("isError").and_then(Value::as_bool).unwrap_or(false),
            parts: content::of_unknown(&result),
            structured: None,
        },
    }
}
