"""The ways of using a model that fault-probe has, and how each is brought to where it is harmed."""

import models
import seccomp
from probe import Probe

CACHESTAT = 451


class Way:
    """A way of using a model, and the step from which it is harmed."""

    def __init__(self, name, since="opened", file=None, denied=None, **options):
        self.name, self.since, self.file, self.denied = name, since, file, denied
        self.options = dict(options)
        shown = [name, *(f"{key}={value}" for key, value in options.items())]
        self.label = " ".join(shown + (["without cachestat"] if denied else []))

    def start(self, model, to=None, **more):
        """A process that waits at the step from which it is harmed."""
        options = {**self.options, **more}
        if self.since != "started":
            options["steps"] = 1
        if to:
            options["to"] = to
        popen = {"preexec_fn": seccomp.denying(*self.denied)} if self.denied else {}
        probe = Probe(self.name, model / (self.file or ""), popen=popen, **options)
        for step in {"opened": ["opened"], "loaded": ["opened", "loaded"]}.get(self.since, []):
            probe.go()
            probe.expect(step)
        return probe

    def go(self, probe):
        """Lets the process go on to its end."""
        for _ in range(2 if self.name in ("map", "populate") else 1):
            probe.go()


FILE = Way("file", "started", "model-00002-of-00004.safetensors")
OPEN = Way("open", "started", threads=1)
SAVE = Way("save", "loaded")
WRITE = Way("write", "loaded", FILE.file)
# Those that read every tensor into memory.
LOADS = [
    Way("load", threads=1),
    Way("load", io="direct"),
    Way("load", threads=1, denied=(CACHESTAT, "ENOSYS")),
    Way("rank", threads=1),
    Way("stream", threads=1, in_flight=60000),
    Way("async", threads=1),
    Way("stream_async", threads=1, in_flight=60000),
    Way("load_into", threads=1, io="buffered"),
]
MAPS = [Way("map"), Way("populate", threads=1)]


def right(way, model, unharmed):
    """What a way has to read, by the bytes of the files where they say it."""
    if way.name == "file":
        whole, halves = models.read_file(model / way.file)
        return {**whole, **halves}
    # Of a rank, and of headers alone, the files do not tell it.
    return unharmed.digests if way.name in ("open", "rank") else models.read_model(model)
