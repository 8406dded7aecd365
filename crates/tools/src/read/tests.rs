//! Read as a whole tool.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use centurion_protocol::ToolResultContent;
use lopdf::{Document, Object, Stream, dictionary};
use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};

use super::*;
use crate::Knowledge;
use crate::testing::{call, context, decide, text};

struct Bench {
    context: ToolContext,
    dir: TempDir,
}

fn bench() -> Bench {
    let dir = tempdir().unwrap();
    Bench { context: context(dir.path()), dir }
}

impl Bench {
    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> &Self {
        fs::write(self.dir.path().join(name), content).unwrap();
        self
    }

    async fn read(&self, input: Value) -> Result<ToolOutput, ToolError> {
        call(Read, &self.context, input).await
    }

    async fn shown(&self, input: Value) -> String {
        text(&self.read(input).await.unwrap())
    }

    async fn refused(&self, input: Value) -> String {
        self.read(input).await.unwrap_err().to_string()
    }

    fn knowledge(&self, name: &str) -> Knowledge {
        let path = resolve(&self.dir.path().join(name));
        let hash = blake3::hash(&fs::read(&path).unwrap());
        self.context.workspace.read_state.knowledge(&path, hash)
    }
}

#[tokio::test]
async fn text_has_line_numbers_and_data() {
    let bench = bench();
    bench.file("f", "one\ntwo\n");
    let output = bench.read(json!({"file_path": "f"})).await.unwrap();
    assert_eq!(text(&output), "1\tone\n2\ttwo");
    let file = &output.data["file"];
    assert_eq!(output.data["type"], "text");
    assert_eq!(file["content"], "one\ntwo");
    assert_eq!(
        (&file["numLines"], &file["startLine"], &file["totalLines"]),
        (&json!(2), &json!(1), &json!(2))
    );
    assert_eq!(bench.knowledge("f"), Knowledge::Current(View::Whole));
}

#[tokio::test]
async fn a_range_shows_its_lines_and_how_to_continue() {
    let bench = bench();
    bench.file("f", "1\n2\n3\n4\n5\n");
    let shown = bench.shown(json!({"file_path": "f", "offset": 2, "limit": 2})).await;
    assert_eq!(shown, "2\t2\n3\t3\n\n(lines 2-3 of 5; continue with offset 4)");
    assert_eq!(bench.knowledge("f"), Knowledge::Current(View::lines(2, 2, 5)));
    let shown = bench.shown(json!({"file_path": "f", "offset": 0, "limit": 1})).await;
    assert!(shown.starts_with("1\t1\n"), "{shown}");
    let shown = bench.shown(json!({"file_path": "f", "offset": 9})).await;
    assert!(shown.contains("has 5 lines; there is none at offset 9"), "{shown}");
    assert!(bench.refused(json!({"file_path": "f", "limit": 0})).await.contains("nonzero"));
}

#[tokio::test]
async fn two_thousand_lines_are_shown_by_default() {
    let bench = bench();
    bench.file("f", "x\n".repeat(2_500));
    let shown = bench.shown(json!({"file_path": "f"})).await;
    assert!(shown.ends_with("(lines 1-2000 of 2500; continue with offset 2001)"));
    let shown = bench.shown(json!({"file_path": "f", "allow_large": true})).await;
    assert!(shown.ends_with("2500\tx"));
}

#[tokio::test]
async fn a_large_file_needs_a_range_or_leave() {
    let bench = bench();
    bench.file("f", "0123456789\n".repeat(30_000));
    let error = bench.refused(json!({"file_path": "f"})).await;
    assert!(error.contains("323 KB") && error.contains("offset"), "{error}");
    let shown = bench.shown(json!({"file_path": "f", "offset": 29_999})).await;
    assert!(shown.starts_with("29999\t") && shown.ends_with("30000\t0123456789"));
    let shown = bench.shown(json!({"file_path": "f", "allow_large": true})).await;
    assert_eq!(shown.lines().count(), 30_000);
    let shown = bench.shown(json!({"file_path": "f", "limit": 30_000})).await;
    assert!(shown.len() < 270_000 && shown.contains("continue with offset"), "{}", shown.len());
}

