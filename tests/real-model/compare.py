"""Compares two digest files; exits with 1 and says what differs.

usage: compare.py EXPECTED FOUND
"""

import json
import pathlib
import sys


def main():
    expected, found = (json.loads(pathlib.Path(path).read_text()) for path in sys.argv[1:3])
    wrong = [name for name in sorted(expected.keys() | found.keys()) if expected.get(name) != found.get(name)]
    for name in wrong:
        print(f"{name}: expected {expected.get(name)}, found {found.get(name)}")
    print(f"{len(expected) - len(wrong)} of {len(expected)} tensors equal in {sys.argv[2]}")
    sys.exit(1 if wrong or not expected else 0)


if __name__ == "__main__":
    main()
