//! Frames as exact text, at 40, 80 and 120 columns.

use std::time::Duration;

use centurion_tui::{Fact, Happening, KeyCode};
use serde_json::json;

use super::stage::{Stage, call, command, init, progress, started};

fn team() -> Stage {
    let mut stage = Stage::new();
    stage.event(&init());
    stage.event(&started("a1", "writer", "Document sum.sh", None));
    stage.event(&started("a2", "prover", "Run examples", Some("a1")));
    stage.event(&started("a3", "judge", "Second opinion", None));
    stage.event(&progress("a1", "Bash ./test.sh", 2, 3_900));
    stage.event(&progress("a2", "thinking", 0, 400));
    stage.event(&call("t1", "Edit", &json!({"file_path": "sum.sh"})));
    stage.now = Duration::from_secs(14);
    stage.happens(Happening::Tick);
    stage
}

#[test]
fn the_tree_at_eighty_columns() {
    let stage = team();
    let expected = [
        "─ 3 agents · 4.3k ──────────────────────────────────────────────────────────────",
        "▾ writer  Document sum.sh  ● Bash ./test.sh                         2  3.9k  14s",
        "  ├ prover  Run examples  ● thinking                                 0  400  14s",
        "  judge  Second opinion  ● thinking                                    0  0  14s",
        "● Edit sum.sh · 14s",
        "⠋ working · 14s · esc stops this turn only",
        "❯",
        " manual · opus · $0.00 · starting",
    ];
    assert_eq!(stage.rows(80, 40), expected, "{:#?}", stage.rows(80, 40));
}

#[test]
fn the_tree_at_forty_columns_leaves_tasks_calls_and_tokens_out() {
    let stage = team();
    let rows = stage.rows(40, 40);
    assert_eq!(rows[1], "▾ writer  ● Bash ./test.sh           14s", "{rows:#?}");
    assert_eq!(rows.last().unwrap(), " manual · $0.00");
    assert_eq!(rows[5], "⠋ 14s · esc", "what Esc does is not cut away: {rows:#?}");
}

#[test]
fn no_row_is_wider_than_the_terminal() {
    for columns in [20, 40, 80, 120] {
        let mut stage = team();
        let long = "x".repeat(500);
        stage.event(&started("a4", &long, &long, Some("a2")));
        stage.says(&long);
        stage.types(&format!("{long}\n{long}"));
        let check = |stage: &Stage| {
            for line in &stage.frame(columns, 24).live {
                assert!(line.width() <= usize::from(columns), "{columns}: {}", line.text());
            }
        };
        check(&stage);
        stage.asks(Some("a2"), &["writer", "prover"], command(&long));
        stage.pass(2_000);
        for line in &stage.frame(columns, 24).live {
            assert!(line.width() <= usize::from(columns), "{columns}: {}", line.text());
        }
    }
}

#[test]
fn a_dialog_at_a_hundred_and_twenty_columns() {
    let mut stage = team();
    stage.asks(Some("a2"), &["writer", "prover"], command("make check"));
    stage.pass(2_000);
    let rows = stage.rows(120, 40);
    assert!(
        rows[0].starts_with("╭ 1 of 1 · Bash · main ▸ writer ▸ prover · Run examples ──"),
        "{rows:#?}"
    );
    let inside: Vec<&str> =
        rows[1..rows.len() - 2].iter().map(|row| row.trim_matches(['│', ' '])).collect();
    let expected = [
        "make check",
        "because: no rule or mode lets `make check` run",
        "changes this folder · sandbox on, no network",
        "› 1 y once",
        "2 a always: Bash(make check) → .claude/settings.local.json",
        "s this session: Bash(make check)",
        "3 n no · tab with words · e edit first",
    ];
    assert_eq!(inside, expected, "{rows:#?}");
}

#[test]
fn below_twenty_by_six_the_prompt_stands_alone() {
    let mut stage = team();
    stage.types("hi");
    assert_eq!(stage.rows(19, 5), ["❯ hi"]);
}

#[test]
fn a_screen_closes_without_a_trace() {
    let mut stage = Stage::new();
    stage.fact(Fact::Shown { title: "/cost".to_owned(), text: "Total cost: $0.11".to_owned() });
    assert!(stage.shown().contains("Total cost: $0.11"));
    stage.press(KeyCode::Escape);
    assert!(!stage.shown().contains("Total cost") && stage.printed.is_empty());
}
