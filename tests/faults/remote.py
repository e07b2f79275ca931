"""A file system that fails, lies, or changes under a use, as networks and disks do."""

import errno
import itertools
import os
import pathlib
import signal
import threading

import models
from fusefs import FaultyFs, File
from probe import Probe, use
from verdict import judge
from ways import LOADS, MAPS, OPEN, right

SHARD = "model-00002-of-00004.safetensors"
PIECE = 8 << 20
# What the kernel reads ahead of a reader, and some more.
AHEAD = 1 << 20
KIND = "file systems that fail"


def run(tally, work, pool):
    """Mounts a model for each use, and harms it by what its files answer."""
    if not pathlib.Path("/dev/fuse").exists() or os.geteuid() != 0:
        tally.skip(KIND, "needs root and /dev/fuse, to mount a file system")
        return
    tally.kind(KIND)
    rig = Rig(tally, work)
    # What a mapping shows of bytes that are written is the promise of its caller.
    harms = [(way, harm) for way in READS for harm in HARMS if harm not in OF_BYTES or way not in MAPS]
    jobs = [pool.submit(rig.nth_read, way, harm) for way, harm in harms]
    jobs += [pool.submit(rig.lie, way, lie) for way in READS for lie in LIES]
    jobs += [pool.submit(rig.populate_a_bad_page), pool.submit(rig.touch_a_bad_page)]
    jobs += [pool.submit(rig.cancel, way) for way in ("load", "stream", "async", "stream_async")]
    for job in jobs:
        job.result()


# A mapping that is touched before its bytes are there dies where they cannot be had, so that it
# is harmed apart.
READS = [OPEN, *(way for way in LOADS if not way.denied), MAPS[1]]


def fail(file, offset, length):
    raise OSError(errno.EIO, "")


def end(file, offset, length):
    return b""


def shorten(file, offset, length):
    content = file.content
    file.rewrite(content[: len(content) // 2])
    return content[offset : offset + length]


def rewrite(file, offset, length):
    file.rewrite(models.other_bytes(file.content))
    return file.content[offset : offset + length]


def rewrite_after(file, offset, length):
    content = file.content
    file.rewrite(models.other_bytes(content))
    return content[offset : offset + length]


OF_BYTES = [rewrite, rewrite_after]
HARMS = [fail, end, shorten, *OF_BYTES]


def longer(file):
    return len(file.content) + 5000


def shorter(file):
    return len(file.content) - 5000


def empty(file):
    return 0


def endless(file):
    return 1 << 62


def waning(file):
    file.looks = getattr(file, "looks", 0) + 1
    return max(len(file.content) - 100 * file.looks, 0)


def growing(file):
    file.looks = getattr(file, "looks", 0) + 1
    return len(file.content) + 100 * file.looks


LIES = [longer, shorter, empty, endless, waning, growing]


class Rig:
    """Mounts copies of a model and uses them."""

    def __init__(self, tally, work):
        self.tally, self.work = tally, work
        self.numbers = itertools.count()
        self.files = {path.name: path.read_bytes() for path in models.SHIPPED.iterdir()}
        model = models.SHIPPED
        self.expected = {way.name: right(way, model, use(way.name, model)) for way in READS}

    def mount(self):
        files = {name: File(content) for name, content in self.files.items()}
        return FaultyFs(self.work / f"mount-{next(self.numbers)}", files)

    def nth_read(self, way, harm):
        """Harms the nth read of a shard once it is open, for every n that there is."""
        for n in itertools.count(1):
            with self.mount() as fs:
                file = fs.files[SHARD]
                with way.start(fs.path) as probe:
                    before = len(file.reads)

                    def read(offset, length, file=file, before=before):
                        if len(file.reads) - before == n:
                            return harm(file, offset, length)
                        return file.content[offset : offset + length]

                    file.read = read
                    way.go(probe)
                    outcome = probe.outcome()
                    harmed = len(file.reads) - before >= n
            wrong = judge(outcome, [SHARD] if harmed else [], self.expected[way.name])
            what = f"{way.label}, {harm.__name__} at read {n}"
            self.tally.count(KIND, what, wrong, int(harmed))
            if not harmed:
                return

    def lie(self, way, lie):
        """Says a wrong length of a shard, from the start and once it is open."""
        for from_start in (True, False):
            with self.mount() as fs:
                file = fs.files[SHARD]
                if from_start:
                    file.size = lambda: lie(file)
                with self.start(way, fs.path, from_start) as probe:
                    file.size = lambda: lie(file)
                    way.go(probe)
                    outcome = probe.outcome()
            when = "from the start" if from_start else "once open"
            wrong = judge(outcome, [SHARD], self.expected[way.name])
            self.tally.count(KIND, f"{way.label}, {lie.__name__} {when}", wrong)

    def start(self, way, path, from_start):
        return Probe(way.name, path, **way.options) if from_start else way.start(path)

    def populate_a_bad_page(self):
        self.bad_page("populate")

    def touch_a_bad_page(self):
        """What the documentation of mapping says of disks that fail."""
        self.bad_page("map")

    def bad_page(self, name):
        with self.mount() as fs:
            file = fs.files[SHARD]
            with Probe(name, fs.path, steps=1) as probe:
                probe.go()
                probe.expect("opened")
                file.read = lambda offset, length: fail(file, offset, length)
                probe.go()
                probe.go()
                outcome = probe.outcome()
        if name == "map":
            wrong = None if outcome.signal == signal.SIGBUS else f"no SIGBUS: {outcome}"
        else:
            named = outcome.kind == "error" and SHARD in outcome.text
            wrong = None if named else f"no error that names the shard: {outcome}"
        self.tally.count(KIND, f"{name}, a page that cannot be read", wrong)

    def cancel(self, name):
        """Cancels while the first read of a shard waits: after it, each thread ends within a piece."""
        threads = 2
        content = models.file_bytes([("t", "U8", [48 << 20], bytes(48 << 20))])
        file = File(content)
        waits, may_go = threading.Event(), threading.Event()
        with FaultyFs(self.work / f"cancel-{name}", {"model.safetensors": file}) as fs:
            with Probe(name, fs.path, threads=threads, steps=1, cancel=1) as probe:
                probe.go()
                probe.expect("opened")
                before = len(file.reads)

                def read(offset, length):
                    waits.set()
                    may_go.wait()
                    return content[offset : offset + length]

                file.read = read
                probe.go()
                reads = waits.wait(30)
                probe.go()
                probe.expect("cancelled")
                may_go.set()
                outcome = probe.outcome()
            byte_len = sum(length for _, length in file.reads[before:])
        cancelled = outcome.kind == "error" and "cancel" in outcome.text
        wrong = None if reads and cancelled else f"not cancelled: {outcome}"
        if byte_len > threads * (PIECE + AHEAD):
            wrong = f"{byte_len} bytes were read, more than a piece for each thread"
        self.tally.count(KIND, f"{name}, cancelled while it reads", wrong or outcome.left or None)
