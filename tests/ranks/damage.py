"""Shows that check.py can fail: damages copies of what a job left, and has each damage found.

usage: damage.py MODEL OUT

MODEL and OUT are as for check.py. Exits with 1 if a damage is not found, or found for another reason.
"""

import json
import pathlib
import shutil
import sys
import tempfile

from check import check, digest, read_file


def read_lines(out):
    return [json.loads(line) for line in (out / "printed.jsonl").read_text().splitlines()]


def write_lines(out, lines):
    (out / "printed.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def first_folder(out):
    return min((out / "saved").iterdir())


def break_byte(out, part_of_name):
    """Flips the last byte of a tensor of the last rank, and makes the digest right again."""
    path = max((out / "saved").iterdir()) / "model.safetensors"
    content = bytearray(path.read_bytes())
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    name = min(name for name in header if part_of_name in name)
    content[start + header[name]["data_offsets"][1] - 1] ^= 1
    path.write_bytes(content)
    lines = sorted(read_lines(out), key=lambda line: line["rank"])
    lines[-1]["digest"] = digest(read_file(path))
    write_lines(out, lines)


def break_cut_part(out):
    break_byte(out, "o_proj")


def break_replica(out):
    break_byte(out, "norm")


def swap_ranks(out):
    first, second = sorted((out / "saved").iterdir())[:2]
    first.rename(out / "aside")
    second.rename(first)
    (out / "aside").rename(second)


def lose_rank(out):
    shutil.rmtree(first_folder(out))


def lose_file(out):
    (first_folder(out) / "model.safetensors").unlink()


def lose_line(out):
    write_lines(out, read_lines(out)[1:])


def repeat_line(out):
    lines = read_lines(out)
    write_lines(out, lines + lines[:1])


def change_digest(out):
    first, *rest = read_lines(out)
    write_lines(out, [first | {"digest": "0" * 64}, *rest])


def read_more(out):
    first, *rest = read_lines(out)
    write_lines(out, [first | {"bytes_read": first["bytes_read"] + 1}, *rest])


def plan_more(out):
    plans = json.loads((out / "plans.json").read_text())
    plans["ranks"][1]["bytes_read"] += 1
    (out / "plans.json").write_text(json.dumps(plans))


def lose_everything(out):
    shutil.rmtree(out / "saved")
    (out / "saved").mkdir()
    write_lines(out, [])
    plans = json.loads((out / "plans.json").read_text())
    (out / "plans.json").write_text(json.dumps(plans | {"ranks": []}))


# What is done, and what has to be said of it.
DAMAGES = [
    (break_cut_part, "parts put together differ"),
    (break_replica, "replica differs on ranks [3]"),
    (swap_ranks, "parts put together differ"),
    (lose_rank, "4 ranks planned, saved"),
    (lose_file, "No such file"),
    (lose_line, "4 ranks planned, lines of"),
    (repeat_line, "4 ranks planned, lines of"),
    (change_digest, "digest differs"),
    (read_more, "bytes_read differs"),
    (plan_more, "rank 1: bytes_planned differs"),
    (lose_everything, "0 ranks planned"),
]


def main():
    model, out = (pathlib.Path(path) for path in sys.argv[1:3])
    missed = []
    for damage, expected in DAMAGES:
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder) / "out"
            shutil.copytree(out, copy)
            damage(copy)
            faults, _ = check(model, copy)
        if not any(expected in fault for fault in faults):
            missed.append(f"{model}: {damage.__name__} is not found, but {faults}")
    for line in missed:
        print(line)
    print(f"{model}: {len(DAMAGES) - len(missed)} of {len(DAMAGES)} damages found")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
