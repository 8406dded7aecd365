//! Files that a text mentions as `@path`: what they hold goes along with it.
//!
//! A mention is read like a call of the Read tool by the agent, with its rules, but no person is asked.

use std::ops::Range;
use std::path::{Path, PathBuf};

use centurion_permissions::{Access, Call, Verdict};
use centurion_protocol::markup::contain;
use centurion_protocol::{ToolUse, ToolUseId};
use serde_json::json;
use serde_json::value::to_raw_value;
use tokio_util::sync::CancellationToken;

use crate::turn::dispatch::{Dispatch, text_of};

/// The most files that one text may bring.
const MOST: usize = 20;

/// The most bytes of all files together.
const MOST_BYTES: usize = 200_000;

/// The longest path of a mention.
const LONGEST: usize = 1024;

/// The most names of a directory that are listed.
const MOST_NAMES: usize = 100;

/// A file or directory that is mentioned, with the lines that are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mention {
    path: String,
    /// The first line and the last one.
    lines: Option<(usize, Option<usize>)>,
}

/// A text in which files are looked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mentioning<'t> {
    pub(crate) text: &'t str,
    /// Parts of it that may complete a mention and begin none.
    pub(crate) values: &'t [Range<usize>],
}

impl<'t> Mentioning<'t> {
    /// A text that may mention files everywhere.
    pub(crate) fn all(text: &'t str) -> Self {
        Self { text, values: &[] }
    }

    fn is_value(&self, at: usize) -> bool {
        // Values stand in order.
        let next = self.values.partition_point(|value| value.end <= at);
        self.values.get(next).is_some_and(|value| value.contains(&at))
    }
}

/// A file that goes along with a text.
#[derive(Clone, Debug)]
pub(crate) struct Attachment {
    path: PathBuf,
    lines: Option<(usize, Option<usize>)>,
    /// The content, framed as data.
    pub(crate) text: String,
}

/// Adds attachments that are not among the others yet.
pub(crate) fn add_new(attachments: &mut Vec<Attachment>, more: Vec<Attachment>) {
    for new in more {
        if !attachments.iter().any(|it| (&it.path, it.lines) == (&new.path, new.lines)) {
            attachments.push(new);
        }
    }
}

