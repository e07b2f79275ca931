//! Names similar to one that was not found.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

/// Most names returned.
const MAX_SIMILAR: usize = 3;

/// Most bytes of a name that may differ, in one place.
const MAX_EDIT: usize = 2;

/// At most three of these names that are similar to `asked`; looks at each name once.
///
/// Names that differ only by a prefix such as `model.` come first, then names that differ in one
/// place by at most two bytes; each kind keeps its order.
///
/// ```
/// let names = ["lm_head.weight", "model.norm.bias", "model.norm.weight"];
/// let similar = tensorfile::similar_names("norm.weight", names);
/// assert_eq!(similar.iter().map(|name| &**name).collect::<Vec<_>>(), ["model.norm.weight"]);
/// ```
#[must_use]
pub fn similar_names<'a>(asked: &str, names: impl IntoIterator<Item = &'a str>) -> Box<[Box<str>]> {
    let (mut same_end, mut one_edit) = (Vec::new(), Vec::new());
    for name in names {
        let kind = if ends_with_part(name, asked) || ends_with_part(asked, name) {
            &mut same_end
        } else if differ_in_one_place(name, asked) {
            &mut one_edit
        } else {
            continue;
        };
        if kind.len() < MAX_SIMILAR {
            kind.push(name);
        }
    }
    same_end.into_iter().chain(one_edit).take(MAX_SIMILAR).map(Box::from).collect()
}

/// Whether a name is this end after a prefix that ends in a dot.
fn ends_with_part(name: &str, end: &str) -> bool {
    !end.is_empty() && name.strip_suffix(end).is_some_and(|prefix| prefix.ends_with('.'))
}

/// Whether two names differ only by a few bytes in one place.
fn differ_in_one_place(a: &str, b: &str) -> bool {
    if a.len().abs_diff(b.len()) > MAX_EDIT {
        return false;
    }
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let shorter = a.len().min(b.len());
    let start = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let ends = a.iter().rev().zip(b.iter().rev());
    let rest = shorter.saturating_sub(start);
    let end = ends.take(rest).take_while(|(a, b)| a == b).count();
    let same = start.saturating_add(end);
    a.len().max(b.len()).saturating_sub(same) <= MAX_EDIT && same > 0
}

#[cfg(test)]
mod tests {
    use super::similar_names;

    fn similar(asked: &str) -> Vec<String> {
        let names =
            ["h.0.w", "h.1.w", "h.2.w", "h.3.w", "lm_head.weight", "model.lm_head.bias", "z"];
        similar_names(asked, names).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn prefixes_may_be_missing_or_too_many() {
        assert_eq!(similar("model.lm_head.weight"), ["lm_head.weight"]);
        assert_eq!(similar("lm_head.bias"), ["model.lm_head.bias"]);
        assert_eq!(similar("head.weight"), [""; 0]);
    }

    #[test]
    fn small_differences_are_found_in_order_and_cut() {
        assert_eq!(similar("h.4.w"), ["h.0.w", "h.1.w", "h.2.w"]);
        assert_eq!(similar("lm_haed.weight"), ["lm_head.weight"]);
        assert_eq!(similar("lm_head.weigh"), ["lm_head.weight"]);
    }

    #[test]
    fn what_has_nothing_in_common_is_not_similar() {
        for asked in ["", "q", "something.else"] {
            assert_eq!(similar(asked), [""; 0], "{asked}");
        }
    }
}
