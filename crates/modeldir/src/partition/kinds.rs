//! Names that differ only in numbers: the rules decide about one of them for all.

use std::collections::HashMap;

use super::matcher::Decided;
use super::pattern::number;

/// The digits that replace the numbers of a name in its kind. Names with more numbers have no kind.
const DIGITS: [char; 8] = ['0', '1', '2', '3', '4', '5', '6', '7'];

/// The decisions about each kind of name.
///
/// A kind is a name with its numbers replaced by 0, 1, 2 in order: `layers.3.experts.17.up` has the
/// kind `layers.0.experts.1.up`. A number found in the kind is the position of a number in the
/// name. Large models have many names of few kinds.
#[derive(Debug, Default)]
pub(super) struct Kinds {
    decided: HashMap<String, Decided>,
    // The kind and the numbers of the current name, kept to allocate once.
    kind: String,
    numbers: Vec<usize>,
}

impl Kinds {
    /// The decision about a name. `ask` applies the rules, none of which matches only some numbers.
    pub(super) fn decide(&mut self, name: &str, ask: impl FnOnce(&str) -> Decided) -> Decided {
        self.read(name);
        if self.numbers.len() > DIGITS.len() {
            return ask(name);
        }
        let decided = self.decided.get(&self.kind).copied().unwrap_or_else(|| {
            let decided = ask(&self.kind);
            self.decided.insert(self.kind.clone(), decided);
            decided
        });
        let number = |counted: Option<usize>| self.numbers.get(counted?).copied();
        Decided { layer: number(decided.layer), expert: number(decided.expert), ..decided }
    }

    /// Finds the kind and the numbers of a name.
    fn read(&mut self, name: &str) {
        self.kind.clear();
        self.numbers.clear();
        for (i, segment) in name.split('.').enumerate() {
            if i > 0 {
                self.kind.push('.');
            }
            match number(segment) {
                Some(number) => {
                    self.kind.extend(DIGITS.get(self.numbers.len()));
                    self.numbers.push(number);
                }
                None => self.kind.push_str(segment),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Kinds;
    use crate::partition::matcher::Matcher;
    use crate::partition::rule::Rule;

    const PATTERNS: [&str; 10] = [
        "**",
        "**.{e}",
        "{l}.**",
        "*.{l}.a.{e}.*",
        "**.{l}.**.{e}.**",
        "**.{e}.(a|h).{l}.**",
        "**.a*.{e}",
        "**.h.*.**",
        "layers.{l}.**.ab",
        "*.*.(layers|a|)",
    ];

    fn rules(patterns: &[&str]) -> Vec<Rule> {
        patterns.iter().map(|pattern| Rule::new(pattern.parse().unwrap())).collect()
    }

    #[test]
    fn kinds_count_the_numbers_of_a_name() {
        let mut kinds = Kinds::default();
        for (name, kind, numbers) in [
            ("", "", &[][..]),
            ("w", "w", &[]),
            ("h.12.w", "h.0.w", &[12]),
            ("layers.3.experts.017.up", "layers.0.experts.1.up", &[3, 17]),
            ("7", "0", &[7]),
            ("a..9.", "a..0.", &[9]),
            ("a1.2b.3", "a1.2b.0", &[3]),
            ("é1.1.2é", "é1.0.2é", &[1]),
            ("h.99999999.x1", "h.99999999.x1", &[]),
        ] {
            kinds.read(name);
            assert_eq!((&kinds.kind[..], &kinds.numbers[..]), (kind, numbers), "{name:?}");
        }
    }

    #[test]
    fn a_name_of_many_numbers_is_decided_by_itself() {
        let rules = rules(&["**.{l}.w"]);
        for (name, layer) in [
            ("1.2.3.4.5.6.7.31.w", 31),
            ("1.2.3.4.5.6.7.8.31.w", 31),
            ("1.2.3.4.5.6.7.8.9.10.11.31.w", 31),
            ("31.w", 31),
        ] {
            let mut matcher = Matcher::new(&rules).unwrap();
            let decided = Kinds::default().decide(name, |kind| matcher.decide(kind));
            assert_eq!((decided.matched, decided.layer), (true, Some(layer)), "{name}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn rules_decide_about_a_kind_as_about_each_of_its_names(
            patterns in prop::sample::subsequence(PATTERNS.to_vec(), 1..5).prop_shuffle(),
            names in prop::collection::vec(
                prop::collection::vec(
                    prop::sample::select(vec!["a", "h", "layers", "ab", "0", "1", "7", "31", "9999999"]), 1..12),
                1..20),
        ) {
            let rules = rules(&patterns);
            prop_assert!(!Matcher::new(&rules).unwrap().tells_numbers_apart());
            let (mut plain, mut of_kinds) = (Matcher::new(&rules).unwrap(), Matcher::new(&rules).unwrap());
            let mut kinds = Kinds::default();
            for name in names {
                let name = name.join(".");
                let decided = kinds.decide(&name, |kind| of_kinds.decide(kind));
                prop_assert_eq!(decided, plain.decide(&name), "{}", name);
            }
            for rule in 0..rules.len() {
                prop_assert_eq!(of_kinds.has_used(rule), plain.has_used(rule));
            }
        }
    }
}
