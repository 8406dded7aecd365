//! Properties of all bodies and all arguments.

use proptest::prelude::*;

use super::*;

/// Bodies of what the expander looks for, and of anything.
fn bodies() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "$ARGUMENTS",
        "$0",
        "$1",
        "$ARGUMENTS[0]",
        "$file",
        "${CLAUDE_SKILL_DIR}",
        "\\",
        "\\$0",
        "!`",
        "`",
        "```",
        "```!",
        "~~~",
        "\n",
        " ",
        "'",
        "\"",
        "$",
        "$(",
        ")",
        "echo",
        "\n```\n",
        "\n```!\n",
        " !`x $0`",
        "[",
        "<<",
        "{",
        "}",
        "#",
        "é",
    ]);
    let piece = prop_oneof![9 => pieces.prop_map(str::to_owned), 1 => any::<String>()];
    prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

fn arguments() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "$1",
        "$ARGUMENTS",
        "${CLAUDE_SKILL_DIR}",
        "!`x`",
        "\n```!\nx\n```\n",
        "'",
        "\"",
        "\\",
        " ",
        "a",
        "`",
        "$(x)",
        "\n",
        ";",
        "é",
        "$file",
    ]);
    let piece = prop_oneof![9 => pieces.prop_map(str::to_owned), 1 => any::<String>()];
    prop::collection::vec(piece, 0..10).prop_map(|pieces| pieces.concat())
}

/// Places of commands, in the pieces and in the file.
fn positions(expanded: &Expanded) -> Vec<(usize, usize, CommandForm)> {
    let pieces = expanded.pieces.iter().enumerate();
    let commands = pieces.filter_map(|(index, piece)| match piece {
        Piece::Command(command) => Some((index, command.line, command.form)),
        Piece::Text(_) => None,
    });
    commands.collect()
}

proptest! {
    #[test]
    fn arguments_never_change_where_commands_are(body in bodies(), arguments in arguments()) {
        let filled = expand_body(&body, &arguments);
        let empty = expand_body(&body, "");
        if let (Ok(filled), Ok(empty)) = (filled, empty) {
            prop_assert_eq!(positions(&filled), positions(&empty));
        }
    }

    #[test]
    fn a_value_comes_out_as_it_is(arguments in arguments()) {
        let text = text("<$ARGUMENTS|\\$0>", &arguments);
        prop_assert_eq!(text, format!("<{arguments}|$0>"));
    }

    #[test]
    fn what_values_bring_is_told_from_the_authors_text(body in bodies(), arguments in arguments()) {
        let (body, arguments) = (body.replace('@', ""), arguments.replace('a', "@"));
        let expanded = expand_body(&body, &arguments).unwrap_or_default();
        for piece in expanded.pieces {
            let Piece::Text(FilledText { text, values }) = piece else { continue };
            for (at, _) in text.match_indices('@') {
                prop_assert!(values.iter().any(|value| value.contains(&at)), "{:?} {:?}", text, values);
            }
        }
    }

    #[test]
    fn a_body_without_placeholders_stays_as_it_is(body in "[^$!]*") {
        prop_assert_eq!(text(&body, ""), body);
    }

    #[test]
    fn parts_are_all_of_the_body(body in bodies()) {
        let mut rest = body.as_str();
        for part in cut(&body, 1) {
            let (BodyPart::Text(part) | BodyPart::Command(CommandPart { text: part, .. })) = part;
            let at = rest.find(part).unwrap();
            rest = &rest[at + part.len()..];
        }
    }

    #[test]
    fn quoted_words_are_cut_where_they_were_joined(words in prop::collection::vec(any::<String>(), 0..6)) {
        let quote = |word: &String| format!("'{}'", word.replace('\'', r"'\''"));
        let joined: Vec<_> = words.iter().map(quote).collect();
        prop_assert_eq!(split_arguments(&joined.join(" ")), words);
    }
}

#[test]
fn large_bodies_are_expanded_in_one_pass() {
    // A second pass for each of these marks would take hours.
    let size = 1 << 18;
    for unit in [
        "$",
        "!",
        "`",
        "!`",
        "!`` ",
        "```\n",
        "```!\n",
        "~~~\n",
        "$ARGUMENTS[",
        "$1",
        "\\$0",
        "\\",
        "${",
        "$file-",
        "!`x` ",
        "!`$0` ",
        "'",
        "\"",
        "\\\"",
        "\n",
        "$(",
        "```!\n\n",
        "<",
        "file-",
    ] {
        let body = unit.repeat(size / unit.len());
        let expanded = expand_body(&body, "a").unwrap();
        assert!(expanded.pieces.len() <= size + 1);
        let block = format!("```!\n{body}\n```\n");
        // Whether it is a command and whether values have a place in it, it is read once.
        let _ = expand_body(&block, "'a b'");
        assert!(split_arguments(&body).len() <= size);
    }
}
