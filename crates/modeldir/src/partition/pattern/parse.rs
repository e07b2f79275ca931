//! Parses patterns.

use std::str::FromStr;

use super::{Glob, Pattern, Segment};
use crate::partition::error::PartitionError;

/// Maximum alternatives of one segment.
const MAX_ALTERNATIVES: usize = 256;

impl FromStr for Pattern {
    type Err = PartitionError;

    fn from_str(text: &str) -> Result<Self, PartitionError> {
        let refuse = |reason| PartitionError::Pattern { pattern: text.into(), reason };
        let segments: Result<Vec<_>, _> = text.split('.').map(segment).collect();
        let pattern = Self { text: text.into(), segments: segments.map_err(refuse)? };
        for once in [Segment::Layer, Segment::Expert] {
            if pattern.segments.iter().filter(|segment| **segment == once).count() > 1 {
                return Err(refuse("{l} and {e} may each be there once"));
            }
        }
        Ok(pattern)
    }
}

fn segment(text: &str) -> Result<Segment, &'static str> {
    match text {
        "" => return Err("empty segment"),
        "**" => return Ok(Segment::AnyNumber),
        "{l}" => return Ok(Segment::Layer),
        "{e}" => return Ok(Segment::Expert),
        _ => {}
    }
    if text.contains("**") {
        return Err("** stands alone between dots");
    }
    if text.contains(['{', '}']) {
        return Err("only {l} and {e}, alone between dots");
    }
    let globs = alternatives(text)?;
    Ok(Segment::One(
        globs.iter().map(|glob| Glob(glob.split('*').map(Into::into).collect())).collect(),
    ))
}

/// The alternatives of a segment with `(a|b)` in it.
fn alternatives(text: &str) -> Result<Vec<String>, &'static str> {
    const UNCLOSED: &str = "a parenthesis is not closed within its segment";
    let mut done = vec![String::new()];
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('(') {
        let (choice, after) = after.split_once(')').ok_or(UNCLOSED)?;
        if before.contains([')', '|']) || choice.contains('(') {
            return Err("| and parentheses are for (a|b), not nested");
        }
        done = done
            .iter()
            .flat_map(|head| choice.split('|').map(move |option| format!("{head}{before}{option}")))
            .collect();
        if done.len() > MAX_ALTERNATIVES {
            return Err("too many alternatives in one segment");
        }
        rest = after;
    }
    if rest.contains([')', '|']) {
        return Err("| and parentheses are for (a|b), not nested");
    }
    Ok(done.into_iter().map(|head| head + rest).collect())
}

#[cfg(test)]
mod tests {
    use crate::partition::{PartitionError, Pattern};

    #[test]
    fn faults_are_named() {
        let faults = [
            "", "a..b", "a**", "(a", "a)", "a|b", "(a(b))", "(a(b)", "a)(b)", "a|b(c|d)", "{x}",
            "a{l}", "{l}.{l}", "(a.b)",
        ];
        for text in faults {
            let error = text.parse::<Pattern>().unwrap_err();
            assert!(
                matches!(&error, PartitionError::Pattern { pattern, .. } if **pattern == *text),
                "{error}"
            );
        }
    }

    #[test]
    fn a_segment_stands_for_256_names_at_most() {
        let most: Pattern = "(a|b)".repeat(8).parse().unwrap();
        assert!(most.matches("abbabaab") && !most.matches("abbabaac"));
        for text in ["(a|b)".repeat(9), format!("({})", "|".repeat(256))] {
            let error = text.parse::<Pattern>().unwrap_err().to_string();
            assert!(error.contains("too many alternatives in one segment"), "{error}");
        }
    }
}
