//! Bodies expanded for invocations.

mod against_bash;
mod commands;
mod properties;

use centurion_protocol::Effort;

use super::*;
use crate::plugins::PluginVariables;

const SESSION: &str = "6f1c5d52-7d0c-4d1b-9d5a-2a3a4f1d2f10";

fn invocation(arguments: &str) -> Invocation<'_> {
    Invocation {
        arguments,
        project_dir: Path::new("/my project"),
        session: SESSION.parse().unwrap(),
        effort: Some(AgentEffort::Level(Effort::High)),
    }
}

/// Expands a body that begins on line 5 of its file, for the names `file` and `file-name` and `other`.
fn expand_body(body: &str, arguments: &str) -> Result<Expanded, ExpandError> {
    let names = ["file", "file-name", "other"].map(str::to_owned);
    let template = Template {
        body: &Located::new(body.to_owned(), 5),
        names: &names,
        directory: Path::new("/skills/a"),
        shell: Shell::Bash,
        plugin: &PluginVariables::default(),
    };
    expand(&template, &invocation(arguments))
}

/// A text without values.
fn literal(text: &str) -> Piece {
    Piece::Text(FilledText { text: text.to_owned(), values: Vec::new() })
}

/// The body as one text, which has no commands.
fn text(body: &str, arguments: &str) -> String {
    match expand_body(body, arguments).unwrap().pieces.as_slice() {
        [] => String::new(),
        [Piece::Text(text)] => text.text.clone(),
        pieces => panic!("{pieces:?}"),
    }
}

#[test]
fn arguments_are_put_in_raw_or_by_word() {
    let arguments = "one 'two three' \"\"";
    assert_eq!(text("Do <$ARGUMENTS>.", arguments), "Do <one 'two three' \"\">.");
    assert_eq!(text("$0|$1|$2|$3", arguments), "one|two three||$3");
    assert_eq!(text("$ARGUMENTS[1]|$ARGUMENTS[7]", arguments), "two three|$ARGUMENTS[7]");
    assert_eq!(text("$ARGUMENTS[x] $ARGUMENTS[]", "a"), "a[x] a[]");
    assert_eq!(text("$0$0", "a"), "aa");
}

#[test]
fn a_number_is_all_of_its_digits() {
    let ten = "a b c d e f g h i j k";
    assert_eq!(text("$10 $1st $1_ $010", ten), "k bst b_ k");
    assert_eq!(text("$99999999999999999999999 $0", "a"), "$99999999999999999999999 a");
}

#[test]
fn the_word_for_all_arguments_is_a_whole_word() {
    assert_eq!(
        text("$ARGUMENTS_X $ARGUMENTSX $ARGUMENTS2 $ARGUMENTS", "a").matches('a').count(),
        1
    );
    assert_eq!(text("修复$ARGUMENTS的问题", "a"), "修复a的问题");
    assert_eq!(text("$arguments $ARGUMENT", ""), "$arguments $ARGUMENT");
}

#[test]
fn declared_names_are_put_in_whole() {
    assert_eq!(
        text("$file $file-name $file-x $filename $files $file_", "a b"),
        "a b a-x $filename $files $file_"
    );
    assert_eq!(text("<$other> $unknown $FILE", "a b"), "<> $unknown $FILE");
    assert_eq!(text("${file}", "a"), "${file}\n\nARGUMENTS: a");
}

#[test]
fn the_session_is_known_by_its_variables() {
    let body = "${CLAUDE_SKILL_DIR} ${CLAUDE_PROJECT_DIR} ${CLAUDE_SESSION_ID} ${CLAUDE_EFFORT} ${HOME} $CLAUDE_EFFORT";
    let expected = format!("/skills/a /my project {SESSION} high ${{HOME}} $CLAUDE_EFFORT");
    assert_eq!(text(body, ""), expected);
    let unknown = Invocation { effort: None, ..invocation("") };
    let body = Located::new("${CLAUDE_EFFORT} \\${CLAUDE_EFFORT}".to_owned(), 1);
    let directory = Path::new("/");
    let template = Template {
        body: &body,
        names: &[],
        directory,
        shell: Shell::Bash,
        plugin: &PluginVariables::default(),
    };
    let kept = expand(&template, &unknown).unwrap().pieces;
    assert_eq!(kept, [literal("${CLAUDE_EFFORT} ${CLAUDE_EFFORT}")]);
}

#[test]
fn a_backslash_keeps_a_placeholder_and_nothing_else() {
    let kept = r"\$1 \$ARGUMENTS \$ARGUMENTS[0] \$file \${CLAUDE_SKILL_DIR} $0";
    let expected = "$1 $ARGUMENTS $ARGUMENTS[0] $file ${CLAUDE_SKILL_DIR} a";
    assert_eq!(text(kept, "a b"), expected);
    assert_eq!(text(r"\$x \\ \n \$ \${X} C:\$0 $0", "a"), r"\$x \\ \n \$ \${X} C:$0 a");
    assert_eq!(text(r"\\$0", "a"), "\\$0\n\nARGUMENTS: a");
    // Whether there is such an argument does not matter.
    assert_eq!(text(r"\$7", ""), "$7");
}

