//! The one broker: every question to a person passes here, and ends in exactly one reply.
//!
//! A front that can answer (an SDK host now, a terminal later) is an [`Answerer`], or one of several behind one.
//! Without any, a question is denied at once, with the reason. A question dies with the call that asked it: dropping
//! or cancelling the wait settles it.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use centurion_config::agents::Color;
use centurion_mcp::{Elicitation, ElicitationAnswer};
use centurion_permissions::{Reason, RuleSource};
use centurion_protocol::{AgentId, ToolUseId};
use parking_lot::Mutex;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use crate::definition::identity::Identity;
use crate::policy::permissions::Remember;

/// A question: may this call run, with this input? A choice to make and a plan to approve are calls too,
/// whose answer comes back in the input.
#[derive(Clone, Debug)]
pub struct Ask {
    pub tool: String,
    pub call: ToolUseId,
    pub input: Box<RawValue>,
    /// The reason why it has to be asked.
    pub reason: AskReason,
    /// The places that it may touch, and what confines it, in words; `None` where it touches the session alone.
    pub reach: Option<String>,
    /// Answers that would hold for longer than this call, in the shape of the public protocol.
    pub suggestions: Vec<Value>,
    /// The asking agent; `None` for the main agent.
    pub agent: Option<AskingAgent>,
    /// The server whose tool is called, unless the tool is the program's own.
    pub server: Option<AskedServer>,
    /// True if only a person can answer, each time: the answer is more than a yes or a no.
    pub is_for_person: bool,
}

/// The reason for a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskReason {
    pub text: String,
    /// The kind of reason, by its word in the public protocol.
    pub kind: &'static str,
    /// The path that the call may not touch without an answer.
    pub path: Option<PathBuf>,
    /// The rule that asks, with its file and line, if a rule does.
    pub rule: Option<RuleSource>,
}

impl AskReason {
    /// A reason of no kind of its own.
    pub fn other(text: String) -> Self {
        Self { text, kind: "other", path: None, rule: None }
    }
}

impl From<&Reason> for AskReason {
    fn from(reason: &Reason) -> Self {
        let path = reason.path().map(Path::to_owned);
        let rule = reason.rule().cloned();
        Self { text: reason.to_string(), kind: reason.kind(), path, rule }
    }
}

/// The server whose tool a question is about.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct AskedServer {
    pub name: String,
    /// The place that its definition comes from, by its word in the public protocol.
    pub source: &'static str,
}

/// The agent that a question comes from.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct AskingAgent {
    pub id: AgentId,
    /// Its name, or its type.
    pub name: String,
    /// The type that it is of.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub color: Option<&'static str>,
    /// The team that it is a member of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub team: Option<String>,
    /// The names from the main agent's children down to it.
    pub path: Vec<String>,
}

impl AskingAgent {
    pub(crate) fn of(identity: &Identity) -> Option<Self> {
        let name = identity.name.as_ref().or(identity.kind.as_ref());
        Some(Self {
            id: identity.id.clone()?,
            name: name.cloned().unwrap_or_default(),
            kind: identity.kind.clone(),
            color: identity.color.map(Color::as_str),
            team: identity.team.as_ref().map(ToString::to_string),
            path: identity.path.clone(),
        })
    }
}

/// The end of a question.
#[derive(Clone, Debug)]
pub enum Reply {
    /// Yes; with the input to use instead, where the answerer changed it, and what the answer is to mean
    /// for later calls.
    Allowed { input: Option<Box<RawValue>>, remember: Vec<Remember> },
    /// No, and why.
    Denied { reason: String, interrupt: bool },
    /// The same, said by a host, which needs no telling.
    HostDenied { reason: String, interrupt: bool },
    /// The call was cancelled before an answer came.
    Cancelled,
}

/// The reason why an answerer has no answer: it has gone, or cannot answer such a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unanswered {
    pub reason: String,
    /// True if a host has the question before it and failed: it needs no telling of the denial.
    pub is_told: bool,
}

impl Unanswered {
    /// The question was not put, or the answerer has gone.
    pub fn because(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), is_told: false }
    }

    /// The host was asked, and failed.
    pub fn by_host(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), is_told: true }
    }

    /// The denial that a question without an answer ends in.
    fn into_denial(self) -> Reply {
        let Self { reason, is_told } = self;
        if is_told {
            Reply::HostDenied { reason, interrupt: false }
        } else {
            Reply::Denied { reason, interrupt: false }
        }
    }
}

pub type ReplyFuture<'a> = Pin<Box<dyn Future<Output = Result<Reply, Unanswered>> + Send + 'a>>;

/// Answers questions, for a person or instead of one.
pub trait Answerer: Send + Sync {
    /// Tells whether it can be asked now.
    fn is_there(&self) -> bool {
        true
    }

    /// Tells whether it can be asked in a server's name now.
    fn hears_servers(&self) -> bool {
        self.is_there()
    }

    /// Puts the question. Dropping the future withdraws it.
    fn answer(&self, ask: Ask) -> ReplyFuture<'_>;

    /// Puts a server's question. Dropping the future withdraws it.
    fn elicit(&self, question: Elicitation) -> ElicitFuture<'_>;

    /// Another answerer has answered the question about this call, which was withdrawn here.
    fn settled_elsewhere(&self, _call: &ToolUseId) {}
}

pub type ElicitFuture<'a> =
    Pin<Box<dyn Future<Output = Result<ElicitationAnswer, Unanswered>> + Send + 'a>>;

#[derive(Default)]
pub(crate) struct Broker {
    answerer: Mutex<Option<Arc<dyn Answerer>>>,
}

