//! The real shell as a judge: values arrive as they are, and nothing in them runs.

use std::io::Write;
use std::process::{Command, Stdio};

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use super::*;

/// Runs each command in a shell of its own that cannot start programs, and gives what all of them print.
/// `canary` prints to standard error.
fn run_all(commands: &[String]) -> (Vec<u8>, String) {
    let place = tempfile::tempdir().unwrap();
    let list = place.path().join("list");
    let mut file = std::fs::File::create(&list).unwrap();
    for command in commands {
        file.write_all(command.as_bytes()).unwrap();
        file.write_all(b"\0").unwrap();
    }
    let script = "canary() { echo \"$command\" >&9; }\n\
        while IFS= read -r -d '' command <&8; do\n\
        (eval \"$command\") </dev/null 2>/dev/null\nprintf '\\1\\0'\ndone 9>&2";
    let work = place.path().join("work");
    std::fs::create_dir(&work).unwrap();
    let output = Command::new("/bin/bash")
        .args(["--norc", "--noprofile", "-c", &format!("{script} 8<'{}'", list.display())])
        .current_dir(work)
        .env_clear()
        .env("PATH", "")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    (output.stdout, String::from_utf8_lossy(&output.stderr).into_owned())
}

fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn sample<T>(strategy: &impl Strategy<Value = T>, runner: &mut TestRunner) -> T {
    strategy.new_tree(runner).unwrap().current()
}

fn only_command(template: &str, arguments: &str) -> Option<String> {
    let expanded = expand_body(&format!("```!\n{template}\n```"), arguments).ok()?;
    expanded.commands().next().map(|command| command.text.clone())
}

