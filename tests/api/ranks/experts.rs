//! Values of experts that each rank loads: by name or along a dimension, cut as well or whole.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::case::{Case, Given, Take, any_uneven};
use super::oracle::{Lists, all, join, share};

fn config() -> ProptestConfig {
    ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() }
}

/// How experts are shared out over so many ranks, and the same in JSON.
#[derive(Clone, Debug)]
enum Placement {
    Linear,
    RoundRobin,
    Slots(Vec<usize>),
}

fn any_placement(experts: usize, ep: usize) -> impl Strategy<Value = Placement> {
    let slots = prop::collection::vec(0..experts, ep..=ep * 3).prop_map(move |mut slots| {
        slots.truncate(slots.len() / ep * ep);
        Placement::Slots(slots)
    });
    prop_oneof![Just(Placement::Linear), Just(Placement::RoundRobin), slots]
}

impl Placement {
    fn json(&self) -> Value {
        match self {
            Self::Linear => json!("linear"),
            Self::RoundRobin => json!("round_robin"),
            Self::Slots(slots) => json!({ "slots": [slots] }),
        }
    }

    /// The experts of each rank, in its order; none if they are not shared out evenly.
    fn of_ranks(&self, experts: usize, ep: usize, uneven: &str) -> Option<Vec<Vec<usize>>> {
        match self {
            Self::Linear => share(&all(experts), ep, uneven),
            Self::RoundRobin if uneven == "error" && experts % ep > 0 => None,
            Self::RoundRobin => {
                Some((0..ep).map(|rank| (rank..experts).step_by(ep).collect()).collect())
            }
            Self::Slots(slots) => share(slots, ep, "error"),
        }
    }

    fn holds_all(&self, experts: usize) -> bool {
        match self {
            Self::Slots(slots) => (0..experts).all(|expert| slots.contains(&expert)),
            _ => true,
        }
    }
}

/// Ranks of an expert-parallel group, each of which cuts its experts.
#[derive(Clone, Debug)]
struct Mesh {
    experts: usize,
    ep: usize,
    expert_tp: usize,
    placement: Placement,
    uneven: &'static str,
}

fn any_mesh() -> impl Strategy<Value = Mesh> {
    let numbers = (1..7usize, 1..4usize, 1..4usize, any_uneven());
    numbers.prop_flat_map(|(experts, ep, expert_tp, uneven)| {
        any_placement(experts, ep).prop_map(move |placement| Mesh {
            experts,
            ep,
            expert_tp,
            placement,
            uneven,
        })
    })
}

impl Mesh {
    fn ranks(&self) -> Vec<(usize, usize)> {
        (0..self.ep).flat_map(|ep| (0..self.expert_tp).map(move |tp| (ep, tp))).collect()
    }

    fn case(&self, rules: &Value, tensors: Vec<Given>) -> Case {
        let topology = |(ep, tp): (usize, usize)| {
            json!({
                "ep": format!("{ep}/{}", self.ep),
                "expert_tp": format!("{tp}/{}", self.expert_tp),
                "experts": self.placement.json(),
            })
        };
        let partition = json!({ "uneven": self.uneven, "rules": rules });
        let ranks = self.ranks().into_iter().map(topology).collect();
        Case { quantization: None, partition, ranks, tensors }
    }

    /// What each rank takes of a stack whose dimension `dim` is cut so.
    fn of_stack(&self, shape: &[usize], dim: usize, cut: Option<&Vec<Vec<usize>>>) -> Vec<Take> {
        let experts = self.placement.of_ranks(self.experts, self.ep, self.uneven);
        let take = |(ep, tp): (usize, usize)| {
            let (Some(experts), Some(cut)) = (&experts, cut) else { return Take::Refused };
            let mut lists: Lists = shape.iter().map(|len| all(*len)).collect();
            lists[0].clone_from(&experts[ep]);
            if self.expert_tp > 1 {
                lists[dim].clone_from(&cut[tp]);
            }
            Take::Part(lists)
        };
        self.ranks().into_iter().map(take).collect()
    }
}

/// What each rank takes of the tensor of one expert.
fn of_one(expert: usize, of_stack: &[Take]) -> Vec<Take> {
    let take = |take: &Take| match take {
        Take::Part(lists) if lists[0].contains(&expert) => Take::Part(lists[1..].to_vec()),
        Take::Part(_) | Take::Nothing => Take::Nothing,
        Take::Refused => Take::Refused,
    };
    of_stack.iter().map(take).collect()
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn experts_along_a_dimension(
        mesh in any_mesh(), rows in 1..5usize, columns in 2..9usize,
    ) {
        let shape = [mesh.experts, 2 * rows, columns];
        let out = share(&all(2 * rows), mesh.expert_tp, mesh.uneven);
        let halves = [all(rows), (rows..2 * rows).collect()];
        let halves = halves.map(|half| share(&half, mesh.expert_tp, mesh.uneven));
        let halves = join(&halves, mesh.expert_tp);
        let inputs = share(&all(columns), mesh.expert_tp, mesh.uneven);
        for (tp, dim, cut) in [("\"col\"", 1, out), ("{\"packed\": [1, 1]}", 1, halves), ("\"row\"", 2, inputs)] {
            let tp: Value = serde_json::from_str(tp).unwrap();
            let given = Given {
                name: "h.0.up".to_owned(),
                dtype: None,
                shape: shape.to_vec(),
                takes: mesh.of_stack(&shape, dim, cut.as_ref()),
                is_covered: mesh.placement.holds_all(mesh.experts),
            };
            let rules = json!([{ "match": "**.h.{l}.up", "tp": tp, "ep": "axis" }]);
            mesh.case(&rules, vec![given]).check();
        }
    }

    #[test]
    fn experts_with_names_of_their_own(mesh in any_mesh(), rows in 1..5usize, columns in 2..9usize) {
        let rules = json!([
            { "match": "**.{e}.up", "tp": "col", "ep": "name" },
            { "match": "**.{e}.down", "tp": "row", "ep": "name" },
        ]);
        let mut tensors = Vec::new();
        for (leaf, dim, len) in [("up", 1, rows), ("down", 2, columns)] {
            let cut = share(&all(len), mesh.expert_tp, mesh.uneven);
            let of_stack = mesh.of_stack(&[mesh.experts, rows, columns], dim, cut.as_ref());
            tensors.extend((0..mesh.experts).map(|expert| Given {
                name: format!("h.{expert}.{leaf}"),
                dtype: None,
                shape: vec![rows, columns],
                takes: of_one(expert, &of_stack),
                is_covered: mesh.placement.holds_all(mesh.experts),
            }));
        }
        // Each dtype has the same experts, and a rank that is refused one is refused all.
        mesh.case(&rules, tensors).check();
    }
}
