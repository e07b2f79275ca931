//! Reads the numbers in the environment variables of a launcher.

use std::ffi::OsString;

use super::error::LaunchError;
use super::launcher::{Launcher, Variables};

/// The numbers set by a launcher; they may contradict each other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    pub(super) rank: Number,
    pub(super) size: Number,
    pub(super) local_rank: Option<Number>,
    pub(super) local_size: Option<Number>,
}

/// A number and the name of its variable.
#[derive(Clone, Copy, Debug)]
pub(super) struct Number {
    pub(super) name: &'static str,
    pub(super) value: usize,
}

impl Numbers {
    /// Fails if another launcher has set another rank or size.
    pub(super) fn agree(&self, launcher: Launcher, other: &Pair) -> Result<(), LaunchError> {
        let (rank, size) = (other.rank.number()?, other.size.number()?);
        if self.is_of((rank, size)) {
            return Ok(());
        }
        Err(LaunchError::Contradiction {
            launchers: [launcher, other.launcher],
            variables: [self.rank.name, self.size.name],
            numbers: [self.rank.value, self.size.value],
            other_variables: [rank.name, size.name],
            other_numbers: [rank.value, size.value],
        })
    }

    /// Takes the numbers on the host that are missing from a launcher with the same rank and size.
    pub(super) fn complete(&mut self, other: &Self) {
        if self.is_of((other.rank, other.size)) && self.local_rank.is_none() {
            self.local_rank = other.local_rank;
            self.local_size = self.local_size.or(other.local_size);
        }
    }

    fn is_of(&self, (rank, size): (Number, Number)) -> bool {
        (self.rank.value, self.size.value) == (rank.value, size.value)
    }
}

/// Rank and size of a launcher that has set both.
pub(super) struct Pair {
    pub(super) launcher: Launcher,
    rank: Variable,
    size: Variable,
}

/// Rank and size of a launcher, or `None` if it did not start this process. An empty variable must
/// be `None` by `look_up`.
///
/// # Errors
///
/// [`LaunchError::HalfSet`] if only one of the two is set, [`LaunchError::NoSize`] if the launcher
/// states no size.
pub(super) fn pair(
    launcher: Launcher,
    look_up: &impl Fn(&str) -> Option<OsString>,
) -> Result<Option<Pair>, LaunchError> {
    let Variables { rank, size, .. } = launcher.variables();
    match (first_set(&[rank], look_up), first_set(size, look_up)) {
        (Some(rank), Some(size)) => Ok(Some(Pair { launcher, rank, size })),
        (None, None) => Ok(None),
        // A batch script has a rank too, but is a single process whatever the size of the job.
        (Some(_), None) if launcher == Launcher::Slurm => Ok(None),
        (Some(set), None) => Err(match size.first() {
            Some(unset) => set.without(unset, launcher),
            None => LaunchError::NoSize { variable: rank, value: set.text(), launcher },
        }),
        // The size is in a variable of PMI.
        (None, Some(_)) if launcher == Launcher::Pals => Ok(None),
        (None, Some(set)) => Err(set.without(rank, launcher)),
    }
}

impl Pair {
    /// The numbers of this launcher.
    ///
    /// # Errors
    ///
    /// [`LaunchError::NotANumber`] if one is not a number.
    pub(super) fn numbers(
        &self,
        look_up: &impl Fn(&str) -> Option<OsString>,
    ) -> Result<Numbers, LaunchError> {
        let (rank, size) = (self.rank.number()?, self.size.number()?);
        let Variables { local_rank, local_size, .. } = self.launcher.variables();
        let local_rank = first_set(local_rank, look_up).map(|local| local.number()).transpose()?;
        let local_size = match first_set(local_size, look_up) {
            Some(tasks) if self.launcher == Launcher::Slurm => {
                let node = look_up("SLURM_NODEID");
                let node = node.as_ref().and_then(|node| node.to_str());
                tasks_on_host(&tasks.value.to_string_lossy(), node)
                    .map(|value| Number { name: tasks.name, value })
            }
            local => local.map(|local| local.number()).transpose()?,
        };
        Ok(Numbers { rank, size, local_rank, local_size })
    }
}

/// The first of these variables that is set.
fn first_set(
    names: &[&'static str],
    look_up: &impl Fn(&str) -> Option<OsString>,
) -> Option<Variable> {
    names.iter().find_map(|name| Some(Variable { name, value: look_up(name)? }))
}

/// A variable that is set.
struct Variable {
    name: &'static str,
    value: OsString,
}

impl Variable {
    /// The value, which must consist of decimal digits.
    fn number(&self) -> Result<Number, LaunchError> {
        let is_plain = |text: &&str| text.bytes().all(|b| b.is_ascii_digit());
        let number = self.value.to_str().filter(is_plain).and_then(|text| text.parse().ok());
        match number {
            Some(value) => Ok(Number { name: self.name, value }),
            None => Err(LaunchError::NotANumber { variable: self.name, value: self.text() }),
        }
    }

    /// The error for a variable that is set without its counterpart.
    fn without(&self, unset: &'static str, launcher: Launcher) -> LaunchError {
        LaunchError::HalfSet { variable: self.name, value: self.text(), unset, launcher }
    }

    fn text(&self) -> Box<str> {
        self.value.to_string_lossy().into()
    }
}

/// The number of tasks on host `node`, from Slurm's list for all hosts: `4`, `4(x2),3`.
///
/// `None` if the list has another form or is too short.
fn tasks_on_host(list: &str, node: Option<&str>) -> Option<usize> {
    let mut runs = Vec::new();
    for run in list.split(',') {
        let (tasks, hosts) = match run.split_once("(x") {
            Some((tasks, hosts)) => (tasks, hosts.strip_suffix(')')?.parse().ok()?),
            None => (run, 1_usize),
        };
        runs.push((tasks.parse().ok()?, hosts));
    }
    if let [(tasks, _)] = *runs {
        return Some(tasks);
    }
    let mut before: usize = node?.parse().ok()?;
    for (tasks, hosts) in runs {
        match before.checked_sub(hosts) {
            Some(rest) => before = rest,
            None => return Some(tasks),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::tasks_on_host;

    #[test]
    fn slurm_lists_the_tasks_of_all_hosts() {
        for (list, node, tasks) in [
            ("4", None, Some(4)),
            ("4(x2)", None, Some(4)),
            ("4(x2),3", Some("0"), Some(4)),
            ("4(x2),3", Some("1"), Some(4)),
            ("4(x2),3", Some("2"), Some(3)),
            ("4(x2),3", Some("3"), None),
            ("4(x2),3", None, None),
            ("4(x2),3", Some("two"), None),
            ("4(x2", None, None),
            ("four", None, None),
            ("", Some("0"), None),
        ] {
            assert_eq!(tasks_on_host(list, node), tasks, "{list} {node:?}");
        }
    }
}