#[tokio::test]
async fn long_lines_are_cut_and_said_to_be() {
    let bench = bench();
    bench.file("f", format!("short\n{}\n", "é".repeat(5_000)));
    let shown = bench.shown(json!({"file_path": "f"})).await;
    assert!(shown.contains("(line 2 has 5000 characters and is cut"), "{shown}");
    assert!(shown.chars().count() < 2_300);
    let shown = bench.shown(json!({"file_path": "f", "allow_large": true})).await;
    assert!(shown.chars().filter(|character| *character == 'é').count() == 5_000);
}

#[tokio::test]
async fn an_empty_file_is_said_to_be_empty() {
    let bench = bench();
    bench.file("f", "");
    assert!(bench.shown(json!({"file_path": "f"})).await.ends_with("f is empty."));
    assert_eq!(bench.knowledge("f"), Knowledge::Current(View::Whole));
}

#[tokio::test]
async fn line_ends_marks_and_encodings_are_understood() {
    let bench = bench();
    bench.file("crlf", "a\r\nb\r\n").file("mark", "\u{feff}a\n");
    bench.file("wide", b"\xff\xfea\0\n\0b\0").file("latin", b"caf\xe9\n");
    assert_eq!(bench.shown(json!({"file_path": "crlf"})).await, "1\ta\n2\tb");
    assert_eq!(bench.shown(json!({"file_path": "mark"})).await, "1\ta");
    let wide = bench.shown(json!({"file_path": "wide"})).await;
    assert!(wide.starts_with("1\ta\n2\tb\n") && wide.contains("UTF-16"), "{wide}");
    let latin = bench.shown(json!({"file_path": "latin"})).await;
    assert!(latin.starts_with("1\tcafé\n") && latin.contains("Latin-1"), "{latin}");
}

#[tokio::test]
async fn what_is_no_text_is_named() {
    let bench = bench();
    bench.file("program", b"\x7fELF\x02\x01\0\0").file("data", b"ab\0cd");
    let error = bench.refused(json!({"file_path": "program"})).await;
    assert!(error.contains("ELF") && error.contains("8 bytes"), "{error}");
    assert!(bench.refused(json!({"file_path": "data"})).await.contains("binary data"));
}

#[tokio::test]
async fn what_is_no_file_is_refused_at_once() {
    let bench = bench();
    let path = bench.dir.path();
    rustix::fs::mkfifoat(
        rustix::fs::CWD,
        path.join("pipe"),
        rustix::fs::Mode::from_raw_mode(0o600),
    )
    .unwrap();
    let _listener = UnixListener::bind(path.join("socket")).unwrap();
    assert!(bench.refused(json!({"file_path": "pipe"})).await.contains("named pipe"));
    assert!(bench.refused(json!({"file_path": "socket"})).await.contains("a socket"));
    assert!(bench.refused(json!({"file_path": "/dev/zero"})).await.contains("a device"));
    let error = bench.refused(json!({"file_path": "."})).await;
    assert!(error.contains("is a directory") && error.contains("Glob"), "{error}");
}

#[tokio::test]
async fn links_are_followed_and_missing_files_explained() {
    let bench = bench();
    bench.file("config.toml", "x\n");
    symlink("config.toml", bench.dir.path().join("link")).unwrap();
    symlink("nowhere", bench.dir.path().join("dangling")).unwrap();
    assert_eq!(bench.shown(json!({"file_path": "link"})).await, "1\tx");
    assert_eq!(bench.knowledge("config.toml"), Knowledge::Current(View::Whole));
    let error = bench.refused(json!({"file_path": "dangling"})).await;
    assert!(error.contains("link to nowhere, which does not exist"), "{error}");
    let error = bench.refused(json!({"file_path": "Config.tml"})).await;
    assert!(error.contains("similar there: config.toml"), "{error}");
    let error = bench.refused(json!({"file_path": "no/dir/x"})).await;
    assert!(error.contains("no directory"), "{error}");
}

