"""strace, attached to a waiting process, so that the calls of its start do not count."""

import pathlib
import re
import select
import subprocess
import time

INJECTED = re.compile(r"^(\d+) +(\w+)\((.*)")
PATHS = re.compile(r'"([^"]*)"|<(/[^>]*)>')


class Strace:
    """Traces a process and its threads until it ends.

    Calls are counted for each thread by itself, as strace does: a fault of the nth call meets every
    thread that makes as many.
    """

    def __init__(self, probe, log, arguments):
        self.log = pathlib.Path(log)
        command = ["strace", "-f", "-y", "-s", "300", "-p", str(probe.pid), "-o", log, *arguments]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, bufsize=0)
        said, until = b"", time.monotonic() + 30
        while b"attached" not in said:
            ready = select.select([self.process.stderr], [], [], until - time.monotonic())[0]
            some = self.process.stderr.read(1000) if ready else b""
            if not some:
                self.process.kill()
                raise RuntimeError(f"strace: {said.decode()}")
            said += some

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.terminate()
        self.process.communicate()

    def injected(self):
        """The calls that were harmed, each as its name and the paths that it was about."""
        return injected_in(self.log.read_text(errors="replace"))


def injected_in(log):
    begun, found = {}, []
    for line in log.splitlines():
        call = INJECTED.match(line)
        if call and "<unfinished ...>" in line:
            begun[call[1]] = call
        if "(INJECTED" not in line:
            continue
        if not call:
            call = begun[line.split(" ", 1)[0]]
        paths = [text or link for text, link in PATHS.findall(call[3])]
        found.append((call[2], [path for path in paths if path]))
    return found


def calls_in(log):
    """How often each call was made."""
    counts = {}
    for line in log.splitlines():
        call = INJECTED.match(line)
        if call:
            counts[call[2]] = counts.get(call[2], 0) + 1
    return counts
