//! The short forms of cuts in JSON.

use std::num::NonZeroUsize;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::tp::{Heads, Part, Split, Tp};

/// The JSON form of [`Tp`].
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename = "Tp", rename_all = "lowercase")]
pub(super) enum TpForm {
    Replicate,
    Skip,
    First,
    Col,
    Row,
    Vocab,
    Heads(HeadsForm),
    #[serde(rename = "kv_heads")]
    KvHeads(NonZeroUsize),
    Packed(Vec<NonZeroUsize>),
    Qkv([NonZeroUsize; 2]),
    Split(Split),
}

/// Heads, or query heads and key and value heads.
#[derive(Clone, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a number of heads, or [query heads, key and value heads]")]
pub(super) enum HeadsForm {
    All(NonZeroUsize),
    Shared([NonZeroUsize; 2]),
}

/// The JSON form of [`Part`].
#[derive(Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a size above 0, or {size, heads} or {size, kv_heads}")]
pub(super) enum PartForm {
    Size(NonZeroUsize),
    Fields(PartFields),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PartFields {
    #[serde(default = "one")]
    size: NonZeroUsize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    heads: Option<HeadsForm>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kv_heads: Option<NonZeroUsize>,
}

const fn one() -> NonZeroUsize {
    NonZeroUsize::MIN
}

impl HeadsForm {
    fn new(q: NonZeroUsize, kv: NonZeroUsize) -> Self {
        if q == kv { Self::All(q) } else { Self::Shared([q, kv]) }
    }

    const fn numbers(&self) -> (NonZeroUsize, NonZeroUsize) {
        match *self {
            Self::All(heads) => (heads, heads),
            Self::Shared([q, kv]) => (q, kv),
        }
    }
}

impl Serialize for Tp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        TpForm::from(self.clone()).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Tp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        TpForm::deserialize(deserializer).map(Self::from)
    }
}

impl Serialize for Part {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        PartForm::from(*self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::try_from(PartForm::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl TryFrom<PartForm> for Part {
    type Error = &'static str;

    fn try_from(form: PartForm) -> Result<Self, Self::Error> {
        let fields = match form {
            PartForm::Size(size) => return Ok(Self::new(size)),
            PartForm::Fields(fields) => fields,
        };
        let of_heads = match (fields.heads, fields.kv_heads) {
            (None, None) => Self::new(fields.size),
            (Some(form), None) => {
                let (count, kv) = form.numbers();
                Self::query(count, kv)
            }
            (None, Some(count)) => Self::key_value(count),
            (Some(_), Some(_)) => return Err("a part has heads or kv_heads, not both"),
        };
        Ok(Self { size: fields.size, ..of_heads })
    }
}

impl From<Part> for PartForm {
    fn from(part: Part) -> Self {
        let (size, heads, kv_heads) = match part {
            Part { size, heads: None } => return Self::Size(size),
            Part { size, heads: Some(Heads::Query { count, kv }) } => {
                (size, Some(HeadsForm::new(count, kv)), None)
            }
            Part { size, heads: Some(Heads::KeyValue { count }) } => (size, None, Some(count)),
        };
        Self::Fields(PartFields { size, heads, kv_heads })
    }
}

impl From<TpForm> for Tp {
    fn from(form: TpForm) -> Self {
        match form {
            TpForm::Replicate => Self::Replicate,
            TpForm::Skip => Self::Skip,
            TpForm::First => Self::First,
            TpForm::Col => Self::col(),
            TpForm::Row => Self::row(),
            TpForm::Vocab => Self::vocab(),
            TpForm::Heads(form) => {
                let (q, kv) = form.numbers();
                Self::heads(q, kv)
            }
            TpForm::KvHeads(kv) => Self::kv_heads(kv),
            TpForm::Packed(sizes) => Self::packed(sizes.into_iter().map(Part::new).collect()),
            TpForm::Qkv([q, kv]) => Self::qkv(q, kv),
            TpForm::Split(split) => Self::Split(split),
        }
    }
}

impl From<Tp> for TpForm {
    fn from(tp: Tp) -> Self {
        match tp {
            Tp::Replicate => Self::Replicate,
            Tp::Skip => Self::Skip,
            Tp::First => Self::First,
            Tp::Split(split) => short(&split).unwrap_or(Self::Split(split)),
        }
    }
}

/// The short form of a cut, if there is an equivalent one.
fn short(split: &Split) -> Option<TpForm> {
    let first = split.parts.first()?;
    let mut forms = vec![TpForm::Col, TpForm::Row, TpForm::Vocab];
    match first.heads {
        Some(Heads::Query { count, kv }) => {
            forms.push(TpForm::Heads(HeadsForm::new(count, kv)));
            forms.push(TpForm::Qkv([count, kv]));
        }
        Some(Heads::KeyValue { count }) => forms.push(TpForm::KvHeads(count)),
        None => forms.push(TpForm::Packed(split.parts.iter().map(|part| part.size).collect())),
    }
    forms
        .into_iter()
        .find(|form| matches!(Tp::from(form.clone()), Tp::Split(same) if same == *split))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::Tp;

    #[test]
    fn every_form_is_written_as_it_was_read() {
        let split = |fields: Value| json!({ "split": fields });
        for form in [
            json!("replicate"),
            json!("skip"),
            json!("first"),
            json!("col"),
            json!("row"),
            json!("vocab"),
            json!({"heads": 8}),
            json!({"heads": [28, 4]}),
            json!({"packed": [1, 1]}),
            json!({"qkv": [32, 8]}),
            json!({"qkv": [32, 32]}),
            json!({"kv_heads": 4}),
            split(json!({"axis": "in", "parts": [{"size": 1, "heads": [28, 4]}]})),
            split(
                json!({"axis": "out", "unit": 192, "align": 32, "uneven": "balanced", "misaligned": "cover"}),
            ),
            split(json!({"axis": {"dim": 2}, "parts": [2, {"size": 1, "kv_heads": 2}]})),
        ] {
            let read: Tp = serde_json::from_value(form.clone()).unwrap();
            assert_eq!(serde_json::to_value(&read).unwrap(), form);
        }
    }

    #[test]
    fn long_forms_mean_the_short_ones() {
        let cases = [
            (json!({"split": {"axis": "out"}}), json!("col")),
            (json!({"split": {"axis": "out", "parts": [{"heads": 4}]}}), json!({"heads": 4})),
            (json!({"packed": [1]}), json!("col")),
            (json!({"heads": [8, 8]}), json!({"heads": 8})),
        ];
        for (long, short) in cases {
            let read: Tp = serde_json::from_value(long).unwrap();
            assert_eq!(serde_json::to_value(&read).unwrap(), short);
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for form in [
            json!("columns"),
            json!({"heads": 0}),
            json!({"heads": [1, 2, 3]}),
            json!({"packed": [1, 0]}),
            json!({"split": {"axis": "out", "unit": 0}}),
            json!({"split": {"axis": "out", "unti": 2}}),
            json!({"split": {"parts": [1]}}),
            json!({"split": {"axis": "out", "parts": [{"heads": 1, "kv_heads": 1}]}}),
            json!({"split": {"axis": "out", "parts": [{"groups": 2}]}}),
        ] {
            assert!(serde_json::from_value::<Tp>(form.clone()).is_err(), "{form}");
        }
    }
}