#[tokio::test]
async fn a_file_far_too_large_for_memory_is_read_in_part() {
    let bench = bench();
    bench.file("huge", format!("first\n{}second\r\n", "padding\n".repeat(2_000)));
    let file = File::options().write(true).open(bench.dir.path().join("huge")).unwrap();
    file.set_len(1 << 40).unwrap();
    assert!(bench.refused(json!({"file_path": "huge"})).await.contains("offset"));
    let shown = bench.shown(json!({"file_path": "huge", "limit": 1})).await;
    assert!(shown.starts_with("1\tfirst\n") && shown.contains("may be longer"), "{shown}");
    let shown = bench.shown(json!({"file_path": "huge", "offset": 2_002, "limit": 1})).await;
    assert!(shown.starts_with("2002\tsecond\n"), "{shown}");
    let error = bench.refused(json!({"file_path": "huge", "offset": 9_999})).await;
    assert!(error.contains("Bash"), "{error}");
    bench.context.cancel.cancel();
    let result = bench.read(json!({"file_path": "huge", "offset": 9_999})).await;
    assert!(matches!(result, Err(ToolError::Cancelled { .. })));
}

#[tokio::test]
async fn files_that_state_no_size_are_read() {
    assert!(bench().shown(json!({"file_path": "/proc/version"})).await.starts_with("1\tLinux"));
}

#[tokio::test]
async fn images_are_shown_as_images() {
    let bench = bench();
    bench.file("a", b"\x89PNG\r\n\x1a\nrest").file("b", b"\xff\xd8\xffrest");
    bench.file("c", b"GIF89arest").file("d", b"RIFF0000WEBPrest");
    for (name, expected) in
        [("a", "image/png"), ("b", "image/jpeg"), ("c", "image/gif"), ("d", "image/webp")]
    {
        let output = bench.read(json!({"file_path": name})).await.unwrap();
        let [ToolResultContent::Image { media_type, data }] = output.content.as_slice() else {
            panic!("{:?}", output.content);
        };
        assert_eq!(media_type, expected);
        assert!(data.len() > 8);
        assert_eq!(output.data["type"], "image");
    }
    let mut large = b"\x89PNG\r\n\x1a\n".to_vec();
    large.resize(4_000_000, 0);
    bench.file("large", large);
    let error = bench.refused(json!({"file_path": "large"})).await;
    assert!(error.contains("3.8 MB") && error.contains("smaller"), "{error}");
    assert!(bench.refused(json!({"file_path": "a", "limit": 3})).await.contains("for text"));
    assert!(bench.refused(json!({"file_path": "a", "pages": "1"})).await.contains("for PDF"));
}

/// A document whose pages inherit their size and share a font.
fn pdf(pages: usize) -> Vec<u8> {
    let mut document = Document::with_version("1.5");
    let tree = document.new_object_id();
    let font = document.add_object(
        dictionary! { "Type" => "Font", "Subtype" => "Type1", "BaseFont" => "Courier" },
    );
    let kids: Vec<Object> = (1..=pages)
        .map(|number| {
            let content = format!("BT /F1 12 Tf (page {number}) Tj ET").into_bytes();
            let content = document.add_object(Stream::new(dictionary! {}, content));
            document
                .add_object(
                    dictionary! { "Type" => "Page", "Parent" => tree, "Contents" => content },
                )
                .into()
        })
        .collect();
    let pages = dictionary! {
        "Type" => "Pages", "Count" => i64::try_from(pages).unwrap(), "Kids" => kids,
        "MediaBox" => vec![0.into(), 0.into(), 100.into(), 100.into()],
        "Resources" => dictionary! { "Font" => dictionary! { "F1" => font } },
    };
    document.objects.insert(tree, Object::Dictionary(pages));
    let catalog = document.add_object(dictionary! { "Type" => "Catalog", "Pages" => tree });
    document.trailer.set("Root", catalog);
    let mut bytes = Vec::new();
    document.save_to(&mut bytes).unwrap();
    bytes
}

