//! Several answerers at once: a question goes to all of them and is answered once, by the first.
//!
//! The others are told: the question is withdrawn from them, as it is when its call ends, and
//! [`Answerer::settled_elsewhere`] says why. An answerer that has gone, or cannot answer such a question, decides
//! nothing as long as another is left. One that is attached while a question is open is asked it, too; one that
//! is detached has it withdrawn. With none left, a session behaves as if it had no answerer at all.

use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::Poll;

use centurion_engine::{Answerer, Ask, ElicitFuture, Elicitation, ReplyFuture, Unanswered};
use tokio::sync::watch;

/// All that can answer the questions of a session.
#[derive(Default)]
pub struct Answerers(watch::Sender<List>);

#[derive(Clone, Default)]
struct List {
    /// In the order of their numbers.
    attached: Vec<AttachedAnswerer>,
    /// The number of the next one. None is given twice.
    next: u64,
}

#[derive(Clone)]
struct AttachedAnswerer {
    number: u64,
    answerer: Arc<dyn Answerer>,
}

/// Keeps an answerer attached; dropping this detaches it.
#[must_use]
pub struct Attachment {
    answerers: Weak<Answerers>,
    number: u64,
}

impl Answerers {
    /// From now on questions go to `answerer`, too, those included that are open.
    pub fn attach(self: &Arc<Self>, answerer: Arc<dyn Answerer>) -> Attachment {
        let mut number = 0;
        self.0.send_modify(|list| {
            number = list.next;
            list.next += 1;
            list.attached.push(AttachedAnswerer { number, answerer });
        });
        Attachment { answerers: Arc::downgrade(self), number }
    }

    /// Puts a question to all and waits for the first answer. The number is that of the answerer.
    async fn first<T, P>(&self, put: P) -> Result<(T, u64), Unanswered>
    where
        P: Fn(Arc<dyn Answerer>) -> Answering<T>,
    {
        let mut changes = self.0.subscribe();
        let mut open: Vec<OpenQuestion<T>> = Vec::new();
        let mut next = 0;
        let mut why = Unanswered::because("all hosts that could answer are gone");
        loop {
            let attached = changes.borrow_and_update().attached.clone();
            open.retain(|question| attached.iter().any(|it| it.number == question.number));
            // The answerers from `next` on have not been asked.
            for AttachedAnswerer { number, answerer } in attached {
                if number >= next {
                    open.push(OpenQuestion { number, answering: put(answerer) });
                    next = number + 1;
                }
            }
            if open.is_empty() {
                return Err(why);
            }
            tokio::select! {
                (number, answer) = first_of(&mut open) => match answer {
                    Ok(answer) => return Ok((answer, number)),
                    Err(reason) => why = reason,
                },
                _ = changes.changed() => {}
            }
        }
    }
}

type Answering<T> = Pin<Box<dyn Future<Output = Result<T, Unanswered>> + Send>>;

/// A question that one answerer has.
struct OpenQuestion<T> {
    number: u64,
    answering: Answering<T>,
}

/// Waits for one of them, and takes it out.
async fn first_of<T>(open: &mut Vec<OpenQuestion<T>>) -> (u64, Result<T, Unanswered>) {
    std::future::poll_fn(|context| {
        let answered = open.iter_mut().enumerate().find_map(|(at, question)| {
            match question.answering.as_mut().poll(context) {
                Poll::Ready(answer) => Some((at, answer)),
                Poll::Pending => None,
            }
        });
        let Some((at, answer)) = answered else { return Poll::Pending };
        Poll::Ready((open.remove(at).number, answer))
    })
    .await
}

impl Answerer for Answerers {
    fn is_there(&self) -> bool {
        self.0.borrow().attached.iter().any(|attached| attached.answerer.is_there())
    }

    fn hears_servers(&self) -> bool {
        self.0.borrow().attached.iter().any(|attached| attached.answerer.hears_servers())
    }

