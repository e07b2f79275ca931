"""Files that change under a use: it is stopped after each of its calls, a shard changes, it goes on.

What is read must be what the shard held when it was opened, or there is an error that names it.
"""

import os
import signal
import time

import models
from probe import PATIENCE, Probe
from strace import Strace, calls_in
from verdict import judge
from ways import FILE, LOADS, MAPS, OPEN, right

SHARD = "model-00002-of-00004.safetensors"
STOPPED = "--- stopped by SIGSTOP ---"


def truncate(shard):
    os.truncate(shard, shard.stat().st_size // 2)


def rewrite(shard):
    content = models.other_bytes(shard.read_bytes())
    with open(shard, "r+b") as file:
        file.write(content)


def rewrite_secretly(shard):
    before = shard.stat()
    rewrite(shard)
    os.utime(shard, ns=(before.st_atime_ns, before.st_mtime_ns))


def replace(shard):
    new = shard.with_suffix(".new")
    new.write_bytes(models.other_bytes(shard.read_bytes()))
    new.rename(shard)


def replace_shorter(shard):
    new = shard.with_suffix(".new")
    new.write_bytes(shard.read_bytes()[:5000])
    new.rename(shard)


def remove(shard):
    shard.unlink()


def append(shard):
    with open(shard, "ab") as file:
        file.write(b"more")


def touch(shard):
    os.utime(shard)


CHANGES = [
    truncate,
    rewrite,
    rewrite_secretly,
    replace,
    replace_shorter,
    remove,
    append,
    touch,
]
# What becomes of bytes that a mapping shows is the promise of its caller; where bytes are gone,
# they are missed as they are brought in.
OF_MAPS = [replace, replace_shorter, remove, touch]


def run(tally, work, pool):
    """Changes a shard after each call that a use makes about it, and a mapped one."""
    kind = "files that change"
    tally.kind(kind)
    jobs = []
    for number, way in enumerate([OPEN, FILE, *LOADS, *MAPS]):
        case = Case(way, work / f"way-{number}")
        expected, counts = case.unharmed()
        for call in counts:
            for change in OF_MAPS if way in MAPS else CHANGES:
                jobs.append(pool.submit(case.harm_each, tally, kind, call, change, expected))
        if way.name == "populate":
            jobs.append(pool.submit(case.harm, tally, kind, "mmap", 1, truncate, expected))
    jobs.append(pool.submit(mapped, tally, work / "mapped"))
    for job in jobs:
        job.result()


class Case:
    """One way of using copies of a model, of which a shard changes."""

    def __init__(self, way, work):
        self.way, self.work = way, work
        work.mkdir()

    def unharmed(self):
        """What the use gives, and how often it makes each call about the shard."""
        model, log = models.copy_llama(self.work / "unharmed"), self.work / "log"
        with self.way.start(model) as probe:
            with Strace(probe, log, ["-P", str(model / SHARD)]):
                self.way.go(probe)
                outcome = probe.outcome()
        expected = right(self.way, model, outcome)
        if outcome.kind != "ok" or outcome.digests != expected or outcome.left:
            raise RuntimeError(f"{self.way.label}, unharmed: {outcome}")
        return expected, calls_in(log.read_text())

    def harm_each(self, tally, kind, call, change, expected):
        """Harms the use after the first such call about the shard, the second, and so on."""
        n = 1
        while self.harm(tally, kind, call, n, change, expected):
            n += 1

    def harm(self, tally, kind, call, n, change, expected):
        """Stops the use after the nth call about the shard, changes it, and lets the use go on.

        Returns whether there were so many such calls.
        """
        name = f"{call}-{n}-{change.__name__}"
        model, log = models.copy_llama(self.work / name), self.work / f"log-{name}"
        shard = model / SHARD
        # Every such call stops the use, whichever thread makes it: strace counts by thread.
        inject = f"inject={call}:signal=SIGSTOP"
        with self.way.start(model) as probe:
            arguments = ["-P", str(shard), "-e", f"trace={call}", "-e", inject]
            with Strace(probe, log, arguments):
                self.way.go(probe)
                changed = False
                for stop in stops(probe, log):
                    if stop == n:
                        change(shard)
                        opened, changed = self.way.since == "opened", True
                    os.kill(probe.pid, signal.SIGCONT)
                outcome = probe.outcome()
        what = f"{self.way.label}, {change.__name__} after {call} {n}"
        if not changed:
            if n == 1:
                tally.count(kind, what, "it did not stop", 0)
            return False
        rights = [expected]
        if not opened and change in (rewrite, rewrite_secretly, replace):
            whole, halves = models.read_file(shard)
            rights.append({**expected, **whole, **(halves if self.way is FILE else {})})
        tally.count(kind, what, judge(outcome, [SHARD], *rights))
        return True


def stops(probe, log):
    """Numbers each stop of a process, until it has something to say or has ended."""
    seen, number, until = 0, 0, time.monotonic() + PATIENCE
    while time.monotonic() < until and not probe.has_ended():
        stops = log.read_text(errors="replace").count(STOPPED) if log.exists() else 0
        if stops > seen:
            # Each thread says that it stopped: several lines are one stop.
            seen, number = stops, number + 1
            yield number
        time.sleep(0.0005)


def mapped(tally, work):
    """A mapping that is touched after its file was truncated ends the process; nothing else does."""
    kind = "mapped files that shrink"
    ways = [("map", "mapped"), ("populate", "mapped"), ("populate", "opened"), ("load", "opened")]
    for number, (way, step) in enumerate(ways):
        model = models.copy_llama(work / str(number))
        with Probe(way, model, steps=1) as probe:
            said = {"at": "started"}
            while said["at"] != step:
                probe.go()
                said = probe.hear()
            os.truncate(model / SHARD, 4096)
            probe.go()
            outcome = probe.outcome()
        if step == "mapped":
            wrong = None if outcome.signal == signal.SIGBUS else f"no SIGBUS: {outcome}"
        else:
            named = outcome.kind == "error" and SHARD in outcome.text
            wrong = None if named else f"no error that names the shard: {outcome}"
        tally.count(kind, f"{way}, truncated when {step}", wrong)
