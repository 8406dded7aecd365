//! Retries under a clock that stands still until a task waits.

use centurion_protocol::{Message, ReportedUsage, StopReason};
use futures_util::StreamExt;
use tokio::time::Instant;

use super::*;
use crate::testing::{Memory, request, world};
use crate::{BlockStart, Delta, Model, ProviderKind};

type Script = Vec<Result<StreamEvent, ModelError>>;

fn start() -> StreamEvent {
    StreamEvent::Start {
        id: "m".into(),
        model: "x".into(),
        usage: ReportedUsage::default(),
        request_id: None,
    }
}

fn said(text: &str) -> Script {
    vec![
        Ok(start()),
        Ok(StreamEvent::BlockStart { index: 0, block: BlockStart::Text }),
        Ok(StreamEvent::Delta { index: 0, delta: Delta::Text(text.into()) }),
    ]
}

fn good(text: &str) -> Script {
    let mut script = said(text);
    script.push(Ok(StreamEvent::BlockStop { index: 0 }));
    let (stop_reason, usage) = (StopReason::EndTurn, ReportedUsage::default());
    script.push(Ok(StreamEvent::Finish { stop_reason, usage }));
    script
}

fn bad(kind: ErrorKind) -> Script {
    vec![Err(ModelError::new(kind, "no"))]
}

fn limited(seconds: u64) -> Script {
    let error = ModelError::new(ErrorKind::RateLimit, "slow").with_status(429);
    vec![Err(ModelError { retry_after: Some(Duration::from_secs(seconds)), ..error })]
}

fn model(memory: &Arc<Memory>, max_retries: u32) -> Model {
    let policy = RetryPolicy { max_retries, ..RetryPolicy::default() };
    let provider: Arc<dyn Provider> = Arc::<Memory>::clone(memory);
    Model::with_provider(provider, ProviderKind::Anthropic, "opus", policy, world())
}

/// The text that a consumer keeps, the retries that it was told, and the end.
async fn run(model: &Model) -> (String, Vec<RetryNotice>, Result<(), ErrorKind>) {
    let mut stream = model.stream(request("opus", [Message::user("hi")]), Patience::Full);
    let (mut text, mut notices) = (String::new(), Vec::new());
    while let Some(event) = stream.next().await {
        match event {
            Ok(ModelEvent::Stream(StreamEvent::Delta { delta, .. })) => {
                text.push_str(delta.as_str());
            }
            Ok(ModelEvent::Stream(_) | ModelEvent::Held) => {}
            Ok(ModelEvent::Retry(notice)) => {
                text.clear();
                notices.push(notice);
            }
            Err(error) => {
                assert!(stream.next().await.is_none(), "nothing follows an error");
                return (text, notices, Err(error.kind));
            }
        }
    }
    (text, notices, Ok(()))
}

#[tokio::test(start_paused = true)]
async fn waits_double_from_half_a_second_to_half_a_minute() {
    let failures = (0..10).map(|_| bad(ErrorKind::Overloaded));
    let memory = Memory::new(failures.chain([good("done")]));
    let started = Instant::now();
    let (text, notices, end) = run(&model(&memory, 10)).await;
    assert_eq!((text.as_str(), end, memory.asked()), ("done", Ok(()), 11));
    let mut total = Duration::ZERO;
    for (n, notice) in notices.iter().enumerate() {
        let least = Duration::from_millis(500 * 2_u64.pow(u32::try_from(n).unwrap()));
        let least = least.min(Duration::from_secs(32));
        assert!(notice.delay >= least && notice.delay <= least.mul_f64(1.25), "{notice:?}");
        assert_eq!((notice.attempt as usize, notice.max_retries), (n + 1, 10));
        assert_eq!(notice.error, ErrorKind::Overloaded);
        total += notice.delay;
    }
    // Timers are exact to the millisecond.
    assert!(started.elapsed() >= total && started.elapsed() < total + Duration::from_millis(20));
}

