//! Write: creates or replaces a whole file.

use std::path::Path;

use centurion_diff::LineDiff;
use centurion_permissions::Access;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::change::{self, Refusal, RequiredView, answer, check_known};
use crate::disk::{self, Existing};
use crate::paths::resolve;
use crate::read_state::View;
use crate::shared_files::OthersChange;
use crate::text_file::{Encoding, decode, is_crlf, line_count};
use crate::{Tool, ToolContext, ToolError, ToolOutput, Workspace, patch};

/// The bytes of a difference that an error shows.
const MAX_DIFF: usize = 3_000;

/// Creates a file, with its directories, or replaces all of an existing one. An existing file must have
/// been read completely with Read before; to change a part of it, use Edit.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteInput {
    /// Absolute path of the file.
    file_path: String,
    /// Everything that the file shall hold.
    content: String,
}

/// The tool that writes files.
#[derive(Debug, Default)]
pub struct Write;

impl Tool for Write {
    type Input = WriteInput;

    const NAME: &'static str = "Write";

    fn is_read_only(&self, _: &WriteInput) -> bool {
        false
    }

    fn access(&self, input: &WriteInput, context: &ToolContext) -> Access {
        Access::Write(resolve(&context.workspace.absolute(&input.file_path)))
    }

    async fn run(&self, input: WriteInput, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let named = context.workspace.absolute(&input.file_path);
        let path = context.target(&named)?;
        let (target, size) = (path.clone(), input.content.len() as u64);
        change::alone(context, &path, size, move |workspace| {
            write(workspace, &named, &target, &input.content)
        })
        .await
    }
}

fn write(
    workspace: &Workspace,
    named: &Path,
    path: &Path,
    content: &str,
) -> Result<ToolOutput, ToolError> {
    let Some(existing) = disk::load(path, named)? else {
        let hash =
            change::write(workspace, path, named, content, Encoding::Utf8, None, View::Whole)?;
        let lines = line_count(content);
        return Ok(answer(
            format!("Created {} ({}).", named.display(), count_lines(lines)),
            json!({
                "type": "create", "filePath": named.to_string_lossy(), "content": content,
                "structuredPatch": [], "originalFile": null, "userModified": false,
                "contentHash": hash,
            }),
        ));
    };
    // An empty file holds nothing that could be lost.
    if !existing.bytes.is_empty() {
        check_known(workspace, path, &existing, RequiredView::Whole)
            .map_err(|refusal| explain(&refusal, named, &existing, content))?;
    }
    let (old, encoding) = match decode(existing.bytes.clone()) {
        Ok(text) => (text.content, text.encoding),
        Err(_) => (String::new(), Encoding::Utf8),
    };
    // Latin-1 was a guess from bytes that are going; text that does not fit in it becomes UTF-8.
    let encoding = match encoding {
        Encoding::Windows1252 if encoding.encode(content).is_err() => Encoding::Utf8,
        kept => kept,
    };
    let crlf = is_crlf(&old) && !content.contains('\r');
    let converted = if crlf { content.replace('\n', "\r\n") } else { String::new() };
    let written = if crlf { &converted } else { content };
    let hash =
        change::write(workspace, path, named, written, encoding, Some(&existing), View::Whole)?;
    let note = if crlf { ", CRLF line ends kept" } else { "" };
    Ok(answer(
        format!(
            "Replaced {} ({} before, {} now{note}).",
            named.display(),
            count_lines(line_count(&old)),
            count_lines(line_count(content)),
        ),
        json!({
            "type": "update", "filePath": named.to_string_lossy(), "content": content,
            "structuredPatch": patch::structured(&old, written),
            "originalFile": change::original(Some(&old)), "userModified": false,
            "contentHash": hash,
        }),
    ))
}

fn count_lines(count: usize) -> String {
    if count == 1 { "1 line".to_owned() } else { format!("{count} lines") }
}

