//! Bytes of a server that no model can see: they go to a file, and the model reads where it is.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Bytes as a server sent them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bytes {
    /// Such as `audio` or `resource a:b`.
    pub(crate) what: String,
    pub(crate) media_type: String,
    /// As base64.
    pub(crate) data: String,
}

impl Bytes {
    /// The words that stand for them where no file is made.
    pub(crate) fn description(&self) -> String {
        let Self { what, media_type, data } = self;
        format!("[{what} of type {media_type}, {} bytes, which cannot be shown]", size(data))
    }

    /// Keeps them in a file, and gives the words that stand for them.
    pub(crate) async fn keep(self, directory: &Path) -> String {
        let (size, description) = (size(&self.data), self.description());
        let (what, media_type) = (self.what.clone(), self.media_type.clone());
        let directory = directory.to_owned();
        let kept = tokio::task::spawn_blocking(move || self.write(&directory)).await;
        match kept.map_err(io::Error::other).flatten() {
            Ok(path) => {
                format!("[{what} of type {media_type}, {size} bytes, kept in {}]", path.display())
            }
            Err(error) => format!("{description} [no file was made of it: {error}]"),
        }
    }

    fn write(&self, directory: &Path) -> io::Result<PathBuf> {
        let bytes = STANDARD.decode(&self.data).map_err(io::Error::other)?;
        let mut hasher = DefaultHasher::new();
        (&self.what, &bytes).hash(&mut hasher);
        let name = format!("mcp-{:016x}.{}", hasher.finish(), extension(&self.media_type));
        let path = directory.join(name);
        if let Ok(text) = std::str::from_utf8(&bytes) {
            // Files contain no credentials.
            centurion_redact::keep(&path, text)?;
        } else {
            centurion_files::private::create_directory(directory)?;
            centurion_files::private::replace(&path, &bytes)?;
        }
        Ok(path)
    }
}

/// The number of bytes that base64 stands for.
fn size(data: &str) -> usize {
    let padding = data.bytes().rev().take_while(|byte| *byte == b'=').count();
    (data.len() / 4 * 3).saturating_sub(padding)
}

/// The end of a file's name by which people and programs know its type.
fn extension(media_type: &str) -> &'static str {
    match media_type.split(';').next().unwrap_or_default().trim() {
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "image/svg+xml" => "svg",
        "image/tiff" => "tiff",
        "audio/wav" | "audio/x-wav" => "wav",
        "audio/mpeg" => "mp3",
        "video/mp4" => "mp4",
        "application/pdf" => "pdf",
        "application/json" => "json",
        "application/zip" => "zip",
        "application/gzip" => "gz",
        "text/plain" => "txt",
        "text/csv" => "csv",
        "text/html" => "html",
        _ => "bin",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(media_type: &str, content: &[u8]) -> Bytes {
        let (what, data) = ("audio".to_owned(), STANDARD.encode(content));
        Bytes { what, media_type: media_type.to_owned(), data }
    }

    #[tokio::test]
    async fn bytes_are_kept_as_they_came_in_a_private_file() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("new");
        let content = [0xFF, 0x00, 0x10, 0x80];
        let told = bytes("audio/wav", &content).keep(&place).await;
        let path = told.split("kept in ").nth(1).unwrap().trim_end_matches(']');
        assert!(told.starts_with("[audio of type audio/wav, 4 bytes, kept in "), "{told}");
        assert_eq!(Path::new(path).extension().unwrap(), "wav");
        assert_eq!(std::fs::read(path).unwrap(), content);
        assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(bytes("audio/wav", &content).keep(&place).await, told, "the same again");
    }

    #[tokio::test]
    async fn text_is_kept_without_its_credentials_and_what_is_no_base64_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let token = format!("ghp_{}", "a1".repeat(18));
        let told = bytes("text/weird", token.as_bytes()).keep(dir.path()).await;
        let path = told.split("kept in ").nth(1).unwrap().trim_end_matches(']');
        assert_eq!(Path::new(path).extension().unwrap(), "bin");
        assert_eq!(std::fs::read_to_string(path).unwrap(), "[redacted: github_token]");
        let broken = Bytes { data: "?".to_owned(), ..bytes("audio/wav", b"") };
        let told = broken.keep(dir.path()).await;
        assert!(told.contains("cannot be shown") && told.contains("no file was made"), "{told}");
    }
}