#[tokio::test(start_paused = true)]
async fn a_partial_answer_is_replaced_and_never_doubled() {
    let mut broken = said("half of");
    broken.push(Err(ModelError::new(ErrorKind::Network, "reset")));
    let unfinished = said("a stream that just ends");
    let memory = Memory::new([broken, unfinished, good("the answer")]);
    let (text, notices, end) = run(&model(&memory, 10)).await;
    assert_eq!((text.as_str(), end), ("the answer", Ok(())));
    let kinds: Vec<ErrorKind> = notices.iter().map(|notice| notice.error).collect();
    assert_eq!(kinds, [ErrorKind::Network, ErrorKind::Malformed]);
}

#[tokio::test(start_paused = true)]
async fn what_will_stay_wrong_is_not_tried_again() {
    for kind in [
        ErrorKind::Authentication,
        ErrorKind::Billing,
        ErrorKind::InvalidRequest,
        ErrorKind::ModelNotFound,
        ErrorKind::ContextOverflow,
        ErrorKind::Replay,
    ] {
        let memory = Memory::new([bad(kind)]);
        let (_, notices, end) = run(&model(&memory, 10)).await;
        assert_eq!((notices.len(), end, memory.asked()), (0, Err(kind), 1));
    }
}

#[tokio::test(start_paused = true)]
async fn retries_end() {
    let memory = Memory::new((0..4).map(|_| bad(ErrorKind::Timeout)));
    let (_, notices, end) = run(&model(&memory, 3)).await;
    assert_eq!((notices.len(), end, memory.asked()), (3, Err(ErrorKind::Timeout), 4));
    let memory = Memory::new([bad(ErrorKind::Server)]);
    assert_eq!(run(&model(&memory, 0)).await.2, Err(ErrorKind::Server));
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_the_provider_asks_for_is_kept_by_all_requests() {
    let memory = Memory::new([limited(20), good("two"), good("one")]);
    let model = model(&memory, 10);
    let started = Instant::now();
    let first = async { (run(&model).await, started.elapsed()) };
    let second = async {
        // Comes when the gate has just closed.
        tokio::time::sleep(Duration::from_secs(1)).await;
        (run(&model).await, started.elapsed())
    };
    let ((first, first_end), (second, second_end)) = tokio::join!(first, second);
    assert_eq!((first.2, second.2), (Ok(()), Ok(())));
    assert_eq!((first.1.len(), second.1.len()), (1, 0), "the second waits and fails not");
    assert_eq!((first.1[0].status, memory.asked()), (Some(429), 3));
    let range = Duration::from_secs(20)..Duration::from_secs(26);
    assert!(
        range.contains(&first_end) && range.contains(&second_end),
        "{first_end:?} {second_end:?}"
    );
    assert_ne!(first_end, second_end, "not all at once");
}

#[tokio::test(start_paused = true)]
async fn a_wait_of_ages_is_a_day() {
    let memory = Memory::new([limited(u64::MAX), good("at last")]);
    let (text, notices, _) = run(&model(&memory, 1)).await;
    assert_eq!(text, "at last");
    assert!(notices[0].delay < Duration::from_hours(25), "{notices:?}");
}

#[tokio::test(start_paused = true)]
async fn another_model_is_not_held_up() {
    let memory = Memory::new([limited(60), good("other")]);
    let model = model(&memory, 0);
    assert_eq!(run(&model).await.2, Err(ErrorKind::RateLimit));
    let started = Instant::now();
    let events: Vec<_> =
        model.stream(request("haiku", [Message::user("hi")]), Patience::Full).collect().await;
    assert!(events.last().unwrap().is_ok());
    assert_eq!(started.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_dropped_gives_its_place_back() {
    let memory = Memory::new((0..600).map(|_| said("and then silence")));
    let model = model(&memory, 0);
    for _ in 0..300 {
        let mut stream = model.stream(request("opus", [Message::user("hi")]), Patience::Full);
        assert!(stream.next().await.is_some());
    }
}

#[test]
fn the_environment_sets_the_number_of_retries_within_reason() {
    let retries = |value: &str| {
        RetryPolicy::new(&Env::from([("CLAUDE_CODE_MAX_RETRIES", value)])).max_retries
    };
    assert_eq!((retries("3"), retries("99"), retries("0")), (3, 15, 0));
    assert_eq!((retries(""), retries("many")), (10, 10));
}
