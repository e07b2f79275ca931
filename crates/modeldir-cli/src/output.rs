//! Forms of output: text, tables and JSON on standard output, bars on standard error.

mod json;
mod progress;
mod stdout;
mod style;
mod table;
mod text;

pub(crate) use json::{one_line, path_json, print_json};
pub(crate) use progress::{load, load_with_threads, progress_bar};
pub(crate) use stdout::Output;
pub(crate) use style::{is_styled, styled};
pub(crate) use table::{Align, Table};
pub(crate) use text::{bytes, count, counted, rate, shown, time};
