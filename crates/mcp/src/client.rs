//! The client's side of a connection: answers the server's requests, and receives its notifications.

#![expect(
    deprecated,
    reason = "roots, sampling and logging leave the protocol one day; servers use them now"
)]

use std::collections::{HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult,
    CustomNotification, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationCapability, ErrorCode, ErrorData, ExtensionCapabilities, FormElicitationCapability,
    Implementation, InputRequest, JsonObject, ListRootsResult, LoggingLevel,
    LoggingMessageNotificationParam, ProgressNotificationParam, ProtocolVersion, Root,
    RootsCapabilities, SamplingCapability, TASKS_EXTENSION_ID, UrlElicitationCapability,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, RoleClient};
use serde_json::{Map, Value, json};
use tokio::sync::watch;
use url::Url;

use crate::host::{Elicitation, ElicitationAnswer, ElicitationKind, Elicitor, Sampler};
use crate::progress::ProgressDesk;

/// The number of reported changes of each list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ListChanges {
    pub(crate) tools: u64,
    pub(crate) prompts: u64,
    pub(crate) resources: u64,
}

/// The client's identity and services for the servers of a pool.
pub(crate) struct Manners {
    pub(crate) version: String,
    pub(crate) roots: Vec<PathBuf>,
    pub(crate) elicitor: Arc<dyn Elicitor>,
    pub(crate) sampler: Option<Arc<dyn Sampler>>,
}

/// Answers one server.
pub(crate) struct Client {
    /// The name under which people know the server.
    server: String,
    manners: Arc<Manners>,
    pub(crate) progress: ProgressDesk,
    stale: watch::Sender<ListChanges>,
    /// The number of the server's questions that wait for a person or a model.
    open_questions: AtomicUsize,
    /// The ids of the pages that the person was shown and that the server has not told the end of, oldest first.
    pages: Mutex<VecDeque<String>>,
    /// The ids of the tasks that calls wait for.
    tasks: Mutex<HashSet<String>>,
}

/// A task that one call waits for. No other call of the connection follows it meanwhile.
pub(crate) struct FollowedTask<'a> {
    client: &'a Client,
    id: &'a str,
}

impl Drop for FollowedTask<'_> {
    fn drop(&mut self) {
        self.client.tasks.lock().remove(self.id);
    }
}

/// The most pages of a server whose end is waited for.
const MOST_PAGES: usize = 64;
/// The most bytes of the id of a task: it goes along with every look at the task.
const MOST_TASK_ID: usize = 1024;
/// The notification of the end of a page.
const PAGE_COMPLETE: &str = "notifications/elicitation/complete";

impl Client {
    pub(crate) fn new(server: String, manners: Arc<Manners>) -> Self {
        Self {
            server,
            manners,
            progress: ProgressDesk::default(),
            stale: watch::Sender::default(),
            open_questions: AtomicUsize::new(0),
            pages: Mutex::default(),
            tasks: Mutex::default(),
        }
    }

    pub(crate) fn stale(&self) -> watch::Receiver<ListChanges> {
        self.stale.subscribe()
    }

    pub(crate) fn mark_stale(&self, mark: impl FnOnce(&mut ListChanges)) {
        self.stale.send_modify(mark);
    }

    /// Takes a task for the call that it answers; `None` if another call waits for it, or its id is none.
    pub(crate) fn follow<'a>(&'a self, id: &'a str) -> Option<FollowedTask<'a>> {
        let is_id = !id.is_empty() && id.len() <= MOST_TASK_ID;
        let is_new = is_id && self.tasks.lock().insert(id.to_owned());
        is_new.then(|| FollowedTask { client: self, id })
    }

    /// Whether the server waits for a person, so that its silence means nothing.
    pub(crate) fn is_asking(&self) -> bool {
        self.open_questions.load(Ordering::Relaxed) > 0
    }

    /// Answers a server's question that precedes the end of a call.
    pub(crate) async fn fulfil(&self, request: InputRequest) -> Result<Value, ErrorData> {
        match request {
            InputRequest::CreateMessage(request) => to_value(&self.sample(request.params).await?),
            InputRequest::Elicitation(request) => to_value(&self.elicit(request.params).await),
            InputRequest::ListRoots(_) => to_value(&self.roots()),
            _ => Err(ErrorData::new(
                ErrorCode::METHOD_NOT_FOUND,
                "this client does not know what is asked",
                None,
            )),
        }
    }

