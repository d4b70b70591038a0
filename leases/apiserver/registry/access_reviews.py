"""SelfSubjectAccessReview, which `kubectl auth can-i` sends."""

from __future__ import annotations

from leases.apiserver.auth.tokens import User, allows, authorize_path
from leases.apiserver.codec.decoding import DecodeError, Decoder
from leases.apiserver.codec.large_bodies import aside
from leases.apiserver.codec.protobuf import REVIEW
from leases.apiserver.discovery.documents import AUTHORIZATION_GROUP, reviewed_access
from leases.apiserver.errors import bad_request
from leases.apiserver.http.bodies import media_type_of, parse
from leases.apiserver.http.negotiation import negotiate
from leases.apiserver.http.request import Request
from leases.wire.status import ApiError


async def review(request: Request) -> None:
    """Answer whether the user has the access. Raises 400, 406 and 415."""
    output = negotiate(request.header(b"accept"))
    data = await request.body()
    try:
        parsed = await aside(len(data), parse, data, media_type_of(request), REVIEW)
    except ValueError as error:
        raise bad_request(str(error)) from None
    body = parsed.value
    if not isinstance(body, dict):
        raise bad_request("the body is no SelfSubjectAccessReview")
    try:
        body = Decoder().decode({"spec": body.get("spec")}, REVIEW)
    except DecodeError as error:
        kind = "SelfSubjectAccessReview"
        why = f'{kind} in version "v1" cannot be handled as a {kind}: {error}'
        raise bad_request(why) from None
    answer = {
        "kind": "SelfSubjectAccessReview",
        "apiVersion": f"{AUTHORIZATION_GROUP}/v1",
        "metadata": {},
        "spec": body.get("spec") or {},
        "status": {"allowed": _allowed(request.user, body)},
    }
    await request.answer_value(201, answer, output)


def _allowed(user: User, body: dict[str, object]) -> bool:
    access = reviewed_access(body)
    if access is not None:
        return allows(user, access)
    spec = body.get("spec")
    asked = spec.get("nonResourceAttributes") if isinstance(spec, dict) else None
    if not isinstance(asked, dict):
        return False
    try:
        authorize_path(user, str(asked.get("verb") or ""), str(asked.get("path") or ""))
    except ApiError:
        return False
    return True
