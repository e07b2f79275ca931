//! Divides layers among devices of unequal memory.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "bytes are 64-bit numbers summed in 128 bits, and devices are a list"
)]

use super::error::PartitionError;
use super::placement::LayerSplit;
use super::rule::Pp;
use super::rules::{ExtraLayers, Partition};
use crate::{Error, Result};

/// The denominator of the fractions of a budget.
const WHOLE: u128 = 1 << 32;

impl Partition {
    /// Divides the layers among devices, given the bytes that each device has for weights. The
    /// largest filled fraction of a device is as small as possible.
    ///
    /// Each device gets a run of consecutive layers, which may be empty. The rules place the other
    /// tensors, such as the embedding on the first device and the output head on the last.
    /// `tensors` are pairs of name and length in bytes, as in the headers. The result is the
    /// [`LayerSplit::Sizes`] of a pipeline with one stage for each device.
    ///
    /// ```
    /// use modeldir::partition::LayerSplit;
    /// use modeldir::Partition;
    ///
    /// let tensors = [("layers.0.w", 10), ("layers.1.w", 10), ("layers.2.w", 10)];
    /// let split = Partition::default().balance_by_bytes(tensors, &[40, 20])?;
    /// assert_eq!(split, LayerSplit::Sizes(vec![2, 1]));
    /// # Ok::<(), modeldir::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`PartitionError::Budgets`] if the layers do not fit; [`PartitionError::Pattern`] for a rule
    /// that contradicts itself; [`PartitionError::Number`] for a stage that does not exist.
    pub fn balance_by_bytes<'n>(
        &self,
        tensors: impl IntoIterator<Item = (&'n str, u64)>,
        budgets: &[u64],
    ) -> Result<LayerSplit> {
        let (names, bytes): (Vec<&str>, Vec<u64>) = tensors.into_iter().unzip();
        let (decided, _) = self.decide(names.iter().copied())?;
        let num_layers = self.count_layers(&decided);
        let mut loads = Loads::new(num_layers, budgets);
        for ((name, bytes), decided) in names.iter().zip(&bytes).zip(&decided) {
            let pp = decided.pp.and_then(|i| self.rules.get(i)?.pp);
            loads.add(name, *bytes, pp, decided.layer, self.extra_layers)?;
        }
        loads.balance()
    }
}

/// The bytes to place: those fixed to a device, and those of each layer.
struct Loads<'a> {
    budgets: &'a [u64],
    /// By device.
    fixed: Vec<u128>,
    /// By layer.
    layers: Vec<u128>,
}

impl<'a> Loads<'a> {
    fn new(num_layers: usize, budgets: &'a [u64]) -> Self {
        Self { budgets, fixed: vec![0; budgets.len()], layers: vec![0; num_layers] }
    }

    fn add(
        &mut self,
        name: &str,
        bytes: u64,
        pp: Option<Pp>,
        layer: Option<usize>,
        extra: ExtraLayers,
    ) -> Result<()> {
        let bytes = u128::from(bytes);
        let last = self.fixed.len().saturating_sub(1);
        let devices = match (pp, layer) {
            (Some(Pp::Layer) | None, Some(layer)) => match self.layers.get_mut(layer) {
                Some(load) => {
                    *load += bytes;
                    return Ok(());
                }
                None if extra == ExtraLayers::Last => last..last + 1,
                None => return Ok(()),
            },
            (Some(Pp::Everywhere | Pp::Layer) | None, _) => 0..last + 1,
            (Some(Pp::First), _) => 0..1,
            (Some(Pp::Last), _) => last..last + 1,
            (Some(Pp::Ends), _) => {
                self.hold(0..1, bytes);
                last.max(1)..last + 1
            }
            (Some(Pp::Skip), _) => return Ok(()),
            (Some(Pp::Stage(number)), _) if number <= last => number..number + 1,
            (Some(Pp::Stage(number)), _) => {
                let count = self.budgets.len();
                let kind = PartitionError::Number { what: "stage", number, count };
                return Err(Error::from(kind).in_tensor(name));
            }
        };
        self.hold(devices, bytes);
        Ok(())
    }

    fn hold(&mut self, devices: std::ops::Range<usize>, bytes: u128) {
        for load in self.fixed.get_mut(devices).unwrap_or_default() {
            *load += bytes;
        }
    }

    /// The sizes that fill the smallest fraction of the budgets.
    fn balance(&self) -> Result<LayerSplit> {
        let does_not_fit = || PartitionError::Budgets {
            bytes: self.fixed.iter().chain(&self.layers).sum(),
            budgets: self.budgets.into(),
        };
        let mut best = self.fill(WHOLE).ok_or_else(does_not_fit)?;
        let (mut too_little, mut enough) = (0, WHOLE);
        while enough - too_little > 1 {
            let middle = too_little.midpoint(enough);
            match self.fill(middle) {
                Some(sizes) => (best, enough) = (sizes, middle),
                None => too_little = middle,
            }
        }
        Ok(LayerSplit::Sizes(best))
    }

    /// The sizes if each device in turn takes as many layers as fit in a fraction of its budget.
    fn fill(&self, fraction: u128) -> Option<Vec<usize>> {
        let mut rest = self.layers.iter().peekable();
        let mut sizes = Vec::with_capacity(self.budgets.len());
        for (budget, fixed) in self.budgets.iter().zip(&self.fixed) {
            let mut free = (u128::from(*budget) * fraction / WHOLE).checked_sub(*fixed)?;
            let mut size = 0;
            while let Some(load) = rest.next_if(|load| **load <= free) {
                free -= load;
                size += 1;
            }
            sizes.push(size);
        }
        rest.peek().is_none().then_some(sizes)
    }
}

