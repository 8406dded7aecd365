//! The one budget: money is reserved before a request and settled after it.
//!
//! Budgets form a tree. A reservation is taken from every level up to the root in one step or not at all,
//! so that no level is exceeded by more than the requests in flight. A limit of zero means nothing may
//! be spent.

use std::sync::{Arc, Mutex, PoisonError};

/// What an agent and its descendants may spend, in dollars.
#[derive(Debug)]
pub(crate) struct Budget {
    parent: Option<Arc<Self>>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// `None` is no limit.
    limit: Option<f64>,
    spent: f64,
    reserved: f64,
}

/// Money set aside for one request. Dropping it without settling gives it back.
#[derive(Debug)]
pub(crate) struct Reservation {
    budget: Arc<Budget>,
    amount: f64,
}

impl Budget {
    pub(crate) fn root(limit: Option<f64>) -> Arc<Self> {
        Self::new(None, limit)
    }

    /// A part of this budget, with a limit of its own.
    pub(crate) fn child(self: &Arc<Self>, limit: Option<f64>) -> Arc<Self> {
        Self::new(Some(Arc::clone(self)), limit)
    }

    fn new(parent: Option<Arc<Self>>, limit: Option<f64>) -> Arc<Self> {
        let state = State { limit, spent: 0.0, reserved: 0.0 };
        Arc::new(Self { parent, state: Mutex::new(state) })
    }

    /// Sets `amount` aside here and in every budget above; `None` when one of them has not that much left.
    pub(crate) fn reserve(self: &Arc<Self>, amount: f64) -> Option<Reservation> {
        let mut taken: Vec<&Self> = Vec::new();
        let mut next = Some(&**self);
        while let Some(budget) = next {
            if !budget.take(amount) {
                for other in taken {
                    other.give_back(amount);
                }
                return None;
            }
            taken.push(budget);
            next = budget.parent.as_deref();
        }
        Some(Reservation { budget: Arc::clone(self), amount })
    }

    fn take(&self, amount: f64) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = state.limit.is_none_or(|limit| state.spent + state.reserved + amount <= limit);
        if fits {
            state.reserved += amount;
        }
        fits
    }

    fn give_back(&self, amount: f64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.reserved = (state.reserved - amount).max(0.0);
    }

    /// What has been spent here and below.
    pub(crate) fn spent(&self) -> f64 {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).spent
    }
}

impl Reservation {
    /// Replaces the estimate by what the request really cost.
    pub(crate) fn settle(self, cost: f64) {
        let mut next = Some(&*self.budget);
        while let Some(budget) = next {
            budget.state.lock().unwrap_or_else(PoisonError::into_inner).spent += cost;
            next = budget.parent.as_deref();
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut next = Some(&*self.budget);
        while let Some(budget) = next {
            budget.give_back(self.amount);
            next = budget.parent.as_deref();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_reserved_cannot_be_reserved_again() {
        let budget = Budget::root(Some(1.0));
        let first = budget.reserve(0.6).unwrap();
        assert!(budget.reserve(0.6).is_none());
        first.settle(0.1);
        assert!((budget.spent() - 0.1).abs() < 1e-9);
        assert!(budget.reserve(0.9).is_some());
    }

    #[test]
    fn a_dropped_reservation_costs_nothing_and_zero_means_none() {
        let budget = Budget::root(Some(1.0));
        drop(budget.reserve(1.0));
        assert!(budget.reserve(1.0).is_some());
        assert!(Budget::root(Some(0.0)).reserve(0.000_001).is_none());
        assert!(Budget::root(None).reserve(1e9).is_some());
    }

    #[test]
    fn a_child_cannot_hold_more_than_its_parent_has_left() {
        let root = Budget::root(Some(1.0));
        let child = root.child(None);
        let held = child.reserve(0.8).unwrap();
        assert!(child.reserve(0.3).is_none());
        held.settle(0.8);
        assert!((root.spent() - 0.8).abs() < 1e-9);
    }
}
