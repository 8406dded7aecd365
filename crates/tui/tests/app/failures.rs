//! Failures that are known from elsewhere, each as a test named after it. The numbers are those of the design.

use std::fmt::Write as _;
use std::time::Duration;

use centurion_protocol::AgentId;
use centurion_protocol::sdk::EventBody;
use centurion_tui::{
    CommandHint, Effect, Fact, Happening, Input, Key, KeyCode, Model, PromptNumber, When, fold,
};
use serde_json::json;

use super::stage::{
    Stage, call, command, ended, init, progress, result, started, streamed, text, turn_end,
};

#[test]
fn a_terminal_at_rest_has_no_timer() {
    // 5
    let mut stage = Stage::new();
    assert_eq!(stage.model.next_tick(), None);
    stage.types("a");
    stage.pass(1_000);
    assert_eq!(stage.model.next_tick(), None, "the draft is saved, and nothing moves");
    let effects = stage.take_effects();
    assert!(
        effects
            .iter()
            .any(|it| matches!(it, Effect::SaveDraft { draft, .. } if draft.text() == "a")),
        "{effects:?}"
    );
    stage.event(&init());
    assert!(stage.model.next_tick().is_some());
    stage.event(&turn_end());
    assert_eq!(stage.model.next_tick(), None);
}

/// Clocks show whole seconds. While the main agent works something turns, and agents that work alone have their clocks.
#[test]
fn agents_in_the_background_wake_the_terminal_once_a_second() {
    // 5
    let mut stage = Stage::new();
    stage.event(&started("a1", "scout", "Look around", None));
    let after = |stage: &Stage| stage.model.next_tick().unwrap().saturating_sub(stage.now);
    assert_eq!(after(&stage), Duration::from_secs(1));
    stage.event(&init());
    assert_eq!(after(&stage), Duration::from_millis(250));
    stage.event(&turn_end());
    assert_eq!(after(&stage), Duration::from_secs(1));
}

#[test]
fn a_million_events_do_not_grow_the_model() {
    // 6
    const ROUNDS: u64 = 40_000;
    let mut model = Model::default();
    let mut events = 0;
    let mut fold_at = |model: &mut Model, round: u64, event: &EventBody| {
        events += 1;
        fold(model, Duration::from_secs(2 * round), Happening::Event(event));
    };
    let mut sizes = Vec::new();
    let mut turn = vec![init()];
    for number in 0..5 {
        turn.push(call(&format!("t{number}"), "Read", &json!({"file_path": "x"})));
        turn.push(result(&format!("t{number}"), "line\nline"));
    }
    turn.extend(streamed(&["First.\n\nSec", "ond.\n\n- a list\n"]));
    turn.push(turn_end());
    for round in 0..ROUNDS {
        let id = format!("a{round}");
        fold_at(&mut model, round, &started(&id, "scout", "Look around", None));
        for event in &turn {
            fold_at(&mut model, round, event);
        }
        for number in 0..6 {
            fold_at(&mut model, round, &progress(&id, "Read x", number, 100));
        }
        fold_at(&mut model, round, &ended(&id, "completed", "found it"));
        model.printed();
        if round % (ROUNDS / 4) == ROUNDS / 4 - 1 {
            sizes.push(format!("{model:?}").len());
        }
    }
    assert!(events >= 1_000_000, "{events}");
    assert!(sizes[3] <= sizes[1] + sizes[1] / 10, "{sizes:?}");
}

#[test]
fn every_agent_has_a_row_with_its_present_call_at_any_depth() {
    // 8
    let mut stage = Stage::new();
    let mut parent: Option<String> = None;
    for depth in 0..6 {
        let id = format!("a{depth}");
        stage.event(&started(&id, &format!("level{depth}"), "Dig", parent.as_deref()));
        stage.event(&progress(&id, &format!("Bash ./dig{depth}.sh"), 1, 900));
        parent = Some(id);
    }
    let shown = stage.shown();
    for depth in 0..6 {
        assert!(
            shown.contains(&format!("level{depth}"))
                && shown.contains(&format!("Bash ./dig{depth}.sh")),
            "{shown}"
        );
    }
}

