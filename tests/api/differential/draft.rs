//! Files in parts, so that each part can be spoiled or written otherwise.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// A file in parts, each of which can be spoiled.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    entries: Vec<Entry>,
    metadata: Option<String>,
    /// White space or other text before, within and after the object.
    space: [&'static str; 3],
    data: Vec<u8>,
    /// Added to the header length.
    len_error: i64,
}

/// A member of the header, as JSON texts.
#[derive(Clone, Debug)]
struct Entry {
    key: String,
    dtype: String,
    shape: String,
    begin: u64,
    end: u64,
    /// Which fields, in which order; beyond the three, `extra`.
    fields: Vec<Field>,
    extra: String,
    /// The whole value, in place of the fields.
    value: Option<String>,
}

#[derive(Clone, Copy, Debug)]
enum Field {
    Dtype,
    Shape,
    Offsets,
    Extra,
}

impl Draft {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let [before, within, after] = self.space;
        let mut members: Vec<String> =
            self.entries.iter().map(|entry| entry.text(within)).collect();
        if let Some(metadata) = &self.metadata {
            members.insert(members.len() / 2, format!("\"__metadata__\":{within}{metadata}"));
        }
        let header = format!("{before}{{{within}{}}}{after}", members.join(&format!("{within},")));
        let len = (header.len() as u64).wrapping_add_signed(self.len_error);
        [&len.to_le_bytes(), header.as_bytes(), &self.data].concat()
    }
}

impl Entry {
    fn text(&self, space: &str) -> String {
        let fields = || {
            let fields: Vec<_> =
                self.fields.iter().map(|field| self.field(*field, space)).collect();
            format!("{{{space}{}}}", fields.join(","))
        };
        format!("{}:{space}{}", self.key, self.value.clone().unwrap_or_else(fields))
    }

    fn field(&self, field: Field, space: &str) -> String {
        match field {
            Field::Dtype => format!("\"dtype\"{space}:{}", self.dtype),
            Field::Shape => format!("\"shape\":{}{space}", self.shape),
            Field::Offsets => {
                format!("\"data_offsets\":[{},{space}{}]", self.begin, self.end)
            }
            Field::Extra => self.extra.clone(),
        }
    }
}

