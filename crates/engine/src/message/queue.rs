//! The one queue: everything that can wake a model waits here, with a priority and an addressee.
//!
//! An item leaves only after the turn that contains it has been recorded: `pending` shows what is due,
//! `delivered` takes it away.

mod item;

use std::collections::HashSet;

use centurion_protocol::{AgentId, RecordId};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

pub use self::item::Priority;
pub(crate) use self::item::{Item, Origin, SCHEDULE, Wakes};
use crate::message::waiting::WaitingItems;

/// Hears which items a recorded turn contains.
pub(crate) type DeliveryWatch = Box<dyn Fn(&[RecordId]) + Send + Sync>;

#[derive(Default)]
pub(crate) struct Queue {
    state: Mutex<QueueState>,
    changed: Notify,
    watch: Option<DeliveryWatch>,
}

#[derive(Default)]
struct QueueState {
    items: WaitingItems,
    /// The agents beside the main one that read what is for them.
    listeners: HashSet<AgentId>,
    is_closed: bool,
    is_abandoned: bool,
}

impl QueueState {
    fn push(&mut self, item: Item) {
        if !self.is_abandoned {
            self.items.push(item);
        }
    }
}

impl Queue {
    /// An empty queue that calls back at every delivery.
    pub(crate) fn new(watch: Option<DeliveryWatch>) -> Self {
        Self { watch, ..Self::default() }
    }

    pub(crate) fn push(&self, item: Item) {
        self.state.lock().push(item);
        self.changed.notify_waiters();
    }

    /// No more input of a person will be pushed.
    pub(crate) fn close(&self) {
        self.state.lock().is_closed = true;
        self.changed.notify_waiters();
    }

    /// Drops everything and takes no more: the session is ending.
    pub(crate) fn abandon(&self) {
        let mut state = self.state.lock();
        state.items = WaitingItems::default();
        state.is_closed = true;
        state.is_abandoned = true;
        drop(state);
        self.changed.notify_waiters();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state.lock().is_closed
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        self.state.lock().is_abandoned
    }

    /// The pending items of an agent, most urgent first. They stay until they are `delivered`.
    pub(crate) fn pending(&self, addressee: Option<&AgentId>) -> Vec<Item> {
        self.state.lock().items.of(addressee).cloned().collect()
    }

    /// Tells whether an item waits, for whichever agent.
    pub(crate) fn holds(&self, id: RecordId) -> bool {
        self.state.lock().items.all().any(|item| item.id == id)
    }

    /// Tells whether anything waits for an agent.
    pub(crate) fn has_pending(&self, agent: &AgentId) -> bool {
        self.state.lock().items.of(Some(agent)).next().is_some()
    }

    /// The same, if something of it begins a turn by itself.
    pub(crate) fn due(&self, addressee: Option<&AgentId>) -> Vec<Item> {
        let state = self.state.lock();
        if state.items.of(addressee).any(Item::wakes) {
            return state.items.of(addressee).cloned().collect();
        }
        Vec::new()
    }

    /// The number of pending messages from agents to an agent, and their bytes.
    pub(crate) fn mail_load(&self, addressee: Option<&AgentId>) -> (usize, usize) {
        self.state.lock().items.mail_load(addressee)
    }

    /// Puts the notice that a member is idle before the lead, in the place of an earlier one that the lead has not read.
    /// One that says something else stays.
    pub(crate) fn tell_idle(&self, member: &AgentId, notice: Item) {
        let mut state = self.state.lock();
        state.items.take_of(None, |item| {
            matches!(&item.origin, Origin::TeammateIdle { member: of, wakes: Wakes::Never, .. } if of == member)
        });
        state.push(notice);
        drop(state);
        self.changed.notify_waiters();
    }

    /// All members of the team are idle: what the lead has to hear begins a turn now.
    pub(crate) fn tell_all_idle(&self) {
        let mut state = self.state.lock();
        state.items.change_of(None, |item| {
            if let Origin::TeammateIdle { wakes, .. } = &mut item.origin
                && *wakes == Wakes::WhenAllAreIdle
            {
                *wakes = Wakes::AtOnce;
            }
        });
        drop(state);
        self.changed.notify_waiters();
    }

    /// Takes away items that a recorded turn contains.
    pub(crate) fn delivered(&self, ids: &[RecordId]) {
        let mut state = self.state.lock();
        for id in ids {
            state.items.take(*id, |_| true);
        }
        drop(state);
        if let Some(watch) = self.watch.as_ref().filter(|_| !ids.is_empty()) {
            watch(ids);
        }
    }

