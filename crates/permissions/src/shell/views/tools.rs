//! Programs that run others in their own ways.

use super::super::characters::words as split_words;
use super::super::git_runs as git;
use super::super::programs::{ProgramKind, base_name, kind};
use super::super::script::{Unclear, Word};
use super::super::sed;
use super::super::shape::Shape;
use super::feed::Feed;
use super::words::{attached, best_values, is_option, peel, shape_of};
use super::{Certainty, Finder, LONGEST_VIEW};

impl Finder<'_> {
    pub(super) fn sed(&mut self, arguments: &[Word]) {
        let values: Option<Vec<&str>> =
            arguments.iter().map(|word| word.value.as_deref()).collect();
        // Commands that read or write name a file up to the end of the line.
        for value in arguments.iter().filter_map(|word| word.value.as_deref()) {
            let files = sed::possible_files(value);
            self.views.code_words.extend(files.map(str::to_owned));
        }
        let known = values
            .as_ref()
            .is_some_and(|values| sed::reads(values).is_some() || sed::edits(values).is_some());
        // Files may have unknown names, scripts may not.
        let scripts_known = || {
            let words: Vec<Option<&str>> =
                arguments.iter().map(|word| word.value.as_deref()).collect();
            let is_odd = |word: &Word| {
                word.value.is_none() && word.to_shape().start().next().is_none_or(|c| c == '-')
            };
            !arguments.iter().any(is_odd)
                && sed::scripts(&words).is_some_and(|scripts| {
                    scripts.iter().all(|script| script.is_some_and(sed::runs_nothing))
                })
        };
        if !known && !scripts_known() {
            let is_file = |word: &Word| is_option(word, &["-f", "--file"]);
            // A script from the output of another command.
            if arguments.iter().any(is_file) && arguments.iter().any(|word| word.value.is_none()) {
                self.hidden(Unclear::Code);
            }
            self.opaque(Unclear::Code);
            let joined = best_values(arguments).join(" ");
            self.rough(&joined);
        }
    }

    pub(super) fn make(&mut self, arguments: &[Word], feed: Feed<'_>) {
        self.runs_any(&["Makefile", "makefile", "GNUmakefile"]);
        for word in arguments {
            self.runs(word);
            let value = word.value.as_deref().unwrap_or_default();
            let file = attached(value).or(value.split_once('=').map(|(_, file)| file));
            self.run.extend(file.map(|file| Shape::literal(base_name(file))));
        }
        let plain = |value: &str| {
            value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./,:@%+=".contains(&byte))
        };
        let is_fed_file = feed.is_fed
            && arguments.iter().any(|word| is_option(word, &["-f", "--file", "--makefile"]));
        let is_code = arguments.iter().any(|word| is_option(word, &["-E", "--eval"]));
        let samples = |word: &Word| word.to_shape().samples(LONGEST_VIEW);
        for sample in arguments.iter().flat_map(|word| match samples(word) {
            Some(texts) => texts.into_iter().map(Some).collect(),
            None => vec![None],
        }) {
            let value = sample.as_deref();
            // Recipes may run the value of a variable.
            if let Some((_, text)) = value.and_then(|value| value.split_once('=')) {
                self.views.possible.push(base_name(text).to_owned());
            }
            let sets = value.is_none_or(|value| value.contains('=') && !value.starts_with('-'));
            let is_odd = is_fed_file
                || is_code
                || value.is_none_or(|value| {
                    sets && (!plain(value)
                        || value.starts_with("SHELL")
                        || value.starts_with(".SHELL"))
                });
            if is_odd {
                self.hidden(Unclear::Code);
                if let Some(text) = feed.text {
                    self.rough(text);
                }
                self.everywhere(
                    &[&[Word::known("make", "make".to_owned())], arguments].concat(),
                    feed,
                );
                return;
            }
        }
    }

    pub(super) fn xargs(&mut self, arguments: &[Word], feed: Feed<'_>) {
        // With names from a file, its standard input goes to the inner command.
        let reads_file = arguments.iter().any(|word| is_option(word, &["-a", "--arg-file"]));
        let feed = if reads_file { feed } else { Feed::NONE };
        // The values of these are attached, or missing.
        let may_be_attached = |word: &Word| is_option(word, &["-e", "-i", "-l"]);
        let start = peel(arguments, "adEILnPs", 0, false);
        let start = start.filter(|start| !arguments.iter().take(*start).any(may_be_attached));
        let Some(start) = start else {
            self.opaque(Unclear::Code);
            return self.everywhere(
                &[&[Word::known("xargs", "xargs".to_owned())], arguments].concat(),
                feed,
            );
        };
        let inner = arguments.get(start..).unwrap_or_default();
        let Some(program) = inner.first() else { return };
        let replaces = start > 0;
        let is_plain = program.value.as_deref().is_some_and(|value| {
            let held = matches!(kind(base_name(value)), Some(ProgramKind::Plain) | None);
            let runs = matches!(
                base_name(value),
                "git" | "find" | "fd" | "xargs" | "make" | "eval" | "sed"
            );
            // Behind its subcommand, git takes no options that set something.
            let is_told = base_name(value) == "git" && inner.len() > 1;
            held && (!runs || is_told) && !(replaces && value.contains('{'))
        });
        if !is_plain {
            self.opaque(Unclear::Code);
        }
        // Its input names files.
        self.views.hides_paths.get_or_insert(Unclear::Code);
        let added = [inner, &[Word::unknown("…")]].concat();
        self.words(&added, feed);
    }

    pub(super) fn find(&mut self, words: &[Word], feed: Feed<'_>) {
        const RUNS: [&str; 8] =
            ["-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"];
        for (index, word) in words.iter().enumerate() {
            match word.value.as_deref() {
                Some(value) if RUNS.contains(&value) || value.starts_with("--exec") => {
                    let rest = words.get(index + 1..).unwrap_or_default();
                    let end = rest
                        .iter()
                        .position(|word| matches!(word.value.as_deref(), Some(";" | "+")));
                    let inner = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
                    let holds = |word: &Word| {
                        word.value.as_deref().is_some_and(|value| value.contains("{}"))
                    };
                    let program = inner.first().and_then(|word| word.value.as_deref());
                    let runs_text = program.is_some_and(|program| {
                        matches!(kind(base_name(program)), Some(kind) if kind != ProgramKind::Plain)
                            || matches!(base_name(program), "eval" | "xargs" | "find")
                    });
                    // The placeholder for a file name is a part of the command.
                    if inner.first().is_some_and(holds)
                        || (runs_text
                            && inner
                                .iter()
                                .any(|word| holds(word) && word.value.as_deref() != Some("{}")))
                        || (runs_text && inner.get(1).is_some_and(holds))
                    {
                        self.opaque(Unclear::Program);
                    }
                    // The names that it finds are not known.
                    if inner.iter().any(holds) {
                        self.views.hides_paths.get_or_insert(Unclear::Code);
                    }
                    self.words(inner, feed);
                }
                // An unknown word may be any option.
                None if word.splits
                    && index > 0
                    && self.certainty == Certainty::Certain
                    && word.to_shape().has_any() =>
                {
                    self.opaque(Unclear::Code);
                }
                Some(_) | None => {}
            }
        }
    }

    /// Records the files that a patch names, each also without its first directories.
    pub(super) fn patch(&mut self, text: &str) {
        for word in text.lines().flat_map(split_words) {
            let mut rest = Some(word);
            while let Some(path) = rest {
                self.views.code_words.push(path.to_owned());
                self.made.push(Shape::literal(base_name(path)));
                rest = path.split_once('/').map(|(_, rest)| rest);
            }
        }
    }

    pub(super) fn git(&mut self, words: &[Word]) {
        if let Some(plain) = git::without_global_options(words) {
            let values = best_values(&plain);
            self.keep(&values);
            if plain.iter().any(|word| word.value.is_none()) {
                self.views.shapes.push(shape_of(&plain));
            }
        }
        if git::may_run_others(words) {
            self.opaque(Unclear::Code);
            self.everywhere(words, Feed::NONE);
        }
    }
}
