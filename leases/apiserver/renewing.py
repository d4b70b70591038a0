"""The plain renewal, which is nearly every write: a holder puts back the Lease as it read it, with
other values in fields of the spec that it owns already.

Such a write needs no schema, no validation of what did not change and no new owners of fields.
`renewed` makes of it what writing.py would make, or leaves it to writing.py. tests/apiserver/
test_renewing.py holds the two against each other.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec

from leases.apiserver.auth import Tokens
from leases.apiserver.errors import GROUP
from leases.apiserver.managed_fields import UPDATE
from leases.apiserver.negotiation import JSON, is_browser, is_plain
from leases.apiserver.options import manager_of
from leases.apiserver.records import Version, now_text
from leases.apiserver.request import Request
from leases.apiserver.resources import LEASES
from leases.apiserver.storage import Plan, Store
from leases.wire.microtime import normal_microtime

Object = dict[str, Any]
# Larger bodies are no renewals, and are read in a thread of their own.
LIMIT_DIGITS = 5
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder(order="sorted").encode
_HEAD = LEASES.head
_PATH = ["", "apis", GROUP, LEASES.version, "namespaces"]
_TYPE = {"kind": LEASES.kind, "apiVersion": LEASES.api_version}
_TIMES = {"acquireTime", "renewTime"}
# The least value that validation.py takes; the greatest is an int32's.
_INTEGERS = {"leaseDurationSeconds": 1, "leaseTransitions": 0}
_INT32_MAX = 2**31 - 1


class NotPlain(Exception):
    """The write is no plain renewal."""


def place_of_renewal(request: Request) -> tuple[str, str] | None:
    """Namespace and name, when the request may be a plain renewal."""
    if request.query and not request.query.only("timeout"):
        return None
    parts = request.path.split("/")
    if len(parts) != 8 or parts[:5] != _PATH or parts[6] != LEASES.plural:
        return None
    if request.header(b"content-type") != JSON or not is_plain(request.header(b"accept")):
        return None
    if is_browser(request.header(b"user-agent")):
        return None
    length = request.header(b"content-length")
    small = length.isdecimal() and len(length) <= LIMIT_DIGITS
    return (parts[5], parts[7]) if small and not request.header(b"expect") else None


class Renewals:
    """Serves the plain renewals of one store."""

    def __init__(self, store: Store, tokens: Tokens) -> None:
        self._store = store
        self._tokens = tokens

    async def serve(self, request: Request) -> bool:
        """Whether the request was a plain renewal: then it is answered. Raises 401 and 500."""
        place = place_of_renewal(request) if request.method == "PUT" else None
        if place is None:
            return False
        if self._tokens.user(request.header(b"authorization") or None).role != "write":
            return False
        sent = _read(await request.body())
        if sent is None:
            return False
        manager = manager_of(request.header(b"user-agent")) or "unknown"
        attempt = partial(_plan, sent, manager)
        try:
            stored = await self._store.write(LEASES.plural, *place, attempt)
        except NotPlain:
            return False
        if stored is not None:
            await request.answer(200, b"%s%s\n" % (_HEAD, stored.body[1:]), JSON)
        return True


def _plan(sent: Sent, manager: str, existing: Version | None) -> Plan:
    found = None if existing is None else renewed(existing, sent, manager, now_text())
    if found is None:
        raise NotPlain
    return Plan(found)


class Sent(msgspec.Struct, frozen=True):
    """A body without its type: the two members, and its quotes and backslashes."""

    metadata: Object
    spec: Object
    quotes: int
    escapes: int


def _read(data: bytes) -> Sent | None:
    quotes, escapes = data.count(b'"'), data.count(b"\\")
    if escapes and escapes != data.count(b'\\"'):
        return None
    try:
        found = _decode(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    for name, value in _TYPE.items():
        if name in found:
            if found.pop(name) != value:
                return None
            quotes -= 4
    meta, spec = found.get("metadata"), found.get("spec")
    if len(found) != 2 or not isinstance(meta, dict) or not isinstance(spec, dict):
        return None
    return Sent(meta, spec, quotes, escapes)


def renewed(existing: Version, sent: Sent, manager: str, now: str) -> Object | None:
    """The stored object after this PUT, or None when that takes the general way."""
    # Of two members with one name the decoder keeps one: such a body has more quotes.
    body = existing.body
    if (body.count(b'"'), body.count(b"\\")) != (sent.quotes, sent.escapes):
        return None
    old = existing.read()
    meta, entries = old["metadata"], old["metadata"].get("managedFields")
    if not entries or "deletionTimestamp" in meta or not _same(sent.metadata, meta):
        return None
    changed = _changed(sent.spec, old["spec"])
    if not changed:
        return None
    owned = _still_owned(entries, [f"f:{name}" for name in changed], manager, now)
    if owned is None:
        return None
    return {"metadata": meta | {"managedFields": owned}, "spec": old["spec"] | sent.spec}


def _same(sent: Object, stored: Object) -> bool:
    if sent != stored:
        return False
    # To Python 1, 1.0 and True are equal; only here are there numbers and booleans.
    for name in ("generation", "ownerReferences"):
        if name in stored and _encode(sent[name]) != _encode(stored[name]):
            return False
    return True


def _changed(spec: Object, before: Object) -> list[str]:
    """The fields with other values; none when a field came, went, or is not valid as it stands."""
    if spec.keys() != before.keys():
        return []
    changed = []
    for name, value in spec.items():
        known = before[name]
        if type(value) is not type(known):
            return []
        if value != known:
            changed.append(name)
            if not _is_plain(name, value):
                return []
    return changed


def _is_plain(name: str, value: Any) -> bool:
    """Whether a value of the right type is valid, and written as it was read."""
    if name in _TIMES:
        return _is_normal(value)
    if (least := _INTEGERS.get(name)) is not None:
        return bool(least <= value <= _INT32_MAX)
    return name == "holderIdentity"


def _is_normal(moment: str) -> bool:
    try:
        return normal_microtime(moment) == moment
    except ValueError:
        return False


def _still_owned(
    entries: list[Object], changed: list[str], manager: str, now: str
) -> list[Object] | None:
    """The managedFields with the manager's time moved, when that is all that happens to them.

    So it is when the last entry is the manager's own, has every changed field, and stays last.
    """
    *others, own = entries
    if own.get("manager") != manager or own["operation"] != UPDATE or "subresource" in own:
        return None
    if own["apiVersion"] != LEASES.api_version or "time" not in own:
        return None
    fields = own["fieldsV1"].get("f:spec", {})
    if any(fields.get(name) != {} for name in changed):
        return None
    for other in others:
        theirs = other["fieldsV1"].get("f:spec", {})
        if any(name in theirs for name in changed):
            return None
        if other["operation"] == UPDATE and other.get("time", "") >= now:
            return None
    return [*others, own | {"time": now}]
