"""A process of fault-probe: started, spoken with, watched, and looked at from outside."""

import json
import os
import pathlib
import resource
import select
import subprocess
import time
from typing import NamedTuple

# Longer than any use of these small models takes, and shorter than anyone would wait.
PATIENCE = 30
# A thread that has been joined may be listed a moment longer.
LINGER = 5


class Outcome(NamedTuple):
    """What became of a use: `kind` is ok, error, died or hung."""

    kind: str
    digests: dict = {}
    index: str = None
    text: str = ""
    left: str = ""
    signal: int = 0


class Probe:
    """A process that uses a model in one way; it ends with the block that it is made for."""

    program = None

    def __init__(self, way, path, program=None, popen=None, env=None, **options):
        options = [f"{key}={value}" for key, value in options.items()]
        self.path = pathlib.Path(path)
        self.process = subprocess.Popen(
            [program or self.program, way, path, *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(os.environ, RUST_BACKTRACE="0", **(env or {})),
            bufsize=0,
            **(popen or {}),
        )
        self.pid = self.process.pid
        self.heard = b""
        self.last = None
        self.opened = False
        self.expect("started")
        self.before = self.held()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            stream.close()

    def hear(self, patience=PATIENCE):
        """The next line as a dictionary; None if the process ended; TimeoutError if it is silent."""
        until = time.monotonic() + patience
        while b"\n" not in self.heard:
            rest = until - time.monotonic()
            if rest <= 0 or not select.select([self.process.stdout], [], [], rest)[0]:
                raise TimeoutError
            some = os.read(self.process.stdout.fileno(), 1 << 20)
            if not some:
                return None
            self.heard += some
        line, _, self.heard = self.heard.partition(b"\n")
        said = json.loads(line)
        if said["at"] == "usage":
            raise ValueError(f"fault-probe: {said['wrong']}")
        self.opened = self.opened or said["at"] == "opened"
        return said

    def has_ended(self):
        """Whether the use is over; does not wait."""
        while select.select([self.process.stdout], [], [], 0)[0]:
            some = os.read(self.process.stdout.fileno(), 1 << 20)
            if not some:
                return True
            self.heard += some
        return b'"at":"done"' in self.heard

    def expect(self, at):
        said = self.hear()
        if said is None or said["at"] != at:
            raise ValueError(f"fault-probe: expected {at}, heard {said}")

    def go(self):
        """Lets the process go on from the step at which it waits."""
        try:
            self.process.stdin.write(b"\n")
        except BrokenPipeError:
            pass  # It is dead, which is heard next.

    def held(self):
        """What the process holds: descriptors by what they lead to, threads, mapped files."""
        proc = pathlib.Path(f"/proc/{self.pid}")
        descriptors = sorted(os.readlink(fd) for fd in (proc / "fd").iterdir())
        threads = len(list((proc / "task").iterdir()))
        maps = [line.split(None, 5) for line in (proc / "maps").read_text().splitlines()]
        files = sorted({line[5] for line in maps if len(line) == 6 and line[5][0] == "/"})
        return descriptors, threads, files

    def left(self):
        """What the process holds more than before its use, or nothing."""
        until = time.monotonic() + LINGER
        while True:
            descriptors, threads, files = self.held()
            if threads == self.before[1] or time.monotonic() > until:
                break
            time.sleep(0.001)
        left = []
        if descriptors != self.before[0]:
            left.append(f"descriptors {descriptors}, before {self.before[0]}")
        if threads != self.before[1]:
            left.append(f"{threads} threads")
        mapped = [file for file in files if file.startswith(f"{self.path}")]
        if mapped:
            left.append(f"mapped {mapped}")
        return "; ".join(left)

    def outcome(self, patience=PATIENCE):
        """Waits for the end of the use, and says what became of it."""
        try:
            said = self.hear(patience)
            while said is not None and said["at"] != "done":
                said = self.hear(patience)
        except TimeoutError:
            return Outcome("hung", text=self.where())
        if said is None:
            return self.death()
        left = self.left()
        self.process.stdin.close()
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            return Outcome("hung", text="after the end")
        if self.process.returncode != 0:
            return self.death()
        if "error" in said:
            return Outcome("error", text=said["error"], left=left)
        return Outcome("ok", digests=said["ok"], index=said["index"], left=left)

    def death(self):
        self.process.wait(PATIENCE)
        code, text = self.process.returncode, self.process.stderr.read().decode(errors="replace")
        # Several threads may have had their last words.
        return Outcome("died", text=f"status {code}: {text.strip()[-2000:]}", signal=max(-code, 0))

    def where(self):
        """What the threads of a process that hangs wait for."""
        tasks = pathlib.Path(f"/proc/{self.pid}/task").glob("*/syscall")
        return ", ".join(task.read_text().split(" ")[0].strip() for task in tasks)


def use(way, path, **options):
    """Uses a model without anything going on meanwhile."""
    with Probe(way, path, **options) as probe:
        probe.go()
        return probe.outcome()


def limited(way, path, what, most, **options):
    """Uses a model in a process that, once started, may have so much of something."""
    with Probe(way, path, **options) as probe:
        resource.prlimit(probe.pid, what, (most, most))
        probe.go()
        return probe.outcome()
