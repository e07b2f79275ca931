//! Sizes, times and names as people read them.

use std::time::Duration;

use indicatif::{HumanBytes, HumanCount};
use tensorfile::Quoted;

/// Returns a number of bytes as `1.50 MiB`.
pub(crate) fn bytes(byte_len: u64) -> String {
    HumanBytes(byte_len).to_string()
}

/// Returns a number of things as `93,696`.
pub(crate) fn count(number: u64) -> String {
    HumanCount(number).to_string()
}

/// Returns a number with its noun as `1 tensor` or `93,696 tensors`.
pub(crate) fn counted(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", count(number as u64))
}

/// Returns a time with its unit as `1.50 ms`.
pub(crate) fn time(duration: Duration) -> String {
    let text = format!("{duration:.2?}");
    let unit = text.find(|c: char| c.is_alphabetic()).unwrap_or(text.len());
    format!("{} {}", &text[..unit], &text[unit..])
}

/// Returns bytes over time as `1.50 GiB/s`.
pub(crate) fn rate(byte_len: u64, duration: Duration) -> String {
    let gib = byte_len as f64 / f64::from(1 << 30);
    format!("{:.2} GiB/s", gib / duration.as_secs_f64().max(1e-9))
}

/// Returns a name from a file, quoted and escaped if it is not safe to print on a terminal.
pub(crate) fn shown(name: &str) -> String {
    let quoted = Quoted(name).to_string();
    let is_plain = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) == Some(name);
    if is_plain && !name.is_empty() { name.to_owned() } else { quoted }
}

#[cfg(test)]
mod tests {
    use super::{counted, rate, shown, time};
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
    }
}
