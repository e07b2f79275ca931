"""Little memory: of the address space of a process, and of a control group."""

import contextlib
import os
import pathlib
import resource
import signal

import models
from probe import Probe
from tally import EXCEPTED, is_beyond
from verdict import judge
from ways import MAPS, OPEN, Way

MIB = 1 << 20
CGROUPS = pathlib.Path("/sys/fs/cgroup")


def address_space(tally, work, pool):
    """Little address space: more and more, until the use succeeds. Of many bytes, and of many tensors."""
    kind = "address space"
    tally.kind(kind)
    model = models.write_sharded(work / "model", 4, 6 * MIB)
    expected = models.read_model(model)
    listed = models.write_listed(work / "listed", 60_000)

    def ladder(way, model=model, expected=expected, step=4096, part=16):
        names = [model.name]
        room = 0
        while room < 4096 * MIB:
            with Probe(way.name, model, **way.options) as probe:
                used = int(pathlib.Path(f"/proc/{probe.pid}/statm").read_text().split()[0])
                most = used * resource.getpagesize() + room
                resource.prlimit(probe.pid, resource.RLIMIT_AS, (most, most))
                probe.go()
                outcome = probe.outcome()
            wrong = judge(outcome, names, None if way.name == "open" else expected)
            wrong = EXCEPTED if is_beyond(outcome) else wrong
            tally.count(kind, f"{way.label} of {model.name}, {room} bytes more", wrong)
            if outcome.kind == "ok":
                return
            room += max(step, room // part & -4096)
        tally.count(kind, f"{way.label} of {model.name}", "it never succeeds")

    # The places of load_into are those of the caller, who has to get them.
    ways = [OPEN, Way("load", threads=1), Way("load", threads=4), Way("load", io="direct")]
    ways += [Way("stream", threads=1, in_flight=16 * MIB), Way("async"), *MAPS]
    jobs = [pool.submit(ladder, way) for way in ways]
    # What a long header lists takes several times its bytes.
    jobs.append(pool.submit(ladder, OPEN, listed, None, 65536, 8))
    for job in jobs:
        job.result()


@contextlib.contextmanager
def memory_group(most):
    """A memory cgroup of this size, of version 1 or 2; None if there can be none."""
    name = f"modeldir-faults-{os.getpid()}"
    version_2 = (CGROUPS / "cgroup.controllers").exists()
    group = (CGROUPS if version_2 else CGROUPS / "memory") / name
    try:
        group.mkdir()
    except OSError:
        yield None
        return
    try:
        limit = "memory.max" if version_2 else "memory.limit_in_bytes"
        try:
            (group / limit).write_text(str(most))
        except OSError:
            yield None
            return
        yield group
    finally:
        group.rmdir()


def cgroup(tally, work, pool):
    """A model larger than the memory of its control group."""
    kind = "memory cgroup"
    model = models.write_sharded(work / "model", 12, 4 * MIB)
    expected = models.read_model(model)

    def within(way, **options):
        with memory_group(32 * MIB) as group:
            if group is None:
                return None
            with Probe(way, model, **options) as probe:
                (group / "cgroup.procs").write_text(str(probe.pid))
                probe.go()
                return probe.outcome()

    for io in ("auto", "buffered", "direct"):
        # It passes through by streaming.
        outcome = within("stream", io=io, in_flight=16 * MIB)
        if outcome is None:
            return tally.skip(kind, "no memory cgroup can be made here")
        tally.count(kind, f"48 MiB streamed in 32 MiB, {io}", judge(outcome, [], expected))

        outcome = within("load", io=io, memory_check=1)
        wrong = judge(outcome, [model.name]) or (
            None if "limit of control group" in outcome.text else f"it is not refused: {outcome}"
        )
        tally.count(kind, f"48 MiB loaded in 32 MiB, {io}, with a look beforehand", wrong)

        # The system ends what it has promised memory that is not there, unless it can swap.
        outcome = within("load", io=io)
        is_ended = outcome.kind == "died" and outcome.signal == signal.SIGKILL
        wrong = None if is_ended else judge(outcome, [], expected)
        tally.count(kind, f"48 MiB loaded in 32 MiB, {io}", wrong)
    return None
