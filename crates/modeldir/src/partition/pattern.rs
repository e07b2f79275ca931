//! Patterns for the names of tensors: dotted segments, wildcards, and two numbers to find.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "positions in a list of segments, or in a text"
)]

mod parse;

use std::fmt;

use serde::{Deserialize, Serialize};

use super::error::PartitionError;

/// Numbers of layers and experts are below this.
pub(super) const MAX_NUMBER: usize = 1 << 20;

/// A pattern of names on disk, which chooses the tensors of a rule.
///
/// A pattern is a list of segments with dots between them, and has to match the whole name:
///
/// | segment | matches |
/// | --- | --- |
/// | `weight` | itself |
/// | `*` | one segment, or within a segment any part of it: `gate_up_proj*` |
/// | `**` | any number of segments, also none |
/// | `(q\|k\|v)_proj` | each of the alternatives |
/// | `{l}` | a whole number: the layer |
/// | `{e}` | a whole number: the expert |
///
/// ```
/// use modeldir::partition::Pattern;
///
/// let pattern: Pattern = "**.layers.{l}.self_attn.(q|k|v)_proj.*".parse()?;
/// assert!(pattern.matches("model.layers.7.self_attn.q_proj.weight"));
/// assert!(!pattern.matches("model.layers.7.self_attn.o_proj.weight"));
/// # Ok::<(), modeldir::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern {
    text: Box<str>,
    segments: Vec<Segment>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    /// `**`
    AnyNumber,
    /// `{l}`
    Layer,
    /// `{e}`
    Expert,
    /// One segment that is any of these.
    One(Vec<Glob>),
}

/// Text with a `*` between any two pieces.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Glob(Vec<Box<str>>);

/// The numbers of a name at `{l}` and `{e}` of its pattern.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Numbers {
    pub(super) layer: Option<usize>,
    pub(super) expert: Option<usize>,
}

impl Pattern {
    /// Whether the pattern matches the whole name.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        self.numbers(&name.split('.').collect::<Vec<_>>()).is_some()
    }

    /// The pattern as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the pattern finds a layer (`{l}`).
    pub(super) fn has_layer(&self) -> bool {
        self.segments.contains(&Segment::Layer)
    }

    /// Whether the pattern finds an expert (`{e}`).
    pub(super) fn has_expert(&self) -> bool {
        self.segments.contains(&Segment::Expert)
    }

    /// Whether the last segment of every matching name is one that the pattern spells out.
    pub(super) fn names_leaf(&self) -> bool {
        match self.segments.last() {
            Some(Segment::One(globs)) => globs.iter().all(|glob| glob.literal().is_some()),
            _ => false,
        }
    }

    /// Whether the pattern matches some numbers and not others.
    pub(super) fn tells_numbers_apart(&self) -> bool {
        let tells = |segment: &Segment| match segment {
            Segment::One(globs) => globs.iter().any(Glob::tells_numbers_apart),
            Segment::AnyNumber | Segment::Layer | Segment::Expert => false,
        };
        self.segments.iter().any(tells)
    }

    /// The numbers in a name, given by its segments, if the pattern matches.
    ///
    /// Takes time in proportion to the segments of both.
    pub(super) fn numbers(&self, name: &[&str]) -> Option<Numbers> {
        // Nearly all patterns start with their only `**`: the rest matches the end of the name.
        if let [Segment::AnyNumber, rest @ ..] = &self.segments[..] {
            if !rest.contains(&Segment::AnyNumber) {
                let tail = name.get(name.len().checked_sub(rest.len())?..)?;
                let mut numbers = Numbers::default();
                let mut pairs = rest.iter().zip(tail);
                return pairs
                    .all(|(segment, part)| segment.takes(part, &mut numbers))
                    .then_some(numbers);
            }
        }
        self.numbers_anywhere(name)
    }

    /// As [`numbers`](Self::numbers), for every pattern.
    fn numbers_anywhere(&self, name: &[&str]) -> Option<Numbers> {
        let mut numbers = Numbers::default();
        let (mut at, mut next) = (0, 0);
        // Where to resume after a mismatch: after the last `**`, which takes one more segment.
        let mut resume: Option<(usize, usize)> = None;
        while let Some(part) = name.get(next) {
            match self.segments.get(at) {
                Some(Segment::AnyNumber) => {
                    at += 1;
                    resume = Some((at, next));
                    continue;
                }
                Some(segment) if segment.takes(part, &mut numbers) => {
                    (at, next) = (at + 1, next + 1);
                    continue;
                }
                _ => {}
            }
            let (after, start) = resume?;
            resume = Some((after, start + 1));
            (at, next) = (after, start + 1);
        }
        let mut rest = self.segments.get(at..).unwrap_or_default().iter();
        rest.all(|segment| *segment == Segment::AnyNumber).then_some(numbers)
    }

    /// A fixed segment of every matching name: its distance from the end, and its alternatives.
    pub(super) fn landmark(&self) -> Option<(usize, Vec<&str>)> {
        for (from_end, segment) in self.segments.iter().rev().enumerate() {
            match segment {
                Segment::AnyNumber => return None,
                Segment::Layer | Segment::Expert => {}
                Segment::One(globs) => {
                    let literals: Option<Vec<&str>> = globs.iter().map(Glob::literal).collect();
                    if let Some(literals) = literals {
                        return Some((from_end, literals));
                    }
                }
            }
        }
        None
    }
}

impl Segment {
    fn takes(&self, part: &str, numbers: &mut Numbers) -> bool {
        match self {
            Self::AnyNumber => false,
            Self::Layer => {
                numbers.layer = number(part);
                numbers.layer.is_some()
            }
            Self::Expert => {
                numbers.expert = number(part);
                numbers.expert.is_some()
            }
            Self::One(globs) => globs.iter().any(|glob| glob.takes(part)),
        }
    }
}

