//! Everything that the SDKs declare has a decision here: events and their fields, requests, options, methods, flags.
//!
//! `declared.json` has the names, which a test compares with the installed SDKs. `decided.json` has one decision for each
//! of them: a declaration that is new fails a test here until it has a decision.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use crate::declared::DECLARED;
use crate::host::{Host, control};
use crate::program::Program;

static DECIDED: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("../decided.json")).unwrap());

/// The decisions about one kind of names: each a word, and behind a colon its proof or its reason.
fn section(name: &str) -> Vec<(&'static str, &'static str, &'static str)> {
    let decisions: &'static Map<String, Value> = DECIDED[name].as_object().unwrap();
    let decision = |(name, text): (&'static String, &'static Value)| {
        let text = text.as_str().unwrap();
        let (word, rest) = text.split_once(": ").unwrap_or((text, ""));
        assert!(word != "never" || !rest.is_empty(), "{name} is left out without a reason");
        (name.as_str(), word, rest)
    };
    decisions.iter().map(decision).collect()
}

/// Fails unless the names that are declared and those that are decided about are the same.
fn assert_all_decided(section_name: &str, declared: impl IntoIterator<Item = String>) {
    let declared: BTreeSet<String> = declared.into_iter().collect();
    let decided = section(section_name).into_iter().map(|(name, ..)| name.to_owned()).collect();
    let undecided: Vec<_> = declared.difference(&decided).collect();
    let gone: Vec<_> = decided.difference(&declared).collect();
    assert!(undecided.is_empty() && gone.is_empty(), "undecided: {undecided:?}; gone: {gone:?}");
}

fn texts(value: &Value) -> impl Iterator<Item = String> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned())
}

fn definition(name: &str) -> &'static Value {
    &DECLARED["definitions"][name]
}

/// The names of the parts of a union.
fn parts(union: &str) -> Vec<String> {
    let parts = definition(union)["anyOf"].as_array().unwrap();
    let parts = parts.iter().map(|part| part["$ref"].as_str().unwrap());
    parts.map(|name| name.trim_start_matches("#/definitions/").to_owned()).collect()
}

/// The types of all events.
fn events() -> Vec<String> {
    let results = parts("SDKResultMessage");
    let others = parts("SDKMessage").into_iter().filter(|name| name != "SDKResultMessage");
    others.chain(results).chain(["SDKActiveGoalMessage".to_owned()]).collect()
}

/// Requests of the program to its host.
const ASKED: [&str; 4] = [
    "SDKControlElicitationRequest",
    "SDKControlMcpMessageRequest",
    "SDKControlPermissionRequest",
    "SDKHookCallbackRequest",
];

/// The answers and parts of answers whose fields may be missing.
const ANSWERS: [&str; 15] = [
    "AccountInfo",
    "AgentInfo",
    "ControlErrorResponse",
    "ControlResponse",
    "McpServerStatus",
    "ModelInfo",
    "ModelUsage",
    "RewindFilesResult",
    "SDKControlGetContextUsageResponse",
    "SDKControlGetHooksListingResponse",
    "SDKControlInitializeResponse",
    "SDKControlInterruptResponse",
    "SDKControlReadFileResponse",
    "SDKControlReloadPluginsResponse",
    "SlashCommand",
];

fn is_never(section_name: &str, name: &str) -> bool {
    section(section_name).into_iter().any(|(it, word, _)| it == name && word == "never")
}

/// All sources below a directory, one text.
fn sources(directory: &Path, is_wanted: &dyn Fn(&Path) -> bool) -> String {
    let mut all = String::new();
    for entry in std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            all.push_str(&sources(&entry, is_wanted));
        } else if is_wanted(&entry) {
            all.push_str(&std::fs::read_to_string(entry).unwrap());
        }
    }
    all
}

fn tests() -> String {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program");
    sources(&directory, &|path| path.extension().is_some_and(|it| it == "rs"))
}

/// Fails unless the tests that prove decisions exist.
fn assert_proven(section_name: &str, word: &str) {
    let tests = tests();
    for (name, decided, proof) in section(section_name) {
        if decided == word {
            let test = proof.rsplit("::").next().unwrap();
            assert!(tests.contains(&format!("fn {test}(")), "{name}: there is no test {proof}");
        } else {
            assert_eq!(decided, "never", "{name}");
        }
    }
}

#[test]
fn every_declared_event_is_shown_or_left_out_for_a_reason() {
    let asked = ASKED.iter().map(|name| (*name).to_owned());
    assert_all_decided("events", events().into_iter().chain(asked));
    assert_proven("events", "emitted");
}

