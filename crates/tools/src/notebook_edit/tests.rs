//! Edits of a notebook, compared as text: the rest stays as it is.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use serde_json::Value;
use tempfile::{TempDir, tempdir};

use super::*;
use crate::Read;
use crate::testing::{call, context, decide, text};

const NOTEBOOK: &str = r##"{
 "cells": [
  {
   "cell_type": "markdown",
   "id": "intro",
   "metadata": {},
   "source": [
    "# Title"
   ]
  },
  {
   "cell_type": "code",
   "execution_count": 3,
   "id": "sum",
   "metadata": {
    "custom": 1e2
   },
   "outputs": [
    {
     "name": "stdout",
     "output_type": "stream",
     "text": [
      "3\n"
     ]
    }
   ],
   "source": [
    "a = 1\n",
    "print(a + 2)"
   ]
  }
 ],
 "metadata": {
  "kernelspec": {
   "language": "python"
  },
  "number": 1.50
 },
 "nbformat": 4,
 "nbformat_minor": 5
}
"##;

struct Bench {
    context: ToolContext,
    path: PathBuf,
    _dir: TempDir,
}

async fn bench(document: &str) -> Bench {
    let dir = tempdir().unwrap();
    let path = dir.path().join("book.ipynb");
    fs::write(&path, document).unwrap();
    let bench = Bench { context: context(dir.path()), path, _dir: dir };
    call(Read, &bench.context, json!({"file_path": bench.path})).await.unwrap();
    bench
}

impl Bench {
    async fn edit(&self, mut input: Value) -> Result<ToolOutput, ToolError> {
        input["notebook_path"] = json!(self.path);
        call(NotebookEdit, &self.context, input).await
    }

    fn document(&self) -> String {
        fs::read_to_string(&self.path).unwrap()
    }
}

#[tokio::test]
async fn replacing_a_code_cell_clears_what_it_printed_and_touches_nothing_else() {
    let bench = bench(NOTEBOOK).await;
    let output = bench.edit(json!({"cell_id": "sum", "new_source": "b = 2\nb"})).await.unwrap();
    assert!(text(&output).starts_with("Replaced cell sum"));
    let expected = NOTEBOOK
        .replace("\"execution_count\": 3", "\"execution_count\": null")
        .replace("\"a = 1\\n\",\n    \"print(a + 2)\"", "\"b = 2\\n\",\n    \"b\"");
    let start = expected.find("\"outputs\": [").unwrap();
    let end = expected.find("   \"source\": [\n    \"b = 2").unwrap();
    let expected = [&expected[..start], "\"outputs\": [],\n", &expected[end..]].concat();
    assert_eq!(bench.document(), expected);
}

#[tokio::test]
async fn a_cell_can_change_its_type() {
    let bench = bench(NOTEBOOK).await;
    let input = json!({"cell_id": "cell-1", "new_source": "text", "cell_type": "markdown"});
    bench.edit(input).await.unwrap();
    let document: Value = serde_json::from_str(&bench.document()).unwrap();
    let cell = &document["cells"][1];
    assert_eq!(cell["cell_type"], "markdown");
    assert!(cell.get("outputs").is_none() && cell.get("execution_count").is_none());
    assert_eq!(cell["metadata"]["custom"], 1e2);
    assert!(bench.document().contains("\"custom\": 1e2"));
}