impl Glob {
    fn literal(&self) -> Option<&str> {
        if let [only] = &self.0[..] { Some(only) } else { None }
    }

    /// Whether it takes some numbers and not others: it has digits and nothing else.
    fn tells_numbers_apart(&self) -> bool {
        let mut bytes = self.0.iter().flat_map(|piece| piece.bytes()).peekable();
        bytes.peek().is_some() && bytes.all(|byte| byte.is_ascii_digit())
    }

    fn takes(&self, text: &str) -> bool {
        let [first, middle @ .., last] = &self.0[..] else {
            return self.literal() == Some(text);
        };
        let rest = text.as_bytes().strip_prefix(first.as_bytes());
        let Some(mut rest) = rest.and_then(|rest| rest.strip_suffix(last.as_bytes())) else {
            return false;
        };
        for piece in middle.iter().filter(|piece| !piece.is_empty()) {
            let found = rest.windows(piece.len()).position(|window| window == piece.as_bytes());
            let Some(after) = found.and_then(|at| rest.get(at + piece.len()..)) else {
                return false;
            };
            rest = after;
        }
        true
    }
}

/// The number in a segment, if it can be that of a layer or an expert.
pub(super) fn number(segment: &str) -> Option<usize> {
    let digits = !segment.is_empty() && segment.bytes().all(|byte| byte.is_ascii_digit());
    let number = if digits { segment.parse().ok() } else { None };
    number.filter(|number| *number < MAX_NUMBER)
}

impl TryFrom<String> for Pattern {
    type Error = PartitionError;

    fn try_from(text: String) -> Result<Self, PartitionError> {
        text.parse()
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.text.into()
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

#[cfg(test)]
mod tests {
    use super::{Numbers, Pattern};

    fn pattern(text: &str) -> Pattern {
        text.parse().unwrap()
    }

    #[test]
    fn the_whole_name_has_to_match() {
        let cases: &[(&str, &str, bool)] = &[
            ("a.b", "a.b", true),
            ("a.b", "a.b.c", false),
            ("a.b", "x.a.b", false),
            ("a.*", "a.b", true),
            ("a.*", "a", false),
            ("a.*", "a.b.c", false),
            ("a.**", "a", true),
            ("a.**", "a.b.c", true),
            ("**", "a", true),
            ("**.b", "b", true),
            ("**.b", "a.b.b", true),
            ("**.a.*.**.z", "x.a.a.q.z", true),
            ("**.a.*.**.z", "a.z", false),
            ("gate_up_proj*", "gate_up_proj_bias", true),
            ("gate_up_proj*", "gate_up_proj", true),
            ("gate_up_proj*", "gate_proj", false),
            ("ab*ba", "aba", false),
            ("ab*ba", "abba", true),
            ("a*b*c", "a-b-c", true),
            ("a*b*c", "a-c", false),
            ("w(1|3).*", "w3.weight", true),
            ("w(1|3).*", "w2.weight", false),
            ("(q|k)_(a|b)", "k_a", true),
            ("x.(proj|)", "x.", true),
            ("h.{l}.w", "h.12.w", true),
            ("h.{l}.w", "h.x.w", false),
            ("h.{l}.w", "h.-1.w", false),
            ("h.{l}.w", "h.+5.w", false),
            ("h.{l}.w", "h..w", false),
            ("h.{l}.w", "h.1048575.w", true),
            ("h.{l}.w", "h.1048576.w", false),
            ("h.{l}.w", "h.99999999999999999999.w", false),
        ];
        for (text, name, expected) in cases {
            assert_eq!(pattern(text).matches(name), *expected, "{text} {name}");
        }
    }

    #[test]
    fn numbers_are_those_of_the_final_match() {
        let found = |text: &str, name: &str| {
            pattern(text).numbers(&name.split('.').collect::<Vec<_>>()).unwrap()
        };
        let both = Numbers { layer: Some(3), expert: Some(14) };
        assert_eq!(found("**.{l}.mlp.experts.{e}.*", "m.1.3.mlp.experts.14.w"), both);
        assert_eq!(found("**.{l}.**.{e}", "5.x.14"), Numbers { layer: Some(5), ..both });
    }

    #[test]
    fn many_wildcards_take_no_time() {
        let text = "**.a.".repeat(50) + "b";
        let name = "a.".repeat(5000) + "c";
        assert!(!pattern(&text).matches(&name));
    }

    #[test]
    fn digits_tell_numbers_apart() {
        for text in ["h.0.w", "h.(a|1).w", "h.1*", "h.*2", "h.1*2*3"] {
            assert!(pattern(text).tells_numbers_apart(), "{text}");
        }
        for text in ["h.*.w", "**.{l}.{e}", "w1", "a*1", "(proj|)", "1-2"] {
            assert!(!pattern(text).tells_numbers_apart(), "{text}");
        }
    }

    #[test]
    fn landmarks_are_counted_from_the_end() {
        assert_eq!(pattern("**.(q|k)_proj.*").landmark(), Some((1, vec!["q_proj", "k_proj"])));
        assert_eq!(pattern("**.experts.{e}.w*").landmark(), Some((2, vec!["experts"])));
        assert_eq!(pattern("a.**").landmark(), None);
    }

    #[test]
    fn a_pattern_is_a_string_in_json() {
        let text = r#""**.layers.{l}.(a|b).*""#;
        let read: Pattern = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
        assert_eq!(format!("{read} {read:?}"), format!("**.layers.{{l}}.(a|b).* {text}"));
        let error = serde_json::from_str::<Pattern>(r#""a..b""#).unwrap_err().to_string();
        assert!(error.contains("empty segment"), "{error}");
    }
}
