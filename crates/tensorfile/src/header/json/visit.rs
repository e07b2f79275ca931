//! Shared by the visitors: the fault that one of them found, and how to parse any value.

use serde::de::{self, DeserializeSeed, Deserializer, Visitor};
use serde_json::error::Category;

use crate::{Error, ErrorKind, Result};

/// Characters kept of the parser's message.
const MAX_MESSAGE_CHARS: usize = 160;

/// Parses a value of any type with a visitor.
pub(super) struct Any<V>(pub(super) V);

impl<'de, V: Visitor<'de>> DeserializeSeed<'de> for Any<V> {
    type Value = V::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        deserializer.deserialize_any(self.0)
    }
}

/// The fault that a visitor found, kept beside the parser's error, which can only hold text.
#[derive(Default)]
pub(super) struct Fault {
    /// The tensor whose entry has the fault.
    pub(super) tensor: Option<Box<str>>,
    /// The fault, if a visitor found it and not the parser.
    kind: Option<ErrorKind>,
}

impl Fault {
    /// Keeps the fault and returns the error that stops the parser.
    pub(super) fn stop<E: de::Error>(&mut self, kind: impl Into<ErrorKind>) -> E {
        self.kind = Some(kind.into());
        E::custom("refused")
    }

    /// The fault for which the parser stopped with this error.
    pub(super) fn into_error(self, error: &serde_json::Error) -> Error {
        let Self { tensor, kind } = self;
        match (kind, tensor) {
            (Some(kind), Some(tensor)) => kind.in_tensor(tensor),
            (Some(kind), None) => kind.into(),
            (None, tensor) => said_by_parser(tensor, error),
        }
    }
}

/// The parser's own fault, in the entry of this tensor if it was in one.
fn said_by_parser(tensor: Option<Box<str>>, error: &serde_json::Error) -> Error {
    let (line, column) = (error.line(), error.column());
    let place = format!(" at line {line} column {column}");
    let message = error.to_string();
    let message = cut(message.strip_suffix(&place).unwrap_or(&message));
    match tensor {
        Some(tensor) if error.classify() == Category::Data => {
            ErrorKind::InvalidTensor { message: (message + &place).into() }.in_tensor(tensor)
        }
        _ => ErrorKind::HeaderJson { line, column, message: message.into() }.into(),
    }
}

/// The parser's message, shortened, because it may quote a string of any length.
fn cut(message: &str) -> String {
    match message.char_indices().nth(MAX_MESSAGE_CHARS) {
        None => message.to_owned(),
        Some((end, _)) => message.get(..end).unwrap_or_default().to_owned() + "…",
    }
}