    /// Takes items away that another process holds, too, and brings again.
    pub(crate) fn withdraw_all(&self, ids: &[RecordId]) {
        let mut state = self.state.lock();
        for id in ids {
            state.items.take(*id, |_| true);
        }
    }

    /// Waits until something is pending for an agent beside these items.
    pub(crate) async fn await_others(
        &self,
        agent: &AgentId,
        known: &HashSet<RecordId>,
    ) -> Vec<Item> {
        self.wait(|queue| {
            let pending = queue.pending(Some(agent)).into_iter();
            let new: Vec<Item> = pending.filter(|item| !known.contains(&item.id)).collect();
            (!new.is_empty()).then_some(new)
        })
        .await
    }

    /// Takes an item away for a caller that tells of it in another way; `false` if it is told already.
    pub(crate) fn claim(&self, id: RecordId) -> bool {
        self.state.lock().items.take(id, |_| true)
    }

    /// Takes back what a person said; `false` if an agent has it already, or a person did not say it.
    pub(crate) fn withdraw(&self, id: RecordId) -> bool {
        self.state.lock().items.take(id, |item| matches!(item.origin, Origin::Person))
    }

    /// Tells whether something of a schedule still waits.
    pub(crate) fn holds_schedule(&self, id: &str) -> bool {
        let state = self.state.lock();
        state.items.all().any(|item| item.origin.is_of_schedule(id))
    }

    /// Takes away what a schedule has queued: it was deleted.
    pub(crate) fn withdraw_schedule(&self, schedule: &str) {
        let mut state = self.state.lock();
        state.items.take_of(
            None,
            |item| matches!(&item.origin, Origin::Schedule { id, .. } if id == schedule),
        );
    }

    /// From now on an agent reads what is for it.
    pub(crate) fn listen(&self, agent: &AgentId) {
        let mut state = self.state.lock();
        state.listeners.insert(agent.clone());
    }

    /// An agent reads nothing more; `None` if something is pending for it, and then it continues. See
    /// [`Queue::leave`].
    pub(crate) fn leave_if_idle(&self, agent: &AgentId, heir: Option<&AgentId>) -> Option<usize> {
        let state = self.state.lock();
        if state.items.of(Some(agent)).next().is_some() {
            return None;
        }
        Some(self.leave_locked(state, agent, heir))
    }

    /// Removes an agent as a recipient. Its news go to the main agent, the output of hooks to its `heir`. Returns how
    /// many messages stay pending for it until it is resumed.
    pub(crate) fn leave(&self, agent: &AgentId, heir: Option<&AgentId>) -> usize {
        self.leave_locked(self.state.lock(), agent, heir)
    }

    fn leave_locked(
        &self,
        mut state: MutexGuard<'_, QueueState>,
        agent: &AgentId,
        heir: Option<&AgentId>,
    ) -> usize {
        state.listeners.remove(agent);
        let heir = heir.filter(|heir| state.listeners.contains(*heir)).cloned();
        let (mut has_moved, mut unread) = (false, 0);
        state.items.change_of(Some(agent), |item| match item.origin {
            Origin::TaskNotification { .. } => {
                item.addressee = None;
                has_moved = true;
            }
            Origin::Hook => {
                item.addressee.clone_from(&heir);
                has_moved = true;
            }
            Origin::Message { .. } => unread += 1,
            _ => {}
        });
        drop(state);
        if has_moved {
            self.changed.notify_waiters();
        }
        unread
    }

    /// Puts news before an agent that reads what is for it, or else before the main agent.
    pub(crate) fn tell(&self, agent: Option<&AgentId>, news: Item) {
        let mut state = self.state.lock();
        let addressee = agent.filter(|agent| state.listeners.contains(*agent)).cloned();
        state.push(Item { addressee, ..news });
        drop(state);
        self.changed.notify_waiters();
    }

    /// Waits until something is due for an agent; `None` when the queue is closed and nothing is.
    pub(crate) async fn next(&self, addressee: Option<&AgentId>) -> Option<Vec<Item>> {
        self.wait(|queue| match queue.due(addressee) {
            due if !due.is_empty() => Some(Some(due)),
            _ => queue.is_closed().then_some(None),
        })
        .await
    }

