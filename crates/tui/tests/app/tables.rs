//! Tables: what a person finds in them and does from them.

use centurion_protocol::{AgentId, SessionId};
use centurion_tui::{
    Effect, Fact, FileLine, Happening, Input, Key, KeyCode, SettingLevel, Table, TableChange,
    TableOf, TableRow, Tone, lines_of,
};

use super::stage::{Stage, init, progress, started};

const ONE: &str = "00000000-0000-4000-8000-000000000001";
const TWO: &str = "00000000-0000-4000-8000-000000000002";

fn shows(stage: &mut Stage, table: Table) {
    stage.fact(Fact::Table { table: Box::new(table), is_again: false });
}

fn session(id: &str, title: &str, hint: &str) -> TableRow {
    let cells = ["4m", "master", "212 KB"].map(str::to_owned).into();
    TableRow { cells, hint: hint.to_owned(), ..TableRow::new(id, title) }
}

fn sessions() -> Table {
    let rows = vec![
        session(ONE, "fix the sum", "1 agent interrupted: prover"),
        session(TWO, "write a poem", ""),
    ];
    Table::new(TableOf::Sessions, "Resume · 2 here", rows)
}

fn id(text: &str) -> SessionId {
    text.parse().unwrap()
}

#[test]
fn a_session_is_found_by_what_was_said_in_it_with_a_preview_and_continues() {
    let mut stage = Stage::new();
    stage.says("/resume");
    let wanted = Effect::Table { of: TableOf::Sessions, subject: String::new(), is_again: false };
    assert!(stage.take_effects().contains(&wanted));
    shows(&mut stage, sessions());
    let shown = stage.shown();
    assert!(shown.contains("1 agent interrupted: prover"), "{shown}");
    // The end of the marked session is asked for, once.
    let details = |stage: &mut Stage| -> Vec<String> {
        let is_detail = |it: Effect| match it {
            Effect::Detail { id, .. } => Some(id),
            _ => None,
        };
        stage.take_effects().into_iter().filter_map(is_detail).collect()
    };
    assert_eq!(details(&mut stage), [ONE]);
    let lines = lines_of("› what is wrong?\nThe loop.");
    stage.fact(Fact::Detail { of: TableOf::Sessions, id: ONE.to_owned(), lines });
    assert!(stage.shown().contains("The loop."), "{}", stage.shown());
    stage.press(KeyCode::Down);
    assert_eq!(details(&mut stage), [TWO]);
    stage.press(KeyCode::Up);
    assert!(details(&mut stage).is_empty());
    // Three letters are looked for in what was said; no title has these.
    stage.types("needle");
    let searches = stage
        .take_effects()
        .into_iter()
        .filter(|it| matches!(it, Effect::SearchSessions { words, .. } if words == "needle"));
    assert_eq!(searches.count(), 1);
    assert!(stage.shown().contains("nothing fits"), "{}", stage.shown());
    let found = |words: &str, id: &str| Fact::Found {
        words: words.to_owned(),
        rows: vec![(id.to_owned(), lines_of("… a needle in it …"))],
    };
    // A search that ended late is not for these words.
    stage.fact(found("nee", ONE));
    assert!(!stage.shown().contains("fix the sum"));
    stage.fact(found("needle", TWO));
    let shown = stage.shown();
    assert!(shown.contains("write a poem") && shown.contains("a needle in it"), "{shown}");
    stage.press(KeyCode::Enter);
    assert!(stage.take_effects().contains(&Effect::Resume(id(TWO))));
}

#[test]
fn a_session_is_forked_named_and_looked_for_elsewhere() {
    let mut stage = Stage::new();
    shows(&mut stage, sessions());
    stage.ctrl('r');
    stage.ctrl('u');
    stage.says("the sum");
    let change = TableChange::SessionTitle { session: id(ONE), title: "the sum".to_owned() };
    let (of, subject) = (TableOf::Sessions, String::new());
    assert!(stage.take_effects().contains(&Effect::Change { change, of, subject }));
    stage.ctrl('a');
    let everywhere = Effect::Table { of, subject: "all".to_owned(), is_again: false };
    assert!(stage.take_effects().contains(&everywhere));
    stage.ctrl('f');
    assert!(stage.take_effects().contains(&Effect::Fork(id(ONE))));
    assert_eq!(stage.rows(80, 24).len(), 2, "it has closed");
}

