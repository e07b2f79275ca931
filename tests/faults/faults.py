"""Harms the use of models from outside, and checks that each use ends as promised.

usage: faults.py PROBE WORK [KIND]...

PROBE is the program fault-probe, WORK a folder on a disk, which is emptied. A use must give the
right bytes, or an error that names the file; it must not end by a signal or a panic, or not at all,
and must leave no thread, descriptor or mapping.
"""

import concurrent.futures
import os
import pathlib
import shutil
import sys

import changes
import inject
import kills
import limits
import remote
import short
from probe import Probe
from tally import Tally

KINDS = {
    "inject": inject,
    "short": short,
    "kills": kills,
    "changes": changes,
    "limits": limits,
    "remote": remote,
}


def main(program, work, *kinds):
    Probe.program = pathlib.Path(program).resolve()
    work = pathlib.Path(work).resolve()
    shutil.rmtree(work, ignore_errors=True)
    tally = Tally()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name in kinds or KINDS:
            (work / name).mkdir(parents=True)
            KINDS[name].run(tally, work / name, pool)
    return 0 if tally.close() else 1


sys.exit(main(*sys.argv[1:]))