    /// Waits until something is due for an agent, though the input is closed; `None` when the session is to end
    /// instead.
    pub(crate) async fn arrival(&self, addressee: Option<&AgentId>) -> Option<Vec<Item>> {
        self.wait(|queue| match queue.due(addressee) {
            due if !due.is_empty() => Some(Some(due)),
            _ => queue.is_abandoned().then_some(None),
        })
        .await
    }

    async fn wait<T>(&self, look: impl Fn(&Self) -> Option<T>) -> T {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // Registered before the look, so that a push in between is not missed.
            changed.as_mut().enable();
            if let Some(found) = look(self) {
                return found;
            }
            changed.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::manner::Manner;
    use centurion_protocol::{Block, SeededWorld, World};

    fn item(world: &SeededWorld, priority: Priority, text: &str) -> Item {
        Item {
            id: world.record_id(),
            priority,
            addressee: None,
            content: vec![Block::text(text)],
            origin: Origin::Person,
            manner: Manner::default(),
        }
    }

    fn texts(items: &[Item]) -> Vec<String> {
        let text = |item: &Item| match &item.content[0] {
            Block::Text(text) => text.clone(),
            other => panic!("{other:?}"),
        };
        items.iter().map(text).collect()
    }

    #[test]
    fn a_persons_input_goes_before_news_of_background_work() {
        // S-220
        let (world, queue) = (SeededWorld::new(1), Queue::default());
        for (priority, text) in [
            (Priority::Later, "news"),
            (Priority::Next, "one"),
            (Priority::Now, "stop"),
            (Priority::Next, "two"),
        ] {
            queue.push(item(&world, priority, text));
        }
        assert_eq!(texts(&queue.pending(None)), ["stop", "one", "two", "news"]);
    }

    #[tokio::test]
    async fn an_item_stays_until_it_is_delivered_and_a_closed_queue_ends() {
        let (world, queue) = (SeededWorld::new(1), Queue::default());
        queue.push(item(&world, Priority::Next, "hello"));
        queue.close();
        let due = queue.next(None).await.unwrap();
        assert_eq!(queue.pending(None).len(), 1, "looking does not take it away");
        queue.delivered(&[due[0].id]);
        assert!(queue.next(None).await.is_none());
    }

    #[test]
    fn an_item_can_be_claimed_once_and_not_after_it_was_delivered() {
        // I-3
        let (world, queue) = (SeededWorld::new(1), Queue::default());
        let (one, two) =
            (item(&world, Priority::Later, "one"), item(&world, Priority::Later, "two"));
        let (first, second) = (one.id, two.id);
        queue.push(one);
        queue.push(two);
        queue.delivered(&[second]);
        assert!(!queue.claim(second) && queue.claim(first) && !queue.claim(first));
        assert!(queue.pending(None).is_empty());
    }

    #[tokio::test]
    async fn an_abandoned_queue_takes_nothing_and_wakes_who_waits() {
        let (world, queue) = (SeededWorld::new(1), Queue::default());
        queue.abandon();
        queue.push(item(&world, Priority::Next, "too late"));
        assert!(queue.pending(None).is_empty());
        assert!(queue.arrival(None).await.is_none());
    }

    #[test]
    fn what_a_schedule_queued_can_be_found_and_withdrawn() {
        // S-216
        let (world, queue) = (SeededWorld::new(1), Queue::default());
        let due = |id: &str| Origin::Schedule { id: id.to_owned(), due: world.now() };
        let missed = Origin::MissedSchedules { ids: vec!["c".to_owned()], until: world.now() };
        for origin in [due("a"), due("b"), missed] {
            queue.push(Item { origin, ..item(&world, Priority::Later, "prompt") });
        }
        queue.withdraw_schedule("a");
        queue.withdraw_schedule("c");
        let held = ["a", "b", "c", "d"].map(|id| queue.holds_schedule(id));
        assert_eq!(held, [false, true, true, false], "what was missed is told all the same");
        queue.delivered(&queue.pending(None).iter().map(|item| item.id).collect::<Vec<_>>());
        assert!(!queue.holds_schedule("b") && !queue.holds_schedule("c"));
    }

    #[test]
    fn news_goes_to_listeners_and_messages_wait_for_agents_that_left() {
        // I-3, S-211, S-229
        let (world, queue) = (SeededWorld::new(1), Queue::default());
        let child = world.agent_id();
        let news = |text| Item {
            origin: Origin::TaskNotification { run: None },
            ..item(&world, Priority::Later, text)
        };
        queue.tell(Some(&child), news("too early"));
        queue.listen(&child);
        queue.tell(Some(&child), news("in time"));
        queue.push(Item {
            addressee: Some(child.clone()),
            origin: Origin::Message { from: "The agent bob".to_owned(), hands_over: None },
            ..item(&world, Priority::Next, "hello")
        });
        assert_eq!(queue.leave_if_idle(&child, None), None, "there is something to read");
        assert_eq!(texts(&queue.pending(Some(&child))), ["hello", "in time"]);
        assert_eq!(queue.leave(&child, None), 1);
        queue.tell(Some(&child), news("too late"));
        assert_eq!(texts(&queue.pending(Some(&child))), ["hello"]);
        assert_eq!(texts(&queue.pending(None)), ["too early", "in time", "too late"]);
        queue.listen(&child);
        queue
            .delivered(&queue.pending(Some(&child)).iter().map(|item| item.id).collect::<Vec<_>>());
        assert_eq!(queue.leave_if_idle(&child, None), Some(0));
    }

    #[test]
    fn what_a_hook_says_to_an_agent_that_leaves_is_for_its_heir() {
        let (world, queue) = (SeededWorld::new(1), Queue::default());
        let (parent, child) = (world.agent_id(), world.agent_id());
        queue.listen(&parent);
        let said = |text| Item {
            addressee: Some(child.clone()),
            origin: Origin::Hook,
            ..item(&world, Priority::Later, text)
        };
        queue.push(said("one"));
        assert_eq!(queue.leave(&child, Some(&parent)), 0);
        assert_eq!(texts(&queue.pending(Some(&parent))), ["one"]);
        queue.push(said("two"));
        queue.leave(&parent, None);
        queue.leave(&child, Some(&parent));
        assert_eq!(
            texts(&queue.pending(None)),
            ["one", "two"],
            "the main agent hears what no other can"
        );
    }

    #[tokio::test]
    async fn notices_of_idle_members_wake_the_lead_once_when_all_are_idle() {
        // D-64, teams.md 10.11
        let (world, queue) = (SeededWorld::new(1), Queue::default());
        let (one, two) = (world.agent_id(), world.agent_id());
        let notice = |member: &AgentId, wakes, text: &str| Item {
            origin: Origin::TeammateIdle { member: member.clone(), run: "r".to_owned(), wakes },
            ..item(&world, Priority::Later, text)
        };
        queue.tell_idle(&one, notice(&one, Wakes::Never, "one reported"));
        queue.tell_all_idle();
        assert!(queue.due(None).is_empty(), "the lead knows already");
        queue.tell_idle(&one, notice(&one, Wakes::WhenAllAreIdle, "one said something"));
        queue.tell_idle(&two, notice(&two, Wakes::WhenAllAreIdle, "two said something"));
        assert!(queue.due(None).is_empty());
        assert_eq!(
            queue.pending(None).len(),
            2,
            "a newer notice takes the place of one that said nothing"
        );
        queue.tell_all_idle();
        let due = queue.arrival(None).await.unwrap();
        assert_eq!(texts(&due), ["one said something", "two said something"]);
        queue.delivered(&due.iter().map(|item| item.id).collect::<Vec<_>>());
        queue.tell_idle(&one, notice(&one, Wakes::AtOnce, "one failed"));
        assert_eq!(texts(&queue.due(None)), ["one failed"]);
        queue.tell_idle(&two, notice(&two, Wakes::Never, "two is idle"));
        assert_eq!(queue.due(None).len(), 2, "it goes along");
        queue.close();
        queue.delivered(&queue.pending(None).iter().map(|item| item.id).collect::<Vec<_>>());
        queue.tell_idle(&two, notice(&two, Wakes::Never, "two is idle"));
        assert!(queue.next(None).await.is_none(), "it keeps no session open");
    }

    #[test]
    fn items_reach_only_their_addressee() {
        // S-211
        let (world, queue) = (SeededWorld::new(1), Queue::default());
        let child = world.agent_id();
        queue.push(Item {
            addressee: Some(child.clone()),
            ..item(&world, Priority::Next, "for the child")
        });
        assert!(queue.pending(None).is_empty());
        assert_eq!(queue.pending(Some(&child)).len(), 1);
    }
}
