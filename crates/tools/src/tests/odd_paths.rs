//! Odd paths, given to every tool that takes one: each call returns at once, and touches only the file that was meant.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;

use centurion_permissions::Access;
use serde_json::json;

use crate::testing::{call, context, text};
use crate::{Edit, Glob, Grep, Read, ToolContext, Write, erase};

async fn read(context: &ToolContext, path: impl AsRef<Path>) -> Result<String, String> {
    let result = call(Read, context, json!({"file_path": path.as_ref()})).await;
    result.map(|output| text(&output)).map_err(|error| error.to_string())
}

async fn write(context: &ToolContext, path: impl AsRef<Path>) -> Result<String, String> {
    let input = json!({"file_path": path.as_ref(), "content": "written"});
    let result = call(Write, context, input).await;
    result.map(|output| text(&output)).map_err(|error| error.to_string())
}

async fn edit(context: &ToolContext, path: impl AsRef<Path>) -> Result<String, String> {
    let input = json!({"file_path": path.as_ref(), "old_string": "a", "new_string": "b"});
    let result = call(Edit, context, input).await;
    result.map(|output| text(&output)).map_err(|error| error.to_string())
}

async fn grep(context: &ToolContext, path: impl AsRef<Path>) -> Result<String, String> {
    let input = json!({"pattern": ".", "path": path.as_ref(), "output_mode": "content"});
    let result = call(Grep, context, input).await;
    result.map(|output| text(&output)).map_err(|error| error.to_string())
}

fn make_pipe(path: &Path) {
    let owner = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mkfifoat(rustix::fs::CWD, path, owner).unwrap();
}

#[tokio::test]
async fn pipes_devices_and_sockets_are_refused_by_every_tool_and_hang_none() {
    let dir = tempfile::tempdir().unwrap();
    let context = context(dir.path());
    let base = context.workspace.root();
    make_pipe(&base.join("pipe"));
    symlink("pipe", base.join("to-pipe")).unwrap();
    symlink("/dev/zero", base.join("to-zero")).unwrap();
    let _socket = UnixListener::bind(base.join("socket")).unwrap();
    for (name, what) in [
        ("pipe", "a named pipe"),
        ("to-pipe", "a named pipe"),
        ("to-zero", "a device"),
        ("/dev/zero", "a device"),
        ("/dev/tty", "a device"),
        ("socket", "a socket"),
    ] {
        let path = base.join(name);
        for result in [
            read(&context, &path).await,
            write(&context, &path).await,
            edit(&context, &path).await,
            grep(&context, &path).await,
        ] {
            let error = result.unwrap_err();
            assert!(error.contains(what), "{name}: {error}");
        }
    }
    // In a tree they are skipped.
    fs::write(base.join("file"), "text").unwrap();
    assert!(grep(&context, &base).await.unwrap().contains("text"));
}

#[tokio::test]
async fn magic_links_of_the_kernel_lead_to_nothing_that_was_not_judged() {
    let dir = tempfile::tempdir().unwrap();
    let context = context(dir.path());
    let base = context.workspace.root();
    fs::write(base.join("file"), "text").unwrap();
    let file = fs::File::open(base.join("file")).unwrap();
    let number = std::os::fd::AsRawFd::as_raw_fd(&file);
    // Resolved, they are ordinary paths, which rules see: the tool opens the judged path.
    for (path, real) in [
        (format!("/proc/self/fd/{number}"), base.join("file")),
        (format!("/proc/self/root{}", base.join("file").display()), base.join("file")),
    ] {
        let raw = serde_json::value::to_raw_value(&json!({"file_path": path})).unwrap();
        let access = erase(Read).prepare(&raw).unwrap().access(&context);
        assert_eq!(access, Access::Read(real), "{path}");
        assert!(read(&context, &path).await.unwrap().contains("text"), "{path}");
    }
    let (reader, _writer) = std::io::pipe().unwrap();
    let pipe = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reader));
    for path in [pipe.as_str(), "/proc/self/mem/x"] {
        read(&context, path).await.unwrap_err();
        write(&context, path).await.unwrap_err();
    }
}

