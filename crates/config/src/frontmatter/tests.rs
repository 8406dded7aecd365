//! Frontmatter as strangers write it, one case for each way in which it is no YAML.

use super::*;

const GRAMMAR: Grammar<'_> = Grammar {
    known: &["name", "description", "tools", "model", "color", "argument-hint"],
    raw: &["argument-hint"],
};

fn page(text: &str) -> Page {
    read(text, &GRAMMAR).unwrap()
}

fn texts(text: &str) -> (Reading, Vec<(String, String)>) {
    let front = page(text).frontmatter.unwrap();
    let members = front.members.iter().map(|it| (it.key.clone(), shown(&it.value)));
    (front.reading, members.collect())
}

fn shown(value: &Value) -> String {
    value.as_text().map_or_else(|| value.to_json().to_string(), str::to_owned)
}

fn expect(text: &str, reading: Reading, members: &[(&str, &str)]) {
    let members = members.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    assert_eq!(texts(text), (reading, members.collect()), "{text}");
}

mod splitting {
    use super::*;

    fn parts(text: &str) -> (Option<&str>, &str, usize) {
        let document = split(text).unwrap();
        let frontmatter = document.frontmatter.map(|part| part.text);
        (frontmatter, document.body.text, document.body.first_line)
    }

    #[test]
    fn a_file_is_split_where_its_fences_are() {
        assert_eq!(parts("---\na: 1\nb: 2\n---\nbody\n"), (Some("a: 1\nb: 2\n"), "body\n", 5));
        assert_eq!(parts("---\n---\nbody"), (Some(""), "body", 3));
        assert_eq!(parts("---\na: 1\n---"), (Some("a: 1\n"), "", 4));
        assert_eq!(parts("just text\n---\nmore"), (None, "just text\n---\nmore", 1));
        assert_eq!(parts(""), (None, "", 1));
    }

    #[test]
    fn editors_of_all_kinds_are_welcome() {
        assert_eq!(
            parts("\u{feff}--- \r\na: 1\r\n---\r\nbody\r\n"),
            (Some("a: 1\r\n"), "body\r\n", 4)
        );
        assert_eq!(parts("\u{feff}text"), (None, "text", 1));
    }

    #[test]
    fn what_never_closes_or_is_huge_is_refused() {
        assert_eq!(split("---\na: 1\n"), Err(FrontmatterError::Unclosed));
        assert_eq!(split("---"), Err(FrontmatterError::Unclosed));
        let huge = format!("---\n{}---\n", "a: 1\n".repeat(LARGEST / 4));
        assert_eq!(split(&huge), Err(FrontmatterError::TooLarge));
    }
}

#[test]
fn good_yaml_is_read_as_it_is() {
    expect(
        "---\nname: a\ndescription: 'it: works'\nversion: 1.0\n---\nbody\n",
        Reading::Strict,
        &[("name", "a"), ("description", "it: works"), ("version", "1.0")],
    );
    let page = page("---\nname: a\n---\n\nbody\n");
    assert_eq!((page.body.as_str(), page.body_line), ("\nbody\n", 4));
}

