"""Reads that bring less than was asked for, and interrupted ones: the result must be the same."""

import subprocess

import models
from probe import Probe, use
from ways import FILE, LOADS, MAPS, OPEN, right

KIND = "short reads"


def run(tally, work, pool):
    """Uses a model in a process whose reads are short, by a library that is loaded before others."""
    tally.kind(KIND)
    source, library = models.HERE / "short_reads.c", work / "short_reads.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    model = models.copy_llama(work / "model")

    def attempt(way, most):
        env = {"LD_PRELOAD": str(library), "SHORT_READS_MOST": str(most)}
        with Probe(way.name, model / (way.file or ""), env=env, **way.options) as probe:
            is_loaded = any(str(library) == file for file in probe.held()[2])
            probe.go()
            outcome = probe.outcome()
        wrong = None if is_loaded else "reads were not short"
        unharmed = use(way.name, model / (way.file or ""), **way.options)
        if outcome.kind != "ok" or outcome.digests != right(way, model, unharmed) or outcome.left:
            wrong = f"{outcome.kind}, {outcome.text}, left {outcome.left}"
        tally.count(KIND, f"{way.label}, {most} bytes a read", wrong)

    ways = [OPEN, FILE, *LOADS, *MAPS]
    for job in [pool.submit(attempt, way, most) for way in ways for most in (7, 1000, 4096, 65537)]:
        job.result()
