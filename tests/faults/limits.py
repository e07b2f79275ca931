"""What a process may not have: files, memory, room on the disk, permissions, regular files."""

import contextlib
import ctypes
import os
import pathlib
import resource
import shutil
import signal
import socket
import tempfile

import models
from probe import Probe, use
from tally import EXCEPTED, is_beyond
from ways import LOADS, MAPS, OPEN, Way, right

MIB = 1 << 20
NOBODY = 65534
READS = [OPEN, *LOADS, *MAPS]
CGROUPS = pathlib.Path("/sys/fs/cgroup")


def run(tally, work, pool):
    """Runs each kind of limit."""
    for limit in (files, memory, file_size, full_disk, cgroup, permissions, special_files):
        folder = work / limit.__name__
        folder.mkdir()
        limit(tally, folder, pool)


def judge(outcome, names, expected=None):
    """What is not as promised, or nothing: a right result, or an error with one of the names."""
    if outcome.kind not in ("ok", "error"):
        return f"{outcome.kind}, {outcome.text}"
    if outcome.left:
        return f"left {outcome.left}"
    if outcome.kind == "ok":
        return None if expected in (None, outcome.digests) else "other bytes than without the limit"
    named = any(name in outcome.text for name in names)
    return None if named else f"the error names none of {names}: {outcome.text}"


def limited(way, path, what, most, **options):
    """Uses a model in a process that, once started, may have so much of something."""
    with Probe(way, path, **options) as probe:
        resource.prlimit(probe.pid, what, (most, most))
        probe.go()
        return probe.outcome()


def files(tally, work, pool):
    """Few open files."""
    kind = "open files"
    tally.kind(kind)
    many = models.write_sharded(work / "many", 256, 5000)
    expected = models.read_model(many)
    few = models.copy_llama(work / "few")
    right_of_few = {way.name: right(way, few, use(way.name, few)) for way in READS}

    def with_32(way, threads):
        options = {**way.options, "threads": threads}
        outcome = limited(way.name, many, resource.RLIMIT_NOFILE, 32, **options)
        wrong = judge(outcome, [], None if way.name == "open" else expected)
        tally.count(kind, f"{way.label}, {threads} threads, 256 shards, 32 files", wrong)

    def ladder(way):
        for more in range(12):
            with Probe(way.name, few, **way.options) as probe:
                most = len(probe.before[0]) + more
                resource.prlimit(probe.pid, resource.RLIMIT_NOFILE, (most, most))
                probe.go()
                outcome = probe.outcome()
            wrong = judge(outcome, [few.name, ".safetensors"], right_of_few[way.name])
            tally.count(kind, f"{way.label}, {more} files", wrong)

    # No rules for ranks fit these names.
    ways = [way for way in READS if way.name != "rank"]
    jobs = [pool.submit(with_32, way, threads) for way in ways for threads in (1, 64)]
    jobs += [pool.submit(ladder, way) for way in READS]
    for job in jobs:
        job.result()