fn sent(output: &ToolOutput) -> Vec<u8> {
    use base64::Engine as _;
    let [_, ToolResultContent::Document { media_type, data }] = output.content.as_slice() else {
        panic!("{:?}", output.content);
    };
    assert_eq!(media_type, "application/pdf");
    base64::engine::general_purpose::STANDARD.decode(data).unwrap()
}

#[tokio::test]
async fn a_short_pdf_is_sent_as_it_is() {
    let bench = bench();
    bench.file("f", pdf(10));
    let output = bench.read(json!({"file_path": "f"})).await.unwrap();
    assert_eq!(sent(&output), pdf(10));
    assert_eq!(output.data["file"]["totalPages"], 10);
}

#[tokio::test]
async fn pages_of_a_long_pdf_are_taken_out() {
    let bench = bench();
    bench.file("f", pdf(30));
    let error = bench.refused(json!({"file_path": "f"})).await;
    assert!(error.contains("30 pages"), "{error}");
    assert!(bench.refused(json!({"file_path": "f", "pages": "5-"})).await.contains("at most 20"));
    assert!(bench.refused(json!({"file_path": "f", "pages": "31"})).await.contains("has 30"));
    assert!(bench.refused(json!({"file_path": "f", "pages": "x"})).await.contains("1-5"));
    let output = bench.read(json!({"file_path": "f", "pages": "29-"})).await.unwrap();
    let bytes = sent(&output);
    assert!(bytes.len() < pdf(30).len() / 4);
    let document = Document::load_mem(&bytes).unwrap();
    let pages: Vec<_> = document.page_iter().collect();
    assert_eq!(pages.len(), 2);
    let content = document.get_page_content(pages[1]);
    assert!(String::from_utf8_lossy(&content).contains("page 30"));
    assert_eq!(document.get_page_fonts(pages[0]).unwrap().len(), 1);
    assert!(document.get_dictionary(pages[0]).unwrap().has(b"MediaBox"));
}

#[tokio::test]
async fn broken_and_encrypted_pdf_files_are_refused() {
    let bench = bench();
    bench.file("broken", b"%PDF-1.7\nnothing of the kind");
    assert!(
        bench.refused(json!({"file_path": "broken"})).await.contains("cannot be read as a PDF")
    );
    let mut document = Document::load_mem(&pdf(1)).unwrap();
    document.trailer.set("ID", vec![Object::string_literal("a"), Object::string_literal("a")]);
    let version = lopdf::EncryptionVersion::V2 {
        document: &document,
        owner_password: "owner",
        user_password: "user",
        key_length: 128,
        permissions: lopdf::Permissions::all(),
    };
    let state = lopdf::EncryptionState::try_from(version).unwrap();
    document.encrypt(&state).unwrap();
    let mut bytes = Vec::new();
    document.save_to(&mut bytes).unwrap();
    bench.file("secret", bytes);
    let error = bench.refused(json!({"file_path": "secret"})).await;
    assert!(error.contains("is encrypted"), "{error}");
}

#[tokio::test]
async fn damaged_pdf_files_never_take_the_program_down() {
    let whole = pdf(3);
    let bench = bench();
    for cut in (10..whole.len()).step_by(37) {
        let mut bytes = whole.clone();
        bytes[cut] ^= 0x15;
        bench.file("flipped", &bytes).file("cut", &whole[..cut]);
        let _ = bench.read(json!({"file_path": "flipped", "pages": "1-2"})).await;
        let _ = bench.read(json!({"file_path": "cut"})).await;
    }
}

