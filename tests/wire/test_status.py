"""Status bodies become errors of the right kind."""

from __future__ import annotations

import json
from typing import Any

import pytest

from leases.wire import status as wire


def body(**fields: Any) -> bytes:
    return json.dumps(
        {"kind": "Status", "apiVersion": "v1", "status": "Failure", **fields}
    ).encode()


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (400, "BadRequest", wire.BadRequest),
        (401, "Unauthorized", wire.Unauthorized),
        (403, "Forbidden", wire.Forbidden),
        (404, "NotFound", wire.NotFound),
        (409, "Conflict", wire.Conflict),
        (409, "AlreadyExists", wire.AlreadyExists),
        (410, "Expired", wire.Gone),
        (410, "Gone", wire.Gone),
        (422, "Invalid", wire.Invalid),
        (429, "TooManyRequests", wire.TooManyRequests),
        (409, "", wire.Conflict),
        (410, "Unheard", wire.Gone),
        (500, "InternalError", wire.ApiError),
    ],
)
def test_the_reason_and_else_the_code_names_the_error(
    code: int, reason: str, kind: type[wire.ApiError]
) -> None:
    error = wire.error_of(wire.read_status(code, body(code=code, reason=reason, message="no")))
    assert type(error) is kind
    assert str(error) == "no"


def test_an_answer_that_is_no_status_carries_its_code_and_text() -> None:
    status = wire.read_status(502, b"<html>Bad Gateway</html>")
    assert status.code == 502
    assert status.message == "The API answered 502: <html>Bad Gateway</html>"
    assert wire.read_status(503, b"").message == "The API answered 503: no text"
    assert wire.read_status(503, b'"\xff"').code == 503


def test_causes_name_the_wrong_field() -> None:
    cause = {"reason": "FieldValueInvalid", "message": "must be > 0", "field": "spec.x"}
    error = wire.error_of(wire.read_status(422, body(code=422, details={"causes": [cause]})))
    assert [(one.field, one.message) for one in error.causes] == [("spec.x", "must be > 0")]


def test_the_wait_asked_for_comes_from_the_body_and_else_from_the_header() -> None:
    said = body(code=429, details={"retryAfterSeconds": 3})
    assert wire.error_of(wire.read_status(429, said, retry_after=9)).retry_after == 3
    assert wire.error_of(wire.read_status(429, body(code=429), retry_after=9)).retry_after == 9
    assert wire.error_of(wire.read_status(429, b"slow down", retry_after=2)).retry_after == 2
    assert wire.error_of(wire.read_status(429, b"slow down")).retry_after is None
