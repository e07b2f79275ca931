//! Sizes, times, names and values as people read them.

use std::fmt::Debug;
use std::time::Duration;

use indicatif::{HumanBytes, HumanCount};
use tensorfile::{Dtype, Element, Quoted, Tensor};

/// Returns a number of bytes as `1.50 MiB`.
pub fn bytes(byte_len: u64) -> String {
    HumanBytes(byte_len).to_string()
}

/// Returns a number of things as `93,696`.
pub fn count(number: u64) -> String {
    HumanCount(number).to_string()
}

/// Returns a number with its noun as `1 tensor` or `93,696 tensors`.
pub fn counted(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", count(number as u64))
}

/// Returns a time with its unit as `1.50 ms`.
pub fn time(duration: Duration) -> String {
    let text = format!("{duration:.2?}");
    let unit = text.find(|c: char| c.is_alphabetic()).unwrap_or(text.len());
    format!("{} {}", &text[..unit], &text[unit..])
}

/// Returns bytes over time as `1.50 GiB/s`.
pub fn rate(byte_len: u64, duration: Duration) -> String {
    let gib = byte_len as f64 / f64::from(1 << 30);
    format!("{:.2} GiB/s", gib / duration.as_secs_f64().max(1e-9))
}

/// Returns a name from a file: as it is if that is harmless on a terminal, else quoted and escaped.
pub fn shown(name: &str) -> String {
    let quoted = Quoted(name).to_string();
    let is_plain = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) == Some(name);
    if is_plain && !name.is_empty() { name.to_owned() } else { quoted }
}

/// Returns the first values of a tensor as `[0.5, 1.0, …]`.
///
/// # Errors
///
/// Those of reading the bytes as elements.
pub fn first_values(tensor: &Tensor, max: usize) -> tensorfile::Result<String> {
    match tensor.dtype() {
        Dtype::Bool => list::<bool>(tensor, max),
        Dtype::U8 => list::<u8>(tensor, max),
        Dtype::I8 => list::<i8>(tensor, max),
        Dtype::U16 => list::<u16>(tensor, max),
        Dtype::I16 => list::<i16>(tensor, max),
        Dtype::U32 => list::<u32>(tensor, max),
        Dtype::I32 => list::<i32>(tensor, max),
        Dtype::U64 => list::<u64>(tensor, max),
        Dtype::I64 => list::<i64>(tensor, max),
        Dtype::F64 => list::<f64>(tensor, max),
        Dtype::C64 => list::<[f32; 2]>(tensor, max),
        Dtype::F4 | Dtype::F6E2M3 | Dtype::F6E3M2 => {
            Ok(format!("bytes {}", cut(tensor.bytes(), max)))
        }
        _ => Ok(cut(&tensor.to_f32()?, max)),
    }
}

fn list<T: Element + Debug>(tensor: &Tensor, max: usize) -> tensorfile::Result<String> {
    Ok(cut(&tensor.to_vec::<T>()?, max))
}

fn cut<T: Debug>(values: &[T], max: usize) -> String {
    let mut shown: Vec<String> =
        values.iter().take(max).map(|value| format!("{value:?}")).collect();
    if values.len() > max {
        shown.push("…".to_owned());
    }
    format!("[{}]", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::{counted, cut, rate, shown, time};
    use std::time::Duration;

    #[test]
    fn only_odd_names_are_quoted() {
        assert_eq!(shown("h.0.w"), "h.0.w");
        assert_eq!(shown(""), "\"\"");
        assert_eq!(shown("a\u{1b}[31m"), r#""a\u{1b}[31m""#);
    }

    #[test]
    fn numbers_have_units() {
        assert_eq!(
            (counted(1, "read"), counted(2000, "read")),
            ("1 read".into(), "2,000 reads".into())
        );
        assert_eq!(time(Duration::from_micros(1500)), "1.50 ms");
        assert_eq!(rate(3 << 30, Duration::from_secs(2)), "1.50 GiB/s");
        assert_eq!(cut(&[1, 2, 3], 2), "[1, 2, …]");
    }
}
