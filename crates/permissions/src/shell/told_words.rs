//! Words that stand for several texts, all of which are known from the script or the disk: the variable of a loop, a
//! number from the shell, a pattern.

use std::path::{Path, PathBuf};

use super::mentions::absolute_shape;
use super::script::Word;
use super::shape::{Shape, Step};
use super::views::readings as finite_readings;
use crate::links::PathKind;
use crate::scene::Scene;

/// Programs that open no file by a number.
const SPEAKERS: [&str; 6] = [":", "[", "echo", "false", "test", "true"];

/// Programs that only read, whatever their operands and the number of these, so that the names that a pattern matches
/// do not matter.
const READERS: [&str; 13] = [
    "cat",
    "cut",
    "du",
    "head",
    "ls",
    "md5sum",
    "nl",
    "sha1sum",
    "sha256sum",
    "sha512sum",
    "stat",
    "tail",
    "wc",
];

/// The most names that a pattern matches.
const MOST_NAMES: usize = 500;

/// The possible commands of these words, each with all words known; `None` if they are not known.
pub(super) fn readings(
    words: &[Word],
    places: &[PathBuf],
    scene: Scene<'_>,
) -> Option<Vec<Vec<Word>>> {
    let (program, arguments) = words.split_first()?;
    let name = program.value.as_deref().filter(|name| *name != "cd")?;
    if !arguments.iter().all(|word| word.is_told) {
        return None;
    }
    let mut told = vec![program.clone()];
    for word in arguments {
        let shape = word.to_shape();
        if word.value.is_some() || shape.is_finite() {
            told.push(word.clone());
        } else if SPEAKERS.contains(&name) {
            let samples = shape.samples(1)?;
            told.extend(samples.into_iter().map(|text| Word::known(&word.written, text)));
        } else {
            let [place] = places else { return None };
            let is_reader = READERS.contains(&name);
            told.extend(is_reader.then(|| matched(word, &shape, place, scene))??);
        }
    }
    let readings = finite_readings(&told)?;
    Some(if readings.is_empty() { vec![told] } else { readings })
}

/// The names that a pattern matches now. A pattern without a match names no file.
fn matched(word: &Word, shape: &Shape, place: &Path, scene: Scene<'_>) -> Option<Vec<Word>> {
    let is_plain =
        |step: &Step| matches!(step, Step::Literal(_) | Step::Name | Step::Character | Step::NoDot);
    // In some versions of the shell, a pattern that begins with a dot matches the directory above.
    let climbs = |name: &[Step]| Shape::from_steps(name).intersects(&Shape::literal(".."));
    if shape.steps().split(|step| *step == Step::Literal('/')).any(climbs) {
        return None;
    }
    let is_option = shape.steps().first() == Some(&Step::Literal('-'));
    if is_option || !shape.steps().iter().all(is_plain) || word.written.contains("..") {
        return None;
    }
    // Without a directory nothing is known.
    (scene.links.kind(&scene.links.resolve(place)) == PathKind::Directory).then_some(())?;
    let paths = scene.matches(&absolute_shape(shape, place))?;
    if paths.len() > MOST_NAMES {
        return None;
    }
    let name = |path: &PathBuf| {
        let name = path.strip_prefix(place).ok()?.to_str()?.to_owned();
        Some(Word::known(&word.written, name))
    };
    paths.iter().map(name).collect()
}
