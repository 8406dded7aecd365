//! A second grammar over the same text. Where it finds a program that the first did not, nobody knows
//! what would run.

use std::cell::RefCell;

use tree_sitter::{Node, Parser};

thread_local! {
    static PARSER: RefCell<Option<Parser>> = RefCell::new(new_parser());
}

fn new_parser() -> Option<Parser> {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).ok()?;
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
    let mut pending = vec![root];
    while let Some(node) = pending.pop() {
        if node.kind() == "command_name" && !knows(programs, node, text) {
            return false;
        }
        let mut cursor = node.walk();
        pending.extend(node.children(&mut cursor));
    }
    true
}

fn knows(programs: &[String], name: Node<'_>, text: &str) -> bool {
    let Some(name) = text.get(name.byte_range()) else { return false };
    // Here a keyword of the first grammar is a program.
    name == "time" || programs.iter().any(|program| program == name)
}