impl Broker {
    /// From now on questions go to `answerer`.
    pub(crate) fn attach(&self, answerer: Arc<dyn Answerer>) {
        *self.answerer.lock() = Some(answerer);
    }

    pub(crate) fn has_answerer(&self) -> bool {
        self.answerer().is_some()
    }

    fn answerer(&self) -> Option<Arc<dyn Answerer>> {
        let answerer = self.answerer.lock().clone();
        answerer.filter(|answerer| answerer.is_there())
    }

    /// Tells whether a server's question can be put.
    pub(crate) fn hears_servers(&self) -> bool {
        self.answerer.lock().as_ref().is_some_and(|answerer| answerer.hears_servers())
    }

    /// Puts a server's question; without an answerer it is cancelled.
    pub(crate) async fn elicit(&self, question: Elicitation) -> ElicitationAnswer {
        let answerer = self.answerer.lock().clone();
        match answerer.filter(|answerer| answerer.hears_servers()) {
            Some(answerer) => answerer.elicit(question).await.unwrap_or(ElicitationAnswer::Cancel),
            None => ElicitationAnswer::Cancel,
        }
    }

    /// Puts a question that no call waits for; `None` if no user has answered it, so that nothing is decided.
    pub(crate) async fn decide(&self, ask: Ask) -> Option<Reply> {
        self.answerer()?.answer(ask).await.ok()
    }

    /// Puts a question and waits for its one reply.
    pub(crate) async fn ask(&self, ask: Ask, cancel: &CancellationToken) -> Reply {
        let Some(answerer) = self.answerer() else {
            let reason = format!(
                "{} and no user can be asked. Do without it, or end and tell the user to allow it \
                 (for example with --allowedTools {})",
                ask.reason.text, ask.tool
            );
            return Reply::Denied { reason, interrupt: false };
        };
        tokio::select! {
            biased;
            () = cancel.cancelled() => Reply::Cancelled,
            reply = answerer.answer(ask) => reply.unwrap_or_else(Unanswered::into_denial),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Never answers; counts the questions that wait.
    #[derive(Default)]
    struct Silent(Arc<()>);

    impl Silent {
        fn open_questions(&self) -> usize {
            Arc::strong_count(&self.0) - 1
        }
    }

    impl Answerer for Silent {
        fn answer(&self, _: Ask) -> ReplyFuture<'_> {
            let open = Arc::clone(&self.0);
            Box::pin(async move {
                std::future::pending::<()>().await;
                drop(open);
                Ok(Reply::Cancelled)
            })
        }

        fn elicit(&self, _: Elicitation) -> ElicitFuture<'_> {
            Box::pin(std::future::pending())
        }
    }

    fn ask() -> Ask {
        let input = serde_json::value::to_raw_value(&serde_json::json!({})).unwrap();
        Ask {
            tool: "Bash".into(),
            call: ToolUseId::new("t"),
            input,
            reason: AskReason::other("Bash needs permission".into()),
            reach: None,
            suggestions: Vec::new(),
            agent: None,
            server: None,
            is_for_person: false,
        }
    }

    #[tokio::test]
    async fn without_an_answerer_a_question_is_denied_with_the_reason() {
        let reply = Broker::default().ask(ask(), &CancellationToken::new()).await;
        let Reply::Denied { reason, .. } = reply else { panic!("{reply:?}") };
        assert!(reason.contains("Bash needs permission") && reason.contains("--allowedTools Bash"));
    }

    /// Cannot answer, and may not be there at all.
    struct Mute {
        is_there: bool,
    }

    impl Answerer for Mute {
        fn is_there(&self) -> bool {
            self.is_there
        }

        fn answer(&self, _: Ask) -> ReplyFuture<'_> {
            Box::pin(std::future::ready(Err(Unanswered::because("the host went away"))))
        }

        fn elicit(&self, _: Elicitation) -> ElicitFuture<'_> {
            Box::pin(std::future::ready(Err(Unanswered::because("the host went away"))))
        }
    }

    #[tokio::test]
    async fn an_answerer_that_cannot_answer_denies_and_one_that_is_not_there_is_none() {
        let broker = Broker::default();
        for (is_there, expected) in [(true, "the host went away"), (false, "no user can be asked")]
        {
            broker.attach(Arc::new(Mute { is_there }));
            assert_eq!(broker.has_answerer(), is_there);
            let reply = broker.ask(ask(), &CancellationToken::new()).await;
            let Reply::Denied { reason, interrupt: false } = reply else { panic!("{reply:?}") };
            assert!(reason.contains(expected), "{reason}");
        }
    }

    #[tokio::test]
    async fn every_question_settles_when_its_call_is_cancelled_or_dropped() {
        // I-4
        let (broker, silent) = (Broker::default(), Arc::new(Silent::default()));
        broker.attach(Arc::clone(&silent) as Arc<dyn Answerer>);
        let cancel = CancellationToken::new();
        let mut wait = Box::pin(broker.ask(ask(), &cancel));
        assert!(futures_util::poll!(&mut wait).is_pending());
        assert_eq!(silent.open_questions(), 1);
        cancel.cancel();
        assert!(matches!(wait.await, Reply::Cancelled));
        assert_eq!(silent.open_questions(), 0);
        let alive = CancellationToken::new();
        let mut dropped = Box::pin(broker.ask(ask(), &alive));
        assert!(futures_util::poll!(&mut dropped).is_pending());
        drop(dropped);
        assert_eq!(silent.open_questions(), 0);
    }
}
