"""System calls that fail: the nth call of each kind, for n = 1, 2, … until a use is not harmed."""

import pathlib
import shutil

import models
from strace import Strace, calls_in
from tally import EXCEPTED, is_beyond
from verdict import judge, judge_save
from ways import FILE, LOADS, MAPS, OPEN, SAVE, right

LOOK = ["EIO", "EACCES", "ESTALE", "EINTR", "ENOMEM"]
# The errors that each call may give; `retval=0` is an end of the file where none should be. Calls
# that no way makes cost nothing here. A call that is made to fail is not made at all, so that of
# `close` and `munmap` would leave what they were to take away.
ERRORS = {
    "openat": ["EIO", "EINTR", "EMFILE", "ENFILE", "ENOMEM", "EACCES", "ESTALE", "EINVAL"],
    "statx": [*LOOK, "EINVAL", "ENOSYS"],
    "fstat": LOOK,
    "newfstatat": LOOK,
    "readlink": LOOK,
    "readlinkat": LOOK,
    "getdents64": ["EIO", "EINTR", "ENOENT", "ESTALE"],
    "read": ["EIO", "EINTR", "ESTALE", "EISDIR"],
    "pread64": ["EIO", "EINTR", "EINVAL", "ENOMEM", "ESTALE", "EAGAIN", "retval=0"],
    "preadv2": ["EIO", "EINTR", "EINVAL", "EOPNOTSUPP", "EAGAIN", "ENOSYS"],
    "lseek": ["EIO", "EINVAL"],
    "fstatfs": ["EIO", "EINTR", "ENOSYS", "ESTALE"],
    "statfs": ["EIO", "EINTR", "ENOSYS", "ESTALE"],
    "fadvise64": ["EIO", "EINVAL"],
    "fcntl": ["EINVAL", "EMFILE"],
    "mmap": ["ENOMEM", "EAGAIN", "ENODEV", "EACCES"],
    "mremap": ["ENOMEM"],
    "mprotect": ["ENOMEM"],
    "madvise": ["EINVAL", "ENOMEM", "EAGAIN", "EFAULT", "EIO"],
    "clone3": ["EAGAIN", "ENOMEM"],
    "sched_getaffinity": ["EPERM", "EINVAL"],
    "write": ["EIO", "EINTR", "ENOSPC", "EDQUOT"],
    "fsync": ["EIO", "ENOSPC"],
    "fdatasync": ["EIO"],
    "ftruncate": ["EIO", "ENOSPC"],
    "rename": ["EIO", "EACCES", "ENOSPC"],
    "renameat": ["EIO", "EACCES"],
    "renameat2": ["EIO", "EACCES", "ENOSYS"],
    "link": ["EIO"],
    "linkat": ["EIO"],
    "mkdir": ["EIO", "EACCES", "ENOSPC"],
    "unlink": ["EIO", "EACCES"],
    "unlinkat": ["EIO", "EACCES"],
    "rmdir": ["EIO"],
    "chmod": ["EIO", "EPERM"],
    "fchmod": ["EIO", "EPERM"],
}
# Calls that bring memory or threads: the error names the model, if no file of it.
PATHLESS = {"mmap", "mremap", "mprotect", "madvise", "clone3", "sched_getaffinity"}
# Calls that take away what a save leaves behind when it fails.
CLEANING = {"unlink", "unlinkat", "rmdir", "openat", "getdents64", "newfstatat", "statx", "fcntl"}
# More calls of a kind than any way makes.
ENDLESS = 400
WAYS = [OPEN, FILE, *LOADS, *MAPS, SAVE]


def run(tally, work, pool):
    """Harms every call of every way."""
    kind = "calls that fail"
    tally.kind(kind)
    model = models.copy_llama(work / "model")
    jobs = []
    for number, way in enumerate(WAYS):
        case = Case(way, model, work / f"way-{number}")
        expected, counts = case.unharmed()
        if not counts:
            tally.count(kind, way.label, "no call was traced")
        for call in sorted(counts.keys() & ERRORS.keys()):
            for error in ERRORS[call]:
                jobs.append(pool.submit(case.harm, tally, kind, call, error, expected))
    for job in jobs:
        job.result()


class Case:
    """One way with the model that it uses and a folder for what it writes."""

    def __init__(self, way, model, work):
        self.way, self.model, self.work = way, model, work
        self.old = None
        if way.name == "save":
            work.mkdir()
            self.old = models.write_sharded(work / "old", 2, 3000)

    def attempt(self, to, log, arguments):
        """Uses the model under strace; returns what came of it and what was harmed."""
        if self.old:
            shutil.copytree(self.old, to)
        with self.way.start(self.model, self.old and to) as probe:
            with Strace(probe, log, arguments) as strace:
                self.way.go(probe)
                outcome = probe.outcome()
            return outcome, strace

    def unharmed(self):
        """What the use gives, and how often it makes each call."""
        self.work.mkdir(exist_ok=True)
        outcome, strace = self.attempt(self.work / "to", self.work / "log", [])
        expected = right(self.way, self.model, outcome)
        if outcome.kind != "ok" or outcome.digests != expected or outcome.left:
            raise RuntimeError(f"{self.way.label}, unharmed: {outcome}")
        return outcome, calls_in(strace.log.read_text())

    def harm(self, tally, kind, call, error, expected):
        """Lets the nth call fail, for every n that there is."""
        error = error if "=" in error else f"error={error}"
        for n in range(1, ENDLESS):
            name = f"{call}-{error}-{n}"
            to, log = self.work / f"to-{name}", self.work / f"log-{name}"
            arguments = ["-e", f"trace={call}", "-e", f"inject={call}:{error}:when={n}"]
            outcome, strace = self.attempt(to, log, arguments)
            injected = strace.injected()
            wrong = self.judge(outcome, injected, expected, to)
            tally.count(kind, f"{self.way.label}, {call} {n} {error}", wrong, len(injected))
            if not wrong:
                log.unlink()
            if not injected:
                break
        else:
            tally.count(kind, f"{self.way.label}, {call}", "there is no end of calls")

    def judge(self, outcome, injected, expected, to):
        """What is not as promised, or nothing."""
        calls = {call for call, _ in injected}
        if calls & PATHLESS and is_beyond(outcome):
            return EXCEPTED
        names = {pathlib.Path(path).name for _, paths in injected for path in paths} - {""}
        if calls & PATHLESS:
            names |= {self.model.name}
        if self.old and calls:
            names |= {to.name}
        wrong = judge(outcome, names, expected.digests)
        if not wrong and outcome.kind == "ok" and outcome.index != expected.index:
            wrong = f"another index than without the fault: {outcome.index}"
        if self.old and not wrong:
            old, new = models.read_model(self.old), models.read_model(self.model)
            wrong = judge_save(outcome, to, old, new, not calls & CLEANING)
            shutil.rmtree(to)
        return wrong
