"""Files that a process cannot have: too many, those of others, and what is no regular file."""

import contextlib
import os
import pathlib
import resource
import shutil
import socket
import tempfile

import models
from probe import Probe, limited, use
from verdict import judge
from ways import LOADS, MAPS, OPEN, Way, right

NOBODY = 65534
READS = [OPEN, *LOADS, *MAPS]


def few_files(tally, work, pool):
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