#[test]
fn going_back_says_before_what_it_would_change_and_gives_the_prompt_back() {
    let mut stage = Stage::new();
    stage.press(KeyCode::Escape);
    stage.press(KeyCode::Escape);
    let of = TableOf::Points;
    let wanted = Effect::Table { of, subject: String::new(), is_again: false };
    assert!(stage.take_effects().contains(&wanted), "esc esc");
    let point = |id: &str, text: &str| TableRow {
        cells: vec!["2 files since".to_owned()],
        value: format!("{text}\nwith a second line"),
        ..TableRow::new(id, text)
    };
    let table =
        || Table::new(of, "Go back to before", vec![point("2", "more"), point("1", "begin")]);
    shows(&mut stage, table());
    stage.press(KeyCode::Down);
    let lines = lines_of("would be as it was: /code/sum.sh (+1 -2)");
    stage.fact(Fact::Detail { of, id: "1".to_owned(), lines });
    assert!(stage.shown().contains("would be as it was: /code/sum.sh"), "{}", stage.shown());
    let sent = |stage: &mut Stage| {
        let sent = stage.take_effects().into_iter().find_map(|it| match it {
            Effect::Submit { text, .. } => Some(text),
            _ => None,
        });
        sent.unwrap()
    };
    stage.press(KeyCode::Enter);
    assert_eq!(sent(&mut stage), "/rewind 1 both");
    assert!(stage.shown().contains("❯ begin"), "{}", stage.shown());
    // Files alone leave the conversation, and the draft, as they are.
    shows(&mut stage, table());
    stage.types("f");
    assert_eq!(sent(&mut stage), "/rewind 2 files");
    assert!(stage.shown().contains("❯ begin"), "{}", stage.shown());
    shows(&mut stage, table());
    stage.types("c");
    assert_eq!(sent(&mut stage), "/rewind 2 conversation");
}

#[test]
fn every_agent_says_what_it_costs_with_all_below_it_while_it_works() {
    let mut stage = Stage::new();
    stage.event(&init());
    stage.event(&started("a1", "writer", "Write", None));
    stage.event(&progress("a1", "Bash make", 1, 900));
    stage.says("/cost");
    let row = |id: &str, name: &str, cells: [&str; 3], depth| TableRow {
        cells: cells.map(str::to_owned).into(),
        depth,
        detail: Some(Vec::new()),
        ..TableRow::new(id, name)
    };
    let table = |dollars: &str| {
        let rows = vec![
            row("", "main", ["$0.3000", "own $0.1000", "18.4k"], 0),
            row("a1", "writer", [dollars, "own $0.0500", "3.9k"], 1),
            row("a2", "prover", ["$0.1500", "own $0.1500", "1.1k"], 2),
        ];
        Table::new(TableOf::Costs, "Cost $0.3000", rows)
    };
    shows(&mut stage, table("$0.2000"));
    let shown = stage.shown();
    assert!(shown.contains("  writer") && shown.contains("$0.2000  own $0.0500"), "{shown}");
    assert!(shown.contains("    prover"), "{shown}");
    stage.press(KeyCode::Down);
    // It is read again while agents work, and what was marked stays so.
    stage.fact(Fact::Table { table: Box::new(table("$0.2500")), is_again: true });
    let shown = stage.shown();
    assert!(shown.contains("❯   writer") && shown.contains("$0.2500"), "{shown}");
    stage.press(KeyCode::Enter);
    assert!(stage.shown().contains("main ▸ writer"), "{}", stage.shown());
}

#[test]
fn a_table_that_was_closed_does_not_come_back_when_it_was_read_again() {
    let mut stage = Stage::new();
    let table = || Table::new(TableOf::Team, "Team", vec![TableRow::new("member a", "parser")]);
    shows(&mut stage, table());
    stage.press(KeyCode::Escape);
    stage.fact(Fact::Table { table: Box::new(table()), is_again: true });
    assert_eq!(stage.rows(80, 24).len(), 2, "{}", stage.shown());
    // Neither does it take the place of another one.
    shows(&mut stage, sessions());
    stage.fact(Fact::Table { table: Box::new(table()), is_again: true });
    assert!(stage.shown().contains("Resume"), "{}", stage.shown());
}

