//! How errors and reports print numbers of ranks and names.

use std::fmt;

use tensorfile::{Dtype, Quoted};

/// Maximum number of ranks tried for errors that list the numbers that work.
const MAX_TRIED: usize = 256;

/// Maximum numbers of ranks in an error.
const MAX_NAMED: usize = 12;

/// The first numbers of ranks, from two on, over which something works.
pub(super) fn sizes_that_do(works_over: impl Fn(usize) -> bool) -> Box<[usize]> {
    (2..=MAX_TRIED).filter(|size| works_over(*size)).take(MAX_NAMED).collect()
}

/// Displays the unit of a length, if it is not 1.
pub(super) struct Units(pub(super) usize);

impl fmt::Display for Units {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 1 { Ok(()) } else { write!(f, " in blocks of {}", self.0) }
    }
}

/// Displays the numbers of ranks that work.
pub(super) struct Works<'a>(pub(super) &'a [usize]);

impl fmt::Display for Works<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((last, others)) = self.0.split_last() else {
            return write!(f, "; no number up to {MAX_TRIED} would do");
        };
        f.write_str("; ")?;
        for (i, size) in others.iter().enumerate() {
            write!(f, "{}{size}", if i == 0 { "" } else { ", " })?;
        }
        write!(f, "{}{last} would do", if others.is_empty() { "" } else { " or " })
    }
}

/// Displays the numbers of ranks that divide a number of things.
pub(super) struct Divisors(pub(super) usize);

impl fmt::Display for Divisors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Works(&sizes_that_do(|size| self.0.checked_rem(size) == Some(0))).fmt(f)
    }
}

/// Displays the expected number of layers after the number of stages, if it is known.
pub(super) struct AndLayers(pub(super) Option<usize>);

impl fmt::Display for AndLayers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|layers| write!(f, ", {layers} layers"))
    }
}

/// Displays rules of one's own for tensors of this pattern.
pub(super) struct OwnRule<'a>(pub(super) &'a str);

impl fmt::Display for OwnRule<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a rule of your own before the others says what to do with it: \
             {{\"match\": {}, \"tp\": \"replicate\"}}, or \"tp\": {{\"split\": {{\"axis\": {{\"dim\": \
             0}}}}}}",
            Quoted(self.0)
        )
    }
}

/// Displays a leaf with its dtype and the method of the configuration.
pub(super) struct Stored<'a> {
    pub(super) leaf: &'a str,
    pub(super) dtype: &'a Dtype,
    pub(super) method: Option<&'a str>,
}

impl fmt::Display for Stored<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", Quoted(self.leaf), self.dtype)?;
        match self.method {
            Some(method) => write!(f, ", quantized by {},", Quoted(method)),
            None => Ok(()),
        }
    }
}

/// Displays the first ten names and the number of others.
pub(super) struct Shown<'a>(pub(super) &'a [String]);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, name) in self.0.iter().take(10).enumerate() {
            write!(f, "{}{}", if i == 0 { "" } else { ", " }, Quoted(name))?;
        }
        match self.0.len().saturating_sub(10) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{AndLayers, Shown};

    #[test]
    fn ten_names_are_shown_and_more_are_counted() {
        let names: Vec<String> = (0..11).map(|i| format!("w{i}")).collect();
        let ten = r#""w0", "w1", "w2", "w3", "w4", "w5", "w6", "w7", "w8", "w9""#;
        assert_eq!(Shown(&names[..10]).to_string(), ten);
        assert_eq!(Shown(&names).to_string(), format!("{ten} and 1 more"));
        assert_eq!(Shown(&[]).to_string(), "");
    }

    #[test]
    fn layers_are_named_where_they_are_known() {
        assert_eq!(AndLayers(Some(80)).to_string(), ", 80 layers");
        assert_eq!(AndLayers(None).to_string(), "");
    }
}
