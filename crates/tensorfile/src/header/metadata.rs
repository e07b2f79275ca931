//! `Metadata`: the strings of a header's `__metadata__`, in one allocation.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use crate::reserve::{self, NoMemory};

/// The entries of `__metadata__`: strings by key.
///
/// ```
/// # let json = br#"{"__metadata__":{"format":"pt","a":"b"}}"#;
/// # let file = [&(json.len() as u64).to_le_bytes(), &json[..]].concat();
/// # let header = tensorfile::Header::from_bytes(&file, &Default::default())?;
/// let metadata = header.metadata().expect("there is some");
/// assert_eq!(metadata.get("format"), Some("pt"));
/// assert_eq!(metadata.iter().collect::<Vec<_>>(), [("a", "b"), ("format", "pt")]);
/// # Ok::<(), tensorfile::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Metadata {
    /// Keys and values, each value after its key.
    text: String,
    /// Sorted by key; each key once.
    entries: Vec<Entry>,
}

/// The position of a key and its value in the text. A hostile header has millions, so it is small.
#[derive(Clone, Copy, Debug)]
struct Entry {
    start: u32,
    middle: u32,
    end: u32,
}

impl Entry {
    const fn key(self) -> Range<usize> {
        self.start as usize..self.middle as usize
    }

    const fn value(self) -> Range<usize> {
        self.middle as usize..self.end as usize
    }
}

impl Metadata {
    /// The value of a key; a binary search.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        let found = self.entries.binary_search_by(|entry| self.str(entry.key()).cmp(key)).ok()?;
        self.entries.get(found).map(|entry| self.str(entry.value()))
    }

    /// Keys and values, by key in byte order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> + Clone {
        self.entries.iter().map(|entry| (self.str(entry.key()), self.str(entry.value())))
    }

    /// The number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// A copy as a map of owned strings, which takes several times the memory.
    #[must_use]
    pub fn to_map(&self) -> BTreeMap<String, String> {
        self.iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    }

    fn str(&self, place: Range<usize>) -> &str {
        self.text.get(place).unwrap_or_default()
    }
}

impl PartialEq for Metadata {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Metadata {}

impl fmt::Debug for Metadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// Collects metadata in the order of the text.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct MetadataBuilder {
    text: String,
    entries: Vec<Entry>,
}

/// The error for a key given twice.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Twice(pub(super) Box<str>);

impl MetadataBuilder {
    /// Adds a key and its value. All strings together must have less than 4 GiB.
    ///
    /// # Errors
    ///
    /// Fails if there is not enough memory.
    pub fn push(&mut self, key: &str, value: &str) -> Result<(), NoMemory> {
        let start = self.text.len();
        reserve::push_str(&mut self.text, key)?;
        let middle = self.text.len();
        reserve::push_str(&mut self.text, value)?;
        // No header that is read is longer than 4 GiB.
        let place = |place: usize| u32::try_from(place).unwrap_or(u32::MAX);
        let (start, middle, end) = (place(start), place(middle), place(self.text.len()));
        reserve::push(&mut self.entries, Entry { start, middle, end })
    }

    /// The metadata; of equal keys the last one wins.
    #[must_use]
    pub fn finish_with_last(self) -> Metadata {
        let (text, mut entries) = self.sorted();
        let key = |entry: &Entry| text.get(entry.key()).unwrap_or_default();
        entries.dedup_by(|later, earlier| {
            let is_same = key(later) == key(earlier);
            if is_same {
                *earlier = *later;
            }
            is_same
        });
        Metadata { text, entries }
    }

    /// The metadata, or an error if a key is given twice.
    pub(super) fn finish(self) -> Result<Metadata, Twice> {
        let (text, entries) = self.sorted();
        let key = |entry: &Entry| text.get(entry.key()).unwrap_or_default();
        let mut pairs = entries.iter().zip(entries.iter().skip(1));
        if let Some((twice, _)) = pairs.find(|(a, b)| key(a) == key(b)) {
            return Err(Twice(crate::quote::shortened(key(twice))));
        }
        Ok(Metadata { text, entries })
    }

    /// Text and entries, sorted by key and then by the order of the text.
    fn sorted(self) -> (String, Vec<Entry>) {
        let Self { text, mut entries } = self;
        let key = |entry: &Entry| text.get(entry.key()).unwrap_or_default();
        // An unstable sort will do: no two entries have the same position.
        entries.sort_unstable_by(|a, b| key(a).cmp(key(b)).then(a.start.cmp(&b.start)));
        (text, entries)
    }
}

#[cfg(test)]
mod tests {
    use super::{Metadata, MetadataBuilder, Twice};

    fn of(entries: &[(&str, &str)]) -> Result<Metadata, Twice> {
        let mut builder = MetadataBuilder::default();
        for (key, value) in entries {
            builder.push(key, value).unwrap();
        }
        builder.finish()
    }

    #[test]
    fn entries_come_by_key_whatever_their_order() {
        let metadata = of(&[("b", "1"), ("", "é"), ("ab", "")]).unwrap();
        let expected = [("", "é"), ("ab", ""), ("b", "1")];
        assert_eq!(metadata.iter().collect::<Vec<_>>(), expected);
        assert_eq!((metadata.len(), metadata.is_empty()), (3, false));
        assert_eq!((metadata.get("ab"), metadata.get("a")), (Some(""), None));
        assert_eq!(metadata, of(&expected).unwrap());
        assert_ne!(metadata, of(&[("ab", ""), ("b", "1")]).unwrap());
        let map = metadata.to_map();
        assert!(map.iter().map(|(key, value)| (&**key, &**value)).eq(expected));
        assert_eq!(format!("{metadata:?}"), r#"{"": "é", "ab": "", "b": "1"}"#);
    }

    #[test]
    fn a_key_given_twice_is_a_fault() {
        let fault = of(&[("a", "1"), ("b", "2"), ("a", "1")]).unwrap_err();
        assert_eq!(fault, Twice("a".into()));
    }

    #[test]
    fn the_last_of_equal_keys_counts_if_it_may() {
        let mut builder = MetadataBuilder::default();
        for (key, value) in [("a", "1"), ("b", "2"), ("a", ""), ("a", "4")] {
            builder.push(key, value).unwrap();
        }
        assert_eq!(builder.finish_with_last(), of(&[("a", "4"), ("b", "2")]).unwrap());
    }
}
