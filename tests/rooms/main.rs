//! Holds the column "may touch" of ARCHITECTURE.md to what the files of each row import.

mod house;
mod table;
mod tokens;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use house::{House, Seen, Touch};
use table::{Row, rows};

/// The crates that have a table.
const CRATES: [&str; 3] = ["tensorfile", "modeldir", "modeldir-cli"];

/// Kinds of I/O, and crates that do it. A row with one of these is listed by the rows that import it.
const INPUT_OUTPUT: [&str; 14] = [
    "clock",
    "environment",
    "files",
    "libc",
    "memmap2",
    "network",
    "processes",
    "rayon",
    "rustix",
    "tempfile",
    "tensorfile",
    "terminal",
    "threads",
    "tokio",
];

/// The rooms that invariant 1 says do no I/O.
const PURE: [&str; 7] = [
    "header.rs",
    "weights/weight_map.rs",
    "selection.rs",
    "partition.rs",
    "weights/join.rs",
    "weights/alias.rs",
    "plan.rs",
];

/// A crate, the rows of its table, and what the files of each row touch.
struct Rooms {
    name: &'static str,
    rows: Vec<(Row, Vec<Seen>)>,
    homeless: BTreeSet<String>,
    stale: Vec<String>,
}

impl Rooms {
    /// Reads the table and the files of a crate.
    fn read(name: &'static str) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let text = fs::read_to_string(root.join("ARCHITECTURE.md")).expect("the text");
        let seen = House::read(&root.join("crates").join(name)).seen();
        let rows = rows(&text, name);
        let is_there = |file: &str| seen.keys().any(|path| path.starts_with(file));
        let named = rows.iter().flat_map(|row| &row.files);
        let stale = named.filter(|file| !is_there(file)).cloned().collect();
        let rows = rows.into_iter().map(|row| (row, Vec::new())).collect();
        let mut rooms = Self { name, rows, homeless: BTreeSet::new(), stale };
        for (file, seen) in seen {
            match rooms.row_of(&file) {
                Some(row) => rooms.rows[row].1.extend(seen),
                None => _ = rooms.homeless.insert(file),
            }
        }
        assert!(!rooms.rows.is_empty(), "ARCHITECTURE.md has a table for {name}");
        rooms
    }

    /// The row that names most of the path of a file.
    fn row_of(&self, file: &str) -> Option<usize> {
        let names = |row: &usize| self.rows[*row].0.names(file);
        (0..self.rows.len()).max_by_key(names).filter(|row| names(row) > 0)
    }

    /// Whether a row does I/O itself, not only by the rows that it imports.
    fn does_io(&self, row: usize) -> bool {
        let is_io = |touch: &Touch| matches!(touch, Touch::Outside(word) if INPUT_OUTPUT.contains(&word.as_str()));
        self.rows[row].1.iter().any(|seen| is_io(&seen.touch))
    }

    /// The words that belong into the column of a row, each with the import that shows it.
    fn needed(&self, row: usize) -> BTreeMap<String, &Seen> {
        let mut needed = BTreeMap::new();
        for seen in &self.rows[row].1 {
            let word = match &seen.touch {
                Touch::Outside(word) => Some(word.clone()),
                Touch::File(file) => self
                    .row_of(file)
                    .filter(|other| *other != row && self.does_io(*other))
                    .map(|other| self.rows[other].0.head().to_owned()),
            };
            if let Some(word) = word {
                needed.entry(word).or_insert(seen);
            }
        }
        needed
    }

    /// How the column of a row differs from what belongs there, and what to write; nothing if it
    /// does not.
    fn fault(&self, row: usize) -> Option<String> {
        let (name, listed) = (self.name, &self.rows[row].0.may_touch);
        let needed = self.needed(row);
        let missing =
            needed.iter().filter(|(word, _)| !listed.contains(*word)).map(|(word, seen)| {
                let Seen { file, line, path, .. } = seen;
                format!(
                    "\n    {} is missing: crates/{name}/src/{file}:{line} has {path}",
                    shown(word)
                )
            });
        let stale = listed.iter().filter(|word| !needed.contains_key(*word));
        let stale = stale.map(|word| {
            format!("\n    {} is listed, and no file of the row imports it", shown(word))
        });
        let differs: String = missing.chain(stale).collect();
        let (head, right) = (self.rows[row].0.head(), column(needed.keys()));
        (!differs.is_empty()).then(|| {
            format!("crates/{name}, the row of `{head}`: write \"{right}\", or mend the imports{differs}")
        })
    }

    /// All that is wrong with the table.
    fn faults(&self) -> Vec<String> {
        let name = self.name;
        let homeless = self.homeless.iter().map(|file| {
            format!("crates/{name}/src/{file} is in no row: name it in the row whose question it answers")
        });
        let stale = self
            .stale
            .iter()
            .map(|file| format!("crates/{name}/src has no {file}: take it out of its row"));
        let columns = (0..self.rows.len()).filter_map(|row| self.fault(row));
        homeless.chain(stale).chain(columns).collect()
    }
}

/// A column as it is written: crates and kinds of I/O, then rooms.
fn column<'a>(words: impl Iterator<Item = &'a String>) -> String {
    let (rooms, outside): (Vec<_>, Vec<_>) = words.partition(|word| word.ends_with(".rs"));
    let listed: Vec<_> = outside.into_iter().chain(rooms).map(|word| shown(word)).collect();
    if listed.is_empty() { "nothing".to_owned() } else { listed.join(", ") }
}

/// A word as the column shows it: names of files are code.
fn shown(word: &str) -> String {
    if word.ends_with(".rs") { format!("`{word}`") } else { word.to_owned() }
}

#[test]
fn rooms_touch_what_their_rows_say() {
    let faults: Vec<_> = CRATES.into_iter().flat_map(|name| Rooms::read(name).faults()).collect();
    assert!(faults.is_empty(), "ARCHITECTURE.md, column \"may touch\":\n{}", faults.join("\n"));
}

#[test]
fn pure_rooms_do_no_io() {
    let tables = CRATES.map(Rooms::read);
    for file in PURE {
        let found = tables.iter().find_map(|rooms| rooms.row_of(file).map(|row| (rooms, row)));
        let (rooms, row) = found.unwrap_or_else(|| panic!("{file} is in no row"));
        assert!(!rooms.does_io(row), "{file} is pure by invariant 1: {:?}", rooms.needed(row));
    }
}