#[test]
fn one_agent_is_corrected_stopped_and_revived_while_its_siblings_continue() {
    // 9
    let mut stage = Stage::new();
    stage.event(&started("a1", "writer", "Write", None));
    stage.event(&started("a2", "linter", "Lint", None));
    stage.types("half a prompt");
    stage.key(Key::plain(KeyCode::Char('x')).ctrl());
    stage.press(KeyCode::Down);
    stage.press(KeyCode::Down);
    stage.press(KeyCode::Enter);
    assert!(stage.shown().contains("main ▸ linter · Lint"), "{}", stage.shown());
    stage.says("only README");
    let agent = AgentId::new("a2");
    let effects = stage.take_effects();
    let told = |it: &Effect| matches!(it, Effect::Tell { agent: to, text, .. } if *to == agent && text == "only README");
    assert!(effects.iter().any(told), "{effects:?}");
    assert!(stage.shown().contains("next: only README"), "{}", stage.shown());
    stage.press(KeyCode::Escape);
    assert!(stage.shown().contains("half a prompt"), "each agent has its own draft");
    stage.key(Key::plain(KeyCode::Char('x')).ctrl());
    stage.press(KeyCode::Down);
    stage.press(KeyCode::Down);
    stage.press(KeyCode::Char('x'));
    assert!(
        !stage.take_effects().iter().any(|it| matches!(it, Effect::StopTask(_))),
        "one press stops nothing"
    );
    stage.press(KeyCode::Char('x'));
    let stops: Vec<Effect> = stage
        .take_effects()
        .into_iter()
        .filter(|it| !matches!(it, Effect::SaveDraft { .. }))
        .collect();
    assert_eq!(stops, [Effect::StopTask(agent.clone())]);
    stage.event(&ended("a2", "killed", "stopped"));
    stage.press(KeyCode::Enter);
    stage.says("go on");
    let revives = |it: &Effect| matches!(it, Effect::Tell { agent: to, .. } if *to == agent);
    assert!(stage.take_effects().iter().any(revives), "a message resumes it");
    assert!(stage.shown().contains("writer") || stage.rows(100, 40).len() > 3);
}

#[test]
fn escape_and_ctrl_c_stop_the_turn_and_no_agent() {
    // 10
    for key in [Key::plain(KeyCode::Escape), Key::plain(KeyCode::Char('c')).ctrl()] {
        let mut stage = Stage::new();
        stage.event(&init());
        stage.event(&started("a1", "scout", "Look", None));
        stage.key(key);
        let effects = stage.take_effects();
        assert_eq!(effects, [Effect::Interrupt], "{key:?}");
    }
    // In focus, Esc leaves the focus, and the agent continues.
    let mut stage = Stage::new();
    stage.event(&init());
    stage.event(&started("a1", "scout", "Look", None));
    stage.press(KeyCode::Down);
    stage.press(KeyCode::Enter);
    stage.press(KeyCode::Escape);
    assert!(stage.take_effects().is_empty());
}

/// The drafts that are saved, each with its agent.
fn saved(stage: &mut Stage) -> Vec<(Option<String>, String)> {
    let saved = |effect| match effect {
        Effect::SaveDraft { agent, draft } => {
            Some((agent.map(|agent: AgentId| agent.to_string()), draft.text()))
        }
        _ => None,
    };
    let mut saved: Vec<_> = stage.take_effects().into_iter().filter_map(saved).collect();
    saved.sort();
    saved
}

