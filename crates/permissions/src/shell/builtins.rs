//! Builtins of the shell that can run text, name variables or change the meaning of later words.

use super::characters::is_name;
use super::expansion::Expander;
use super::names;
use super::script::{Command, Script, Unclear, Word};
use super::shape::{Shape, Step};
use super::syntax::{Arithmetic, WordPart};

/// Options of `shopt` that change patterns and pipes, but not the parsing of text.
const KNOWN_OPTIONS: [&str; 12] = [
    "dotglob",
    "failglob",
    "globstar",
    "inherit_errexit",
    "lastpipe",
    "nocaseglob",
    "nocasematch",
    "nullglob",
    "checkwinsize",
    "globskipdots",
    "huponexit",
    "login_shell",
];

/// Long options of `set` that do not change the meaning of words.
const KNOWN_SETTINGS: [&str; 10] = [
    "errexit",
    "errtrace",
    "functrace",
    "monitor",
    "noclobber",
    "noexec",
    "nounset",
    "pipefail",
    "verbose",
    "xtrace",
];

/// Whether a long option of `set` does not change the meaning of words.
pub(super) fn is_known_setting(name: &str) -> bool {
    KNOWN_SETTINGS.contains(&name)
}

/// The words of a command behind `command` and `builtin`.
pub(super) fn inner(words: &[Word]) -> &[Word] {
    let mut rest = words;
    while let [first, after @ ..] = rest
        && matches!(first.value.as_deref(), Some("command" | "builtin"))
    {
        let options = after
            .iter()
            .take_while(|word| word.value.as_deref().is_some_and(|value| value.starts_with('-')));
        rest = after.get(options.count()..).unwrap_or_default();
    }
    rest
}

/// Whether the script may change which names patterns match.
pub(super) fn widens_patterns(script: &Script) -> bool {
    script.commands.iter().any(|command| {
        let program = inner(&command.words).first();
        let changes = program.is_some_and(|word| {
            word.value
                .as_deref()
                .is_none_or(|value| matches!(value, "shopt" | "set" | "eval" | "." | "source"))
        });
        changes || command.assignments.iter().any(|assignment| assignment.name == "GLOBIGNORE")
    })
}

/// The argument syntax of a builtin: `-abc`, `-n5`, `-n 5`, `--`, up to the first operand.
struct Builtin {
    names: &'static [&'static str],
    /// Letters of options without a value.
    plain: &'static str,
    /// Letters of options with a plain text as value.
    text: &'static str,
    /// Letters of options with the name of a variable as value.
    variable: &'static str,
    operands: BuiltinOperands,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum BuiltinOperands {
    Text,
    Variables,
    /// The second one is a variable.
    SecondVariable,
    /// `name` or `name=value`.
    Declarations,
}

/// Builtins whose arguments name variables. Other options, such as `-C` of `mapfile`, which runs its value, are not
/// accepted.
const BUILTINS: [Builtin; 7] = [
    Builtin {
        names: &["read"],
        plain: "ersE",
        text: "dinNptu",
        variable: "a",
        operands: BuiltinOperands::Variables,
    },
    Builtin {
        names: &["mapfile", "readarray"],
        plain: "t",
        text: "dnOsuc",
        variable: "",
        operands: BuiltinOperands::Variables,
    },
    Builtin {
        names: &["printf"],
        plain: "",
        text: "",
        variable: "v",
        operands: BuiltinOperands::Text,
    },
    Builtin {
        names: &["getopts"],
        plain: "",
        text: "",
        variable: "",
        operands: BuiltinOperands::SecondVariable,
    },
    Builtin {
        names: &["unset"],
        plain: "fvn",
        text: "",
        variable: "",
        operands: BuiltinOperands::Variables,
    },
    Builtin {
        names: &["wait"],
        plain: "fn",
        text: "",
        variable: "p",
        operands: BuiltinOperands::Text,
    },
    Builtin {
        names: &["declare", "typeset", "local", "export", "readonly"],
        plain: "aAfFgIilnrtucxp",
        text: "",
        variable: "",
        operands: BuiltinOperands::Declarations,
    },
];

