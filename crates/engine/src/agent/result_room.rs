//! The room in a conversation for all results of one turn together.

/// The bytes that a result above its share leaves to each later one.
const RESERVED: usize = 16 * 1024;

/// The least bytes of every result, however little is left.
const LEAST: usize = 2 * 1024;

/// The bytes that all results may have together, however little is left. Where they are very many, each may have less.
const FOR_ALL: usize = 32 * 1024;

/// The least bytes of each of very many results.
const FEWEST: usize = 256;

/// The room that is left for the results of a turn, in bytes.
#[derive(Debug)]
pub(crate) struct ResultRoom {
    left: usize,
    /// The number of results that are still to come.
    calls: usize,
    /// The least that each of them may have.
    least: usize,
}

impl Default for ResultRoom {
    fn default() -> Self {
        Self::new(usize::MAX, 1)
    }
}

impl ResultRoom {
    pub(crate) fn new(left: usize, calls: usize) -> Self {
        let least = (left.max(FOR_ALL) / calls.max(1)).clamp(FEWEST, LEAST);
        Self { left, calls, least }
    }

    /// The most bytes of the next result: its share, or more where enough is left for the others.
    pub(crate) fn allowed(&self) -> usize {
        let share = self.left / self.calls.max(1);
        let others = self.calls.saturating_sub(1).saturating_mul(RESERVED);
        share.max(self.left.saturating_sub(others)).max(self.least)
    }

    /// Takes what a result needs.
    pub(crate) fn take(&mut self, size: usize) {
        self.left = self.left.saturating_sub(size);
        self.calls = self.calls.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_large_result_beside_small_ones_is_whole() {
        let mut room = ResultRoom::new(400_000, 10);
        assert!(room.allowed() >= 200_000);
        room.take(200_000);
        assert!(room.allowed() >= 400_000 / 20);
    }

    proptest! {
        #[test]
        fn results_together_never_take_more_than_there_is(
            left in 0_usize..2_000_000,
            sizes in prop::collection::vec(0_usize..500_000, 1..400),
        ) {
            let mut room = ResultRoom::new(left, sizes.len());
            let mut total = 0;
            for (n, size) in sizes.iter().enumerate() {
                let taken = (*size).min(room.allowed());
                let share = (left - total.min(left)) / (sizes.len() - n);
                prop_assert!(taken >= (*size).min(share), "its share is every result's");
                room.take(taken);
                total += taken;
            }
            let most = left.max(FOR_ALL).max(FEWEST * sizes.len());
            prop_assert!(total <= most, "{total} of {left}");
        }
    }
}
