//! Results of bounded size: the excess goes to a file.

use std::io;
use std::path::{Path, PathBuf};

use centurion_protocol::ToolResultContent;

use crate::content;

/// The characters that are shown of a result that does not fit.
const PREVIEW: usize = 2_000;

/// Moves the text of a result that does not fit into a file, and leaves its beginning.
///
/// `name` distinguishes the file from all others of the session.
pub(crate) async fn bound(
    content: Vec<ToolResultContent>,
    most: usize,
    directory: &Path,
    name: &str,
) -> Vec<ToolResultContent> {
    let text = content::text(&content);
    let count = text.chars().count();
    if count <= most {
        return content;
    }
    let end = text.floor_char_boundary(PREVIEW.min(most));
    let preview = text.get(..end).unwrap_or_default().to_owned();
    let told = match keep(directory, name, text).await {
        Ok(path) => format!(
            "The result has {count} characters, more than the {most} that fit here. All of it is in {}: \
             read or search that file in parts.",
            path.display()
        ),
        Err(error) => format!(
            "The result has {count} characters, more than the {most} that fit here, and could not be \
             kept in a file ({error}). Ask for less at a time."
        ),
    };
    let shown = ToolResultContent::Text(format!("{told} It begins with:\n\n{preview}"));
    let others = content.into_iter().filter(|part| !matches!(part, ToolResultContent::Text(_)));
    std::iter::once(shown).chain(others).collect()
}

async fn keep(directory: &Path, name: &str, text: String) -> io::Result<PathBuf> {
    let is_plain = |symbol: char| symbol.is_ascii_alphanumeric() || matches!(symbol, '_' | '-');
    let name: String = name.chars().filter(|symbol| is_plain(*symbol)).collect();
    let path = directory.join(format!("{name}.txt"));
    let written = path.clone();
    // The model sees the original text; files contain no credentials.
    tokio::task::spawn_blocking(move || centurion_redact::keep(&written, &text))
        .await
        .map_err(io::Error::other)??;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[tokio::test]
    async fn what_does_not_fit_is_in_a_private_file_and_pictures_stay() {
        let dir = tempfile::tempdir().unwrap();
        let picture =
            ToolResultContent::Image { media_type: "image/png".into(), data: "AA".into() };
        let key = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
        let long = format!("{key} {}", "é".repeat(5_000 - key.len() - 1));
        let parts = vec![ToolResultContent::Text(long.clone()), picture.clone()];
        let kept = bound(parts.clone(), 5_000, dir.path(), "a/b").await;
        assert_eq!(kept, parts);

        let bounded = bound(parts, 4_999, &dir.path().join("new"), "mcp__a__b-toolu/1").await;
        let file = dir.path().join("new/mcp__a__b-toolu1.txt");
        let written = std::fs::read_to_string(&file).unwrap();
        let rest = long.strip_prefix(&key).unwrap();
        assert!(written.starts_with("[redacted: ") && written.ends_with(rest), "{written}");
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let [ToolResultContent::Text(text), rest] = bounded.as_slice() else {
            panic!("{bounded:?}")
        };
        assert!(
            text.contains("5000 characters") && text.contains(file.to_str().unwrap()),
            "{text}"
        );
        assert!(text.len() < 3_000);
        assert_eq!(*rest, picture);
    }

    #[tokio::test]
    async fn a_result_that_does_not_fit_is_kept_without_its_credentials() {
        let dir = tempfile::tempdir().unwrap();
        let token = format!("ghp_{}", "a1".repeat(18));
        let parts = vec![ToolResultContent::Text(format!("{} {token}", "word ".repeat(1_000)))];
        bound(parts, 100, dir.path(), "mcp__a__b").await;
        let kept = std::fs::read_to_string(dir.path().join("mcp__a__b.txt")).unwrap();
        assert!(kept.ends_with("[redacted: github_token]"), "{kept}");
    }
}
