"""The messages of Go's encoding/json for invalid JSON. Runs only after decoding failed.

Source of the words: Go's encoding/json/scanner.go.
"""

from __future__ import annotations

import re

_SPACE = b" \t\r\n"
_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_PLAIN = re.compile(rb'(?:[^"\\\x00-\x1f]|\\(?:[bfnrt\\/"]|u[0-9a-fA-F]{4}))++')
_LITERALS = {b"t": b"true", b"f": b"false", b"n": b"null"}
_END = "unexpected end of JSON input"
# At the end of its input, Go's scanner reads one more space. These contexts do not take a space.
_TAKES_NO_SPACE = (
    "in literal", "in numeric", "after decimal", "in exponent", "in \\u", "in string escape",
)  # fmt: skip


class JsonError(ValueError):
    """The text is not JSON; the message is Go's."""


def scan_error(data: bytes) -> str:
    """The message of the first syntax error."""
    scanner = _Scanner(data)
    try:
        scanner.value()
        scanner.space()
        if scanner.at < len(data):
            raise scanner.wrong("after top-level value")
    except JsonError as error:
        return str(error)
    return _END


def quoted_char(code: int) -> str:
    """One byte as Go's quoteChar shows it."""
    if code == ord("'"):
        return "'\\''"
    if code == ord('"'):
        return "'\"'"
    named = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 92: "\\\\"}
    if code in named:
        return f"'{named[code]}'"
    if code < 32 or code == 127:
        return f"'\\x{code:02x}'"
    if 128 <= code < 161 or code == 173:
        return f"'\\u{code:04x}'"
    return f"'{chr(code)}'"


class _Scanner:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def wrong(self, context: str) -> JsonError:
        if self.at < len(self.data):
            char = self.data[self.at]
        elif context.startswith(_TAKES_NO_SPACE):
            char = ord(" ")
        else:
            return JsonError(_END)
        return JsonError(f"invalid character {quoted_char(char)} {context}")

    def space(self) -> None:
        while self.at < len(self.data) and self.data[self.at] in _SPACE:
            self.at += 1

    def peek(self) -> bytes:
        return self.data[self.at : self.at + 1]

    def value(self) -> None:
        self.space()
        char = self.peek()
        if char == b"{":
            self.members()
        elif char == b"[":
            self.elements()
        elif char == b'"':
            self.string()
        elif char in _LITERALS:
            self.literal(_LITERALS[char])
        elif char == b"-" or char.isdigit():
            self.number()
        else:
            raise self.wrong("looking for beginning of value")

    def members(self) -> None:
        self.at += 1
        self.space()
        if self.peek() == b"}":
            self.at += 1
            return
        while True:
            self.space()
            if self.peek() != b'"':
                raise self.wrong("looking for beginning of object key string")
            self.string()
            self.space()
            if self.peek() != b":":
                raise self.wrong("after object key")
            self.at += 1
            self.value()
            if self.closed(b"}", "after object key:value pair"):
                return

    def elements(self) -> None:
        self.at += 1
        self.space()
        if self.peek() == b"]":
            self.at += 1
            return
        while True:
            self.value()
            if self.closed(b"]", "after array element"):
                return

    def closed(self, end: bytes, context: str) -> bool:
        self.space()
        char = self.peek()
        if char not in (end, b","):
            raise self.wrong(context)
        self.at += 1
        return char == end

    def literal(self, word: bytes) -> None:
        for index, code in enumerate(word):
            if index and self.peek() != word[index : index + 1]:
                raise self.wrong(f"in literal {word.decode()} (expecting '{chr(code)}')")
            self.at += 1

    def number(self) -> None:
        found = _NUMBER.match(self.data, self.at)
        if found is None:
            self.at += 1  # only a lone minus gets here
            raise self.wrong("in numeric literal")
        self.at = found.end()
        following = self.peek()
        if following == b".":
            self.at += 1
            raise self.wrong("after decimal point in numeric literal")
        if following in (b"e", b"E"):
            self.at += 1
            if self.peek() in (b"+", b"-"):
                self.at += 1
            raise self.wrong("in exponent of numeric literal")

    def string(self) -> None:
        self.at += 1
        while True:
            if plain := _PLAIN.match(self.data, self.at):
                self.at = plain.end()
            char = self.peek()
            if char == b'"':
                self.at += 1
                return
            if not char or char < b" ":
                raise self.wrong("in string literal")
            self.at += 1
            if char == b"\\":
                self.escape()

    def escape(self) -> None:
        char = self.peek()
        if char == b"u":
            for _ in range(4):
                self.at += 1
                if not re.fullmatch(rb"[0-9a-fA-F]", self.peek()):
                    raise self.wrong("in \\u hexadecimal character escape")
        elif not char or char not in b'bfnrt\\/"':
            raise self.wrong("in string escape code")
        self.at += 1
