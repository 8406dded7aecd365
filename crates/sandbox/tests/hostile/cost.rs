//! The cost of a sandbox.

use std::time::{Duration, Instant};

use crate::cell::{Cell, User};

/// The median of starting a command to its end, with each method and without.
#[test]
fn a_sandbox_costs_little() {
    const RUNS: usize = 21;
    let median = |run: &dyn Fn() -> bool| {
        let mut times: Vec<Duration> = (0..RUNS)
            .map(|_| {
                let start = Instant::now();
                assert!(run());
                start.elapsed()
            })
            .collect();
        times.sort();
        times[RUNS / 2]
    };
    for cell in Cell::all(|_| ()).iter().filter(|cell| cell.user == User::Own) {
        let free = median(&|| cell.run_free("true").ok);
        let confined = median(&|| cell.run("true").ok);
        println!("{:?}: {confined:?}, without {free:?}", cell.plan.method);
        // Generous: the machine may be busy with other tests.
        assert!(confined < Duration::from_millis(500), "{confined:?}");
    }
}
