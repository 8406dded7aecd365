//! Commands in a body, and values in them.

use super::*;
use crate::plugins::PluginVariables;

/// Each command with its line.
fn commands(body: &str) -> Vec<(String, usize)> {
    let expanded = expand_body(body, "").unwrap();
    expanded.commands().map(|command| (command.text.clone(), command.line)).collect()
}

/// The only command of a body that is nothing else.
fn command(command: &str, arguments: &str) -> Result<String, QuotingError> {
    match expand_body(&format!("```!\n{command}\n```"), arguments) {
        Ok(expanded) => match expanded.pieces.as_slice() {
            [Piece::Command(command)] => Ok(command.text.clone()),
            pieces => panic!("{pieces:?}"),
        },
        Err(ExpandError::Command { reason, .. }) => Err(reason),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn commands_in_lines_begin_after_a_blank() {
    let body = "!`a b` and !`c`\n\t!`d`,!`e` x!`f` (!`g`) !`h` !`i`";
    let expected = [("a b", 5), ("c", 5), ("d", 6), ("h", 6), ("i", 6)];
    assert_eq!(commands(body), expected.map(|(text, line)| (text.to_owned(), line)));
    for none in ["!``", "!` `", "!`a", "!`a\nb`", "! `a`", "!", "`!`", "\\!`a`", "!!`a`"] {
        assert_eq!(commands(none), [], "{none}");
        assert_eq!(text(none, ""), none);
    }
    assert_eq!(commands("!`` !`a`"), [("a".to_owned(), 5)]);
}

#[test]
fn texts_and_commands_keep_their_order() {
    let pieces = expand_body("Now: !`date`.\n```!\nls\npwd\n```\nEnd", "").unwrap().pieces;
    let command =
        |text: &str, line, form| Piece::Command(SkillCommand { text: text.to_owned(), line, form });
    let expected = [
        literal("Now: "),
        command("date", 5, CommandForm::Inline),
        literal(".\n"),
        command("ls\npwd", 6, CommandForm::Block),
        literal("\nEnd"),
    ];
    assert_eq!(pieces, expected);
}

#[test]
fn blocks_of_commands_end_with_a_fence() {
    assert_eq!(commands("- x\n  ```!\n  ls\n  ```\n"), [("  ls".to_owned(), 6)]);
    assert_eq!(commands("```! bash\nls\n````  \n!`a`").len(), 2);
    for none in [
        "```!\nls",
        "```!\nls\n``` x",
        "```!\n \n```",
        "```!\n```",
        "``` !\nls\n```",
        "````!\nls\n````",
        "~~~!\nls\n~~~",
        "x ```!\nls\n```",
        "```!ls```",
    ] {
        assert_eq!(commands(none), [], "{none}");
        assert_eq!(text(none, ""), none);
    }
}

#[test]
fn commands_in_ordinary_code_blocks_are_examples() {
    for none in [
        "```\n!`a`\n```",
        "```sh\n!`a`",
        "~~~\n!`a`\n```\n!`b`\n~~~",
        "````md\n```!\nls\n```\n!`a`\n````",
    ] {
        assert_eq!(commands(none), [], "{none}");
    }
    assert_eq!(commands("```\n!`a`\n```\n!`b`"), [("b".to_owned(), 8)]);
    // A line of code is no block.
    assert_eq!(commands("```x``` and\n!`a`").len(), 1);
}

#[test]
fn a_value_is_quoted_for_its_place() {
    let of = |text: &str| command(text, "a 'b c' 'it'\\''s $(x)'").unwrap();
    assert_eq!(of("ls $0 $1 $2"), r"ls a 'b c' 'it'\''s $(x)'");
    assert_eq!(of("ls x$0y --at=$1"), "ls x'a'y --at='b c'");
    assert_eq!(of(r#"ls "$0 $1 $2""#), r#"ls "a b c it's \$(x)""#);
    assert_eq!(of("ls '$0 $2'"), r"ls 'a it'\''s $(x)'");
    assert_eq!(of("ls $ARGUMENTS"), r"ls a 'b c' 'it'\''s $(x)'");
    assert_eq!(of("ls $(echo \"$(cat $1)\" $0)"), "ls $(echo \"$(cat 'b c')\" 'a')");
    assert_eq!(of("ls \"$x ${x:-y}\" $1; (ls $0) # x"), "ls \"$x ${x:-y}\" 'b c'; (ls 'a') # x");
    assert_eq!(of("cat <<< $1 2>&1 <&- | grep $0"), "cat <<< 'b c' 2>&1 <&- | grep a");
    assert_eq!(of("cat ${CLAUDE_PROJECT_DIR}/x $0"), "cat '/my project'/x a");
    assert_eq!(of("awk '{print \\$1}' $0"), "awk '{print $1}' a");
    assert_eq!(of("ls $7 $other-x $file-name"), "ls $7 'it'\\''s $(x)'-x 'b c'");
}

#[test]
fn words_that_a_shell_reserves_are_quoted() {
    assert_eq!(command("ls $ARGUMENTS", "if done 2 e x-1").unwrap(), "ls 'if' 'done' 2 e x-1");
    assert_eq!(command("echo $0>x", "2").unwrap(), "echo '2'>x");
    assert_eq!(command("$0=x ls", "PATH").unwrap(), "'PATH'=x ls");
}

#[test]
fn a_missing_value_is_no_word_and_an_empty_one_is() {
    assert_eq!(command("ls $ARGUMENTS $file", " ").unwrap(), "ls  ");
    assert_eq!(command("ls $0 $file \"$0\"", "''").unwrap(), "ls '' '' \"\"");
}

#[test]
fn a_command_of_which_nothing_is_left_is_refused() {
    for (body, line) in
        [("!`$file`", 5), ("x\n\n!` $ARGUMENTS `", 7), ("a\n```!\n$file\n\t$ARGUMENTS\n```", 6)]
    {
        let error = expand_body(body, " ").unwrap_err();
        let ExpandError::Empty { line: at, command } = &error else { panic!("{error}") };
        assert_eq!(*at, line, "{command}");
        assert!(error.to_string().contains("were not given"), "{error}");
    }
    // An argument that is given and empty is a word, one that is unknown stays, and what is given runs.
    assert_eq!(command("$0", "''").unwrap(), "''");
    assert_eq!(command("$0", "").unwrap(), "$0");
    assert_eq!(command("$ARGUMENTS", "git log").unwrap(), "git log");
}

#[test]
fn where_a_shell_takes_one_word_all_arguments_are_one() {
    let of = |text: &str| command(text, "a b").unwrap();
    assert_eq!(of("X=$ARGUMENTS ls"), "X='a b' ls");
    assert_eq!(of("x[1]+=$ARGUMENTS ls"), "x[1]+='a b' ls");
    assert_eq!(of("> $ARGUMENTS ls"), "> 'a b' ls");
    assert_eq!(of("ls --x=$ARGUMENTS"), "ls --x='a' 'b'");
}

#[test]
fn where_quoting_is_unknown_only_plain_values_are_put_in() {
    for unknown in [
        "echo $'x $0'",
        "echo `echo $0`",
        "echo $((1 + $0))",
        "((x = $0))",
        "[[ $0 -eq 1 ]]",
        "x[$0]=1",
        "x=($0)",
        "echo ${x:-$0}",
        "echo \"${x:-\"$0\"}\"",
        "echo # $0",
        "echo $(case x in x) echo $0;; esac)",
        "echo @($0)",
        "echo $$'' $0",
        // Bash expands the word after `>&` twice.
        "echo >&$0",
        "echo >&1$0",
        "echo >& \"$0\"",
    ] {
        let plain = command(unknown, "v-1.2/x").unwrap();
        assert_eq!(plain, unknown.replace("$0", "v-1.2/x"));
        for hostile in ["'a b'", "'$(x)'", "\"'\"", "'\"'", "'\n'", "esac"] {
            assert_eq!(command(unknown, hostile), Err(QuotingError::UnknownContext), "{unknown}");
        }
        assert_eq!(command(&unknown.replace("$0", "$other"), "").unwrap().len(), unknown.len() - 2);
    }
}

#[test]
fn a_value_does_not_follow_a_dollar_or_end_a_here_document() {
    for text in ["echo $$0", "echo \"$$0\"", "echo $$$0", "[[ $$0", "echo `$$0`"] {
        assert_eq!(command(text, "HOME"), Err(QuotingError::AfterDollar), "{text}");
    }
    assert_eq!(command("echo '$$0'", "HOME").unwrap(), "echo '$HOME'");
    for text in [
        "cat <<X\n$0\n$1\nX",
        "cat <<-'X' $0",
        "cat <<$0",
        "cat <\\\n<X\n$0",
        "[[ x ]]; cat <<X\n$0",
        "echo `cat <<X\n$0`",
        "echo `cat <\\\\\n<X\n$0`",
    ] {
        assert_eq!(command(text, "X reboot"), Err(QuotingError::HereDocument), "{text}");
    }
    assert_eq!(command("ls $0", "a\0b"), Err(QuotingError::Nul));
}

#[test]
fn an_error_names_line_and_placeholder() {
    let error = expand_body("x\n\n```!\nls\ncat <<X\n$ARGUMENTS[0]\nX\n```", "a").unwrap_err();
    let said = "line 10: the value of `$ARGUMENTS[0]` cannot be put into the command: no value is put in \
                after `<<`, where it could end the here-document";
    assert_eq!(error.to_string(), said);
    let error = expand_body("x\n!`[[ -f ${CLAUDE_PROJECT_DIR} ]]`", "").unwrap_err();
    let reason = QuotingError::UnknownContext;
    let placeholder = "${CLAUDE_PROJECT_DIR}".to_owned();
    assert_eq!(error, ExpandError::Command { line: 6, placeholder, reason });
}

#[test]
fn powershell_gets_plain_values_only() {
    let body = Located::new("!`ls \"$0\"`".to_owned(), 1);
    let directory = Path::new("/");
    let template = Template {
        body: &body,
        names: &[],
        directory,
        shell: Shell::PowerShell,
        plugin: &PluginVariables::default(),
    };
    let plain = expand(&template, &invocation("src/x")).unwrap();
    assert_eq!(plain.commands().next().unwrap().text, "ls \"src/x\"");
    assert!(expand(&template, &invocation("'a b'")).is_err());
}
