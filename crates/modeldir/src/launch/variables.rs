//! Reads the numbers in the environment variables of a launcher.

use std::ffi::OsString;

use super::error::LaunchError;
use super::launcher::Launcher;

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

/// The numbers set by a launcher, or `None` if it did not start this process.
///
/// # Errors
///
/// [`LaunchError::HalfSet`] if only one of rank and size is set; [`LaunchError::NotANumber`] if
/// one is not a number.
pub(super) fn numbers(
    launcher: Launcher,
    look_up: &impl Fn(&str) -> Option<OsString>,
) -> Result<Option<Numbers>, LaunchError> {
    let read = |name| look_up(name).map(|value| Variable { name, value });
    let [rank, size, local_rank, local_size] = launcher.variables();
    let (rank, size) = match (read(rank), read(size)) {
        (Some(rank), Some(size)) => (rank.number()?, size.number()?),
        (None, None) => return Ok(None),
        // A batch script has a rank too, but is a single process whatever the size of the job.
        (Some(_), None) if launcher == Launcher::Slurm => return Ok(None),
        (Some(set), None) => return Err(set.without(size, launcher)),
        (None, Some(set)) => return Err(set.without(rank, launcher)),
    };
    let local_rank = read(local_rank).map(|local| local.number()).transpose()?;
    let local_size = match read(local_size) {
        Some(tasks) if launcher == Launcher::Slurm => {
            let node = look_up("SLURM_NODEID");
            tasks_on_host(&tasks.value.to_string_lossy(), node.as_ref().and_then(|n| n.to_str()))
                .map(|value| Number { name: tasks.name, value })
        }
        local => local.map(|local| local.number()).transpose()?,
    };
    Ok(Some(Numbers { rank, size, local_rank, local_size }))
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
