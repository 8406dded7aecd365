//! What a person brings along: images, words completed at the cursor, status lines, vi keys, commands of the terminal.

use centurion_protocol::AgentId;
use centurion_protocol::sdk::{EventBody, System, TaskPatch, TaskStarted, TaskUpdated};
use centurion_tui::{
    AskNumber, Attachment, Colour, Effect, Fact, Happening, Input, Key, KeyCode, TableOf, Theme,
    Tui,
};
use serde_json::json;

use super::stage::{Stage, call, command, ended, init, result, started, text, turn_end};

fn taste(has_vi: bool) -> Fact {
    Fact::Taste {
        has_vi,
        is_still: false,
        is_far: false,
        wants_status: true,
        theme: Theme::Terminal,
        tui: Tui::Inline,
    }
}

#[test]
fn help_lists_the_commands_of_the_session_and_of_the_terminal_in_one_order() {
    let mut stage = Stage::new();
    let hint = |name: &str, arguments: &str, about: &str| centurion_tui::CommandHint {
        name: name.to_owned(),
        arguments: arguments.to_owned(),
        about: about.to_owned(),
    };
    stage.model.set_commands(vec![
        hint("theme", "[name]", "Choose the colours"),
        hint("cost", "", "Show what the session has cost"),
        hint("review", "<a very long list of what it takes to be one>", "Review it"),
    ]);
    stage.says("/help");
    let rows = stage.rows(100, 40);
    let expected = [
        "/cost          Show what the session has cost",
        "/review <a very long list of what it takes to be one>  Review it",
        "/theme [name]  Choose the colours",
    ];
    assert_eq!(rows[1..4], expected, "{rows:#?}");
}

#[test]
fn a_result_of_one_endless_line_takes_a_few_rows() {
    let mut stage = Stage::new();
    stage.event(&init());
    stage.event(&call("t1", "Bash", &json!({"command": "cat data"})));
    stage.event(&result("t1", &"é".repeat(1_000_000)));
    let shown: usize = stage.printed.iter().map(|line| line.chars().count()).sum();
    assert!(shown < 600, "{shown} characters were printed");
    assert!(stage.printed.iter().any(|line| line.contains("more of that line · ctrl+o")));
}

#[test]
fn an_image_is_a_chip_in_the_draft_and_goes_along_with_the_prompt_that_names_it() {
    let mut stage = Stage::new();
    let image = Attachment::of_bytes(b"\x89PNG\r\n\x1a\n").unwrap();
    stage.types("see ");
    stage.fact(Fact::Image(image.clone()));
    stage.types(" there");
    assert!(stage.shown().contains("❯ see [image 1] there"), "{}", stage.shown());
    stage.press(KeyCode::Enter);
    let effects = stage.take_effects();
    let at = |is_it: &dyn Fn(&Effect) -> bool| effects.iter().position(is_it).unwrap();
    let attached = at(
        &|it| matches!(it, Effect::Attach { images, .. } if images == std::slice::from_ref(&image)),
    );
    let sent = at(&|it| matches!(it, Effect::Submit { text, .. } if text == "see [image 1] there"));
    assert!(attached < sent);
    stage.fact(Fact::Image(image));
    stage.press(KeyCode::Backspace);
    stage.says("none");
    let effects = stage.take_effects();
    assert!(
        !effects.iter().any(|it| matches!(it, Effect::Attach { .. })),
        "a deleted chip is gone"
    );
}

#[test]
fn a_dragged_path_asks_for_its_image_and_stays_a_text_where_there_is_none() {
    let mut stage = Stage::new();
    stage.happens(Happening::Input(&Input::Paste("/tmp/my\\ shot.png".to_owned())));
    let path = "/tmp/my shot.png".to_owned();
    let pasted = "/tmp/my\\ shot.png".to_owned();
    assert_eq!(stage.take_effects(), [Effect::ReadImage { path, pasted: pasted.clone() }]);
    stage.fact(Fact::Pasted(pasted.clone()));
    assert!(stage.shown().contains(&pasted), "{}", stage.shown());
}

