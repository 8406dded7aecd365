//! The items of the queue, in the order in which they are due. An item is found by its agent or its id without a look at
//! the others: thousands may wait.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use centurion_protocol::{AgentId, Block, RecordId};

use super::queue::{Item, Origin, Priority};

/// The rank of an item: the most urgent first, and then the one that came first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank(Priority, u64);

/// All items that wait.
#[derive(Default)]
pub(super) struct WaitingItems {
    items: BTreeMap<Rank, Item>,
    /// A host may give the same id to several.
    by_id: HashMap<RecordId, Vec<Rank>>,
    by_agent: HashMap<Option<AgentId>, Share>,
    pushed: u64,
}

/// The pending items of one agent.
#[derive(Default)]
struct Share {
    ranks: BTreeSet<Rank>,
    /// The number of pending messages from agents, and their bytes.
    mail: (usize, usize),
}

impl WaitingItems {
    pub(super) fn push(&mut self, item: Item) {
        self.pushed += 1;
        self.insert(Rank(item.priority, self.pushed), item);
    }

    fn insert(&mut self, rank: Rank, item: Item) {
        let share = self.by_agent.entry(item.addressee.clone()).or_default();
        share.ranks.insert(rank);
        if let Some(bytes) = mail_bytes(&item) {
            share.mail = (share.mail.0 + 1, share.mail.1 + bytes);
        }
        self.by_id.entry(item.id).or_default().push(rank);
        self.items.insert(rank, item);
    }

    fn remove(&mut self, rank: Rank) -> Option<Item> {
        let item = self.items.remove(&rank)?;
        if let Some(share) = self.by_agent.get_mut(&item.addressee) {
            share.ranks.remove(&rank);
            if let Some(bytes) = mail_bytes(&item) {
                share.mail = (share.mail.0 - 1, share.mail.1 - bytes);
            }
            if share.ranks.is_empty() {
                self.by_agent.remove(&item.addressee);
            }
        }
        if let Some(ranks) = self.by_id.get_mut(&item.id) {
            ranks.retain(|other| *other != rank);
            if ranks.is_empty() {
                self.by_id.remove(&item.id);
            }
        }
        Some(item)
    }

    /// Removes the matching items with an id. Returns whether there were any.
    pub(super) fn take(&mut self, id: RecordId, is_meant: impl Fn(&Item) -> bool) -> bool {
        let ranks = self.by_id.get(&id).cloned().unwrap_or_default();
        let meant = |rank: &Rank| self.items.get(rank).is_some_and(&is_meant);
        let ranks: Vec<Rank> = ranks.into_iter().filter(meant).collect();
        ranks.into_iter().filter_map(|rank| self.remove(rank)).count() > 0
    }

    /// Takes away what is meant of an agent's items.
    pub(super) fn take_of(&mut self, agent: Option<&AgentId>, is_meant: impl Fn(&Item) -> bool) {
        let ranks = self.ranks(agent);
        for rank in ranks {
            if self.items.get(&rank).is_some_and(&is_meant) {
                self.remove(rank);
            }
        }
    }

    /// Changes the items of an agent, which may be another agent's afterwards.
    pub(super) fn change_of(&mut self, agent: Option<&AgentId>, mut change: impl FnMut(&mut Item)) {
        for rank in self.ranks(agent) {
            if let Some(mut item) = self.remove(rank) {
                change(&mut item);
                self.insert(rank, item);
            }
        }
    }

    fn ranks(&self, agent: Option<&AgentId>) -> Vec<Rank> {
        let share = self.by_agent.get(&agent.cloned());
        share.into_iter().flat_map(|share| &share.ranks).copied().collect()
    }

    /// The pending items of an agent, most urgent first.
    pub(super) fn of(&self, agent: Option<&AgentId>) -> impl Iterator<Item = &Item> {
        let share = self.by_agent.get(&agent.cloned());
        let ranks = share.into_iter().flat_map(|share| &share.ranks);
        ranks.filter_map(|rank| self.items.get(rank))
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Item> {
        self.items.values()
    }

    /// The number of pending messages from agents to an agent, and their bytes.
    pub(super) fn mail_load(&self, agent: Option<&AgentId>) -> (usize, usize) {
        self.by_agent.get(&agent.cloned()).map(|share| share.mail).unwrap_or_default()
    }
}

/// The size of a message of an agent; `None` for other items.
fn mail_bytes(item: &Item) -> Option<usize> {
    matches!(item.origin, Origin::Message { .. }).then(|| match item.content.first() {
        Some(Block::Text(text)) => text.len(),
        _ => 0,
    })
}