    fn answer(&self, ask: Ask) -> ReplyFuture<'_> {
        Box::pin(async move {
            let put = |answerer: Arc<dyn Answerer>| -> Answering<_> {
                let ask = ask.clone();
                Box::pin(async move { answerer.answer(ask).await })
            };
            let (reply, winner) = self.first(put).await?;
            let attached = self.0.borrow().attached.clone();
            for other in attached.iter().filter(|it| it.number != winner) {
                other.answerer.settled_elsewhere(&ask.call);
            }
            Ok(reply)
        })
    }

    fn elicit(&self, question: Elicitation) -> ElicitFuture<'_> {
        Box::pin(async move {
            let put = |answerer: Arc<dyn Answerer>| -> Answering<_> {
                let question = question.clone();
                Box::pin(async move { answerer.elicit(question).await })
            };
            Ok(self.first(put).await?.0)
        })
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        if let Some(answerers) = self.answerers.upgrade() {
            answerers.0.send_modify(|list| list.attached.retain(|it| it.number != self.number));
        }
    }
}

#[cfg(test)]
mod tests {
    use centurion_engine::{AskReason, ElicitationAnswer, Reply};
    use centurion_protocol::ToolUseId;
    use parking_lot::Mutex;
    use tokio::sync::oneshot;

    use super::*;

    /// A front with a dialog: it says what happens to it, and answers when it is told to.
    #[derive(Default)]
    struct Dialog {
        answers: Mutex<Vec<oneshot::Sender<Result<Reply, Unanswered>>>>,
        open: Arc<()>,
        settled: Mutex<Vec<ToolUseId>>,
    }

    impl Dialog {
        fn is_open(&self) -> bool {
            Arc::strong_count(&self.open) > 1
        }

        fn answer_with(&self, answer: Result<Reply, Unanswered>) {
            assert!(self.answers.lock().pop().unwrap().send(answer).is_ok());
        }

        fn waits(&self) -> oneshot::Receiver<Result<Reply, Unanswered>> {
            let (sender, receiver) = oneshot::channel();
            self.answers.lock().push(sender);
            receiver
        }
    }

    impl Answerer for Dialog {
        fn answer(&self, _: Ask) -> ReplyFuture<'_> {
            let (open, receiver) = (Arc::clone(&self.open), self.waits());
            Box::pin(async move {
                let answer = receiver.await.unwrap();
                drop(open);
                answer
            })
        }

