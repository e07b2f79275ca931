"""What is counted in one crate: functions, files, public items, errors, options, names at the root."""

import re

import graph
import rust


class Crate:
    """A crate of `crates/`: its modules, without those of tests."""

    def __init__(self, folder):
        self.name, self.source = folder.name, folder / "src"
        roots = [self.source / name for name in ("lib.rs", "main.rs")]
        self.roots = [graph.crate(path) for path in roots if path.exists()]
        self.edges = {}
        for root in self.roots:
            for file, others in graph.edges(root).items():
                self.edges.setdefault(file, {}).update(others)

    def modules(self):
        """Every module, those within a file too."""
        return [module for root in self.roots for module in root.every()]

    def show(self, file):
        """A file as it is named in the table."""
        return f"{self.name}/{file.relative_to(self.source)}"

    def functions(self):
        """The length of each function, from `fn` to its last brace, and where it is."""
        for module in self.modules():
            for start, end in module.ranges:
                for at in range(start, end - 1):
                    if module.found[at].text == "fn" and module.found[at + 1].kind == "word":
                        last = rust.until(module.found, at, ";{")
                        if last < end and module.found[last].text == "{":
                            first, last = module.found[at], module.found[rust.closing(module.found, last) - 1]
                            place = f"{self.show(module.file)}:{first.line} {module.found[at + 1].text}"
                            yield last.line - first.line + 1, place

    def files(self):
        """The length of each file without its tests, and where it is."""
        for module in self.modules():
            if module.parent and module.file == module.parent.file:
                continue
            tests = [item for item in rust.items(module.found) if item.test]
            lines = len(module.file.read_text().splitlines())
            for item in tests:
                lines -= module.found[item.end - 1].line - module.found[item.start].line + 2
            yield lines, self.show(module.file)

    def public(self):
        """Every `pub` item, field and variant, those of what it is in included: (item, place)."""
        for module in self.modules():
            if module.parent and module.file == module.parent.file:
                continue  # no name of a module within a file can be reached, but through `pub use`
            open_items = list(module.items)
            while open_items:
                item = open_items.pop()
                if item.test or item.kind in ("mod", "use", "place"):
                    continue
                if item.is_pub or item.kind == "impl":
                    open_items += item.inside
                if item.is_pub:
                    yield item, f"{self.show(module.file)}:{module.found[item.start].line} {item.name}"

    def root_names(self):
        """What `lib.rs` makes public: modules, and names that it re-exports for readers."""
        root = self.roots[0]
        names = {item.name for item in root.items if item.kind == "mod" and item.is_pub}
        for item in root.items:
            if item.kind == "use" and item.is_pub and not any("hidden" in text for text in item.attributes):
                start = next(at for at in range(item.start, item.end) if root.found[at].text == "use")
                names |= {alias for _, alias in graph.tree(root.found, start + 1)[0]}
        return sorted(names)

    def errors(self):
        """The variants of each enum that is an error."""
        for module in self.modules():
            for item in module.items:
                derived = any(re.search(r"derive\(.*\bError\b", text) for text in item.attributes)
                if item.kind == "enum" and (derived or re.fullmatch(r"(\w*Error|ErrorKind)", item.name)):
                    yield f"{self.name}::{item.name}", len(item.inside)

    def options(self):
        """The public structs of options."""
        for item, _ in self.public():
            if item.kind == "struct" and item.name.endswith("Options"):
                yield f"{self.name}::{item.name}"
