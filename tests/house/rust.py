"""Reads Rust source as far as the measures of the house need it: tokens, items, what tests alone compile.

No type is known and no macro is expanded. A token is kept with its line, a doc comment is a token,
any other comment is none.
"""

import re
from dataclasses import dataclass, field

TOKEN = re.compile(
    r"""(?P<space>\s+)
    |(?P<outer>///(?!/)[^\n]*|/\*\*(?![*/]))|(?P<inner>//![^\n]*|/\*!)|(?P<note>//[^\n]*)|(?P<block>/\*)
    |(?P<raw>(?:b|c|br|cr|r)?r?\#*"|b?'(?:\\.[^']*|[^\\'])')
    |(?P<life>'[A-Za-z_]\w*)|(?P<word>(?:r\#)?[A-Za-z_]\w*)
    |(?P<number>\d(?:[\w]|\.(?=\d))*)
    |(?P<mark>::|->|=>|\.\.=?|[^\w\s])""",
    re.VERBOSE,
)
PAIRS = {"(": ")", "[": "]", "{": "}"}
FRONT = {"unsafe", "async", "default", "extern", "const", "auto", "safe"}
NAMED = {"fn", "struct", "union", "enum", "trait", "mod", "const", "static", "type"}


@dataclass
class Token:
    """A token: what it is, how it is written, and its line."""

    kind: str
    text: str
    line: int


@dataclass
class Item:
    """An item, a field or a variant, with the tokens from its first keyword to its end."""

    kind: str
    name: str
    start: int
    end: int
    is_pub: bool
    has_docs: bool
    attributes: list
    test: bool
    inside: list = field(default_factory=list)
    body: tuple = ()


def tokens(text):
    """The tokens of a source text."""
    found, at, line = [], 0, 1
    while at < len(text):
        match = TOKEN.match(text, at)
        kind, end = match.lastgroup, match.end()
        if kind == "block" or match.group().startswith(("/**", "/*!")):
            end = end_of_block(text, at)
        elif kind == "raw" and match.group().endswith('"'):
            end = end_of_string(text, match)
        if kind not in ("space", "note", "block"):
            found.append(Token("text" if kind == "raw" else kind, text[at:end], line))
        line += text.count("\n", at, end)
        at = end
    return found


def end_of_block(text, at):
    """Where a block comment ends; they nest."""
    depth = 0
    for match in re.finditer(r"/\*|\*/", text[at:]):
        depth += 1 if match.group() == "/*" else -1
        if depth == 0:
            return at + match.end()
    return len(text)


def end_of_string(text, match):
    """Where a string ends whose opening quote has been matched."""
    opening = match.group()
    if "r" in opening:
        closing = '"' + "#" * opening.count("#")
        return text.index(closing, match.end()) + len(closing)
    return re.compile(r'(?:[^"\\]|\\.)*"', re.DOTALL).match(text, match.end()).end()


def closing(found, at):
    """The place after the bracket that closes the one at `at`."""
    depth = 0
    for place in range(at, len(found)):
        if found[place].kind == "mark":
            if found[place].text in PAIRS:
                depth += 1
            elif found[place].text in PAIRS.values():
                depth -= 1
                if depth == 0:
                    return place + 1
    return len(found)


def until(found, at, marks):
    """The place of the first of `marks` that is in no bracket."""
    while at < len(found) and not (found[at].kind == "mark" and found[at].text in marks):
        at = closing(found, at) if found[at].kind == "mark" and found[at].text in PAIRS else at + 1
    return at


def after_generics(found, at):
    """The place after `<...>`, if it begins at `at`."""
    depth = 0
    while at < len(found):
        text = found[at].text
        depth += (text == "<") - (text == ">")
        if depth == 0:
            return at + 1 if text == ">" else at
        at += 1
    return at


