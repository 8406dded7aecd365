//! The view of people on agents in a terminal: a real one, of a size that the test chooses.

use serde_json::json;

use crate::program::signal;
use crate::pseudo_terminal::Terminal;
use crate::stage::{Stage, agent, bash};

#[test]
fn in_a_narrow_terminal_each_line_is_one_row_and_a_signal_leaves_it_as_it_was() {
    for (name, code) in [("-INT", 130), ("-TERM", 143)] {
        let behind = json!({
            "run_in_background": true, "name": "テスター",
            "description": "深く調べる：日本語の説明文がとても長いとき",
        });
        let stage = Stage::new(&json!({
            "lead": [
                ["I send somebody to look at all of it and wait.", agent("@@stuck", &behind)],
                "meanwhile",
            ],
            "stuck": [[bash("sleep 98871 # and this is a command that is long")], "never"],
        }));
        let mut terminal = Terminal::new(40);
        let before = format!("{:?}", terminal.modes());
        let arguments =
            ["-p", "@@lead", "--model", stage.model(), "--verbose", "--allowedTools", "Bash"];
        let mut command = stage.program.command(arguments);
        let mut child = terminal.start(command.env("NO_COLOR", "1"));
        let mut rows = terminal.until(|row| row.contains("● テスター"));
        while !rows.iter().any(|row| row.starts_with("◌ still at work")) {
            rows.extend(terminal.until(|_| true));
        }
        let seen = |row: &str| assert!(rows.iter().any(|it| it == row), "`{row}`: {rows:#?}");
        seen("│ I send somebody to look at all of it");
        seen("│ and wait.");
        seen("  ▶ テスター  深く調べる：日本語の説明…");
        seen("  ● テスター  Bash sleep 98871 # and th…");
        signal(&child, name);
        let rows = terminal.until(|row| row.starts_with("! the session ended"));
        assert!(rows.iter().any(|row| row.starts_with("  ■ テスター  stopped")), "{rows:#?}");
        assert_eq!(child.wait().unwrap().code(), Some(code));
        assert_eq!(format!("{:?}", terminal.modes()), before, "{name}");
    }
}

#[test]
fn a_terminal_gets_colours_and_no_signs_for_them() {
    let stage = Stage::new(&json!({
        "lead": [["I send one.", agent("@@quick", &json!({"name": "scout"}))], "all done"],
        "quick": ["nothing \u{1b}[8mthere"],
    }));
    let mut terminal = Terminal::new(100);
    let mut command =
        stage.program.command(["-p", "@@lead", "--model", stage.model(), "--verbose"]);
    let mut child = terminal.start(&mut command);
    let rows = terminal.until(|row| row.contains("all done"));
    assert!(child.wait().unwrap().success());
    assert!(rows.iter().any(|row| row.contains("\u{1b}[") && row.contains("scout")), "{rows:#?}");
    assert!(
        !rows.iter().any(|row| row.contains("\\u{1b}[") || row.contains("\u{1b}[8m")),
        "{rows:#?}"
    );
}