#[test]
fn the_word_at_the_cursor_is_completed_and_what_stands_behind_it_stays() {
    let mut stage = Stage::new();
    stage.types("see  and go");
    for _ in 0.." and go".len() {
        stage.press(KeyCode::Left);
    }
    stage.types("@ma");
    let wanted = |it: &Effect| matches!(it, Effect::FindFiles(word) if word == "ma");
    assert!(stage.take_effects().iter().any(wanted));
    let files = vec!["src/main.rs".to_owned(), "src/".to_owned()];
    stage.fact(Fact::Files { word: "ma".to_owned(), files });
    stage.press(KeyCode::Tab);
    assert!(stage.shown().contains("❯ see @src/main.rs  and go"), "{}", stage.shown());
    stage.types("@sr");
    stage.fact(Fact::Files { word: "sr".to_owned(), files: vec!["src/".to_owned()] });
    stage.take_effects();
    stage.press(KeyCode::Tab);
    let continues = |it: &Effect| matches!(it, Effect::FindFiles(word) if word == "src/");
    assert!(stage.take_effects().iter().any(continues), "a directory goes on");
}

#[test]
fn a_status_line_of_ones_own_is_shown_in_its_colours_and_goes_with_its_setting() {
    let mut stage = Stage::new();
    stage.fact(taste(false));
    stage.fact(Fact::StatusLine(vec!["\x1b[32mmain\x1b[0m \x1b]0;evil\x07".to_owned()]));
    let frame = stage.frame(80, 24);
    let line = frame.live.iter().find(|line| line.text().contains("main")).unwrap();
    assert_eq!(line.spans[0].style.colour, Colour::Green);
    assert!(line.text().contains("␛]0;evil␇"), "{}", line.text());
    stage.event(&started("a1", "scout", "Look", None));
    stage.fact(Fact::AgentRows(vec![(AgentId::new("a1"), "82 % done".to_owned())]));
    assert!(stage.shown().contains("82 % done"), "{}", stage.shown());
    stage.fact(Fact::Taste {
        has_vi: false,
        is_still: true,
        is_far: false,
        wants_status: false,
        theme: Theme::Daltonized,
        tui: Tui::Inline,
    });
    assert!(!stage.shown().contains("82 % done") && !stage.shown().contains("main"));
    assert!(stage.take_effects().contains(&Effect::Restyle(Theme::Daltonized)));
}

#[test]
fn ticks_are_rarer_over_a_network_and_without_the_focus() {
    let mut stage = Stage::new();
    stage.event(&init());
    let tick =
        |stage: &Stage| stage.model.next_tick().unwrap().saturating_sub(stage.now).as_millis();
    assert_eq!(tick(&stage), 250);
    stage.fact(Fact::Taste {
        has_vi: false,
        is_still: false,
        is_far: true,
        wants_status: false,
        theme: Theme::Terminal,
        tui: Tui::Inline,
    });
    assert_eq!(tick(&stage), 500);
    stage.happens(Happening::Input(&Input::Focus(false)));
    assert_eq!(tick(&stage), 1_000);
}

#[test]
fn with_vi_keys_escape_ends_the_writing_and_stops_nothing() {
    let mut stage = Stage::new();
    stage.fact(taste(true));
    stage.event(&init());
    stage.take_effects();
    stage.types("one two");
    stage.press(KeyCode::Escape);
    assert!(!stage.take_effects().contains(&Effect::Interrupt));
    assert!(stage.shown().contains("NORMAL"), "{}", stage.shown());
    stage.types("0dwA!");
    assert!(stage.shown().contains("❯ two!"), "{}", stage.shown());
    stage.press(KeyCode::Escape);
    stage.press(KeyCode::Enter);
    let sent = |it: &Effect| matches!(it, Effect::Submit { text, .. } if text == "two!");
    assert!(stage.take_effects().iter().any(sent));
    stage.types("i");
    assert!(stage.shown().contains("❯ i"), "after sending, letters are written: {}", stage.shown());
    stage.ctrl('u');
    stage.press(KeyCode::Escape);
    assert!(stage.take_effects().contains(&Effect::Interrupt), "with nothing written it stops");
}

