//! A second grammar over the same text. Where it finds a program that the first did not, nobody knows
//! what would run.

use std::cell::RefCell;
use std::sync::LazyLock;

use tree_sitter::{Language, Node, Parser};

thread_local! {
    static PARSER: RefCell<Option<Parser>> = RefCell::new(new_parser());
}

static LANGUAGE: LazyLock<Language> = LazyLock::new(|| tree_sitter_bash::LANGUAGE.into());

/// The kind of node that names a program.
static COMMAND_NAME: LazyLock<u16> =
    LazyLock::new(|| LANGUAGE.id_for_node_kind("command_name", true));

fn new_parser() -> Option<Parser> {
    let mut parser = Parser::new();
    parser.set_language(&LANGUAGE).ok()?;
    Some(parser)
}

/// Whether the second grammar reads the text without error and finds no program beyond `programs`.
pub(crate) fn agrees(text: &str, programs: &[String]) -> bool {
    let tree = PARSER.with_borrow_mut(|parser| parser.as_mut()?.parse(text, None));
    let Some(tree) = tree else { return false };
    let root = tree.root_node();
    if root.has_error() {
        return false;
    }
    let mut cursor = root.walk();
    loop {
        let node = cursor.node();
        if node.kind_id() == *COMMAND_NAME && !knows(programs, node, text) {
            return false;
        }
        if cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return true;
            }
        }
    }
}

fn knows(programs: &[String], name: Node<'_>, text: &str) -> bool {
    let Some(name) = text.get(name.byte_range()) else { return false };
    // Here a keyword of the first grammar is a program.
    name == "time" || programs.iter().any(|program| program == name)
}
