//! The values of a tensor as text and as JSON.

use std::fmt::Debug;

use serde_json::Value;
use tensorfile::{Dtype, Element, Tensor};

/// The first values of a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Values {
    texts: Vec<String>,
    are_all: bool,
}

impl Values {
    /// Takes the first `max` values, or bytes of packed floats, whose values are not whole bytes.
    ///
    /// # Errors
    ///
    /// Those of reading the bytes as elements.
    pub(super) fn of(tensor: &Tensor, max: usize) -> tensorfile::Result<Self> {
        match tensor.dtype() {
            Dtype::Bool => elements::<bool>(tensor, max),
            Dtype::U8 => elements::<u8>(tensor, max),
            Dtype::I8 => elements::<i8>(tensor, max),
            Dtype::U16 => elements::<u16>(tensor, max),
            Dtype::I16 => elements::<i16>(tensor, max),
            Dtype::U32 => elements::<u32>(tensor, max),
            Dtype::I32 => elements::<i32>(tensor, max),
            Dtype::U64 => elements::<u64>(tensor, max),
            Dtype::I64 => elements::<i64>(tensor, max),
            Dtype::F64 => elements::<f64>(tensor, max),
            Dtype::C64 => elements::<[f32; 2]>(tensor, max),
            Dtype::F4 | Dtype::F6E2M3 | Dtype::F6E3M2 => Ok(Self::first(tensor.bytes(), max)),
            _ => Ok(Self::first(&tensor.to_f32()?, max)),
        }
    }

    fn first<T: Debug>(values: &[T], max: usize) -> Self {
        let texts = values.iter().take(max).map(|value| format!("{value:?}")).collect();
        Self { texts, are_all: values.len() <= max }
    }

    /// As `[0.5, 1.0, …]`.
    pub(super) fn list(&self) -> String {
        let more = if self.are_all { &[][..] } else { &["…"] };
        let texts: Vec<_> =
            self.texts.iter().map(String::as_str).chain(more.iter().copied()).collect();
        format!("[{}]", texts.join(", "))
    }

    /// As a list of numbers; values that JSON cannot write as numbers, such as `NaN`, are text.
    pub(super) fn json(&self) -> Value {
        let value =
            |text: &String| serde_json::from_str(text).unwrap_or(Value::from(text.as_str()));
        self.texts.iter().map(value).collect()
    }
}

fn elements<T: Element + Debug>(tensor: &Tensor, max: usize) -> tensorfile::Result<Values> {
    Ok(Values::first(&tensor.to_vec::<T>()?, max))
}

#[cfg(test)]
mod tests {
    use super::Values;
    use serde_json::json;

    #[test]
    fn what_is_left_out_is_marked() {
        assert_eq!(Values::first(&[1, 2, 3], 2).list(), "[1, 2, …]");
        assert_eq!(Values::first(&[1, 2], 2).list(), "[1, 2]");
    }

    #[test]
    fn what_json_has_no_number_for_is_text() {
        let values = Values::first(&[0.5, f32::NAN, f32::NEG_INFINITY], 8);
        assert_eq!(values.json(), json!([0.5, "NaN", "-inf"]));
        assert_eq!(Values::first(&[[1.0, 2.0]], 8).json(), json!([[1.0, 2.0]]));
    }
}