def memory(tally, work, pool):
    """Little address space: more and more, until the use succeeds."""
    kind = "address space"
    tally.kind(kind)
    model = models.write_sharded(work / "model", 4, 6 * MIB)
    expected = models.read_model(model)
    names = [model.name, "thread"]

    def ladder(way):
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
            tally.count(kind, f"{way.label}, {room} bytes more", wrong)
            if outcome.kind == "ok":
                return
            room += max(4096, room // 16 & -4096)
        tally.count(kind, way.label, "it never succeeds")

    # The places of load_into are those of the caller, who has to get them.
    ways = [OPEN, Way("load", threads=1), Way("load", threads=4), Way("load", io="direct")]
    ways += [Way("stream", threads=1, in_flight=16 * MIB), Way("async"), *MAPS]
    for job in [pool.submit(ladder, way) for way in ways]:
        job.result()


def judge_target(outcome, to, old, new):
    """Of a save that may have failed: the target is old, new, or no model."""
    found = models.read_model(to)
    if outcome.kind == "ok":
        return None if found == new else "saved, and the target is another model"
    if found == old:
        hidden = [entry.name for entry in to.iterdir() if entry.name.startswith(".")]
        return f"left {hidden} in the target" if hidden and outcome.kind == "error" else None
    if found is None and use("open", to).kind == "error":
        return None
    return f"the target opens, and is not what it was: {sorted(found or [])[:5]}"


def file_size(tally, work, pool):
    """Files that may not grow, with the signal of it ignored and not."""
    kind = "size of files"
    tally.kind(kind)
    model = models.copy_llama(work / "model")
    new = models.read_model(model)
    for most in (0, 1, 100, 4096, 40000, 130000, 1 << 40):
        for ignored in (True, False):
            for is_new in (True, False):
                to = work / f"to-{most}-{ignored}-{is_new}"
                if not is_new:
                    models.write_sharded(to, 2, 3000)
                old = None if is_new else models.read_model(to)
                popen = {"restore_signals": not ignored}
                outcome = limited(
                    "save", model, resource.RLIMIT_FSIZE, most, popen=popen, to=to
                )
                to.mkdir(exist_ok=True)
                killed = not ignored and outcome.signal == signal.SIGXFSZ
                wrong = None if killed else judge(outcome, [to.name, ".safetensors"], new)
                wrong = wrong or judge_target(outcome, to, old, new)
                what = f"{most} bytes, signal {'ignored' if ignored else 'taken'}, new {is_new}"
                tally.count(kind, what, wrong)


def full_disk(tally, work, pool):
    """A disk without room for what is saved."""
    kind = "full disk"
    libc = ctypes.CDLL(None, use_errno=True)
    model = models.copy_llama(work / "model")
    new = models.read_model(model)
    for room in (0, 4096, 65536, 200_000, 300_000, 400_000, 800_000):
        disk = work / f"disk-{room}"
        disk.mkdir()
        options = f"size={room + 40960}".encode()
        if libc.mount(b"tmpfs", os.fsencode(disk), b"tmpfs", 0, options) != 0:
            return tally.skip(kind, f"tmpfs: {os.strerror(ctypes.get_errno())}")
        try:
            to = models.write_sharded(disk / "to", 2, 3000)
            old = models.read_model(to)
            outcome = use("save", model, to=to)
            wrong = judge(outcome, [to.name, ".safetensors"], new)
            wrong = wrong or judge_target(outcome, to, old, new)
            tally.count(kind, f"{room} bytes of room", wrong)
        finally:
            libc.umount2(os.fsencode(disk), 2)
    return None


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
    """A model larger than the memory of the container: it passes through by streaming."""
    kind = "memory cgroup"
    model = models.write_sharded(work / "model", 12, 4 * MIB)
    expected = models.read_model(model)
    for io in ("auto", "buffered", "direct"):
        with memory_group(32 * MIB) as group:
            if group is None:
                return tally.skip(kind, "no memory cgroup can be made here")
            with Probe("stream", model, io=io, in_flight=16 * MIB) as probe:
                (group / "cgroup.procs").write_text(str(probe.pid))
                probe.go()
                outcome = probe.outcome()
            wrong = judge(outcome, [], expected)
            tally.count(kind, f"48 MiB streamed in 32 MiB, {io}", wrong)
    return None


def permissions(tally, work, pool):
    """Files and folders that the user may not read."""
    kind = "permissions"
    if os.geteuid() != 0:
        return tally.skip(kind, "needs root, to become a user who owns nothing")
    # Every folder above has to let the user through, which those of a build need not do.
    with public_folder() as public:
        program = public / "probe"
        shutil.copy(Probe.program, program)
        program.chmod(0o755)
        user = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        shard = "model-00002-of-00004.safetensors"
        cases = [("shard", shard, 0o000), ("index", models.INDEX, 0o000), ("list", ".", 0o711)]
        cases += [("folder", ".", 0o000), ("enter", ".", 0o744), ("readable", shard, 0o444)]
        for name, path, mode in cases:
            model = models.copy_llama(public / name)
            expected = models.read_model(model)
            (model / path).chmod(mode)
            for way in (OPEN, Way("load"), Way("stream"), Way("map")):
                with Probe(way.name, model, program=program, popen=user) as probe:
                    probe.go()
                    outcome = probe.outcome()
                wrong = judge(outcome, [(model / path).name], None if way == OPEN else expected)
                if name != "readable" and outcome.kind == "ok":
                    wrong = "it was read"
                tally.count(kind, f"{way.label}, {name}", wrong)
        # Neither owner nor writer: the kernel does not say what is cached.
        for way in LOADS:
            model = public / "readable"
            with Probe(way.name, model, program=program, popen=user, **way.options) as probe:
                probe.go()
                outcome = probe.outcome()
            wrong = judge(outcome, [], right(way, model, use(way.name, model)))
            tally.count(kind, f"{way.label}, files of another user", wrong)
    return None


@contextlib.contextmanager
def public_folder():
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield pathlib.Path(folder)


def special_files(tally, work, pool):
    """What is not a regular file in place of one, from the start or once the model is open."""
    kind = "special files"
    tally.kind(kind)
    shard = "model-00002-of-00004.safetensors"
    makers = {"FIFO": os.mkfifo, "socket": make_socket, "folder": os.mkdir}
    if os.geteuid() == 0:
        # 1:5 is /dev/zero, which never ends.
        makers["device"] = lambda path: os.mknod(path, 0o020644, os.makedev(1, 5))
    for name, make in makers.items():
        for file in (shard, models.INDEX, "config.json"):
            for way in (OPEN, *LOADS, *MAPS):
                for step in ("started", "opened"):
                    if step == "opened" and (way == OPEN or file != shard):
                        continue
                    model = models.copy_llama(work / f"{name}-{file}-{way.label}-{step}")
                    with Probe(way.name, model, **way.options, steps=1) as probe:
                        if step == "opened":
                            probe.go()
                            probe.expect("opened")
                        (model / file).unlink()
                        make(model / file)
                        for _ in range(3):
                            probe.go()
                        outcome = probe.outcome()
                    wrong = judge(outcome, [file])
                    # Without its configuration a model is still one, but for a rank.
                    if outcome.kind == "ok" and file != "config.json":
                        wrong = "it was read"
                    tally.count(kind, f"{way.label}, {file} is a {name} when {step}", wrong)


def make_socket(path):
    # The name of a socket is at most 107 bytes long: it is given relative to its folder.
    here = os.open(path.parent, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(f"/proc/self/fd/{here}/{path.name}")
    os.close(here)
