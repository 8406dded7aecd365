//! The permission rules that are in force, each with its file and line, and what would be decided about a call.

use centurion_engine::Handle;
use centurion_permissions::{RuleKind, RuleSource};
use centurion_tui::{Line, Table, TableOf, TableRow, Tone, lines_of};

use super::{Tables, file_line};
use crate::explain::explained;

/// The beginning of the id of a row that is a trial; the call follows.
const TRIAL: &str = "try ";

pub(super) fn table(handle: &Handle) -> Table {
    let rules = handle.permission_rules();
    let count = rules.len();
    let mut rows = Vec::new();
    for (kind, title) in
        [(RuleKind::Deny, "Deny"), (RuleKind::Ask, "Ask"), (RuleKind::Allow, "Allow")]
    {
        let of_kind: Vec<&RuleSource> =
            rules.iter().filter(|(it, _)| *it == kind).map(|(_, rule)| rule).collect();
        if !of_kind.is_empty() {
            rows.push(TableRow::head(title));
        }
        rows.extend(of_kind.iter().enumerate().map(|(at, rule)| row(kind, at, rule)));
    }
    let title = format!("Permissions · mode {} · {count} rules", handle.mode());
    Table::new(TableOf::Rules, title, rows)
}

fn row(kind: RuleKind, at: usize, rule: &RuleSource) -> TableRow {
    let (tone, does) = match kind {
        RuleKind::Deny => (Tone::Bad, "such a call is denied, whatever else is said"),
        RuleKind::Ask => (Tone::Notable, "such a call is asked about, whatever allows it"),
        RuleKind::Allow => (Tone::Good, "such a call runs without a question"),
    };
    let origin = &rule.origin;
    let text = format!("{}\n{does}\nfrom {} ({})", rule.text, origin, origin.level());
    let line = origin.line().and_then(|line| usize::try_from(line).ok());
    let file = origin.file().map(|path| file_line(path, line.unwrap_or(1)));
    let cells = vec![origin.level().to_string()];
    let id = format!("{kind:?} {at}");
    TableRow { tone, cells, file, hint: origin.to_string(), ..TableRow::new(id, &*rule.text) }
        .with_detail(&text)
}

/// The decision about the call of a trial, and its reason.
pub(super) fn detail(tables: &Tables, id: &str) -> Vec<Line> {
    let Some(call) = id.strip_prefix(TRIAL) else { return Vec::new() };
    let Some(handle) = &tables.handle else { return lines_of("the session is not open yet") };
    let told = explained(call, handle.mode(), &tables.surroundings, |it| handle.explain_call(it));
    lines_of(&told.unwrap_or_else(|error| format!("{error:#}")))
}
