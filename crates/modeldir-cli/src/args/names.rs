//! Options that choose tensors by their names.

use clap::Args;
use modeldir::LoadPlan;
use modeldir::partition::Pattern;

use crate::failure::Result;

/// Options that choose tensors by their names.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct NameArgs {
    /// Take only tensors whose whole name matches, such as 'model.layers.(0|1).**'; may be repeated
    ///
    /// Dots divide names and patterns into segments. In a pattern, * is any part of a segment, ** is
    /// any number of segments, and (0|1) is 0 or 1.
    #[arg(long, value_name = "PATTERN")]
    only: Vec<Pattern>,
    /// Leave out tensors whose whole name matches, such as '**.experts.**'; may be repeated
    #[arg(long, value_name = "PATTERN")]
    without: Vec<Pattern>,
}

impl NameArgs {
    /// The plan with only the chosen tensors.
    pub(crate) fn filter(&self, plan: &LoadPlan) -> LoadPlan {
        let any = |patterns: &[Pattern], name: &str| patterns.iter().any(|p| p.matches(name));
        plan.filter(|tensor| {
            let name = tensor.name();
            (self.only.is_empty() || any(&self.only, name)) && !any(&self.without, name)
        })
    }

    /// The plan with only the chosen tensors, of which there is one.
    ///
    /// # Errors
    ///
    /// If no tensor of the plan is chosen.
    pub(crate) fn choose(&self, plan: &LoadPlan) -> Result<LoadPlan> {
        let chosen = self.filter(plan);
        if chosen.is_empty() && !plan.is_empty() {
            return Err("--only and --without leave no tensor".into());
        }
        Ok(chosen)
    }
}

#[cfg(test)]
mod tests {
    use super::NameArgs;
    use modeldir::ModelDir;

    fn names(only: &[&str], without: &[&str]) -> crate::failure::Result<usize> {
        let patterns = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        let names = NameArgs { only: patterns(only), without: patterns(without) };
        let plan = ModelDir::open(modeldir_fixtures::model("llama")).unwrap().plan();
        names.choose(&plan).map(|plan| plan.len())
    }

    #[test]
    fn chosen_names_match_one_of_only_and_none_of_without() {
        assert_eq!(names(&[], &[]).unwrap(), 30);
        assert_eq!(names(&["lm_head.*", "model.norm.weight"], &[]).unwrap(), 2);
        assert_eq!(names(&["model.layers.1.**"], &["**.mlp.*.*"]).unwrap(), 6);
        let failure = format!("{:?}", names(&["nothing"], &[]).unwrap_err());
        assert!(failure.contains("--only"), "{failure}");
    }
}
