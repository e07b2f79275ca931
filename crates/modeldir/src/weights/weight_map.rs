//! The weight map of an index (`*.safetensors.index.json`): the shard of each tensor.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use tensorfile::reserve::{self, NoMemory};

use crate::weights::index_text::{self, Entry};
use crate::weights::natural;
use crate::{ErrorKind, Result};

/// The shard of each tensor as stated by an index. Names stay in the index's text.
#[derive(Debug)]
pub(crate) struct WeightMap {
    /// The index's text, followed by the unescaped form of names with escapes.
    text: String,
    /// Sorted by name, each name once.
    entries: Vec<Entry>,
    /// In natural order, each path once.
    shards: Vec<Box<str>>,
    total_size: Option<DeclaredSize>,
    metadata: tensorfile::Metadata,
    is_bare: bool,
}

impl WeightMap {
    /// Parses the text of an index.
    ///
    /// A byte-order mark is skipped. `metadata` and all other keys beside `weight_map` may be
    /// anything or absent. An index without `weight_map`, as accelerate writes it, is accepted as
    /// one bare map if it is an object in which every value but `metadata` is a string ending in
    /// `.safetensors`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Json`] with line and column; [`ErrorKind::NoWeightMap`]; for the first bad
    /// tensor by name, [`ErrorKind::ShardPathType`], [`ErrorKind::ShardPath`] or
    /// [`ErrorKind::MappedTwice`].
    pub(crate) fn parse(mut text: String) -> Result<Self> {
        let parsed = index_text::parse(&text)?;
        let total_size = parsed.metadata.total_size.map(DeclaredSize);
        let metadata = parsed.metadata.strings;
        let (mut entries, is_bare) = (parsed.entries, parsed.is_bare);
        reserve::push_str(&mut text, &parsed.unescaped)?;
        let shards = sort_shards(parsed.shards, &mut entries)?;

        let name = |entry: &Entry| text.as_bytes().get(entry.name()).unwrap_or_default();
        if !parsed.is_ascending {
            // A stable sort is fast on the sorted runs that indexes consist of.
            reserve::check::<Entry>(entries.len())?;
            entries.sort_by(|a, b| name(a).cmp(name(b)));
            let mut pairs = entries.iter().zip(entries.iter().skip(1));
            if let Some((twice, _)) = pairs.find(|(a, b)| name(a) == name(b)) {
                let tensor = text.get(twice.name()).unwrap_or_default();
                return Err(ErrorKind::MappedTwice.in_tensor(tensor));
            }
        }
        Ok(Self { text, entries, shards, total_size, metadata, is_bare })
    }

    /// Whether the index names no tensor.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The shards in natural order, as normalised paths relative to the model's folder.
    pub(crate) fn shards(&self) -> &[Box<str>] {
        &self.shards
    }

    /// Every tensor by name, with the position of its shard in [`Self::shards`].
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = (&str, usize)> + Clone {
        self.entries.iter().map(|entry| (self.name(entry), entry.shard as usize))
    }

    /// The number of tensors in each of the [`Self::shards`].
    pub(crate) fn tensors_per_shard(&self) -> Result<Vec<usize>, NoMemory> {
        let mut counts = reserve::collect(self.shards.iter().map(|_| 0_usize))?;
        for entry in &self.entries {
            if let Some(count) = counts.get_mut(entry.shard as usize) {
                *count = count.saturating_add(1);
            }
        }
        Ok(counts)
    }

    /// `metadata.total_size`, if there is one.
    pub(crate) fn total_size(&self) -> Option<&DeclaredSize> {
        self.total_size.as_ref()
    }

    /// The entries of `metadata` whose value is a string, by key. They include the aliases recorded
    /// by `save_torch_state_dict`: from a name that is not stored to one that is.
    pub(crate) fn metadata(&self) -> &tensorfile::Metadata {
        &self.metadata
    }

    /// Whether the index is one bare map, without the key `weight_map`.
    pub(crate) fn is_bare(&self) -> bool {
        self.is_bare
    }

    fn name(&self, entry: &Entry) -> &str {
        self.text.get(entry.name()).unwrap_or_default()
    }
}