#[test]
fn each_draft_is_saved_for_its_own_agent_and_when_the_terminal_goes() {
    // 11
    let mut stage = Stage::new();
    stage.event(&started("a1", "scout", "Look", None));
    stage.types("for main");
    stage.ctrl('x');
    stage.press(KeyCode::Down);
    stage.press(KeyCode::Enter);
    stage.types("for scout");
    stage.press(KeyCode::Escape);
    stage.pass(400);
    let both = [(None, "for main".to_owned()), (Some("a1".to_owned()), "for scout".to_owned())];
    assert_eq!(saved(&mut stage), both);
    stage.types("!");
    stage.happens(Happening::Leaving);
    assert_eq!(saved(&mut stage), [(None, "for main!".to_owned())], "without waiting for a pause");
    stage.happens(Happening::Leaving);
    assert_eq!(saved(&mut stage), []);
}

#[test]
fn no_key_at_the_prompt_loses_a_draft() {
    // 11: whatever a key does, the text is in the draft, sent, put aside or in the history, or undo brings it back.
    let text = "words that took a while";
    let mut keys: Vec<Key> = vec![
        Key::plain(KeyCode::Enter),
        Key::plain(KeyCode::Escape),
        Key::plain(KeyCode::Tab),
        Key::plain(KeyCode::Tab).shift(),
        Key::plain(KeyCode::Up),
        Key::plain(KeyCode::Down),
        Key::plain(KeyCode::PageUp),
        Key::plain(KeyCode::PageDown),
        Key::plain(KeyCode::Backspace),
        Key::plain(KeyCode::Delete),
    ];
    for letter in 'a'..='z' {
        keys.push(Key::plain(KeyCode::Char(letter)).ctrl());
        keys.push(Key::plain(KeyCode::Char(letter)).alt());
    }
    for first in &keys {
        for second in &keys {
            let mut stage = Stage::new();
            stage.types(text);
            stage.key(*first);
            stage.key(*second);
            let mut seen = format!("{:?}", stage.take_effects());
            let mut look = |stage: &mut Stage| {
                writeln!(seen, "{}\n{:?}", stage.shown(), stage.take_effects()).unwrap();
                stage.pass(1_000);
            };
            look(&mut stage);
            // A screen closes; what a key killed, replaced or put aside comes back.
            stage.press(KeyCode::Escape);
            look(&mut stage);
            for _ in 0..4 {
                stage.ctrl('_');
                look(&mut stage);
            }
            (0..40).for_each(|_| stage.press(KeyCode::Backspace));
            for key in ['y', 's'] {
                stage.ctrl(key);
                look(&mut stage);
            }
            assert!(seen.contains(text), "{first:?} {second:?}: {seen}");
        }
    }
}

#[test]
fn ctrl_d_in_the_focus_of_an_agent_ends_nothing_and_keeps_the_main_draft() {
    let mut stage = Stage::new();
    stage.event(&started("a1", "scout", "Look", None));
    stage.types("half a prompt");
    for key in ['d', 'c'] {
        stage.ctrl('x');
        stage.press(KeyCode::Down);
        stage.press(KeyCode::Enter);
        assert!(stage.shown().contains("main ▸ scout"), "{}", stage.shown());
        stage.ctrl(key);
        stage.pass(1_000);
        assert!(
            !stage.take_effects().iter().any(|it| matches!(it, Effect::Exit | Effect::Interrupt))
        );
        assert!(stage.shown().contains("❯ half a prompt"), "{}", stage.shown());
    }
}

#[test]
fn words_that_did_not_reach_an_agent_come_back_to_its_own_draft() {
    let mut stage = Stage::new();
    stage.event(&started("a1", "scout", "Look", None));
    stage.types("@scout look again");
    stage.press(KeyCode::Escape);
    stage.press(KeyCode::Enter);
    stage.take_effects();
    stage.fact(Fact::Undelivered { number: PromptNumber(1), why: "it has ended".to_owned() });
    assert!(!stage.shown().contains("❯ look again"), "{}", stage.shown());
    stage.press(KeyCode::Down);
    stage.press(KeyCode::Enter);
    assert!(stage.shown().contains("❯ look again"), "{}", stage.shown());
}

