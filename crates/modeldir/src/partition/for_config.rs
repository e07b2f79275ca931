//! The built-in rules for a model, from its configuration.

use std::num::NonZeroUsize;

use super::error::PartitionError;
use super::expect::Expected;
use super::layouts::block_size;
use super::line::{Family, Line, Place, Take};
use super::rule::{Ep, Pp, Rule, Unused};
use super::rules::Partition;
use super::sizes::Sizes;
use super::tables::{FAMILIES, INNER, OTHER_SENSES};
use super::tp::{Axis, Heads, Part, Split, Tp};
use super::wrappers;
use crate::{ModelConfig, Quantization};

impl Partition {
    /// Returns the built-in rules for the `model_type` of a configuration, with its numbers of
    /// heads, layers and experts.
    ///
    /// [`families`](Self::families) lists the model types with rules. The rules include names that
    /// a model may lack, so they are never reported as [unused](Rule::unused).
    /// [`with_rules`](Self::with_rules) adds rules that take precedence over them.
    ///
    /// Attention heads are never cut; if there are more ranks than key and value heads,
    /// neighbouring ranks hold the same ones. Each block of a fused tensor is cut separately.
    /// Embedding and output head are cut along the vocabulary; if it does not divide evenly, the
    /// last ranks get less. Every rank holds routers and norms.
    ///
    /// ```
    /// use modeldir::partition::TensorShape;
    /// use modeldir::{ModelConfig, Partition, Rank, Topology};
    /// use tensorfile::{Dtype, Selection};
    ///
    /// let json = br#"{"model_type": "phi3", "num_attention_heads": 4, "num_hidden_layers": 1}"#;
    /// let config = ModelConfig::from_json("config.json", json)?;
    /// let name = "model.layers.0.self_attn.qkv_proj.weight";
    /// let tensor = TensorShape { name, dtype: Dtype::BF16, shape: &[192, 64] };
    /// let ranks = Topology::tensor_parallel(Rank::new(1, 2)?);
    /// let cut = Partition::for_config(&config)?.cut(&ranks, None, &[tensor])?;
    /// let rows = vec![32..64, 96..128, 160..192];
    /// assert_eq!(cut.parts, [Some(Selection::all().with_ranges(0, rows))]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`PartitionError::NoRules`] for a model type without rules; [`PartitionError::NoNumber`] if
    /// the configuration lacks a number that the rules need.
    pub fn for_config(config: &ModelConfig) -> Result<Self, PartitionError> {
        built_in(config, Missing::IsError)
    }

    /// These rules, then the built-in ones for a configuration.
    ///
    /// As [`or`](Self::or) with [`for_config`](Self::for_config), except that a number that the
    /// configuration lacks is an error only where a built-in rule that needs it decides about a
    /// tensor.
    ///
    /// # Errors
    ///
    /// [`PartitionError::NoRules`] for another family.
    pub fn or_for_config(self, config: &ModelConfig) -> Result<Self, PartitionError> {
        Ok(self.or(built_in(config, Missing::IsExpected)?))
    }

    /// The values of `model_type` with built-in rules, in order.
    pub fn families() -> impl Iterator<Item = &'static str> {
        let mut names: Vec<_> = FAMILIES.iter().flat_map(|family| family.model_types).collect();
        names.sort_unstable();
        names.into_iter().copied()
    }

    /// The values of `model_type` of models that wrap a language model, in order. There are rules
    /// for one if there are some for the type of its language model; its other parts are whole on
    /// every rank.
    pub fn wrappers() -> impl Iterator<Item = &'static str> {
        wrappers::names()
    }
}

/// What to do with a rule that needs a number which the configuration lacks.
#[derive(Clone, Copy, Debug)]
enum Missing {
    /// Refuse the configuration.
    IsError,
    /// Make a rule that refuses every tensor.
    IsExpected,
}

