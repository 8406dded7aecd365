//! The one budget: money and tokens are reserved before a request and settled after it.
//!
//! Budgets form a tree. A reservation is taken from every level up to the root in one step or not at all,
//! so that no level is exceeded by more than the requests in flight. A limit of zero means nothing may
//! be spent.
//!
//! A level is an [`Account`], which outlives the run of its agent: a resumed agent spends what is left, below the
//! agent that asked for it this time.

use std::fmt;
use std::ops::AddAssign;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use parking_lot::{Mutex, MutexGuard};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use thiserror::Error;

/// Money and tokens that go together, such as those of one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Amount {
    #[serde(deserialize_with = "not_negative")]
    pub(crate) dollars: f64,
    pub(crate) tokens: u64,
}

/// Reads an amount of money of another process. One below zero would give others more to spend.
pub(crate) fn not_negative<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let dollars = f64::deserialize(deserializer)?;
    if dollars < 0.0 {
        return Err(D::Error::custom("an amount of money is below zero"));
    }
    Ok(dollars)
}

impl AddAssign for Amount {
    fn add_assign(&mut self, other: Self) {
        self.dollars += other.dollars;
        self.tokens = self.tokens.saturating_add(other.tokens);
    }
}

/// A limit on spending; `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limit {
    pub dollars: Option<f64>,
    pub tokens: Option<u64>,
}

impl From<Option<f64>> for Limit {
    fn from(dollars: Option<f64>) -> Self {
        Self { dollars, tokens: None }
    }
}

/// The limit and the spending of one agent with everything below it, over all its runs.
#[derive(Debug)]
pub(crate) struct Account {
    limit: Limit,
    state: Mutex<BudgetState>,
}

/// The money of one run: the agent's own account and those of all agents above it.
#[derive(Debug)]
pub(crate) struct Budget {
    /// Its own first, the session's last, each once.
    line: Vec<Arc<Account>>,
    /// The accounts of another process that stand above these.
    above: Option<Arc<dyn AccountsAbove>>,
}

/// The accounts of the process that leads this one.
pub(crate) trait AccountsAbove: fmt::Debug + Send + Sync {
    /// Sets an amount aside there. What comes back names it.
    fn reserve(&self, amount: Amount) -> BoxFuture<'_, Result<u64, OverBudget>>;

    /// Ends a reservation, which cost this.
    fn close(&self, reservation: u64, cost: Amount);
}

#[derive(Debug, Default)]
struct BudgetState {
    spent: Amount,
    reserved: Amount,
    /// The number of open reservations; without any, nothing is left over from rounding.
    open: usize,
}

/// Money and tokens set aside for one request. Dropping it without settling gives them back.
#[derive(Debug)]
pub(crate) struct Reservation {
    budget: Arc<Budget>,
    amount: Amount,
    cost: Amount,
    /// The name of the same reservation in the process above.
    above: Option<u64>,
}

/// A number of one of the two things that a budget counts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Quantity {
    Dollars(f64),
    Tokens(u64),
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dollars(dollars) => {
                // Requests cost fractions of a cent, limits are seldom written in them.
                let is_round = (dollars * 100.0 - (dollars * 100.0).round()).abs() < 1e-6;
                if is_round { write!(f, "${dollars:.2}") } else { write!(f, "${dollars:.4}") }
            }
            Self::Tokens(1) => f.write_str("1 token"),
            Self::Tokens(tokens) => write!(f, "{tokens} tokens"),
        }
    }
}

/// The owner of a budget, seen from the agent that wanted to spend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum BudgetLevel {
    Own,
    /// An agent above it.
    Above,
    Session,
}

impl fmt::Display for BudgetLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Own => "the agent's budget",
            Self::Above => "the budget of an agent above this one",
            Self::Session => "the session's budget",
        })
    }
}

/// The limit that does not pay for a request, and its level.
#[derive(Clone, Copy, Debug, PartialEq, Error, Serialize, Deserialize)]
#[error("{level} of {limit} does not pay for another request: {spent} spent{}", held(*.reserved))]
pub struct OverBudget {
    pub(crate) limit: Quantity,
    pub(crate) spent: Quantity,
    /// The amount reserved for requests under way.
    pub(crate) reserved: Quantity,
    pub(crate) level: BudgetLevel,
}

fn held(reserved: Quantity) -> String {
    match reserved {
        Quantity::Tokens(0) => String::new(),
        Quantity::Dollars(dollars) if dollars <= 0.0 => String::new(),
        some => format!(", {some} held for requests under way"),
    }
}

impl Budget {
    #[cfg(test)]
    pub(crate) fn root(limit: impl Into<Limit>) -> Arc<Self> {
        Self::root_below(limit, None)
    }

    /// The budget of a session whose accounts of another process stand above.
    pub(crate) fn root_below(
        limit: impl Into<Limit>,
        above: Option<Arc<dyn AccountsAbove>>,
    ) -> Arc<Self> {
        Arc::new(Self { line: vec![Account::new(limit.into(), Amount::default())], above })
    }

