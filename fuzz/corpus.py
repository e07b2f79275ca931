#!/usr/bin/env python3
"""Unpacks fuzz/corpus.tar.gz into a folder for each target, or packs such folders: corpus.py (unpack|pack) FOLDER

The same inputs always give the same archive: they are in the order of their bytes and named by
their number, for names that are digests would be half of it. Needs Python alone.
"""

import gzip
import io
import pathlib
import sys
import tarfile

ARCHIVE = pathlib.Path(__file__).with_name("corpus.tar.gz")


def unpack(folder):
    """Writes each input of the archive to FOLDER/TARGET/NUMBER."""
    with tarfile.open(ARCHIVE, "r:gz") as archive:
        for member in archive:
            target, number = member.name.split("/")
            path = folder / target / number
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(archive.extractfile(member).read())


def pack(folder):
    """Makes the archive anew of the files in FOLDER/TARGET, and prints how many there are."""
    text = io.BytesIO()
    with tarfile.open(fileobj=text, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for target in sorted(path for path in folder.iterdir() if path.is_dir()):
            inputs = sorted({path.read_bytes() for path in target.iterdir()})
            for number, data in enumerate(inputs):
                member = tarfile.TarInfo(f"{target.name}/{number:04}")
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
            print(f"{target.name:20} {len(inputs):6} inputs, {sum(map(len, inputs)):8} bytes")
    ARCHIVE.write_bytes(gzip.compress(text.getvalue(), 9, mtime=0))
    print(f"{ARCHIVE.name:20} {ARCHIVE.stat().st_size:23} bytes")


if __name__ == "__main__":
    commands = {"unpack": unpack, "pack": pack}
    if len(sys.argv) != 3 or sys.argv[1] not in commands:
        sys.exit(__doc__.splitlines()[0])
    commands[sys.argv[1]](pathlib.Path(sys.argv[2]))