    async fn elicit(&self, params: ElicitRequestParams) -> ElicitResult {
        let (message, kind) = match params {
            ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
                let schema = serde_json::to_value(requested_schema).unwrap_or_default();
                (message, ElicitationKind::Form { schema })
            }
            ElicitRequestParams::UrlElicitationParams { message, url, elicitation_id, .. } => {
                (message, ElicitationKind::Url { url, id: elicitation_id })
            }
            _ => return ElicitResult::new(ElicitationAction::Decline),
        };
        let form = match &kind {
            ElicitationKind::Form { schema } => Some(schema.clone()),
            ElicitationKind::Url { .. } => None,
        };
        let Some(_open) = OpenQuestion::new(&self.open_questions) else {
            return ElicitResult::new(ElicitationAction::Cancel);
        };
        if let ElicitationKind::Url { id, .. } = &kind {
            let mut pages = self.pages.lock();
            pages.retain(|page| page != id);
            pages.push_back(id.clone());
            if pages.len() > MOST_PAGES {
                pages.pop_front();
            }
        }
        let question = Elicitation { server: self.server.clone(), message, kind };
        match self.manners.elicitor.elicit(question).await {
            ElicitationAnswer::Accept(mut fields) => {
                let accepted = ElicitResult::new(ElicitationAction::Accept);
                let Some(form) = form else { return accepted };
                fill_in_defaults(&form, &mut fields);
                accepted.with_content(Value::Object(fields))
            }
            ElicitationAnswer::Decline => ElicitResult::new(ElicitationAction::Decline),
            ElicitationAnswer::Cancel => ElicitResult::new(ElicitationAction::Cancel),
        }
    }

    async fn sample(
        &self,
        params: CreateMessageRequestParams,
    ) -> Result<CreateMessageResult, ErrorData> {
        let refuse = |reason: String| ErrorData::new(ErrorCode::INVALID_REQUEST, reason, None);
        let Some(sampler) = &self.manners.sampler else {
            return Err(refuse("this client does not let servers use its model".to_owned()));
        };
        let Some(_open) = OpenQuestion::new(&self.open_questions) else {
            return Err(refuse("too many questions of this server are open".to_owned()));
        };
        let result = sampler
            .sample(&self.server, to_value(&params)?)
            .await
            .map_err(|error| refuse(error.to_string()))?;
        serde_json::from_value(result)
            .map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }

    fn roots(&self) -> ListRootsResult {
        let root = |path: &PathBuf| {
            let root =
                Root::new(Url::from_directory_path(path).ok()?.as_str().trim_end_matches('/'));
            Some(match path.file_name() {
                Some(name) => root.with_name(name.to_string_lossy()),
                None => root,
            })
        };
        ListRootsResult::new(self.manners.roots.iter().filter_map(root).collect())
    }
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.roots = Some(RootsCapabilities::default());
        capabilities.elicitation = Some(
            ElicitationCapability::new()
                .with_form(FormElicitationCapability::default())
                .with_url(UrlElicitationCapability::default()),
        );
        // A server may continue with a long call as a task.
        let tasks = (TASKS_EXTENSION_ID.to_owned(), JsonObject::new());
        capabilities.extensions = Some(ExtensionCapabilities::from_iter([tasks]));
        capabilities.sampling = self.manners.sampler.is_some().then(SamplingCapability::default);
        ClientConfig::new(
            capabilities,
            Implementation::new("centurion", self.manners.version.clone()),
        )
        .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        tokio::select! {
            result = self.sample(params) => result,
            () = context.ct.cancelled() => Err(ErrorData::internal_error("cancelled", None)),
        }
    }

    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        Ok(self.roots())
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        tokio::select! {
            result = self.elicit(request) => Ok(result),
            () = context.ct.cancelled() => Ok(ElicitResult::new(ElicitationAction::Cancel)),
        }
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.progress.hand(params);
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let (server, logger) = (&self.server, params.logger.as_deref().unwrap_or_default());
        match params.level {
            LoggingLevel::Debug | LoggingLevel::Info => {
                tracing::debug!(server, logger, message = %params.data, "an MCP server says");
            }
            _ => tracing::info!(server, logger, message = %params.data, "an MCP server warns"),
        }
    }

    async fn on_custom_notification(
        &self,
        notification: CustomNotification,
        _: NotificationContext<RoleClient>,
    ) {
        if notification.method != PAGE_COMPLETE {
            return;
        }
        let id = notification.params.as_ref().and_then(|params| params["elicitationId"].as_str());
        // One that was not asked for is not told of.
        let asked = id.and_then(|id| {
            let mut pages = self.pages.lock();
            let place = pages.iter().position(|page| page == id)?;
            pages.remove(place)
        });
        if let Some(id) = asked {
            self.manners.elicitor.completed(&self.server, &id).await;
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.mark_stale(|stale| stale.tools += 1);
    }

    async fn on_prompt_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.mark_stale(|stale| stale.prompts += 1);
    }

    async fn on_resource_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.mark_stale(|stale| stale.resources += 1);
    }
}

/// The most open questions of one server; more are refused.
const MOST_OPEN_QUESTIONS: usize = 32;

struct OpenQuestion<'a>(&'a AtomicUsize);

impl<'a> OpenQuestion<'a> {
    /// `None` when too many are open.
    fn new(count: &'a AtomicUsize) -> Option<Self> {
        let opened = Self(count);
        (count.fetch_add(1, Ordering::Relaxed) < MOST_OPEN_QUESTIONS).then_some(opened)
    }
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Sets missing fields to the defaults of the form.
fn fill_in_defaults(form: &Value, fields: &mut Map<String, Value>) {
    let Some(properties) = form.get("properties").and_then(Value::as_object) else { return };
    for (name, property) in properties {
        if let Some(default) = property.get("default")
            && !fields.contains_key(name)
        {
            fields.insert(name.clone(), default.clone());
        }
    }
}

fn to_value(result: &impl serde::Serialize) -> Result<Value, ErrorData> {
    serde_json::to_value(result).map_err(|error| {
        ErrorData::internal_error("this answer is no JSON", Some(json!(error.to_string())))
    })
}