#[test]
fn a_call_is_tried_beside_the_rules_and_what_was_denied() {
    let mut stage = Stage::new();
    let place = FileLine { path: "/p/.claude/settings.json".to_owned(), line: 7 };
    let rule = TableRow {
        hint: "/p/.claude/settings.json:7".to_owned(),
        file: Some(place.clone()),
        tone: Tone::Bad,
        ..TableRow::new("Deny 0", "Bash(rm *)").with_detail("denied")
    };
    let rows = vec![TableRow::head("Deny"), rule];
    shows(&mut stage, Table::new(TableOf::Rules, "Permissions · mode default · 1 rules", rows));
    assert!(stage.shown().contains("❯ Bash(rm *)"), "titles are not marked: {}", stage.shown());
    stage.types("e");
    assert!(stage.take_effects().contains(&Effect::OpenFile(place)));
    stage.types("t");
    stage.press(KeyCode::Left);
    stage.says("git push");
    let asked = stage.take_effects().into_iter().find_map(|it| match it {
        Effect::Detail { of: TableOf::Rules, id, .. } => Some(id),
        _ => None,
    });
    assert_eq!(asked.as_deref(), Some("try Bash(git push)"));
    let lines = lines_of("Bash(git push): asked about\n  because no rule allows it");
    let id = asked.unwrap();
    stage.fact(Fact::Detail { of: TableOf::Rules, id, lines });
    let shown = stage.shown();
    assert!(shown.contains("❯ Bash(git push)") && shown.contains("asked about"), "{shown}");
}

#[test]
fn a_setting_is_set_for_those_whom_a_person_means() {
    let mut stage = Stage::new();
    let table = || {
        let set = TableRow {
            cells: vec!["\"opus\"".to_owned()],
            hint: "user settings.json:3".to_owned(),
            value: "opus".to_owned(),
            ..TableRow::new("model", "model").with_detail("")
        };
        let unset = TableRow::new("effortLevel", "effortLevel").with_detail("It may be one of …");
        Table::new(TableOf::Settings, "Settings · 1 set", vec![set, unset])
    };
    let changes = |stage: &mut Stage| -> Vec<TableChange> {
        let change = |it: Effect| match it {
            Effect::Change { change, .. } => Some(change),
            _ => None,
        };
        stage.take_effects().into_iter().filter_map(change).collect()
    };
    let setting = |key: &str, text: &str, level| {
        vec![TableChange::Setting { key: key.to_owned(), text: text.to_owned(), level }]
    };
    shows(&mut stage, table());
    assert!(stage.shown().contains("user settings.json:3"), "{}", stage.shown());
    stage.press(KeyCode::Enter);
    assert!(stage.shown().contains("model for you"), "{}", stage.shown());
    stage.ctrl('u');
    stage.says("haiku");
    assert_eq!(changes(&mut stage), setting("model", "haiku", SettingLevel::User));
    stage.types("effort");
    stage.ctrl('r');
    stage.says("high");
    assert_eq!(changes(&mut stage), setting("effortLevel", "high", SettingLevel::Project));
    // Words that are left behind change nothing.
    stage.ctrl('e');
    stage.types("low");
    stage.press(KeyCode::Escape);
    assert!(changes(&mut stage).is_empty());
    stage.ctrl('e');
    stage.says("");
    assert_eq!(changes(&mut stage), setting("effortLevel", "", SettingLevel::Local));
}

#[test]
fn agents_are_made_changed_tried_and_switched_off() {
    let mut stage = Stage::new();
    let file = FileLine { path: "/p/.claude/agents/reviewer.md".to_owned(), line: 2 };
    let table = || {
        let reviewer = TableRow {
            cells: ["project", "haiku", "Read, Grep"].map(str::to_owned).into(),
            file: Some(file.clone()),
            value: file.path.clone(),
            ..TableRow::new("reviewer", "reviewer").with_detail("model   haiku   ← reviewer.md:5")
        };
        let broken = TableRow {
            tone: Tone::Bad,
            hint: "old-bot.md:3: has no description".to_owned(),
            ..TableRow::new("/p/old-bot.md", "old-bot").with_detail("")
        };
        Table::new(TableOf::Agents, "Agents · 1, 1 broken", vec![reviewer, broken])
    };
    let change = |stage: &mut Stage| {
        let found = stage.take_effects().into_iter().find_map(|it| match it {
            Effect::Change { change, .. } => Some(change),
            _ => None,
        });
        found.unwrap()
    };
    shows(&mut stage, table());
    let shown = stage.shown();
    assert!(shown.contains("← reviewer.md:5") && shown.contains("has no description"), "{shown}");
    stage.types("x");
    let off = TableChange::SwitchAgent { name: "reviewer".to_owned(), is_on: false };
    assert_eq!(change(&mut stage), off);
    stage.types("n");
    stage.says("checker");
    let new = TableChange::NewAgent { name: "checker".to_owned(), is_own: false };
    assert_eq!(change(&mut stage), new);
    stage.types("e");
    assert!(stage.take_effects().contains(&Effect::OpenFile(file.clone())));
    // Its fields are a table of their own, from which Esc goes back.
    stage.press(KeyCode::Enter);
    let (of, subject) = (TableOf::AgentFields, file.path.clone());
    let fields = Effect::Table { of, subject: subject.clone(), is_again: false };
    assert!(stage.take_effects().contains(&fields));
    let model = TableRow {
        value: "haiku".to_owned(),
        ..TableRow::new("model", "model").with_detail("haiku")
    };
    shows(&mut stage, Table::new(of, "reviewer", vec![model]).about(&*subject));
    stage.press(KeyCode::Enter);
    stage.press(KeyCode::Backspace);
    stage.says("x");
    let field = TableChange::AgentField {
        file: file.path.clone(),
        field: "model".to_owned(),
        text: Some("haikx".to_owned()),
    };
    assert_eq!(change(&mut stage), field);
    stage.press(KeyCode::Escape);
    let back = Effect::Table { of: TableOf::Agents, subject: String::new(), is_again: false };
    assert!(stage.take_effects().contains(&back));
    shows(&mut stage, table());
    stage.types("t");
    assert!(stage.shown().contains("❯ Use the reviewer agent to"), "{}", stage.shown());
}