#[test]
fn every_field_that_may_be_missing_is_shown_or_left_out_for_a_reason() {
    let fields = |name: &str| {
        let declared = definition(name);
        let required = declared["required"].as_array().cloned().unwrap_or_default();
        let fields = declared["properties"].as_object().unwrap().keys();
        let optional = fields.filter(|field| !required.contains(&json!(field)));
        optional.map(|field| format!("{name}.{field}")).collect::<Vec<_>>()
    };
    let shown = events().into_iter().chain(ASKED.map(str::to_owned));
    let shown = shown.filter(|name| !is_never("events", name));
    let all = shown.chain(ANSWERS.map(str::to_owned)).collect::<Vec<_>>();
    assert_all_decided("fields", all.iter().flat_map(|name| fields(name)));
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let is_source = |path: &Path| {
        path.extension().is_some_and(|it| it == "rs")
            && path.components().any(|it| it.as_os_str() == "src")
    };
    let sources = sources(&crates, &is_source);
    for (name, word, _) in section("fields") {
        let field = name.rsplit('.').next().unwrap();
        let is_written = [field.to_owned(), snake(field)].iter().any(|it| sources.contains(it));
        assert!(matches!(word, "emitted" | "never"), "{name}: {word}");
        assert!(word == "never" || is_written, "nothing writes {name}");
    }
}

fn snake(name: &str) -> String {
    let parts = name.chars().map(|it| match it {
        it if it.is_ascii_uppercase() => format!("_{}", it.to_ascii_lowercase()),
        it => it.to_string(),
    });
    parts.collect()
}

#[test]
fn every_declared_request_is_answered_or_refused_for_a_reason() {
    let requests = DECLARED["requests"].as_object().unwrap();
    assert_all_decided("requests", requests.keys().cloned());
    let of_host = |name: &str| {
        let mut decisions = section("requests").into_iter();
        decisions.any(|(it, word, _)| it == name && word == "answered")
    };
    let fields = requests.iter().filter(|(name, _)| of_host(name) || *name == "mcp_message");
    let fields = fields.flat_map(|(name, fields)| {
        texts(fields).map(move |field| format!("{name}.{field}")).collect::<Vec<_>>()
    });
    assert_all_decided("request_fields", fields);
    assert_all_decided("user_message", texts(&DECLARED["user_message"]));
    // Without its fields a request is refused as such, and never as one that is not known.
    let program = Program::answering([]);
    let mut host = Host::start(&program, &[]);
    for (name, word, _) in section("requests") {
        host.send(&control(name, &json!({"subtype": name})));
        let answer = host.until(|event| event["response"]["request_id"] == name).pop().unwrap();
        let is_known = answer["response"]["error_code"] != "unsupported_request";
        assert_eq!(is_known, word == "answered" || name == "mcp_message", "{name}: {answer}");
    }
    assert_eq!(host.finish(), 0);
}

#[test]
fn every_option_and_method_of_the_sdks_is_decided_about() {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let one_by_one = |script: &str| std::fs::read_to_string(scripts.join(script)).unwrap();
    let (options, python_options) =
        (one_by_one("sdk_each_option.mjs"), one_by_one("each_option_host.py"));
    let scripts = sources(&scripts, &|_| true);
    for name in ["options", "methods", "python_options", "python_methods"] {
        assert_all_decided(name, texts(&DECLARED[name]));
        for (it, word, _) in section(name) {
            assert!(matches!(word, "tried" | "never"), "{it}: {word}");
            // Each option has a function of its own there, named as it is, that shows its effect.
            let is_tried = match name {
                "options" => options.contains(&format!("  async {it}(")),
                "python_options" => python_options.contains(&format!("    async def {it}(")),
                _ => scripts.contains(&format!("{it}(")),
            };
            assert!(is_tried || word == "never", "no script tries {it}");
        }
    }
}

/// Whether there is a decision about a flag that a client passes.
pub(crate) fn is_decided(flag: &str) -> bool {
    section("flags").into_iter().any(|(name, ..)| name == flag)
}

#[test]
fn every_flag_that_clients_pass_is_taken() {
    // D-75
    for flag in texts(&DECLARED["python_flags"]) {
        assert!(is_decided(&flag), "--{flag} is undecided");
    }
    let program = Program::alone();
    for (name, word, reason) in section("flags") {
        if matches!(name, "help" | "version") {
            continue;
        }
        let flag = format!("--{name}");
        let ended = program.run(&[&flag, "--frobnicate"]);
        assert_eq!(ended.code, Some(2), "{flag}: {}", ended.stderr);
        let is_unknown = ended.stderr.contains(&format!("unexpected argument '{flag}'"));
        assert!(!is_unknown, "{flag} is not known: {}", ended.stderr);
        let foreign = include_str!("../../src/args/ignored_flags.rs");
        let is_foreign = foreign.contains(&format!("\"{name}\", FlagValue::"));
        assert_eq!(is_foreign, word == "never", "{flag}: {word}: {reason}");
        assert!(word == "never" || word == "honoured", "{flag}: {word}");
    }
}
