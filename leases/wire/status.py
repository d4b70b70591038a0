"""metav1.Status both ways, its causes, the errors it represents, and Warning headers.

Source: k8s.io/apimachinery/pkg/apis/meta/v1/types.go (StatusReason) and pkg/api/errors/errors.go.

Source: k8s.io/apimachinery/pkg/util/net/http.go, `ParseWarningHeaders`.
"""

import re
from collections.abc import Callable, Iterable
from typing import ClassVar

import msgspec

from leases.wire.json_decoding import Undecodable, decoder


class StatusCause(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[StatusCause, ...] = ()
    retry_after_seconds: int = 0


class Status(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """metav1.Status: what failed, and why."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: StatusDetails | None = None


class ApiError(Exception):
    """The API answered with an error, or not at all; `status` has the details.

    `status.code` is 0 without an answer.
    """

    code: ClassVar[int] = 0
    reason: ClassVar[str] = ""

    def __init__(self, status: Status) -> None:
        super().__init__(status.message or f"The API answered {status.code} {status.reason}.")
        self.status = status

    @property
    def causes(self) -> tuple[StatusCause, ...]:
        return self.status.details.causes if self.status.details else ()

    @property
    def retry_after(self) -> float | None:
        """Seconds that the server asks us to wait, if any."""
        seconds = self.status.details.retry_after_seconds if self.status.details else 0
        return float(seconds) if seconds else None


class BadRequest(ApiError):
    code, reason = 400, "BadRequest"


class Unauthorized(ApiError):
    code, reason = 401, "Unauthorized"


class Forbidden(ApiError):
    code, reason = 403, "Forbidden"


class NotFound(ApiError):
    code, reason = 404, "NotFound"


class Conflict(ApiError):
    code, reason = 409, "Conflict"


class AlreadyExists(ApiError):
    code, reason = 409, "AlreadyExists"


class Gone(ApiError):
    """The resourceVersion or continue token is too old: list again."""

    code, reason = 410, "Expired"


class Invalid(ApiError):
    code, reason = 422, "Invalid"


class TooManyRequests(ApiError):
    code, reason = 429, "TooManyRequests"


class Unreachable(ApiError):
    """No answer: refused connection, timeout, broken stream, invalid bytes."""

    def __init__(self, sentence: str) -> None:
        super().__init__(Status(message=sentence))


_KINDS = [kind for kind in ApiError.__subclasses__() if kind.code]
_BY_REASON = {kind.reason: kind for kind in _KINDS} | {"Gone": Gone}
_BY_CODE = {kind.code: kind for kind in reversed(_KINDS)}  # the first of two wins


def error_of(status: Status) -> ApiError:
    """Return the error for a Status, by its reason, else by its code."""
    kind = _BY_REASON.get(status.reason) or _BY_CODE.get(status.code) or ApiError
    return kind(status)


_decode: Callable[[bytes], Status] = decoder(Status)


def read_status(code: int, body: bytes, *, retry_after: int = 0) -> Status:
    """Decode the Status of an error answer; wrap any other body.

    `retry_after` is the header of that name in seconds, used if the body does not say it.
    """
    try:
        status = _decode(body)
    except Undecodable:
        text = body[:200].decode("utf-8", "replace").strip()
        status = Status(message=f"The API answered {code}: {text or 'no text'}")
    if not status.code:
        status = msgspec.structs.replace(status, code=code)
    details = status.details or StatusDetails()
    if retry_after and not details.retry_after_seconds:
        details = msgspec.structs.replace(details, retry_after_seconds=retry_after)
        status = msgspec.structs.replace(status, details=details)
    return status


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


_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')


def warnings_in(headers: Iterable[str]) -> list[str]:
    """Return the texts; a header may have several. Anything else in a header is left out."""
    return [
        re.sub(r"\\(.)", r"\1", text) for header in headers for text in _WARNING.findall(header)
    ]
