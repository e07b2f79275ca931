//! What opening a model ignored or found odd.

use std::io::Write;

use modeldir::Report;

use crate::{Output, Result, counted};

/// Writes the lines of a report, the first `max_lines` of them; nothing if there was nothing odd.
///
/// # Errors
///
/// Those of writing.
pub fn print_report(report: &Report, max_lines: usize, out: &mut Output) -> Result {
    let text = report.to_string();
    for line in text.lines().take(max_lines) {
        writeln!(out, "{line}")?;
    }
    let left = text.lines().skip(max_lines).count();
    if left > 0 {
        writeln!(out, "and {} more, which the example inspect shows", counted(left, "remark"))?;
    }
    Ok(())
}
