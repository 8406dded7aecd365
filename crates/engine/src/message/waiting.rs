//! The items of the queue, in the order in which they are due. An item is found by its agent or its id without a look at
//! the others: thousands may wait.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use centurion_protocol::{AgentId, Block, RecordId};

use super::queue::{Item, Origin, Priority};

/// The place of an item: the most urgent first, and then the one that came first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place(Priority, u64);

/// All items that wait.
#[derive(Default)]
pub(super) struct Waiting {
    items: BTreeMap<Place, Item>,
    /// A host may give the same id to several.
    by_id: HashMap<RecordId, Vec<Place>>,
    by_agent: HashMap<Option<AgentId>, Share>,
    pushed: u64,
}

/// The pending items of one agent.
#[derive(Default)]
struct Share {
    places: BTreeSet<Place>,
    /// The number of pending messages from agents, and their bytes.
    mail: (usize, usize),
}

impl Waiting {
    pub(super) fn push(&mut self, item: Item) {
        self.pushed += 1;
        self.insert(Place(item.priority, self.pushed), item);
    }

    fn insert(&mut self, place: Place, item: Item) {
        let share = self.by_agent.entry(item.addressee.clone()).or_default();
        share.places.insert(place);
        if let Some(bytes) = mail_bytes(&item) {
            share.mail = (share.mail.0 + 1, share.mail.1 + bytes);
        }
        self.by_id.entry(item.id).or_default().push(place);
        self.items.insert(place, item);
    }

    fn remove(&mut self, place: Place) -> Option<Item> {
        let item = self.items.remove(&place)?;
        if let Some(share) = self.by_agent.get_mut(&item.addressee) {
            share.places.remove(&place);
            if let Some(bytes) = mail_bytes(&item) {
                share.mail = (share.mail.0 - 1, share.mail.1 - bytes);
            }
            if share.places.is_empty() {
                self.by_agent.remove(&item.addressee);
            }
        }
        if let Some(places) = self.by_id.get_mut(&item.id) {
            places.retain(|other| *other != place);
            if places.is_empty() {
                self.by_id.remove(&item.id);
            }
        }
        Some(item)
    }

    /// Takes the items with an id away, as far as they are meant; whether there were any.
    pub(super) fn take(&mut self, id: RecordId, is_meant: impl Fn(&Item) -> bool) -> bool {
        let places = self.by_id.get(&id).cloned().unwrap_or_default();
        let meant = |place: &Place| self.items.get(place).is_some_and(&is_meant);
        let places: Vec<Place> = places.into_iter().filter(meant).collect();
        places.into_iter().filter_map(|place| self.remove(place)).count() > 0
    }

    /// Takes away what is meant of an agent's items.
    pub(super) fn take_of(&mut self, agent: Option<&AgentId>, is_meant: impl Fn(&Item) -> bool) {
        let places = self.places(agent);
        for place in places {
            if self.items.get(&place).is_some_and(&is_meant) {
                self.remove(place);
            }
        }
    }

    /// Changes the items of an agent, which may be another agent's afterwards.
    pub(super) fn change_of(&mut self, agent: Option<&AgentId>, mut change: impl FnMut(&mut Item)) {
        for place in self.places(agent) {
            if let Some(mut item) = self.remove(place) {
                change(&mut item);
                self.insert(place, item);
            }
        }
    }

    fn places(&self, agent: Option<&AgentId>) -> Vec<Place> {
        let share = self.by_agent.get(&agent.cloned());
        share.into_iter().flat_map(|share| &share.places).copied().collect()
    }

    /// The pending items of an agent, most urgent first.
    pub(super) fn of(&self, agent: Option<&AgentId>) -> impl Iterator<Item = &Item> {
        let share = self.by_agent.get(&agent.cloned());
        let places = share.into_iter().flat_map(|share| &share.places);
        places.filter_map(|place| self.items.get(place))
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
