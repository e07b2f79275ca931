"""Writes a model whose names would run scripts in a page that does not escape them.

    hostile.py MODEL BAIT

BAIT is a page with one of the names as it is, to show that the browser would run it.
"""

import json
import pathlib
import struct
import sys

HARM = 'document.title="harmed"'
NAMES = [
    f"<script>{HARM}</script>",
    f"\"><img src=x onerror='{HARM}'>",
    f"</title><script>{HARM}</script>",
    f"</style><script>{HARM}</script>",
    f"</text></svg><svg onload='{HARM}'>",
    f"' onmouseover='{HARM}' x='",
    f"javascript:{HARM}",
    "&lt;script&gt;",
    "\u202e\u2066\u0000\u001b]0;harmed\u0007",
    "n" * 3000,
]

model, bait = map(pathlib.Path, sys.argv[1:])
model.mkdir()
header, end = {"__metadata__": {NAMES[0]: NAMES[1]}}, 0
for number, name in enumerate(NAMES):
    for tensor in (name, f"model.layers.{number}.{name}.weight", f"{name}.sub.weight"):
        header[tensor] = {"dtype": "F32", "shape": [64], "data_offsets": [end, end + 256]}
        end += 256
text = json.dumps(header).encode()
(model / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + bytes(end))
(model / f"<img src=x onerror={HARM}>.safetensors").write_bytes(b"")
config = {"architectures": NAMES[:3], "model_type": NAMES[1], "quantization_config": {"quant_method": NAMES[0]}}
(model / "config.json").write_text(json.dumps(config))
rules = {"rules": [{"match": "**.weight", "tp": "col"}, {"match": "<script>never", "tp": "col"}]}
(model / "rules.json").write_text(json.dumps(rules))
bait.write_text(f"<!doctype html><title>sound</title>{NAMES[0]}")
