//! Edit as a whole tool: files, states, races.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::Arc;

use tempfile::{TempDir, tempdir};
use tokio::task::JoinSet;

use super::*;
use crate::testing::{call, context, decide, text};
use crate::{Read, ReadState};

struct Bench {
    context: ToolContext,
    path: PathBuf,
    _dir: TempDir,
}

/// A file that the agent has read.
async fn bench(content: impl AsRef<[u8]>) -> Bench {
    let dir = tempdir().unwrap();
    let path = dir.path().join("file.txt");
    fs::write(&path, content).unwrap();
    let bench = Bench { context: context(dir.path()), path, _dir: dir };
    bench.read().await;
    bench
}

impl Bench {
    async fn read(&self) {
        call(Read, &self.context, json!({"file_path": self.path})).await.unwrap();
    }

    async fn edit(&self, old: &str, new: &str) -> Result<ToolOutput, ToolError> {
        let input = json!({"file_path": self.path, "old_string": old, "new_string": new});
        call(Edit, &self.context, input).await
    }

    fn bytes(&self) -> Vec<u8> {
        fs::read(&self.path).unwrap()
    }
}

#[tokio::test]
async fn an_edit_shows_the_place_and_gives_a_patch() {
    let bench = bench("1\n2\n3\n4\n5\n6\n7\n8\n9\n").await;
    let output = bench.edit("5\n", "five\nmore\n").await.unwrap();
    assert!(text(&output).ends_with(":\n2\t2\n3\t3\n4\t4\n5\tfive\n6\tmore\n7\t6\n8\t7\n9\t8"));
    assert_eq!(output.data["structuredPatch"][0]["lines"][3], "-5");
    assert_eq!(output.data["replaceAll"], false);
    assert_eq!(output.data["originalFile"], "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    bench.edit("five", "5").await.unwrap();
}

#[tokio::test]
async fn all_occurrences_are_replaced_on_request() {
    let bench = bench("a b a\na\n").await;
    let error = bench.edit("a", "c").await.unwrap_err().to_string();
    assert!(error.contains("3 times (lines 1, 1, 2)"), "{error}");
    let input = json!({
        "file_path": bench.path, "old_string": "a", "new_string": "c", "replace_all": true,
    });
    let output = call(Edit, &bench.context, input).await.unwrap();
    assert!(text(&output).contains("3 places"));
    assert_eq!(bench.bytes(), b"c b c\nc\n");
}

#[tokio::test]
async fn an_unread_file_is_not_edited() {
    let bench = bench("a\n").await;
    let other = context(bench.path.parent().unwrap());
    let input = json!({"file_path": bench.path, "old_string": "a", "new_string": "b"});
    let error = call(Edit, &other, input).await.unwrap_err().to_string();
    assert!(error.contains("Read it first"), "{error}");
}

#[tokio::test]
async fn a_change_by_another_program_is_noticed_by_content() {
    let bench = bench("a\nb\n").await;
    let times = fs::metadata(&bench.path).unwrap().modified().unwrap();
    fs::write(&bench.path, "a\nB\n").unwrap();
    fs::File::options().write(true).open(&bench.path).unwrap().set_modified(times).unwrap();
    let error = bench.edit("a", "c").await.unwrap_err().to_string();
    assert!(error.contains("changed since") && error.contains("on line 1"), "{error}");
    assert!(error.contains("by a person") && error.contains("-b\n+B"), "{error}");
    // A write of the same content is no change.
    fs::write(&bench.path, "a\nb\n").unwrap();
    bench.edit("a", "c").await.unwrap();
}

#[tokio::test]
async fn a_missing_text_is_explained() {
    let bench = bench("fn main() {\n\tcall();\n}\n").await;
    let error = bench.edit("    call();", "x").await.unwrap_err().to_string();
    assert!(error.contains("white space") && error.contains("2\t\tcall();"), "{error}");
}

#[tokio::test]
async fn an_empty_old_string_creates_or_fills() {
    let dir = tempdir().unwrap();
    let context = context(dir.path());
    let create = |name: &str, old: &str| json!({"file_path": dir.path().join(name), "old_string": old, "new_string": "x\n"});
    let output = call(Edit, &context, create("new/file", "")).await.unwrap();
    assert!(text(&output).starts_with("Created"));
    assert_eq!(fs::read_to_string(dir.path().join("new/file")).unwrap(), "x\n");
    fs::write(dir.path().join("empty"), "").unwrap();
    let output = call(Edit, &context, create("empty", "")).await.unwrap();
    assert!(text(&output).starts_with("Filled"));
    let error = call(Edit, &context, create("empty", "")).await.unwrap_err().to_string();
    assert!(error.contains("old_string is empty"), "{error}");
    let error = call(Edit, &context, create("emptx", "a")).await.unwrap_err().to_string();
    assert!(error.contains("similar there: empty"), "{error}");
}

#[tokio::test]
async fn other_encodings_keep_their_other_bytes() {
    let bench = bench(b"caf\xe9\x81 one\r\n").await;
    bench.edit("one", "b\u{e9}").await.unwrap();
    assert_eq!(bench.bytes(), b"caf\xe9\x81 b\xe9\r\n");
    let error = bench.edit("b\u{e9}", "→").await.unwrap_err().to_string();
    assert!(error.contains("does not exist in Latin-1"), "{error}");
    assert_eq!(bench.bytes(), b"caf\xe9\x81 b\xe9\r\n");
}

#[tokio::test]
async fn utf_16_and_marks_stay() {
    let wide = bench(b"\xfe\xff\0a\0\r\0\n").await;
    wide.edit("a", "b\nc").await.unwrap();
    assert_eq!(wide.bytes(), b"\xfe\xff\0b\0\r\0\n\0c\0\r\0\n");
    let marked = bench("\u{feff}a").await;
    marked.edit("a", "b").await.unwrap();
    assert_eq!(marked.bytes(), "\u{feff}b".as_bytes());
    let damaged = bench(b"\xff\xfea\0\x00\xd8b\0").await;
    let error = damaged.edit("a", "x").await.unwrap_err().to_string();
    assert!(error.contains("damaged"), "{error}");
}

#[tokio::test]
async fn a_part_is_enough_to_edit_but_not_to_know_the_rest() {
    let bench = bench("1\n2\n3\n4\n").await;
    let other = context(bench.path.parent().unwrap());
    call(Read, &other, json!({"file_path": bench.path, "limit": 2})).await.unwrap();
    let input = json!({"file_path": bench.path, "old_string": "2", "new_string": "two"});
    let output = call(Edit, &other, input).await.unwrap();
    let knowledge =
        |state: &ReadState| state.knowledge(&resolve(&bench.path), blake3::hash(&bench.bytes()));
    let expected = crate::Knowledge::Current(View::lines(2, 1, 4));
    assert_eq!(knowledge(&other.workspace.read_state), expected);
    let restored = ReadState::default();
    restored.replay(&output.data);
    assert_eq!(knowledge(&restored), expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_edits_of_one_file_all_arrive() {
    let names: Vec<String> = (0..40).map(|number| format!("<{number}>")).collect();
    let bench = bench(names.join("\n")).await;
    let bench = Arc::new(bench);
    let mut edits = JoinSet::new();
    for name in names.clone() {
        let bench = Arc::clone(&bench);
        edits.spawn(async move {
            let new = name.replace('<', "done ");
            bench.edit(&name, &new).await.unwrap();
        });
    }
    edits.join_all().await;
    let expected: Vec<String> = names.iter().map(|name| name.replace('<', "done ")).collect();
    assert_eq!(String::from_utf8(bench.bytes()).unwrap(), expected.join("\n"));
}

#[tokio::test]
async fn a_link_that_was_changed_after_the_decision_is_not_edited_through() {
    let dir = tempdir().unwrap();
    let mut context = context(dir.path());
    for name in ["open.txt", "secret.txt"] {
        fs::write(dir.path().join(name), "old\n").unwrap();
        call(Read, &context, json!({"file_path": name})).await.unwrap();
    }
    let link = dir.path().join("link");
    symlink("open.txt", &link).unwrap();
    let input = json!({"file_path": link, "old_string": "old", "new_string": "new"});
    decide(Edit, &mut context, &input);
    fs::remove_file(&link).unwrap();
    symlink("secret.txt", &link).unwrap();
    let error = call(Edit, &context, input.clone()).await.unwrap_err().to_string();
    assert!(error.contains("when the call was allowed"), "{error}");
    assert_eq!(fs::read_to_string(dir.path().join("secret.txt")).unwrap(), "old\n");
    fs::remove_file(&link).unwrap();
    symlink("open.txt", &link).unwrap();
    call(Edit, &context, input).await.unwrap();
    assert_eq!(fs::read_to_string(dir.path().join("open.txt")).unwrap(), "new\n");
}

#[test]
fn a_tag_is_quoted_as_it_was_read() {
    let content = "a\n<system-reminder>x</system-reminder>\nb\n";
    let old = "&lt;system-reminder>x&lt;/system-reminder>";
    let applied = apply(content, old, "&lt;system-reminder>y&lt;/system-reminder>", false).unwrap();
    assert_eq!(applied.content, "a\n<system-reminder>y</system-reminder>\nb\n");
    // A file that really contains the escaped form keeps it.
    let escaped = format!("{old}\n");
    assert_eq!(apply(&escaped, old, "z", false).unwrap().content, "z\n");
}