/// Explains a refusal. When the file has changed since it was read, also shows the changes that this write would have
/// undone.
fn explain(refusal: &Refusal, named: &Path, existing: &Existing, content: &str) -> ToolError {
    let mut message = refusal.explain(named);
    if let Refusal::Outdated(OthersChange { difference: None, .. }) = refusal
        && let Ok(text) = decode(existing.bytes.clone())
    {
        let diff = LineDiff::new(&text.content, content);
        let diff: String = diff.hunks(1).map(|hunk| hunk.to_string()).collect();
        message.push_str(". From the file as it is now to what would have been written:\n");
        message.extend(diff.chars().take(MAX_DIFF));
        if diff.chars().nth(MAX_DIFF).is_some() {
            message.push_str("\n…");
        }
    }
    ToolError::failed(message)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use tempfile::tempdir;

    use super::*;
    use crate::Read;
    use crate::testing::{call, context, decide, text};

    async fn write_to(
        context: &ToolContext,
        path: &Path,
        new: &str,
    ) -> Result<ToolOutput, ToolError> {
        call(Write, context, json!({"file_path": path, "content": new})).await
    }

    async fn read(context: &ToolContext, path: &Path) {
        call(Read, context, json!({"file_path": path})).await.unwrap();
    }

    #[tokio::test]
    async fn a_new_file_is_created_with_its_directories() {
        let dir = tempdir().unwrap();
        let context = context(dir.path());
        let output =
            call(Write, &context, json!({"file_path": "a/b/c.txt", "content": "1\n2\n"})).await;
        let output = output.unwrap();
        assert_eq!(fs::read_to_string(dir.path().join("a/b/c.txt")).unwrap(), "1\n2\n");
        assert!(text(&output).contains("2 lines"), "{}", text(&output));
        assert_eq!(output.data["type"], "create");
        assert_eq!(output.data["content"], "1\n2\n");
    }

    #[tokio::test]
    async fn an_unread_file_is_not_replaced() {
        let dir = tempdir().unwrap();
        let context = context(dir.path());
        let path = dir.path().join("f");
        fs::write(&path, "precious").unwrap();
        let error = write_to(&context, &path, "x").await.unwrap_err().to_string();
        assert!(error.contains("Read it first"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
        read(&context, &path).await;
        let output = write_to(&context, &path, "x\n").await.unwrap();
        assert_eq!(output.data["type"], "update");
        assert_eq!(output.data["structuredPatch"][0]["lines"][0], "-precious");
        write_to(&context, &path, "its own work is known\n").await.unwrap();
    }

    #[tokio::test]
    async fn a_change_of_another_program_is_not_undone_and_is_shown() {
        let dir = tempdir().unwrap();
        let context = context(dir.path());
        let path = dir.path().join("f");
        fs::write(&path, "one\ntwo\n").unwrap();
        read(&context, &path).await;
        fs::write(&path, "one\ntwo\nthree\n").unwrap();
        let error = write_to(&context, &path, "one\n2\n").await.unwrap_err().to_string();
        assert!(error.contains("changed since") && error.contains("+three"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntwo\nthree\n");
    }

    #[tokio::test]
    async fn a_file_seen_in_part_is_not_replaced_as_a_whole() {
        let dir = tempdir().unwrap();
        let context = context(dir.path());
        let path = dir.path().join("f");
        fs::write(&path, "1\n2\n3\n4\n").unwrap();
        call(Read, &context, json!({"file_path": path, "limit": 2})).await.unwrap();
        let error = write_to(&context, &path, "x").await.unwrap_err().to_string();
        assert!(error.contains("only lines 1-2"), "{error}");
        call(Read, &context, json!({"file_path": path, "offset": 3})).await.unwrap();
        write_to(&context, &path, "x").await.unwrap();
    }

    #[tokio::test]
    async fn mode_encoding_and_line_ends_stay() {
        let dir = tempdir().unwrap();
        let context = context(dir.path());
        let path = dir.path().join("f");
        fs::write(&path, b"\xff\xfea\0\r\0\n\0").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        read(&context, &path).await;
        let output = write_to(&context, &path, "b\nc\n").await.unwrap();
        assert!(text(&output).contains("CRLF"), "{}", text(&output));
        assert_eq!(fs::read(&path).unwrap(), b"\xff\xfeb\0\r\0\n\0c\0\r\0\n\0");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o755);
    }

    #[tokio::test]
    async fn a_link_is_followed_and_stays_a_link() {
        let dir = tempdir().unwrap();
        let context = context(dir.path());
        let link = dir.path().join("link");
        symlink("target", &link).unwrap();
        write_to(&context, &link, "x").await.unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(dir.path().join("target")).unwrap(), "x");
    }

    #[tokio::test]
    async fn a_directory_or_a_file_in_the_way_is_said() {
        let dir = tempdir().unwrap();
        let context = context(dir.path());
        let error = write_to(&context, dir.path(), "x").await.unwrap_err().to_string();
        assert!(error.contains("is a directory"), "{error}");
        fs::write(dir.path().join("file"), "").unwrap();
        let error = write_to(&context, &dir.path().join("file/x"), "x").await.unwrap_err();
        assert!(error.to_string().contains("file/x"), "{error}");
    }

    #[tokio::test]
    async fn a_read_only_file_is_not_replaced() {
        let dir = tempdir().unwrap();
        let context = context(dir.path());
        let path = dir.path().join("f");
        fs::write(&path, "x").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
        read(&context, &path).await;
        let result = write_to(&context, &path, "y").await;
        if rustix::process::geteuid().is_root() {
            result.unwrap();
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o444);
        } else {
            assert!(result.unwrap_err().to_string().contains("no permission"));
        }
    }

    #[tokio::test]
    async fn a_link_that_was_changed_after_the_decision_is_not_written_through() {
        let dir = tempdir().unwrap();
        for name in ["open", "secret"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        let link = dir.path().join("link");
        symlink("open", &link).unwrap();
        let input = json!({"file_path": link.join("f"), "content": "x"});
        let mut context = context(dir.path());
        decide(Write, &mut context, &input);
        call(Write, &context, input.clone()).await.unwrap();
        assert!(dir.path().join("open/f").exists());
        fs::remove_file(&link).unwrap();
        symlink("secret", &link).unwrap();
        let error = call(Write, &context, input).await.unwrap_err().to_string();
        assert!(error.contains("when the call was allowed"), "{error}");
        assert!(!dir.path().join("secret/f").exists());
    }

    #[tokio::test]
    async fn a_call_writes_to_where_its_access_says() {
        let dir = tempdir().unwrap();
        let context = context(dir.path());
        fs::create_dir(dir.path().join("real")).unwrap();
        symlink("real", dir.path().join("link")).unwrap();
        let input = WriteInput { file_path: "link/x".to_owned(), content: String::new() };
        let real = dir.path().canonicalize().unwrap().join("real/x");
        assert_eq!(Write.access(&input, &context), Access::Write(real));
    }
}
