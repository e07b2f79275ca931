//! What opening a model ignored or found odd.

use std::io::{self, Write};

use modeldir::Report;

use crate::output::{Output, counted};

/// Writes at most `max_lines` lines of a report as a block of lines; nothing if it is empty.
///
/// # Errors
///
/// Those of writing.
pub(crate) fn print_report(report: &Report, max_lines: usize, out: &mut Output) -> io::Result<()> {
    let text = report.to_string();
    if !text.is_empty() {
        out.gap()?;
    }
    for line in text.lines().take(max_lines) {
        writeln!(out, "{line}")?;
    }
    let left = text.lines().skip(max_lines).count();
    if left > 0 {
        writeln!(out, "and {}, which `modeldir inspect` shows", counted(left, "more remark"))?;
    }
    Ok(())
}