#[cfg(test)]
mod tests {
    use crate::partition::PartitionError;
    use crate::partition::{LayerSplit, Partition};
    use crate::{Error, ErrorKind};

    fn model() -> (Partition, Vec<(String, u64)>) {
        let rules = r#"{"rules": [
            {"match": "embed.*", "pp": "ends"},
            {"match": "norm.*", "pp": "last"},
            {"match": "inv_freq", "pp": "skip"}
        ]}"#;
        let mut tensors: Vec<_> = (0..8).map(|l| (format!("layers.{l}.w"), 100)).collect();
        tensors.push(("embed.weight".to_owned(), 150));
        tensors.push(("norm.weight".to_owned(), 1));
        tensors.push(("inv_freq".to_owned(), 1000));
        (serde_json::from_str(rules).unwrap(), tensors)
    }

    fn balance(budgets: &[u64]) -> Result<LayerSplit, Error> {
        let (partition, tensors) = model();
        let tensors = tensors.iter().map(|(name, bytes)| (name.as_str(), *bytes));
        partition.balance_by_bytes(tensors, budgets)
    }

    #[test]
    fn devices_take_runs_in_proportion_to_their_memory() {
        let cases: [(&[u64], &[usize]); 6] = [
            (&[10_000], &[8]),
            (&[1000, 1000], &[4, 4]),
            (&[2000, 1000], &[6, 2]),
            (&[500, 1000, 500], &[1, 6, 1]),
            (&[350, 500, 500], &[1, 4, 3]),
            (&[250, 90, 900], &[1, 0, 7]),
        ];
        for (budgets, sizes) in cases {
            assert_eq!(balance(budgets).unwrap(), LayerSplit::Sizes(sizes.into()), "{budgets:?}");
        }
    }

    #[test]
    fn what_belongs_to_no_layer_weighs_on_the_devices_that_the_rules_name() {
        // Four layers of 100 bytes, and 200 more of what is tried; the devices are alike.
        let cases: [(&str, &str, &str, &[usize]); 8] = [
            ("x", r#""pp": "first""#, "last", &[1, 3]),
            ("x", r#""pp": "last""#, "last", &[3, 1]),
            ("x", r#""pp": {"stage": 0}"#, "last", &[1, 3]),
            ("x", r#""pp": {"stage": 1}"#, "last", &[3, 1]),
            ("x", r#""pp": "everywhere""#, "last", &[2, 2]),
            ("x", r#""tp": "replicate""#, "last", &[2, 2]),
            ("layers.4.w", r#""tp": "replicate""#, "last", &[3, 1]),
            ("layers.4.w", r#""tp": "replicate""#, "skip", &[2, 2]),
        ];
        for (name, rule, extra_layers, sizes) in cases {
            let rules = format!(
                r#"{{"num_layers": 4, "extra_layers": "{extra_layers}",
                    "rules": [{{"match": "{name}", {rule}}}]}}"#
            );
            let partition: Partition = serde_json::from_str(&rules).unwrap();
            let layers = ["layers.0.w", "layers.1.w", "layers.2.w", "layers.3.w"];
            let tensors = layers.map(|name| (name, 100)).into_iter().chain([(name, 200)]);
            let split = partition.balance_by_bytes(tensors, &[1000, 1000]).unwrap();
            assert_eq!(split, LayerSplit::Sizes(sizes.into()), "{name}, {rule}, {extra_layers}");
        }
    }

    #[test]
    fn what_every_device_holds_weighs_more_on_a_small_one() {
        let layers = ["layers.0.w", "layers.1.w", "layers.2.w", "layers.3.w"];
        let split = |bytes: u64, budgets: &[u64]| {
            let tensors = layers.map(|name| (name, 100)).into_iter().chain([("x", bytes)]);
            Partition::default().balance_by_bytes(tensors, budgets)
        };
        assert_eq!(split(0, &[900, 400]).unwrap(), LayerSplit::Sizes(vec![3, 1]));
        assert_eq!(split(200, &[900, 400]).unwrap(), LayerSplit::Sizes(vec![4, 0]));
        assert_eq!(split(200, &[600]).unwrap(), LayerSplit::Sizes(vec![4]));
        let error = split(201, &[600]).unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::Partition(PartitionError::Budgets { .. })),
            "{error}"
        );
    }

    #[test]
    fn a_stage_that_is_not_there_is_refused() {
        let rules = r#"{"rules": [{"match": "x", "pp": {"stage": 2}}]}"#;
        let partition: Partition = serde_json::from_str(rules).unwrap();
        let error = partition.balance_by_bytes([("x", 1)], &[1000, 1000]).unwrap_err();
        let expected = matches!(
            error.kind(),
            ErrorKind::Partition(PartitionError::Number { what: "stage", number: 2, count: 2, .. })
        );
        assert!(expected, "{error}");
    }

    #[test]
    fn what_does_not_fit_is_refused_with_the_sums() {
        for budgets in [&[][..], &[0], &[500, 500], &[100, 10_000]] {
            let error = balance(budgets).unwrap_err();
            assert!(
                matches!(error.kind(), ErrorKind::Partition(PartitionError::Budgets { .. })),
                "{error}"
            );
        }
    }
}
