//! Programs that run code, and the known parts of that code.

use super::super::characters::has_blank;
use super::super::programs::base_name;
use super::super::script::{Unclear, Word};
use super::super::shape::Shape;
use super::feed::Feed;
use super::words::is_option;
use super::{Finder, LONGEST_VIEW};

/// Modules of Python whose arguments are code.
const CODE_MODULES: [&str; 1] = ["timeit"];

/// Modules of Python that run their input, or the value of `-c`.
const PROMPTS: [&str; 8] =
    ["IPython", "asyncio", "bpython", "code", "idlelib", "ipdb", "pdb", "ptpython"];

/// Modules of Python that run a file that an argument names.
const RUNNING_MODULES: [&str; 9] =
    ["cProfile", "coverage", "debugpy", "doctest", "profile", "pytest", "runpy", "trace", "zipapp"];

impl Finder<'_> {
    /// Examines a program that runs code: its standard input, a file, or the values of options.
    pub(super) fn interpreter(
        &mut self,
        name: &str,
        arguments: &[Word],
        code: &[&str],
        feed: Feed<'_>,
    ) {
        let is_python = name.starts_with("python") || name.starts_with("pypy");
        let takes_module = |word: &Word| {
            let value = word.value.as_deref().unwrap_or_default();
            is_python && value.starts_with("-m")
                || is_python && value.ends_with('m') && value.len() < 5
        };
        // A module is a file that is not read, like any other.
        let module = arguments.iter().position(|word| {
            word.value.as_deref().is_some_and(|value| value.starts_with('-')) && takes_module(word)
        });
        let known = arguments.get(..module.unwrap_or(arguments.len())).unwrap_or_default();
        // The words behind a file are for that file.
        let known = known.get(..script_place(name, known)).unwrap_or_default();
        let coded = known.iter().any(|word| is_option(word, code));
        let says = |word: &Word| {
            let value = word.value.as_deref().unwrap_or_default().to_lowercase();
            value.contains("\n.")
                || ["edit", "load_extension", "readfile", "writefile", "fts3_tokenizer"]
                    .iter()
                    .any(|function| value.contains(function))
        };
        let is_sql = name.starts_with("sqlite") && arguments.iter().any(says);
        if coded || is_sql || feed.is_fed && module.is_none() {
            self.opaque(Unclear::Code);
        }
        if let Some(at) = module {
            let option = arguments.get(at).and_then(|word| word.value.as_deref());
            let attached = option.and_then(|option| option.split_once('m')).map(|(_, name)| name);
            match (attached, arguments.get(at + 1)) {
                (Some(module), _) if !module.is_empty() => {
                    self.module(module, arguments.get(at + 1..).unwrap_or_default(), feed);
                }
                (_, Some(module)) => match module.value.as_deref() {
                    Some(module) => {
                        self.module(module, arguments.get(at + 2..).unwrap_or_default(), feed);
                    }
                    None => self.hidden(Unclear::Code),
                },
                (_, None) => {}
            }
        }
        let mut follows_option = false;
        let mut has_file = module.is_some();
        for word in known {
            let Some(value) = word.value.as_deref() else {
                // It may be the file that is run.
                if !has_file {
                    self.runs(word);
                    self.hidden_file(word);
                }
                continue;
            };
            if is_code(value) {
                self.rough(value);
            }
            let is_option = value.starts_with('-');
            self.runs(word);
            if !is_option {
                let last = base_name(value);
                self.runs_any(&[&format!("{last}.js"), "index.js", "__main__.py", "package.json"]);
                has_file |= !follows_option || value.contains(['/', '.']);
            }
            follows_option = is_option;
        }
    }

    /// Records that a file with an unknown name is run.
    pub(super) fn hidden_file(&mut self, word: &Word) {
        if word.to_shape().has_any() || word.written.starts_with('<') {
            self.hidden(Unclear::Code);
        }
    }

    /// Examines a module of Python, which is a file or a directory, and the code that it runs.
    fn module(&mut self, module: &str, arguments: &[Word], feed: Feed<'_>) {
        let last = module.rsplit('.').next().unwrap_or(module);
        self.runs_any(&["__main__.py", last]);
        // Its imports are searched in its directory.
        self.run.push(Shape::any_then(&Shape::literal(".py")));
        let top = module.split('.').next().unwrap_or(module);
        let is_coded = CODE_MODULES.contains(&top) && !arguments.is_empty()
            || arguments.iter().any(|word| PROMPTS.contains(&top) && is_option(word, &["-c"]));
        if is_coded || feed.is_fed && PROMPTS.contains(&top) {
            self.opaque(Unclear::Code);
        }
        if RUNNING_MODULES.contains(&top) || PROMPTS.contains(&top) {
            for word in arguments {
                self.runs(word);
            }
        }
    }

    pub(super) fn awk(&mut self, arguments: &[Word], feed: Feed<'_>) {
        let mut is_coded = false;
        for (index, word) in arguments.iter().enumerate() {
            let Some(value) = word.value.as_deref() else { continue };
            let next = || arguments.get(index + 1).and_then(|word| word.value.as_deref());
            // A program from standard input.
            let file = value.strip_prefix("-f").map(|file| Some(file).filter(|it| !it.is_empty()));
            let is_fed = file.is_some_and(|file| {
                let file = file.or_else(next);
                file.is_none_or(|file| file == "-" || self.may_be_descriptor(file, feed))
            });
            is_coded |= ["system", "getline", "@"].iter().any(|part| value.contains(part))
                || value.replace("||", "").contains('|')
                || is_fed
                || value.starts_with("-W")
                || ["-l", "-i", "-E", "--"]
                    .iter()
                    .any(|option| value.starts_with(option) && value.len() > 2);
        }
        let is_known = self.awk_program(arguments);
        if is_coded || !is_known {
            self.opaque(Unclear::Code);
        }
        for word in arguments {
            if let Some(value) = word.value.as_deref().filter(|value| is_code(value)) {
                self.rough(value);
            }
        }
    }

    /// Whether the program of an `awk` is known, or can run nothing whatever it is.
    pub(super) fn awk_program(&mut self, arguments: &[Word]) -> bool {
        let mut words = arguments.iter();
        let mut has_file = false;
        while let Some(word) = words.next() {
            let value = word.value.as_deref();
            match value.and_then(|value| value.strip_prefix('-')) {
                Some("F" | "v") => {
                    words.next();
                }
                Some("f") => {
                    has_file = true;
                    if let Some(file) = words.next() {
                        self.runs(file);
                    }
                }
                Some(attached) if attached.starts_with('f') => {
                    has_file = true;
                    self.run.push(Shape::literal(base_name(attached.get(1..).unwrap_or_default())));
                }
                Some(_) => {}
                None => {
                    return has_file || value.is_some() || !has_code_shape(word);
                }
            }
        }
        has_file
    }
}

