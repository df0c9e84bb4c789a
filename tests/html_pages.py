"""Parse pages like a browser, without one."""

import base64
import hashlib
import json
from html.parser import HTMLParser


class Page(HTMLParser):
    """The content of a page as a browser sees it: elements, their attributes, the text of scripts and styles."""

    def __init__(self, path):
        super().__init__()
        self.source = path.read_text(encoding="utf-8")
        self.elements, self.texts, self.inside = [], {}, None
        self.words = []
        self.feed(self.source)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag in ("script", "style"):
            self.inside = (tag, len(self.texts))
            self.texts[self.inside] = ""

    def handle_endtag(self, tag):
        if self.inside and tag == self.inside[0]:
            self.inside = None

    def handle_data(self, text):
        if self.inside:
            self.texts[self.inside] += text
        else:
            self.words.append(text)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())

    @property
    def payload(self):
        (found,) = (text for (tag, _), text in self.texts.items() if tag == "script" and text.startswith("{"))
        return json.loads(found)

    def ids(self):
        return [attributes["id"] for _, attributes in self.elements if "id" in attributes]


def check_self_contained(page):
    """Check that the page requests nothing, and allows nothing but itself."""
    for tag, attributes in page.elements:
        for place in ("src", "href"):
            if place in attributes:
                assert attributes[place].startswith(("data:", "#")), (tag, attributes[place][:80])
        assert not any(attribute.startswith("on") or attribute == "style" for attribute in attributes)
    assert {tag for tag, _ in page.elements} & {"iframe", "object", "embed", "base"} == set()
    (policy,) = (a["content"] for _, a in page.elements if a.get("http-equiv") == "Content-Security-Policy")
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    assert rules["img-src"] == "data:"
    for kind, tag in (("script-src", "script"), ("style-src", "style")):
        allowed = set(rules[kind].split())
        found = [text for (name, _), text in page.texts.items() if name == tag and not text.startswith("{")]
        hashes = {f"'sha256-{base64.b64encode(hashlib.sha256(t.encode()).digest()).decode()}'" for t in found}
        assert hashes == allowed, "each inline text, and no other"
