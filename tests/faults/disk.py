"""No room for what is saved: files that may not grow, and a disk that is full."""

import ctypes
import os
import resource
import signal

import models
from probe import limited, use
from verdict import judge, judge_save


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
                wrong = wrong or judge_save(outcome, to, old, new)
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
            wrong = wrong or judge_save(outcome, to, old, new)
            tally.count(kind, f"{room} bytes of room", wrong)
        finally:
            libc.umount2(os.fsencode(disk), 2)
    return None
