"""Prints how many lines of each room the tests run, from a summary of llvm-cov.

usage: rooms.py SUMMARY

Exits with 1 where the pure rooms or the crates as a whole fall below their bounds.
"""

import json
import pathlib
import sys

# Rooms that do no I/O: their tests are tables, and leave nothing out without a reason.
PURE = {
    "tensorfile": [
        "byte_runs", "dtype", "gather", "header", "lookalike", "quote", "selection", "shape",
        "similar",
    ],
    "modeldir": [
        "alias", "index_text", "join", "layout", "natural", "partition", "plan", "request",
        "shard_path", "weight_map",
    ],
}
PURE_BOUND, BOUND = 95.0, 90.0


def room_of(path):
    """The crate of a source file, and the name of its room: a file, with the folder of that name."""
    parts = pathlib.PurePath(path).parts
    at = len(parts) - 1 - parts[::-1].index("src")
    return parts[at - 1], parts[at + 1].removesuffix(".rs")


def is_test(path):
    """Whether a file holds unit tests only."""
    parts = pathlib.PurePath(path).parts
    return parts[-1] == "tests.rs" or "tests" in parts[parts.index("crates") :]


def percent(covered, count):
    return 100.0 * covered / count if count else 100.0


def main():
    summary = json.loads(pathlib.Path(sys.argv[1]).read_text())
    rooms = {}
    for file in summary["data"][0]["files"]:
        path = file["filename"]
        if "/crates/" not in path or is_test(path):
            continue
        lines = rooms.setdefault(room_of(path), [0, 0])
        lines[0] += file["summary"]["lines"]["covered"]
        lines[1] += file["summary"]["lines"]["count"]

    pure, every = [0, 0], [0, 0]
    for (crate, room), (covered, count) in sorted(rooms.items()):
        is_pure = room in PURE.get(crate, [])
        for total in [every, pure] if is_pure else [every]:
            total[0] += covered
            total[1] += count
        mark = "pure" if is_pure else ""
        print(f"{crate + '/' + room:32} {covered:6} of {count:6} {percent(covered, count):6.1f} % {mark}")

    named = {(crate, room) for crate, names in PURE.items() for room in names}
    gone = sorted(named - rooms.keys())
    results = [("pure rooms", *pure, PURE_BOUND), ("all", *every, BOUND)]
    for name, covered, count, bound in results:
        print(f"{name}: {covered} of {count} lines, {percent(covered, count):.2f} %, at least {bound}")
    for crate, room in gone:
        print(f"no such room: {crate}/{room}")
    passed = sum(percent(covered, count) >= bound for _, covered, count, bound in results)
    failed = len(results) - passed + len(gone)
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)


main()
