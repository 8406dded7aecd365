//! Money and tokens in trees of budgets.

use proptest::prelude::*;

use super::*;

fn dollars(dollars: f64) -> Amount {
    Amount { dollars, tokens: 0 }
}

fn tokens(tokens: u64) -> Amount {
    Amount { dollars: 0.0, tokens }
}

fn limit(dollars: Option<f64>, tokens: Option<u64>) -> Limit {
    Limit { dollars, tokens }
}

#[track_caller]
fn assert_close(amount: Amount, dollars: f64, tokens: u64) {
    assert!((amount.dollars - dollars).abs() < 1e-9, "{amount:?}");
    assert_eq!(amount.tokens, tokens);
}

#[test]
fn what_is_reserved_cannot_be_reserved_again() {
    let budget = Budget::root(limit(Some(1.0), Some(1000)));
    let first = budget.reserve(Amount { dollars: 0.6, tokens: 600 }).unwrap();
    assert!(budget.reserve(dollars(0.6)).is_err());
    assert!(budget.reserve(tokens(600)).is_err());
    first.settle(Amount { dollars: 0.1, tokens: 100 });
    assert_close(budget.spent(), 0.1, 100);
    assert!(budget.reserve(Amount { dollars: 0.9, tokens: 900 }).is_ok());
}

#[test]
fn a_dropped_reservation_costs_nothing_and_zero_means_none() {
    let budget = Budget::root(limit(Some(1.0), Some(10)));
    drop(budget.reserve(Amount { dollars: 1.0, tokens: 10 }));
    assert!(budget.reserve(Amount { dollars: 1.0, tokens: 10 }).is_ok());
    assert!(Budget::root(Some(0.0)).reserve(dollars(0.000_001)).is_err());
    assert!(Budget::root(limit(None, Some(0))).reserve(tokens(1)).is_err());
    assert!(Budget::root(None).reserve(Amount { dollars: 1e9, tokens: u64::MAX }).is_ok());
    assert!(Budget::root(Some(1.0)).reserve(dollars(f64::NAN)).is_err(), "no price is no bargain");
}

#[test]
fn a_child_cannot_hold_more_than_its_parent_has_left() {
    let root = Budget::root(limit(Some(1.0), Some(1000)));
    let child = root.child(None);
    let held = child.reserve(Amount { dollars: 0.8, tokens: 100 }).unwrap();
    assert!(child.reserve(dollars(0.3)).is_err());
    assert!(child.reserve(tokens(901)).is_err());
    held.settle(Amount { dollars: 0.8, tokens: 120 });
    assert_close(root.spent(), 0.8, 120);
    assert_close(child.spent(), 0.8, 120);
}

#[test]
fn an_account_continues_below_the_next_asker() {
    // scenario 23
    let root = Budget::root(None);
    let account = Account::new(limit(None, Some(1000)), tokens(300));
    let (first, second) = (root.child(None), root.child(limit(None, Some(500))));
    first.with(&account).reserve(tokens(400)).unwrap().settle(tokens(400));
    let again = second.with(&account);
    let refused = again.reserve(tokens(301)).unwrap_err();
    assert_eq!((refused.level, refused.spent), (BudgetLevel::Own, Quantity::Tokens(700)));
    again.reserve(tokens(300)).unwrap().settle(tokens(300));
    assert_eq!((first.spent().tokens, second.spent().tokens, root.spent().tokens), (400, 300, 700));
}

#[test]
fn an_agent_asked_by_one_below_it_pays_once() {
    let root = Budget::root(None);
    let account = Account::new(limit(None, Some(100)), Amount::default());
    let above = root.with(&account);
    let below = above.child(None);
    let again = below.with(&account);
    again.reserve(tokens(60)).unwrap().settle(tokens(60));
    assert_eq!((above.spent().tokens, below.spent().tokens, root.spent().tokens), (60, 60, 60));
}

