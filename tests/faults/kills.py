"""Processes that are killed while they save, before the nth call of each kind, for n = 1, 2, …

What is left is the old model, the new one or none. What else is there has a name that nobody looks
for, and the next save succeeds.
"""

import shutil

import models
from probe import use
from strace import Strace, calls_in
from verdict import judge_target
from ways import SAVE, WRITE

KIND = "kills while saving"
# Calls that change what is on the disk: between two of them a kill leaves one state.
CALLS = {
    "openat", "mkdir", "mkdirat", "write", "pwrite64", "fsync", "fdatasync", "ftruncate", "chmod",
    "fchmod", "rename", "renameat", "renameat2", "link", "linkat", "unlink", "unlinkat", "rmdir",
}
# More calls of a kind than any save makes.
ENDLESS = 400
SINGLE, SHARDED = 1_000_000, 150_000
# As many as the model has when it is saved in shards, so that names are the same.
SHARDS = 3


def run(tally, work, pool):
    """Kills saves of models and of files, over what may be there before."""
    tally.kind(KIND)
    model = models.copy_llama(work / "model")
    cases = [(SAVE, size, shards) for size in (SINGLE, SHARDED) for shards in (None, 1, 2, 7)]
    cases += [(SAVE, SHARDED, SHARDS), (WRITE, SINGLE, None), (WRITE, SINGLE, 1)]
    jobs = []
    for number, (way, size, shards) in enumerate(cases):
        case = Case(model, work / f"case-{number}", way, size, shards)
        counts = case.unharmed()
        if not counts.keys() & CALLS:
            tally.count(KIND, case.label, "no call was traced")
        jobs += [pool.submit(case.kill, tally, call) for call in counts.keys() & CALLS]
    for job in jobs:
        job.result()


class Case:
    """A model, how it is saved, and the model that was there before."""

    def __init__(self, model, work, way, size, shards):
        self.model, self.work, self.way, self.size = model, work, way, size
        self.label = f"{way.label}, {size} bytes a file, over {shards} files"
        work.mkdir()
        self.old = work / "old" if shards else None
        if shards == 1:
            self.old.mkdir()
            content = models.file_bytes([("t", "U8", [3000], bytes(3000))])
            (self.old / "model.safetensors").write_bytes(content)
        elif shards:
            models.write_sharded(self.old, shards, 3000)
        if shards:
            (self.old / "config.json").write_text('{"is": "old"}')
        self.was = models.read_model(self.old) if shards else None

    def attempt(self, to, log, arguments):
        """Saves into a folder that holds the old model, under strace."""
        if self.old:
            shutil.copytree(self.old, to)
        elif self.way is WRITE:
            to.mkdir()
        with self.way.start(self.model, self.place(to), shard_size=self.size) as probe:
            with Strace(probe, log, arguments):
                self.way.go(probe)
                return probe.outcome()

    def place(self, to):
        """What is written to: a file or a folder."""
        return to / "model.safetensors" if self.way is WRITE else to

    def unharmed(self):
        """Learns what a save makes; returns how often it makes each call."""
        to, log = self.work / "new", self.work / "log"
        outcome = self.attempt(to, log, [])
        self.new, self.files = models.read_model(to), {path.name for path in to.iterdir()}
        self.beside = models.read_beside(to)
        if outcome.kind != "ok" or outcome.digests != self.new:
            raise RuntimeError(f"{self.label}, unharmed: {outcome}")
        weights = self.files - self.beside.keys()
        if self.size == SHARDED and len(weights) != SHARDS + 1:
            raise RuntimeError(f"{self.label}: {sorted(weights)} are not {SHARDS} and an index")
        return calls_in(log.read_text())

    def kill(self, tally, call):
        """Kills the save before its nth such call, for every n that there is."""
        for n in range(1, ENDLESS):
            name = f"{call}-{n}"
            to, log = self.work / f"to-{name}", self.work / f"log-{name}"
            arguments = ["-e", f"trace={call}", "-e", f"inject={call}:signal=KILL:when={n}"]
            outcome = self.attempt(to, log, arguments)
            is_killed = outcome.signal == 9
            wrong = None if is_killed or outcome.kind == "ok" else f"{outcome.kind}, {outcome.text}"
            wrong = wrong or self.judge_left(to) or self.judge_next(to)
            tally.count(KIND, f"{self.label}, before {call} {n}", wrong, int(is_killed))
            if not wrong:
                log.unlink()
                shutil.rmtree(to)
            if not is_killed:
                return
        tally.count(KIND, f"{self.label}, {call}", "there is no end of calls")

    def judge_left(self, to):
        """What is not as promised of what a kill has left, or nothing."""
        found = models.read_model(to)
        if self.way is WRITE and found not in (self.was, self.new):
            return "the file is neither old nor new"
        if self.way is SAVE and found and models.read_beside(to) != self.beside_of(found):
            return "weights of one model beside the configuration of another"
        there = {path.name for path in to.iterdir()} if to.exists() else set()
        visible = {name for name in there if not (name[0] == "." and name.endswith(".tmp"))}
        before = {path.name for path in self.old.iterdir()} if self.old else set()
        if visible - before - self.files:
            return f"left {sorted(visible)}"
        # Where files of both are visible, there may be no model.
        if visible and visible in (before, self.files) and found and use("load", to).digests != found:
            return "what is there does not load"
        return judge_target(to, self.was, self.new)

    def beside_of(self, found):
        """What must be beside the weights that were found."""
        return self.beside if found == self.new else models.read_beside(self.old)

    def judge_next(self, to):
        """What is not as promised of the save that comes next, or nothing."""
        path = self.model / (self.way.file or "")
        outcome = use(self.way.name, path, to=self.place(to), shard_size=self.size)
        if outcome.kind != "ok" or models.read_model(to) != self.new:
            return f"the next save: {outcome.kind}, {outcome.text}"
        return None if use("load", to).digests == self.new else "the next save does not load"
