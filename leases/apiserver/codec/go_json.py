"""Read and write JSON as Go does: keep repeated names and number texts, use Go's messages.

Source of the words: Go's encoding/json/scanner.go.
"""

import codecs
import json
import re
from itertools import accumulate
from typing import Any

import msgspec

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


_UNSAFE = re.compile(rb"[<>&]|\xe2\x80[\xa8\xa9]")
_ESCAPED = {
    b"<": b"\\u003c",
    b">": b"\\u003e",
    b"&": b"\\u0026",
    b"\xe2\x80\xa8": b"\\u2028",
    b"\xe2\x80\xa9": b"\\u2029",
}
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
# Go reads 10,000 levels. Our objects have fewer than ten, and our functions walk them recursively.
MAX_DEPTH = 200
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_STEPS = dict.fromkeys(b"[{", 1) | dict.fromkeys(b"]}", -1)
_NO_BRACKETS = bytes(code for code in range(256) if code not in _STEPS)


class Pairs(dict[str, Any]):
    """An object with a repeated name: the last one counts, `pairs` holds all.

    It equals no other object, so that no comparison hides the repeated names.
    """

    __hash__ = None

    def __eq__(self, other: object) -> bool:
        return self is other

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs


class Number(float):
    """A number that is no plain integer; `text` is how it was written (1e1, 15.0)."""

    def __init__(self, text: str) -> None:
        self.text = text


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    plain = dict(pairs)
    return plain if len(plain) == len(pairs) else Pairs(pairs)


def _integer(text: str) -> int | Number:
    return int(text) if len(text) < 20 else Number(text)


def _refuse_constant(text: str) -> Any:
    raise ValueError(f"{text} is no JSON")


def _replace_bytes(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return "\ufffd" * (error.end - error.start), error.end


_encode = msgspec.json.Encoder().encode
_encode_exact = msgspec.json.Encoder(
    enc_hook=lambda number: number.text, order="deterministic"
).encode
_decode = msgspec.json.Decoder(float_hook=Number).decode
decode_stored = msgspec.json.Decoder().decode

codecs.register_error("leaseboard-go", _replace_bytes)
_decoder = json.JSONDecoder(
    object_pairs_hook=_object,
    parse_float=Number,
    parse_int=_integer,
    parse_constant=_refuse_constant,
)


def loads(data: bytes) -> Any:
    """The value that the bytes hold. Raises JsonError with the words of Go's encoding/json."""
    if _too_deep(data):
        raise JsonError("exceeded max depth")
    try:
        value = _decode(data)
        # What reads and writes back to the same text repeats no name and has plain numbers only.
        if _encode(value) == msgspec.json.format(data, indent=-1):
            return value
    except (msgspec.MsgspecError, ValueError, TypeError, OverflowError):
        pass  # floats, or no JSON
    return _loads_as_go(data)


def _loads_as_go(data: bytes) -> Any:
    text = data.decode("utf-8", "leaseboard-go")
    try:
        value = _decoder.decode(text)
    except ValueError:
        raise JsonError(scan_error(data)) from None
    return _without_surrogates(value) if _SURROGATE_ESCAPE.search(text) else value


def _too_deep(data: bytes) -> bool:
    if data.count(b"[") + data.count(b"{") <= MAX_DEPTH:
        return False
    brackets = _STRING.sub(b"", data).translate(None, _NO_BRACKETS)
    return max(accumulate(map(_STEPS.__getitem__, brackets)), default=0) > MAX_DEPTH


def _without_surrogates(value: Any) -> Any:
    """Halves of a surrogate pair become U+FFFD, as in Go."""
    if isinstance(value, str):
        return _LONE_SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        pairs = value.pairs if isinstance(value, Pairs) else value.items()
        return _object([(_without_surrogates(k), _without_surrogates(v)) for k, v in pairs])
    return value


def unrepeated(value: Any) -> Any:
    """A copy that holds the last of each repeated name alone, as Go's maps do."""
    if isinstance(value, dict):
        return {name: unrepeated(item) for name, item in value.items()}
    return [unrepeated(item) for item in value] if isinstance(value, list) else value


def dumps(value: Any) -> bytes:
    """Compact JSON without a newline; `<`, `>`, `&`, U+2028 and U+2029 are escaped."""
    return _escape(_encode(value))


def exact_json(value: Any) -> bytes:
    """JSON with sorted names and numbers as they were written: equal only for equal JSON values."""
    return _encode_exact(value)


def dumps_sorted(value: Any) -> bytes:
    """As `dumps`, with sorted names, as Go writes maps."""
    return _escape(_encode_exact(value))


def dumps_pretty(value: Any) -> bytes:
    """JSON indented by two spaces, as json.MarshalIndent writes it."""
    return _escape(json.dumps(value, ensure_ascii=False, indent=2).encode())


def _escape(data: bytes) -> bytes:
    # Four fast searches instead of one slow one: hardly any data needs escapes.
    if b"<" in data or b">" in data or b"&" in data or b"\xe2\x80" in data:
        return _UNSAFE.sub(lambda found: _ESCAPED[found[0]], data)
    return data


def type_word(value: Any) -> str:
    """The name of a value's kind in the type errors of encoding/json."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def number_text(value: float) -> str:
    return value.text if isinstance(value, Number) else str(value)