/// Reads the files that texts mention, each once. Words that name no file are left alone.
pub(crate) async fn attached(
    dispatch: &Dispatch,
    texts: &[Mentioning<'_>],
    cancel: &CancellationToken,
) -> Vec<Attachment> {
    let mut attached: Vec<Attachment> = Vec::new();
    let mut bytes = 0;
    for mention in mentions(texts) {
        let path = dispatch.agent.workspace.absolute(&mention.path);
        let lines = mention.lines;
        if attached.iter().any(|it| (&it.path, it.lines) == (&path, lines)) {
            continue;
        }
        let Ok(metadata) = std::fs::metadata(&path) else {
            if mention.looks_like_file() {
                tell_refusal(dispatch, &mention, "there is no such file");
            }
            continue;
        };
        let content = if metadata.is_dir() {
            listing(dispatch, &path)
        } else {
            read(dispatch, &mention, &path, cancel).await
        };
        let content = match content {
            Content::Shown(text) => text,
            Content::Refused(reason) => {
                tell_refusal(dispatch, &mention, &reason);
                reason
            }
        };
        let text = if bytes + content.len() > MOST_BYTES {
            let too_much = "It is not shown here: there is too much already. Read it.";
            framed(&contain(&mention.path), too_much)
        } else {
            bytes += content.len();
            framed(&contain(&mention.path), &content)
        };
        attached.push(Attachment { path, lines, text });
    }
    attached
}

fn framed(path: &str, content: &str) -> String {
    // Reasons and names are others' words, too.
    let content = contain(content);
    format!("<system-reminder>\nThe text mentions {path}. It holds:\n{content}\n</system-reminder>")
}

/// The content of a file or directory for the model.
enum Content {
    Shown(String),
    /// The reason why there is none.
    Refused(String),
}

/// Tells the user of a mention whose file does not go along.
fn tell_refusal(dispatch: &Dispatch, mention: &Mention, reason: &str) {
    let reason = reason.lines().next().unwrap_or_default();
    dispatch.agent.inform("warning", format!("`@{}` is not attached: {reason}", mention.path));
}

/// The names in a directory that the agent may read without being asked about it, or why it may not.
fn listing(dispatch: &Dispatch, path: &Path) -> Content {
    let agent = &dispatch.agent;
    // The target of links is judged.
    let unreadable = || Content::Refused("It cannot be read.".to_owned());
    let Ok(real) = path.canonicalize() else { return unreadable() };
    let access = Access::Read(real.clone());
    let decision = agent.permissions.decide(&Call::new("Read", &access), agent.workspace.cwd());
    if decision.verdict != Verdict::Allow {
        return Content::Refused(format!("It may not be read: {}.", decision.reason));
    }
    let Ok(entries) = std::fs::read_dir(&real) else { return unreadable() };
    let may_read = |entry: &std::fs::DirEntry| (agent.workspace.may_read)(&entry.path());
    let name = |entry: std::fs::DirEntry| {
        let slash = if entry.file_type().is_ok_and(|kind| kind.is_dir()) { "/" } else { "" };
        format!("{}{slash}", entry.file_name().to_string_lossy().replace(char::is_control, "?"))
    };
    let readable = entries.flatten().take(MOST_NAMES).filter(may_read);
    let mut names: Vec<String> = readable.map(name).collect();
    names.sort();
    Content::Shown(contain(&names.join("\n")).into_owned())
}

/// A file as the Read tool shows it, or why it does not.
async fn read(
    dispatch: &Dispatch,
    mention: &Mention,
    path: &Path,
    cancel: &CancellationToken,
) -> Content {
    let mut input = json!({"file_path": path});
    if let Some((first, last)) = mention.lines {
        input["offset"] = json!(first);
        if let Some(last) = last {
            input["limit"] = json!(last.saturating_sub(first) + 1);
        }
    }
    let Ok(input) = to_raw_value(&input) else { return Content::Shown(String::new()) };
    let call = ToolUse { id: ToolUseId::new("mention"), name: "Read".to_owned(), input };
    let result = match dispatch.prepare(&call) {
        Ok(prepared) => dispatch.run_unasked(&call, prepared, cancel).await.result,
        Err(refused) => refused.result,
    };
    let text = text_of(&result);
    if result.is_error { Content::Refused(text) } else { Content::Shown(text) }
}

/// The mentions in texts, each once.
fn mentions(texts: &[Mentioning<'_>]) -> Vec<Mention> {
    let mut found = Vec::new();
    for text in texts {
        find_mentions(text, &mut found);
    }
    found
}

/// Adds the mentions in a text. Every word of it is looked at once.
fn find_mentions(searched: &Mentioning<'_>, found: &mut Vec<Mention>) {
    let (mut rest, mut before) = (searched.text, None);
    while let Some((skipped, after)) = rest.split_once('@') {
        if found.len() >= MOST {
            return;
        }
        before = skipped.chars().next_back().or(before);
        // An address has a letter before its sign.
        let is_begin = before.is_none_or(|it: char| it.is_whitespace() || "([\"'".contains(it))
            && !searched.is_value(searched.text.len() - after.len() - '@'.len_utf8());
        before = Some('@');
        rest = after;
        if !is_begin {
            continue;
        }
        let near = after.get(..after.floor_char_boundary(LONGEST)).unwrap_or_default();
        let word = match near.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').map(|(path, _)| path),
            None => near.split(|it: char| it.is_whitespace() || "\"'`)]<>".contains(it)).next(),
        };
        let Some(word) = word else { continue };
        rest = after.get(word.len()..).unwrap_or_default();
        before = word.chars().next_back().or(before);
        let Some(mention) = Mention::read(word) else { continue };
        if !found.contains(&mention) {
            found.push(mention);
        }
    }
}

impl Mention {
    /// Reads `path`, `path#L10` or `path#L10-20`, without a full stop behind it.
    fn read(word: &str) -> Option<Self> {
        let word = word.trim_end_matches(['.', ',', ';', ':', '?', '!']);
        let (path, lines) = match word.split_once("#L") {
            Some((path, lines)) => {
                let (first, last) = lines.split_once('-').map_or((lines, None), |(first, last)| {
                    (first, last.trim_start_matches('L').parse().ok())
                });
                (path, Some((first.parse().ok()?, last)))
            }
            None => (word, None),
        };
        let is_path =
            !path.is_empty() && !path.starts_with('@') && !path.contains(char::is_control);
        is_path.then(|| Self { path: path.to_owned(), lines })
    }

    /// Whether a file must be meant: people also write `@alice` and `@types/node`.
    fn looks_like_file(&self) -> bool {
        let begins = ["./", "../", "~/", "/"].iter().any(|start| self.path.starts_with(start));
        begins || Path::new(&self.path).extension().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(text: &str) -> Vec<String> {
        mentions(&[Mentioning::all(text)]).into_iter().map(|it| it.path).collect()
    }

    #[test]
    fn values_complete_mentions_and_begin_none() {
        let of = |text, values: &[Range<usize>]| -> Vec<String> {
            let found = mentions(&[Mentioning { text, values }]);
            found.into_iter().map(|it| it.path).collect()
        };
        assert_eq!(of("@a.txt @b.txt", &[1..6, 13..13]), ["a.txt", "b.txt"]);
        assert_eq!(of("@a.txt @b.txt", &[0..6, 13..13]), ["b.txt"]);
        assert_eq!(of("@x/@types/a @b @c", &[3..9, 12..14]), ["x/@types/a", "c"]);
    }

    #[test]
    fn mentions_are_words_that_begin_with_the_sign() {
        assert_eq!(paths("look at @src/main.rs, and (@docs)."), ["src/main.rs", "docs"]);
        assert_eq!(paths("@\"a b.txt\" and @~/x"), ["a b.txt", "~/x"]);
        assert_eq!(paths("me@example.com @ @@ @,"), [""; 0]);
        assert_eq!(paths("@a @a @b"), ["a", "b"]);
    }

    #[test]
    fn lines_may_be_named() {
        let lines = |text: &str| mentions(&[Mentioning::all(text)])[0].lines;
        assert_eq!(lines("@a"), None);
        assert_eq!(lines("@a#L7"), Some((7, None)));
        assert_eq!(lines("@a#L7-9."), Some((7, Some(9))));
        assert_eq!(lines("@a#L7-L9"), Some((7, Some(9))));
        assert_eq!(paths("@a#Lx"), [""; 0]);
    }

    #[test]
    fn a_text_brings_no_more_than_so_many_files() {
        let names: Vec<String> = (0..1000).map(|n| format!("@f{n}")).collect();
        assert_eq!(paths(&names.join(" ")).len(), MOST);
    }

    #[test]
    fn a_text_of_nothing_but_signs_is_looked_through_once() {
        for part in ["(@#Lx", "@\"", "@", "(@a#L", "@@ "] {
            assert!(paths(&part.repeat(200_000)).len() <= MOST);
        }
    }
}
