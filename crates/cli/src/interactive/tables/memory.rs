//! The instruction files that agents are told at their beginning, and the main agent's notes.

use centurion_engine::Handle;
use centurion_tui::{Table, TableOf, TableRow};

use super::{amount, file_line};

/// The most files of the notes.
const MOST_NOTES: usize = 200;

pub(super) fn table(handle: &Handle) -> Table {
    let files = handle.context_usage().memory;
    let total: u64 = files.iter().map(|file| file.tokens).sum();
    let mut rows: Vec<TableRow> = Vec::new();
    for file in files {
        let path = file.path.display().to_string();
        let cells = vec![file.kind.to_owned(), format!("{} tokens", amount(file.tokens))];
        let place = Some(file_line(&file.path, 1));
        rows.push(TableRow { cells, file: place, ..TableRow::new(&*path, &*path) });
    }
    if let Some(directory) = handle.notes_directory() {
        rows.push(TableRow::head(format!("Notes · {}", directory.display())));
        let entries = std::fs::read_dir(&directory).into_iter().flatten().flatten();
        let mut notes: Vec<_> = entries.map(|entry| entry.path()).take(MOST_NOTES).collect();
        notes.retain(|path| path.extension().is_some_and(|it| it == "md"));
        notes.sort();
        for path in notes {
            let name = path.file_name().map(|it| it.to_string_lossy().into_owned());
            let id = path.display().to_string();
            let file = Some(file_line(&path, 1));
            let cells = vec!["notes".to_owned()];
            rows.push(TableRow { cells, file, ..TableRow::new(id, name.unwrap_or_default()) });
        }
    }
    Table::new(TableOf::Memory, format!("Memory · {} tokens", amount(total)), rows)
}
