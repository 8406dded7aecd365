//! The keys of skills that no other story is about, each with its effect.

use centurion_permissions::Mode;
use centurion_protocol::Outcome;
use serde_json::json;

use crate::skills::{bench, invokes, said, skill, talk};

#[tokio::test(start_paused = true)]
async fn a_name_is_a_label_and_the_directory_is_what_is_typed() {
    let bench = bench(&json!({"lead": ["done"]}));
    skill(&bench, "fix", "name: Mend\n", "@@lead Mend it.");
    assert_eq!(bench.run("/fix").await.outcome, Some(Outcome::Completed));
    let told = bench.run("/Mend").await;
    assert_eq!(told.outcome, Some(Outcome::CommandFailed), "{}", told.result());
    assert!(told.asked.is_empty());
}

#[tokio::test(start_paused = true)]
async fn models_are_told_what_a_skill_is_for_and_when() {
    let bench = bench(&json!({"lead": ["done"]}));
    skill(&bench, "fix", "when_to_use: On Fridays\n", "Mend it.");
    let text = said(&bench.run("@@lead").await.asked[0]);
    assert!(text.contains("- fix: About fix - On Fridays\n"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn an_agent_of_the_named_type_carries_a_skill_out() {
    let bench = bench(&json!({"lead": [invokes("find", ""), "done"], "scout": ["found"]}));
    skill(&bench, "find", "context: fork\nagent: Explore\n", "@@scout");
    skill(&bench, "lose", "context: fork\n", "@@scout");
    skill(&bench, "odd", "context: fork\nagent: Explor\n", "@@scout");
    for (prompt, kind) in
        [("/find", "Explore"), ("@@lead", "Explore"), ("/lose", "general-purpose")]
    {
        let told = bench.run(prompt).await;
        let started = told.of("system", Some("task_started"));
        assert_eq!((started.len(), &started[0]["subagent_type"]), (1, &json!(kind)), "{prompt}");
        let tools = &told.asked.iter().find(|asked| asked.agent.is_some()).unwrap().tools;
        assert_eq!(tools.contains(&"Write".to_owned()), kind != "Explore", "{prompt}: {tools:?}");
    }
    let told = bench.run("/odd").await;
    assert_eq!((told.outcome, told.asked.len()), (Some(Outcome::CommandFailed), 0));
    assert!(told.result()["errors"].to_string().contains("Explore"), "{}", told.result());
}

#[tokio::test(start_paused = true)]
async fn disallowed_tools_are_gone_until_the_next_input() {
    let read = json!([{"tool": "Read", "input": {"file_path": "a.txt"}}]);
    let bench = bench(&json!({"lead": [read, "blind"], "then": [read, "seen"]}));
    bench.file("a.txt", "ALPHA\n");
    skill(&bench, "blind", "disallowed-tools: Read, Bash(ls *)\n", "@@lead");
    let told = talk(&bench, &["/blind", "@@then"]).await;
    assert!(!said(&told.asked[1]).contains("ALPHA"), "{}", said(&told.asked[1]));
    assert!(said(told.asked.last().unwrap()).contains("ALPHA"));
}

#[tokio::test(start_paused = true)]
async fn what_a_skill_frees_is_gone_behind_its_turn_whatever_comes_between() {
    let write =
        |file: &str| json!([{"tool": "Write", "input": {"file_path": file, "content": "x"}}]);
    for between in ["/cost", "/compact", "/clear", "/rewind 2 files --dry-run", "resume"] {
        let mut bench = bench(&json!({
            "lead": ["ready"],
            "free": [write("free.txt"), "done"],
            "then": [write("then.txt"), "done"],
        }));
        bench.mode = Mode::Default;
        bench.scenario["rules"] = json!([
            {"match": {"last_user": "about to leave its window"}, "respond": "<summary>It was.</summary>"},
        ]);
        skill(&bench, "free", "allowed-tools: Write\n", "@@free");
        let made = |name: &str| bench.project().join(name).exists();
        let told = if between == "resume" {
            let told = talk(&bench, &["@@lead", "/free"]).await;
            bench.resume(&told, "@@then").await
        } else {
            talk(&bench, &["@@lead", "/free", between, "@@then"]).await
        };
        assert!(made("free.txt") && !made("then.txt"), "{between}: {:?}", told.results());
    }
}