/// An argument of a builtin.
#[derive(Clone, Copy)]
pub(super) struct GivenArgument<'a> {
    /// Its text, where it is known.
    pub(super) value: Option<&'a str>,
    /// Whether it may be an option, if its text is not known.
    pub(super) may_be_option: bool,
    /// Whether it may become zero or several words.
    pub(super) splits: bool,
}

/// The parsed arguments of a builtin.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct BuiltinArguments<'a> {
    /// Letters of its options.
    pub(super) flags: String,
    /// Variables that it assigns or unsets, each perhaps with an index.
    pub(super) variables: Vec<&'a str>,
    /// The position of the first operand.
    pub(super) operands: usize,
}

/// Whether the arguments of this builtin name variables.
pub(super) fn names_variables(program: &str) -> bool {
    BUILTINS.iter().any(|builtin| builtin.names.contains(&program))
}

/// Whether the builtin declares variables.
pub(super) fn declares(program: &str) -> bool {
    BUILTINS.iter().any(|builtin| {
        builtin.names.contains(&program) && builtin.operands == BuiltinOperands::Declarations
    })
}

/// Parses the arguments of a builtin that names variables, as its own parser does. `None` if an option is unknown, or
/// if an unknown word may be an option or a variable.
pub(super) fn told<'a>(program: &str, words: &[GivenArgument<'a>]) -> Option<BuiltinArguments<'a>> {
    let builtin = BUILTINS.iter().find(|builtin| builtin.names.contains(&program))?;
    let mut told = BuiltinArguments::default();
    while let Some(word) = words.get(told.operands) {
        let Some(value) = word.value else {
            if word.may_be_option || word.splits {
                return None;
            }
            break;
        };
        if value == "--" {
            told.operands += 1;
            break;
        }
        let removes = builtin.operands == BuiltinOperands::Declarations && value.starts_with('+');
        let Some(bundle) = value
            .strip_prefix('-')
            .or_else(|| value.strip_prefix('+').filter(|_| removes))
            .filter(|bundle| !bundle.is_empty())
        else {
            break;
        };
        told.operands += 1;
        let mut letters = bundle.chars();
        while let Some(letter) = letters.next() {
            if builtin.plain.contains(letter) {
                told.flags.push(letter);
                continue;
            }
            let is_variable = builtin.variable.contains(letter);
            if !is_variable && !builtin.text.contains(letter) {
                return None;
            }
            told.flags.push(letter);
            let mut value = Some(letters.as_str()).filter(|rest| !rest.is_empty());
            if value.is_none() {
                let next = words.get(told.operands).filter(|word| !word.splits)?;
                told.operands += 1;
                value = next.value;
            }
            if is_variable {
                told.variables.push(value?);
            }
            break;
        }
    }
    let operands = words.get(told.operands..).unwrap_or_default();
    match builtin.operands {
        BuiltinOperands::Text | BuiltinOperands::Declarations => {}
        BuiltinOperands::Variables => {
            for word in operands {
                told.variables.push(word.value?);
            }
        }
        BuiltinOperands::SecondVariable => {
            if let [options, name, ..] = operands {
                (!options.splits).then_some(())?;
                told.variables.push(name.value?);
            } else if operands.iter().any(|word| word.splits) {
                return None;
            }
        }
    }
    Some(told)
}

impl<'a> GivenArgument<'a> {
    fn of(word: &'a Word) -> Self {
        let (mut may_be_option, mut splits) = (false, false);
        if word.value.is_none() {
            let shape = word.to_shape();
            let option = Shape::any_after('-');
            may_be_option = !shape.is_number() && shape.intersects(&option);
            splits = word.splits && !shape.is_number();
        }
        Self { value: word.value.as_deref(), may_be_option, splits }
    }
}