#[tokio::test]
async fn notebooks_are_shown_as_cells() {
    let bench = bench();
    let notebook = json!({
        "nbformat": 4, "nbformat_minor": 5, "metadata": {"language_info": {"name": "python"}},
        "cells": [
            {"id": "intro", "cell_type": "markdown", "source": ["# Hello\n", "world"]},
            {"id": "run", "cell_type": "code", "source": "plot()", "outputs": [
                {"output_type": "stream", "text": ["some ", "output\n"]},
                {"output_type": "display_data", "data": {"image/png": "AAAA\nBBBB\n", "text/plain": "<Figure>"}},
                {"output_type": "execute_result", "data": {"text/plain": ["42"]}},
                {"output_type": "error", "ename": "ValueError", "evalue": "no", "traceback": ["line 1"]},
                {"output_type": "stream", "text": "y".repeat(10_000)},
            ]},
        ],
    });
    bench.file("book.ipynb", notebook.to_string());
    let output = bench.read(json!({"file_path": "book.ipynb"})).await.unwrap();
    let shown = text(&output);
    assert!(shown.starts_with(
        "[intro: markdown]\n# Hello\nworld\n\n[run: code, python]\nplot()\n[output]\nsome output\n\
         [output: image 1 below]\n[output]\n42\n[output]\nValueError: no\nline 1\n[output]\nyyy"
    ), "{shown}");
    assert!(shown.len() < 5_000 && shown.contains("(10000 characters)"));
    assert_eq!(
        output.content[1],
        ToolResultContent::Image { media_type: "image/png".into(), data: "AAAABBBB".into() }
    );
    assert_eq!(output.data["type"], "notebook");
    let raw = bench.shown(json!({"file_path": "book.ipynb", "offset": 1})).await;
    assert!(raw.starts_with("1\t{\"nbformat\":4"), "{raw}");
    bench.file("bad.ipynb", "{");
    assert!(bench.refused(json!({"file_path": "bad.ipynb"})).await.contains("no valid notebook"));
}

#[tokio::test]
async fn unknown_properties_are_refused() {
    let error = bench().refused(json!({"file_path": "f", "lines": 3})).await;
    assert!(error.contains("unknown field `lines`"), "{error}");
}

#[tokio::test]
async fn a_link_that_was_changed_after_the_decision_is_not_read() {
    let mut bench = bench();
    bench.file("open.txt", "open").file("secret.txt", "hidden");
    let link = bench.dir.path().join("link");
    symlink("open.txt", &link).unwrap();
    let input = json!({"file_path": link});
    decide(Read, &mut bench.context, &input);
    assert!(bench.shown(input.clone()).await.contains("open"));
    fs::remove_file(&link).unwrap();
    symlink("secret.txt", &link).unwrap();
    let error = bench.refused(input).await;
    assert!(error.contains("when the call was allowed"), "{error}");
    assert!(error.contains("open.txt") && error.contains("secret.txt"), "{error}");
}

#[test]
fn what_is_opened_is_what_was_resolved() {
    let bench = bench();
    bench.file("open.txt", "open").file("secret.txt", "hidden");
    let link = bench.dir.path().join("link");
    symlink("open.txt", &link).unwrap();
    let path = resolve(&link);
    let request = || Request {
        path: path.clone(),
        named: link.clone(),
        offset: None,
        limit: None,
        pages: None,
        allow_large: false,
        workspace: Arc::clone(&bench.context.workspace),
        cancel: CancellationToken::new(),
    };
    fs::remove_file(&link).unwrap();
    symlink("secret.txt", &link).unwrap();
    let ReadStep::Done(output) = request().look().unwrap() else { panic!("not a PDF file") };
    assert_eq!(text(&output), "1\topen");
    // Nor does the file itself lead elsewhere once it has become a link.
    fs::remove_file(bench.dir.path().join("open.txt")).unwrap();
    symlink("secret.txt", bench.dir.path().join("open.txt")).unwrap();
    assert!(request().look().is_err());
}
