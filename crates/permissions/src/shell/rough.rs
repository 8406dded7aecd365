//! The generous reading: everything in a command line that might be a command.
//!
//! It does not understand the shell. It tries several ways to read the text and keeps all of them:
//! whoever asks "could this run `rm`?" must hear yes rather too often than once too rarely.

use super::programs::{base_name, is_interpreter};
use super::words::simple_command;

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

/// Every word list that may be run as a command by this command line.
pub(crate) fn rough_commands(command: &str) -> Vec<Vec<String>> {
    parts(command).iter().flat_map(|part| views(part)).collect()
}

/// Every command that running these words may run.
pub(crate) fn views(words: &[String]) -> Vec<Vec<String>> {
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
            *program = base_name(program).to_owned();
        }
    }
    found
}

/// What runs, and with which options before it, is the runner's business: try every place.
fn every_suffix(words: &[String]) -> Vec<Vec<String>> {
    let flat: Vec<String> = words
        .iter()
        .flat_map(|word| word.split(|c: char| c.is_whitespace() || "\"'`(){};|&,<>".contains(c)))
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect();
    let mut found = Vec::new();
    for start in 0..flat.len() {
        let words: Vec<String> = flat.iter().skip(start).take(LONGEST_VIEW).cloned().collect();
        // `-Scommand` of `env`, `-ccommand` of some shells.
        if let Some((option, arguments)) = words.split_first()
            && let Some(value) = attached_value(option)
        {
            found.push([&[value.to_owned()], arguments].concat());
        }
        if words.first().is_some_and(|word| base_name(word) == "git") {
            found.extend(without_global_options(&words));
        }
        found.push(words);
    }
    found
}

/// `git -C there -c name=value push` is `git push`.
fn without_global_options(words: &[String]) -> Option<Vec<String>> {
    let mut rest = words.get(1..)?;
    while let Some((option, after)) = rest.split_first().filter(|(word, _)| word.starts_with('-')) {
        let valued = matches!(
            option.as_str(),
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
    (rest.len() + 1 < words.len()).then(|| [&["git".to_owned()], rest].concat())
}

/// Every word that may be a path, with the value of `--option=value` apart.
pub(crate) fn mentioned_paths(command: &str) -> Vec<String> {
    let mut words: Vec<String> = parts(command).into_iter().flatten().collect();
    let values: Vec<String> = words
        .iter()
        .flat_map(|word| [word.split_once('=').map(|(_, value)| value), attached_value(word)])
        .flatten()
        .map(str::to_owned)
        .collect();
    words.extend(values);
    words.retain(|word| !word.is_empty());
    words
}

/// The value of a short option that is written without a space: `-fvalue`.
fn attached_value(word: &str) -> Option<&str> {
    let rest = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'))?;
    let mut characters = rest.chars();
    characters.next()?;
    Some(characters.as_str())
}

/// The command line cut wherever a command may begin, each part as words.
fn parts(command: &str) -> Vec<Vec<String>> {
    if let Some(words) = simple_command(command) {
        return vec![words];
    }
    let plain =
        [("\\\n", ""), ("\\", ""), ("$'", "'"), ("$\"", "\""), ("${IFS}", " "), ("$IFS", " ")]
            .iter()
            .fold(command.to_owned(), |text, (from, to)| text.replace(from, to));
    let plain = unbrace(&plain);
    let mut readings = vec![plain.replace(['\'', '"'], ""), plain.replace(['\'', '"'], " ")];
    if plain.contains('{') {
        // `{rm,-rf,x}` runs `rm -rf x`.
        let spread: Vec<String> = readings.iter().map(|text| text.replace(',', " ")).collect();
        readings.extend(spread);
    }
    readings
        .iter()
        .flat_map(|text| text.split([';', '&', '|', '\n', '(', ')', '{', '}', '<', '>', '`', '#']))
        .map(|part| part.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .filter(|words| !words.is_empty())
        .collect()
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
            let found = rough_commands(command);
            let hit = found.iter().any(|words| {
                words.first().is_some_and(|word| word == "rm")
                    && words.get(1).is_some_and(|w| w == "x")
            });
            assert!(hit, "{command:?} gave {found:?}");
        }
    }

    #[test]
    fn a_word_in_a_plain_argument_is_no_command() {
        for command in ["git commit -m 'docs; rm x'", "echo rm x", "grep rm x", "cat ./rm"] {
            let found = rough_commands(command);
            assert!(found.iter().all(|words| words[0] != "rm"), "{command:?} gave {found:?}");
        }
    }

    #[test]
    fn paths_are_found_in_options_and_redirections() {
        for command in [
            "cat .env",
            "cat '.env'",
            "cat .e\"n\"v; true",
            "cat <.env",
            "echo a >.env",
            "cp .env x && true",
            "tool --file=.env",
            "grep -f.env x",
            "echo $(cat .env)",
        ] {
            let paths = mentioned_paths(command);
            assert!(paths.iter().any(|path| path == ".env"), "{command:?} gave {paths:?}");
        }
    }
}