/// The reason that a builtin may run a program that no command names, if so.
pub(super) fn opaque(command: &Command, expander: &Expander<'_>) -> Option<Unclear> {
    let (program, arguments) = inner(&command.words).split_first()?;
    let program = program.value.as_deref()?;
    let values: Vec<Option<&str>> = arguments.iter().map(|word| word.value.as_deref()).collect();
    let has = |wanted: &str| values.iter().any(|value| value.is_some_and(|value| value == wanted));
    let starts = |wanted: &str| {
        values.iter().any(|value| value.is_none_or(|value| value.starts_with(wanted)))
    };
    let fine = match program {
        "alias" | "bind" | "complete" | "compopt" | "fc" | "history" | "unalias" => false,
        "compgen" => !starts("-"),
        "enable" => values.is_empty(),
        "hash" => values.is_empty() || has("-r") && values.len() == 1,
        "shopt" => values.iter().all(|value| {
            value.is_some_and(|value| {
                value.starts_with('-') && !value.contains('o') || KNOWN_OPTIONS.contains(&value)
            })
        }),
        "set" => sets_plainly(&values),
        "test" => tests_plainly(arguments),
        "[" => tests_plainly(arguments.split_last().map_or(&[][..], |(_, words)| words)),
        "let" => values.iter().all(|value| {
            let expression =
                |text: &str| Arithmetic { parts: vec![WordPart::Bare(text.to_owned())] };
            value.is_some_and(|text| {
                !text.contains(['[', '$', '`', '\'', '"'])
                    && expander.is_harmless(&expression(text))
            })
        }),
        name if names_variables(name) => {
            let mut words: Vec<GivenArgument<'_>> =
                arguments.iter().map(GivenArgument::of).collect();
            if let ("printf", [first, ..], [word, ..]) = (name, words.as_mut_slice(), arguments) {
                // With such an end it names no variable.
                let shape = word.to_shape();
                let end: Vec<char> = shape
                    .steps()
                    .iter()
                    .rev()
                    .map_while(|step| match step {
                        Step::Literal(character) => Some(*character),
                        _ => None,
                    })
                    .collect();
                let is_odd = |c: &char| !c.is_ascii_alphanumeric() && *c != '_';
                let ends_oddly = end.first() != Some(&']') && end.iter().any(is_odd);
                first.may_be_option &= !ends_oddly;
            }
            told(name, &words).is_some_and(|told| {
                told.variables.iter().all(|name| is_plain_name(name))
                    && (!declares(name) || declares_plainly(&told, arguments, expander))
            })
        }
        _ => true,
    };
    (!fine).then_some(Unclear::Builtin)
}

/// Whether no variable name in the words of `test` can have an index: only such names are more than text. The position
/// of an operator identifies it, so the words after a possible operator matter.
fn tests_plainly(words: &[Word]) -> bool {
    let may_have_index = |word: &Word| word.to_shape().may_have(|c| c == '[');
    let may_name = |word: &Word| {
        ["-v", "-R"].iter().any(|operator| word.to_shape().intersects(&Shape::literal(operator)))
    };
    let splits = |word: &&Word| {
        word.value.is_none() && word.splits && !word.to_shape().is_number() && may_have_index(word)
    };
    !words.iter().any(|word| splits(&word))
        && words.windows(2).all(|pair| match pair {
            [operator, name] => !(may_name(operator) && may_have_index(name)),
            _ => true,
        })
}

/// Whether `set` changes only the handling of errors and traces, or the positional parameters.
fn sets_plainly(values: &[Option<&str>]) -> bool {
    let mut values = values.iter();
    while let Some(value) = values.next() {
        match value {
            Some("--" | "-") => return true,
            Some(flags) if flags.starts_with(['-', '+']) => {
                let flags = flags.get(1..).unwrap_or_default();
                if !flags.chars().all(|flag| "aeuxvEoTCmn".contains(flag)) {
                    return false;
                }
                if flags.contains('o') {
                    match values.next() {
                        None => return true,
                        Some(Some(name)) if KNOWN_SETTINGS.contains(name) => {}
                        Some(_) => return false,
                    }
                }
            }
            Some(_) => return true,
            None => return false,
        }
    }
    true
}

