//! Aligned columns.

use std::io::{self, Write};

use super::stdout::Output;

/// The alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    /// For texts.
    Left,
    /// For numbers.
    Right,
}

/// Rows of `N` cells that are printed in columns as wide as their widest cell.
#[derive(Clone, Debug)]
pub(crate) struct Table<const N: usize> {
    headings: [&'static str; N],
    aligns: [Align; N],
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    /// A table without rows.
    pub(crate) fn new(columns: [(&'static str, Align); N]) -> Self {
        Self { headings: columns.map(|c| c.0), aligns: columns.map(|c| c.1), rows: Vec::new() }
    }

    /// What stands above the columns.
    pub(crate) fn headings(&self) -> &[&'static str; N] {
        &self.headings
    }

    /// On which side cells are flush, by column.
    pub(crate) fn aligns(&self) -> &[Align; N] {
        &self.aligns
    }

    /// The rows so far.
    pub(crate) fn rows(&self) -> &[[String; N]] {
        &self.rows
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: [String; N]) {
        self.rows.push(cells);
    }

    /// Writes the headings and the rows as a block of lines; nothing if there is no row.
    ///
    /// # Errors
    ///
    /// Those of writing.
    pub(crate) fn print(&self, out: &mut Output) -> io::Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        out.gap()?;
        let width = |column: usize| {
            let cells = self.rows.iter().map(|row| row[column].chars().count());
            cells.max().unwrap_or(0).max(self.headings[column].len())
        };
        let widths: [usize; N] = std::array::from_fn(width);
        let headings = line(&self.headings.map(String::from), &self.aligns, &widths);
        writeln!(out, "{}", out.bold(headings))?;
        for row in &self.rows {
            writeln!(out, "{}", line(row, &self.aligns, &widths))?;
        }
        Ok(())
    }
}

/// One line, without spaces at its end.
fn line(cells: &[String], aligns: &[Align], widths: &[usize]) -> String {
    let mut line = String::new();
    for ((cell, align), &width) in cells.iter().zip(aligns).zip(widths) {
        match align {
            Align::Left => line.push_str(&format!("{cell:<width$}  ")),
            Align::Right => line.push_str(&format!("{cell:>width$}  ")),
        }
    }
    line.truncate(line.trim_end().len());
    line
}

#[cfg(test)]
mod tests {
    use super::{Align, line};

    #[test]
    fn numbers_are_flush_right_and_lines_end_without_spaces() {
        let cells = ["é".to_owned(), "7".to_owned(), "x".to_owned()];
        let aligns = [Align::Left, Align::Right, Align::Left];
        assert_eq!(line(&cells, &aligns, &[3, 4, 9]), "é       7  x");
    }
}
