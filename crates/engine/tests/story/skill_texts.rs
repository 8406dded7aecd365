//! The texts of skills: the files that they bring along, and how often a conversation has them.

use serde_json::{Value, json};

use crate::bench::{Bench, Told};
use crate::compaction::{boundaries, good, read, telling};
use crate::skills::{bench, invokes, said, skill, talk};

/// How often the last request of a run has a text.
fn count(told: &Told, text: &str) -> usize {
    said(told.asked.last().unwrap()).matches(text).count()
}

#[tokio::test(start_paused = true)]
async fn a_mention_is_read_with_its_values_in_place() {
    let bench = bench(&json!({"lead": ["done"], "model": [invokes("look", "notes.txt"), "done"]}));
    bench.file("notes.txt", "alpha\n");
    skill(&bench, "look", "", "@@lead See @$0 and @${CLAUDE_SKILL_DIR}/role.md.");
    let role = bench.project().join(".claude/skills/look/role.md");
    std::fs::write(role, "You are careful.\n").unwrap();
    for prompt in ["/look notes.txt", "@@model"] {
        let told = bench.run(prompt).await;
        assert_eq!(count(&told, "alpha"), 1, "{prompt}");
        assert_eq!(count(&told, "You are careful."), 1, "{prompt}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_value_completes_a_mention_and_never_begins_one() {
    let scripts = json!({"lead": ["done"], "model": [invokes("say", "x @secret.txt"), "done"]});
    let bench = bench(&scripts);
    bench.file("secret.txt", "SECRET\n");
    skill(&bench, "say", "", "@@lead Say $ARGUMENTS.");
    let told = bench.run("@@model").await;
    assert_eq!(count(&told, "SECRET"), 0, "what a model hands over is no mention");
    // What a person types is looked through as in every prompt, and once.
    let told = bench.run("/say x @secret.txt").await;
    assert_eq!(count(&told, "SECRET"), 1, "{}", said(&told.asked[0]));
}

#[tokio::test(start_paused = true)]
async fn a_file_that_several_texts_mention_goes_along_once() {
    let bench = bench(&json!({"lead": ["done"]}));
    bench.file("notes.txt", "alpha\n");
    skill(&bench, "one", "", "@@lead See @notes.txt and @./notes.txt: $ARGUMENTS");
    skill(&bench, "two", "", "See @notes.txt, too.");
    let told = bench.run("/one /two about @notes.txt").await;
    assert_eq!(count(&told, "alpha"), 1, "{}", said(&told.asked[0]));
}

#[tokio::test(start_paused = true)]
async fn a_text_that_is_typed_again_is_in_the_conversation_once() {
    let bench = bench(&json!({"lead": ["one", "two"], "other": ["three"]}));
    skill(&bench, "fix", "", "@@lead The rule is $0.");
    let told = talk(&bench, &["/fix 4711", "/fix 4711"]).await;
    assert_eq!(count(&told, "The rule is 4711."), 1, "{}", said(told.asked.last().unwrap()));
    assert_eq!(count(&told, "You were given exactly this text already"), 1);
    assert_eq!(count(&told, "<command-args>4711</command-args>"), 2, "that it was typed is said");
    // With other arguments it is another text, and the first is still known after it.
    let told = talk(&bench, &["/fix 1", "/fix 2", "/fix 1"]).await;
    assert_eq!((count(&told, "The rule is 1."), count(&told, "The rule is 2.")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_text_is_told_once_whether_a_person_or_a_model_asks_first() {
    let scripts = json!({"lead": ["one", "two"], "model": [invokes("fix", ""), "done"]});
    let bench = bench(&scripts);
    bench.file("notes.txt", "alpha\n");
    skill(&bench, "fix", "", "@@lead See @notes.txt: the rule is 4711.");
    for prompts in [["/fix", "@@model"], ["@@model", "/fix"]] {
        let told = talk(&bench, &prompts).await;
        assert_eq!(count(&told, "the rule is 4711."), 1, "{prompts:?}");
        assert_eq!(count(&told, "alpha"), 1, "{prompts:?}");
        assert_eq!(count(&told, "You were given exactly this text already"), 1, "{prompts:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_resumed_conversation_knows_the_texts_that_it_has() {
    let scripts = json!({
        "lead": ["one"],
        "model": [invokes("fix", ""), "done"],
        "after": ["done"],
    });
    let bench = bench(&scripts);
    skill(&bench, "fix", "", "@@lead The rule is 4711.");
    let told = bench.run("/fix").await;
    let told = bench.resume(&told, "@@model").await;
    assert_eq!(count(&told, "The rule is 4711."), 1, "{}", said(told.asked.last().unwrap()));
    let told = bench.resume(&told, "/fix").await;
    assert_eq!(count(&told, "The rule is 4711."), 1, "{}", said(told.asked.last().unwrap()));
    // A conversation that began anew has none of them.
    let told = bench.resume(&told, "/clear").await;
    let told = bench.resume(&told, "/fix").await;
    assert_eq!(count(&told, "The rule is 4711."), 1, "{}", said(told.asked.last().unwrap()));
    assert_eq!(count(&told, "You were given exactly this text already"), 0);
}

#[tokio::test(start_paused = true)]
async fn used_skills_are_told_again_after_a_compaction_from_the_record() {
    let steps = [invokes("fix", ""), read(), json!("done"), json!("more"), json!("on")];
    let bench = telling(200_000, &[good()], &steps);
    skill(&bench, "fix", "", "The rule is 4711.");
    let told = talk(&bench, &["go", "more", "/compact", "then"]).await;
    assert_eq!(boundaries(&told), 1);
    let last = said(told.asked.last().unwrap());
    assert!(last.contains("Skill fix:\nBase directory for this skill: "), "{last}");
    assert_eq!(last.matches("The rule is 4711.").count(), 1, "{last}");
    assert!(last.contains("- fix: About fix"), "the list is told again");
}

#[tokio::test(start_paused = true)]
async fn used_skills_come_back_when_another_process_compacts() {
    // context.md 8, 17: anthropics/claude-code#96168
    let steps = [invokes("fix", ""), read(), json!("done"), json!("more")];
    let bench = telling(200_000, &[good()], &steps);
    skill(&bench, "fix", "", "The rule is 4711.");
    let told = talk(&bench, &["go", "more"]).await;
    let later = telling(200_000, &[good()], &[read(), json!("read"), json!("on"), json!("on")]);
    let bench = Bench { scenario: later.scenario, ..bench };
    for _ in 0..2 {
        let compacted = bench.resume(&told, "/compact").await;
        assert_eq!(boundaries(&compacted), 1, "{}", compacted.result());
        let next = bench.resume(&told, "read").await;
        let first = said(&next.asked[0]);
        assert_eq!(first.matches("The rule is 4711.").count(), 1, "{first}");
        bench.resume(&told, "on").await;
    }
}

#[tokio::test(start_paused = true)]
async fn texts_that_are_told_again_are_cut_each_and_all_together() {
    let steps = vec![json!("done"); 9];
    let bench = telling(200_000, &[good()], &steps);
    let long = "0123456789".repeat(2_500);
    for n in 0..6 {
        skill(&bench, &format!("long-{n}"), "", &format!("BEGIN-{n} {long} END-{n}"));
    }
    let prompts = [
        "/long-0", "/long-1", "/long-2", "/long-3", "/long-4", "/long-5", "more", "/compact", "on",
    ];
    let told = talk(&bench, &prompts).await;
    assert_eq!(boundaries(&told), 1);
    let last = said(told.asked.last().unwrap());
    let begins: Vec<bool> = (0..6).map(|n| last.contains(&format!("BEGIN-{n} "))).collect();
    assert_eq!(begins, [false, true, true, true, true, true], "those that were used last stay");
    assert_eq!(last.matches("END-").count(), 0);
    // context.md 8, 17: anthropics/claude-code#96168
    let cut = "[The rest of this skill is left out for want of room.";
    assert_eq!(last.matches(cut).count(), 5, "what is cut says so");
    assert!(last.contains("whose texts are left out for want of room: long-0. Invoke"), "{last}");
    assert!(last.len() < 110_000, "{}", last.len());
}

#[tokio::test(start_paused = true)]
async fn a_compaction_tells_again_only_skills_of_its_own_conversation() {
    let steps = [json!("one"), read(), json!("two"), json!("three"), json!("four")];
    let bench = telling(200_000, &[good()], &steps);
    skill(&bench, "old", "", "The old rule.");
    skill(&bench, "fresh", "", "The new rule.");
    let told = talk(&bench, &["/old", "/clear", "/fresh", "more", "/compact", "then"]).await;
    assert_eq!(boundaries(&told), 1);
    assert_eq!((count(&told, "The old rule."), count(&told, "The new rule.")), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_text_that_was_refused_does_not_count_as_told() {
    let stage = crate::hook_stage::Stage::new({
        let first = std::sync::atomic::AtomicBool::new(true);
        move |told: &Value| {
            let is_it = told["hook_event_name"] == "UserPromptSubmit"
                && first.swap(false, std::sync::atomic::Ordering::Relaxed);
            Some(if is_it { json!({"decision": "block", "reason": "no"}) } else { json!({}) })
        }
    });
    let bench = stage.set(bench(&json!({"lead": ["one"]})));
    skill(&bench, "fix", "", "@@lead The rule is 4711.");
    let told = talk(&bench, &["/fix", "/fix"]).await;
    assert_eq!(told.asked.len(), 1);
    assert_eq!(count(&told, "The rule is 4711."), 1, "{}", said(&told.asked[0]));
}

#[tokio::test(start_paused = true)]
async fn a_text_that_a_compaction_cut_is_told_whole_when_it_is_invoked_again() {
    let steps = ["done", "more", "on"].map(|it| json!(it));
    let bench = telling(200_000, &[good()], &steps);
    let long = "0123456789".repeat(2_500);
    skill(&bench, "long", "", &format!("BEGIN {long} END"));
    let told = talk(&bench, &["/long", "more", "/compact", "/long"]).await;
    assert_eq!(boundaries(&told), 1);
    let last = said(told.asked.last().unwrap());
    assert_eq!(last.matches("[The rest of this skill is left out").count(), 1);
    assert_eq!(last.matches("0123456789 END").count(), 1, "its text is told again");
}