        fn elicit(&self, _: Elicitation) -> ElicitFuture<'_> {
            let (open, receiver) = (Arc::clone(&self.open), self.waits());
            Box::pin(async move {
                let answer = receiver.await.unwrap();
                drop(open);
                answer.map(|_| ElicitationAnswer::Decline)
            })
        }

        fn settled_elsewhere(&self, call: &ToolUseId) {
            self.settled.lock().push(call.clone());
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

    const YES: Result<Reply, Unanswered> = Ok(Reply::Allowed { input: None, remember: Vec::new() });

    fn gone(why: &str) -> Result<Reply, Unanswered> {
        Err(Unanswered::because(why))
    }

    /// Lets the wait continue as far as it can; gives how it ended, if it has.
    fn step<T>(wait: &mut Pin<Box<dyn Future<Output = T> + Send + '_>>) -> Option<T> {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match wait.as_mut().poll(&mut context) {
            Poll::Ready(answer) => Some(answer),
            Poll::Pending => None,
        }
    }

    fn stage() -> (Arc<Answerers>, [Arc<Dialog>; 2], [Attachment; 2]) {
        let answerers = Arc::new(Answerers::default());
        let dialogs = [Arc::new(Dialog::default()), Arc::new(Dialog::default())];
        let attach = |dialog: &Arc<Dialog>| answerers.attach(Arc::clone(dialog) as _);
        let attachments = [attach(&dialogs[0]), attach(&dialogs[1])];
        (answerers, dialogs, attachments)
    }

    #[test]
    fn a_question_goes_to_all_is_answered_by_the_first_and_the_others_are_told() {
        for (winner, loser) in [(0, 1), (1, 0)] {
            let (answerers, dialogs, _attachments) = stage();
            let mut wait = answerers.answer(ask());
            assert!(step(&mut wait).is_none());
            assert!(dialogs.iter().all(|dialog| dialog.is_open()));
            dialogs[winner].answer_with(YES);
            assert!(matches!(step(&mut wait), Some(Ok(Reply::Allowed { .. }))));
            assert!(!dialogs[loser].is_open(), "it was withdrawn");
            assert_eq!(*dialogs[loser].settled.lock(), [ToolUseId::new("t")]);
            assert!(dialogs[winner].settled.lock().is_empty());
        }
    }

    #[test]
    fn an_answerer_that_cannot_answer_decides_only_when_it_is_the_last() {
        let (answerers, dialogs, _attachments) = stage();
        let mut wait = answerers.answer(ask());
        assert!(step(&mut wait).is_none());
        dialogs[0].answer_with(gone("first"));
        assert!(step(&mut wait).is_none());
        dialogs[1].answer_with(gone("second"));
        assert!(matches!(step(&mut wait), Some(Err(why)) if why.reason == "second"));
        let mut wait = answerers.answer(ask());
        assert!(step(&mut wait).is_none());
        dialogs[1].answer_with(gone("second"));
        assert!(step(&mut wait).is_none());
        dialogs[0].answer_with(YES);
        assert!(matches!(step(&mut wait), Some(Ok(Reply::Allowed { .. }))));
    }

    #[test]
    fn an_open_question_follows_who_is_attached() {
        let (answerers, dialogs, [first, second]) = stage();
        let mut wait = answerers.answer(ask());
        assert!(step(&mut wait).is_none());
        drop(first);
        assert!(step(&mut wait).is_none());
        assert!(!dialogs[0].is_open() && dialogs[1].is_open());
        let late = Arc::new(Dialog::default());
        let _attachment = answerers.attach(Arc::clone(&late) as _);
        assert!(step(&mut wait).is_none());
        assert!(late.is_open());
        drop(second);
        assert!(step(&mut wait).is_none());
        late.answer_with(YES);
        assert!(matches!(step(&mut wait), Some(Ok(Reply::Allowed { .. }))));
    }

    #[test]
    fn without_answerers_a_question_is_refused_at_once() {
        let (answerers, _, attachments) = stage();
        assert!(answerers.is_there());
        let mut wait = answerers.answer(ask());
        assert!(step(&mut wait).is_none());
        drop(attachments);
        assert!(!answerers.is_there());
        assert!(matches!(step(&mut wait), Some(Err(_))));
        assert!(matches!(step(&mut answerers.answer(ask())), Some(Err(_))));
    }

    #[test]
    fn a_call_that_ends_withdraws_its_question_from_all() {
        let (answerers, dialogs, _attachments) = stage();
        let mut wait = answerers.answer(ask());
        assert!(step(&mut wait).is_none());
        drop(wait);
        assert!(dialogs.iter().all(|dialog| !dialog.is_open()));
        assert!(dialogs.iter().all(|dialog| dialog.settled.lock().is_empty()));
    }

    #[test]
    fn a_question_of_a_server_is_answered_once_too() {
        let (answerers, dialogs, _attachments) = stage();
        let question = Elicitation {
            server: "s".to_owned(),
            message: "which?".to_owned(),
            kind: centurion_engine::ElicitationKind::Form { schema: serde_json::json!({}) },
        };
        let mut wait = answerers.elicit(question);
        assert!(step(&mut wait).is_none());
        dialogs[1].answer_with(gone("cannot"));
        assert!(step(&mut wait).is_none());
        dialogs[0].answer_with(YES);
        assert!(matches!(step(&mut wait), Some(Ok(ElicitationAnswer::Decline))));
    }
}
