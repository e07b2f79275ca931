//! The syntax of a part of a tensor on the command line.

use std::ops::Range;
use std::str::FromStr;

use tensorfile::Selection;

/// A range for each of the first dimensions, as `0..2,:,3`: from 0 up to 2, all, and 3 alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ranges(Vec<(Option<usize>, Option<usize>)>);

impl Ranges {
    /// The selection for a tensor of this shape; dimensions without a range are taken whole.
    pub(super) fn selection(&self, shape: &[usize]) -> Selection {
        let range = |(dim, &(start, end)): (usize, &(Option<usize>, Option<usize>))| {
            let len = shape.get(dim).copied().unwrap_or(0);
            (start.is_some() || end.is_some()).then(|| start.unwrap_or(0)..end.unwrap_or(len))
        };
        let mut ranges: Vec<Option<Range<usize>>> = self.0.iter().enumerate().map(range).collect();
        ranges.resize(ranges.len().max(shape.len()), None);
        Selection::from_ranges(&ranges)
    }
}

impl FromStr for Ranges {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.split(',').map(dim).collect::<Result<_, _>>().map(Self)
    }
}

/// Reads the range of one dimension.
fn dim(text: &str) -> Result<(Option<usize>, Option<usize>), String> {
    let text = text.trim();
    let number = |text: &str| {
        let number = text.parse::<usize>();
        number.map_err(|_| format!("expected a range as 0..2, 3 or :, found {text:?}"))
    };
    let optional = |text: &str| (!text.is_empty()).then(|| number(text)).transpose();
    if text == ":" {
        return Ok((None, None));
    }
    if let Some((start, end)) = text.split_once("..") {
        return Ok((optional(start)?, optional(end)?));
    }
    let index = number(text)?;
    Ok((Some(index), Some(index.saturating_add(1))))
}

#[cfg(test)]
mod tests {
    use super::Ranges;
    use tensorfile::Selection;

    #[test]
    fn ranges_have_open_ends_and_may_be_fewer_than_dimensions() {
        let ranges: Ranges = "0..2, :, 3, 1.., ..4".parse().unwrap();
        let expected = [Some(0..2), None, Some(3..4), Some(1..6), Some(0..4), None];
        assert_eq!(ranges.selection(&[9, 9, 9, 6, 9, 9]), Selection::from_ranges(&expected));
    }

    #[test]
    fn rejects_what_is_no_range() {
        for text in ["", "a", "1,", "-1", "1..b", "1...2"] {
            assert!(text.parse::<Ranges>().is_err(), "{text:?}");
        }
    }
}