#[test]
fn commands_of_the_terminal_do_what_they_say() {
    let mut stage = Stage::new();
    stage.event(&init());
    stage.event(&text("first answer"));
    stage.event(&text("second answer"));
    stage.event(&turn_end());
    let effects = |stage: &mut Stage, words: &str| {
        stage.take_effects();
        stage.says(words);
        let is_kept = |it: &Effect| {
            !matches!(it, Effect::SaveDraft { .. } | Effect::Remember(_) | Effect::FindFiles(_))
        };
        stage.take_effects().into_iter().filter(is_kept).collect::<Vec<_>>()
    };
    assert_eq!(effects(&mut stage, "/copy"), [Effect::Copy("second answer".to_owned())]);
    assert_eq!(effects(&mut stage, "/copy 2"), [Effect::Copy("first answer".to_owned())]);
    assert_eq!(effects(&mut stage, "/plan"), [Effect::SetMode("plan".to_owned())]);
    assert_eq!(effects(&mut stage, "/branch"), [Effect::Branch]);
    assert_eq!(effects(&mut stage, "/keybindings"), [Effect::EditKeys]);
    let shown = |command: &str| [Effect::Show { command: command.to_owned() }];
    for name in ["diff", "trust", "plugin", "model"] {
        assert_eq!(effects(&mut stage, &format!("/{name}")), shown(name));
    }
    let table =
        |of, words: &str| [Effect::Table { of, subject: words.to_owned(), is_again: false }];
    for (name, of) in [
        ("agents", TableOf::Agents),
        ("config", TableOf::Settings),
        ("context", TableOf::Contexts),
        ("cost", TableOf::Costs),
        ("usage", TableOf::Costs),
        ("hooks", TableOf::Hooks),
        ("mcp", TableOf::Servers),
        ("memory", TableOf::Memory),
        ("permissions", TableOf::Rules),
        ("resume", TableOf::Sessions),
        ("rewind", TableOf::Points),
        ("skills", TableOf::Skills),
        ("team", TableOf::Team),
    ] {
        assert_eq!(effects(&mut stage, &format!("/{name}")), table(of, ""), "{name}");
    }
    assert_eq!(effects(&mut stage, "/config model"), table(TableOf::Settings, "model"));
    assert_eq!(effects(&mut stage, "/effort high"), [Effect::SetEffort("high".to_owned())]);
    assert!(effects(&mut stage, "/effort").is_empty());
    stage.types("max");
    stage.press(KeyCode::Enter);
    assert!(stage.take_effects().contains(&Effect::SetEffort("max".to_owned())));
    let themed = [
        Effect::Restyle(Theme::Daltonized),
        Effect::KeepSetting { key: "theme", value: "dark-daltonized".to_owned() },
    ];
    assert_eq!(effects(&mut stage, "/theme dark-daltonized"), themed);
    assert!(effects(&mut stage, "/theme").is_empty());
    stage.types("light-d");
    stage.press(KeyCode::Enter);
    let kept = |it: &Effect| matches!(it, Effect::KeepSetting { value, .. } if value == "light-daltonized");
    assert!(stage.take_effects().iter().any(kept), "a theme is chosen from the list");
}

#[test]
fn a_written_file_and_several_edits_show_their_change() {
    let mut stage = Stage::new();
    stage.event(&init());
    let edits = json!({"file_path": "a.rs", "edits": [
        {"old_string": "one", "new_string": "two"}, {"old_string": "x", "new_string": "y"}]});
    stage.event(&call("t1", "MultiEdit", &edits));
    stage.event(&result("t1", "ok"));
    let long = (0..60).map(|number| format!("line {number}")).collect::<Vec<_>>().join("\n");
    stage.event(&call("t2", "Write", &json!({"file_path": "b.rs", "content": long})));
    stage.event(&result("t2", "ok"));
    let printed = stage.printed.join("\n");
    for shown in ["two", "one", "line 0", "line 30", "more lines · ctrl+o"] {
        assert!(printed.contains(shown), "{shown}: {printed}");
    }
    assert!(!printed.contains("line 59"), "{printed}");
}

#[test]
fn a_file_that_was_there_shows_what_has_changed_of_it() {
    let mut stage = Stage::new();
    stage.event(&init());
    let content = "one\nTWO\nthree\n";
    stage.event(&call("t1", "Write", &json!({"file_path": "b.rs", "content": content})));
    let EventBody::User(mut user) = result("t1", "ok") else { panic!() };
    user.tool_use_result = Some(json!({"type": "update", "originalFile": "one\ntwo\nthree\n"}));
    stage.event(&EventBody::User(user));
    let printed = stage.printed.join("\n");
    let is_changed = |mark: char, words: &str| {
        stage.printed.iter().any(|line| line.contains(mark) && line.contains(words))
    };
    assert!(is_changed('-', "two") && is_changed('+', "TWO"), "{printed}");
    assert!(!is_changed('+', "three"), "{printed}");
}

/// S-172: a question says which agent asks, in its colour.
#[test]
fn a_question_names_the_asking_agent_in_its_colour() {
    let mut stage = Stage::new();
    stage.event(&EventBody::System(System::TaskStarted(Box::new(TaskStarted {
        task_id: "a1".to_owned(),
        description: "Run examples".to_owned(),
        subagent_type: Some("prover".to_owned()),
        color: Some("purple".to_owned()),
        is_backgrounded: true,
        task_type: "local_agent",
        ..TaskStarted::default()
    }))));
    stage.asks(Some("a1"), &["prover"], command("make"));
    stage.pass(1_200);
    let frame = stage.frame(100, 40);
    let asker = frame.live[0].spans.iter().find(|span| span.text.contains("prover")).unwrap();
    assert_eq!(asker.style.colour, Colour::Magenta, "{:?}", frame.live[0]);
    let rest = frame.live[0].spans.iter().find(|span| span.text.contains("Bash")).unwrap();
    assert_eq!(rest.style.colour, Colour::Default);
    assert!(!frame.live[0].text().contains("▸ ▸"), "{}", frame.live[0].text());
}