#[test]
fn tabs_in_indents_are_blanks() {
    expect(
        "---\nname: a\ntools:\n\t- Read\n\t- Grep\n---\n",
        Reading::Tabs,
        &[("name", "a"), ("tools", r#"["Read","Grep"]"#)],
    );
}

#[test]
fn colons_stars_and_marks_in_texts_are_harmless() {
    // D-40: unquoted colons, values that begin with what YAML keeps for itself, stray quotes.
    let cases = [
        ("Use when: it breaks", "Use when: it breaks"),
        ("Look. <example>user: \"hi\" assistant: \"ho\"</example>", ""),
        ("Ask: \\n\\nuser: now", ""),
        ("*", "*"),
        ("**Bold** words", ""),
        ("@state: of things", ""),
        ("`code` first: then text", ""),
        ("\"quoted\" and more", ""),
        ("\"inner \"stray\" quotes\"", "inner \"stray\" quotes"),
        ("{{NAME}}", ""),
    ];
    for (written, expected) in cases {
        let expected = if expected.is_empty() { written } else { expected };
        let text = format!("---\nname: a\ndescription: {written}\nmodel: opus\n---\n");
        let members = [("name", "a"), ("description", expected), ("model", "opus")];
        expect(&text, Reading::Lines, &members);
    }
}

#[test]
fn a_text_continues_over_lines_that_only_look_like_keys() {
    expect(
        "---\nname: a\ndescription: Use it so.\nContext: it broke\nuser: \"help\"\n\
         Some words: more\n<example>\nstep: one\n</example>\n\nThe end.\nemoji: x\n---\n",
        Reading::Lines,
        &[
            ("name", "a"),
            (
                "description",
                "Use it so.\nContext: it broke\nuser: \"help\"\nSome words: more\n<example>\n\
                 step: one\n</example>\n\nThe end.",
            ),
            ("emoji", "x"),
        ],
    );
}

#[test]
fn a_forgotten_fence_is_found_at_the_first_heading() {
    let text =
        "---\nname: a\ndescription: x\n# Title\ntools: [Read]\n\n## Role\n**Bold**: text\n---\n";
    expect(text, Reading::Lines, &[("name", "a"), ("description", "x"), ("tools", r#"["Read"]"#)]);
    let page = page(text);
    assert_eq!((page.body.as_str(), page.body_line), ("## Role\n**Bold**: text\n---\n", 7));
    let notes: Vec<_> = page.frontmatter.unwrap().notes.iter().map(|it| it.line).collect();
    assert_eq!(notes.last(), Some(&7));
    let code = "---\nname: a\ndescription: b: c\n```\nx: y\n```\n---\n";
    expect(code, Reading::Lines, &[("name", "a"), ("description", "b: c")]);
}

#[test]
fn lists_and_blocks_are_read_by_hand_where_need_be() {
    expect(
        "---\ndescription: a: b\ntools: [Read, Bash(git: *), 'x, y']\nmodel: |\n  one\n    two\n\
         color: >\n  one\n  two\n\n  three\nname:\n- *a\n- 'b'\n---\n",
        Reading::Lines,
        &[
            ("description", "a: b"),
            ("tools", r#"["Read","Bash(git: *)","x, y"]"#),
            ("model", "one\n  two\n"),
            ("color", "one two\nthree\n"),
            ("name", r#"["*a","b"]"#),
        ],
    );
}

#[test]
fn the_last_of_the_same_keys_counts_in_every_reading() {
    for (bad, reading) in [("", Reading::Strict), ("x: y: z\n", Reading::Lines)] {
        let text = format!("---\nname: a\n{bad}name: b\n---\n");
        let front = page(&text).frontmatter.unwrap();
        assert_eq!(front.reading, reading);
        let names: Vec<_> = front.members.iter().filter(|it| it.key == "name").collect();
        assert_eq!((names.len(), names[0].value.as_text()), (1, Some("b")));
        let told = front.notes.iter().any(|it| it.message.contains("`name` is written twice"));
        assert!(told, "{:?}", front.notes);
    }
}

#[test]
fn a_comment_that_cuts_a_text_is_told() {
    let front = page("---\nname: a\ndescription: Fixes #12 at once\n---\n").frontmatter.unwrap();
    assert_eq!(front.members[1].value.as_text(), Some("Fixes"));
    let notes: Vec<_> = front.notes.iter().map(|it| (it.line, it.message.as_str())).collect();
    let expected = "what follows ` #` is a comment; put the text in quotes to keep it";
    assert_eq!(notes, [(3, expected)]);
}

#[test]
fn hostile_texts_cost_little() {
    let block = |line: &str| line.repeat((LARGEST - 100) / line.len());
    let hostile = [
        block("a: b: c\n"),
        block("a: *b\n"),
        block("- "),
        block("[") + "\n",
        block("{a: ") + "\n",
        block("? "),
        block("&a "),
        block("<example>user: x\n"),
        "description: a: b\n".to_owned() + &block("user: x\n"),
        "tools: [".to_owned() + &block("(,'\""),
        block("\"\\\n"),
        block("x\u{0}: y\n"),
        block("k: |\n"),
    ];
    for text in hostile {
        let started = std::time::Instant::now();
        let _ = read(&format!("---\nname: a\n{text}\n---\n"), &GRAMMAR);
        let spent = started.elapsed();
        assert!(spent.as_secs() < 5, "{spent:?} for {}", text.get(..10).unwrap_or_default());
    }
}