#[test]
fn members_are_told_something_alone_or_all_asked_to_end_and_stopped_by_a_second_press() {
    let mut stage = Stage::new();
    stage.event(&init());
    stage.event(&started("a1", "parser", "Parse", None));
    stage.event(&started("a2", "tester", "Test", None));
    let member = |id: &str, name: &str| TableRow {
        cells: vec!["● Edit p.rs".to_owned()],
        ..TableRow::new(format!("member {id}"), name).with_detail("")
    };
    let rows = vec![
        TableRow::head("Members · lead main · 2"),
        member("a1", "parser"),
        member("a2", "tester"),
        TableRow::head("Tasks 1/3"),
        TableRow::new("task 4", "◼ #4 Fix").with_detail("in_progress"),
        TableRow::head("Mail"),
        TableRow::new("mail 0", "✉ parser→tester").with_detail("the whole message"),
    ];
    shows(&mut stage, Table::new(TableOf::Team, "Team · session-1", rows));
    let told = |stage: &mut Stage| -> Vec<(String, String)> {
        let told = |it: Effect| match it {
            Effect::Tell { agent, text, .. } => Some((agent.to_string(), text)),
            _ => None,
        };
        stage.take_effects().into_iter().filter_map(told).collect()
    };
    let pair = |one: &str, other: &str| (one.to_owned(), other.to_owned());
    stage.press(KeyCode::Down);
    stage.types("m");
    stage.says("be quick");
    assert_eq!(told(&mut stage), [pair("a2", "be quick")]);
    stage.types("M");
    stage.says("all of you");
    assert_eq!(told(&mut stage), [pair("a1", "all of you"), pair("a2", "all of you")]);
    stage.types("x");
    let change = TableChange::AskToEnd(AgentId::new("a2"));
    let (of, subject) = (TableOf::Team, String::new());
    assert!(stage.take_effects().contains(&Effect::Change { change, of, subject }));
    stage.types("X");
    assert!(!stage.take_effects().iter().any(|it| matches!(it, Effect::StopTask(_))));
    stage.types("X");
    assert!(stage.take_effects().contains(&Effect::StopTask(AgentId::new("a2"))));
    // Mail and tasks are read whole, and keys for members do nothing to them.
    (0..2).for_each(|_| stage.press(KeyCode::Down));
    assert!(stage.shown().contains("the whole message"), "{}", stage.shown());
    stage.types("x");
    assert!(stage.take_effects().is_empty());
}

#[test]
fn words_for_a_row_are_for_that_row_whatever_comes_meanwhile() {
    let mut stage = Stage::new();
    let row = |id: &str| TableRow::new(format!("member {id}"), id).with_detail("");
    let table =
        |ids: &[&str]| Table::new(TableOf::Team, "Team", ids.iter().map(|id| row(id)).collect());
    shows(&mut stage, table(&["a1", "a2"]));
    stage.press(KeyCode::Down);
    stage.types("m");
    stage.types("stop tha");
    stage.fact(Fact::Table { table: Box::new(table(&["a0", "a1", "a2"])), is_again: true });
    stage.says("t");
    let told = stage.take_effects().into_iter().find_map(|it| match it {
        Effect::Tell { agent, text, .. } => Some((agent.to_string(), text)),
        _ => None,
    });
    assert_eq!(told, Some(("a2".to_owned(), "stop that".to_owned())));
    // Where the row has gone meanwhile, they are for no other one.
    stage.types("m");
    stage.types("you");
    let table = Box::new(table(&["a0", "a1"]));
    stage.fact(Fact::Table { table, is_again: true });
    stage.press(KeyCode::Enter);
    assert!(!stage.take_effects().iter().any(|it| matches!(it, Effect::Tell { .. })));
    assert!(stage.shown().contains("nothing was done"), "{}", stage.shown());
}

