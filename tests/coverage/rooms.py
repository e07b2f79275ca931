"""Prints how many lines of each room the tests run, from the lines that llvm-cov has counted.

usage: rooms.py LINES

LINES has the form of lcov. Unit tests, which stand last in their files, are not counted themselves.
Exits with 1 where the pure rooms or the crates as a whole fall below their bounds.
"""

import pathlib
import re
import sys

# Rooms that do no I/O: their tests are tables, and leave nothing out without a reason. `format` is
# none of them, for it has constants only, of which no line is run.
PURE = {
    "tensorfile": [
        "byte_runs", "dtype", "element", "error", "fill", "float8", "float_cast", "header", "json_text",
        "limit", "lookalike", "quote", "reads", "reserve", "rows", "selection", "shape", "similar",
        "to_f32", "view",
    ],
    "modeldir": [
        "partition", "plan", "similar", "weights/alias", "weights/index_text", "weights/join",
        "weights/natural", "weights/shard_path", "weights/weight_map",
    ],
}
GROUPS = {"beside", "weights"}
PURE_BOUND, BOUND = 95.0, 90.0
UNIT_TESTS = re.compile(r"(pub(\([a-z]+\))? )?mod tests \{")


def counts_in(text):
    """For each source file its lines and how often each was run."""
    files = {}
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key == "SF":
            lines = files.setdefault(value, {})
        elif key == "DA":
            number, count = value.split(",")[:2]
            lines[int(number)] = lines.get(int(number), 0) + int(count)
    return files


def room_of(path):
    """The crate of a source file, and the name of its room: a file, with the folder of that name.

    The folders that only group rooms name each of them.
    """
    parts = pathlib.PurePath(path).parts
    at = len(parts) - 1 - parts[::-1].index("src")
    end = at + 3 if parts[at + 1] in GROUPS else at + 2
    return parts[at - 1], "/".join(parts[at + 1 : end]).removesuffix(".rs")


def is_of_crates(path):
    """Whether a file is one of the two crates, and holds more than unit tests."""
    parts = pathlib.PurePath(path).parts
    return "crates" in parts and not {"tests", "tests.rs"} & set(parts[parts.index("crates") :])


def end_of_code(path):
    """The line before which a file is what it is for, and after which it tests that."""
    lines = pathlib.Path(path).read_text().splitlines()
    tests = (number for number, line in enumerate(lines, 1) if UNIT_TESTS.fullmatch(line))
    return next(tests, len(lines) + 1)


def percent(covered, count):
    return 100.0 * covered / count if count else 100.0


def main():
    rooms, missed = {}, []
    for path, counts in sorted(counts_in(pathlib.Path(sys.argv[1]).read_text()).items()):
        if not is_of_crates(path):
            continue
        end, sums = end_of_code(path), rooms.setdefault(room_of(path), [0, 0])
        for number, count in sorted(counts.items()):
            if number < end:
                sums[0] += count > 0
                sums[1] += 1
                missed += [] if count else [f"{path}:{number}"]
    pathlib.Path(sys.argv[1]).with_name("missed.txt").write_text("\n".join([*missed, ""]))

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
    passed = sum(count > 0 and percent(covered, count) >= bound for _, covered, count, bound in results)
    failed = len(results) - passed + len(gone)
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)


main()
