#!/usr/bin/env python3
"""Prints the measures of the house: measure.py [--places | --check] [ROOT]

Whether code can be inherited shows in how many names a user meets, how long functions and files
are, and which modules import each other. ROOT is any checkout of this project; without it, it is
this one. `--places` says after the table where the numbers come from. `--check` exits with 1 where
a measure is beyond its aim, and prints the places. Tests are not measured. Needs Python alone.
"""

import pathlib
import sys

import graph
from crates import Crate

PRODUCTS = ("modeldir", "tensorfile")


class Table:
    """Measures in rows, with a column for each crate; all that is not of one crate is in the first."""

    def __init__(self, columns):
        self.columns, self.rows, self.aims, self.places = columns, {}, {}, {}

    def add(self, measure, value, places=(), column=None, aim=None):
        """Adds a value and where it comes from; a measure with an aim is at most that."""
        column = column or self.columns[0]
        self.rows.setdefault(measure, {})[column] = value
        self.aims[measure] = aim
        self.places[measure, column] = list(places)

    def beyond(self):
        """The measures and columns whose value is beyond the aim."""
        for measure, values in self.rows.items():
            for column, value in values.items():
                if self.aims[measure] is not None and value > self.aims[measure]:
                    yield measure, column

    def print(self):
        """Prints the rows."""
        wide = max(len(measure) for measure in self.rows)
        heads = [f"{name:>{max(10, len(name))}}" for name in [*self.columns, "aim"]]
        print(f"{'':{wide}}  {'  '.join(heads)}")
        for measure, values in self.rows.items():
            aim = self.aims[measure]
            cells = [*(values.get(column, "") for column in self.columns), "" if aim is None else f"<= {aim}"]
            row = [f"{cell:>{len(head)}}" for cell, head in zip(cells, heads)]
            print(f"{measure:{wide}}  {'  '.join(row)}".rstrip())

    def print_places(self, measure, column, most=None):
        """Prints where a value comes from."""
        places = self.places[measure, column]
        print(f"\n{measure}, {column}: {self.rows[measure][column]}")
        for place in places[:most]:
            print(f"    {place}")
        if most and len(places) > most:
            print(f"    and {len(places) - most} more")


def quantile(numbers, part):
    """The smallest of the numbers that is not below `part` of them."""
    numbers = sorted(numbers)
    return numbers[min(len(numbers) - 1, int(part * len(numbers)))]


def add_surface(table, crates):
    """What a user meets: names, errors and options of the two libraries."""
    for crate in (crate for crate in crates if crate.name in PRODUCTS):
        names, errors, options = crate.root_names(), list(crate.errors()), sorted(crate.options())
        aim = 45 if crate.name == "modeldir" else None
        table.add("names at the root", len(names), names, crate.name, aim)
        table.add("error variants", sum(count for _, count in errors), [f"{count} {name}" for name, count in errors], crate.name)
        table.add("options structs", len(options), options, crate.name)
    table.aims["names at the root"] = 45


def add_lengths(table, crate):
    """How long functions and files are."""
    for what, aim, found in (("function", 45, crate.functions()), ("file", None, crate.files())):
        found = sorted(found, reverse=True)
        lengths = [length for length, _ in found]
        table.add(f"{what}s", len(found), [], crate.name)
        table.add(f"longest {what}, lines", lengths[0], [f"{length} {place}" for length, place in found[:10]], crate.name, aim)
        table.add(f"p90 of {what}s, lines", quantile(lengths, 0.9), [], crate.name)


def add_imports(table, crate):
    """Which modules import each other, directly and around a ring."""
    show, edges = crate.show, crate.edges
    pairs = [f"{show(one)}:{edges[one][two]} {show(two)}:{edges[two][one]}" for one, two in graph.pairs(edges)]
    knots = graph.knots(edges)
    listed = [f"{len(knot)}: {' '.join(map(show, knot))}" for knot in knots if len(knot) > 2]
    table.add("imports between modules", sum(map(len, edges.values())), [], crate.name)
    table.add("modules that import each other, pairs", len(pairs), pairs, crate.name)
    table.add("knots of three modules and more", len(listed), listed, crate.name)
    table.add("largest knot, modules", len(knots[0]) if knots else 1, listed[:1], crate.name, 3)


def add_docs(table, crate):
    """What is public and says nothing."""
    public = list(crate.public())
    for what, is_part in (("`pub` items", False), ("fields and variants", True)):
        found = [(item, place) for item, place in public if (item.kind in ("field", "variant")) == is_part]
        bare = [place for item, place in found if not item.has_docs]
        table.add(what, len(found), [], crate.name)
        table.add(f"{what} without docs", len(bare), sorted(bare), crate.name, 0)


def measure(root):
    """The table of a checkout."""
    crates = [Crate(path.parent) for path in sorted(root.glob("crates/*/Cargo.toml"))]
    table = Table([crate.name for crate in crates])
    add_surface(table, crates)
    for add in (add_lengths, add_imports, add_docs):
        for crate in crates:
            add(table, crate)
    examples = [(len(path.read_text().splitlines()), path.name) for path in root.glob("examples/*.rs")]
    listed = [f"{lines} {name}" for lines, name in sorted(examples, reverse=True)]
    table.add("examples, lines in all", sum(lines for lines, _ in examples), listed)
    table.add("longest example, lines", max(examples, default=(0, ""))[0], listed, aim=40)
    return table


def main():
    """Prints what is asked for; exits with 1 if a check finds something."""
    options = {text for text in sys.argv[1:] if text.startswith("--")}
    roots = [text for text in sys.argv[1:] if not text.startswith("--")]
    if options - {"--places", "--check"} or len(roots) > 1:
        sys.exit(__doc__)
    table = measure(pathlib.Path(roots[0] if roots else pathlib.Path(__file__).resolve().parents[2]))
    beyond = list(table.beyond())
    if "--check" not in options:
        table.print()
    if "--places" in options:
        for place in table.places:
            table.print_places(*place)
    if "--check" in options:
        for place in beyond:
            table.print_places(*place, most=20)
        print(f"{len(beyond)} measures are beyond their aims")
        sys.exit(bool(beyond))


if __name__ == "__main__":
    main()
