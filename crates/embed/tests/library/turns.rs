//! Turns: their events, their end, and what happens to those that are given up.

use centurion_embed::{Agent, ErrorKind, Event, Model, Outcome, Session};

#[tokio::test]
async fn a_text_comes_in_pieces_and_then_whole() {
    let script = "default: {text: A text in pieces., chunk_chars: 4}";
    let builder = Session::builder(Model::script(script)).streams_text();
    let mut session = builder.open().await.unwrap();
    let mut turn = session.send("go");
    let (mut pieces, mut whole) = (Vec::new(), Vec::new());
    let mut last = None;
    while let Some(event) = turn.next().await {
        match &event {
            Event::TextDelta { text, .. } => pieces.push(text.clone()),
            Event::Text { text, .. } => whole.push(text.clone()),
            _ => {}
        }
        last = Some(event);
    }
    assert!(pieces.len() > 2, "{pieces:?}");
    assert_eq!(pieces.concat(), "A text in pieces.");
    assert_eq!(whole, ["A text in pieces."]);
    assert!(matches!(last, Some(Event::Answered(_))), "{last:?}");
}

#[tokio::test]
async fn an_agent_in_the_background_belongs_to_the_prompt_that_started_it() {
    let script = r#"
scripts:
  lead:
    - - {tool: Agent, input: {description: Dig, prompt: "@@dig", subagent_type: digger}}
    - I go on.
    - "Found: ${re:(gold)}."
  dig: [There is gold.]
"#;
    let digger = Agent::new("digger", "Digs", "You dig.").in_background();
    let builder = Session::builder(Model::script(script)).agent(digger);
    let mut session = builder.open().await.unwrap();
    let mut turn = session.send("@@lead dig");
    let (mut started, mut ended, mut texts) = (Vec::new(), Vec::new(), Vec::new());
    let mut last = None;
    while let Some(event) = turn.next().await {
        match event {
            Event::AgentStarted { id, kind, task, .. } => started.push((id, kind, task)),
            Event::AgentEnded { id, status, .. } => ended.push((id, status)),
            Event::Text { agent: None, text } => texts.push(text),
            Event::Answered(answer) => last = Some(answer),
            _ => {}
        }
    }
    let [(id, kind, task)] = &started[..] else { panic!("{started:?}") };
    assert_eq!((kind.as_str(), task.as_str()), ("digger", "Dig"));
    assert_eq!(ended, [(id.clone(), "completed".to_owned())]);
    assert_eq!(texts, ["I go on.", "Found: gold."]);
    let answer = last.unwrap();
    assert_eq!((answer.text.as_str(), answer.outcome), ("Found: gold.", Outcome::Completed));
}

#[tokio::test]
async fn a_turn_that_is_given_up_is_interrupted_and_leaves_nothing_to_the_next() {
    let script = "
rules:
  - {match: {last_user: first}, respond: {text: 'The first answer, slowly.', chunk_chars: 1, stall_after_events: 3, stall_ms: 600000}}
default: The second answer.
";
    let builder = Session::builder(Model::script(script)).streams_text();
    let mut session = builder.open().await.unwrap();
    {
        let mut turn = session.send("first");
        while let Some(event) = turn.next().await {
            if matches!(event, Event::TextDelta { .. }) {
                break;
            }
        }
    }
    let mut turn = session.send("second");
    let mut texts = Vec::new();
    while let Some(event) = turn.next().await {
        if let Event::Text { text, .. } | Event::TextDelta { text, .. } = event {
            texts.push(text);
        }
    }
    assert_eq!(texts.last().map(String::as_str), Some("The second answer."), "{texts:?}");
    assert!(texts.iter().all(|text| !text.contains("first")), "{texts:?}");
}

#[tokio::test]
async fn a_prompt_that_is_never_polled_is_not_sent() {
    let mut session = Session::builder(Model::script("default: [one, two]")).open().await.unwrap();
    drop(session.send("never"));
    assert_eq!(session.ask("now").await.unwrap().text, "one");
}

#[tokio::test]
async fn a_failing_provider_is_an_outcome_and_no_answer() {
    let script = "
rules:
  - {match: {last_user: fails}, respond: {error: {status: 400, type: invalid_request_error, message: no}}}
default: Fine.
";
    let mut session = Session::builder(Model::script(script)).open().await.unwrap();
    let answer = session.ask("fails").await.unwrap();
    assert_eq!(answer.outcome, Outcome::ProviderFailed, "{answer:?}");
    let error = answer.into_text().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsuccessful);
}

#[tokio::test]
async fn limits_end_a_run() {
    let script = "default: {tool: Glob, input: {pattern: '*'}}";
    let builder = Session::builder(Model::script(script)).max_turns(2);
    let mut session = builder.open().await.unwrap();
    let answer = session.ask("go").await.unwrap();
    assert_eq!((answer.outcome, answer.turns), (Outcome::LimitReached, 2), "{answer:?}");
}