#[tokio::test]
async fn odd_names_mean_what_they_say() {
    let dir = tempfile::tempdir().unwrap();
    let context = context(dir.path());
    let base = context.workspace.root();
    fs::create_dir_all(base.join("sub/deep")).unwrap();
    for name in ["new\nline", " space ", "-dash", "tab\tbed", "quote'\"", "star*", "ünï"] {
        let path = base.join("sub").join(name);
        write(&context, &path).await.unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "written", "{name:?}");
        assert!(read(&context, &path).await.unwrap().contains("written"), "{name:?}");
    }
    for name in ["sub/deep/../file", "./sub/./file", "sub//file", "sub/none/../file"] {
        let _ = fs::remove_file(base.join("sub/file"));
        write(&context, base.join(name)).await.unwrap();
        assert!(base.join("sub/file").is_file(), "{name}");
        assert!(!base.join("sub/none").exists(), "{name}");
        context.workspace.read_state.record(
            &base.join("sub/file"),
            blake3::hash(b"written"),
            crate::View::Whole,
        );
    }
    fs::write(base.join("plain"), "text").unwrap();
    assert!(write(&context, base.join("plain/below")).await.unwrap_err().contains("plain/below"));
    assert!(write(&context, base.join("sub/")).await.unwrap_err().contains("directory"));
    for length in [256, 5_000] {
        let name = "n".repeat(length);
        for result in [
            read(&context, base.join(&name)).await,
            write(&context, base.join(&name)).await,
            edit(&context, base.join(&name)).await,
            grep(&context, base.join(&name)).await,
        ] {
            let error = result.unwrap_err();
            assert!(error.contains("too long"), "{error}");
        }
    }
    let nul = format!("{}/a\0b", base.display());
    read(&context, &nul).await.unwrap_err();
    write(&context, &nul).await.unwrap_err();
}

#[tokio::test]
async fn links_that_lead_nowhere_or_in_a_circle_are_told_apart_from_those_that_lead_on() {
    let dir = tempfile::tempdir().unwrap();
    let context = context(dir.path());
    let base = context.workspace.root();
    fs::create_dir(base.join("real")).unwrap();
    symlink("circle", base.join("circle")).unwrap();
    symlink("two", base.join("one")).unwrap();
    symlink("one", base.join("two")).unwrap();
    symlink("real", base.join("directory")).unwrap();
    symlink("real/target", base.join("dangling")).unwrap();
    for name in ["circle", "one", "circle/x", "one/x"] {
        for result in [
            read(&context, base.join(name)).await,
            write(&context, base.join(name)).await,
            grep(&context, base.join(name)).await,
        ] {
            let error = result.unwrap_err();
            assert!(error.contains("link"), "{name}: {error}");
        }
    }
    assert!(read(&context, base.join("dangling")).await.unwrap_err().contains("does not exist"));
    // Through a link to another file inside, or a directory: the target is judged and written.
    write(&context, base.join("dangling")).await.unwrap();
    assert_eq!(fs::read_to_string(base.join("real/target")).unwrap(), "written");
    write(&context, base.join("directory/made/file")).await.unwrap();
    assert!(base.join("real/made/file").is_file());
    assert!(fs::symlink_metadata(base.join("dangling")).unwrap().is_symlink());
    write(&context, base.join("dangling")).await.unwrap();
    let listed = call(Glob, &context, json!({"pattern": "*"})).await.unwrap();
    assert_eq!(listed.data["filenames"], json!(["dangling"]), "a link to a file counts as one");
}

#[tokio::test]
async fn what_has_no_permission_says_so() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let context = context(dir.path());
    let base = context.workspace.root();
    fs::create_dir(base.join("closed")).unwrap();
    fs::write(base.join("closed/file"), "text").unwrap();
    fs::write(base.join("unreadable"), "text").unwrap();
    for name in ["closed", "unreadable"] {
        fs::set_permissions(base.join(name), fs::Permissions::from_mode(0o000)).unwrap();
    }
    let results = [
        read(&context, base.join("closed/file")).await,
        write(&context, base.join("closed/file")).await,
        read(&context, base.join("unreadable")).await,
        grep(&context, base.join("closed")).await,
    ];
    fs::set_permissions(base.join("closed"), fs::Permissions::from_mode(0o700)).unwrap();
    if !rustix::process::geteuid().is_root() {
        for result in results {
            assert!(result.unwrap_err().contains("no permission"));
        }
        // A search skips a closed directory in a tree.
        assert!(grep(&context, &base).await.is_ok());
    }
}
