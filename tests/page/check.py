"""Looks at a page as a browser has dumped it.

    check.py DUMP TITLE TEXT...

It has this title, all these texts, one body, and nothing that could run or fetch anything.
"""

import html.parser
import pathlib
import re
import sys

FORBIDDEN = {"script", "img", "iframe", "object", "embed", "link", "base", "form", "foreignobject", "animate"}
ADDRESS = re.compile(r"#m\d+")


class Page(html.parser.HTMLParser):
    """Elements, texts and what is wrong of a page."""

    def __init__(self):
        super().__init__()
        self.bodies, self.texts, self.faults = 0, [], []

    def handle_starttag(self, tag, attributes):
        self.bodies += tag == "body"
        if tag in FORBIDDEN:
            self.faults.append(f"an element {tag}")
        for name, value in attributes:
            if name.startswith("on") or name in ("src", "srcdoc", "action", "xlink:href"):
                self.faults.append(f"an attribute {name} of {tag}")
            if name == "href" and not ADDRESS.fullmatch(value or ""):
                self.faults.append(f"an address {value}")
            self.texts.append(value or "")

    def handle_data(self, data):
        self.texts.append(data)


dump, title, *texts = sys.argv[1:]
page = Page()
text = pathlib.Path(dump).read_text()
page.feed(text)
faults = page.faults
if f"<title>{title}</title>" not in text.split("</head>")[0]:
    faults.append(f"not the title {title}")
if page.bodies != 1:
    faults.append(f"{page.bodies} bodies")
seen = "\n".join(page.texts)
faults += [f"no {wanted!r}" for wanted in texts if wanted not in seen]
for fault in faults:
    print(f"{pathlib.Path(dump).name}: {fault}", file=sys.stderr)
sys.exit(bool(faults))
