//! Pages of one file for a browser: text, tables and drawings, without scripts and without network.

mod bar;
mod document;
mod html;
mod inspect;
mod kinds;
mod modules;
mod ranks;
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

pub(crate) use inspect::model_page;
pub(crate) use ranks::job_page;

/// Writes a page to a file, and prints its path.
///
/// # Errors
///
/// If the file cannot be written.
pub(crate) fn write_page(page: &str, file: &Path, out: &mut Output) -> Result {
    fs::write(file, page).map_err(|error| format!("{}: {error}", PathText(file)))?;
    Ok(writeln!(out, "{}: page of {} bytes", PathText(file), page.len())?)
}
