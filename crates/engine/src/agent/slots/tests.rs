//! Slots under a clock that stands still: a task that would wait for ever runs into the end of time instead.

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::time::Duration;

use futures_util::future::{join, join_all};
use tokio::time::{sleep, timeout};

use super::*;

/// Longer than anything here takes.
const END_OF_TIME: Duration = Duration::from_secs(1_000_000);

fn brief(milliseconds: u64) -> tokio::time::Sleep {
    sleep(Duration::from_millis(milliseconds))
}

#[test]
fn a_slot_may_be_used_from_any_thread() {
    fn is_free_to_move<T: Send>(_: &T) {}
    let slot = Slots::new(1).slot();
    is_free_to_move(&slot.take());
    is_free_to_move(&slot.lend(async {}));
    is_free_to_move(&slot);
}

/// An agent that starts another one and waits for it, down to a depth.
fn chain(permits: &Arc<Slots>, depth: usize) -> Pin<Box<dyn Future<Output = usize> + '_>> {
    Box::pin(async move {
        let slot = permits.slot();
        slot.take().await;
        assert_eq!(permits.running(), 1);
        let below = if depth > 1 { slot.lend(chain(permits, depth - 1)).await } else { 0 };
        // It computes again only with its permit.
        assert_eq!(permits.running(), 1);
        below + 1
    })
}