#[test]
fn letters_are_keys_until_a_search_has_begun_and_a_paste_is_no_key() {
    let mut stage = Stage::new();
    let row = |id: &str| TableRow::new(id, id).with_detail("");
    let rows = vec![row("exact"), row("other")];
    shows(&mut stage, Table::new(TableOf::Servers, "MCP servers · 2", rows));
    stage.types("/");
    stage.types("ex");
    assert!(!stage.shown().contains("other"), "{}", stage.shown());
    assert!(!stage.take_effects().iter().any(|it| matches!(it, Effect::Change { .. })));
    // Enter keeps what was found, for the keys; Esc lets it go.
    stage.press(KeyCode::Enter);
    stage.types("r");
    let again = TableChange::ConnectServer("exact".to_owned());
    let is_again = |it: &Effect| matches!(it, Effect::Change { change, .. } if *change == again);
    assert!(stage.take_effects().iter().any(is_again));
    assert!(!stage.shown().contains("other"), "{}", stage.shown());
    stage.press(KeyCode::Escape);
    assert!(stage.shown().contains("other"));
    stage.happens(Happening::Input(&Input::Paste("x".to_owned())));
    assert!(stage.take_effects().is_empty());
    stage.types("x");
    let is_switch = |it: &Effect| matches!(it, Effect::Change { change: TableChange::SwitchServer { name, is_on: false }, .. } if name == "exact");
    assert!(stage.take_effects().iter().any(is_switch));
    stage.key(Key::plain(KeyCode::Char('x')).alt());
    assert!(stage.take_effects().is_empty(), "another key");
}

#[test]
fn a_long_detail_is_read_to_its_end_and_the_cursor_stands_where_words_are_written() {
    let mut stage = Stage::new();
    let lines: Vec<String> = (0..200).map(|number| format!("line {number}")).collect();
    let text = lines.join("\n");
    let rows = vec![TableRow::new("a", "a").with_detail(&text)];
    shows(&mut stage, Table::new(TableOf::Agents, "Agents · 1", rows));
    assert!(stage.shown().contains("line 0") && !stage.shown().contains("line 199"));
    stage.types(" ");
    for _ in 0..60 {
        stage.press(KeyCode::PageDown);
    }
    let shown = stage.shown();
    assert!(shown.contains("line 199") && shown.contains("(the end)"), "{shown}");
    stage.press(KeyCode::PageUp);
    assert!(!stage.shown().contains("line 199"), "one page up is one page: {}", stage.shown());
    stage.types("n");
    stage.types("日本");
    let frame = stage.frame(100, 40);
    let place = frame.cursor.unwrap();
    assert_eq!(place.column, 2 + 4);
    assert!(frame.live[usize::from(place.row)].text().contains("日本"));
}

#[test]
fn a_table_is_used_by_numbers_where_lines_are_read() {
    let mut stage = Stage::new();
    stage.model.set_plain();
    let row = |id: &str, name: &str| TableRow {
        cells: vec!["● Edit".to_owned()],
        ..TableRow::new(id, name).with_detail("all of it")
    };
    let rows =
        vec![TableRow::head("Members"), row("member a1", "parser"), row("member a2", "tester")];
    shows(&mut stage, Table::new(TableOf::Team, "Team", rows));
    let shown = stage.shown();
    assert!(
        shown.contains("2 tester, ● Edit") && shown.contains("m and a number: message"),
        "{shown}"
    );
    let line = |stage: &mut Stage, text: &str| {
        stage.happens(Happening::Input(&Input::Line(text.to_owned())));
    };
    line(&mut stage, "m 2 be quick");
    let is_told = |it: &Effect| matches!(it, Effect::Tell { agent, text, .. } if agent.as_str() == "a2" && text == "be quick");
    assert!(stage.take_effects().iter().any(is_told));
    line(&mut stage, "m 2");
    assert!(stage.shown().contains("write the words behind the number"), "{}", stage.shown());
    line(&mut stage, "d 1");
    assert!(stage.shown().contains("all of it"), "{}", stage.shown());
    line(&mut stage, "hello");
    let is_sent = |it: &Effect| matches!(it, Effect::Submit { text, .. } if text == "hello");
    assert!(stage.take_effects().iter().any(is_sent), "other words are a prompt");
}
