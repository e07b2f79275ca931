"""Counts what was tried and how it went, and prints it by kind."""

import re
import threading

# A verdict: for want of memory the process was ended by what is beyond the library.
EXCEPTED = "excepted"
# Where a new thread gets no memory for what the standard library or the C library keeps of it, they
# end the process.
OF_THREADS = re.compile(r"std/src/sys/pal/unix/stack_overflow.rs|Fatal glibc error: .*memory")
# So does the standard library for every allocation that cannot be told to fail; those of the library are short.
NO_BYTES = re.compile(r"memory allocation of (\d+) bytes failed")
SHORT = 4 << 10


def is_beyond(outcome):
    """Whether a process was ended as no library can hold up."""
    if outcome.kind != "died" or outcome.signal != 6:
        return False
    lens = [int(len) for len in NO_BYTES.findall(outcome.text)]
    return bool(OF_THREADS.search(outcome.text) or lens and max(lens) < SHORT)


class Tally:
    """Verdicts by kind. A kind that could not run says why; one that ran nothing is a failure."""

    def __init__(self):
        self.lock = threading.Lock()
        self.kinds = {}
        self.skips = []

    def kind(self, name):
        return self.kinds.setdefault(name, {"faults": 0, "passed": 0, "failed": 0, EXCEPTED: 0})

    def count(self, kind, what, wrong, faults=1):
        """One use was harmed by so many faults; `wrong` says what is not as promised, if anything."""
        with self.lock:
            counts = self.kind(kind)
            counts["faults"] += faults
            verdict = "passed" if not wrong else EXCEPTED if wrong == EXCEPTED else "failed"
            counts[verdict] += 1
            if verdict == "failed":
                print(f"FAILED {kind}: {what}: {wrong}", flush=True)

    def skip(self, kind, reason):
        with self.lock:
            self.skips.append(kind)
            print(f"SKIPPED {kind}: {reason}", flush=True)

    def close(self):
        """Prints the counts; returns whether something ran and all of it passed."""
        for name, counts in self.kinds.items():
            shown = ", ".join(f"{count} {what}" for what, count in counts.items())
            print(f"{name}: {shown}")
            if counts["passed"] + counts["failed"] == 0:
                counts["failed"] = 1
                print(f"FAILED {name}: nothing ran")
        passed, failed = (sum(c[key] for c in self.kinds.values()) for key in ("passed", "failed"))
        faults = sum(counts["faults"] for counts in self.kinds.values())
        print(f"{faults} faults injected")
        print(f"{passed} passed, {failed} failed, {len(self.skips)} skipped")
        return passed > 0 and failed == 0
