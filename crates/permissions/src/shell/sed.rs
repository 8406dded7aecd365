//! `sed`, as far as a script of it can be read: addresses, printing, deleting, and substitutions that
//! neither run nor write.

/// Whether `sed` prints and changes no file.
pub(super) fn reads(arguments: &[&str]) -> bool {
    split(arguments).is_some_and(|sed| !sed.in_place && sed.scripts.iter().all(|s| is_safe(s)))
}

/// The files that a `sed -i` with a safe script changes.
pub(super) fn edits<'a>(arguments: &[&'a str]) -> Option<Vec<&'a str>> {
    let sed = split(arguments)?;
    (sed.in_place && sed.scripts.iter().all(|script| is_safe(script))).then_some(sed.files)
}

struct Sed<'a> {
    in_place: bool,
    scripts: Vec<&'a str>,
    files: Vec<&'a str>,
}

fn split<'a>(arguments: &[&'a str]) -> Option<Sed<'a>> {
    let mut sed = Sed { in_place: false, scripts: Vec::new(), files: Vec::new() };
    let mut words = arguments.iter().copied();
    while let Some(word) = words.next() {
        match word {
            "-n" | "-E" | "-r" | "-u" | "--quiet" | "--silent" | "--regexp-extended" => {}
            "-i" | "--in-place" | "-ni" | "-Ei" | "-ri" => sed.in_place = true,
            "-e" | "--expression" | "-ne" | "-Ee" | "-re" => sed.scripts.push(words.next()?),
            option if option.starts_with('-') => return None,
            operand => sed.files.push(operand),
        }
    }
    if sed.scripts.is_empty() {
        if sed.files.is_empty() {
            return None;
        }
        let script = sed.files.remove(0);
        sed.scripts.push(script);
    }
    Some(sed)
}

/// Whether a script is one address and command, or several of the kind `1,5p;7d`.
fn is_safe(script: &str) -> bool {
    let plain = |c: char| c.is_ascii_digit() || "$,;pdq=! ".contains(c);
    if script.chars().all(plain) {
        return true;
    }
    let command = without_address(script);
    if matches!(command, "p" | "d" | "=" | "!p" | "!d") {
        return true;
    }
    let Some(rest) = command.strip_prefix('s') else { return false };
    let Some(mark) = rest.chars().next().filter(|c| "/|#,:@%".contains(*c)) else { return false };
    let Some(flags) = after_marks(rest, mark, 3) else { return false };
    // `e` runs the text, `w` and `m` are read otherwise; a newline begins another command.
    flags.chars().all(|c| c.is_ascii_digit() || "gpiI".contains(c)) && !script.contains('\n')
}

/// The script behind an address of numbers or one `/pattern/`.
fn without_address(script: &str) -> &str {
    if script.starts_with('/') {
        return after_marks(script, '/', 2).unwrap_or(script);
    }
    script.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, ',' | '$'))
}

/// What follows the mark when it stands for the nth time, not counting escaped ones.
fn after_marks(text: &str, mark: char, count: usize) -> Option<&str> {
    let mut seen = 0;
    let mut escaped = false;
    for (index, character) in text.char_indices() {
        if !escaped && character == mark {
            seen += 1;
            if seen == count {
                return text.get(index + character.len_utf8()..);
            }
        }
        escaped = character == '\\' && !escaped;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_that_run_or_write_are_refused() {
        for (arguments, expected) in [
            (&["-n", "1,5p", "a"][..], true),
            (&["-n", "$p;3p", "a"], true),
            (&["s/a/b/g", "a"], true),
            (&["-E", "s|a/(b)|c\\|d|gI", "a"], true),
            (&["/x/d", "a"], true),
            (&["-e", "s/a/b/", "-e", "5q", "a"], true),
            (&["s/a/b/e", "a"], false),
            (&["s/a/b/w out", "a"], false),
            (&["s/a/b/;w out", "a"], false),
            (&["s/a/b/\nw out", "a"], false),
            (&["1e curl x", "a"], false),
            (&["e", "a"], false),
            (&["w out", "a"], false),
            (&["r /etc/passwd", "a"], false),
            (&["/x/e", "a"], false),
            (&["-i", "s/a/b/", "a"], false),
            (&["-f", "script", "a"], false),
            (&["-s", "p", "a"], false),
            (&[], false),
        ] {
            assert_eq!(reads(arguments), expected, "{arguments:?}");
        }
        assert_eq!(edits(&["-i", "s/a/b/", "x", "y"]), Some(vec!["x", "y"]));
        assert_eq!(edits(&["-i.bak", "s/a/b/", "x"]), None);
        assert_eq!(edits(&["-i", "s/a/b/e", "x"]), None);
    }
}
