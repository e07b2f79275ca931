//! Why rules, ranks and tensors do not fit together.

use std::fmt;

use tensorfile::Quoted;

use super::misfit::Misfit;
use super::topology::Topology;
use super::words::{AndLayers, Divisors, Shown};

/// Why rules, ranks and tensors do not fit together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PartitionError {
    /// There are no built-in rules for this type of model.
    #[error(
        "no rules for model type {}; write them, such as \
         {{\"rules\": [{{\"match\": \"**.q_proj.*\", \"tp\": \"col\"}}]}}; there are some for {}",
        Quoted(model_type),
        families.join(", ")
    )]
    NoRules {
        /// The type of model.
        model_type: Box<str>,
        /// The types for which there are rules.
        families: Box<[&'static str]>,
    },
    /// The configuration lacks a number that the built-in rules need.
    #[error(
        "model type {}: its rules need {field}, and the configuration says none above 0",
        Quoted(model_type)
    )]
    NoNumber {
        /// The type of model.
        model_type: Box<str>,
        /// The field of the configuration.
        field: &'static str,
    },
    /// A plan of transformers has an unknown style.
    #[error(
        "{}: unknown style {}; take the entry out of the plan, and say how to cut the module with \
         Partition::with_rules",
        Quoted(module),
        Quoted(style)
    )]
    TpStyle {
        /// The module in the plan.
        module: Box<str>,
        /// Its style.
        style: Box<str>,
    },
    /// A pattern is malformed, or does not find a number that its rule needs.
    #[error("pattern {}: {reason}", Quoted(pattern))]
    Pattern {
        /// The pattern.
        pattern: Box<str>,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A tensor cannot be cut as its rule says.
    #[error("rule {}: {misfit}", Quoted(rule))]
    Cut {
        /// The pattern of the rule.
        rule: Box<str>,
        /// The reason.
        misfit: Misfit,
    },
    /// The number of ranks does not divide that of the experts.
    #[error(
        "{count} experts over {size} ranks{}; Uneven::Balanced and Uneven::Chunk give some ranks \
         more than others",
        Divisors(*count)
    )]
    UnevenExperts {
        /// Number of experts.
        count: usize,
        /// Number of ranks.
        size: usize,
    },
    /// The number of ranks does not divide that of the expert slots.
    #[error("{count} expert slots over {size} ranks{}", Divisors(*count))]
    UnevenSlots {
        /// Number of slots.
        count: usize,
        /// Number of ranks.
        size: usize,
    },
    /// The slots of experts have no list for the layer of a tensor.
    #[error("no list of expert slots for this layer")]
    NoExpertSlots,
    /// The slots of experts list one that does not exist.
    #[error("expert slots: {expert} is not an expert of {count}, counted from 0")]
    ExpertSlot {
        /// The expert that a slot names.
        expert: usize,
        /// Number of experts.
        count: usize,
    },
    /// The sizes of stages do not match the number of stages, or do not add up to the layers.
    #[error(
        "layer sizes {sizes:?} are for {} stages, {} layers; expected {stages} stages{}",
        sizes.len(),
        sizes.iter().map(|size| *size as u128).sum::<u128>(),
        AndLayers(*layers)
    )]
    LayerSizes {
        /// Layers of each stage.
        sizes: Box<[usize]>,
        /// Number of stages.
        stages: usize,
        /// Number of layers, if it is known.
        layers: Option<usize>,
    },
    /// The numbers of ranks of a job do not fit together.
    #[error(
        "tp {tp}, pp {pp}, ep {ep}: each is at least 1, and of tp and ep one divides the other"
    )]
    UnevenJob {
        /// Ranks that cut tensors between them.
        tp: usize,
        /// Stages of a pipeline.
        pp: usize,
        /// Ranks of a stage that share out experts.
        ep: usize,
    },
    /// The number of ranks is not that of the job.
    #[error("tp, pp and ep make {ranks} ranks, and there are {size}")]
    JobSize {
        /// Ranks of the job.
        ranks: usize,
        /// Number of ranks.
        size: usize,
    },
    /// A tensor belongs to an expert or a stage that does not exist.
    #[error("{what} {number} is not one of {count}, counted from 0")]
    Number {
        /// What is counted.
        what: &'static str,
        /// The number given.
        number: usize,
        /// The number of these that exist.
        count: usize,
    },
    /// Layers do not fit on devices in their order.
    #[error("{bytes} bytes of layers and what surrounds them do not fit on devices of {budgets:?}")]
    Budgets {
        /// Bytes of the model.
        bytes: u128,
        /// Bytes of each device.
        budgets: Box<[u64]>,
    },
    /// Rules match no tensor, and the partition refuses such rules.
    #[error(
        "{} rules match nothing, and Partition::unmatched is Error: {}",
        patterns.len(),
        Shown(patterns)
    )]
    UnusedRules {
        /// The patterns of the rules.
        patterns: Box<[String]>,
    },
    /// No rule matches these tensors, and the partition refuses such tensors.
    #[error(
        "{} tensors that no rule matches, and Partition::unmatched is Error: {}",
        tensors.len(),
        Shown(tensors)
    )]
    UnmatchedTensors {
        /// The names of the tensors.
        tensors: Box<[String]>,
    },
    /// The directory holds the part of another rank.
    #[error("holds the part of {}, not that of {}", Place(holds), Place(asked))]
    OtherPart {
        /// The rank whose part it is.
        holds: Box<Topology>,
        /// The rank whose part was asked for.
        asked: Box<Topology>,
    },
    /// The directory holds the part of this rank, cut by other rules.
    #[error("holds the part of {}, cut by other rules than those given", Place(holds))]
    OtherRules {
        /// The rank whose part it is.
        holds: Box<Topology>,
    },
}

/// Displays a topology: a tensor-parallel rank alone, or its JSON.
struct Place<'a>(&'a Topology);

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self.0 == Topology::tensor_parallel(self.0.tp()) {
            return write!(f, "rank {}", self.0.tp());
        }
        f.write_str(&serde_json::to_string(self.0).map_err(|_| fmt::Error)?)
    }
}
