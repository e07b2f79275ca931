//! Pages for a browser. Each is one file with text, tables and drawings, without scripts or requests.

mod bar;
mod document;
mod html;
mod job;
mod kinds;
mod model;
mod modules;
mod squarify;
mod table;
mod tree;
mod treemap;

use std::fs;
use std::io::Write;
use std::path::Path;

use tensorfile::PathText;

use crate::failure::Result;
use crate::output::Output;

pub(crate) use job::job_page;
pub(crate) use model::model_page;

/// Writes a page to a file, and prints the path of the file.
///
/// # Errors
///
/// If the file cannot be written.
pub(crate) fn write_page(page: &str, file: &Path, out: &mut Output) -> Result {
    fs::write(file, page).map_err(|error| format!("{}: {error}", PathText(file)))?;
    Ok(writeln!(out, "{}: page of {} bytes", PathText(file), page.len())?)
}