#[tokio::test(start_paused = true)]
async fn one_slot_is_enough_for_a_chain_of_any_depth() {
    // D-12, I-8
    let permits = Slots::new(1);
    let depths = join_all((0..3).map(|_| chain(&permits, 5)));
    assert_eq!(timeout(END_OF_TIME, depths).await, Ok(vec![5, 5, 5]));
    assert_eq!((permits.running(), permits.waiting()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn places_are_given_in_the_order_in_which_they_were_asked_for() {
    let permits = Slots::new(2);
    let order = RefCell::new(Vec::new());
    let agents = (0..6).map(|number| {
        let (permits, order) = (&permits, &order);
        async move {
            let slot = permits.slot();
            slot.take().await;
            order.borrow_mut().push((number, permits.running(), permits.waiting()));
            brief(10).await;
        }
    });
    join_all(agents).await;
    let started = order.into_inner();
    assert_eq!(started.iter().map(|it| it.0).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
    assert!(started.iter().all(|(_, running, _)| *running <= 2), "{started:?}");
    assert_eq!(started[2..], [(2, 2, 3), (3, 2, 2), (4, 2, 1), (5, 2, 0)]);
}

#[tokio::test(start_paused = true)]
async fn a_slot_is_free_again_when_its_agent_leaves_or_is_dropped() {
    let permits = Slots::new(2);
    let (one, two) = (permits.slot(), permits.slot());
    one.take().await;
    one.take().await;
    assert_eq!(permits.running(), 1, "who has a permit needs no second one");
    two.take().await;
    two.leave();
    two.leave();
    assert_eq!(permits.running(), 1);
    drop(one);
    assert_eq!(permits.running(), 0);
    two.take().await;
    assert_eq!(permits.running(), 1);
}

#[tokio::test(start_paused = true)]
async fn lends_side_by_side_and_inside_each_other_count() {
    let permits = Slots::new(1);
    let slot = permits.slot();
    slot.take().await;
    let short = async {
        slot.lend(brief(10)).await;
        permits.running()
    };
    let long = async {
        slot.lend(slot.lend(brief(20))).await;
        permits.running()
    };
    // The first gives back, the last takes again.
    let looks = async {
        brief(15).await;
        permits.running()
    };
    let (short, (long, between)) = join(short, join(long, looks)).await;
    assert_eq!((short, between, long), (0, 0, 1));
}

#[tokio::test(start_paused = true)]
async fn lends_that_end_while_another_agent_runs_wait_for_one_slot_together() {
    let permits = Slots::new(1);
    let (slot, other) = (permits.slot(), permits.slot());
    slot.take().await;
    let neighbour = async {
        other.take().await;
        brief(100).await;
        other.leave();
    };
    // Both end while the permit is away; one of them begins while the other waits to take it again.
    let late = async {
        brief(20).await;
        slot.lend(brief(20)).await;
    };
    let lends = join(slot.lend(brief(10)), late);
    timeout(END_OF_TIME, join(neighbour, lends)).await.expect("no waiter is stuck");
    assert_eq!((permits.running(), permits.waiting()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn what_is_dropped_half_way_leaks_nothing() {
    let permits = Slots::new(1);
    let (slot, other) = (permits.slot(), permits.slot());
    other.take().await;
    // Dropped while it waits: it no longer stands in the way, and has no claim.
    assert!(timeout(Duration::from_secs(1), slot.take()).await.is_err());
    assert_eq!(permits.waiting(), 0);
    slot.lend(brief(1)).await;
    assert_eq!(permits.running(), 1);
    // Dropped while the future runs: the permit is away until it is taken again.
    assert!(timeout(Duration::from_secs(1), other.lend(brief(5000))).await.is_err());
    assert_eq!(permits.running(), 0);
    other.take().await;
    assert_eq!(permits.running(), 1);
    // Dropped while it takes the permit again.
    let steal = async {
        slot.take().await;
        brief(10_000).await;
    };
    let cut = timeout(Duration::from_secs(2), other.lend(brief(1000)));
    let (cut, ()) = join(cut, steal).await;
    assert!(cut.is_err());
    drop(slot);
    other.take().await;
    assert_eq!((permits.running(), permits.waiting()), (1, 0));
    // An agent that leaves while it lends does not come back by itself.
    other.lend(async { other.leave() }).await;
    assert_eq!(permits.running(), 0);
}

#[tokio::test(start_paused = true)]
async fn without_slots_no_agent_runs() {
    let permits = Slots::new(0);
    assert!(permits.is_closed() && !Slots::new(1).is_closed());
    let slot = permits.slot();
    assert!(timeout(END_OF_TIME, slot.take()).await.is_err());
    // An agent that never had a permit gives none back and waits for none.
    assert_eq!(timeout(END_OF_TIME, slot.lend(async { 7 })).await, Ok(7));
    assert_eq!((permits.running(), permits.waiting()), (0, 0));
}

/// Numbers that look random and are the same for the same seed.
struct Dice(Cell<u64>);

impl Dice {
    fn roll(&self, sides: u64) -> u64 {
        let next = self.0.get().wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.0.set(next);
        (next >> 33) % sides
    }
}

/// Counts the agents that compute, apart from what the permits say.
struct Desk<'a> {
    permits: &'a Arc<Slots>,
    limit: usize,
    computing: Cell<usize>,
}

struct Computing<'a>(&'a Cell<usize>);

impl Drop for Computing<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

impl Desk<'_> {
    async fn compute(&self, milliseconds: u64) {
        self.computing.set(self.computing.get() + 1);
        let _computing = Computing(&self.computing);
        assert!(self.computing.get() <= self.permits.running(), "an agent works without a permit");
        assert!(
            self.permits.running() <= self.limit,
            "there are more permits than there should be"
        );
        brief(milliseconds).await;
    }
}

/// Something that an agent does, which may be cut off anywhere.
async fn step(desk: &Desk<'_>, slot: &Slot, dice: &Dice) {
    let wait = || brief(dice.roll(20));
    slot.take().await;
    desk.compute(dice.roll(10)).await;
    match dice.roll(5) {
        0 => slot.leave(),
        1 => slot.lend(wait()).await,
        2 => slot.lend(slot.lend(wait())).await,
        3 => {
            join(slot.lend(wait()), async {
                wait().await;
                slot.lend(wait()).await;
            })
            .await;
        }
        _ => {
            // A child of its own.
            let child = desk.permits.slot();
            slot.lend(async {
                child.take().await;
                desk.compute(dice.roll(10)).await;
            })
            .await;
        }
    }
    slot.take().await;
    desk.compute(dice.roll(10)).await;
}

#[tokio::test(start_paused = true)]
async fn random_takes_lends_and_cuts_never_exceed_the_limit_and_leak_nothing() {
    // I-8
    for seed in 0..20 {
        let limit = 1 + usize::try_from(seed).unwrap() % 4;
        let permits = Slots::new(limit);
        let desk = Desk { permits: &permits, limit, computing: Cell::new(0) };
        let dice = Dice(Cell::new(seed));
        let cut = Cell::new(0);
        let agents = (0..20).map(|_| async {
            let mut slot = permits.slot();
            for _ in 0..50 {
                let patience = Duration::from_millis(dice.roll(400));
                if timeout(patience, step(&desk, &slot, &dice)).await.is_err() {
                    cut.set(cut.get() + 1);
                }
                match dice.roll(3) {
                    0 => slot = permits.slot(),
                    1 => slot.leave(),
                    // A future that was cut off has to take its permit to continue.
                    _ => {}
                }
            }
        });
        let all = timeout(END_OF_TIME, join_all(agents)).await;
        assert!(all.is_ok(), "a waiter is stuck with seed {seed}");
        assert!((100..900).contains(&cut.get()), "{} of 1000 were cut with seed {seed}", cut.get());
        assert_eq!((permits.running(), permits.waiting()), (0, 0), "seed {seed}");
        assert_eq!(permits.free.available_permits(), limit, "seed {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_has_to_end_does_not_wait_for_a_slot() {
    // I-8: an agent that is stopped while it waits for another ends at once, however long others compute.
    let permits = Slots::new(1);
    let ends = CancellationToken::new();
    let (slot, other) = (permits.slot().until(ends.clone()), permits.slot());
    slot.take().await;
    let started = tokio::time::Instant::now();
    let waiting = slot.lend(async {
        other.take().await;
        ends.cancel();
    });
    waiting.await;
    assert_eq!((started.elapsed(), permits.running()), (Duration::ZERO, 1));
    other.leave();
    assert_eq!(permits.running(), 0, "the one that ended has none");
}
