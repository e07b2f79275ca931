//! What opening a model ignored or found odd.

use std::io::Write;

use modeldir::Report;

use crate::output::Output;
use crate::run::Result;
use crate::text::counted;

/// Writes the lines of a report, the first `max_lines` of them; nothing if there was nothing odd.
///
/// # Errors
///
/// Those of writing.
pub(crate) fn print_report(report: &Report, max_lines: usize, out: &mut Output) -> Result {
    let text = report.to_string();
    for line in text.lines().take(max_lines) {
        writeln!(out, "{line}")?;
    }
    let left = text.lines().skip(max_lines).count();
    if left > 0 {
        writeln!(out, "and {} more, which `modeldir inspect` shows", counted(left, "remark"))?;
    }
    Ok(())
}
