//! Texts of kernels, in the layouts that machines have, and what they leave.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{MemoryCheck, MemoryLimit, check, mem_available, tightest};
use crate::ErrorKind;

const MIB: u64 = 1 << 20;

const MEMINFO: &str = "\
MemTotal:       24683656 kB
MemFree:        16292984 kB
MemAvailable:   22932136 kB
Buffers:          307776 kB
Cached:          6315380 kB
";

const MEM_AVAILABLE: u64 = 22_932_136 * 1024;

/// Version 1 for memory, and version 2 beside it without a controller.
const HYBRID: (&str, &str) = (
    "\
9:name=systemd:/
4:memory:/job/164ecfbc
3:cpuset:/
0::/
",
    "\
23 1 254:0 / / rw,relatime - ext4 /dev/vda rw
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
",
);

/// A container of version 1 that sees its own group alone, at the mount point.
const CONTAINER_ONE: (&str, &str) = (
    "\
12:cpu,cpuacct:/docker/5f0c
6:memory:/docker/5f0c
0::/docker/5f0c
",
    "\
1405 1400 0:29 /docker/5f0c /sys/fs/cgroup/memory ro,nosuid,nodev,noexec,relatime master:14 - cgroup cgroup rw,memory
1406 1400 0:30 /docker/5f0c /sys/fs/cgroup/cpu,cpuacct ro,relatime master:15 - cgroup cgroup rw,cpu,cpuacct
",
);

/// A session of systemd under version 2.
const SESSION: (&str, &str) = (
    "0::/user.slice/user-1000.slice/user@1000.service/app.slice/run-u7.scope\n",
    "\
28 23 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot
",
);

/// A container of version 2 in a name space of groups: its own is the root.
const CONTAINER_TWO: (&str, &str) = (
    "0::/\n",
    "\
723 718 0:27 / /sys/fs/cgroup ro,nosuid,nodev,noexec,relatime - cgroup2 cgroup rw
",
);

const STAT_ONE: &str = "\
cache 339251200
rss 276807680
inactive_file 4096
active_file 4096
hierarchical_memory_limit 9223372036854771712
total_cache 339251200
total_inactive_file 73400320
total_active_file 31457280
total_unevictable 0
";

const STAT_TWO: &str = "\
anon 209715200
file 136314880
kernel 5742592
inactive_anon 209698816
active_anon 16384
inactive_file 104857600
active_file 31457280
unevictable 0
";

/// What `/proc` says, and the files of groups by path.
fn left((cgroup, mountinfo): (&str, &str), files: &[(&str, &str)]) -> Option<(u64, MemoryLimit)> {
    let proc = [
        ("/proc/meminfo", MEMINFO),
        ("/proc/self/cgroup", cgroup),
        ("/proc/self/mountinfo", mountinfo),
    ];
    let all: BTreeMap<_, _> = proc.iter().chain(files).copied().collect();
    tightest(|path| all.get(path.to_str()?).map(|text| (*text).to_owned()))
}

/// The files of a group of version 1 with this limit, 300 MiB in use and a hierarchy or none.
fn one(folder: &str, limit: &'static str, hierarchy: &'static str) -> Vec<(String, &'static str)> {
    vec![
        (format!("{folder}/memory.limit_in_bytes"), limit),
        (format!("{folder}/memory.usage_in_bytes"), "314572800\n"),
        (format!("{folder}/memory.stat"), STAT_ONE),
        (format!("{folder}/memory.use_hierarchy"), hierarchy),
    ]
}

/// The files of a group of version 2 with this limit and 400 MiB in use.
fn two(folder: &str, limit: &'static str) -> Vec<(String, &'static str)> {
    vec![
        (format!("{folder}/memory.max"), limit),
        (format!("{folder}/memory.current"), "419430400\n"),
        (format!("{folder}/memory.stat"), STAT_TWO),
    ]
}

