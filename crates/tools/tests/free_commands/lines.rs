//! Words for command lines: options from the help of programs, and operands that try to lead out.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use crate::scratch::program_path;

/// Files, directories and links of the scratch tree, each as it may be written.
pub(crate) const OPERANDS: [&str; 26] = [
    "a.txt",
    "b.txt",
    "dir",
    "dir2",
    ".",
    "out-file",
    "out-dir",
    "denied-link",
    "secret.env",
    "in-link",
    "in-dir",
    "dir/out",
    "dir/out-dir/secret.txt",
    "dir/c.txt",
    "in-dir/sub/up/a.txt",
    "../outside/secret.txt",
    "../outside",
    "names",
    "names0",
    "data.json",
    "missing",
    "-",
    "1",
    "2",
    "HEAD~1",
    "script.sed",
];

/// A small generator of numbers: the same seed gives the same lines.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % limit
    }

    pub(crate) fn pick<'a, T: ?Sized>(&mut self, words: &[&'a T]) -> &'a T {
        words[self.below(words.len())]
    }
}

/// The factor for the number of lines that are tried.
pub(crate) fn effort() -> usize {
    std::env::var("CENTURION_FREE_COMMANDS").ok().and_then(|it| it.parse().ok()).unwrap_or(1)
}

/// Every option that the program might have: all letters, and all that its help mentions, whole and shortened.
pub(crate) fn options(program: &str, help: &[&str]) -> Vec<String> {
    let mut options: BTreeSet<String> =
        ('0'..='9').chain('a'..='z').chain('A'..='Z').map(|letter| format!("-{letter}")).collect();
    let output = Command::new(program_path(program).unwrap())
        .args(help)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    for word in text.split(|c: char| !is_name(c)) {
        let word = word.trim_end_matches('-');
        if word.len() > 2 && word.starts_with('-') {
            options.insert(word.to_owned());
            if word.starts_with("--") && word.len() > 6 {
                options.insert(word[..word.len() - 2].to_owned());
            }
        }
    }
    options.into_iter().collect()
}

/// Values for an option: texts, numbers, and paths that lead out.
const VALUES: [&str; 9] =
    ["1", "x", "a.txt", "out-file", "dir", "../outside/secret.txt", "names0", "-n", "+%Y"];

/// Lines of a program: every option alone and with values, then random combinations of options and operands.
pub(crate) fn lines(
    program: &str,
    options: &[String],
    extra: &[&str],
    count: usize,
) -> Vec<String> {
    let mut random = Random::new(program.bytes().map(u64::from).sum());
    let operands: Vec<&str> = OPERANDS.iter().chain(extra).copied().collect();
    let mut lines: Vec<Vec<String>> = Vec::new();
    let mut add = |words: &[&str]| lines.push(words.iter().map(|&word| word.to_owned()).collect());
    add(&[]);
    for operand in &operands {
        add(&[operand]);
    }
    for option in options {
        add(&[option]);
        let value = random.pick(&VALUES);
        let attached = format!("{option}{value}");
        let equals = format!("{option}={value}");
        let (one, two) = (random.pick(&operands), random.pick(&operands));
        let forms = [
            &[option.as_str(), one][..],
            &[option, one, two],
            &["a.txt", option],
            &[option, value, one],
            &[one, option, value],
            &[&attached, one],
            &[&equals, one],
            &[&equals, one, two],
        ];
        add(&[option, "a.txt"]);
        for _ in 0..2 * effort() {
            add(random.pick(&forms));
        }
    }
    for _ in 0..count {
        let words: Vec<String> = (0..=random.below(4))
            .map(|_| match random.below(5) {
                0 | 1 => random.pick(&operands).to_owned(),
                2 => random.pick(&VALUES).to_owned(),
                3 => format!("{}{}", options[random.below(options.len())], random.pick(&VALUES)),
                _ => options[random.below(options.len())].clone(),
            })
            .collect();
        lines.push(words);
    }
    let mut seen = BTreeSet::new();
    lines
        .into_iter()
        .map(|words| std::iter::once(program.to_owned()).chain(words).collect::<Vec<_>>().join(" "))
        .filter(|line| seen.insert(line.clone()))
        .collect()
}
