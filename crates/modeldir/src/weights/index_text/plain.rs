//! A fast parser for the usual form of an index: the two known keys, and strings without escapes.
//!
//! It is several times faster than the general parser, and nearly every index has this form.
//! Whatever it accepts, the general parser accepts with the same result. It reports no errors:
//! everything else, malformed text included, is left to the general parser.

use std::borrow::Cow;
use std::ops::Range;

use tensorfile::json_text::plain_len;

use super::document::Document;
use super::metadata::Metadata;
use super::pairs::Pairs;

/// The content of an index in the usual form, or `None` if it has another form.
pub(super) fn parse(text: &str) -> Option<Document<'_>> {
    let mut cursor = Cursor { text, rest: text.as_bytes() };
    let (mut weight_map, mut metadata) = (None, None);
    cursor.expect_between_spaces(b'{')?;
    let mut more = true;
    while more {
        let key = cursor.string()?;
        cursor.expect_between_spaces(b':')?;
        let unseen = match text.get(key)? {
            "weight_map" => weight_map.replace(cursor.pairs()?).is_none(),
            "metadata" => metadata.replace(cursor.metadata()?).is_none(),
            _ => false,
        };
        more = unseen.then(|| cursor.another())??;
    }
    let is_whole = weight_map.is_some() && cursor.rest.is_empty();
    let metadata = metadata.unwrap_or_default();
    is_whole.then_some(Document { weight_map, metadata, lack: None })
}

/// A text and its unread rest. Every method returns `None` if the text has another form.
struct Cursor<'a> {
    text: &'a str,
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    fn position(&self) -> usize {
        self.text.len().wrapping_sub(self.rest.len())
    }

    #[inline]
    fn skip(&mut self, literal: &[u8]) -> bool {
        let rest = self.rest.strip_prefix(literal);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    #[inline]
    fn skip_spaces(&mut self) {
        while let [b' ' | b'\n' | b'\r' | b'\t', rest @ ..] = self.rest {
            self.rest = rest;
        }
    }

    #[inline]
    fn expect_between_spaces(&mut self, byte: u8) -> Option<()> {
        self.skip_spaces();
        self.skip(&[byte]).then(|| self.skip_spaces())
    }

    /// Whether another member follows in an object, or its end. Skips white space around it.
    #[inline]
    fn another(&mut self) -> Option<bool> {
        self.skip_spaces();
        let (byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        self.skip_spaces();
        match byte {
            b',' => Some(true),
            b'}' => Some(false),
            _ => None,
        }
    }

    /// The range of a string without escapes; JSON forbids control characters.
    #[inline]
    fn string(&mut self) -> Option<Range<usize>> {
        self.skip(b"\"").then_some(())?;
        let start = self.position();
        self.rest = self.rest.get(plain_len(self.rest)..)?;
        let end = self.position();
        self.skip(b"\"").then_some(start..end)
    }

    /// The pairs of a weight map, if all its shard paths are valid.
    fn pairs(&mut self) -> Option<Pairs<'a>> {
        let mut pairs = Pairs::new(self.text);
        self.expect_between_spaces(b'{')?;
        if self.skip(b"}") {
            return Some(pairs);
        }
        self.skip(b"\"").then_some(())?;
        pairs.is_ascending = true;
        let mut last: &[u8] = b"";
        // The bytes between the two previous names, quotes included. Usually they repeat: same
        // shard, same white space.
        let mut between: Option<(&[u8], u32)> = None;
        loop {
            let (start, name) = (self.position(), self.rest);
            let common = common_len(last, name);
            let len = common.wrapping_add(plain_len(name.get(common..)?));
            let (name, rest) = name.split_at_checked(len)?;
            self.rest = rest;
            pairs.is_ascending &=
                pairs.entries.is_empty() || last.get(common..) < name.get(common..);
            last = name;
            let place = start..start.wrapping_add(len);
            if let Some((_, shard)) = between.filter(|(between, _)| self.skip(between)) {
                pairs.add_entry(place, shard).ok()?;
                continue;
            }
            self.skip(b"\"").then(|| self.expect_between_spaces(b':'))??;
            let shard = pairs.position(Cow::Borrowed(self.text.get(self.string()?)?)).ok()?.ok()?;
            pairs.add_entry(place, shard).ok()?;
            if !self.another()? {
                return Some(pairs);
            }
            self.skip(b"\"").then_some(())?;
            between = Some((rest.get(..rest.len().wrapping_sub(self.rest.len()))?, shard));
        }
    }

    /// The kept part of `metadata`. It is short, so the general parser reads it.
    fn metadata(&mut self) -> Option<Metadata> {
        self.rest.starts_with(b"{").then_some(())?;
        let json = self.text.get(self.position()..)?;
        let mut values = serde_json::Deserializer::from_str(json).into_iter();
        let metadata = values.next()?.ok()?;
        self.rest = self.rest.get(values.byte_offset()..)?;
        Some(metadata)
    }
}

/// A length of a common prefix, not necessarily the longest.
#[inline]
fn common_len(a: &[u8], b: &[u8]) -> usize {
    let (mut rest_a, mut rest_b) = (a, b);
    while let (Some((a, after_a)), Some((b, after_b))) =
        (rest_a.split_first_chunk::<16>(), rest_b.split_first_chunk::<16>())
    {
        if a != b {
            break;
        }
        (rest_a, rest_b) = (after_a, after_b);
    }
    a.len().wrapping_sub(rest_a.len())
}

#[cfg(test)]
mod tests;