def items(found, at=0, end=None, inherited=False, parts=None):
    """The items between two places; of a struct or an enum, with `parts`, its fields or variants."""
    end = len(found) if end is None else end
    listed = []
    while at < end:
        docs, attributes = False, []
        while at < end and (found[at].kind in ("outer", "inner") or found[at].text == "#"):
            if found[at].text == "#":
                first = at + 1 + (found[at + 1].text == "!")
                at = closing(found, first)
                attributes.append("".join(token.text for token in found[first + 1 : at - 1]))
            else:
                docs |= found[at].kind == "outer"
                at += 1
        if at >= end:
            break
        docs |= any(text.startswith("doc") for text in attributes)
        test = any(re.match(r"cfg\((all\()?test\b", text) or text == "test" for text in attributes)
        item = Item("", "", at, at, inherited, docs, attributes, test)
        (part if parts else whole)(found, end, item, parts)
        at = max(item.end, at + 1)
        listed.append(item)
    return listed


def visibility(found, at, item):
    """Reads `pub` and `pub(...)`; the place after it."""
    if found[at].text == "pub":
        restricted = found[at + 1].text == "(" and found[at + 2].text in ("crate", "super", "self", "in")
        item.is_pub = not restricted
        return closing(found, at + 1) if restricted else at + 1
    return at


def part(found, end, item, parts):
    """Reads one field or variant."""
    at = item.start if parts == "variant" else visibility(found, item.start, item)
    item.kind, item.name = parts, found[at].text if parts != "place" else ""
    item.end = min(until(found, at, ",") + 1, end) if parts == "variant" else end_of_part(found, at, end)
    if parts == "variant" and at + 1 < end and found[at + 1].text in ("{", "("):
        item.body = (at + 2, closing(found, at + 1) - 1)
        kind = "field" if found[at + 1].text == "{" else "place"
        item.inside = items(found, *item.body, inherited=True, parts=kind)


def end_of_part(found, at, end):
    """The place after the comma that ends a field, in whose type `<` and `>` are brackets."""
    depth = 0
    while at < end:
        text = found[at].text if found[at].kind == "mark" else ""
        if text in PAIRS:
            at = closing(found, at)
            continue
        depth += (text == "<") - (text == ">")
        at += 1
        if text == "," and depth <= 0:
            break
    return at


def whole(found, end, item, _):
    """Reads one item."""
    at = visibility(found, item.start, item)
    while found[at].text in FRONT and (found[at + 1].kind == "text" or found[at + 1].text in FRONT | NAMED - {"const"} | {"impl", "{"}):
        at += 1
        if found[at].kind == "text":
            at += 1
    item.kind = found[at].text
    if item.kind in NAMED and at + 1 < end:
        item.name = found[at + 1].text
        at += 2
    readers = {"struct": of_struct, "union": of_struct, "enum": of_struct, "trait": of_body, "impl": of_body, "mod": of_body, "fn": of_body}
    if item.kind in readers:
        readers[item.kind](found, at, item)
    elif item.kind in ("use", "const", "static", "type", "extern"):
        item.end = until(found, at, ";") + 1
    else:  # a macro, called or defined
        at = until(found, at, ";{")
        item.end = closing(found, at) if at < end and found[at].text == "{" else at + 1


def of_struct(found, at, item):
    """Reads what follows the name of a struct or an enum."""
    at = after_generics(found, at)
    if found[at].text != "(":
        at = until(found, at, ";{")
    if found[at].text == ";":
        item.end = at + 1
        return
    item.body = (at + 1, closing(found, at) - 1)
    kind = "variant" if item.kind == "enum" else "field" if found[at].text == "{" else "place"
    item.inside = items(found, *item.body, inherited=item.kind == "enum", parts=kind)
    item.end = closing(found, at) if found[at].text == "{" else until(found, at, ";") + 1


def of_body(found, at, item):
    """Reads what follows the name of a function, trait or module, or `impl`."""
    at = until(found, at, ";{")
    if at >= len(found) or found[at].text == ";":
        item.end = at + 1
        return
    item.end = closing(found, at)
    item.body = (at + 1, item.end - 1)
    if item.kind != "fn":
        item.inside = items(found, *item.body, inherited=item.kind == "trait" and item.is_pub)
