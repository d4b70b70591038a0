"""The plain renewal, which is nearly every write: a holder puts back the Lease as it read it, with
other values in fields of the spec that it owns already.

Such a write needs no schema, no validation of what did not change and no new owners of fields.
`renewed` makes of it what writing.py would make, or leaves it to writing.py. tests/apiserver/
test_renewing.py holds the two against each other.
"""

from __future__ import annotations

import re
import sqlite3
from typing import Any

import msgspec

from leases.apiserver.auth import Tokens
from leases.apiserver.commits import Done, Key
from leases.apiserver.errors import GROUP
from leases.apiserver.managed_fields import UPDATE
from leases.apiserver.negotiation import JSON, is_browser, is_plain
from leases.apiserver.options import manager_of
from leases.apiserver.records import Version, now_text
from leases.apiserver.request import Headers
from leases.apiserver.resources import LEASES
from leases.apiserver.storage import Store
from leases.wire.microtime import normal_microtime
from leases.wire.status import Unauthorized

Object = dict[str, Any]
# Larger bodies are no renewals.
LIMIT_DIGITS = 4
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder(order="sorted").encode
_HEAD = LEASES.head
_JSON = JSON.encode()
_URL = re.compile(
    rf"/apis/{GROUP}/{LEASES.version}/namespaces/([a-z0-9.-]+)/{LEASES.plural}/([a-z0-9.-]+)"
    r"(?:\?timeout=\w*)?".encode()
)
_TYPE = {"kind": LEASES.kind, "apiVersion": LEASES.api_version}
_TIMES = {"acquireTime", "renewTime"}
# The least value that validation.py takes; the greatest is an int32's.
_INTEGERS = {"leaseDurationSeconds": 1, "leaseTransitions": 0}
_INT32_MAX = 2**31 - 1


class Asked(msgspec.Struct, frozen=True):
    """What the head of a PUT that may be a plain renewal asks, and who asks it."""

    key: Key
    authorization: str
    manager: str
    audit: bytes


def asked_of(url: bytes, headers: Headers) -> Asked | None:
    """What a PUT asks, when it may be a plain renewal: a small one of JSON, answered in JSON."""
    place = _URL.fullmatch(url)
    if place is None:
        return None
    given = dict(reversed(headers))
    length = given.get(b"content-length", b"")
    if not length.isdigit() or len(length) > LIMIT_DIGITS:
        return None
    if given.get(b"content-type") != _JSON or b"expect" in given or b"upgrade" in given:
        return None
    agent = given.get(b"user-agent", b"").decode("latin-1")
    if is_browser(agent) or not is_plain(given.get(b"accept", b"").decode("latin-1")):
        return None
    return Asked(
        (LEASES.plural, place[1].decode(), place[2].decode()),
        given.get(b"authorization", b"").decode("latin-1"),
        manager_of(agent) or "unknown",
        given.get(b"audit-id", b""),
    )


class Renewals:
    """Serves the plain renewals of one store."""

    def __init__(self, store: Store, tokens: Tokens) -> None:
        self._store = store
        self._tokens = tokens

    def begin(self, asked: Asked, data: bytes | bytearray, done: Done) -> bool:
        """Whether this is a plain renewal: then it is on its way to disk, and `done` will hear."""
        if not self._may_write(asked.authorization):
            return False
        existing, sent = self._store.settled(asked.key), _read(data)
        if existing is None or sent is None:
            return False
        found = renewed(existing, sent, asked.manager, now_text())
        if found is None:
            return False
        self._store.begin(asked.key, existing, found, done)
        return True

    def _may_write(self, authorization: str) -> bool:
        try:
            return self._tokens.user(authorization).role == "write"
        except (Unauthorized, sqlite3.Error):
            return False  # the general way tells why


def answer_of(stored: Version) -> bytes:
    """The body that answers a renewal."""
    return b"%s%s\n" % (_HEAD, stored.body[1:])


class Sent(msgspec.Struct, frozen=True):
    """A body without its type: the two members, and its quotes and backslashes."""

    metadata: Object
    spec: Object
    quotes: int
    escapes: int


def _read(data: bytes | bytearray) -> Sent | None:
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