/// Sorts the shards and renumbers the entries accordingly.
fn sort_shards(shards: Vec<Box<str>>, entries: &mut [Entry]) -> Result<Vec<Box<str>>, NoMemory> {
    if shards.is_sorted_by(|a, b| natural::compare(a, b).is_le()) {
        return Ok(shards);
    }
    let mut order = reserve::collect(shards.into_iter().enumerate())?;
    // Unstable suffices, as no two are equal: the order is total, and each path occurs once.
    order.sort_unstable_by(|(_, a), (_, b)| natural::compare(a, b));
    let mut position = reserve::collect(order.iter().map(|_| 0_u32))?;
    for (new, (old, _)) in (0..).zip(&order) {
        if let Some(slot) = position.get_mut(*old) {
            *slot = new;
        }
    }
    for entry in entries {
        entry.shard = position.get(entry.shard as usize).copied().unwrap_or(entry.shard);
    }
    reserve::collect(order.into_iter().map(|(_, shard)| shard))
}

/// The total size declared by an index, in its own form: integer, float or string.
///
/// Writers disagree on what it covers, and some write 0. It is only compared, never relied on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeclaredSize(Box<str>);

impl DeclaredSize {
    /// The number or string as the index has it, except for the format of a float.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The size in bytes, if it is a whole number in range.
    pub(crate) fn byte_len(&self) -> Option<u64> {
        let text = self.0.trim();
        if let Ok(byte_len) = text.parse() {
            return Some(byte_len);
        }
        let number: f64 = text.parse().ok()?;
        let is_whole = number.is_finite() && number.fract() == 0.0 && number.abs() < 2_f64.powi(64);
        is_whole.then(|| format!("{number:.0}").parse().ok()).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::WeightMap;
    use crate::json::JsonError;
    use crate::{ErrorKind, Result};

    fn parse(text: &str) -> Result<WeightMap> {
        WeightMap::parse(text.to_owned())
    }

    /// The tensor named by the error for a text, if any, and its kind.
    fn refused(text: &str) -> (Option<String>, ErrorKind) {
        let error = parse(text).unwrap_err();
        (error.tensor().map(str::to_owned), error.into_kind())
    }

    /// Name and shard of every tensor.
    fn pairs(map: &WeightMap) -> Vec<(&str, &str)> {
        map.iter().map(|(name, shard)| (name, &**map.shards().get(shard).unwrap())).collect()
    }

    #[test]
    fn tensors_come_by_name_and_shards_in_natural_order() {
        let map = parse(
            r#"{"weight_map": {"b": "s-10.safetensors", "a": "./s-9.safetensors",
                "c": "s-9.safetensors", "d": "d/s-1.safetensors"}}"#,
        )
        .unwrap();
        assert_eq!(
            map.shards().iter().map(|s| &**s).collect::<Vec<_>>(),
            ["d/s-1.safetensors", "s-9.safetensors", "s-10.safetensors"]
        );
        assert_eq!(
            pairs(&map),
            [
                ("a", "s-9.safetensors"),
                ("b", "s-10.safetensors"),
                ("c", "s-9.safetensors"),
                ("d", "d/s-1.safetensors")
            ]
        );
        assert_eq!(map.tensors_per_shard().unwrap(), [1, 2, 1]);
    }

    #[test]
    fn a_number_that_json_lacks_is_no_shard() {
        let (_, kind) = refused(r#"{"metadata": {}, "weight_map": {"a": NaN}}"#);
        let ErrorKind::Json(JsonError::Syntax { line, column, .. }) = kind else {
            panic!("{kind:?}")
        };
        assert_eq!((line, column), (1, 38));
    }

    #[test]
    fn escaped_names_and_paths_are_read_as_they_mean() {
        let map = parse(
            r#"{"weight_map": {"z\u00e9\n": "\u0061.safetensors", "é": "a.safetensors",
                "\ud83d\ude00": "a.safetensors"}}"#,
        )
        .unwrap();
        let expected = [("zé\n", "a.safetensors"), ("é", "a.safetensors"), ("😀", "a.safetensors")];
        assert_eq!(pairs(&map), expected);
    }

    #[test]
    fn byte_order_mark_line_ends_and_other_keys_do_not_matter() {
        for text in [
            "\u{feff}{\r\n  \"weight_map\": {\r\n    \"a\": \"m.safetensors\"\r\n  }\r\n}\r\n",
            r#"{"weights": [[{"x": [1e5, null]}]], "weight_map": {"a": "m.safetensors"}, "z": {}}"#,
            r#"{"weight_map": {"a": "m.safetensors"}, "metadata": {}, "metadata": null}"#,
            r#"{"metadata": [1e999, "x"], "weight_map": {"a": "m.safetensors"}}"#,
            r#"{"metadata": {"x": NaN}, "weight_map": {"\u0061": "m.safetensors"}}"#,
            r#"{"weight_map": {"a": "m.safetensors"}, "metadata": {"total_size": -Infinity}}"#,
        ] {
            let map = parse(text).unwrap();
            assert_eq!(pairs(&map), [("a", "m.safetensors")], "{text}");
            assert!(map.total_size().is_none() && map.metadata().is_empty() && !map.is_bare());
        }
    }

    #[test]
    fn total_size_is_kept_as_it_is_written() {
        for (json, shown, byte_len) in [
            ("0", "0", Some(0)),
            ("18446744073709551615", "18446744073709551615", Some(u64::MAX)),
            ("55562855904.0", "55562855904.0", Some(55_562_855_904)),
            ("1e3", "1000.0", Some(1000)),
            ("\"12\"", "12", Some(12)),
            ("\"12 GB\"", "12 GB", None),
            ("-5", "-5", None),
            ("1.5", "1.5", None),
            ("18446744073709551616", "1.8446744073709552e19", None),
        ] {
            let text = format!(r#"{{"metadata":{{"total_size":{json}}},"weight_map":{{}}}}"#);
            let map = parse(&text).unwrap();
            let total_size = map.total_size().unwrap();
            assert_eq!(total_size.as_str(), shown, "{json}");
            assert_eq!(total_size.byte_len(), byte_len, "{json}");
        }
        for json in ["null", "true", "[1]", "{\"a\":1}", "1e999"] {
            let text = format!(r#"{{"metadata":{{"total_size":{json}}},"weight_map":{{}}}}"#);
            assert!(parse(&text).unwrap().total_size().is_none(), "{json}");
        }
    }

    #[test]
    fn strings_of_the_metadata_are_kept_and_nothing_else_is() {
        let map = parse(
            r#"{"metadata": {"format": "pt", "total_parameters": 5, "nested": {"a": "b"},
                "lm_head.weight": "model.embed_tokens.w\u0065ight"}, "weight_map": {}}"#,
        )
        .unwrap();
        let expected = [("format", "pt"), ("lm_head.weight", "model.embed_tokens.weight")];
        assert!(map.is_empty());
        assert_eq!(map.metadata().iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn of_equal_keys_of_the_metadata_the_last_whose_value_is_a_string_counts() {
        let map = parse(
            r#"{"metadata": {"a": "x", "a": 1, "b": null, "b": "y", "c": "1", "c": "2"},
                "weight_map": {}}"#,
        )
        .unwrap();
        assert_eq!(map.metadata().iter().collect::<Vec<_>>(), [("a", "x"), ("b", "y"), ("c", "2")]);
    }

    #[test]
    fn a_bare_map_is_taken_only_if_it_holds_nothing_but_shard_paths() {
        let map = parse(r#"{"metadata": {"total_size": 7}, "a": "x/m.safetensors"}"#).unwrap();
        assert_eq!(pairs(&map), [("a", "x/m.safetensors")]);
        assert_eq!(map.total_size().unwrap().byte_len(), Some(7));
        assert!(map.is_bare());
        for text in [
            "{}",
            r#"{"metadata": {}}"#,
            r#"{"a": "m.safetensors", "b": 3}"#,
            r#"{"a": "m.safetensors", "b": {"c": "m.safetensors"}}"#,
            r#"{"architectures": ["x"], "model_type": "llama"}"#,
            r#"{"a": "m.bin"}"#,
        ] {
            assert!(matches!(refused(text), (None, ErrorKind::NoWeightMap)), "{text}");
        }
        let (_, escape) = refused(r#"{"a": "../m.safetensors"}"#);
        assert!(matches!(escape, ErrorKind::ShardPath { .. }), "{escape:?}");
    }

    #[test]
    fn a_shard_that_is_no_string_is_refused_with_its_type_and_the_first_tensor_by_name() {
        for (json, expected) in [
            (r#"{"file": "a.safetensors", "offset": [0, {}]}"#, "an object"),
            ("[\"a.safetensors\", [[]]]", "an array"),
            ("3", "a number"),
            ("-3", "a number"),
            ("0.5", "a number"),
            ("null", "null"),
            ("true", "a boolean"),
        ] {
            let text = format!(r#"{{"weight_map": {{"z": 1, "t": {json}, "u": "/x"}}}}"#);
            match refused(&text) {
                (Some(tensor), ErrorKind::ShardPathType { found }) => {
                    assert_eq!((&*tensor, &*found), ("t", expected));
                }
                other => panic!("{json}: {other:?}"),
            }
        }
    }

    #[test]
    fn a_shard_path_that_leaves_the_folder_is_refused_with_its_text() {
        let text = r#"{"weight_map": {"a": "m.safetensors", "c": "x", "b": "..\u002foutside.safetensors"}}"#;
        match refused(text) {
            (Some(tensor), ErrorKind::ShardPath { value, .. }) => {
                assert_eq!((&*tensor, &*value), ("b", "../outside.safetensors"));
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_name_mapped_twice_is_refused_after_unescaping() {
        for text in [
            r#"{"weight_map": {"ab": "m.safetensors", "c": "m.safetensors", "ab": "m.safetensors"}}"#,
            r#"{"weight_map": {"ab": "m.safetensors", "\u0061b": "n.safetensors"}}"#,
        ] {
            match refused(text) {
                (Some(tensor), ErrorKind::MappedTwice) => assert_eq!(tensor, "ab"),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn text_that_is_no_json_is_refused_with_its_place() {
        for (text, at, says) in [
            ("", (1, 1), "EOF"),
            ("{\"weight_map\": {\"a\": \"m.safeten", (1, 31), "EOF"),
            ("{\"weight_map\": {\n\"a\": }}", (2, 6), "expected value"),
            ("{\"weight_map\": {}}\n=======\n{}", (2, 1), "merge conflict"),
            ("{\n<<<<<<< HEAD\n\"weight_map\": {}}", (2, 1), "merge conflict"),
            ("<<<<<<< HEAD\n{}", (1, 1), "merge conflict"),
            ("{\"weight_map\": null}", (1, 19), "weight_map: an object"),
            ("{\"weight_map\": [1]}", (1, 15), "weight_map: an object"),
            ("{\"weight_map\": {}, \"weight_map\": {}}", (1, 31), "twice"),
            ("[1, 2]", (1, 1), "an index: an object"),
        ] {
            match refused(text) {
                (None, ErrorKind::Json(JsonError::Syntax { line, column, message })) => {
                    assert_eq!((line, column), at, "{text} {message}");
                    assert!(message.contains(says) && !message.contains(" at line"), "{message}");
                }
                other => panic!("{text}: {other:?}"),
            }
        }
    }

    #[test]
    fn text_of_another_kind_is_named() {
        for text in ["<html>", "404: Not Found", "3"] {
            let (_, kind) = refused(text);
            assert!(matches!(kind, ErrorKind::Json(JsonError::NotJson { .. })), "{text}: {kind:?}");
        }
    }

    #[test]
    fn nests_of_any_depth_end_in_a_verdict_on_a_small_stack() {
        let deep = |key: &str, end: &str| {
            let (open, close) = ("[{\"a\":".repeat(100_000), "}]".repeat(100_000));
            format!("{{{key}{open}0{close}{end}}}")
        };
        let texts = [
            (deep("\"x\":", ",\"weight_map\":{\"a\":\"m.safetensors\"}"), true),
            (deep("\"metadata\":", ",\"weight_map\":{}"), true),
            (deep("\"metadata\":{\"total_size\":", "},\"weight_map\":{}"), true),
            (deep("\"weight_map\":{\"t\":", "}"), false),
            (deep("\"bare\":", ""), false),
            ("[".repeat(200_000), false),
            (format!("{{\"weight_map\":{}", "{\"a\":".repeat(200_000)), false),
        ];
        let check = move || {
            for (text, is_ok) in texts {
                assert_eq!(parse(&text).is_ok(), is_ok);
            }
        };
        let thread = std::thread::Builder::new().stack_size(256 * 1024).spawn(check).unwrap();
        thread.join().unwrap();
    }
}
