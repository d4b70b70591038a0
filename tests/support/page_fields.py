"""The fields of a form that a page shows."""

from __future__ import annotations

from html.parser import HTMLParser


class Fields(HTMLParser):
    """The values that a browser would send with the form of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.values: dict[str, str] = {}
        self._area = self._select = ""
        self._inside = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._inside = found.get("method") == "post" and "action" not in found
        if not self._inside:
            return
        name = found.get("name", "")
        if tag == "input" and name and found.get("type") not in ("submit", "checkbox"):
            self.values[name] = found.get("value", "")
        elif tag == "textarea":
            self._area = name
            self.values[name] = ""
        elif tag == "select":
            self._select = name
            self.values.setdefault(name, "")
        elif tag == "option" and "selected" in found:
            self.values[self._select] = found.get("value", "")

    def handle_data(self, data: str) -> None:
        if self._area:
            self.values[self._area] += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea" and self._area:
            # A browser drops the line break that begins a text.
            self.values[self._area] = self.values[self._area].removeprefix("\n")
            self._area = ""
        elif tag == "form":
            self._inside = False