#[test]
fn leaving_takes_two_presses_and_names_what_it_interrupts() {
    let mut stage = Stage::new();
    stage.event(&started("a1", "scout", "Look", None));
    stage.ctrl('c');
    assert!(stage.shown().contains("this interrupts scout"), "{}", stage.shown());
    stage.pass(900);
    stage.ctrl('c');
    assert!(!stage.take_effects().contains(&Effect::Exit), "too late for one gesture");
    stage.ctrl('c');
    assert!(stage.take_effects().contains(&Effect::Exit));
}

#[test]
fn a_prompt_that_nothing_answered_comes_back() {
    let mut stage = Stage::new();
    stage.says("do it");
    stage.event(&init());
    stage.fact(Fact::Held(Vec::new()));
    stage.press(KeyCode::Escape);
    assert!(stage.shown().contains("❯ do it"), "{}", stage.shown());
}

#[test]
fn queued_words_are_listed_until_the_session_has_read_them_and_can_be_taken_back() {
    // 20
    let mut stage = Stage::new();
    stage.event(&init());
    stage.says("also cover empty input");
    stage.types("afterwards");
    stage.ctrl('x');
    stage.press(KeyCode::Enter);
    assert!(stage.shown().contains("next: also cover empty input"), "{}", stage.shown());
    assert!(stage.shown().contains("later: afterwards"), "{}", stage.shown());
    let sent = |effects: &[Effect]| -> Vec<(PromptNumber, When)> {
        let submit = |it: &Effect| match it {
            Effect::Submit { number, when, .. } => Some((*number, *when)),
            _ => None,
        };
        effects.iter().filter_map(submit).collect()
    };
    assert_eq!(sent(&stage.take_effects()), [(PromptNumber(1), When::Next)], "later is held here");
    stage.fact(Fact::Held(vec![PromptNumber(1)]));
    assert!(stage.shown().contains("next: also cover empty input"), "it is not read yet");
    stage.press(KeyCode::Up);
    assert!(stage.shown().contains("❯ afterwards"), "the last comes back first: {}", stage.shown());
    stage.ctrl('x');
    stage.press(KeyCode::Enter);
    stage.fact(Fact::Held(Vec::new()));
    assert!(
        stage.printed.iter().any(|line| line == "› also cover empty input"),
        "{:?}",
        stage.printed
    );
    stage.take_effects();
    stage.event(&turn_end());
    assert_eq!(
        sent(&stage.take_effects()),
        [(PromptNumber(3), When::Next)],
        "held until the turn was over"
    );
}

#[test]
fn a_person_is_called_only_while_looking_elsewhere() {
    // 23
    let notified =
        |stage: &mut Stage| stage.take_effects().iter().any(|it| matches!(it, Effect::Notify(_)));
    let mut stage = Stage::new();
    stage.event(&init());
    stage.event(&turn_end());
    assert!(!notified(&mut stage), "one looks at it");
    stage.happens(Happening::Input(&Input::Focus(false)));
    stage.event(&init());
    stage.event(&started("a1", "scout", "Look", None));
    stage.event(&turn_end());
    assert!(!notified(&mut stage), "an agent is at work");
    stage.asks(Some("a1"), &["scout"], command("make"));
    assert!(notified(&mut stage), "it asks");
    stage.event(&ended("a1", "completed", "done"));
    assert!(notified(&mut stage), "all is done");
}

#[test]
fn typing_is_echoed_while_a_provider_is_silent() {
    // 7: no key waits for an event.
    let mut stage = Stage::new();
    stage.event(&init());
    for typed in ["e", "ec", "ech", "echo"] {
        stage.types(&typed[typed.len() - 1..]);
        assert!(stage.shown().contains(&format!("❯ {typed}")), "{}", stage.shown());
    }
}

