//! The tables of ARCHITECTURE.md that say for each file of a crate what it may touch.

use std::collections::BTreeSet;

/// A row: its files and folders, and the words of its last column.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) files: Vec<String>,
    pub(crate) may_touch: BTreeSet<String>,
}

impl Row {
    /// Whether a file is of this row: how much of its path the row names, or 0.
    pub(crate) fn names(&self, file: &str) -> usize {
        let fits = |name: &&String| {
            *name == file || name.ends_with('/') && file.starts_with(name.as_str())
        };
        self.files.iter().filter(fits).map(String::len).max().unwrap_or(0)
    }

    /// The file by which other rows name this one: the first.
    pub(crate) fn head(&self) -> &str {
        &self.files[0]
    }
}

/// The rows of the tables of a crate; none if the text has none for it.
pub(crate) fn rows(architecture: &str, name: &str) -> Vec<Row> {
    let heading = format!("### `crates/{name}`");
    let lines = architecture.lines().skip_while(|line| !line.starts_with(&heading)).skip(1);
    let lines: Vec<_> = lines.take_while(|line| !line.starts_with("### ")).collect();
    let tables = lines.split(|line| !line.starts_with('|'));
    tables
        .filter(|table| table.first().is_some_and(|head| head.ends_with("| may touch |")))
        .flat_map(|table| table.iter().skip(2).map(|line| row(line)))
        .collect()
}

/// Reads one row.
fn row(line: &str) -> Row {
    let cells: Vec<_> = line.trim_matches('|').split(" | ").map(str::trim).collect();
    let words = |cell: Option<&&str>| {
        let parts = cell.copied().unwrap_or_default().split(", ");
        parts.map(|word| word.trim_matches('`').to_owned()).collect::<Vec<_>>()
    };
    let may_touch = words(cells.last()).into_iter().filter(|word| word != "nothing");
    Row { files: words(cells.first()), may_touch: may_touch.collect() }
}
