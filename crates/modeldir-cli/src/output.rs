//! Forms of output: text, tables, JSON, colours.

mod json;
mod stdout;
mod style;
mod table;
mod text;

pub(crate) use json::{one_line, path_json, print_json};
pub(crate) use stdout::Output;
pub(crate) use style::{is_styled, styled};
pub(crate) use table::{Align, Table};
pub(crate) use text::{bytes, count, counted, rate, shown, time};