/// The end of an interpreter's own words: behind the first word that is certainly a file to run.
fn script_place(name: &str, arguments: &[Word]) -> usize {
    const LANGUAGES: [&str; 12] = [
        "Rscript", "lua", "luajit", "node", "nodejs", "perl", "php", "pypy", "python", "ruby",
        "ts-node", "tsx",
    ];
    const PLAIN: [&str; 7] = ["-B", "-E", "-O", "-s", "-u", "-w", "--enable-source-maps"];
    let family = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    if !LANGUAGES.contains(&family) {
        return arguments.len();
    }
    let mut follows_option = false;
    for (index, word) in arguments.iter().enumerate() {
        let Some(value) = word.value.as_deref() else { return arguments.len() };
        if !value.starts_with('-') && !follows_option {
            return index + 1;
        }
        follows_option = value.starts_with('-') && !PLAIN.contains(&value);
    }
    arguments.len()
}

/// Whether a text is more than a name or a number.
fn is_code(value: &str) -> bool {
    has_blank(value) || value.contains(['(', '\'', '"', ';', '<', '>', '{'])
}

/// Whether an unknown word may be code that runs something.
fn has_code_shape(word: &Word) -> bool {
    let runs =
        |text: &String| ["system", "getline", "@", "|"].iter().any(|part| text.contains(part));
    word.to_shape().samples(LONGEST_VIEW).is_none_or(|texts| texts.iter().any(runs))
}