#[tokio::test]
async fn cells_are_inserted_after_another_or_first() {
    let bench = bench(NOTEBOOK).await;
    let input = json!({
        "cell_id": "intro", "new_source": "x\ny", "cell_type": "code", "edit_mode": "insert",
    });
    bench.edit(input).await.unwrap();
    let input = json!({"new_source": "top", "cell_type": "markdown", "edit_mode": "insert"});
    bench.edit(input).await.unwrap();
    let document: Value = serde_json::from_str(&bench.document()).unwrap();
    let sources: Vec<String> = document["cells"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cell| cell["source"].to_string())
        .collect();
    assert_eq!(sources[0], r#"["top"]"#);
    assert_eq!(sources[2], r#"["x\n","y"]"#);
    assert_eq!(document["cells"][2]["outputs"], json!([]));
    assert_eq!(document["cells"][2]["id"].as_str().unwrap().len(), 8);
    assert!(document["cells"][0].get("outputs").is_none());
    assert!(
        bench
            .document()
            .contains("\n  {\n   \"cell_type\": \"code\",\n   \"execution_count\": null")
    );
    let missing = json!({"new_source": "x", "edit_mode": "insert"});
    assert!(bench.edit(missing).await.unwrap_err().to_string().contains("cell_type"));
}

#[tokio::test]
async fn deleting_what_was_inserted_restores_the_bytes() {
    let bench = bench(NOTEBOOK).await;
    for after in [None, Some("intro"), Some("sum")] {
        let input = json!({
            "cell_id": after, "new_source": "x", "cell_type": "code", "edit_mode": "insert",
        });
        let output = bench.edit(input).await.unwrap();
        let id = output.data["cell_id"].clone();
        bench.edit(json!({"cell_id": id, "new_source": "", "edit_mode": "delete"})).await.unwrap();
        assert_eq!(bench.document(), NOTEBOOK);
    }
    for id in ["intro", "sum"] {
        bench.edit(json!({"cell_id": id, "new_source": "", "edit_mode": "delete"})).await.unwrap();
    }
    assert!(bench.document().contains("\"cells\": []"));
    let input = json!({"new_source": "x", "cell_type": "markdown", "edit_mode": "insert"});
    bench.edit(input).await.unwrap();
    assert!(bench.document().contains("\"cells\": [\n  {\n   \"cell_type\": \"markdown\""));
}

#[tokio::test]
async fn an_old_notebook_in_one_line_stays_one() {
    let document = r#"{"cells":[{"cell_type":"code","source":"a","outputs":[1.0e1]},{"cell_type":"raw","source":"keep","x":1e1}],"nbformat":4,"nbformat_minor":2}"#;
    let document = document.replace("[1.0e1]", "[]");
    let bench = bench(&document).await;
    bench.edit(json!({"cell_id": "cell-0", "new_source": "b\nc"})).await.unwrap();
    let expected = document.replace(
        r#""source":"a","outputs":[]"#,
        r#""source":"b\nc","outputs":[],"execution_count":null"#,
    );
    assert_eq!(bench.document(), expected);
    let input = json!({
        "cell_id": "cell-1", "new_source": "z", "cell_type": "markdown", "edit_mode": "insert",
    });
    bench.edit(input).await.unwrap();
    assert!(!bench.document().contains("\"id\"") && !bench.document().contains('\n'));
}

#[tokio::test]
async fn the_rules_of_edits_hold_for_notebooks() {
    let bench = bench(NOTEBOOK).await;
    let error = bench.edit(json!({"cell_id": "nope", "new_source": ""})).await.unwrap_err();
    assert!(error.to_string().contains("the cells are intro, sum"), "{error}");
    let error = bench.edit(json!({"new_source": ""})).await.unwrap_err();
    assert!(error.to_string().contains("cell_id is missing"), "{error}");
    fs::write(&bench.path, NOTEBOOK.replace("Title", "Other")).unwrap();
    let error = bench.edit(json!({"cell_id": "sum", "new_source": ""})).await.unwrap_err();
    assert!(error.to_string().contains("changed since"), "{error}");
    fs::remove_file(&bench.path).unwrap();
    let error = bench.edit(json!({"cell_id": "sum", "new_source": ""})).await.unwrap_err();
    assert!(error.to_string().contains("does not exist"), "{error}");
    let input = json!({"notebook_path": "x.txt", "cell_id": "sum", "new_source": ""});
    let error = call(NotebookEdit, &bench.context, input).await.unwrap_err();
    assert!(error.to_string().contains("use Edit"), "{error}");
}

#[tokio::test]
async fn a_link_that_was_changed_after_the_decision_is_not_edited_through() {
    let dir = tempdir().unwrap();
    let mut context = context(dir.path());
    for name in ["open.ipynb", "secret.ipynb"] {
        fs::write(dir.path().join(name), NOTEBOOK).unwrap();
        call(Read, &context, json!({"file_path": name})).await.unwrap();
    }
    let link = dir.path().join("link.ipynb");
    symlink("open.ipynb", &link).unwrap();
    let input = json!({"notebook_path": link, "cell_id": "intro", "new_source": "# New"});
    decide(NotebookEdit, &mut context, &input);
    fs::remove_file(&link).unwrap();
    symlink("secret.ipynb", &link).unwrap();
    let error = call(NotebookEdit, &context, input.clone()).await.unwrap_err().to_string();
    assert!(error.contains("when the call was allowed"), "{error}");
    assert_eq!(fs::read_to_string(dir.path().join("secret.ipynb")).unwrap(), NOTEBOOK);
    fs::remove_file(&link).unwrap();
    symlink("open.ipynb", &link).unwrap();
    call(NotebookEdit, &context, input).await.unwrap();
}
