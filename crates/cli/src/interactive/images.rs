//! Images for a prompt: from the clipboard, by the program that the desktop has for it, or from a file that was dragged.

use std::process::Stdio;

use centurion_protocol::bounded;
use centurion_tui::{Attachment, Fact};
use tokio::io::AsyncReadExt as _;

use crate::surroundings::Surroundings;

/// The most bytes of an image that are read.
const MOST_IMAGE: u64 = 16 * 1024 * 1024;

/// Programs that print the copied image, each with the variable that tells whether its desktop is there.
const CLIPBOARDS: [(&str, &[&str]); 3] = [
    ("WAYLAND_DISPLAY", &["wl-paste", "--no-newline", "--type", "image/png"]),
    ("DISPLAY", &["xclip", "-selection", "clipboard", "-target", "image/png", "-out"]),
    ("", &["pngpaste", "-"]),
];

/// The image that was copied last.
pub(super) async fn copied(surroundings: &Surroundings) -> Fact {
    for (variable, command) in CLIPBOARDS {
        let is_there = variable.is_empty() || surroundings.env.get(variable).is_some();
        if !is_there {
            continue;
        }
        let Some(bytes) = output(command).await.filter(|bytes| !bytes.is_empty()) else { continue };
        return match Attachment::of_bytes(&bytes) {
            Ok(image) => Fact::Image(image),
            Err(error) => Fact::Notice(format!("the clipboard: {error}")),
        };
    }
    Fact::Notice(
        "no image in the clipboard (wl-paste, xclip or pngpaste show it) · a path pasted or dragged works too"
            .to_owned(),
    )
}

async fn output(command: &[&str]) -> Option<Vec<u8>> {
    let (program, arguments) = command.split_first()?;
    let mut child = tokio::process::Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .ok()?;
    let mut bytes = Vec::new();
    child.stdout.take()?.take(MOST_IMAGE).read_to_end(&mut bytes).await.ok()?;
    child.wait().await.ok()?.success().then_some(bytes)
}

/// The image of a path that was pasted; the text itself where there is none.
pub(super) fn dragged(surroundings: &Surroundings, path: &str, pasted: String) -> Vec<Fact> {
    let place = match (path.strip_prefix("~/"), &surroundings.home) {
        (Some(rest), Some(home)) => home.join(rest),
        // An absolute path stays as it is.
        _ => surroundings.cwd.join(path),
    };
    let Ok(bytes) = bounded::read_file(&place, MOST_IMAGE) else {
        return vec![Fact::Pasted(pasted)];
    };
    match Attachment::of_bytes(&bytes) {
        Ok(image) => vec![Fact::Image(image)],
        Err(error) => vec![Fact::Notice(format!("{path}: {error}")), Fact::Pasted(pasted)],
    }
}
