//! Each table as a person sees it, letter by letter, at 40, 80 and 120 columns.

use std::fmt::Write as _;

use centurion_tui::{Fact, Table, TableOf, TableRow, Tone};

use super::stage::Stage;

/// The rows of each window.
const ROWS: u16 = 18;

/// What is expected in windows of so many columns.
const SHOWN: [(u16, &str); 3] = [
    (40, include_str!("shown/tables-40.txt")),
    (80, include_str!("shown/tables-80.txt")),
    (120, include_str!("shown/tables-120.txt")),
];

fn row(id: &str, name: &str, cells: &[&str], hint: &str, detail: &str) -> TableRow {
    TableRow {
        cells: cells.iter().map(ToString::to_string).collect(),
        hint: hint.to_owned(),
        ..TableRow::new(id, name).with_detail(detail)
    }
}

fn toned(tone: Tone, row: TableRow) -> TableRow {
    TableRow { tone, ..row }
}

fn below(depth: usize, row: TableRow) -> TableRow {
    TableRow { depth, ..row }
}

#[expect(clippy::too_many_lines, reason = "a list of tables with their rows")]
fn of_session() -> Vec<Table> {
    let sessions = vec![
        toned(
            Tone::Notable,
            row(
                "1",
                "fix the sum",
                &["4m", "master", "212 KB", "$0.31"],
                "1 agent interrupted: prover",
                "212 messages · $0.31 · 2 agents\n\n› what is wrong?\nThe loop begins with the second argument.",
            ),
        ),
        row(
            "2",
            "write a poem about 日本 and its mountains",
            &["3h", "poem", "12 KB", "$0.02"],
            "",
            "",
        ),
    ];
    let points = vec![
        toned(
            Tone::Notable,
            row(
                "2",
                "now document it",
                &["2 files since"],
                "",
                "would be as it was: /code/sum.sh (+1 -2), changed by writer\n\nTaken back would be:\n  › now document it",
            ),
        ),
        row("1", "fix the sum", &["no file since"], "", ""),
    ];
    let costs = vec![
        row(
            "",
            "main",
            &["$0.3000", "own $0.1000", "18.4k", "9.1k cached"],
            "",
            "Total cost: $0.3000",
        ),
        below(
            1,
            toned(
                Tone::Good,
                row("a1", "writer", &["$0.2000", "own $0.0500", "3.9k", ""], "Document sum.sh", ""),
            ),
        ),
        below(
            2,
            row(
                "a2",
                "prover",
                &["$0.1500", "own $0.1500", "1.1k", ""],
                "Run the examples of the README",
                "",
            ),
        ),
    ];
    let contexts = vec![
        row(
            "",
            "main",
            &["23 %", "█████░░░░░░░░░░░░░░░", "46.0k of 200.0k"],
            "opus",
            "System prompt         2.1k    1 %  █░░░░░░░░░░░░░░░░░░░\nMessages             40.0k   20 %  ████░░░░░░░░░░░░░░░░",
        ),
        below(
            1,
            toned(
                Tone::Notable,
                row(
                    "a1",
                    "writer",
                    &["81 %", "█████████████████░░░", "162.0k of 200.0k"],
                    "Document sum.sh",
                    "",
                ),
            ),
        ),
    ];
    let team = vec![
        TableRow::head("Members · lead main · 2"),
        toned(
            Tone::Good,
            row(
                "member a1",
                "parser",
                &["● Edit p.rs", "31.0k"],
                "coder",
                "parser is a coder on opus, in this process\nEdit p.rs",
            ),
        ),
        row("member a2", "tester", &["◌ idle", "9.2k"], "coder", ""),
        TableRow::head("Tasks 1/3"),
        toned(Tone::Faint, row("task 1", "✓ #1 Read", &["main"], "", "")),
        toned(Tone::Good, row("task 4", "◼ #4 Fix", &["parser"], "", "")),
        row("task 5", "◻ #5 Test", &["after #4"], "", ""),
        TableRow::head("Mail"),
        toned(Tone::Faint, row("mail 0", "✉ parser→tester", &["read"], "the parser is done", "")),
    ];
    vec![
        Table::new(TableOf::Sessions, "Resume · 136 here", sessions),
        Table::new(TableOf::Points, "Go back to before", points),
        Table::new(TableOf::Costs, "Cost $0.3000 · $1.70 left", costs),
        Table::new(TableOf::Contexts, "Context · 46.0k of 200.0k tokens", contexts),
        Table::new(TableOf::Team, "Team · session-1", team),
    ]
}