/// A way of spoiling, or only of writing otherwise.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Dtype(&'static str),
    Shape(&'static str),
    Value(&'static str),
    Key(&'static str),
    Begin(i64),
    End(i64),
    SwapOffsets(Index),
    SwapEntries(Index),
    RotateFields,
    DropField(Index),
    DoubleField(Index),
    Extra(&'static str),
    NestedExtra(usize, bool),
    Metadata(&'static str),
    Space(usize, &'static str),
    HeaderLen(i64),
    MoreData(usize),
    LessData(usize),
}

const DTYPES: &[&str] = &[
    "\"F32\"",
    "\"f32\"",
    "\"F8_E4M3\"",
    "\"F8_E8M0\"",
    "\"F4\"",
    "\"BOOL\"",
    "\"C64\"",
    "\"Q4_K\"",
    "\"\"",
    "null",
    "3",
    "{\"F32\":null}",
    "{\"U8\":{}}",
    "{}",
    "[\"F32\"]",
    "\"\\u00463\\u0032\"",
    "\"U8 \"",
];
const SHAPES: &[&str] = &[
    "[]",
    "[0]",
    "[1]",
    "[2,2]",
    "[1,1,1,1,1,1]",
    "[4294967296,4294967296]",
    "[18446744073709551615]",
    "[18446744073709551616]",
    "[18446744073709551615,0]",
    "[0,18446744073709551615,2]",
    "[-1]",
    "[-0]",
    "[1.0]",
    "[1e0]",
    "[01]",
    "[\"1\"]",
    "[[1]]",
    "null",
    "{}",
    "\"\"",
    "[1,]",
    "[ 1 ]",
    "[1 2]",
    "[null]",
    "1",
];
const VALUES: &[&str] = &[
    "null",
    "{}",
    "[]",
    "\"\"",
    "1",
    "[\"U8\",[1],[0,1]]",
    "{\"dtype\":\"U8\"}",
    "{\"__metadata__\":{}}",
    "tru",
    "{,}",
];
const KEYS: &[&str] = &[
    "\"\"",
    "\"a\"",
    "\"\\u0061\"",
    "\"b\\\"c\"",
    "\"\\ud83d\\ude00\"",
    "\"\\ud800\"",
    "\"__metadata__\"",
    "\"\\u005f_metadata__\"",
    "\"\u{2028}\"",
    "\"\t\"",
    "\"\\t\"",
    "a",
    "1",
    "\"\u{e9}\"",
    "\"a\\u0000\"",
    "\"\\x\"",
];
const EXTRAS: &[&str] = &[
    "\"x\":1",
    "\"x\":null",
    "\"x\":{\"dtype\":\"U8\"}",
    "\"x\":[1,[2,[3]]]",
    "\"x\":1e999",
    "\"x\":-1.5e-3",
    "\"x\":123456789012345678901234567890",
    "\"x\":\"\\ud800\"",
    "\"x\":\"\\u0000\"",
    "\"x\":tru",
    "\"x\":",
    "\"x\"",
    "\"dtype\":\"U8\"",
    "\"dtyp\\u0065\":\"U8\"",
    "\"\":0",
    "\"x\":01",
    "\"x\":+1",
    "\"x\":.5",
    "\"x\":NaN",
    "\"x\":1,\"x\":2",
];
const METADATA: &[&str] = &[
    "{}",
    "null",
    "{\"format\":\"pt\"}",
    "{\"a\":1}",
    "{\"a\":null}",
    "{\"a\":\"b\",\"a\":\"c\"}",
    "[]",
    "\"\"",
    "0",
    "{\"a\":\"\\u00e9\\n\"}",
    "{\"\\u0061\":\"x\",\"a\":\"y\"}",
    "{\"a\":{}}",
    "{\"a\":\"\\ud800\"}",
    "{\"a\":\"b\",}",
    "{\"__metadata__\":\"x\"}",
    "{\"\":\"\"}",
];
const SPACES: &[&str] = &[
    "", " ", "\t\r\n ", "\u{b}", "\u{a0}", "\u{feff}", "\0", "//", "{", "}", ",", "        ", "\n",
];

pub(super) fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        1 => select(DTYPES).prop_map(Change::Dtype),
        1 => select(SHAPES).prop_map(Change::Shape),
        1 => select(VALUES).prop_map(Change::Value),
        3 => select(KEYS).prop_map(Change::Key),
        1 => select(&[-1_i64, 1, 4, i64::MIN][..]).prop_map(Change::Begin),
        1 => select(&[-1_i64, 1, 4, i64::MIN][..]).prop_map(Change::End),
        1 => any::<Index>().prop_map(Change::SwapOffsets),
        3 => any::<Index>().prop_map(Change::SwapEntries),
        3 => Just(Change::RotateFields),
        1 => any::<Index>().prop_map(Change::DropField),
        1 => any::<Index>().prop_map(Change::DoubleField),
        3 => select(EXTRAS).prop_map(Change::Extra),
        1 => (118_usize..132, any::<bool>()).prop_map(|(depth, list)| Change::NestedExtra(depth, list)),
        3 => select(METADATA).prop_map(Change::Metadata),
        3 => (0_usize..3, select(SPACES)).prop_map(|(place, text)| Change::Space(place, text)),
        1 => (-9_i64..9).prop_map(Change::HeaderLen),
        1 => (1_usize..9).prop_map(Change::MoreData),
        1 => (1_usize..9).prop_map(Change::LessData),
    ]
}

pub(super) fn apply(draft: &mut Draft, at: Index, change: &Change) {
    let len = draft.entries.len();
    if len > 0 {
        change_entry(&mut draft.entries, at.index(len), change);
    }
    match change {
        Change::Metadata(text) => draft.metadata = Some((*text).to_owned()),
        Change::Space(place, text) => draft.space[*place] = text,
        Change::HeaderLen(by) => draft.len_error = *by,
        Change::MoreData(by) => draft.data.extend(vec![0; *by]),
        Change::LessData(by) => draft.data.truncate(draft.data.len().saturating_sub(*by)),
        _ => {}
    }
}

fn change_entry(entries: &mut [Entry], at: usize, change: &Change) {
    if let Change::SwapEntries(with) = change {
        return entries.swap(at, with.index(entries.len()));
    }
    if let Change::SwapOffsets(with) = change {
        let with = with.index(entries.len());
        let (one, other) = (&entries[at], &entries[with]);
        let ((begin, end), (other_begin, other_end)) =
            ((one.begin, one.end), (other.begin, other.end));
        (entries[at].begin, entries[at].end) = (other_begin, other_end);
        (entries[with].begin, entries[with].end) = (begin, end);
        return;
    }
    let entry = &mut entries[at];
    match change {
        Change::Dtype(text) => (*text).clone_into(&mut entry.dtype),
        Change::Shape(text) => (*text).clone_into(&mut entry.shape),
        Change::Value(text) => entry.value = Some((*text).to_owned()),
        Change::Key(text) => (*text).clone_into(&mut entry.key),
        Change::Begin(by) => entry.begin = entry.begin.wrapping_add_signed(*by),
        Change::End(by) => entry.end = entry.end.wrapping_add_signed(*by),
        Change::RotateFields => entry.fields.rotate_left(1),
        Change::DropField(field) => {
            let field = field.index(entry.fields.len());
            entry.fields.remove(field);
        }
        Change::DoubleField(field) => {
            let field = entry.fields[field.index(entry.fields.len())];
            entry.fields.push(field);
        }
        Change::Extra(text) => {
            (*text).clone_into(&mut entry.extra);
            entry.fields.insert(entry.fields.len() / 2, Field::Extra);
        }
        Change::NestedExtra(depth, list) => {
            let (open, close) = if *list { ("[", "]") } else { ("{\"k\":", "}") };
            entry.extra = format!("\"x\":{}1{}", open.repeat(*depth), close.repeat(*depth));
            entry.fields.push(Field::Extra);
        }
        _ => {}
    }
}

/// Right files: every dtype, ranks up to five, empty tensors and scalars.
pub(super) fn valid() -> impl Strategy<Value = Draft> {
    let shape = vec(0_usize..4, 0..5);
    let tensors = vec((select(&modeldir_fixtures::DTYPES[..]), shape), 0..6);
    (tensors, any::<u8>()).prop_map(|(tensors, seed)| {
        let mut draft = Draft {
            entries: Vec::new(),
            metadata: None,
            space: ["", "", " "],
            data: Vec::new(),
            len_error: 0,
        };
        for (i, ((dtype, bits), mut shape)) in tensors.into_iter().enumerate() {
            if shape.iter().product::<usize>() * bits % 8 != 0 {
                shape.push(8);
            }
            let begin = draft.data.len();
            let byte_len = shape.iter().product::<usize>() * bits / 8;
            draft.data.extend((0..=250).cycle().take(byte_len).map(|byte: u8| byte ^ seed));
            draft.entries.push(Entry {
                key: format!("\"t.{i}\""),
                dtype: format!("\"{dtype}\""),
                shape: format!("{shape:?}").replace(' ', ""),
                begin: begin as u64,
                end: draft.data.len() as u64,
                fields: vec![Field::Dtype, Field::Shape, Field::Offsets],
                extra: String::new(),
                value: None,
            });
        }
        draft
    })
}
