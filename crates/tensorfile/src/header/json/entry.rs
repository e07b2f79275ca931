//! One tensor's entry: an object of dtype, shape and data offsets.

use std::fmt;

use serde::de::{self, Error as _, MapAccess, SeqAccess, Visitor};

use super::visit::{Any, Fault};
use crate::header::dims::{Dims, DimsBuilder};
use crate::header::options::HeaderOptions;
use crate::limit::{Limit, LimitOn};
use crate::{Dtype, Result, UnknownDtype};

/// The fields of a tensor's entry.
pub(super) struct Entry {
    pub(super) dtype: Dtype,
    pub(super) shape: Dims,
    pub(super) offsets: (u64, u64),
}

/// Visits an entry. Other fields are parsed and ignored.
pub(super) struct EntryVisitor<'a>(pub(super) &'a mut Fault, pub(super) &'a HeaderOptions);

impl<'de> Visitor<'de> for EntryVisitor<'_> {
    type Value = Entry;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with dtype, shape and data_offsets")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entry, A::Error> {
        let (mut dtype, mut shape, mut offsets) = (None, None, None);
        while let Some(field) = map.next_key_seed(Any(FieldVisitor))? {
            match field {
                Field::Dtype => {
                    let value = map.next_value_seed(Any(DtypeVisitor(self.0)))?;
                    set(&mut dtype, value, "dtype")?;
                }
                Field::Shape => {
                    let value = map.next_value_seed(Any(ShapeVisitor(self.0, self.1.max_rank)))?;
                    set(&mut shape, value, "shape")?;
                }
                Field::DataOffsets => {
                    let value = map.next_value_seed(Any(OffsetsVisitor))?;
                    set(&mut offsets, value, "data_offsets")?;
                }
                Field::Other => map.next_value_seed(Any(IgnoredVisitor))?,
            }
        }
        let missing = A::Error::missing_field;
        Ok(Entry {
            dtype: dtype.ok_or_else(|| missing("dtype"))?,
            shape: shape.ok_or_else(|| missing("shape"))?,
            offsets: offsets.ok_or_else(|| missing("data_offsets"))?,
        })
    }
}

/// Sets a field that may be given once.
fn set<T, E: de::Error>(field: &mut Option<T>, value: T, name: &'static str) -> Result<(), E> {
    match field.replace(value) {
        None => Ok(()),
        Some(_) => Err(E::duplicate_field(name)),
    }
}

enum Field {
    Dtype,
    Shape,
    DataOffsets,
    Other,
}

struct FieldVisitor;

impl Visitor<'_> for FieldVisitor {
    type Value = Field;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field name")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<Field, E> {
        Ok(match name {
            "dtype" => Field::Dtype,
            "shape" => Field::Shape,
            "data_offsets" => Field::DataOffsets,
            _ => Field::Other,
        })
    }
}

/// Visits a dtype: its name or `{"NAME": null}`, which the reference accepts too.
struct DtypeVisitor<'a>(&'a mut Fault);

impl<'de> Visitor<'de> for DtypeVisitor<'_> {
    type Value = Dtype;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("dtype as a string")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<Dtype, E> {
        name.parse().map_err(|unknown: UnknownDtype| self.0.stop(unknown))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Dtype, A::Error> {
        let lone = |_| A::Error::custom("dtype as an object of more or less than one null");
        let Some(dtype) = map.next_key_seed(Any(self))? else { return Err(lone(())) };
        map.next_value::<()>()?;
        map.next_key::<de::IgnoredAny>()?.map_or(Ok(dtype), |_| Err(lone(())))
    }
}

/// Visits a shape of at most this many dimensions.
struct ShapeVisitor<'a>(&'a mut Fault, usize);

impl<'de> Visitor<'de> for ShapeVisitor<'_> {
    type Value = Dims;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("shape as an array of dimensions")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Dims, A::Error> {
        let mut dims = DimsBuilder::default();
        let mut beyond = 0_usize;
        while let Some(dim) = seq.next_element_seed(Any(IntegerVisitor("a dimension")))? {
            let dim = usize::try_from(dim).map_err(A::Error::custom)?;
            if dims.len() < self.1 {
                dims.push(dim).map_err(|none| self.0.stop(none))?;
            } else {
                beyond = beyond.saturating_add(1);
            }
        }
        let (found, max) = (dims.len().saturating_add(beyond) as u64, self.1 as u64);
        Limit::check(LimitOn::Dimensions, found, max, "HeaderOptions::max_rank")
            .map_err(|limit| self.0.stop(limit))?;
        Ok(dims.finish())
    }
}

/// Visits data offsets: exactly two.
struct OffsetsVisitor;

impl<'de> Visitor<'de> for OffsetsVisitor {
    type Value = (u64, u64);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("data_offsets as an array of begin and end")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(u64, u64), A::Error> {
        let mut offset = || seq.next_element_seed(Any(IntegerVisitor("a data offset")));
        let begin = offset()?.ok_or_else(|| A::Error::invalid_length(0, &self))?;
        let end = offset()?.ok_or_else(|| A::Error::invalid_length(1, &self))?;
        match offset()? {
            None => Ok((begin, end)),
            Some(_) => Err(A::Error::invalid_length(3, &self)),
        }
    }
}

/// Visits an integer from 0 up. As in the reference, `1.0` is not an integer.
struct IntegerVisitor(&'static str);

impl Visitor<'_> for IntegerVisitor {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (an integer, 0 or more)", self.0)
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<u64, E> {
        Ok(value)
    }
}

/// Visits any value and keeps nothing.
struct IgnoredVisitor;

impl<'de> Visitor<'de> for IgnoredVisitor {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: de::Error>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element_seed(Any(Self))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while map.next_key_seed(Any(Self))?.is_some() {
            map.next_value_seed(Any(Self))?;
        }
        Ok(())
    }
}
