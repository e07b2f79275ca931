"""The modules of a crate and which of them import which, by the module that defines what is named.

A module is a file; modules within a file are part of it. `use crate::Error` imports the module that
defines `Error`, however often it is re-exported on the way, and so does the path `crate::Error` in
code. A module that only tests compile is left out, and so is what `use` names of other crates.
"""

import re
from dataclasses import dataclass, field

import rust

ROOTS = {"crate", "self", "super"}


@dataclass
class Module:
    """A module: its tokens that are not of tests, and what names mean in it."""

    name: str
    file: object
    parent: object
    found: list = field(default_factory=list)
    items: list = field(default_factory=list)
    ranges: list = field(default_factory=list)
    defined: set = field(default_factory=set)
    children: dict = field(default_factory=dict)
    aliases: dict = field(default_factory=dict)
    globs: list = field(default_factory=list)

    def root(self):
        """The root of the crate."""
        return self if self.parent is None else self.parent.root()

    def every(self):
        """This module and all below it."""
        yield self
        for child in self.children.values():
            yield from child.every()


def crate(path):
    """The root module of the crate whose root file this is."""
    return load("", path, path.parent, None)


def load(name, path, folder, parent):
    """The module of a file, with those below it; `folder` is where files of its modules are."""
    found = rust.tokens(path.read_text())
    module = Module(name, path, parent, found)
    fill(module, rust.items(found), (0, len(found)), folder)
    return module


def fill(module, items, place, folder):
    """Reads the items of a module: what they define and import, and which modules they are."""
    module.items = [item for item in items if not item.test]
    module.ranges = live(module.items, items, place)
    for item in module.items:
        if item.kind == "mod":
            add_module(module, item, folder)
        elif item.kind != "use":
            module.defined.add(item.name)
            if item.kind == "macro_rules":
                module.defined.add(module.found[item.start + 2].text)
    for start in statements(module):
        for path, alias in tree(module.found, start + 1)[0]:
            if alias == "*":
                module.globs.append(path)
            else:
                module.aliases[alias] = path


def live(kept, items, place):
    """The ranges of tokens that belong to a module itself: not to tests or to modules within."""
    ranges, at = [], place[0]
    for item in items:
        if item.test or item.kind == "mod":
            ranges.append((at, item.start))
            at = item.end
        elif item.kind in ("impl", "trait"):
            for inner in item.inside:
                if inner.test:
                    ranges.append((at, inner.start))
                    at = inner.end
    return [*ranges, (at, place[1])]


def add_module(module, item, folder):
    """Adds a module within a file, or the one of another file."""
    if item.body:
        child = Module(item.name, module.file, module, module.found)
        fill(child, item.inside, item.body, folder / item.name)
        module.children[item.name] = child
        return
    given = [re.search(r'\bpath="([^"]+)"', text) for text in item.attributes]
    for path in [match.group(1) for match in given if match] or [None]:
        file = module.file.parent / path if path else folder / f"{item.name}.rs"
        if not path and not file.exists():
            file = folder / item.name / "mod.rs"
        child = load(item.name, file, file.with_suffix("") if file.stem != "mod" else file.parent, module)
        # Two files of one name are for different systems: both belong to the house.
        key = item.name if item.name not in module.children else f"{item.name} ({file.stem})"
        module.children[key] = child


def statements(module):
    """The places of the `use` lines of a module, also of those in functions."""
    for start, end in module.ranges:
        for at in range(start, end):
            if module.found[at].text == "use" and module.found[at + 1].text != "<":
                yield at


def tree(found, at):
    """The paths of a tree of `use`, each with the name that it gets here; and where the tree ends."""
    segments = []
    while True:
        text = found[at].text
        if text == "{":
            paths, at = [], at + 1
            while found[at].text != "}":
                inner, at = tree(found, at)
                for path, alias in inner:
                    if path[-1:] == ["self"] and len(path) == 1 and segments:
                        path, alias = [], segments[-1] if alias == "self" else alias
                    paths.append(([*segments, *path], alias))
                at += found[at].text == ","
            return paths, at + 1
        if text == "*":
            return [(segments, "*")], at + 1
        if text != "::" or not segments:
            segments.append(text)
        at += 1
        if found[at].text == "as":
            return [(segments, found[at + 1].text)], at + 2
        if found[at].text != "::":
            return [(segments, segments[-1])], at
        at += 1


def paths(module):
    """The paths in the code of a module, beside its `use` lines, each with its line."""
    found = module.found
    for start, end in module.ranges:
        at = start
        while at < end:
            token = found[at]
            if token.text == "use" and found[at + 1].text != "<":
                at = rust.until(found, at, ";")
            elif token.kind == "word" and found[at - 1].text not in ("::", ".") and at + 1 < end:
                segments = [token.text]
                while at + 2 < end and found[at + 1].text == "::" and found[at + 2].kind == "word":
                    at += 2
                    segments.append(found[at].text)
                if len(segments) > 1:
                    yield segments, token.line
            at += 1


def resolve(module, path, seen=()):
    """The module that defines what a path names, and whether the path names the module itself.

    None if it leads out of the crate.
    """
    if (id(module), tuple(path)) in seen or not path:
        return None
    seen = (*seen, (id(module), tuple(path)))
    at, here = 0, module
    if path[0] in ROOTS:
        while at < len(path) and path[at] in ROOTS:
            step = path[at]
            here = here.root() if step == "crate" else here.parent if step == "super" else here
            at += 1
        if at == len(path):
            return here, True
    return walk(here, path[at:], seen, at == 0)


def walk(module, path, seen, bare):
    """Follows a path from a module; a bare one may begin with the name of another crate."""
    name, rest = path[0], path[1:]
    if name in module.defined and not (rest and name in module.children):
        return module, False
    if name in module.children:
        child = module.children[name]
        return walk(child, rest, seen, False) if rest else (child, True)
    if name in module.aliases:
        target = resolve(module, module.aliases[name], seen)
        if target and target[1] and rest:
            return walk(target[0], rest, seen, False)
        return target
    for glob in module.globs:
        target = resolve(module, glob, seen)
        if target and target[1] and target[0] is not module:
            through = walk(target[0], path, seen, True)
            if through:
                return through
    return None if bare else (module, False)


def edges(root):
    """Which file imports which: {file: {file: line of the first import}}."""
    found = {}
    for module in root.every():
        own = found.setdefault(module.file, {})
        named = [(path, module.found[start].line) for start in statements(module) for path, _ in tree(module.found, start + 1)[0]]
        for path, line in [*named, *paths(module)]:
            target = resolve(module, path)
            if target and not target[1] and target[0].file != module.file:
                own[target[0].file] = min(line, own.get(target[0].file, line))
    return found


def pairs(graph):
    """The pairs of modules that import each other."""
    return [(one, two) for one in graph for two in graph[one] if str(one) < str(two) and one in graph.get(two, {})]


def knots(graph):
    """The sets of modules of which each leads to each other, largest first; those of one left out."""
    reached = {start: reach(graph, start) for start in graph}
    sets = {frozenset(other for other in reached[start] if start in reached[other]) for start in graph}
    return sorted((sorted(one) for one in sets if len(one) > 1), key=len, reverse=True)


def reach(graph, start):
    """What is reached from a module."""
    found, open_ends = set(), [start]
    while open_ends:
        for other in graph[open_ends.pop()]:
            if other not in found:
                found.add(other)
                open_ends.append(other)
    return found