#[test]
fn a_refusal_takes_nothing_from_any_level() {
    let root = Budget::root(limit(Some(1.0), Some(100)));
    let middle = root.child(limit(None, Some(50)));
    let child = middle.child(limit(Some(0.5), None));
    // Money would do, tokens do not; one level up, tokens would do and money does not.
    assert!(child.reserve(Amount { dollars: 0.2, tokens: 60 }).is_err());
    assert!(child.reserve(Amount { dollars: 0.7, tokens: 10 }).is_err());
    assert!(child.reserve(Amount { dollars: 0.5, tokens: 50 }).is_ok());
    assert!(root.reserve(Amount { dollars: 1.0, tokens: 100 }).is_ok());
}

#[test]
fn a_refusal_says_which_limit_of_which_level_and_why() {
    let root = Budget::root(limit(Some(5.0), Some(9000)));
    let middle = root.child(limit(Some(1.5), Some(2000)));
    let child = middle.child(limit(Some(0.25), None));
    child.reserve(dollars(0.0)).unwrap().settle(Amount { dollars: 0.1234, tokens: 1 });
    let refusal = |budget: &Arc<Budget>, amount| budget.reserve(amount).unwrap_err().to_string();
    let held = middle.reserve(tokens(500)).unwrap();
    for (budget, amount, expected) in [
        (
            &child,
            dollars(0.2),
            "the agent's budget of $0.25 does not pay for another request: $0.1234 spent",
        ),
        (
            &child,
            tokens(1800),
            "the budget of an agent above this one of 2000 tokens does not pay for another request: \
             1 token spent, 500 tokens held for requests under way",
        ),
        (
            &middle,
            dollars(2.0),
            "the agent's budget of $1.50 does not pay for another request: $0.1234 spent",
        ),
        (
            &root,
            dollars(5.0),
            "the session's budget of $5.00 does not pay for another request: $0.1234 spent",
        ),
    ] {
        assert_eq!(refusal(budget, amount), expected);
    }
    drop(held);
    let refused = root.child(None).reserve(tokens(9000)).unwrap_err();
    assert_eq!((refused.level, refused.limit), (BudgetLevel::Session, Quantity::Tokens(9000)));
    assert_eq!((refused.spent, refused.reserved), (Quantity::Tokens(1), Quantity::Tokens(0)));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    // I-8
    #[test]
    fn no_level_is_exceeded_and_what_was_not_spent_comes_back(
        limits in prop::collection::vec((0_u64..2000, 0_u64..2000), 3),
        steps in prop::collection::vec((0_usize..3, 0_u64..500, 0_u64..500, 0_usize..4), 1..60),
    ) {
        let cents = |cents: u64| cents as f64 / 100.0;
        let as_limit = |(money, tokens): (u64, u64)| limit(Some(cents(money)), Some(tokens));
        let root = Budget::root(as_limit(limits[0]));
        let middle = root.child(as_limit(limits[1]));
        let levels = [Arc::clone(&root), Arc::clone(&middle), middle.child(as_limit(limits[2]))];
        let mut open = Vec::new();
        let mut spent = [(0, 0); 3];
        for (level, money, tokens, what) in steps {
            let amount = Amount { dollars: cents(money), tokens };
            match what {
                // No request costs more than was set aside for it here.
                0 if !open.is_empty() => {
                    let (reservation, level, money, tokens): (Reservation, usize, u64, u64) = open.remove(0);
                    let (money, tokens) = (money / 2, tokens / 2);
                    reservation.settle(Amount { dollars: cents(money), tokens });
                    for (sum, _) in spent.iter_mut().zip(0..=level) {
                        *sum = (sum.0 + money, sum.1 + tokens);
                    }
                }
                1 if !open.is_empty() => drop(open.pop()),
                _ => if let Ok(reservation) = levels[level].reserve(amount) {
                    open.push((reservation, level, money, tokens));
                },
            }
            for ((budget, limit), sum) in levels.iter().zip(&limits).zip(spent) {
                let state = budget.line[0].state();
                prop_assert!((state.spent.dollars - cents(sum.0)).abs() < 1e-6);
                prop_assert_eq!(state.spent.tokens, sum.1);
                prop_assert!(state.spent.dollars + state.reserved.dollars <= cents(limit.0) + 1e-6);
                prop_assert!(state.spent.tokens + state.reserved.tokens <= limit.1);
            }
        }
        drop(open);
        for budget in &levels {
            prop_assert_eq!(budget.line[0].state().reserved, Amount::default());
        }
    }
}