/// The rules for a configuration.
fn built_in(config: &ModelConfig, missing: Missing) -> Result<Partition, PartitionError> {
    let model_type = config.model_type().unwrap_or_default();
    let inner = wrappers::inner_type(config, model_type);
    let language = wrappers::rules_of(inner.unwrap_or(model_type));
    let mut families = FAMILIES.iter().chain(INNER.iter().filter(|_| inner.is_some()));
    let family = families.find(|family| family.model_types.contains(&language));
    let family = family.ok_or_else(|| PartitionError::NoRules {
        model_type: model_type.into(),
        families: Partition::families().collect(),
    })?;
    let numbers = Numbers::new(config, family, inner.unwrap_or(wrappers::class_of(model_type)));
    let other_parts = inner.map(|_| OTHER_SENSES).into_iter();
    let mut rules = Vec::new();
    for line in other_parts.chain(family.lists.iter().copied()).flatten() {
        rules.push(numbers.rule(line, line.pattern, missing)?);
        // The weight below an adapter of PEFT.
        if let Some(module) = line.pattern.strip_suffix(".*") {
            let pattern = format!("{module}.base_layer.*");
            rules.push(numbers.rule(line, &pattern, missing)?);
        }
    }
    Ok(Partition {
        rules,
        num_layers: config.num_hidden_layers(),
        num_experts: numbers.sizes.experts,
        ..Partition::default()
    })
}

/// The numbers of a model that the rules of its family need.
struct Numbers<'a> {
    config: &'a ModelConfig,
    sizes: Sizes,
    is_tied: bool,
    /// Uneven cuts of feed-forward layers are at multiples of this.
    block: NonZeroUsize,
}

impl<'a> Numbers<'a> {
    fn new(config: &'a ModelConfig, family: &Family, class: &str) -> Self {
        let quantization = Quantization::from_config(config);
        let block = quantization.as_ref().and_then(block_size).unwrap_or(NonZeroUsize::MIN);
        let is_tied = config.tie_word_embeddings().unwrap_or(family.tied);
        Self { config, sizes: Sizes::new(config, class), is_tied, block }
    }

    fn rule(&self, line: &Line, pattern: &str, missing: Missing) -> Result<Rule, PartitionError> {
        match (self.tp(line.take), missing) {
            (Err(PartitionError::NoNumber { field, .. }), Missing::IsExpected) => {
                let expect = Expected { missing: Some(field.into()), ..Expected::default() };
                let rule = self.with_tp(line, pattern, Tp::col())?;
                Ok(Rule { expect: Some(expect), ..rule })
            }
            (tp, _) => self.with_tp(line, pattern, tp?),
        }
    }

    fn with_tp(&self, line: &Line, pattern: &str, tp: Tp) -> Result<Rule, PartitionError> {
        let pp = line.place.map(|place| match place {
            Place::On(pp) => pp,
            Place::Embedding if self.is_tied => Pp::Ends,
            Place::Embedding => Pp::First,
        });
        Ok(Rule {
            pattern: pattern.parse()?,
            tp: Some(tp),
            ep: line.ep,
            pp,
            layout: line.layout,
            expect: Some(self.expected(line)),
            unused: Unused::Ignore,
        })
    }

    /// The lengths of the tensors that a rule cuts, where the configuration states them and nothing
    /// that is fused or padded changes them.
    fn expected(&self, line: &Line) -> Expected {
        let Sizes { hidden, query, kv, head_dim, experts, .. } = self.sizes;
        let wide = |heads: Option<usize>| heads?.checked_mul(head_dim?);
        let experts = experts.filter(|_| line.ep == Some(Ep::Axis));
        let lengths = match line.take {
            Take::Whole | Take::FromLatent => Expected::default(),
            // Into the residual stream, or out of it.
            Take::In => Expected { out: hidden, ..Expected::default() },
            Take::Out
            | Take::GateUp
            | Take::Pairs
            | Take::Vocab
            | Take::Together
            | Take::Groups
            | Take::Qkv
            | Take::FalconQkv => Expected { inputs: hidden, ..Expected::default() },
            Take::Query => {
                Expected { out: wide(query), inputs: hidden, heads: query, ..Expected::default() }
            }
            Take::KeyValue => {
                Expected { out: wide(kv), inputs: hidden, heads: kv, ..Expected::default() }
            }
            Take::FromHeads => {
                Expected { out: hidden, inputs: wide(query), heads: query, ..Expected::default() }
            }
        };
        Expected { experts, ..lengths }
    }

