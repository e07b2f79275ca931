"""What a process may not have: files, memory, room on the disk, permissions, regular files."""

import disk
import entries
import memory

LIMITS = {
    "files": entries.few_files,
    "memory": memory.address_space,
    "file_size": disk.file_size,
    "full_disk": disk.full_disk,
    "cgroup": memory.cgroup,
    "permissions": entries.permissions,
    "special_files": entries.special_files,
}


def run(tally, work, pool):
    """Runs each kind of limit."""
    for name, limit in LIMITS.items():
        (work / name).mkdir()
        limit(tally, work / name, pool)
