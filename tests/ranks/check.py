"""Proves that what the ranks of a job have saved makes up the model they were cut from.

usage: check.py MODEL OUT

OUT has what one job left: saved/rank-R-of-N (the parts of each rank as a model directory),
printed.jsonl (the line of JSON of each rank) and plans.json (what was planned for each). Nothing of
the library is used: files are read here, and the parts are put together by their shapes alone, but
for tensors of several blocks, which are known by their names.
"""

import hashlib
import json
import math
import pathlib
import sys
from typing import NamedTuple


class Tensor(NamedTuple):
    dtype: str
    shape: list
    data: bytes


def read_file(path):
    """The tensors of a safetensors file: a length, a JSON header, and the bytes."""
    content = path.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        tensors[name] = Tensor(entry["dtype"], entry["shape"], content[start + begin : start + end])
    return tensors


def read_model(folder):
    """The tensors of a model directory: those of model.safetensors, or of the shards of its index."""
    index = folder / "model.safetensors.index.json"
    if not index.exists():
        return read_file(folder / "model.safetensors")
    weight_map = json.loads(index.read_text())["weight_map"]
    shards = {shard: read_file(folder / shard) for shard in sorted(set(weight_map.values()))}
    return {name: shards[shard][name] for name, shard in weight_map.items()}


def blocks(name, config):
    """The proportions of what lies one after the other in a tensor and is cut each by itself."""
    if name.endswith("qkv_proj.weight"):
        return [config["num_attention_heads"]] + [config["num_key_value_heads"]] * 2
    return [1, 1] if name.endswith("gate_up_proj.weight") else [1]


def pieces(part, dim, proportions):
    """For every index of the dimensions before `dim`, the bytes of each block of a part."""
    outer = math.prod(part.shape[:dim])
    row = len(part.data) // outer
    unit = row // sum(proportions)
    lines = []
    for i in range(outer):
        at = i * row
        line = []
        for size in proportions:
            line.append(part.data[at : at + size * unit])
            at += size * unit
        lines.append(line)
    return lines


def join(parts, dim, proportions):
    """The bytes of the parts one after the other along a dimension, block by block."""
    cut = [pieces(part, dim, proportions) for part in parts if part.data]
    joined = bytearray()
    for lines in zip(*cut):
        for block in range(len(proportions)):
            for line in lines:
                joined += line[block]
    return bytes(joined)


def compare(name, whole, parts, config, counts):
    """Compares a tensor with the parts of it in the order of the ranks; returns what is wrong."""
    if any(part.dtype != whole.dtype or len(part.shape) != len(whole.shape) for part in parts):
        return "another dtype or number of dimensions"
    counts["parts"] += len(parts)
    counts["bytes compared"] += sum(len(part.data) for part in parts)
    dims = [d for d, n in enumerate(whole.shape) if any(part.shape[d] != n for part in parts)]
    if not dims:
        counts["replicated"] += 1
        wrong = [rank for rank, part in enumerate(parts) if part.data != whole.data]
        return f"replica differs on ranks {wrong}" if wrong else None
    if len(dims) > 1:
        return f"cut along dimensions {dims}"
    lengths = [part.shape[dims[0]] for part in parts]
    if sum(lengths) != whole.shape[dims[0]]:
        return f"parts of {lengths} of {whole.shape[dims[0]]}"
    counts["cut"] += 1
    counts["cut unevenly"] += len(set(lengths)) > 1
    joined = join(parts, dims[0], blocks(name, config))
    return None if joined == whole.data else "parts put together differ"


def digest(tensors):
    """The digest of a rank: that of a line for each tensor."""
    lines = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        sha256 = hashlib.sha256(tensor.data).hexdigest()
        lines.update(f"{sha256}  {name} {tensor.dtype} {tensor.shape}\n".encode())
    return lines.hexdigest()


def read_ranks(out, size):
    """What the ranks have printed and saved; raises if there is not one of each."""
    printed = [json.loads(line) for line in (out / "printed.jsonl").read_text().splitlines()]
    printed.sort(key=lambda line: line["rank"])
    said = [(line["rank"], line["size"]) for line in printed]
    if size == 0 or said != [(rank, size) for rank in range(size)]:
        raise LookupError(f"{size} ranks planned, lines of {said}")
    folders = [out / "saved" / f"rank-{rank}-of-{size}" for rank in range(size)]
    found = sorted((out / "saved").iterdir())
    if found != sorted(folders):
        raise LookupError(f"{size} ranks planned, saved {[folder.name for folder in found]}")
    return printed, [read_model(folder) for folder in folders]


def check_rank(line, plan, tensors):
    """Compares what a rank has printed with its plan and with what it has saved."""
    expected = {
        "digest": digest(tensors),
        "tensors": len(tensors),
        "bytes_selected": sum(len(tensor.data) for tensor in tensors.values()),
        "bytes_planned": plan["bytes_read"],
        "bytes_read": plan["bytes_read"],
        "reads": plan["reads"],
    }
    wrong = [key for key, value in expected.items() if line[key] != value]
    wrong += [f"planned {key}" for key in ("tensors", "bytes_selected") if plan[key] != expected[key]]
    return [f"rank {line['rank']}: {key} differs" for key in wrong]


def check(model, out):
    """All that is wrong, and what was counted."""
    plans = json.loads((out / "plans.json").read_text())
    try:
        printed, saved = read_ranks(out, len(plans["ranks"]))
    except (LookupError, OSError) as error:
        return [str(error)], {}
    config = json.loads((model / "config.json").read_text())
    model = read_model(model)
    counts = dict.fromkeys(["parts", "bytes compared", "cut", "cut unevenly", "replicated"], 0)
    faults = []
    for line, plan, tensors in zip(printed, plans["ranks"], saved):
        faults += check_rank(line, plan, tensors)
    for name in sorted(set().union(model, *saved)):
        parts = [tensors[name] for tensors in saved if name in tensors]
        if name not in model or len(parts) != len(saved):
            faults.append(f"{name}: on {len(parts)} ranks, in the model: {name in model}")
            continue
        fault = compare(name, model[name], parts, config, counts)
        faults += [f"{name}: {fault}"] if fault else []
    counts["bytes of the model"] = sum(len(tensor.data) for tensor in model.values())
    counts["bytes read"] = sum(line["bytes_read"] for line in printed)
    if counts["bytes read"] != plans["sum"]["bytes_read"]:
        faults.append(f"{counts['bytes read']} bytes read, {plans['sum']['bytes_read']} planned")
    if counts["cut"] == 0 or counts["replicated"] == 0:
        faults.append("no tensor is cut, or none is on every rank: too little was compared")
    return faults, {"tensors": len(model), "ranks": len(saved), **counts}


def main():
    model, out = (pathlib.Path(path) for path in sys.argv[1:3])
    faults, counts = check(model, out)
    for fault in faults:
        print(f"{model}: {fault}")
    print(f"{model}: " + ", ".join(f"{number} {what}" for what, number in counts.items()))
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
