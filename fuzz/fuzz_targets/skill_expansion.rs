//! The expansion of skills: arguments never change where a body's commands are, and values come out as
//! they are.

#![no_main]

use std::path::Path;

use centurion_config::Located;
use centurion_config::plugins::PluginVariables;
use centurion_config::skills::{
    CommandForm, ExpandError, Expanded, Invocation, Piece, Shell, Template, expand, split_arguments,
};
use libfuzzer_sys::fuzz_target;

const SESSION: &str = "6f1c5d52-7d0c-4d1b-9d5a-2a3a4f1d2f10";

/// A body with declared names for its arguments.
struct Skill {
    body: Located<String>,
    names: Vec<String>,
}

impl Skill {
    fn expand(&self, arguments: &str) -> Result<Expanded, ExpandError> {
        let template = Template {
            body: &self.body,
            names: &self.names,
            directory: Path::new("/skills/x"),
            shell: Shell::Bash,
            plugin: &PluginVariables::default(),
        };
        let invocation = Invocation {
            arguments,
            project_dir: Path::new("/it's a \"project\""),
            session: SESSION.parse().expect("it is an id"),
            effort: None,
        };
        expand(&template, &invocation)
    }

    /// The same skill with another body.
    fn with_body(&self, body: &str) -> Self {
        Self { body: Located::new(body.to_owned(), 1), names: self.names.clone() }
    }
}

/// Where commands are, in the pieces and in the file.
fn positions(expanded: &Expanded) -> Vec<(usize, usize, CommandForm)> {
    let pieces = expanded.pieces.iter().enumerate();
    let commands = pieces.filter_map(|(index, piece)| match piece {
        Piece::Command(command) => Some((index, command.line, command.form)),
        Piece::Text(_) => None,
    });
    commands.collect()
}

/// The only piece, which is text.
fn text(expanded: &Expanded) -> &str {
    match expanded.pieces.as_slice() {
        [Piece::Text(filled)] => &filled.text,
        pieces => panic!("{pieces:?}"),
    }
}

// The input is a line of names, a line of arguments, and the body.
fuzz_target!(|data: &[u8]| {
    let input = String::from_utf8_lossy(data);
    let mut parts = input.splitn(3, '\n');
    let names = parts.next().unwrap_or_default().split_whitespace().map(str::to_owned).collect();
    let arguments = parts.next().unwrap_or_default().replace('\r', "\n");
    let body = Located::new(parts.next().unwrap_or_default().to_owned(), 1);
    let skill = Skill { body, names };

    let (filled, empty) = (skill.expand(&arguments), skill.expand(""));
    if let (Ok(filled), Ok(empty)) = (&filled, &empty) {
        assert_eq!(positions(filled), positions(empty), "{arguments:?} changes the commands");
        let lines = skill.body.lines().count();
        assert!(filled.commands().all(|it| it.line <= lines));
        assert!(filled.commands().all(|it| !it.text.trim().is_empty()));
    }

    let raw = skill.with_body("<$ARGUMENTS>").expand(&arguments).expect("there is no command");
    assert_eq!(text(&raw), format!("<{arguments}>"));
    let words = split_arguments(&arguments);
    if let [first, ..] = words.as_slice() {
        let word = skill.with_body("<$0>").expand(&arguments).expect("there is no command");
        assert_eq!(text(&word), format!("<{first}>"));
    }

    // Quoted for a shell, the words are those that they were.
    if let Ok(expanded) = skill.with_body("!`x $ARGUMENTS`").expand(&arguments) {
        let command = &expanded.commands().next().expect("there is a command").text;
        assert_eq!(split_arguments(command)[1..], words);
    }
});