/// Whether the operands of `declare` only name variables that programs do not obey.
fn declares_plainly(
    told: &BuiltinArguments<'_>,
    arguments: &[Word],
    expander: &Expander<'_>,
) -> bool {
    // An integer is computed, and a name reference stands for another variable.
    if told.flags.contains(['i', 'n']) {
        return false;
    }
    let is_array = told.flags.contains(['a', 'A']);
    arguments.iter().skip(told.operands).all(|word| {
        let shape = word.to_shape();
        let steps = shape.steps().iter().map_while(|step| match step {
            Step::Literal(character) => Some(*character),
            _ => None,
        });
        let start: String = steps.collect();
        let Some((name, value)) = start.split_once('=') else {
            // Its value may come from anywhere.
            let is_plain = |name| is_plain_name(name) && !names::steers(name, None);
            return word.value.as_deref().is_some_and(|name| is_name(name) && is_plain(name));
        };
        let name = name.strip_suffix('+').unwrap_or(name);
        // The shell parses the value of an array if it begins with a parenthesis.
        let may_be_list = value.starts_with('(')
            || (value.is_empty() && word.value.is_none())
                && !Shape::from_steps(shape.steps().get(start.len()..).unwrap_or_default())
                    .is_number();
        let given =
            word.value.as_deref().and_then(|text| text.split_once('=')).map(|(_, value)| value);
        is_name(name)
            && is_plain_name(name)
            && !names::steers(name, given)
            && !(may_be_list && (is_array || expander.variables().may_be_array(name)))
    })
}

/// Whether a name is that of a variable without an index that programs and the shell do not obey.
fn is_plain_name(name: &str) -> bool {
    !name.contains('[') && !names::is_obeyed(name) && !names::is_integer(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(text: &str) -> GivenArgument<'_> {
        GivenArgument { value: Some(text), may_be_option: false, splits: false }
    }

    #[test]
    fn arguments_are_read_as_the_builtin_reads_them() {
        for (program, words, variables) in [
            ("read", &["x", "y"][..], Some(&["x", "y"][..])),
            ("read", &["-rax"], Some(&["x"])),
            ("read", &["-ra", "x"], Some(&["x"])),
            ("read", &["-rp", "-a", "x"], Some(&["x"])),
            ("read", &["-pax", "y"], Some(&["y"])),
            ("read", &["-aPS4"], Some(&["PS4"])),
            ("read", &["--", "-a"], Some(&["-a"])),
            ("read", &["x", "-a", "y"], Some(&["x", "-a", "y"])),
            ("read", &["-z", "x"], None),
            ("read", &["-a"], None),
            ("mapfile", &["-t", "x"], Some(&["x"])),
            ("mapfile", &["-tn5", "x"], Some(&["x"])),
            ("mapfile", &["-tC", "bb", "x"], None),
            ("mapfile", &["-Cbb", "x"], None),
            ("printf", &["-vx", "%s", "y"], Some(&["x"])),
            ("printf", &["-v", "x", "%s", "y"], Some(&["x"])),
            ("printf", &["%s", "-v", "y"], Some(&[])),
            ("getopts", &["ab:", "x", "y"], Some(&["x"])),
            ("wait", &["-np", "x", "5"], Some(&["x"])),
            ("unset", &["-v", "x"], Some(&["x"])),
            ("declare", &["-gx", "x=1"], Some(&[])),
        ] {
            let words: Vec<GivenArgument<'_>> = words.iter().map(|word| known(word)).collect();
            let found = told(program, &words).map(|told| told.variables);
            assert_eq!(found.as_deref(), variables, "{program}");
        }
    }

    #[test]
    fn a_word_that_may_be_an_option_is_not_understood() {
        let unknown = GivenArgument { value: None, may_be_option: true, splits: false };
        let text = GivenArgument { value: None, may_be_option: false, splits: false };
        for (program, words, is_known) in [
            ("read", &[unknown, known("x")][..], false),
            ("read", &[known("-p"), unknown, known("x")], true),
            ("read", &[known("x"), text], false),
            ("wait", &[text], true),
            ("wait", &[unknown], false),
            ("printf", &[known("%s"), unknown], true),
            ("printf", &[unknown], false),
            ("getopts", &[text, known("x"), unknown], true),
        ] {
            assert_eq!(told(program, words).is_some(), is_known, "{program}");
        }
    }
}