    /// A part of this budget, with a limit of its own.
    pub(crate) fn child(&self, limit: impl Into<Limit>) -> Arc<Self> {
        self.with(&Account::new(limit.into(), Amount::default()))
    }

    /// The part of this budget that is spent from an account. One that stands above already is not charged
    /// twice: an agent may be resumed by one that it had started.
    pub(crate) fn with(&self, account: &Arc<Account>) -> Arc<Self> {
        let above = self.line.iter().filter(|other| !Arc::ptr_eq(other, account));
        let line = std::iter::once(account).chain(above).cloned().collect();
        Arc::new(Self { line, above: self.above.clone() })
    }

    /// Sets `amount` aside here and, before that, in the process above, if there is one.
    pub(crate) async fn set_aside(
        self: &Arc<Self>,
        amount: Amount,
    ) -> Result<Reservation, OverBudget> {
        let Some(above) = &self.above else { return self.reserve(amount) };
        let name = above.reserve(amount).await?;
        match self.reserve(amount) {
            Ok(mut reservation) => {
                reservation.above = Some(name);
                Ok(reservation)
            }
            Err(refused) => {
                above.close(name, Amount::default());
                Err(refused)
            }
        }
    }

    /// Sets `amount` aside here and in every budget above, or says which of them has not that much left.
    pub(crate) fn reserve(self: &Arc<Self>, amount: Amount) -> Result<Reservation, OverBudget> {
        for (at, account) in self.line.iter().enumerate() {
            if let Err((limit, spent, reserved)) = account.take(amount) {
                for other in self.line.iter().take(at) {
                    other.close(amount, Amount::default());
                }
                let level = match at {
                    _ if at + 1 == self.line.len() => BudgetLevel::Session,
                    0 => BudgetLevel::Own,
                    _ => BudgetLevel::Above,
                };
                return Err(OverBudget { limit, spent, reserved, level });
            }
        }
        let budget = Arc::clone(self);
        Ok(Reservation { budget, amount, cost: Amount::default(), above: None })
    }

    /// The money that is left of the whole session's; `None` without a limit.
    pub(crate) fn left_of_session(&self) -> Option<f64> {
        let account = self.line.last()?;
        Some((account.most_dollars()? - account.spent().dollars).max(0.0))
    }

    /// The spending here and below.
    #[cfg(test)]
    pub(crate) fn spent(&self) -> Amount {
        self.line[0].state().spent
    }
}

impl Account {
    /// An account from which something may have been spent before.
    pub(crate) fn new(limit: Limit, spent: Amount) -> Arc<Self> {
        let state = BudgetState { spent, ..BudgetState::default() };
        Arc::new(Self { limit, state: Mutex::new(state) })
    }

    /// The spending so far, of the agent and of all below it.
    pub(crate) fn spent(&self) -> Amount {
        self.state().spent
    }

    /// The limit of the money; `None` where there is none.
    pub(crate) fn most_dollars(&self) -> Option<f64> {
        self.limit.dollars
    }

    /// Sets both parts aside, or says of the one that does not fit: the limit, what is spent and what is
    /// set aside already.
    fn take(&self, amount: Amount) -> Result<(), (Quantity, Quantity, Quantity)> {
        let mut state = self.state();
        let BudgetState { spent, reserved, .. } = *state;
        let dollars = spent.dollars + reserved.dollars + amount.dollars;
        if let Some(limit) = self.limit.dollars
            && (dollars > limit || dollars.is_nan())
        {
            let [limit, spent, reserved] =
                [limit, spent.dollars, reserved.dollars].map(Quantity::Dollars);
            return Err((limit, spent, reserved));
        }
        let tokens = spent.tokens.saturating_add(reserved.tokens).saturating_add(amount.tokens);
        if let Some(limit) = self.limit.tokens
            && tokens > limit
        {
            let [limit, spent, reserved] =
                [limit, spent.tokens, reserved.tokens].map(Quantity::Tokens);
            return Err((limit, spent, reserved));
        }
        state.reserved.dollars += amount.dollars;
        state.reserved.tokens = reserved.tokens.saturating_add(amount.tokens);
        state.open += 1;
        Ok(())
    }

    /// Ends a reservation of `amount`, which cost `cost`.
    fn close(&self, amount: Amount, cost: Amount) {
        let mut state = self.state();
        state.spent += cost;
        state.open = state.open.saturating_sub(1);
        state.reserved = match state.open {
            0 => Amount::default(),
            _ => Amount {
                dollars: (state.reserved.dollars - amount.dollars).max(0.0),
                tokens: state.reserved.tokens.saturating_sub(amount.tokens),
            },
        };
    }

    fn state(&self) -> MutexGuard<'_, BudgetState> {
        self.state.lock()
    }
}

impl Reservation {
    /// Replaces the estimate by what the request really cost.
    pub(crate) fn settle(mut self, cost: Amount) {
        self.cost = cost;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        for account in &self.budget.line {
            account.close(self.amount, self.cost);
        }
        if let (Some(above), Some(name)) = (&self.budget.above, self.above) {
            above.close(name, self.cost);
        }
    }
}

#[cfg(test)]
mod tests;
