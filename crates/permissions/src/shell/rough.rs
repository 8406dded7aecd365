//! The generous reading: everything in a command line that might be a command.
//!
//! It does not understand the shell. It tries several ways to read the text and keeps all of them:
//! whoever asks "could this run `rm`?" must hear yes rather too often than once too rarely.

use super::programs::{base_name, is_interpreter};

/// Programs and keywords that run what follows them.
const RUNNERS: [&str; 57] = [
    "!", "ash", "awk", "bash", "builtin", "busybox", "chroot", "command", "coproc", "dash", "do",
    "doas", "docker", "elif", "else", "env", "eval", "exec", "fd", "find", "fish", "flock",
    "function", "gawk", "if", "ionice", "ksh", "nice", "node", "noglob", "nohup", "nsenter",
    "parallel", "perl", "php", "podman", "python", "python3", "ruby", "runuser", "script",
    "setsid", "sh", "stdbuf", "strace", "su", "sudo", "then", "time", "timeout", "trap", "unshare",
    "until", "watch", "while", "xargs", "zsh",
];

/// Words of a command inside a runner's that are looked at: with all of them, a long line would need
/// time and room by its square.
const LONGEST_VIEW: usize = 40;

/// Every command that running these words may run.
pub(crate) fn views<'a>(words: &[&'a str]) -> Vec<Vec<&'a str>> {
    let start = words.iter().position(|word| !is_assignment(word)).unwrap_or(words.len());
    let words = words.get(start..).unwrap_or_default();
    let Some(program) = words.first() else { return Vec::new() };
    let mut found = vec![words.to_vec()];
    match base_name(program) {
        "git" => found.extend(without_global_options(words)),
        runner if RUNNERS.contains(&runner) || is_interpreter(runner) => {
            found.extend(every_suffix(words));
        }
        _ => {}
    }
    for words in &mut found {
        if let Some(program) = words.first_mut() {
            *program = base_name(program);
        }
    }
    found
}

/// What runs, and with which options before it, is the runner's business: try every place.
fn every_suffix<'a>(words: &[&'a str]) -> Vec<Vec<&'a str>> {
    let flat: Vec<&str> = words
        .iter()
        .flat_map(|word| word.split(|c: char| c.is_whitespace() || "\"'`(){};|&,<>".contains(c)))
        .filter(|word| !word.is_empty())
        .collect();
    let mut found = Vec::new();
    for start in 0..flat.len() {
        let words: Vec<&str> = flat.iter().skip(start).take(LONGEST_VIEW).copied().collect();
        // `-Scommand` of `env`, `-ccommand` of some shells.
        if let Some((option, arguments)) = words.split_first()
            && let Some(value) = attached_value(option)
        {
            found.push([&[value], arguments].concat());
        }
        if words.first().is_some_and(|word| base_name(word) == "git") {
            found.extend(without_global_options(&words));
        }
        found.push(words);
    }
    found
}

/// `git -C there -c name=value push` is `git push`.
fn without_global_options<'a>(words: &[&'a str]) -> Option<Vec<&'a str>> {
    let mut rest = words.get(1..)?;
    while let Some((option, after)) = rest.split_first().filter(|(word, _)| word.starts_with('-')) {
        let valued = matches!(
            *option,
            "-C" | "-c"
                | "--git-dir"
                | "--work-tree"
                | "--namespace"
                | "--config-env"
                | "--exec-path"
                | "--super-prefix"
        );
        rest = if valued { after.get(1..)? } else { after };
    }
    (rest.len() + 1 < words.len()).then(|| [&["git"], rest].concat())
}

/// What a word may name as a path: itself, the value of `--option=value`, the value of `-ovalue`.
pub(crate) fn possible_paths(word: &str) -> impl Iterator<Item = &str> {
    let value = word.split_once('=').map(|(_, value)| value);
    let all = [Some(word), value, attached_value(word)];
    all.into_iter().flatten().filter(|path| !path.is_empty())
}

