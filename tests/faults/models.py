"""Models to harm, and what is in them by their bytes alone: nothing of the library is used here."""

import hashlib
import json
import math
import pathlib
import random
import shutil

HERE = pathlib.Path(__file__).parent
SHIPPED = HERE.parents[1] / "fixtures/models/llama"
INDEX = "model.safetensors.index.json"
BITS = {"BF16": 16, "U8": 8, "F32": 32}


def digest(dtype, shape, data):
    """The digest that fault-probe says for a tensor."""
    return hashlib.sha256(f"{dtype} {shape} ".encode() + data).hexdigest()[:16]


def file_bytes(tensors):
    """A safetensors file of (name, dtype, shape, bytes)."""
    header, data = {}, b""
    for name, dtype, shape, content in tensors:
        offsets = [len(data), len(data) + len(content)]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": offsets}
        data += content
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + data


def read_file(path):
    """The digests of the tensors of a file, and those of their first halves as fault-probe takes them."""
    content = pathlib.Path(path).read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    header.pop("__metadata__", None)
    whole, halves = {}, {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        dtype, shape, data = entry["dtype"], entry["shape"], content[start + begin : start + end]
        whole[name] = digest(dtype, shape, data)
        row, half = shape[-1] * BITS[dtype] // 8, shape[-1] // 2
        kept = half * BITS[dtype] // 8
        rows = (data[i * row : i * row + kept] for i in range(math.prod(shape[:-1])))
        halves[f"{name}[..{half}]"] = digest(dtype, [*shape[:-1], half], b"".join(rows))
    return whole, halves


def read_model(folder):
    """The digests of the tensors of a directory, by its index if it has one, or None if it is no
    complete model."""
    folder = pathlib.Path(folder)
    try:
        if not (folder / INDEX).exists():
            return read_file(folder / "model.safetensors")[0]
        weight_map = json.loads((folder / INDEX).read_text())["weight_map"]
        shards = {shard: read_file(folder / shard)[0] for shard in set(weight_map.values())}
        return {name: shards[shard][name] for name, shard in weight_map.items()}
    except (OSError, ValueError, KeyError):
        return None


def read_beside(folder):
    """The files of a directory that belong to its model and are no weights."""
    kinds = (".json", ".jinja", ".txt")
    files = [path for path in pathlib.Path(folder).iterdir() if path.suffix in kinds]
    return {path.name: path.read_bytes() for path in files if path.name != INDEX}


def other_bytes(content):
    """A file with the same header, and other bytes of every tensor."""
    start = 8 + int.from_bytes(content[:8], "little")
    return content[:start] + bytes(byte ^ 0x55 for byte in content[start:])


def copy_llama(folder):
    """A copy of the shipped model of four shards, whose family has rules for ranks."""
    folder = pathlib.Path(folder)
    shutil.copytree(SHIPPED, folder)
    return folder


def write_listed(folder, tensors):
    """A model of one file with a long header: as many tensors, of no bytes."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True)
    listed = [(f"layers.{i}.weight", "U8", [0], b"") for i in range(tensors)]
    (folder / "model.safetensors").write_bytes(file_bytes(listed))
    return folder


def write_sharded(folder, shards, byte_len, seed=1):
    """A model of as many shards with a tensor of U8 in each, and an index."""
    folder, chance = pathlib.Path(folder), random.Random(seed)
    folder.mkdir(parents=True)
    weight_map = {}
    for i in range(1, shards + 1):
        shard, name = f"model-{i:05}-of-{shards:05}.safetensors", f"t{i}"
        content = chance.randbytes(byte_len)
        (folder / shard).write_bytes(file_bytes([(name, "U8", [byte_len], content)]))
        weight_map[name] = shard
    (folder / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    return folder
