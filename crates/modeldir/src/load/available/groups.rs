//! The control groups around a process, and what their limits leave; pure.

use std::path::{Component, Path, PathBuf};

/// Limits from here on mean none: version 1 reports the largest multiple of a page that fits a
/// signed number.
const NO_LIMIT: u64 = 1 << 62;

/// The folder of a control group that accounts for memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Folder {
    pub(super) path: PathBuf,
    version: Version,
    /// Whether the process is in this group itself, and not only in a group below it.
    is_own: bool,
}

/// The two interfaces of the kernel. A machine may have both, and then memory is in the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// The groups around a process, from the innermost to the outermost visible one, from its
/// `/proc/self/cgroup` and `/proc/self/mountinfo`.
pub(super) fn folders(cgroup: &str, mountinfo: &str) -> Vec<Folder> {
    let mut folders = Vec::new();
    for line in cgroup.lines() {
        let Some((version, group)) = group(line) else { continue };
        for mount in mountinfo.lines().filter_map(|line| Mount::parse(line, version)) {
            let below = mount.below(group);
            let around = below.ancestors().map(|below| mount.point.join(below));
            let folder = |(depth, path)| Folder { path, version, is_own: depth == 0 };
            folders.extend(around.enumerate().map(folder));
        }
    }
    folders
}

impl Folder {
    /// Bytes that the group can still take, or `None` if it has no limit; `read` gives the text of a
    /// file of the group.
    ///
    /// Page cache of the group is not counted: the kernel reclaims it before it refuses memory.
    pub(super) fn available(&self, read: impl Fn(&str) -> Option<String>) -> Option<u64> {
        let number = |name| read(name)?.trim().parse::<u64>().ok();
        let (limit, usage, cached) = match self.version {
            Version::One => {
                // Before Linux 5.11 a group could ignore the accounts of the groups below it.
                if !self.is_own && number("memory.use_hierarchy") == Some(0) {
                    return None;
                }
                let cached = ["total_inactive_file", "total_active_file"];
                (number("memory.limit_in_bytes")?, number("memory.usage_in_bytes")?, cached)
            }
            // "max" is no number.
            Version::Two => {
                let cached = ["inactive_file", "active_file"];
                (number("memory.max")?, number("memory.current")?, cached)
            }
        };
        if limit >= NO_LIMIT {
            return None;
        }
        let stat = read("memory.stat").unwrap_or_default();
        let cached = cached.iter().map(|name| field(&stat, name).unwrap_or(0));
        let in_use = usage.saturating_sub(cached.fold(0, u64::saturating_add));
        Some(limit.saturating_sub(in_use))
    }
}

/// The interface and the path of the memory group in a line such as `4:memory:/a/b` or `0::/a/b`.
fn group(line: &str) -> Option<(Version, &str)> {
    let mut fields = line.splitn(3, ':');
    let (number, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
    if number == "0" && controllers.is_empty() {
        return Some((Version::Two, path));
    }
    controllers.split(',').any(|name| name == "memory").then_some((Version::One, path))
}

/// Where groups of one interface are mounted.
#[derive(Debug)]
struct Mount {
    /// The group that is visible at the mount point.
    root: PathBuf,
    point: PathBuf,
}

impl Mount {
    /// Reads a line such as `35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory`.
    fn parse(line: &str, version: Version) -> Option<Self> {
        let (place, kind) = line.split_once(" - ")?;
        let mut kind = kind.split(' ');
        let (file_system, options) = (kind.next()?, kind.nth(1)?);
        let is_wanted = match version {
            Version::One => file_system == "cgroup" && options.split(',').any(|o| o == "memory"),
            Version::Two => file_system == "cgroup2",
        };
        let mut place = place.split(' ').skip(3);
        let (root, point) = (place.next()?, place.next()?);
        is_wanted.then(|| Self { root: unescaped(root).into(), point: unescaped(point).into() })
    }

    /// The path of a group below the mount point; empty if the group is not visible here, so that
    /// the visible groups around it apply.
    fn below(&self, group: &str) -> PathBuf {
        let below = Path::new(group).strip_prefix(&self.root).unwrap_or(Path::new(""));
        let is_plain = below.components().all(|part| matches!(part, Component::Normal(_)));
        if is_plain { below.to_owned() } else { PathBuf::new() }
    }
}

/// The text of a field of `mountinfo`, in which four characters are written as octal numbers.
fn unescaped(field: &str) -> String {
    let escapes = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    escapes.iter().fold(field.to_owned(), |text, (escape, plain)| text.replace(escape, plain))
}

/// The number of a line such as `inactive_file 4096`.
fn field(stat: &str, name: &str) -> Option<u64> {
    let mut lines = stat.lines().filter_map(|line| line.split_once(' '));
    let (_, value) = lines.find(|(found, _)| *found == name)?;
    value.trim().parse().ok()
}