#[expect(clippy::too_many_lines, reason = "a list of tables with their rows")]
fn of_files() -> Vec<Table> {
    let rules = vec![
        TableRow::head("Deny"),
        toned(
            Tone::Bad,
            row(
                "Deny 0",
                "Bash(rm *)",
                &["project settings"],
                "/p/.claude/settings.json:7",
                "Bash(rm *)\nsuch a call is denied, whatever else is said",
            ),
        ),
        TableRow::head("Allow"),
        toned(
            Tone::Good,
            row(
                "Allow 0",
                "Bash(make *)",
                &["user settings"],
                "/home/me/.claude/settings.json:3",
                "",
            ),
        ),
    ];
    let settings = vec![
        row(
            "model",
            "model",
            &["\"opus\""],
            "user settings.json:3",
            "model = \"opus\"\n/home/me/.claude/settings.json:3 (user): counts\nIt may be a text.",
        ),
        toned(
            Tone::Notable,
            row(
                "apiKeyHelper",
                "apiKeyHelper",
                &["\"get-key\""],
                "project settings.json:9 · the folder is not trusted",
                "",
            ),
        ),
        toned(Tone::Faint, row("effortLevel", "effortLevel", &[""], "", "")),
    ];
    let agents = vec![
        row(
            "reviewer",
            "reviewer",
            &["project", "haiku", "Read, Grep"],
            "Reviews what was changed",
            "model            haiku   ← reviewer.md:5",
        ),
        toned(
            Tone::Bad,
            row(
                "/p/old-bot.md",
                "old-bot",
                &["project", "✗"],
                "old-bot.md:3: has no description",
                "",
            ),
        ),
        toned(Tone::Faint, row("planner", "planner", &["user", "inherit", "all tools"], "off", "")),
    ];
    let fields = vec![
        row("name", "name", &[":2"], "reviewer", "reviewer"),
        row(
            "model",
            "model",
            &[":5"],
            "haiku",
            "haiku\n\nsonnet, opus, haiku, fable, inherit or a full name",
        ),
        toned(
            Tone::Faint,
            row("tools", "tools", &[""], "the only tools that it has; without it all", ""),
        ),
    ];
    let servers = vec![
        toned(
            Tone::Good,
            row(
                "desk",
                "desk",
                &["connected", "2 tools"],
                ".mcp.json:3",
                "from /p/.mcp.json:3\n  brief  (says that it only reads)\n  file",
            ),
        ),
        toned(
            Tone::Bad,
            row("shop", "shop", &["failed", "0 tools"], "connection refused · .mcp.json:9", ""),
        ),
        toned(Tone::Faint, row("old", "old", &["off", "4 tools"], "", "")),
    ];
    let hooks = vec![row(
        "0",
        "PreToolUse",
        &["Bash", "command"],
        "./check.sh   ← settings.json:12",
        "PreToolUse · Bash · command\n./check.sh\nfrom /p/.claude/settings.json:12",
    )];
    let skills = vec![
        row(
            "/p/.claude/skills/deploy/SKILL.md",
            "deploy",
            &["project", ""],
            "Deploy to a place",
            "Deploy $0 with care.",
        ),
        toned(
            Tone::Faint,
            row("tidy", "tidy", &["user", "people only"], "off: skillOverrides", ""),
        ),
    ];
    let memory = vec![
        row("/p/CLAUDE.md", "/p/CLAUDE.md", &["project", "1.2k tokens"], "", "Always be brief."),
        TableRow::head("Notes · /home/me/.centurion/notes"),
        row("/home/me/.centurion/notes/build.md", "build.md", &["notes"], "", ""),
    ];
    vec![
        Table::new(TableOf::Rules, "Permissions · mode default · 2 rules", rules),
        Table::new(TableOf::Settings, "Settings · 2 set", settings),
        Table::new(TableOf::Agents, "Agents · 2, 1 broken", agents),
        Table::new(TableOf::AgentFields, "reviewer · /p/.claude/agents/reviewer.md", fields),
        Table::new(TableOf::Servers, "MCP servers · 3", servers),
        Table::new(TableOf::Hooks, "Hooks · 1", hooks),
        Table::new(TableOf::Skills, "Skills · 1", skills),
        Table::new(TableOf::Memory, "Memory · 1.2k tokens", memory),
    ]
}

#[test]
fn every_table_is_seen_as_it_was_drawn() {
    let mut others = String::new();
    for (columns, expected) in SHOWN {
        let mut shown = String::new();
        for table in of_session().into_iter().chain(of_files()) {
            let mut stage = Stage::new();
            stage.resize(columns, ROWS);
            stage.fact(Fact::Table { table: Box::new(table), is_again: false });
            let rows = stage.rows(columns, ROWS);
            shown.push_str(&rows.join("\n"));
            shown.push_str("\n\n");
        }
        if shown.trim() != expected.trim() {
            // Writing to a string cannot fail.
            let _ = writeln!(others, "=== {columns} columns\n{}", shown.trim());
        }
    }
    assert!(others.is_empty(), "{others}=== end");
}