/// An author's words, and what the program gets for three values.
type Case = (&'static str, fn([&str; 3]) -> Vec<String>);

const CASES: [Case; 12] = [
    ("$0 $1 $2", |words| words.map(str::to_owned).into()),
    ("$ARGUMENTS", |words| words.map(str::to_owned).into()),
    ("\"$0\" '$1' \"a $2 b\"", |[a, b, c]| vec![a.into(), b.into(), format!("a {c} b")]),
    ("x$0y $1$2", |[a, b, c]| vec![format!("x{a}y"), format!("{b}{c}")]),
    ("'x $0'\"$1\"$2", |[a, b, c]| vec![format!("x {a}{b}{c}")]),
    ("x\"'$0'\" 'x\"$1'", |[a, b, _]| vec![format!("x'{a}'"), format!("x\"{b}")]),
    ("$0 # $", |[a, ..]| vec![a.into()]),
    ("\\\n $0\\\n\"$1\"", |[a, b, _]| vec![format!("{a}{b}")]),
    ("\"$(printf %s. \"$0\" $1)\"", |[a, b, _]| vec![format!("{a}.{b}.")]),
    ("$0#'x $1 y'", |[a, b, _]| vec![format!("{a}#x {b} y")]),
    ("\"${x:-y}\"$0 \"$$\"'' ${x-}$1", |[a, b, _]| vec![format!("y{a}"), "7".into(), b.into()]),
    ("{x,$0} [$1] ~$2", |[a, b, c]| vec!["x".into(), a.into(), format!("[{b}]"), format!("~{c}")]),
];

#[test]
fn bash_gets_the_values_that_were_given() {
    let mut runner = TestRunner::deterministic();
    let words = proptest::string::string_regex(
        "[a-z0-9 \t\n\r'\"\\\\$`;&|<>(){}*?~#!=%^@:,./_+\\[\\]é漢-]{0,8}|if|case|\\$1|\\$ARGUMENTS|-n|[0-9]",
    )
    .unwrap();
    let (mut commands, mut expected) = (Vec::new(), Vec::new());
    for (template, words_of) in std::iter::repeat_n(CASES, 150).flatten() {
        let values: [String; 3] = std::array::from_fn(|_| sample(&words, &mut runner));
        let arguments = values.each_ref().map(|word| quoted(word)).join(" ");
        let command = only_command(&format!("printf '%s\\0' {template}"), &arguments).unwrap();
        // The process id is not known before.
        commands.push(command.replace("\"$$\"", "7"));
        for word in words_of(values.each_ref().map(String::as_str)) {
            expected.push((template, word));
        }
        expected.push((template, "\u{1}".to_owned()));
    }
    let (printed, ran) = run_all(&commands);
    assert_eq!(ran, "");
    let printed = String::from_utf8(printed).unwrap();
    let mut printed = printed.split_terminator('\0');
    for (template, word) in expected {
        assert_eq!(printed.next(), Some(word.as_str()), "{template}");
    }
    assert_eq!(printed.next(), None);
}

/// Of what authors make commands, in any order.
const PIECES: [&str; 58] = [
    "$0",
    "$1",
    "$2",
    "$ARGUMENTS",
    "$0",
    "$1",
    "\"",
    "'",
    "\"$0\"",
    "'$1'",
    "\\",
    "\\\n",
    "`",
    "$",
    "$$",
    "$(",
    "(",
    ")",
    "((",
    "))",
    "${",
    "}",
    "${x",
    "[",
    "]",
    "[[",
    "]]",
    "x[",
    "=",
    "x=",
    "+=",
    "#",
    " #",
    "<",
    "<<",
    "<<<",
    ">",
    "&",
    "|",
    ";",
    "\n",
    " ",
    " ",
    "echo ",
    "case x in x) ",
    "esac",
    ";;",
    "{",
    ",",
    "!",
    "@(",
    "*",
    "$'",
    "$\"",
    "x",
    "EOF\n",
    "~",
    ":-",
];

/// Arguments that would run `canary` if any quoting were wrong. None is a command by itself.
const HOSTILE: [&str; 16] = [
    "$(canary)",
    "`canary`",
    ";canary;",
    "\ncanary\n",
    "';canary;'",
    "\";canary;\"",
    "'$(canary)'",
    "\"$(canary)\"",
    "\\';canary;\\'",
    "\\\";canary;",
    "x[$(canary)]",
    "|canary|",
    "&canary&",
    "\nEOF\ncanary\n",
    "$'\\';canary;'",
    ")canary;(",
];

#[test]
fn no_argument_runs_in_whatever_command_an_author_writes() {
    let mut runner = TestRunner::deterministic();
    let templates = proptest::collection::vec(proptest::sample::select(&PIECES[..]), 1..14)
        .prop_map(|pieces| pieces.concat());
    let hostile = proptest::sample::select(&HOSTILE[..]);
    let mut commands = Vec::new();
    while commands.len() < 3_000 {
        let template = sample(&templates, &mut runner);
        let values: [&str; 3] = std::array::from_fn(|_| sample(&hostile, &mut runner));
        let arguments = values.map(quoted).join(" ");
        if let Some(command) = only_command(&format!("echo {template}"), &arguments)
            && command.contains("canary")
        {
            commands.push(command);
        }
    }
    let (_, ran) = run_all(&commands);
    assert_eq!(ran, "", "an argument ran");
}

#[test]
fn bash_cuts_quoted_words_where_we_cut_them() {
    let mut runner = TestRunner::deterministic();
    let pieces =
        ["'a b'", "\"a 'b\"", "\"\\\"\\\\\\$\\x\"", "\\ ", "\\'", "a", "''", " ", "  ", "\t", "é"];
    let texts = proptest::collection::vec(proptest::sample::select(pieces.to_vec()), 0..8)
        .prop_map(|pieces| pieces.concat());
    let (mut commands, mut expected) = (Vec::new(), Vec::new());
    for _ in 0..500 {
        let text = sample(&texts, &mut runner);
        let words = split_arguments(&text);
        if !words.is_empty() {
            commands.push(format!("printf '%s\\0' {text}"));
            expected.extend(words);
            expected.push("\u{1}".to_owned());
        }
    }
    let (printed, _) = run_all(&commands);
    let printed = String::from_utf8(printed).unwrap();
    assert_eq!(printed.split_terminator('\0').collect::<Vec<_>>(), expected);
}

#[test]
fn no_builtin_evaluates_a_value() {
    let templates = [
        "[ -v \"m[$0]\" ]",
        "[ -v '$0' ]",
        "test -v $0",
        "[ x = y -o -v \"$0\" ]",
        "unset \"a[$0]\"",
        "unset $0",
        "builtin unset \"$0\"",
        "\"let\" \"$0\"",
        "l\\et $0",
        "true && let \"x = $0\"",
        "printf -v \"$0\" x",
        "printf -v\"a[$0]\" x",
        "read \"a[$0]\" <<< x",
        "while read $0; do break; done <<< x",
        "declare \"a[$0]=1\"",
        "declare \"$0\"",
        "declare -i x=\"$0\"",
        "declare -i x; x=\"$0\"",
        "typeset -a \"x=$0\"",
        "export \"a[$0]=1\"",
        "readonly '$0'",
        "f() { local \"$0\"; local -i y=$0; }; f",
        "mapfile -t \"$0\" <<< x",
        "mapfile -C \"$0\" -c 1 x <<< x",
        "getopts x \"$0\" -x",
        "compgen -W \"$0\"",
        "wait -p \"a[$0]\" -n",
        "echo \"$(unset \"a[$0]\")\" \"$0\"",
        "unset \"$(echo x)\" \"a[$0]\"",
        "(( $0 )); (( x[$0] ))",
        "[[ -v $0 ]]; [[ \"$0\" -eq 1 ]]",
        "echo $(( $0 )) ${x:$0} ${x[$0]}",
        "x[$0]=1",
        "[ \"$0\" -eq 1 ]; exit \"$0\"; return \"$0\"; shift \"$0\"; printf %d \"$0\"; ulimit \"$0\"",
    ];
    let values = [
        "a[$(canary)]",
        "$(canary)",
        "`canary`",
        "a[`canary`]=1",
        "x]$(canary)[",
        "x=a[$(canary)]",
    ];
    let mut commands = Vec::new();
    for (template, value) in templates.iter().flat_map(|it| values.map(|value| (it, value))) {
        commands.extend(only_command(template, &quoted(value)));
    }
    assert!(!commands.is_empty());
    let (_, ran) = run_all(&commands);
    assert_eq!(ran, "");
    // A word of another command arrives as before.
    for (template, expected) in [
        ("export X=\"$0\"; printf %s \"$X\"", "a b[$(canary)]"),
        ("unset x; printf %s $0", "a b[$(canary)]"),
        ("printf %s \"$0\" | while read x; do :; done; printf %s '$0'", "a b[$(canary)]"),
        ("printf %s \"$(unset y)\" \"$0\"", "a b[$(canary)]"),
    ] {
        let command = only_command(template, &quoted(expected)).expect(template);
        let (printed, ran) = run_all(&[command]);
        let printed = String::from_utf8_lossy(&printed).into_owned();
        assert!(printed.starts_with(expected) && ran.is_empty(), "{template}: {printed} {ran}");
    }
}