/// The value of a short option that is written without a space: `-fvalue`.
fn attached_value(word: &str) -> Option<&str> {
    let rest = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'))?;
    let mut characters = rest.chars();
    characters.next()?;
    Some(characters.as_str())
}

/// The command line with its quotes and escapes taken away, in every way that may be meant.
pub(crate) fn readings(command: &str) -> Vec<String> {
    let plain =
        [("\\\n", ""), ("\\", ""), ("$'", "'"), ("$\"", "\""), ("${IFS}", " "), ("$IFS", " ")]
            .iter()
            .fold(command.to_owned(), |text, (from, to)| {
                if text.contains(from) { text.replace(from, to) } else { text }
            });
    let plain = unbrace(&plain);
    if !plain.contains(['\'', '"', '{']) {
        return vec![plain];
    }
    let mut readings = vec![plain.replace(['\'', '"'], ""), plain.replace(['\'', '"'], " ")];
    if plain.contains('{') {
        // `{rm,-rf,x}` runs `rm -rf x`.
        let spread: Vec<String> = readings.iter().map(|text| text.replace(',', " ")).collect();
        readings.extend(spread);
    }
    readings
}

/// One of the readings cut wherever a command may begin, each part as words.
pub(crate) fn parts(reading: &str) -> impl Iterator<Item = Vec<&str>> {
    reading
        .split([';', '&', '|', '\n', '(', ')', '{', '}', '<', '>', '`', '#'])
        .map(|part| part.split_whitespace().collect::<Vec<_>>())
        .filter(|words| !words.is_empty())
}

/// Writes `${NAME}` as `$NAME`, so that the braces do not cut a word.
fn unbrace(text: &str) -> String {
    let mut pieces = text.split("${");
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        plain.push('$');
        match piece.split_once('}') {
            Some((name, rest)) if name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') => {
                plain.push_str(name);
                plain.push_str(rest);
            }
            _ => plain.push_str(piece),
        }
    }
    plain
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty()
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '+'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hidden_command_is_found() {
        for command in [
            "rm x",
            "/bin/rm x",
            "r'm' x",
            "true; rm x",
            "true && rm x",
            "true | rm x",
            "true & rm x",
            "true\nrm x",
            "(rm x)",
            "{ rm x; }",
            "{rm,x}",
            "echo $(rm x)",
            "echo `rm x`",
            "cat <(rm x)",
            "r\\m x",
            "r\\\nm x",
            "$'rm' x",
            "rm${IFS}x",
            "rm$IFS\"x\"",
            "A=1 rm x",
            "A=1 B='2' rm x; true",
            "sudo -n rm x",
            "env A=1 rm x",
            "timeout 5 rm x",
            "nice -n 5 nohup rm x",
            "bash -c 'rm x'",
            "bash -c \"cd y && rm x\"",
            "sh -c 'sh -c \"rm x\"'",
            "eval rm x",
            "if true; then rm x; fi",
            "while rm x; do true; done",
            "echo x | xargs rm x",
            "find . -exec rm x +",
            "env -S'rm x'",
            "! rm x",
            "python3 -c \"import os; os.system('rm x')\"",
            "awk 'BEGIN{system(\"rm x\")}'",
            "bash -c 'true;rm x'",
            "echo ${x:-$(rm x)}",
        ] {
            let readings = readings(command);
            let parts: Vec<Vec<&str>> = readings.iter().flat_map(|text| parts(text)).collect();
            let found: Vec<Vec<&str>> = parts.iter().flat_map(|words| views(words)).collect();
            let hit = found.iter().any(|words| words.starts_with(&["rm", "x"]));
            assert!(hit, "{command:?} gave {found:?}");
        }
    }

    #[test]
    fn paths_are_found_in_options() {
        for (word, expected) in [
            (".env", &[".env"][..]),
            ("--file=.env", &["--file=.env", ".env"]),
            ("-f.env", &["-f.env", ".env"]),
            ("--file=", &["--file="]),
            ("-f", &["-f"]),
        ] {
            assert_eq!(possible_paths(word).collect::<Vec<_>>(), expected, "{word}");
        }
    }
}