    fn tp(&self, take: Take) -> Result<Tp, PartitionError> {
        let one = NonZeroUsize::MIN;
        let aligned = |axis| Split { align: self.block, ..Split::along(axis) };
        Ok(match take {
            Take::Whole => Tp::Replicate,
            Take::Out => Tp::Split(aligned(Axis::Out)),
            Take::In => Tp::Split(aligned(Axis::In)),
            Take::GateUp => {
                Tp::Split(Split { parts: vec![Part::new(one); 2], ..aligned(Axis::Out) })
            }
            Take::Pairs => {
                let two = one.saturating_add(1);
                let align = self.block.saturating_mul(two);
                Tp::Split(Split { unit: two, align, ..Split::along(Axis::Out) })
            }
            Take::Vocab => Tp::vocab(),
            Take::Query | Take::Together | Take::FromLatent => {
                Tp::heads(self.query_heads()?, self.kv_heads()?)
            }
            Take::KeyValue => Tp::kv_heads(self.kv_heads()?),
            Take::Groups => Tp::heads(self.kv_heads()?, self.kv_heads()?),
            Take::Qkv => Tp::qkv(self.query_heads()?, self.kv_heads()?),
            Take::FalconQkv => self.tp(self.falcon())?,
            Take::FromHeads => {
                let (count, kv) = (self.query_heads()?, self.kv_heads()?);
                let heads = Some(Heads::Query { count, kv });
                let parts = vec![Part { size: one, heads }];
                Tp::Split(Split { parts, ..Split::along(Axis::In) })
            }
        })
    }

    fn query_heads(&self) -> Result<NonZeroUsize, PartitionError> {
        self.number(self.sizes.query, "num_attention_heads")
    }

    fn kv_heads(&self) -> Result<NonZeroUsize, PartitionError> {
        self.number(self.sizes.kv, "num_key_value_heads")
    }

    fn number(
        &self,
        value: Option<usize>,
        field: &'static str,
    ) -> Result<NonZeroUsize, PartitionError> {
        value.and_then(NonZeroUsize::new).ok_or_else(|| PartitionError::NoNumber {
            model_type: self.config.model_type().unwrap_or_default().into(),
            field,
        })
    }

    /// The order of rows of a Falcon model, one of three.
    fn falcon(&self) -> Take {
        let flag = |name| self.config.raw().get(name).and_then(serde_json::Value::as_bool);
        match (flag("new_decoder_architecture"), flag("multi_query")) {
            (Some(true), _) => Take::Groups,
            (_, Some(true) | None) => Take::Qkv,
            _ => Take::Query,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tensorfile::{Dtype, Selection};

    use crate::partition::{Misaligned, TensorShape};
    use crate::{ModelConfig, Partition, Rank, Result, Topology};

    #[test]
    fn a_gate_stays_beside_its_up_even_where_blocks_are_covered() {
        let config = json!({"model_type": "gpt_oss", "num_attention_heads": 8,
            "num_key_value_heads": 2, "num_hidden_layers": 1})
        .to_string();
        let config = ModelConfig::from_json("config.json", config.as_bytes()).unwrap();
        let rules = Partition::for_config(&config).unwrap();
        let rules = Partition { misaligned: Misaligned::Cover, ..rules };
        let name = "model.layers.0.mlp.experts.gate_up_proj";
        let tensor = TensorShape { name, dtype: Dtype::BF16, shape: &[2, 8, 12] };
        let part = |rank: usize, size: usize| -> Result<Option<Selection>, crate::Error> {
            let ranks = Topology::tensor_parallel(Rank::new(rank, size)?);
            Ok(rules.cut(&ranks, None, &[tensor])?.parts.remove(0))
        };
        assert_eq!(part(1, 2).unwrap(), Some(Selection::all().with_range(2, 6..12)));
        // Three of the twelve are one pair and a half.
        let error = part(1, 4).unwrap_err().to_string();
        let expected =
            "12 elements along the outputs in blocks of 2 over 4 ranks; 2, 3 or 6 would do";
        assert!(error.contains(expected), "{error}");
    }
}
