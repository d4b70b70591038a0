"""The causes of a metav1.Status, in Kubernetes' words."""

from __future__ import annotations

from leases.wire.status import StatusCause

_NAMED = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r"}


def bad_value(field: str, value: str, detail: str) -> StatusCause:
    """`value` is shown unchanged: quote texts with go_quote."""
    message = f"Invalid value: {value}: {detail}"
    return StatusCause(reason="FieldValueInvalid", message=message, field=field)


def go_quote(text: str) -> str:
    """Quote as Go's strconv.Quote (%q) does."""
    out = []
    for char in text:
        code = ord(char)
        if char in '"\\':
            out.append("\\" + char)
        elif code in _NAMED:
            out.append(_NAMED[code])
        elif char.isprintable():
            out.append(char)
        elif code < 0x80:
            out.append(f"\\x{code:02x}")
        else:
            out.append(f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")
    return f'"{"".join(out)}"'