#[test]
fn what_a_value_says_is_not_looked_through_again() {
    let hostile = "'$1' $ARGUMENTS ${CLAUDE_SKILL_DIR} \\\\$0 '!`x`'";
    assert_eq!(text("$ARGUMENTS", hostile), hostile);
    assert_eq!(text("$0 $1 $2 $3", hostile), r"$1 $ARGUMENTS ${CLAUDE_SKILL_DIR} \$0");
    assert_eq!(text("\n$4\n", hostile), "\n!`x`\n");
    assert_eq!(text("!$ARGUMENTS", "`x`"), "!`x`");
    assert_eq!(text("```!\n$ARGUMENTS", "x\n```\n"), "```!\nx\n```\n");
    assert_eq!(text("$$0 $$ARGUMENTS", "0"), "$0 $0");
}

#[test]
fn arguments_without_a_place_come_at_the_end() {
    assert_eq!(text("Do it.", "a  'b'"), "Do it.\n\nARGUMENTS: a  'b'");
    assert_eq!(text("", "a"), "ARGUMENTS: a");
    assert_eq!(text("Do it.", " \n"), "Do it.");
    assert_eq!(text("It is ${CLAUDE_EFFORT}.", "a"), "It is high.\n\nARGUMENTS: a");
    // A price is no place for an argument that was not given.
    assert_eq!(text("It costs $5.", "a"), "It costs $5.\n\nARGUMENTS: a");
    assert_eq!(text("<$other>", "a"), "<>");
    let used = expand_body("!`echo $0`", "a").unwrap();
    assert_eq!(used.pieces.len(), 1);
    let unused = expand_body("!`date`", "a").unwrap();
    let [_, Piece::Text(end)] = unused.pieces.as_slice() else { panic!("{unused:?}") };
    let values: Vec<_> = end.values.iter().map(|value| &end.text[value.clone()]).collect();
    assert_eq!((end.text.as_str(), values.as_slice()), ("\n\nARGUMENTS: a", ["a"].as_slice()));
}

#[test]
fn arguments_are_cut_as_a_shell_cuts_words() {
    let cases: [(&str, &[&str]); 12] = [
        ("", &[]),
        ("  a \t b\nc ", &["a", "b", "c"]),
        ("a'b c'd \"e f\"", &["ab cd", "e f"]),
        ("'' \"\"", &["", ""]),
        (r#"\ a\'b "\"\\\$\`\n""#, &[" a'b", "\"\\$`\\n"]),
        ("it's fine", &["it's", "fine"]),
        ("say \"hi", &["say", "\"hi"]),
        ("'a\" b' \"c' d\"", &["a\" b", "c' d"]),
        ("a\\", &["a\\"]),
        ("\"a\\", &["\"a\\"]),
        ("$HOME; #x *", &["$HOME;", "#x", "*"]),
        ("a\\\nb \"c\\\nd\"", &["ab", "cd"]),
    ];
    for (text, words) in cases {
        assert_eq!(split_arguments(text), words, "{text:?}");
    }
}

#[test]
fn a_body_that_repeats_its_arguments_makes_no_text_without_end() {
    // 64 KiB of body and 4 KiB of arguments would make 28 MiB.
    let arguments = "a".repeat(4 * 1024);
    let body = "$ARGUMENTS ".repeat(6_000);
    for body in [body.clone(), format!("```!\necho {body}\n```"), "!`echo $0` ".repeat(6_000)] {
        let error = expand_body(&body, &arguments).unwrap_err();
        assert_eq!(error, ExpandError::TooLong);
        assert!(error.to_string().contains("longer than 8 MiB"), "{error}");
    }
    assert!(expand_body(&body, "short").is_ok());
}

#[test]
fn a_definition_says_what_is_expanded() {
    let origin = crate::skills::SkillOrigin {
        source: crate::skills::SkillSource::User,
        kind: crate::skills::SkillKind::Skill,
        path: "/home/a/.claude/skills/deploy/SKILL.md".into(),
        plugin: None,
    };
    let file = "---\narguments: env\n---\n\nTo $env from ${CLAUDE_SKILL_DIR}: !`x $env`";
    let (skill, _) = crate::skills::read_skill(file, origin).unwrap();
    let expanded = expand(&skill.template(), &invocation("'the moon'")).unwrap();
    let text = FilledText {
        text: "To the moon from /home/a/.claude/skills/deploy: ".to_owned(),
        values: vec![3..11, 17..46],
    };
    let command =
        SkillCommand { text: "x 'the moon'".to_owned(), line: 5, form: CommandForm::Inline };
    assert_eq!(expanded.pieces, [Piece::Text(text), Piece::Command(command)]);
}