#[test]
fn a_streamed_answer_is_printed_once() {
    let mut stage = Stage::new();
    stage.event(&init());
    for event in streamed(&["First.\n\nSec", "ond."]) {
        stage.event(&event);
    }
    stage.event(&text("First.\n\nSecond."));
    stage.event(&turn_end());
    let count = |words: &str| stage.printed.iter().filter(|line| line.contains(words)).count();
    assert_eq!((count("First."), count("Second.")), (1, 1), "{:?}", stage.printed);
}

#[test]
fn an_unknown_command_is_not_sent_by_a_slip() {
    let mut stage = Stage::new();
    let hint = |name: &str| CommandHint {
        name: name.to_owned(),
        about: String::new(),
        arguments: String::new(),
    };
    stage.fact(Fact::Commands(vec![hint("cost")]));
    stage.says("/cots now");
    assert!(!stage.take_effects().iter().any(|it| matches!(it, Effect::Submit { .. })));
    stage.press(KeyCode::Enter);
    assert!(
        stage
            .take_effects()
            .iter()
            .any(|it| matches!(it, Effect::Submit { text, .. } if text == " /cots now"))
    );
}

#[test]
fn the_output_of_a_command_is_printed_as_it_is() {
    let mut stage = Stage::new();
    stage.event(&init());
    let mut end = turn_end();
    if let EventBody::Result(result) = &mut end {
        result.result = "name    tokens\n  *main*    12\n# not a heading\n    4 blanks".to_owned();
    }
    stage.event(&end);
    let expected = ["name    tokens", "  *main*    12", "# not a heading", "    4 blanks"];
    let from = stage.printed.iter().position(|line| line == expected[0]).unwrap();
    assert_eq!(stage.printed[from..], expected);
}

#[test]
fn a_command_of_ones_own_is_seen_while_it_runs_and_escape_ends_it_alone() {
    let mut stage = Stage::new();
    stage.event(&init());
    stage.says("!make check");
    let effects = stage.take_effects();
    let runs =
        |it: &Effect| matches!(it, Effect::Shell { number: 1, command } if command == "make check");
    assert!(effects.iter().any(runs), "{effects:?}");
    stage.fact(Fact::ShellPrinted { number: 1, text: "one\ntwo\u{1b}[2J\n".to_owned() });
    stage.pass(4_000);
    let shown = stage.shown();
    assert!(shown.contains("! make check · 3s · esc stops it"), "{shown}");
    assert!(shown.contains("  two␛[2J"), "{shown}");
    stage.press(KeyCode::Escape);
    let stops: Vec<Effect> = stage.take_effects();
    assert!(stops.contains(&Effect::StopShell(1)) && !stops.contains(&Effect::Interrupt));
    stage.fact(Fact::ShellEnded {
        number: 1,
        command: "make check".to_owned(),
        output: "two\n(stopped)".to_owned(),
        is_success: false,
    });
    assert!(!stage.shown().contains("! make check"), "{}", stage.shown());
    assert!(stage.printed.iter().any(|line| line == "  (stopped)"), "{:?}", stage.printed);
    stage.press(KeyCode::Escape);
    assert!(stage.take_effects().contains(&Effect::Interrupt), "now it is the turn that stops");
}

#[test]
fn a_stalled_provider_is_shown_and_a_prompt_waits_its_turn() {
    // 7
    use centurion_protocol::sdk::{AgentWaiting, System, WaitsFor};
    let waiting = |is_over| {
        EventBody::System(System::AgentWaiting(AgentWaiting {
            agent_id: None,
            waits_for: WaitsFor::Provider,
            is_over,
        }))
    };
    let mut stage = Stage::new();
    stage.event(&init());
    stage.event(&waiting(false));
    stage.pass(42_000);
    assert!(stage.shown().contains("waits for the provider · 42s"), "{}", stage.shown());
    stage.says("meanwhile");
    assert!(stage.shown().contains("next: meanwhile"), "{}", stage.shown());
    stage.event(&waiting(true));
    assert!(!stage.shown().contains("waits for the provider"), "{}", stage.shown());
}
