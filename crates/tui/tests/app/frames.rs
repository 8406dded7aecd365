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
        "─ 3 agents · 4.3k ────────────────────────────────────────────────────────── ↓ ─",
        "▾ writer  Document sum.sh  ● Bash ./test.sh                         2  3.9k  14s",
        "  └ prover  Run examples  ● thinking                                 0  400  14s",
        "  judge  Second opinion  ● thinking                                    0  0  14s",
        "● Edit sum.sh · 14s",
        "⠋ working · 14s · esc stops this turn only",
        "❯",
        " manual · opus · $0.00 · starting",
    ];
    assert_eq!(stage.rows(80, 40), expected, "{:#?}", stage.rows(80, 40));
}

#[test]
fn lines_join_each_agent_to_its_parent_at_every_depth() {
    let mut stage = Stage::new();
    for (id, name, parent) in [
        ("a", "first", None),
        ("b", "deep", Some("a")),
        ("c", "deeper", Some("b")),
        ("d", "deepest", Some("c")),
        ("e", "other", Some("b")),
        ("f", "last", Some("a")),
        ("g", "alone", None),
    ] {
        stage.event(&started(id, name, "", parent));
    }
    let names = |stage: &Stage| -> Vec<String> {
        let rows = stage.rows(80, 60);
        rows[1..8]
            .iter()
            .map(|row| row.split("  ●").next().unwrap().trim_end().to_owned())
            .collect()
    };
    let expected = [
        "▾ first",
        "  ▾ deep",
        "  │ ▾ deeper",
        "  │ │ └ deepest",
        "  │ └ other",
        "  └ last",
        "  alone",
    ];
    assert_eq!(names(&stage), expected);
}

/// What a key does is never cut away.
#[test]
fn the_keys_of_tree_focus_and_viewer_are_told_whole_in_every_window() {
    for columns in [40, 60, 80, 120] {
        let mut stage = team();
        stage.resize(columns, 40);
        stage.press(KeyCode::Down);
        let has = |stage: &Stage, row: &str| {
            let rows = stage.rows(columns, 40);
            let found = rows.iter().find(|it| it.contains(row));
            let found = found.unwrap_or_else(|| panic!("{columns}: {row}: {rows:#?}"));
            assert!(!found.contains('…'), "{columns}: {found}");
        };
        has(&stage, "x x stop");
        stage.press(KeyCode::Enter);
        has(&stage, "/stop");
        stage.ctrl('o');
        has(&stage, "q closes");
        assert!(stage.rows(columns, 40)[0].starts_with("─ Transcript · main ▸ writer ─"));
    }
}

#[test]
fn what_is_too_long_in_a_list_of_keys_continues_below_its_words() {
    let mut stage = Stage::new();
    let text = "esc     closes what is open, else stops this turn only\nctrl+d  leaves".to_owned();
    stage.fact(Fact::Shown { title: "Keys".to_owned(), text });
    let rows = stage.rows(40, 24);
    assert_eq!(rows[1], "esc     closes what is open, else stops", "{rows:#?}");
    assert_eq!(rows[2], "        this turn only", "{rows:#?}");
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

/// In a narrow window the title has no room for the path of the asker: then it stands in the dialog, whole.
#[test]
fn a_dialog_says_who_asks_and_which_keys_there_are_in_a_narrow_window() {
    let mut stage = team();
    let path = ["documentation-writer", "example-prover"];
    stage.resize(40, 24);
    stage.asks(Some("a2"), &path, command("make check"));
    stage.pass(2_000);
    let rows = stage.rows(40, 24);
    let inside: Vec<&str> = rows.iter().map(|row| row.trim_matches(['│', ' '])).collect();
    let inside = inside.join(" ");
    assert!(inside.contains("asked by main ▸ documentation-writer ▸ example-prover"), "{rows:#?}");
    assert!(rows.iter().any(|row| row.starts_with("╰ ctrl+n next · esc no · ctrl+c later ─")));
    assert!(!stage.rows(120, 24).concat().contains("asked by"), "the title says it");
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
