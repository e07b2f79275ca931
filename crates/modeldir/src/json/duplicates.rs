//! Duplicate keys of a JSON object: the last one wins, with a note.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use tensorfile::Quoted;

/// The maximum number of notes on one file.
const MAX_NOTES: usize = 64;

/// A note for each duplicate key in an object of this JSON text.
pub(super) fn duplicate_keys(text: &str) -> Vec<String> {
    let mut notes = Vec::new();
    let mut json = serde_json::Deserializer::from_str(text);
    // The text has just been parsed, so this pass cannot fail.
    Keys(&mut notes).deserialize(&mut json).ok();
    notes
}

/// Walks a JSON value and notes duplicate keys.
struct Keys<'n>(&'n mut Vec<String>);

impl<'de> DeserializeSeed<'de> for Keys<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Keys<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut seen = BTreeSet::new();
        while let Some(key) = map.next_key::<String>()? {
            if seen.contains(&key) && self.0.len() < MAX_NOTES {
                self.0.push(format!("duplicate key {}: the last one wins", Quoted(&key)));
            }
            seen.insert(key);
            map.next_value_seed(Keys(&mut *self.0))?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(Keys(&mut *self.0))?.is_some() {}
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::duplicate_keys;

    #[test]
    fn each_duplicate_is_noted_at_any_depth() {
        let text =
            r#"{"a": 1, "\u0061": 2.5, "b": [{"c": null, "c": "x"}], "d": {"a": -1}, "a": true}"#;
        let note = |key: &str| format!("duplicate key \"{key}\": the last one wins");
        assert_eq!(duplicate_keys(text), [note("a"), note("c"), note("a")]);
    }

    #[test]
    fn notes_are_bounded() {
        let text = format!("{{{}\"a\":1}}", "\"a\":1,".repeat(1000));
        assert_eq!(duplicate_keys(&text).len(), super::MAX_NOTES);
    }
}