/// What is left with these groups: bytes, and the folder of the group that leaves them.
fn left_with(
    machine: (&str, &str),
    groups: &[Vec<(String, &'static str)>],
) -> (u64, Option<PathBuf>) {
    let files: Vec<_> = groups.iter().flatten().map(|(path, text)| (&**path, *text)).collect();
    match left(machine, &files).unwrap() {
        (bytes, MemoryLimit::ControlGroup(folder)) => (bytes, Some(folder)),
        (bytes, MemoryLimit::Machine) => (bytes, None),
    }
}

#[test]
fn the_machine_says_what_is_available() {
    assert_eq!(mem_available(MEMINFO), Some(MEM_AVAILABLE));
    for broken in ["", "MemAvailable:", "MemAvailable: 12", "MemAvailable: x kB", "MemFree: 1 kB"] {
        assert_eq!(mem_available(broken), None, "{broken:?}");
    }
}

#[test]
fn a_group_leaves_its_limit_less_what_it_uses_without_the_page_cache() {
    // 300 MiB in use, 100 of them page cache.
    let folder = "/sys/fs/cgroup/memory/job/164ecfbc";
    let limited = one(folder, "1073741824\n", "1\n");
    assert_eq!(left_with(HYBRID, &[limited]), (824 * MIB, Some(folder.into())));
    let mount = "/sys/fs/cgroup/memory";
    let limited = one(mount, "1073741824\n", "1\n");
    assert_eq!(left_with(CONTAINER_ONE, &[limited]), (824 * MIB, Some(mount.into())));
    // 400 MiB in use, 130 of them page cache.
    let mount = "/sys/fs/cgroup";
    let limited = two(mount, "1073741824\n");
    assert_eq!(left_with(CONTAINER_TWO, &[limited]), (754 * MIB, Some(mount.into())));
}

#[test]
fn the_tightest_group_around_the_process_counts() {
    let slice = "/sys/fs/cgroup/user.slice";
    let user = format!("{slice}/user-1000.slice");
    let scope = format!("{user}/user@1000.service/app.slice/run-u7.scope");
    let groups = [two(&scope, "max\n"), two(&user, "943718400\n"), two(slice, "1073741824\n")];
    assert_eq!(left_with(SESSION, &groups), (630 * MIB, Some(user.into())));
    let groups = [two(&scope, "536870912\n"), two(slice, "1073741824\n")];
    assert_eq!(left_with(SESSION, &groups), (242 * MIB, Some(scope.into())));
    let around = "/sys/fs/cgroup/memory/job";
    let own = one(&format!("{around}/164ecfbc"), "9223372036854771712\n", "1\n");
    let groups = [own.clone(), one(around, "536870912\n", "1\n")];
    assert_eq!(left_with(HYBRID, &groups), (312 * MIB, Some(around.into())));
    // The group around it does not account for it.
    let groups = [own, one(around, "536870912\n", "0\n")];
    assert_eq!(left_with(HYBRID, &groups), (MEM_AVAILABLE, None));
}

#[test]
fn what_is_no_limit_leaves_what_the_machine_has() {
    let folder = "/sys/fs/cgroup/memory/job/164ecfbc";
    // The last one is that of a kernel with pages of 64 KiB.
    for limit in ["9223372036854771712\n", "-1\n", "", "9223372036854710272\n"] {
        let groups = [one(folder, limit, "1\n")];
        assert_eq!(left_with(HYBRID, &groups), (MEM_AVAILABLE, None), "{limit:?}");
    }
    assert_eq!(left_with(CONTAINER_TWO, &[two("/sys/fs/cgroup", "max\n")]), (MEM_AVAILABLE, None));
    assert_eq!(left_with(("", ""), &[]), (MEM_AVAILABLE, None));
    let broken = ("0:/\n::\n4:memory\n", "1 2 3\n35 31 0:32 / - cgroup2\n - - -\n");
    assert_eq!(left_with(broken, &[]), (MEM_AVAILABLE, None));
    assert_eq!(tightest(|_| None), None);
}

#[test]
fn a_group_that_is_not_seen_counts_as_the_outermost_that_is() {
    let mount = "/sys/fs/cgroup";
    let limited = [two(mount, "1073741824\n")];
    for group in ["0::/../outside\n", "0::/a/../../b\n"] {
        let machine = (group, CONTAINER_TWO.1);
        assert_eq!(left_with(machine, &limited), (754 * MIB, Some(mount.into())), "{group}");
    }
    let elsewhere = ("6:memory:/kubepods/pod1/c2\n", CONTAINER_ONE.1);
    let mount = "/sys/fs/cgroup/memory";
    let limited = [one(mount, "1073741824\n", "1\n")];
    assert_eq!(left_with(elsewhere, &limited), (824 * MIB, Some(mount.into())));
}

#[test]
fn a_mount_point_may_have_blanks() {
    let mountinfo = "28 23 0:26 / /mnt/all\\040groups rw - cgroup2 cgroup2 rw\n";
    let limited = [two("/mnt/all groups/a", "1073741824\n")];
    let folder = Some("/mnt/all groups/a".into());
    assert_eq!(left_with(("0::/a\n", mountinfo), &limited), (754 * MIB, folder));
}

#[test]
fn more_than_is_left_is_refused_and_as_much_is_not() {
    let root = Path::new("m");
    let limit = MemoryLimit::ControlGroup("/sys/fs/cgroup/a".into());
    check(root, 100, None).unwrap();
    check(root, 100, Some((100, limit.clone()))).unwrap();
    let error = check(root, 101, Some((100, limit))).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::NotEnoughMemory { needed: 101, available: 100, .. }));
    assert_eq!(
        error.to_string(),
        "m: 101 bytes of memory needed, 100 available: limit of control group /sys/fs/cgroup/a \
         (MemoryCheck::Skip loads all the same)"
    );
    MemoryCheck::Skip.check(root, u64::MAX).unwrap();
}