/// S-174: an answer that comes after its question was given up runs nothing.
#[test]
fn a_key_for_a_question_that_is_gone_answers_nothing() {
    let mut stage = Stage::new();
    let number = stage.asks(None, &[], command("make"));
    stage.pass(1_200);
    stage.happens(Happening::Withdrawn(number));
    stage.press(KeyCode::Char('y'));
    stage.press(KeyCode::Enter);
    let effects = stage.take_effects();
    assert!(!effects.iter().any(|it| matches!(it, Effect::Answer { .. })), "{effects:?}");
    assert_ne!(number, AskNumber(0));
}

/// S-193: a person who waits for a call is told how to let it continue without waiting, and sees that nothing waits any more.
#[test]
fn a_call_that_takes_long_says_how_to_continue_without_it() {
    let mut stage = Stage::new();
    stage.event(&init());
    stage.event(&call("t1", "Bash", &json!({"command": "sleep 100"})));
    assert!(!stage.shown().contains("continues without waiting"), "{}", stage.shown());
    stage.pass(2_500);
    assert!(
        stage.shown().contains("ctrl+x ctrl+b continues without waiting")
            || stage.shown().contains("ctrl+b continues without waiting"),
        "{}",
        stage.shown()
    );
    stage.ctrl('b');
    assert!(stage.take_effects().contains(&Effect::Background(None)));
    stage.event(&result("t1", "Command running in background"));
    assert!(!stage.shown().contains("continues without waiting"), "{}", stage.shown());
}

#[test]
fn one_key_moves_an_agent_to_the_background_and_back() {
    let mut stage = Stage::new();
    let moved = |is_background| {
        EventBody::System(System::TaskUpdated(TaskUpdated {
            task_id: "a1".to_owned(),
            run_id: None,
            patch: TaskPatch { is_backgrounded: Some(is_background), ..TaskPatch::default() },
        }))
    };
    stage.event(&started("a1", "scout", "Look", None));
    let agent = AgentId::new("a1");
    for (is_background, expected) in [
        (false, Effect::Background(Some(agent.clone()))),
        (true, Effect::Foreground(agent.clone())),
        (false, Effect::Background(Some(agent.clone()))),
    ] {
        stage.event(&moved(is_background));
        stage.press(KeyCode::Down);
        assert!(stage.shown().contains("b background and back"), "{}", stage.shown());
        stage.press(KeyCode::Char('b'));
        assert_eq!(stage.take_effects(), [expected]);
        stage.press(KeyCode::Escape);
    }
    stage.event(&ended("a1", "completed", "done"));
    stage.press(KeyCode::Down);
    stage.press(KeyCode::Char('b'));
    assert_eq!(stage.take_effects(), [], "one that has ended is nowhere");
    assert!(stage.shown().contains("scout is not at work"), "{}", stage.shown());
}

/// S-284: a person is shown the report of a skill's agent, once, and nothing of what models are told about it.
#[test]
fn the_report_of_a_typed_skill_is_shown_once() {
    let mut stage = Stage::new();
    stage.event(&init());
    stage.event(&started("a1", "general-purpose", "review", None));
    stage.event(&ended("a1", "completed", "all is well"));
    let EventBody::Result(mut end) = turn_end() else { panic!() };
    end.result = "all is well".to_owned();
    stage.event(&EventBody::Result(end));
    let printed = stage.printed.join("\n");
    assert!(printed.contains("all is well"), "{printed}");
    assert!(!printed.contains("local-command") && !printed.contains("task-notification"));
}

#[test]
fn stopping_an_agent_says_what_stops_with_it() {
    let mut stage = Stage::new();
    stage.event(&started("a1", "writer", "Write", None));
    stage.event(&started("a2", "prover", "Prove", Some("a1")));
    stage.event(&started("a3", "linter", "Lint", Some("a1")));
    stage.press(KeyCode::Down);
    stage.press(KeyCode::Char('x'));
    assert!(stage.shown().contains("x again stops writer and the 2 below it"), "{}", stage.shown());
    stage.key(Key::plain(KeyCode::Escape));
}
