//! A fast parser for the usual form of an index: the two known keys, and strings without escapes.
//!
//! It is several times faster than the general parser, and nearly every index has this form.
//! Whatever it accepts, the general parser accepts with the same result. It reports no errors:
//! everything else, malformed text included, is left to the general parser.

use std::borrow::Cow;
use std::ops::Range;

use tensorfile::json_text::plain_len;

use super::{Document, Metadata, Pairs};

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
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::super::read_any;
    use super::{Document, parse};

    /// All that a document says; names as they are in the text.
    fn said(text: &str, document: &Document<'_>) -> String {
        let pairs = document.weight_map.as_ref().unwrap();
        assert!(pairs.unescaped.is_empty() && pairs.fault.is_none());
        let entries: Vec<_> =
            pairs.entries.iter().map(|entry| (&text[entry.name()], entry.shard)).collect();
        format!("{entries:?} {:?} {:?}", pairs.shards, document.metadata)
    }

    /// Whether the text has the usual form, in which case both parsers must agree.
    fn is_plain_and_agreed(text: &str) -> bool {
        let Some(plain) = parse(text) else { return false };
        assert_eq!(said(text, &plain), said(text, &read_any(text, text).unwrap()), "{text}");
        let pairs = plain.weight_map.unwrap();
        let names = pairs.entries.iter().map(|entry| &text[entry.name()]);
        assert!(!pairs.is_ascending || names.is_sorted_by(|a, b| a < b), "{text}");
        true
    }

    #[test]
    fn takes_what_writers_emit() {
        for text in [
            r#"{"weight_map":{}}"#,
            r#" { "metadata" : { } , "weight_map" : { } } "#,
            r#"{"weight_map":{"a":"m.safetensors"},"metadata":{"total_size":5}}"#,
            "{\r\n\t\"weight_map\": {\r\n\t\"a\": \"m.safetensors\"\r\n}\r\n}\r\n",
            r#"{"metadata":{"total_size":1e3,"x":[{"y":null}],"z":"\u0061"},"weight_map":{}}"#,
            r#"{"weight_map":{"b":"./m.safetensors","a":"m.safetensors","模":"n.safetensors"}}"#,
            r#"{"weight_map":{"":"m.safetensors", "a":"m.safetensors","a":"m.safetensors"}}"#,
        ] {
            assert!(is_plain_and_agreed(text), "{text}");
        }
    }

    #[test]
    fn leaves_what_is_unusual_or_wrong_to_the_general_parser() {
        for text in [
            "",
            "{}",
            "{\"weight_map\":{}",
            "{\"weight_map\":{}}}",
            "{\"weight_map\":{}} x",
            "{\"weight_map\":{},}",
            "{\"weight_map\":{},\"weight_map\":{}}",
            "{\"weight_map\":{},\"metadata\":{},\"metadata\":{}}",
            "{\"weight_map\":{},\"other\":1}",
            "{\"weight\\u005fmap\":{}}",
            "{\"metadata\":{}}",
            "{\"metadata\":null,\"weight_map\":{}}",
            "{\"metadata\":{\"a\":1e999},\"weight_map\":{}}",
            "{\"weight_map\":[]}",
            "{\"weight_map\":{\"a\":1}}",
            "{\"weight_map\":{\"a\":\"/m.safetensors\"}}",
            "{\"weight_map\":{\"a\":\"m.safetensors\",}}",
            "{\"weight_map\":{\"a\":\"m.safetensors\" \"b\":\"m.safetensors\"}}",
            "{\"weight_map\":{\"a\\n\":\"m.safetensors\"}}",
            "{\"weight_map\":{\"a\n\":\"m.safetensors\"}}",
            "{\"weight_map\":{\"a long name \u{1f}\":\"m.safetensors\"}}",
            "\u{feff}{\"weight_map\":{}}",
            "{\"weight_map\":{}}\u{a0}",
            "{\"a\":\"m.safetensors\"}",
        ] {
            assert!(!is_plain_and_agreed(text), "{text}");
        }
    }

    #[test]
    fn knows_ascending_names() {
        for (names, is_ascending) in [
            (vec!["a"], true),
            (vec!["", "a", "aa", "ab"], true),
            (vec!["a", "a"], false),
            (vec!["aa", "a"], false),
            (vec!["a", "a!"], true),
            (vec!["a!", "a"], false),
            (vec!["sixteen bytes it", "sixteen bytes it is"], true),
            (vec!["sixteen bytes it is", "sixteen bytes it"], false),
            (vec!["sixteen bytes it", "sixteen bytes it"], false),
            (vec!["z", "é", "模"], true),
        ] {
            let row = |name: &&str| format!("\"{name}\":\"m.safetensors\"");
            let rows: Vec<_> = names.iter().map(row).collect();
            let text = format!("{{\"weight_map\":{{{}}}}}", rows.join(","));
            assert!(is_plain_and_agreed(&text));
            assert_eq!(parse(&text).unwrap().weight_map.unwrap().is_ascending, is_ascending);
        }
    }

    const NAMES: [&str; 8] = [
        "model.layers.0.mlp.experts.0.w",
        "model.layers.0.mlp.experts.1.w",
        "model.layers.0.mlp.experts.0.w_scale",
        "model.layers.0.m",
        "a",
        "a!",
        "",
        "模型.权重",
    ];
    const SHARDS: [&str; 4] =
        ["s-1.safetensors", "s-10.safetensors", "./s-1.safetensors", "d/s.safetensors"];
    const METADATA: [&str; 4] =
        ["", "\"total_size\": 9", "\"total_size\":1.5, \"a\": \"b\"", "\"a\":[{}], \"b\":-0"];
    const EDITS: [&str; 16] = [
        "", "\"", "\\", "{", "}", "[", ",", ":", "0", " ", "\n", "\u{7}", "\\u0061", "é", "/", "a",
    ];

    fn index(
        rows: &[(&str, &str)],
        metadata: &str,
        spaces: &[&str],
        edits: &[(usize, usize, &str)],
    ) -> String {
        let mut spaces = spaces.iter().cycle();
        let mut space = || *spaces.next().unwrap();
        let mut text =
            format!("{{{}\"metadata\":{{{metadata}}},{}\"weight_map\":{{", space(), space());
        for (i, (name, shard)) in rows.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            text += &format!("{comma}{}\"{name}\":{}\"{shard}\"", space(), space());
        }
        text += &format!("{}}}{}}}\n", space(), space());
        let mut chars: Vec<char> = text.chars().collect();
        for (at, len, replacement) in edits {
            let at = chars.len().min(*at);
            let end = chars.len().min(at.saturating_add(*len));
            chars.splice(at..end, replacement.chars());
        }
        chars.into_iter().collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, cases: 2000, ..ProptestConfig::default() })]

        #[test]
        fn no_text_means_something_else_in_the_plain_form(
            rows in vec((select(&NAMES[..]), select(&SHARDS[..])), 0..6),
            metadata in select(&METADATA[..]),
            spaces in vec(select(&["", "", " ", "\n    ", "\r\n\t"][..]), 1..3),
            edits in vec((0..250_usize, 0..4_usize, select(&EDITS[..])), 0..4),
        ) {
            prop_assert!(is_plain_and_agreed(&index(&rows, metadata, &spaces, &[])));
            is_plain_and_agreed(&index(&rows, metadata, &spaces, &edits));
        }
    }
}
